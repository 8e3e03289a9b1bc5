//! `GetProcessTimes`, `GetThreadTimes`, `QueryInterruptTime` and kin.

use super::thread::find;
use crate::arguments::Out;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::object::RawHandle;
use crate::process;
use crate::time::{FileTime, interrupt_time, thread_stat, ticks_per_second};

/// Creation, end, kernel and user time of a running thread, or of the process; the creation is that given, if any is.
fn running(thread: Option<u32>, created: Option<FileTime>) -> Option<[FileTime; 4]> {
    let stat = thread_stat(thread)?;
    let per_second = ticks_per_second();
    let units = |ticks: u64| FileTime::from(ticks * 10_000_000 / per_second);
    let created = created.unwrap_or_else(|| stat.creation());
    Some([created, FileTime::default(), units(stat.kernel), units(stat.user)])
}

/// Tells the times, if there are any.
fn tell(times: Option<[FileTime; 4]>, places: [Out<'_, FileTime>; 4]) -> Result<(), u32> {
    if places.iter().any(|place| place.is_null()) {
        return Err(ERROR_NOACCESS);
    }
    for (place, value) in places.into_iter().zip(times.ok_or(ERROR_ACCESS_DENIED)?) {
        place.put(value);
    }
    Ok(())
}

/// `GetProcessTimes`: of this process, in steps of the kernel's clock.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessTimes(
    process: RawHandle,
    creation: Out<'_, FileTime>,
    exit: Out<'_, FileTime>,
    kernel: Out<'_, FileTime>,
    user: Out<'_, FileTime>,
) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        tell(running(None, None), [creation, exit, kernel, user])
    })
}

/// `GetThreadTimes`: as `GetProcessTimes`; of a thread that has ended, as they were at its end.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadTimes(
    thread: RawHandle,
    creation: Out<'_, FileTime>,
    exit: Out<'_, FileTime>,
    kernel: Out<'_, FileTime>,
    user: Out<'_, FileTime>,
) -> i32 {
    guard_bool(|| {
        let thread = find(thread)?;
        let number = thread.number();
        if number == 0 {
            return Err(ERROR_INVALID_HANDLE);
        }
        let running = running(Some(number), thread.created());
        // Looked at last: from the end of the thread on, its number may be another's.
        tell(thread.final_times().or(running), [creation, exit, kernel, user])
    })
}

fn give(time: Out<'_, u64>, with_sleep: bool) -> i32 {
    guard_bool(|| {
        time.required(ERROR_INVALID_PARAMETER)?.put(interrupt_time(with_sleep));
        Ok(())
    })
}

/// `QueryUnbiasedInterruptTime`: 100 ns since the start of the system, time asleep not counted.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_QueryUnbiasedInterruptTime(time: Out<'_, u64>) -> i32 {
    give(time, false)
}

/// `QueryInterruptTime`, `QueryInterruptTimePrecise`: time asleep counted.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_QueryInterruptTime(time: Out<'_, u64>) {
    give(time, true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::event::ndw_CreateEventW;
    use crate::api::handle::close_handle;
    use crate::api::wait::ndw_WaitForSingleObject;
    use crate::arguments::Text;
    use crate::object::thread::create;
    use std::ffi::c_void;
    use std::ptr::null;
    use std::time::{Duration, Instant};

    fn units(time: FileTime) -> u64 {
        u64::from(time.high) << 32 | u64::from(time.low)
    }

    #[test]
    fn a_busy_thread_and_its_process_have_user_time() {
        let begin = Instant::now();
        let mut threads = [FileTime::default(); 4];
        let mut process = threads;
        let read = |handle: RawHandle, of: &mut [FileTime; 4], of_process: bool| {
            let [creation, exit, kernel, user] = of.each_mut().map(Out::from);
            if of_process {
                ndw_GetProcessTimes(handle, creation, exit, kernel, user)
            } else {
                ndw_GetThreadTimes(handle, creation, exit, kernel, user)
            }
        };
        let me = RawHandle(usize::MAX - 1);
        // Until it has worked for a tick of the clock.
        while units(threads[2]) + units(threads[3]) == 0 {
            std::hint::black_box((0..100_000u64).sum::<u64>());
            assert!(begin.elapsed() < Duration::from_secs(60));
            assert_eq!(read(me, &mut threads, false), 1);
        }
        assert_eq!(read(RawHandle::INVALID, &mut process, true), 1);
        assert!(units(process[2]) + units(process[3]) >= units(threads[2]) + units(threads[3]));
        assert!(units(process[0]) <= units(threads[0]) && units(threads[1]) == 0);
        let now = units(crate::time::system_time());
        assert!(units(process[0]) < now + 20_000_000, "created in the past, by the accuracy of a second");
        let event = ndw_CreateEventW(null(), 0, 0, Text::NULL);
        for (handle, of_process) in
            [(me, true), (RawHandle::NULL, true), (event, false), (RawHandle::NULL, false)]
        {
            assert_eq!((read(handle, &mut process, of_process), last_error()), (0, ERROR_INVALID_HANDLE));
        }
        assert_eq!(ndw_GetThreadTimes(me, Out::NULL, Out::NULL, Out::NULL, Out::NULL), 0);
        assert_eq!((last_error(), close_handle(event)), (ERROR_NOACCESS, 1));
    }

    #[test]
    fn the_times_of_a_thread_stay_when_it_has_ended() {
        extern "C-unwind" fn work(_: *mut c_void) -> u32 {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(30) {
                std::hint::black_box((0..1000u64).sum::<u64>());
            }
            7
        }
        let mut before = [FileTime::default(); 4];
        let mut after = before;
        let read = |handle: RawHandle, of: &mut [FileTime; 4]| {
            let [creation, exit, kernel, user] = of.each_mut().map(Out::from);
            ndw_GetThreadTimes(handle, creation, exit, kernel, user)
        };
        let earliest = units(crate::time::system_time());
        let (thread, _) = create(0, work, std::ptr::null_mut(), true, false).unwrap();
        assert_eq!(read(thread, &mut before), 1);
        assert_eq!(units(before[1]), 0, "it has not ended");
        find(thread).unwrap().resume();
        assert_eq!(ndw_WaitForSingleObject(thread, u32::MAX), 0);
        assert_eq!(read(thread, &mut after), 1);
        assert_eq!(after[0], before[0]);
        assert!(earliest <= units(after[0]) && units(after[0]) <= units(after[1]));
        assert!(units(after[1]) <= units(crate::time::system_time()));
        assert!(units(after[2]) + units(after[3]) > 0);
        let mut again = after;
        assert_eq!((read(thread, &mut again), again), (1, after));
        assert_eq!(close_handle(thread), 1);
    }

    #[test]
    fn interrupt_time_counts_100_ns() {
        let (mut first, mut with_sleep) = (0, 0);
        assert_eq!(ndw_QueryUnbiasedInterruptTime((&mut first).into()), 1);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(5) {}
        let mut second = 0;
        assert_eq!(ndw_QueryUnbiasedInterruptTime((&mut second).into()), 1);
        assert!(second - first >= 50_000, "{}", second - first);
        ndw_QueryInterruptTime((&mut with_sleep).into());
        assert!(with_sleep >= second);
        assert_eq!((ndw_QueryUnbiasedInterruptTime(Out::NULL), last_error()), (0, ERROR_INVALID_PARAMETER));
    }
}
