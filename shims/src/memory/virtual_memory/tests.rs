use super::*;

const PAGE: usize = 4096;

fn state(address: usize) -> (usize, usize, u32, u32) {
    let mut found = MemoryInformation::default();
    // SAFETY: the target is ours.
    assert_eq!(unsafe { ndw_VirtualQuery(address, &mut found, 48) }, 48);
    (found.allocation_base, found.region_size, found.state, found.protect)
}

#[test]
fn large_pages_are_there_if_the_system_keeps_some() {
    let large = ndw_GetLargePageMinimum();
    let kind = MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES;
    let refused = |address, size, kind| {
        assert!(ndw_VirtualAlloc(address, size, kind, PAGE_READWRITE).is_null());
        last_error()
    };
    for (address, size, kind) in [
        (0, large - 1, kind),
        (0, large + PAGE, kind),
        (0, 0, kind),
        (ALLOCATION_GRANULARITY, large, kind),
        (0, large, MEM_RESERVE | MEM_LARGE_PAGES),
        (0, large, MEM_COMMIT | MEM_LARGE_PAGES),
        (0, large, MEM_LARGE_PAGES),
    ] {
        assert_eq!(refused(address, size, kind), ERROR_INVALID_PARAMETER, "{address} {size} {kind:#x}");
    }
    let base = ndw_VirtualAlloc(0, large, kind, PAGE_READWRITE) as usize;
    if base == 0 {
        assert_eq!(last_error(), ERROR_NO_SYSTEM_RESOURCES);
        return;
    }
    assert!(base.is_multiple_of(large));
    assert_eq!(state(base), (base, large, MEM_COMMIT, PAGE_READWRITE));
    // SAFETY: a large page of the test's own, committed for writing, and not used after it is freed.
    unsafe {
        (base as *mut u64).write(7);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
    }
}

/// What is freed can be anybody's at once.
#[test]
fn regions_are_free_afterwards() {
    crate::alone::run("memory::virtual_memory::tests::reserve_commit_decommit_release");
    crate::alone::run("memory::virtual_memory::tests::reserving_at_an_address_rounds_it_down");
}

