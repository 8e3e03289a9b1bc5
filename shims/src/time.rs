//! Clocks and processor times.

use crate::arguments::Out;
use std::ffi::c_long;
use std::fs;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// The result of `QueryPerformanceFrequency`, the same as on Windows: programs print it as an `int`.
pub const PERFORMANCE_FREQUENCY: i64 = 10_000_000;

/// 1601-01-01 to 1970-01-01 in units of 100 ns.
const UNIX_EPOCH_IN_FILETIME: u64 = 116_444_736_000_000_000;

/// `FILETIME`: units of 100 ns in two halves, so that it needs no 8-byte alignment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTime {
    /// `dwLowDateTime`.
    pub low: u32,
    /// `dwHighDateTime`.
    pub high: u32,
}

impl From<u64> for FileTime {
    fn from(units: u64) -> FileTime {
        FileTime { low: units as u32, high: (units >> 32) as u32 }
    }
}

fn clock(id: libc::clockid_t) -> (u64, u64) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable; the clocks asked for exist on every Linux.
    unsafe { libc::clock_gettime(id, &mut now) };
    (now.tv_sec as u64, now.tv_nsec as u64)
}

/// The performance counter: units of 100 ns of the monotonic clock.
pub fn performance_counter() -> i64 {
    let (seconds, nanoseconds) = clock(libc::CLOCK_MONOTONIC);
    (seconds * PERFORMANCE_FREQUENCY as u64 + nanoseconds / 100) as i64
}

/// Milliseconds since the system started, time asleep included.
pub fn tick_count() -> u64 {
    let (seconds, nanoseconds) = clock(libc::CLOCK_BOOTTIME);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Nanoseconds since the process was started; since the first call, if the system does not tell when that was.
pub(crate) fn since_start() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    let nanoseconds = |id| {
        let (seconds, nanoseconds) = clock(id);
        seconds * 1_000_000_000 + nanoseconds
    };
    let now = nanoseconds(libc::CLOCK_MONOTONIC);
    let start = *START.get_or_init(|| {
        let age = thread_stat(None).map_or(0, |process| {
            let started = process.started * 1_000_000_000 / ticks_per_second();
            nanoseconds(libc::CLOCK_BOOTTIME).saturating_sub(started)
        });
        now.saturating_sub(age)
    });
    now.saturating_sub(start)
}

/// Milliseconds of the coarse monotonic clock, which is cheap and some milliseconds late.
pub fn coarse_milliseconds() -> u64 {
    let (seconds, nanoseconds) = clock(libc::CLOCK_MONOTONIC_COARSE);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Converts a Unix time to a `FILETIME`.
pub fn file_time(seconds: u64, nanoseconds: u64) -> FileTime {
    (seconds * 10_000_000 + nanoseconds / 100 + UNIX_EPOCH_IN_FILETIME).into()
}

/// Converts a time of Windows, units of 100 ns, to a Unix time.
pub fn unix_time(units: i64) -> libc::timespec {
    let since = units.saturating_sub(UNIX_EPOCH_IN_FILETIME as i64);
    libc::timespec { tv_sec: since.div_euclid(10_000_000), tv_nsec: since.rem_euclid(10_000_000) * 100 }
}

/// The time of day.
pub fn system_time() -> FileTime {
    let (seconds, nanoseconds) = clock(libc::CLOCK_REALTIME);
    file_time(seconds, nanoseconds)
}

/// The kernel's statistics of a thread or of the process.
pub(crate) struct ThreadStat {
    /// Its start: ticks since the system was booted.
    pub started: u64,
    /// Ticks in user mode and in the kernel.
    pub user: u64,
    pub kernel: u64,
}

/// The statistics of a thread of this process, or of the process; `None` if the thread has ended.
pub(crate) fn thread_stat(thread: Option<u32>) -> Option<ThreadStat> {
    let path = thread.map_or("/proc/self/stat".to_owned(), |thread| format!("/proc/self/task/{thread}/stat"));
    let text = fs::read_to_string(path).ok()?;
    // The second field is a name, which may contain any character.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse().ok();
    Some(ThreadStat { user: field(14)?, kernel: field(15)?, started: field(22)? })
}

impl ThreadStat {
    /// When it started, to the accuracy of a second.
    pub fn creation(&self) -> FileTime {
        let since_start = self.started * 1_000_000_000 / ticks_per_second();
        let creation = boot_time().unwrap_or(0) * 1_000_000_000 + since_start;
        file_time(creation / 1_000_000_000, creation % 1_000_000_000)
    }
}

/// The time that the calling thread has spent in the kernel and in user mode.
pub(crate) fn own_thread_times() -> [FileTime; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: there is room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: zeroes are valid numbers, in case that nothing was written.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_stime, usage.ru_utime]
        .map(|time| FileTime::from(time.tv_sec as u64 * 10_000_000 + time.tv_usec as u64 * 10))
}

/// The Unix time at which the system was booted. Read once: the kernel adds up all interrupts of all processors for it.
pub(crate) fn boot_time() -> Option<u64> {
    static TIME: OnceLock<Option<u64>> = OnceLock::new();
    *TIME.get_or_init(|| {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
    })
}

