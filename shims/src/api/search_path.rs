//! `SearchPath`.

use super::small::{Named, full_path};
use crate::arguments::{Out, Text};
use crate::boundary::guard;
use crate::crt::file::path;
use crate::environment::variable;
use crate::error::*;
use crate::text::narrow_and_wide;
use std::path::Path;

/// The folders of a list in Windows' form or, without a semicolon, Linux's.
fn folders(list: &str) -> impl Iterator<Item = String> {
    let between = if list.contains(';') { ';' } else { ':' };
    list.split(between).filter(|folder| !folder.is_empty()).map(path)
}

/// The folders that are searched if none are told: the program's, the current one, and those of `PATH`.
fn usual_folders() -> Vec<String> {
    let program = std::env::current_exe().ok();
    let own = program.as_deref().and_then(Path::parent).map(|folder| folder.to_string_lossy().into_owned());
    let list = variable("PATH").unwrap_or_default();
    own.into_iter().chain([".".to_owned()]).chain(folders(&list)).collect()
}

/// Whether a name says by itself where the file is.
fn has_a_place(name: &str) -> bool {
    ["/", "./", "../"].iter().any(|beginning| name.starts_with(beginning))
}

/// Where the file is.
fn find(list: Option<String>, name: &str, extension: Option<String>) -> Option<String> {
    let name = path(name);
    let last = name.rsplit('/').next().unwrap_or(&name);
    let longer = extension.filter(|_| !last.contains('.'));
    let longer = longer.map(|extension| format!("{name}{extension}"));
    let exists = |file: &String| Path::new(file).exists();
    if has_a_place(&name) {
        return [Some(name), longer].into_iter().flatten().find(exists);
    }
    let name = longer.unwrap_or(name);
    let list = list.map_or_else(usual_folders, |list| folders(&list).collect());
    list.into_iter().map(|folder| format!("{folder}/{name}")).find(exists)
}