#[test]
#[ignore = "uses what is freed; the test above runs it"]
fn reserve_commit_decommit_release() {
    let base = ndw_VirtualAlloc(0, 10 * PAGE, MEM_RESERVE, PAGE_NOACCESS) as usize;
    assert!(base != 0 && base.is_multiple_of(ALLOCATION_GRANULARITY));
    assert_eq!(state(base), (base, 10 * PAGE, MEM_RESERVE, 0));

    let middle = base + 2 * PAGE;
    assert_eq!(ndw_VirtualAlloc(middle + 5, PAGE, MEM_COMMIT, PAGE_READWRITE) as usize, middle);
    assert_eq!(state(base), (base, 2 * PAGE, MEM_RESERVE, 0));
    assert_eq!(state(middle + 9), (base, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
    assert_eq!(state(middle + 2 * PAGE), (base, 6 * PAGE, MEM_RESERVE, 0));
    // SAFETY: the page at `middle` is committed for writing whenever it is used, and only this test knows the region.
    unsafe {
        (middle as *mut u64).write(7);
        assert_eq!(ndw_VirtualFree(middle, 2 * PAGE, MEM_DECOMMIT), 1);
        assert_eq!(state(base), (base, 10 * PAGE, MEM_RESERVE, 0));
        assert!(!ndw_VirtualAlloc(middle, PAGE, MEM_COMMIT, PAGE_READWRITE).is_null());
        assert_eq!((middle as *mut u64).read(), 0);

        assert_eq!(ndw_VirtualFree(base, PAGE, MEM_RELEASE), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        assert_eq!(ndw_VirtualFree(middle, 0, MEM_RELEASE), 0);
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 0);
    }
}

#[test]
#[ignore = "uses what is freed; the test above runs it"]
fn reserving_at_an_address_rounds_it_down() {
    let base = ndw_VirtualAlloc(0, 0x4_0000, MEM_RESERVE, PAGE_READONLY) as usize;
    // SAFETY: a region of this test's own, whose pages are never used.
    assert_eq!(unsafe { ndw_VirtualFree(base, 0, MEM_RELEASE) }, 1);
    // Up to the end of the last page, from the beginning of 64 KiB.
    let kind = MEM_RESERVE | MEM_COMMIT;
    let again = ndw_VirtualAlloc(base + 0x1_0000 + 5000, PAGE, kind, PAGE_READWRITE) as usize;
    assert_eq!(again, base + 0x1_0000);
    assert_eq!(state(again + 5000), (again, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
    // The rest of the 64 KiB can be had by nobody else.
    assert_eq!(state(again).1, 3 * PAGE);
    // SAFETY: three pages of this test's own, committed for writing, and not used after they are freed.
    unsafe {
        (again as *mut u8).add(3 * PAGE - 1).write(1);
        assert_eq!(ndw_VirtualFree(again, 0, MEM_RELEASE), 1);
    }
    assert_eq!(state(again).2, MEM_FREE);
}

#[test]
fn committed_pages_can_be_committed_again() {
    let base = ndw_VirtualAlloc(0, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE) as usize;
    // SAFETY: the page is committed for writing, then for reading when it is read; only this test knows the region.
    unsafe {
        (base as *mut u64).write(7);
        assert_eq!(ndw_VirtualAlloc(base, PAGE, MEM_COMMIT, PAGE_READONLY) as usize, base);
        assert_eq!((base as *mut u64).read(), 7);
        assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READONLY));
        // What is not committed can be decommitted, too; size 0 means all.
        assert_eq!(ndw_VirtualFree(base, 0, MEM_DECOMMIT), 1);
        assert_eq!(ndw_VirtualFree(base, 2 * PAGE, MEM_DECOMMIT), 1);
        assert_eq!(state(base), (base, 2 * PAGE, MEM_RESERVE, 0));
        assert_eq!(ndw_VirtualFree(base + PAGE, 0, MEM_DECOMMIT), 0);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
    }
}

#[test]
fn nothing_is_reserved_below_64_kib() {
    for address in [1, PAGE, 0xFFFF] {
        for kind in [MEM_RESERVE, MEM_RESERVE | MEM_COMMIT] {
            assert!(ndw_VirtualAlloc(address, PAGE, kind, PAGE_READWRITE).is_null(), "{address:#x}");
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        assert!(ndw_VirtualAlloc(address, PAGE, MEM_COMMIT, PAGE_READWRITE).is_null());
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
    }
}

#[test]
fn a_reset_keeps_pages_and_gives_up_their_content() {
    let base = ndw_VirtualAlloc(0, 4 * PAGE, MEM_RESERVE, PAGE_NOACCESS) as usize;
    assert_eq!(ndw_VirtualAlloc(base, PAGE, MEM_COMMIT, PAGE_READWRITE) as usize, base);
    // SAFETY: the first page is committed for writing, and a reset leaves it so; only this test knows the region.
    unsafe {
        (base as *mut u64).write(7);
        assert_eq!(ndw_VirtualAlloc(base + 5, PAGE - 5, MEM_RESET, PAGE_NOACCESS) as usize, base);
        assert!(matches!((base as *mut u64).read(), 0 | 7));
    }
    assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READWRITE));
    assert_eq!(ndw_VirtualAlloc(base + PAGE, PAGE, MEM_RESET, PAGE_NOACCESS) as usize, base + PAGE);
    assert_eq!(state(base + PAGE), (base, 3 * PAGE, MEM_RESERVE, 0));
    for (address, kind, error) in [
        (base + 3 * PAGE, MEM_RESET, ERROR_INVALID_ADDRESS),
        (base, MEM_RESET | MEM_COMMIT, ERROR_INVALID_PARAMETER),
    ] {
        assert!(ndw_VirtualAlloc(address, 2 * PAGE, kind, PAGE_NOACCESS).is_null());
        assert_eq!(last_error(), error);
    }
    assert!(ndw_VirtualAlloc(base, PAGE, MEM_RESET, 0).is_null());
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER, "the protection must be one, though it is not used");
    // SAFETY: a region of this test's own, whose pages are not used any more.
    assert_eq!(unsafe { ndw_VirtualFree(base, 0, MEM_RELEASE) }, 1);
}

