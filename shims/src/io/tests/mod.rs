//! The I/O core as a driver and a program see it, with a fake device: an eventfd that completes requests.

mod binding;
mod concurrency;
mod descriptor;
mod device;
mod idle;
mod many_files;
mod outstanding;
mod port;
mod request;
mod spin;
