//! `libndcompat`: the COM vtables and C entry points over the engine.
