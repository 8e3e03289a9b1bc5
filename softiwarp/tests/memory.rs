//! Tokens, bounds and rights.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{ptr, thread};

use softiwarp::memory::{Access, Binding, Denied, Domain, Memory, MemoryError, Region, Rights};

const ALL: Rights = Rights { local_write: true, remote_read: true, remote_write: true, bind: true };

/// Memory that only pointers lead to, as a program's.
struct Block(*mut u8, usize);

impl Block {
    fn new(length: usize) -> Block {
        Block(Box::into_raw(vec![0u8; length].into_boxed_slice()).cast(), length)
    }

    fn register(&self, domain: &Domain, rights: Rights) -> Region {
        // SAFETY: the block outlives the region in every test here, and no reference is made to it.
        unsafe { domain.register(self.0, self.1, self.0 as u64, rights).expect("a region") }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nothing uses it any more.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.0, self.1)) });
    }
}

#[test]
fn bounds_are_those_of_bytes() {
    let block = Block::new(100);
    let domain = Memory::new().domain();
    let region = block.register(&domain, ALL);
    let first = block.0 as u64;
    let find =
        |offset, length| domain.find(region.token(), offset, length, Access::PeerWrites(1)).map(|_| ());
    assert_eq!(find(first, 100), Ok(()));
    assert_eq!(find(first + 99, 1), Ok(()));
    assert_eq!(find(first + 100, 0), Ok(()));
    for (offset, length) in
        [(first, 101), (first - 1, 1), (first + 100, 1), (first + 1, 100), (first + 101, 0), (0, 1)]
    {
        assert_eq!(find(offset, length), Err(Denied::Bounds), "{offset:#x} {length}");
    }
    assert_eq!(find(u64::MAX, 1), Err(Denied::Wrap));
    assert_eq!(find(u64::MAX - 10, usize::MAX), Err(Denied::Wrap));
}

#[test]
fn rights_and_domains_are_kept() {
    let block = Block::new(8);
    let memory = Memory::new();
    let (domain, other) = (memory.domain(), memory.domain());
    let access = [Access::Gather, Access::Scatter, Access::PeerReads(1), Access::PeerWrites(1)];
    let none = Rights::default();
    let cases = [
        (none, [true, false, false, false]),
        (Rights { local_write: true, ..none }, [true, true, false, false]),
        (Rights { remote_read: true, ..none }, [true, false, true, false]),
        (Rights { local_write: true, remote_write: true, ..none }, [true, true, false, true]),
    ];
    for (rights, allowed) in cases {
        let region = block.register(&domain, rights);
        for (access, allowed) in access.into_iter().zip(allowed) {
            let found = domain.find(region.token(), block.0 as u64, 8, access).map(|_| ());
            assert_eq!(found, if allowed { Ok(()) } else { Err(Denied::Rights) }, "{rights:?} {access:?}");
            let found = other.find(region.token(), block.0 as u64, 8, access).map(|_| ());
            assert_eq!(found, Err(Denied::Stream), "{rights:?} {access:?}");
        }
    }
    let remote_only = Rights { remote_write: true, ..none };
    // SAFETY: refused.
    let refused = unsafe { domain.register(block.0, 8, 0, remote_only) };
    assert_eq!(refused.err(), Some(MemoryError::Invalid));
    // SAFETY: refused.
    assert!(unsafe { domain.register(ptr::null_mut(), 8, 0, none) }.is_err());
    // SAFETY: refused.
    assert!(unsafe { domain.register(block.0, 8, u64::MAX - 6, none) }.is_err());
}

/// Whoever has seen one token knows nothing of the next, and a token that is gone does not come back soon.
#[test]
fn tokens_do_not_follow_each_other() {
    let block = Block::new(8);
    let domain = Memory::new().domain();
    let regions: Vec<Region> = (0..1000).map(|_| block.register(&domain, ALL)).collect();
    let mut tokens: Vec<u32> = regions.iter().map(Region::token).collect();
    let steps: std::collections::HashSet<u32> =
        tokens.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps.len() > 990, "{} different steps", steps.len());
    let gone = tokens[500];
    drop(regions);
    assert_eq!(domain.find(gone, block.0 as u64, 1, Access::Gather).map(|_| ()), Err(Denied::Token));
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 1000);
}

#[test]
fn a_wrong_key_is_a_wrong_token() {
    let block = Block::new(8);
    let domain = Memory::new().domain();
    let region = block.register(&domain, ALL);
    for bit in 0..32 {
        let found = domain.find(region.token() ^ (1 << bit), block.0 as u64, 1, Access::PeerReads(1));
        assert_eq!(found.map(|_| ()), Err(Denied::Token));
    }
}

