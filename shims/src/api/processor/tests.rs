//! Processors through their entry points.

use super::affinity::MAXIMUM_PROCESSORS;
use super::topology::ALL_GROUPS;
use super::*;
use crate::api::event::ndw_CreateEventW;
use crate::api::handle::close_handle;
use crate::api::thread::thread_number;
use crate::arguments::{In, InOut, Out, Text};
use crate::object::RawHandle;
use crate::processor::topology::topology;
use crate::processor::{current, mask_of, priority};
use parking_lot::Mutex;
use std::ptr::{null, null_mut};

const ME: RawHandle = RawHandle(usize::MAX - 1);
const PROCESS: RawHandle = RawHandle::INVALID;

/// Held while a test changes where threads run: a process's mask is that of all its threads.
static AFFINITY: Mutex<()> = Mutex::new(());

/// Runs a test on a thread of its own, which may change where it runs.
fn on_a_thread(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(test).join().unwrap());
}

fn thread_affinity() -> GroupAffinity {
    let mut found = GroupAffinity::default();
    assert_eq!(ndw_GetThreadGroupAffinity(ME, Out::from(&mut found)), 1);
    found
}

#[test]
fn a_thread_runs_where_its_mask_says() {
    let _affinity = AFFINITY.lock();
    on_a_thread(|| {
        let all = thread_affinity();
        for bit in (0..64).filter(|bit| all.mask >> bit & 1 != 0) {
            let before = thread_affinity().mask;
            assert_eq!(ndw_SetThreadAffinityMask(ME, 1 << bit), before);
            assert_eq!(ndw_GetCurrentProcessorNumber(), bit);
            let mut number = ProcessorNumber::default();
            ndw_GetCurrentProcessorNumberEx(Out::from(&mut number));
            assert_eq!(number, ProcessorNumber { group: all.group, number: bit as u8, reserved: 0 });
        }
        let one = thread_affinity();
        let mut previous = GroupAffinity::default();
        assert_eq!(ndw_SetThreadGroupAffinity(ME, In::from(&all), Out::from(&mut previous)), 1);
        assert_eq!((previous, thread_affinity()), (one, all));
    });
}

#[test]
fn masks_must_name_processors_that_are_there() {
    let _affinity = AFFINITY.lock();
    on_a_thread(|| {
        let all = thread_affinity();
        for mask in
            [0, !mask_of(&topology().online, all.group)].into_iter().filter(|mask| *mask & all.mask == 0)
        {
            assert_eq!((ndw_SetThreadAffinityMask(ME, mask), last_error()), (0, ERROR_INVALID_PARAMETER));
            assert_eq!(
                (ndw_SetProcessAffinityMask(PROCESS, mask), last_error()),
                (0, ERROR_INVALID_PARAMETER)
            );
            for bad in [
                GroupAffinity { mask, ..all },
                GroupAffinity { group: 999, ..all },
                GroupAffinity { reserved: [0, 0, 1], ..all },
            ] {
                let done = ndw_SetThreadGroupAffinity(ME, In::from(&bad), Out::NULL);
                assert_eq!((done, last_error()), (0, ERROR_INVALID_PARAMETER), "{bad:?}");
            }
        }
        assert_eq!(thread_affinity(), all, "nothing has changed");
        assert_eq!((ndw_SetThreadGroupAffinity(ME, In::NULL, Out::NULL), last_error()), (0, ERROR_NOACCESS));
        assert_eq!((ndw_GetThreadGroupAffinity(ME, Out::NULL), last_error()), (0, ERROR_NOACCESS));
    });
}

#[test]
fn the_mask_of_the_process_is_within_the_systems() {
    let _affinity = AFFINITY.lock();
    let (mut process, mut system) = (0, 0);
    assert_eq!(ndw_GetProcessAffinityMask(PROCESS, Out::from(&mut process), Out::from(&mut system)), 1);
    assert_eq!(
        (ndw_GetProcessAffinityMask(PROCESS, Out::NULL, Out::from(&mut system)), last_error()),
        (0, ERROR_NOACCESS)
    );
    assert!(process != 0 && process & !system == 0);
    // It holds for threads that are there, and for those to come.
    assert_eq!(ndw_SetProcessAffinityMask(PROCESS, process), 1);
    let (mut count, mut groups) = (0, [0xFFFFu16; 64]);
    // SAFETY: a count of 0 has nothing written; the second call tells how many groups there are, of 64 that have room.
    unsafe {
        assert_eq!(ndw_GetProcessGroupAffinity(PROCESS, InOut::from(&mut count), null_mut()), 0);
        assert_eq!(last_error(), ERROR_INSUFFICIENT_BUFFER);
        assert_eq!(ndw_GetProcessGroupAffinity(PROCESS, InOut::from(&mut count), groups.as_mut_ptr()), 1);
    }
    assert!(count >= 1 && groups[..usize::from(count)].iter().all(|group| *group < topology().groups()));
}

