//! Every function that the headers declare, in any order, with arguments that nobody would pass. See functions.cpp.

#![no_main]

unsafe extern "C" {
    fn fuzz_functions(data: *const u8, size: usize);
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // SAFETY: the bytes are read, no further.
    unsafe { fuzz_functions(data.as_ptr(), data.len()) }
});
