//! What reads and writes text: formats, numbers, addresses, identifiers, messages. See text.cpp.

#![no_main]

unsafe extern "C" {
    fn fuzz_text(data: *const u8, size: usize);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // SAFETY: the bytes are read, no further.
    unsafe { fuzz_text(data.as_ptr(), data.len()) }
});