#[test]
fn wrong_handles_name_no_thread_and_no_process() {
    let event = ndw_CreateEventW(null(), 0, 0, Text::NULL);
    for handle in [RawHandle::NULL, event, PROCESS] {
        let failed = |done: bool| assert!(!done && last_error() == ERROR_INVALID_HANDLE, "{handle:?}");
        failed(ndw_SetThreadAffinityMask(handle, 1) != 0);
        failed(ndw_SetThreadPriority(handle, 0) != 0);
        failed(ndw_GetThreadPriority(handle) != i32::MAX);
        failed(ndw_SetThreadIdealProcessor(handle, 0) != u32::MAX);
        if handle != PROCESS {
            failed(ndw_SetProcessAffinityMask(handle, 1) != 0);
            failed(ndw_SetPriorityClass(handle, 0x20) != 0);
            failed(ndw_GetPriorityClass(handle) != 0);
        }
    }
    assert_eq!(close_handle(event), 1);
}

/// Whether a thread may become faster: root may not in every container.
fn may_lower_nice_values() -> bool {
    // SAFETY: takes no pointer; the thread ends.
    let lower = || unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 };
    std::thread::spawn(lower).join().unwrap()
}

#[test]
fn priorities_become_nice_values_as_far_as_rights_go() {
    let any = may_lower_nice_values();
    on_a_thread(move || {
        let me = thread_number(ME).unwrap();
        let begin = priority::nice(me);
        assert_eq!(ndw_GetThreadPriority(ME), 0);
        for (level, nice) in [(-1, 5), (-2, 10), (-15, 19)] {
            assert_eq!((ndw_SetThreadPriority(ME, level), ndw_GetThreadPriority(ME)), (1, level));
            assert_eq!(priority::nice(me), if any { nice } else { nice.max(begin) });
        }
        for (level, nice) in [(0, 0), (1, -5), (2, -10), (15, -20)] {
            // The level is the program's in any case.
            assert_eq!((ndw_SetThreadPriority(ME, level), ndw_GetThreadPriority(ME)), (1, level));
            assert!(priority::nice(me) == nice || !any);
        }
        for level in [-16, -14, -3, 3, 14, 16, 0x4_0000] {
            assert_eq!(
                (ndw_SetThreadPriority(ME, level), last_error()),
                (0, ERROR_INVALID_PARAMETER),
                "{level}"
            );
        }
        assert_eq!(ndw_GetThreadPriority(ME), 15);
        // Another thread has its own.
        on_a_thread(|| assert_eq!(ndw_GetThreadPriority(ME), 0));
    });
}

#[test]
fn a_new_thread_has_the_processs_mask_and_a_normal_priority() {
    crate::alone::run("api::processor::tests::what_a_new_thread_has");
}

#[test]
#[ignore = "sets what all later threads have; the test above runs it"]
fn what_a_new_thread_has() {
    use crate::processor::affinity::get;
    extern "C-unwind" fn look(found: *mut std::ffi::c_void) -> u32 {
        // SAFETY: the place that `created` passes, and waits for.
        unsafe {
            found.cast::<(Option<crate::processor::Set>, i32)>().write((get(0).ok(), priority::nice(0)))
        };
        0
    }
    let created_and = |set: &dyn Fn(RawHandle)| {
        const SUSPENDED: u32 = 4;
        let mut found = (None, 99);
        let place = (&raw mut found).cast();
        let mut id = 0;
        // SAFETY: the routine takes the place, which lives until the thread has ended.
        let thread =
            unsafe { crate::api::thread::ndw_CreateThread(null(), 0, Some(look), place, SUSPENDED, &mut id) };
        set(thread);
        assert_eq!(crate::api::thread::ndw_ResumeThread(thread), 1);
        assert_eq!(crate::api::wait::ndw_WaitForSingleObject(thread, u32::MAX), 0);
        assert_eq!(close_handle(thread), 1);
        found
    };
    let created = || created_and(&|_| ());
    let of_the_library = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        let look = move || sender.send((get(0).ok(), priority::nice(0))).unwrap();
        crate::io::threads::spawn("new", look).unwrap().join().unwrap();
        receiver.recv().unwrap()
    };
    let (all, begin) = (get(0).unwrap(), priority::nice(0));
    let one = 1u64 << (*all.first().unwrap() % 64);
    assert_eq!(created(), (Some(all.clone()), begin), "nothing was set");
    on_a_thread(|| {
        assert_ne!(ndw_SetThreadAffinityMask(ME, one), 0);
        for found in [created(), of_the_library()] {
            assert_eq!(found, (Some(all.clone()), begin), "the creator's mask is its own");
        }
        assert_eq!(ndw_SetThreadPriority(ME, -2), 1);
        let any = may_lower_nice_values();
        for (_, nice) in [created(), of_the_library()] {
            // Without a privilege nothing becomes faster than its creator.
            assert!(nice == 0 || !any && nice >= begin, "{nice}");
        }
        // Many times: the thread might undo it as it begins.
        for _ in 0..100 {
            let found = created_and(&|thread| {
                assert_ne!(ndw_SetThreadAffinityMask(thread, one), 0);
                assert_eq!(ndw_SetThreadPriority(thread, -2), 1);
            });
            let nice = if any { 10 } else { begin.max(10) };
            assert_eq!(found, (Some([*all.first().unwrap()].into()), nice), "what its creator gave it");
        }
    });
    assert_eq!(ndw_SetProcessAffinityMask(PROCESS, one), 1);
    assert_eq!(created().0, Some([*all.first().unwrap()].into()));
}

