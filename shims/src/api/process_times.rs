//! `GetProcessTimes`, `GetThreadTimes`, `QueryInterruptTime` and kin.

use super::thread::thread_number;
use crate::arguments::Out;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::object::RawHandle;
use crate::process;
use crate::time::{FileTime, boot_time, file_time, interrupt_time, thread_stat, ticks_per_second};

/// Creation, end, kernel and user time.
fn times(thread: Option<u32>, places: [Out<'_, FileTime>; 4]) -> Result<(), u32> {
    if places.iter().any(|place| place.is_null()) {
        return Err(ERROR_NOACCESS);
    }
    let stat = thread_stat(thread).ok_or(ERROR_ACCESS_DENIED)?;
    let per_second = ticks_per_second();
    let since_start = stat.started * 1_000_000_000 / per_second;
    let creation = boot_time().unwrap_or(0) * 1_000_000_000 + since_start;
    let units = |ticks: u64| FileTime::from(ticks * 10_000_000 / per_second);
    let values = [
        file_time(creation / 1_000_000_000, creation % 1_000_000_000),
        FileTime::default(),
        units(stat.kernel),
        units(stat.user),
    ];
    for (place, value) in places.into_iter().zip(values) {
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
        times(None, [creation, exit, kernel, user])
    })
}

/// `GetThreadTimes`: as `GetProcessTimes`. Those of a thread that has ended are lost (`ERROR_ACCESS_DENIED`).
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadTimes(
    thread: RawHandle,
    creation: Out<'_, FileTime>,
    exit: Out<'_, FileTime>,
    kernel: Out<'_, FileTime>,
    user: Out<'_, FileTime>,
) -> i32 {
    guard_bool(|| times(Some(thread_number(thread)?), [creation, exit, kernel, user]))
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
    use crate::arguments::Text;
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