#[test]
fn a_window_is_bound_used_and_invalidated() {
    let block = Block::new(100);
    let memory = Memory::new();
    let domain = memory.domain();
    let region = block.register(&domain, Rights { remote_read: false, remote_write: false, ..ALL });
    let window = domain.window().unwrap();
    let first = block.0 as u64;
    let token = window.token() & !0xff | 0x42;
    let rights = Rights { remote_write: true, ..Rights::default() };
    let binding = Binding { token, region: region.token(), offset: first + 10, length: 20, rights };
    domain.bind(&binding, 7).unwrap();
    let find = |token, offset, length, access| domain.find(token, offset, length, access).map(|_| ());
    assert_eq!(find(token, first + 10, 20, Access::PeerWrites(7)), Ok(()));
    assert_eq!(find(token, first + 9, 1, Access::PeerWrites(7)), Err(Denied::Bounds));
    assert_eq!(find(token, first + 10, 21, Access::PeerWrites(7)), Err(Denied::Bounds));
    assert_eq!(find(token, first + 10, 1, Access::PeerReads(7)), Err(Denied::Rights));
    assert_eq!(find(token, first + 10, 1, Access::PeerWrites(8)), Err(Denied::Stream), "another connection");
    assert_eq!(find(token, first + 10, 1, Access::Gather), Err(Denied::Stream), "windows are for peers");
    assert_eq!(find(token ^ 1, first + 10, 1, Access::PeerWrites(7)), Err(Denied::Token));
    assert_eq!(domain.bind(&binding, 7), Err(MemoryError::Invalid), "it is bound");
    assert_eq!(memory.domain().invalidate(token, 7), Err(Denied::Stream));
    assert_eq!(domain.invalidate(token, 8), Err(Denied::Stream));
    assert_eq!(domain.invalidate(region.token(), 7), Err(Denied::Rights));
    let (error, region) = region.deregister().unwrap_err();
    assert_eq!(error, MemoryError::Busy);
    assert_eq!(domain.invalidate(token, 7), Ok(()));
    assert_eq!(domain.invalidate(token, 7), Err(Denied::Token));
    assert_eq!(find(token, first + 10, 1, Access::PeerWrites(7)), Err(Denied::Token));
    for wrong in [
        Binding { length: 91, ..binding },
        Binding { length: 0, ..binding },
        Binding { offset: first - 1, ..binding },
        Binding { region: token, ..binding },
        Binding { token: token ^ 0x100, ..binding },
    ] {
        assert_eq!(domain.bind(&wrong, 7), Err(MemoryError::Invalid), "{wrong:?}");
    }
    let other = memory.domain();
    let theirs = block.register(&other, ALL);
    let wrong = Binding { region: theirs.token(), ..binding };
    assert_eq!(other.bind(&wrong, 7), Err(MemoryError::Domain), "a window of another domain");
    assert_eq!(domain.bind(&Binding { length: 90, ..binding }, 7), Ok(()));
    assert_eq!(memory.domain().bind(&binding, 7), Err(MemoryError::Domain));
    drop(window);
    assert!(region.deregister().is_ok());
}

#[test]
fn a_region_takes_its_windows_along() {
    let block = Block::new(100);
    let domain = Memory::new().domain();
    let region = block.register(&domain, ALL);
    let window = domain.window().unwrap();
    let (token, offset) = (window.token(), block.0 as u64);
    domain.bind(&Binding { token, region: region.token(), offset, length: 1, rights: ALL }, 7).unwrap();
    let span = domain.find(token, offset, 1, Access::PeerReads(7)).unwrap();
    drop(region);
    assert!(span.hold().is_none());
    assert_eq!(domain.find(token, offset, 1, Access::PeerReads(7)).map(|_| ()), Err(Denied::Token));
}

#[test]
fn deregistering_waits_for_an_access() {
    let block = Block::new(8);
    let domain = Memory::new().domain();
    let region = block.register(&domain, ALL);
    let span = domain.find(region.token(), block.0 as u64, 8, Access::PeerWrites(1)).unwrap();
    let again = span.clone();
    let token = region.token();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let held = span.hold().expect("held");
        scope.spawn(|| {
            assert!(region.deregister().is_ok());
            done.store(true, Ordering::SeqCst);
        });
        while domain.find(token, block.0 as u64, 8, Access::Gather).is_ok() {
            thread::yield_now();
        }
        assert!(!done.load(Ordering::SeqCst), "nobody finds it any more, but it is in use");
        assert_eq!(held.fill(b"12345678910"), 8);
        let mut out = Vec::new();
        held.append_to(&mut out);
        assert_eq!(out, b"12345678");
    });
    assert!(span.hold().is_none() && again.hold().is_none());
}