#[test]
fn a_thread_works_in_the_background_and_comes_back() {
    on_a_thread(|| {
        let me = thread_number(ME).unwrap();
        let (begin, end) = (0x1_0000, 0x2_0000);
        assert_eq!(ndw_SetThreadPriority(ME, end), 0);
        assert_eq!(last_error(), ERROR_THREAD_MODE_NOT_BACKGROUND);
        assert_eq!((ndw_SetThreadPriority(ME, begin), priority::nice(me)), (1, 19));
        assert_eq!(
            (ndw_SetThreadPriority(ME, begin), last_error()),
            (0, ERROR_THREAD_MODE_ALREADY_BACKGROUND)
        );
        assert_eq!((ndw_GetThreadPriority(ME), ndw_SetThreadPriority(ME, end)), (0, 1));
    });
}

#[test]
fn the_class_of_the_process_is_one_of_six() {
    assert_eq!(ndw_GetPriorityClass(PROCESS), 0x20);
    for class in [0, 1, 0x21, 0x200, 0x10_0000] {
        assert_eq!(
            (ndw_SetPriorityClass(PROCESS, class), last_error()),
            (0, ERROR_INVALID_PARAMETER),
            "{class:#x}"
        );
    }
    // One that may change nothing, as the other tests run in this process.
    assert_eq!((ndw_SetPriorityClass(PROCESS, 0x20), ndw_GetPriorityClass(PROCESS)), (1, 0x20));
}

