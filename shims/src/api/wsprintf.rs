//! `wsprintf`: formatted text of at most 1024 characters, its NUL included.

use crate::crt::print::{Formatted, VaList};
use crate::text::{self, narrow_and_wide};

/// The room that the caller's buffer must have, in characters.
const LIMIT: usize = 1024;

/// # Safety
/// `buffer` is NULL or has room for the text, [`LIMIT`] units at most; `format` is NULL or terminated, and `arguments` fit it.
unsafe fn print<T: Formatted>(buffer: *mut T, format: *const T, arguments: VaList) -> i32 {
    // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
    let text = unsafe { T::format(format, arguments) }.unwrap_or_default();
    let kept = &text[..text.len().min(LIMIT - 1)];
    // SAFETY: the buffer is NULL or has room for the text up to `LIMIT`, which is where it was cut.
    if unsafe { text::store(kept, buffer, LIMIT) } { kept.len() as i32 } else { 0 }
}

narrow_and_wide! {
    "`wvsprintf`: the length without the NUL."
    ndw_wvsprintfA ndw_wvsprintfW = unsafe print(buffer: *mut T, format: *const T, arguments: VaList) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crt::va_list::Arguments;
    use crate::text::{Wchar, w};
    use std::ptr::null_mut;

    #[test]
    fn text_ends_after_1023_characters() {
        let mut buffer = [7 as Wchar; LIMIT + 1];
        let long = w(&"x".repeat(2000));
        let values = [long.as_ptr() as u64, 5];
        // SAFETY: room for 1024, and the formats take what is given.
        unsafe {
            let length =
                ndw_wvsprintfW(buffer.as_mut_ptr(), w("%s%d").as_ptr(), Arguments::on_stack(&values).list());
            assert_eq!((length, buffer[LIMIT - 1], buffer[LIMIT]), (1023, 0, 7));
            let length =
                ndw_wvsprintfW(buffer.as_mut_ptr(), w("%d").as_ptr(), Arguments::on_stack(&[12]).list());
            assert_eq!((length, &buffer[..3]), (2, &w("12")[..]));
            let mut narrow = [7u8; 4];
            let mut values = Arguments::on_stack(&[12]);
            assert_eq!(ndw_wvsprintfA(narrow.as_mut_ptr(), c"%03d".as_ptr().cast(), values.list()), 3);
            assert_eq!(&narrow, b"012\0");
            let mut none = Arguments::on_stack(&[]);
            assert_eq!(ndw_wvsprintfA(null_mut(), c"x".as_ptr().cast(), none.list()), 0);
        }
    }
}
