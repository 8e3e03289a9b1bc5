//! The regions of `VirtualAlloc`, and which of their pages are committed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A page that is only reserved. No protection has this value.
pub(super) const RESERVED: u32 = 0;

/// The region of one `MEM_RESERVE`.
pub(super) struct Region {
    pub(super) end: usize,
    pub(super) protect: u32,
    /// Where each run of equal pages starts, and their protection or [`RESERVED`].
    pub(super) runs: BTreeMap<usize, u32>,
}

impl Region {
    /// The run of equal pages from `page` on.
    pub(super) fn run(&self, page: usize) -> (usize, u32) {
        let protect = self.runs.range(..=page).next_back().map_or(RESERVED, |(_, protect)| *protect);
        let next = self.runs.range(page + 1..).find(|(_, next)| **next != protect);
        (next.map_or(self.end, |(start, _)| *start), protect)
    }

    pub(super) fn set(&mut self, pages: &Range<usize>, protect: u32) {
        let (_, behind) = self.run(pages.end);
        self.runs.retain(|start, _| !pages.contains(start));
        self.runs.insert(pages.start, protect);
        if pages.end < self.end {
            self.runs.insert(pages.end, behind);
        }
    }

    pub(super) fn is_committed(&self, pages: &Range<usize>) -> bool {
        let mut page = pages.start;
        while page < pages.end {
            let (end, protect) = self.run(page);
            if protect == RESERVED {
                return false;
            }
            page = end;
        }
        true
    }
}

pub(super) type Regions = BTreeMap<usize, Region>;

pub(super) fn regions() -> MutexGuard<'static, Regions> {
    static REGIONS: Mutex<Regions> = Mutex::new(BTreeMap::new());
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region that holds an address, with its base.
pub(super) fn region_of(regions: &mut Regions, address: usize) -> Option<(usize, &mut Region)> {
    let (base, region) = regions.range_mut(..=address).next_back()?;
    (address < region.end).then_some((*base, region))
}