/// # Safety
/// `buffer` is NULL or has room for `size` units; `part` is NULL or writable.
unsafe fn search_path<T: Named + From<u8>>(
    list: Text<'_, T>,
    name: Text<'_, T>,
    extension: Text<'_, T>,
    size: u32,
    buffer: *mut T,
    part: Out<'_, *mut T>,
) -> u32 {
    let found = || {
        let name = name.read().filter(|name| !name.is_empty()).ok_or(ERROR_INVALID_PARAMETER)?;
        find(list.read(), &name, extension.read()).ok_or(ERROR_FILE_NOT_FOUND)
    };
    guard(0, || match found() {
        Ok(found) => {
            let mut found = T::spell(&found);
            found.push(T::default());
            // SAFETY: the room is the buffer's, as this function asks.
            unsafe { full_path(Text::terminated(&found), size, buffer, part) }
        }
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}

narrow_and_wide! {
    "`SearchPath`: the whole path of a file."
    ndw_SearchPathA ndw_SearchPathW = unsafe search_path(
        list: Text<'_, T>,
        name: Text<'_, T>,
        extension: Text<'_, T>,
        size: u32,
        buffer: *mut T,
        part: Out<'_, *mut T>,
    ) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::text::{self, Wchar, w};
    use std::ptr::null_mut;

    /// What is found, or the error.
    fn search(list: Option<&str>, name: &str, extension: Option<&str>) -> Result<String, u32> {
        let [list, name, extension] = [list, Some(name), extension].map(|text| text.map(w));
        fn text(text: &Option<Vec<Wchar>>) -> Text<'_, Wchar> {
            text.as_deref().map_or(Text::NULL, Text::terminated)
        }
        let (mut buffer, mut part) = ([0 as Wchar; 1000], null_mut());
        // SAFETY: there is so much room.
        let length = unsafe {
            let (list, name, extension) = (text(&list), text(&name), text(&extension));
            ndw_SearchPathW(list, name, extension, 1000, buffer.as_mut_ptr(), Out::from(&mut part))
        };
        if length == 0 {
            return Err(last_error());
        }
        let found = text::from_wide(&buffer[..length as usize]);
        let last = found.rsplit('/').next().unwrap().chars().count();
        assert!(std::ptr::eq(part, &buffer[length as usize - last]));
        Ok(found)
    }

    #[test]
    fn a_file_is_searched_in_the_folders_of_a_list_in_their_order() {
        let (one, two) = (Folder::new(), Folder::new());
        for (folder, name) in
            [(&one, "a.ext"), (&two, "a.ext"), (&two, "b"), (&two, "c.ext"), (&two, "c.d.ext")]
        {
            folder.file(name, b"");
        }
        let list = |between: &str| format!("{}{between}{}", one.0, two.0);
        for list in [list(";"), list(":"), list(";;"), format!("/none-such;{}", list(";"))] {
            let search = |name, extension| search(Some(&list), name, extension);
            assert_eq!(search("a.ext", None), Ok(one.name("a.ext")));
            assert_eq!(search("b", None), Ok(two.name("b")));
            // An extension is for a name without one, which has it then.
            assert_eq!(search("c", Some(".ext")), Ok(two.name("c.ext")));
            assert_eq!(search("c.d", Some(".ext")), Err(ERROR_FILE_NOT_FOUND));
            assert_eq!(search("b", Some(".ext")), Err(ERROR_FILE_NOT_FOUND));
            assert_eq!(search("c", None), Err(ERROR_FILE_NOT_FOUND));
        }
        assert_eq!(search(Some(""), "a.ext", None), Err(ERROR_FILE_NOT_FOUND));
        assert_eq!(search(Some(&list(";")), "", None), Err(ERROR_INVALID_PARAMETER));
        // A folder within those of the list, and spellings of Windows.
        let (above, last) = one.0.rsplit_once('/').unwrap();
        assert_eq!(search(Some(above), &format!("{last}\\a.ext"), None), Ok(one.name("a.ext")));
        assert_eq!(search(Some(above), last, None), Ok(one.0.clone()), "a folder is found, too");
    }

    #[test]
    fn a_name_with_a_place_of_its_own_is_not_searched() {
        let (one, two) = (Folder::new(), Folder::new());
        let (there, longer) = (one.file("x", b""), one.file("y.ext", b""));
        assert_eq!(search(Some(&two.0), &there, Some(".ext")), Ok(there.clone()));
        assert_eq!(search(Some(&two.0), &one.name("y"), Some(".ext")), Ok(longer));
        assert_eq!(search(Some(&two.0), &one.name("y.e"), Some("xt")), Err(ERROR_FILE_NOT_FOUND));
        assert_eq!(search(Some(&one.0), &two.name("x"), None), Err(ERROR_FILE_NOT_FOUND));
        assert_eq!(search(Some(&one.0), "./x", None), Err(ERROR_FILE_NOT_FOUND));
        assert_eq!(search(Some(&one.0), "..\\x", None), Err(ERROR_FILE_NOT_FOUND));
        assert_eq!(search(None, &one.name("none"), None), Err(ERROR_FILE_NOT_FOUND));
    }

    #[test]
    fn without_a_list_the_programs_folder_comes_first_and_then_path() {
        let program = std::env::current_exe().unwrap();
        let (program, name) = (program.to_str().unwrap(), program.file_name().unwrap().to_str().unwrap());
        assert_eq!(search(None, name, None).as_deref(), Ok(program));
        let shell = search(None, "sh", None).unwrap();
        assert!(shell.ends_with("/sh") && Path::new(&shell).exists(), "{shell}");
        assert_eq!(search(None, "none-such-program", None), Err(ERROR_FILE_NOT_FOUND));
        // The room that is needed, with the NUL.
        let (name, mut buffer) = (w(name), [9u32; 4]);
        // SAFETY: there is so much room.
        let needed = unsafe {
            ndw_SearchPathW(
                Text::NULL,
                Text::terminated(&name),
                Text::NULL,
                4,
                buffer.as_mut_ptr(),
                Out::NULL,
            )
        };
        assert_eq!((needed as usize, buffer), (program.len() + 1, [9; 4]));
        // SAFETY: nothing is written.
        let done = unsafe { ndw_SearchPathA(Text::NULL, Text::NULL, Text::NULL, 0, null_mut(), Out::NULL) };
        assert_eq!((done, last_error()), (0, ERROR_INVALID_PARAMETER));
    }
}