#[test]
fn an_ideal_processor_is_remembered() {
    on_a_thread(|| {
        let first = *topology().online.first().unwrap();
        let number = ProcessorNumber::from(first);
        let ideal = ndw_SetThreadIdealProcessor(ME, MAXIMUM_PROCESSORS);
        assert!(ideal < 64);
        assert_eq!(ndw_SetThreadIdealProcessor(ME, number.number.into()), ideal);
        assert_eq!(ndw_SetThreadIdealProcessor(ME, MAXIMUM_PROCESSORS), number.number.into());
        assert_eq!((ndw_SetThreadIdealProcessor(ME, 65), last_error()), (u32::MAX, ERROR_INVALID_PARAMETER));
        let (mut previous, mut found) = (ProcessorNumber::default(), ProcessorNumber::default());
        assert_eq!(ndw_SetThreadIdealProcessorEx(ME, In::from(&number), Out::from(&mut previous)), 1);
        assert_eq!(ndw_GetThreadIdealProcessorEx(ME, Out::from(&mut found)), 1);
        assert_eq!((previous, found), (number, number));
        for bad in [ProcessorNumber { group: 900, ..number }, ProcessorNumber { reserved: 1, ..number }] {
            assert_eq!(ndw_SetThreadIdealProcessorEx(ME, In::from(&bad), Out::NULL), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        assert_eq!(
            (ndw_SetThreadIdealProcessorEx(ME, In::NULL, Out::NULL), last_error()),
            (0, ERROR_NOACCESS)
        );
        assert_eq!((ndw_GetThreadIdealProcessorEx(ME, Out::NULL), last_error()), (0, ERROR_NOACCESS));
    });
}

#[test]
fn counts_of_processors_and_groups() {
    let groups = ndw_GetActiveProcessorGroupCount();
    let sum = (0..groups).map(|group| ndw_GetActiveProcessorCount(group)).sum::<u32>();
    assert_eq!((sum, sum as usize), (ndw_GetActiveProcessorCount(ALL_GROUPS), topology().online.len()));
    assert!(ndw_GetMaximumProcessorCount(ALL_GROUPS) >= sum && ndw_GetMaximumProcessorGroupCount() >= groups);
    assert_eq!((ndw_GetActiveProcessorCount(groups), last_error()), (0, ERROR_INVALID_PARAMETER));
    assert_eq!((ndw_GetMaximumProcessorCount(0xFFFE), last_error()), (0, ERROR_INVALID_PARAMETER));
}

#[test]
fn nodes_and_their_processors() {
    let (mut highest, mut found, mut mask) = (u32::MAX, GroupAffinity::default(), 0);
    let (mut node, mut node_ex, mut bytes) = (0u8, 0u16, 0u64);
    assert_eq!(ndw_GetNumaHighestNodeNumber(Out::from(&mut highest)), 1);
    let mut all = 0;
    for number in 0..=highest as u16 {
        if ndw_GetNumaNodeProcessorMaskEx(number, Out::from(&mut found)) == 1 {
            all += found.mask.count_ones() as usize;
            assert_eq!(ndw_GetNumaNodeProcessorMask(number as u8, Out::from(&mut mask)), 1);
            let (mut masks, mut count) = ([GroupAffinity::default(); 8], 0);
            let mut call = |room| {
                // SAFETY: there is room for eight masks, and no call is told of more.
                let done = unsafe {
                    ndw_GetNumaNodeProcessorMask2(number, masks.as_mut_ptr(), room, Out::from(&mut count))
                };
                (done, last_error(), count, masks[0])
            };
            assert_eq!(call(0), (0, ERROR_INSUFFICIENT_BUFFER, 1, GroupAffinity::default()));
            set_last_error(0);
            assert_eq!(call(8), (1, 0, 1, found));
        }
    }
    assert!(all >= 1 && all <= topology().online.len());
    let here = ProcessorNumber::from(current());
    assert_eq!(ndw_GetNumaProcessorNodeEx(In::from(&here), Out::from(&mut node_ex)), 1);
    assert_eq!(ndw_GetNumaProcessorNode(here.number, Out::from(&mut node)), 1);
    assert!(u32::from(node_ex) <= highest && u32::from(node) <= highest);
    let away = ProcessorNumber { group: 900, ..here };
    assert_eq!((ndw_GetNumaProcessorNodeEx(In::from(&away), Out::from(&mut node_ex)), node_ex), (0, 0xFFFF));
    assert_eq!((ndw_GetNumaProcessorNode(200, Out::from(&mut node)), node), (0, 0xFF));
    assert_eq!(
        (ndw_GetNumaNodeProcessorMaskEx(highest as u16 + 1, Out::from(&mut found)), last_error()),
        (0, ERROR_INVALID_PARAMETER)
    );
    assert_eq!(
        (ndw_GetNumaAvailableMemoryNodeEx(highest as u16 + 1, Out::from(&mut bytes)), last_error()),
        (0, ERROR_INVALID_PARAMETER)
    );
    // SAFETY: nothing is written.
    let masks = |number, room| unsafe {
        ndw_GetNumaNodeProcessorMask2(number, std::ptr::null_mut(), room, Out::from(&mut node_ex))
    };
    let mut masks = masks;
    for done in [
        masks(highest as u16 + 1, 0),
        masks(0, 1),
        ndw_GetNumaHighestNodeNumber(Out::NULL),
        ndw_GetNumaNodeProcessorMaskEx(0, Out::NULL),
        ndw_GetNumaNodeProcessorMask(0, Out::NULL),
        ndw_GetNumaProcessorNodeEx(In::NULL, Out::from(&mut node_ex)),
        ndw_GetNumaProcessorNodeEx(In::from(&here), Out::NULL),
        ndw_GetNumaProcessorNode(0, Out::NULL),
    ] {
        assert_eq!((done, last_error()), (0, ERROR_INVALID_PARAMETER));
    }
}

#[test]
fn nothing_is_boosted() {
    let (mut thread, mut process) = (0, 0);
    assert_eq!(ndw_SetThreadPriorityBoost(ME, 0), 1);
    assert_eq!((ndw_GetThreadPriorityBoost(ME, Out::from(&mut thread)), thread), (1, 1));
    assert_eq!(ndw_SetProcessPriorityBoost(PROCESS, 1), 1);
    assert_eq!((ndw_GetProcessPriorityBoost(PROCESS, Out::from(&mut process)), process), (1, 1));
    let wrong =
        [ndw_SetThreadPriorityBoost(RawHandle::NULL, 0), ndw_SetProcessPriorityBoost(RawHandle::NULL, 0)];
    assert_eq!((wrong, last_error()), ([0, 0], ERROR_INVALID_HANDLE));
}
