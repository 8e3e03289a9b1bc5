//! `GetSystemTime`, `GetLocalTime`, `FileTimeToSystemTime`, `GetTimeZoneInformation` and related functions.

use crate::arguments::{In, Out};
use crate::boundary::{guard, guard_bool};
use crate::calendar::{SystemTime, TimeZone, local_offset, time_zone};
use crate::error::*;
use crate::time::{FileTime, system_time};

const _: () = assert!(size_of::<SystemTime>() == 16 && size_of::<TimeZone>() == 44 + 2 * 128);

fn now() -> u64 {
    ticks(system_time())
}

fn ticks(time: FileTime) -> u64 {
    u64::from(time.high) << 32 | u64::from(time.low)
}

/// Reads an argument; NULL is an error.
fn input<T: Copy>(place: In<'_, T>) -> Result<T, u32> {
    place.read().ok_or(ERROR_INVALID_PARAMETER)
}

/// Writes a result; NULL is an error.
fn output<T>(place: Out<'_, T>, value: T) -> Result<(), u32> {
    place.required(ERROR_INVALID_PARAMETER)?.put(value);
    Ok(())
}

fn give(ticks: u64, time: Out<'_, SystemTime>) {
    guard((), || time.put(SystemTime::from_ticks(ticks).unwrap_or_default()));
}

/// `GetSystemTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetSystemTime(time: Out<'_, SystemTime>) {
    give(now(), time);
}

/// `GetLocalTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetLocalTime(time: Out<'_, SystemTime>) {
    let now = now();
    give(now.wrapping_add_signed(local_offset(now)), time);
}

/// `SystemTimeToFileTime`: `ERROR_INVALID_PARAMETER` for an invalid time; the day of the week is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SystemTimeToFileTime(time: In<'_, SystemTime>, file_time: Out<'_, FileTime>) -> i32 {
    guard_bool(|| {
        let ticks = input(time)?.ticks().ok_or(ERROR_INVALID_PARAMETER)?;
        output(file_time, ticks.into())
    })
}

/// `FileTimeToSystemTime`: `ERROR_INVALID_PARAMETER` for a negative one.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FileTimeToSystemTime(file_time: In<'_, FileTime>, time: Out<'_, SystemTime>) -> i32 {
    guard_bool(|| {
        let time_of_file = input(file_time)?;
        let found = SystemTime::from_ticks(ticks(time_of_file)).ok_or(ERROR_INVALID_PARAMETER)?;
        output(time, found)
    })
}

/// Adds or subtracts the present offset of local time from UTC, whatever the date of the time.
fn shift(from: In<'_, FileTime>, to: Out<'_, FileTime>, sign: i64) -> i32 {
    guard_bool(|| {
        let from = ticks(input(from)?);
        let moved = from.checked_add_signed(sign * local_offset(now()));
        output(to, moved.ok_or(ERROR_INVALID_PARAMETER)?.into())
    })
}

/// `FileTimeToLocalFileTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FileTimeToLocalFileTime(from: In<'_, FileTime>, to: Out<'_, FileTime>) -> i32 {
    shift(from, to, 1)
}

/// `LocalFileTimeToFileTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_LocalFileTimeToFileTime(from: In<'_, FileTime>, to: Out<'_, FileTime>) -> i32 {
    shift(from, to, -1)
}

/// `CompareFileTime`: -1, 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CompareFileTime(a: In<'_, FileTime>, b: In<'_, FileTime>) -> i32 {
    let a = input(a);
    let both = (a, input(b));
    guard(0, || match both {
        (Ok(a), Ok(b)) => ticks(a).cmp(&ticks(b)) as i32,
        _ => 0,
    })
}

