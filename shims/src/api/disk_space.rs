//! `GetDiskFreeSpace[Ex]`: the room on a file system.

use crate::arguments::{Out, Text};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::{SECTOR, error_at, path_of};
use crate::text::{Unit, narrow_and_wide};
use rustix::fs::{StatVfs, statvfs};

/// The file system of a folder; NULL is the current one.
fn file_system<T: Unit>(folder: Text<'_, T>) -> Result<StatVfs, u32> {
    let path = path_of(Some(folder.read().unwrap_or_else(|| ".".into())))?;
    let code = |error: std::io::Error| match error_at(&error, &path) {
        ERROR_FILE_NOT_FOUND => ERROR_PATH_NOT_FOUND,
        code => code,
    };
    if !std::fs::metadata(&path).map_err(code)?.is_dir() {
        return Err(ERROR_DIRECTORY);
    }
    statvfs(&path).map_err(|errno| code(errno.into()))
}

/// In bytes: what the caller may use, all there is, what is free.
fn free_space_ex<T: Unit>(
    folder: Text<'_, T>,
    usable: Out<'_, u64>,
    total: Out<'_, u64>,
    free: Out<'_, u64>,
) -> i32 {
    guard_bool(|| {
        let found = file_system(folder)?;
        for (place, blocks) in [(usable, found.f_bavail), (total, found.f_blocks), (free, found.f_bfree)] {
            place.put(blocks.saturating_mul(found.f_frsize));
        }
        Ok(())
    })
}

/// A cluster is a block. As many as 32 bits can tell.
fn free_space<T: Unit>(
    folder: Text<'_, T>,
    sectors_per_cluster: Out<'_, u32>,
    bytes_per_sector: Out<'_, u32>,
    free_clusters: Out<'_, u32>,
    clusters: Out<'_, u32>,
) -> i32 {
    guard_bool(|| {
        let found = file_system(folder)?;
        let told = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let block = found.f_frsize.max(1);
        let sector = u64::from(SECTOR).min(block);
        sectors_per_cluster.put(told(block / sector));
        bytes_per_sector.put(told(sector));
        free_clusters.put(told(found.f_bavail));
        clusters.put(told(found.f_blocks));
        Ok(())
    })
}

narrow_and_wide! {
    "`GetDiskFreeSpaceEx`."
    ndw_GetDiskFreeSpaceExA ndw_GetDiskFreeSpaceExW = free_space_ex(
        folder: Text<'_, T>,
        usable: Out<'_, u64>,
        total: Out<'_, u64>,
        free: Out<'_, u64>
    ) -> i32;
    "`GetDiskFreeSpace`."
    ndw_GetDiskFreeSpaceA ndw_GetDiskFreeSpaceW = free_space(
        folder: Text<'_, T>,
        sectors_per_cluster: Out<'_, u32>,
        bytes_per_sector: Out<'_, u32>,
        free_clusters: Out<'_, u32>,
        clusters: Out<'_, u32>
    ) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::text::w;

    fn result(done: i32) -> u32 {
        if done == 1 { ERROR_SUCCESS } else { last_error() }
    }

    #[test]
    fn the_room_of_a_file_system_is_told_in_bytes_and_in_clusters() {
        let folder = Folder::new();
        let (mut usable, mut total, mut free) = (0, 0, 0);
        let name = w(&folder.0);
        let done = free_space_ex(
            Text::terminated(&name),
            (&mut usable).into(),
            (&mut total).into(),
            (&mut free).into(),
        );
        assert_eq!(result(done), 0);
        assert!(0 < total && usable <= free && free <= total, "{usable} {free} {total}");
        let (mut sectors, mut bytes, mut clusters) = (0, 0, 0);
        let done = free_space(
            Text::terminated(&name),
            (&mut sectors).into(),
            (&mut bytes).into(),
            Out::NULL,
            (&mut clusters).into(),
        );
        assert_eq!(result(done), 0);
        let told = u64::from(sectors) * u64::from(bytes) * u64::from(clusters);
        // The size of some file systems moves with what is free.
        assert!(told.abs_diff(total) < total / 10 || clusters == u32::MAX, "{told} {total}");
        // The current folder, and nothing wanted.
        assert_eq!(result(free_space_ex(Text::<u8>::NULL, Out::NULL, Out::NULL, Out::NULL)), 0);
    }

    #[test]
    fn only_a_folder_has_room() {
        let folder = Folder::new();
        let ask =
            |name: &str| result(free_space_ex(Text::terminated(&w(name)), Out::NULL, Out::NULL, Out::NULL));
        assert_eq!(ask(&folder.name("none")), ERROR_PATH_NOT_FOUND);
        assert_eq!(ask(&folder.file("file", b"")), ERROR_DIRECTORY);
        assert_eq!(ask(""), ERROR_PATH_NOT_FOUND);
    }
}