#[test]
fn every_field_of_a_query() {
    let base = ndw_VirtualAlloc(0, 3 * PAGE, MEM_RESERVE, PAGE_NOACCESS) as usize;
    ndw_VirtualAlloc(base + PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
    let mut found = MemoryInformation::default();
    // SAFETY: the target is ours.
    assert_eq!(unsafe { ndw_VirtualQuery(base + PAGE + 77, &mut found, 100) }, 48);
    let expected = MemoryInformation {
        base_address: base + PAGE,
        allocation_base: base,
        allocation_protect: PAGE_NOACCESS,
        partition: 0,
        region_size: PAGE,
        state: MEM_COMMIT,
        protect: PAGE_READWRITE,
        kind: MEM_PRIVATE,
    };
    assert_eq!(found, expected);
    // SAFETY: a region of this test's own, whose pages are never used.
    unsafe {
        for (size, kind) in [(0, 0), (PAGE, MEM_RESERVE), (0, MEM_RELEASE | MEM_DECOMMIT)] {
            assert_eq!(ndw_VirtualFree(base, size, kind), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
        assert_eq!(ndw_VirtualFree(base, 1, MEM_RELEASE), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
}

#[test]
fn commit_without_address_reserves_too() {
    let base = ndw_VirtualAlloc(0, 1, MEM_COMMIT, PAGE_READWRITE) as usize;
    assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READWRITE));
    assert!(ndw_VirtualAlloc(base, PAGE, MEM_RESERVE, PAGE_READWRITE).is_null());
    assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
    assert!(ndw_VirtualAlloc(base, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE).is_null());
    assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
    // SAFETY: a region of this test's own, whose page is never used.
    assert_eq!(unsafe { ndw_VirtualFree(base, 0, MEM_RELEASE) }, 1);
}

#[test]
fn protection_changes_committed_pages_only() {
    let base = ndw_VirtualAlloc(0, 4 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) as usize;
    let mut old = 0;
    // SAFETY: a region of this test's own, whose pages are never used, so no access can fail.
    unsafe {
        assert_eq!(ndw_VirtualProtect(base + PAGE, PAGE, PAGE_READONLY, &mut old), 1);
        assert_eq!(old, PAGE_READWRITE);
        assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READWRITE));
        assert_eq!(state(base + PAGE), (base, PAGE, MEM_COMMIT, PAGE_READONLY));
        assert_eq!(ndw_VirtualProtect(base, 2 * PAGE, PAGE_READWRITE, &mut old), 1);
        assert_eq!(state(base), (base, 4 * PAGE, MEM_COMMIT, PAGE_READWRITE));
        assert_eq!(ndw_VirtualFree(base, PAGE, MEM_DECOMMIT), 1);
        assert_eq!(ndw_VirtualProtect(base, 2 * PAGE, PAGE_READONLY, &mut old), 0);
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
        assert_eq!(ndw_VirtualProtect(base, PAGE, PAGE_READONLY, std::ptr::null_mut()), 0);
        assert_eq!(last_error(), ERROR_NOACCESS);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
    }
}

#[test]
fn foreign_memory_can_be_queried() {
    let local = 0u8;
    let (_, size, found, protect) = state(&raw const local as usize);
    assert!(size >= PAGE);
    assert_eq!((found, protect), (MEM_COMMIT, PAGE_READWRITE));
    let (_, _, found, protect) = state(foreign_memory_can_be_queried as *const () as usize);
    assert_eq!((found, protect), (MEM_COMMIT, PAGE_EXECUTE_READ));
    let (base, _, found, protect) = state(0);
    assert_eq!((base, found, protect), (0, MEM_FREE, PAGE_NOACCESS));
}

#[test]
fn bad_arguments() {
    for (size, kind, protect) in [
        (0, MEM_COMMIT, PAGE_READWRITE),
        (1, 0, PAGE_READWRITE),
        (1, MEM_COMMIT, 0),
        (1, MEM_COMMIT, PAGE_READWRITE | PAGE_READONLY),
        (usize::MAX, MEM_COMMIT, PAGE_READWRITE),
        (1, MEM_COMMIT | MEM_RELEASE, PAGE_READWRITE),
        (1, MEM_COMMIT | 1, PAGE_READWRITE),
    ] {
        set_last_error(0);
        assert!(ndw_VirtualAlloc(0, size, kind, protect).is_null());
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
    let mut found = MemoryInformation::default();
    // SAFETY: the target is ours, or NULL.
    unsafe {
        assert_eq!(ndw_VirtualQuery(0, &mut found, 47), 0);
        assert_eq!(last_error(), ERROR_BAD_LENGTH);
        assert_eq!(ndw_VirtualQuery(usize::MAX, &mut found, 48), 0);
        assert_eq!(ndw_VirtualQuery(0, std::ptr::null_mut(), 48), 0);
    }
}

#[test]
fn pages_of_a_view_can_be_committed() {
    use crate::memory::section::{Section, map, unmap};
    let (section, _) = Section::of_memory(4 * PAGE as u64, PAGE_READWRITE, None).unwrap();
    let view = map(&std::sync::Arc::new(section), 2, 0, 0, 0).unwrap();
    let commit = |address, size| ndw_VirtualAlloc(address, size, MEM_COMMIT, PAGE_READWRITE) as usize;
    assert_eq!((commit(view, 4 * PAGE), commit(view + PAGE + 5, 1)), (view, view + PAGE));
    // SAFETY: committed for writing, by the view.
    unsafe { ((view + PAGE) as *mut u8).write(1) };
    assert_eq!((commit(view + PAGE, 4 * PAGE), last_error()), (0, ERROR_INVALID_ADDRESS));
    // SAFETY: nobody uses it any more.
    unsafe { unmap(view) }.unwrap();
}

#[test]
fn locked_pages_that_are_decommitted_lose_what_they_held() {
    let base = ndw_VirtualAlloc(0, 2 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) as usize;
    // SAFETY: pages of the test's own, which are committed whenever they are used.
    unsafe {
        ((base + PAGE) as *mut u8).write(7);
        if libc::mlock(base as _, 2 * PAGE) != 0 {
            return crate::alone::skipped("no memory may be locked");
        }
        assert_eq!(ndw_VirtualFree(base, 2 * PAGE, MEM_DECOMMIT), 1);
        assert_eq!(ndw_VirtualAlloc(base, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE) as usize, base);
        assert_eq!(((base + PAGE) as *const u8).read(), 0);
        assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
    }
}
