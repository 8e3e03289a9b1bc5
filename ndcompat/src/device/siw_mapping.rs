//! A workaround for queues that libsiw cannot map.
//!
//! libsiw maps each queue of a siw device at the offset that the driver returns, and takes the offset 0x90000 for an error
//! (`SIW_INVAL_UOBJ_KEY`). The driver, however, allocates 0x90000 like any other offset: the queue at that offset cannot be
//! created, and `ibv_create_*` fails without an errno. So an unused queue is created that covers the page.

use crate::verbs::{CompletionQueue, Context};
use std::sync::Arc;

/// The offset that libsiw takes for an error.
const REFUSED: usize = 0x9_0000;
/// The size of a completion in the mapping of its queue, and of the control structure at the end, in bytes.
const ENTRY: usize = 32;
const CONTROL: usize = 8;

/// Creates a queue that covers the refused offset, for as long as other queues are created. Must be called before anything
/// else is created on the device. Returns `None` if that fails.
pub(crate) fn cover_refused_offset(context: &Arc<Context>) -> Option<CompletionQueue> {
    let page = rustix::param::page_size();
    let create = |entries| CompletionQueue::create(context, entries, None, 0, Some(0)).ok();
    // Temporary queues fill the offsets before it.
    let _before = sizes(REFUSED / page - 1, page).map(create).collect::<Option<Vec<_>>>()?;
    create((page / ENTRY) as u32)
}

/// The depths of completion queues that together fill `pages` pages.
fn sizes(mut pages: usize, page: usize) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let taken = |entries: usize| (entries * ENTRY + CONTROL).div_ceil(page);
        let entries = (0..16).rev().map(|bit| 1 << bit).find(|&entries| taken(entries) <= pages)?;
        pages -= taken(entries);
        Some(entries as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_before_it_end_a_page_before() {
        assert_eq!(sizes(143, 4096).collect::<Vec<_>>(), [16384, 1024, 512]);
        assert_eq!(sizes(8, 65536).collect::<Vec<_>>(), [8192, 4096]);
        assert_eq!(sizes(0, 4096).count(), 0);
    }
}
