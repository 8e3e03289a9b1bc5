//! `CreatePipe`.

use crate::arguments::Out;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::object::{Object, RawHandle, handle, open};
use std::ffi::c_void;
use std::sync::Arc;

/// `CreatePipe`: two files; what is written to the one is read from the other. The reader has `ERROR_BROKEN_PIPE` when the writer is
/// closed, the writer `ERROR_NO_DATA` when the reader is. The size is a wish.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreatePipe(
    reader: Out<'_, RawHandle>,
    writer: Out<'_, RawHandle>,
    _security: *const c_void,
    size: u32,
) -> i32 {
    guard_bool(|| {
        let (reader, writer) =
            (reader.required(ERROR_INVALID_PARAMETER)?, writer.required(ERROR_INVALID_PARAMETER)?);
        let [from, to] = DiskFile::pipe(size)?.map(|end| Object::Disk(Arc::new(end)));
        let from = open(from)?;
        let to = open(to).inspect_err(|_| drop(handle::close(from)))?;
        reader.put(from);
        writer.put(to);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::files::{ndw_GetFileType, ndw_ReadFile, ndw_WriteFile};
    use std::ptr::null_mut;

    #[test]
    fn what_is_written_to_a_pipe_is_read_until_its_writer_is_closed() {
        let (mut reader, mut writer) = (RawHandle::NULL, RawHandle::NULL);
        let made = ndw_CreatePipe((&mut reader).into(), (&mut writer).into(), std::ptr::null(), 0);
        assert_eq!((made, ndw_GetFileType(reader), ndw_GetFileType(writer)), (1, 3, 3));
        let (mut count, mut buffer) = (0, [0u8; 8]);
        let mut call = |handle, is_write| {
            // SAFETY: the buffer has eight bytes, and there is no OVERLAPPED.
            let done = unsafe {
                match is_write {
                    true => ndw_WriteFile(handle, buffer.as_ptr().cast(), 4, (&mut count).into(), null_mut()),
                    false => {
                        ndw_ReadFile(handle, buffer.as_mut_ptr().cast(), 8, (&mut count).into(), null_mut())
                    }
                }
            };
            if done == 1 { Ok(count) } else { Err(last_error()) }
        };
        assert_eq!((call(writer, true), call(reader, false)), (Ok(4), Ok(4)), "it has what there is");
        assert_eq!(
            (call(reader, true), call(writer, false)),
            (Err(ERROR_ACCESS_DENIED), Err(ERROR_ACCESS_DENIED))
        );
        assert!(handle::close(writer).is_some());
        assert_eq!(call(reader, false), Err(ERROR_BROKEN_PIPE));
        assert!(handle::close(reader).is_some());
        // The other way round.
        assert_eq!(ndw_CreatePipe((&mut reader).into(), (&mut writer).into(), std::ptr::null(), 1 << 20), 1);
        assert!(handle::close(reader).is_some());
        // For a moment, a process that another test starts has the reader, too.
        let refused = std::iter::repeat_with(|| call(writer, true)).find(Result::is_err);
        assert_eq!(refused, Some(Err(ERROR_NO_DATA)));
        assert!(handle::close(writer).is_some());
        assert_eq!(ndw_CreatePipe(Out::NULL, (&mut writer).into(), std::ptr::null(), 0), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
}
