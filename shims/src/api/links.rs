//! `CreateHardLink`, `CreateSymbolicLink`.

use super::file_names::path;
use crate::arguments::Text;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::error_at;
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::io;
use std::path::Path;

/// `SYMBOLIC_LINK_FLAG_DIRECTORY`, `SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE`: Linux asks for neither.
const FLAGS: u32 = 1 | 2;

/// The error of a link that could not be made.
fn failed(error: &io::Error, link: &Path) -> u32 {
    match error_at(error, link) {
        // What is not there is the folder, or what the link would lead to.
        ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND if !crate::files::folder_of(link).is_dir() => {
            ERROR_PATH_NOT_FOUND
        }
        code => code,
    }
}

fn hard<T: Unit>(link: Text<'_, T>, file: Text<'_, T>, _security: *const c_void) -> i32 {
    guard_bool(|| {
        let (link, file) = (path(link)?, path(file)?);
        if std::fs::metadata(&file).is_ok_and(|found| found.is_dir()) {
            return Err(ERROR_ACCESS_DENIED);
        }
        std::fs::hard_link(&file, &link).map_err(|error| failed(&error, &link))
    })
}

fn symbolic<T: Unit>(link: Text<'_, T>, target: Text<'_, T>, flags: u32) -> u8 {
    let done = guard_bool(|| {
        let (link, target) = (path(link)?, path(target)?);
        if flags & !FLAGS != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        std::os::unix::fs::symlink(&target, &link).map_err(|error| failed(&error, &link))
    });
    done as u8
}

narrow_and_wide! {
    "`CreateHardLink`: another name of a file."
    ndw_CreateHardLinkA ndw_CreateHardLinkW
        = hard(link: Text<'_, T>, file: Text<'_, T>, security: *const c_void) -> i32;
    "`CreateSymbolicLink`: what it leads to need not be there. It takes no privilege."
    ndw_CreateSymbolicLinkA ndw_CreateSymbolicLinkW
        = symbolic(link: Text<'_, T>, target: Text<'_, T>, flags: u32) -> u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::text::w;
    use std::ptr::null;

    #[test]
    fn a_file_has_another_name_by_a_link_of_either_kind() {
        let folder = Folder::new();
        let file = folder.file("a", b"text");
        let hard = |link: &str, file: &str| {
            let done = hard(Text::terminated(&w(link)), Text::terminated(&w(file)), null());
            if done == 1 { 0 } else { last_error() }
        };
        let symbolic = |link: &str, target: &str, flags| {
            let done = symbolic(Text::terminated(&w(link)), Text::terminated(&w(target)), flags);
            if done == 1 { 0 } else { last_error() }
        };
        for made in [hard(&folder.name("b"), &file), symbolic(&folder.name("c"), "a", 2)] {
            assert_eq!(made, 0);
        }
        assert_eq!(symbolic(&folder.name("d"), &folder.0, 1), 0);
        for name in ["b", "c", "d\\a"] {
            assert_eq!(std::fs::read(folder.name(name).replace('\\', "/")).unwrap(), b"text");
        }
        assert_eq!(hard(&folder.name("b"), &file), ERROR_ALREADY_EXISTS);
        assert_eq!(symbolic(&folder.name("c"), "a", 0), ERROR_ALREADY_EXISTS);
        assert_eq!(hard(&folder.name("e"), &folder.name("gone")), ERROR_FILE_NOT_FOUND);
        assert_eq!(hard(&folder.name("none/e"), &file), ERROR_PATH_NOT_FOUND);
        assert_eq!(symbolic(&folder.name("none/e"), "a", 0), ERROR_PATH_NOT_FOUND);
        assert_eq!(hard(&folder.name("e"), &folder.0), ERROR_ACCESS_DENIED);
        assert_eq!(symbolic(&folder.name("e"), "a", 4), ERROR_INVALID_PARAMETER);
    }
}