/// `GetTimeZoneInformation`: returns whether it is daylight saving time; `TIME_ZONE_ID_INVALID` for NULL. Rules are given only
/// for zones that change their clocks twice a year.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetTimeZoneInformation(zone: Out<'_, TimeZone>) -> u32 {
    guard(u32::MAX, || {
        let (id, found) = time_zone(now());
        match output(zone, found) {
            Ok(()) => id as u32,
            Err(code) => {
                set_last_error(code);
                u32::MAX
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::ZoneId;

    fn time(year: u16, month: u16, day: u16, hour: u16) -> SystemTime {
        SystemTime { year, month, day, hour, ..SystemTime::default() }
    }

    #[test]
    fn times_go_there_and_back() {
        let mut file_time = FileTime::default();
        for (text, ticks_expected, weekday) in [
            (time(1601, 1, 1, 0), 0, 1),
            (time(1970, 1, 1, 0), 116_444_736_000_000_000, 4),
            (time(2000, 2, 29, 23), 125_963_388_000_000_000, 2),
            (time(2024, 12, 31, 12), 133_801_200_000_000_000, 2),
            (
                SystemTime { minute: 59, second: 59, milliseconds: 999, ..time(30827, 12, 31, 23) },
                9_223_149_887_999_990_000,
                5,
            ),
        ] {
            let mut back = SystemTime::default();
            assert_eq!(
                ndw_SystemTimeToFileTime(
                    (&SystemTime { day_of_week: 9, ..text }).into(),
                    (&mut file_time).into()
                ),
                1
            );
            assert_eq!(ticks(file_time), ticks_expected, "{text:?}");
            assert_eq!(ndw_FileTimeToSystemTime((&file_time).into(), (&mut back).into()), 1);
            assert_eq!(back, SystemTime { day_of_week: weekday, ..text });
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let good = time(2001, 2, 3, 4);
        let mut file_time = FileTime { low: 7, high: 7 };
        for bad in [
            SystemTime { year: 1600, ..good },
            SystemTime { year: 30828, ..good },
            SystemTime { month: 0, ..good },
            SystemTime { month: 13, ..good },
            SystemTime { day: 0, ..good },
            SystemTime { day: 29, ..good },
            SystemTime { year: 1900, day: 29, ..good },
            SystemTime { hour: 24, ..good },
            SystemTime { minute: 60, ..good },
            SystemTime { second: 60, ..good },
            SystemTime { milliseconds: 1000, ..good },
        ] {
            set_last_error(0);
            assert_eq!(ndw_SystemTimeToFileTime((&bad).into(), (&mut file_time).into()), 0, "{bad:?}");
            assert_eq!((last_error(), file_time.low), (ERROR_INVALID_PARAMETER, 7));
        }
        let mut back = good;
        assert_eq!(
            ndw_FileTimeToSystemTime((&FileTime { low: 0, high: 0x8000_0000 }).into(), (&mut back).into()),
            0
        );
        assert_eq!((last_error(), back), (ERROR_INVALID_PARAMETER, good));
        assert_eq!(ndw_SystemTimeToFileTime(In::NULL, (&mut file_time).into()), 0);
        assert_eq!(ndw_SystemTimeToFileTime((&good).into(), Out::NULL), 0);
        assert_eq!(ndw_FileTimeToSystemTime(In::NULL, (&mut back).into()), 0);
        assert_eq!(ndw_FileTimeToSystemTime((&file_time).into(), Out::NULL), 0);
        assert_eq!(ndw_FileTimeToLocalFileTime(In::NULL, Out::NULL), 0);
        assert_eq!(ndw_GetTimeZoneInformation(Out::NULL), u32::MAX);
        ndw_GetSystemTime(Out::NULL);
        ndw_GetLocalTime(Out::NULL);
    }

    #[test]
    fn system_and_local_time_differ_by_the_bias() {
        let (mut system, mut here) = (SystemTime::default(), SystemTime::default());
        let (mut utc, mut local, mut back) = (FileTime::default(), FileTime::default(), FileTime::default());
        ndw_GetSystemTime((&mut system).into());
        ndw_GetLocalTime((&mut here).into());
        assert_eq!(ndw_SystemTimeToFileTime((&system).into(), (&mut utc).into()), 1);
        assert_eq!(ndw_SystemTimeToFileTime((&here).into(), (&mut local).into()), 1);
        let difference = ticks(local) as i64 - ticks(utc) as i64 - local_offset(now());
        assert!((0..600_000_000).contains(&difference), "{difference}");
        assert_eq!(ndw_FileTimeToLocalFileTime((&utc).into(), (&mut local).into()), 1);
        assert_eq!(ndw_LocalFileTimeToFileTime((&local).into(), (&mut back).into()), 1);
        assert_eq!((back, ndw_CompareFileTime((&utc).into(), (&back).into())), (utc, 0));
        assert_eq!(
            ndw_CompareFileTime(
                (&FileTime { low: 0, high: 1 }).into(),
                (&FileTime { low: 9, high: 0 }).into()
            ),
            1
        );
        assert_eq!(
            ndw_CompareFileTime(
                (&FileTime { low: 9, high: 0 }).into(),
                (&FileTime { low: 0, high: 1 }).into()
            ),
            -1
        );
    }

    #[test]
    fn a_zone_with_summer_time_has_the_rules_of_its_changes() {
        // The zone is the process's: another one decides here, so as to leave the other tests alone.
        for (zone, name) in [
            ("CET-1CEST,M3.5.0,M10.5.0/3", "central_europe"),
            ("EST5EDT,M3.2.0,M11.1.0", "east_coast"),
            ("<+0530>-5:30", "india"),
        ] {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "--ignored", &format!("api::calendar::tests::{name}")]).env("TZ", zone);
            let output = child.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
    }

    fn in_july() -> (ZoneId, TimeZone) {
        time_zone(time(2024, 7, 1, 0).ticks().unwrap())
    }

    fn is_named(name: &[u32; 32], expected: &str) -> bool {
        crate::text::from_wide(name).trim_end_matches('\0') == expected
    }

    #[test]
    #[ignore = "for another time zone; the test above runs it"]
    fn central_europe() {
        let (id, zone) = in_july();
        assert_eq!((id, zone.bias, zone.standard_bias, zone.daylight_bias), (ZoneId::Daylight, -60, 0, -60));
        assert_eq!(zone.daylight_date, SystemTime { month: 3, day: 5, hour: 2, ..SystemTime::default() });
        assert_eq!(zone.standard_date, SystemTime { month: 10, day: 5, hour: 3, ..SystemTime::default() });
        assert!(is_named(&zone.standard_name, "CET") && is_named(&zone.daylight_name, "CEST"));
        assert_eq!(time_zone(time(2024, 1, 1, 0).ticks().unwrap()), (ZoneId::Standard, zone));
    }

    #[test]
    #[ignore = "for another time zone; the test above runs it"]
    fn east_coast() {
        let (id, zone) = in_july();
        assert_eq!((id, zone.bias, zone.daylight_bias), (ZoneId::Daylight, 300, -60));
        assert_eq!(zone.daylight_date, SystemTime { month: 3, day: 2, hour: 2, ..SystemTime::default() });
        assert_eq!(zone.standard_date, SystemTime { month: 11, day: 1, hour: 2, ..SystemTime::default() });
    }

    #[test]
    #[ignore = "for another time zone; the test above runs it"]
    fn india() {
        let (id, zone) = in_july();
        assert_eq!((id, zone.bias, zone.daylight_bias), (ZoneId::Unknown, -330, 0));
        assert_eq!((zone.standard_date, zone.daylight_date), (SystemTime::default(), SystemTime::default()));
    }
}