/// Clock ticks per second.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: sysconf only reads its argument.
    let ticks: c_long = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    ticks.max(1) as u64
}

/// Units of 100 ns since the system was booted, without or with the time in suspend.
pub fn interrupt_time(with_sleep: bool) -> u64 {
    let id = if with_sleep { libc::CLOCK_BOOTTIME } else { libc::CLOCK_MONOTONIC };
    let (seconds, nanoseconds) = clock(id);
    seconds * 10_000_000 + nanoseconds / 100
}

/// Idle, kernel (idle included, as on Windows) and user time of all processors, from the text of `/proc/stat`.
fn system_times(stat: &str, ticks_per_second: u64) -> Option<[FileTime; 3]> {
    let ticks: Vec<u64> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let [user, nice, system, idle, rest @ ..] = &ticks[..] else { return None };
    // iowait, irq, softirq, steal; the guest times that follow are included in `user` and `nice`.
    let io_wait = rest.first().unwrap_or(&0);
    let interrupts: u64 = rest.iter().skip(1).take(3).sum();
    let idle = idle + io_wait;
    Some(
        [idle, system + interrupts + idle, user + nice]
            .map(|ticks| FileTime::from(ticks * 10_000_000 / ticks_per_second)),
    )
}

/// `QueryPerformanceCounter`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_QueryPerformanceCounter(count: Out<'_, i64>) -> i32 {
    put(count, performance_counter())
}

/// `QueryPerformanceFrequency`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_QueryPerformanceFrequency(frequency: Out<'_, i64>) -> i32 {
    put(frequency, PERFORMANCE_FREQUENCY)
}

/// `GetTickCount`: wraps after 49.7 days.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetTickCount() -> u32 {
    tick_count() as u32
}

/// `GetTickCount64`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetTickCount64() -> u64 {
    tick_count()
}

/// `GetSystemTimeAsFileTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetSystemTimeAsFileTime(time: Out<'_, FileTime>) {
    put(time, system_time());
}

/// `GetSystemTimePreciseAsFileTime`: the same clock, which is precise already.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetSystemTimePreciseAsFileTime(time: Out<'_, FileTime>) {
    put(time, system_time());
}

/// `GetSystemTimes`: each pointer may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetSystemTimes(
    idle: Out<'_, FileTime>,
    kernel: Out<'_, FileTime>,
    user: Out<'_, FileTime>,
) -> i32 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let Some(times) = system_times(&stat, ticks_per_second()) else {
        crate::error::set_last_error(crate::error::ERROR_NOT_SUPPORTED);
        return 0;
    };
    for (target, time) in [idle, kernel, user].into_iter().zip(times) {
        target.put(time);
    }
    1
}

/// Writes a result; FALSE and `ERROR_NOACCESS` for NULL.
fn put<T>(target: Out<'_, T>, value: T) -> i32 {
    if target.is_null() {
        crate::error::set_last_error(crate::error::ERROR_NOACCESS);
        return 0;
    }
    target.put(value);
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    fn units(time: FileTime) -> u64 {
        u64::from(time.high) << 32 | u64::from(time.low)
    }

    #[test]
    fn counter_runs_at_its_frequency() {
        let (mut before, mut after, mut frequency) = (0, 0, 0);
        assert_eq!(ndw_QueryPerformanceFrequency((&mut frequency).into()), 1);
        assert_eq!(ndw_QueryPerformanceCounter((&mut before).into()), 1);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(ndw_QueryPerformanceCounter((&mut after).into()), 1);
        assert_eq!(ndw_QueryPerformanceCounter(Out::NULL), 0);
        assert_eq!(frequency, 10_000_000);
        assert!((after - before) * 1000 / frequency >= 20);
    }

    #[test]
    fn ticks_are_milliseconds() {
        let before = ndw_GetTickCount64();
        std::thread::sleep(Duration::from_millis(20));
        let passed = ndw_GetTickCount64() - before;
        assert!((19..10_000).contains(&passed), "{passed}");
    }

    #[test]
    fn file_time_counts_from_1601() {
        let mut time = FileTime::default();
        // With 369 years, 89 leap days among them.
        let since_1601 = || {
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            unix + (369 * 365 + 89) * 86_400
        };
        let before = since_1601();
        ndw_GetSystemTimeAsFileTime((&mut time).into());
        // The system's coarse clock is a tick behind.
        assert!((before - 1..=since_1601()).contains(&(units(time) / 10_000_000)));
    }

    #[test]
    fn kernel_time_contains_idle_time() {
        let stat = "cpu  10 1 20 300 40 1 2 3 0 0\ncpu0 1 1 1 1\n";
        let times = system_times(stat, 100).unwrap().map(units);
        assert_eq!(times, [34_000_000, 36_600_000, 1_100_000]);
        assert_eq!(system_times("intr 1", 100), None);
    }

    #[test]
    fn system_times_of_this_machine() {
        let (mut idle, mut kernel) = (FileTime::default(), FileTime::default());
        assert_eq!(ndw_GetSystemTimes((&mut idle).into(), (&mut kernel).into(), Out::NULL), 1);
        assert!(units(kernel) >= units(idle) && units(kernel) > 0);
    }
}
