//! Dates and times of day: `SYSTEMTIME`, and `FILETIME` as a count of 100 ns since 1601.

use crate::text::{Wchar, to_wide};
use std::ffi::CStr;

/// 1601-01-01 to 1970-01-01, in seconds.
const EPOCH: i64 = 11_644_473_600;
const TICKS: u64 = 10_000_000;
const DAY: i64 = 86_400;

/// `SYSTEMTIME`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct SystemTime {
    pub year: u16,
    pub month: u16,
    /// 0 for Sunday.
    pub day_of_week: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub milliseconds: u16,
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // With years that begin in March the leap day is the last day.
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn days_in_month(year: u16, month: u16) -> u16 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

impl SystemTime {
    /// The time of day of a count of 100 ns; `None` beyond what Windows knows.
    pub fn from_ticks(ticks: u64) -> Option<SystemTime> {
        let seconds = i64::try_from(ticks).ok()? / TICKS as i64 - EPOCH;
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        Some(SystemTime {
            year: year.try_into().ok()?,
            month: month as u16,
            day_of_week: (days + 4).rem_euclid(7) as u16,
            day: day as u16,
            hour: (second / 3600) as u16,
            minute: (second / 60 % 60) as u16,
            second: (second % 60) as u16,
            milliseconds: (ticks % TICKS / 10_000) as u16,
        })
    }

    /// The count of 100 ns; `None` for an invalid time. The day of the week is ignored.
    pub fn ticks(&self) -> Option<u64> {
        let valid = (1601..=30827).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && self.milliseconds < 1000;
        let days = days_from_civil(self.year.into(), self.month.into(), self.day.into());
        let of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        let seconds = u64::try_from(days * DAY + of_day + EPOCH).ok().filter(|_| valid)?;
        Some(seconds * TICKS + u64::from(self.milliseconds) * 10_000)
    }
}

/// The offset of local time from UTC at a moment, in seconds; whether it is daylight saving time; and the zone's abbreviation.
fn local(seconds: i64) -> (i64, bool, String) {
    let mut found = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: reads the one and writes the other.
    if unsafe { libc::localtime_r(&seconds, found.as_mut_ptr()) }.is_null() {
        return (0, false, String::new());
    }
    // SAFETY: filled by the call.
    let found = unsafe { found.assume_init() };
    // SAFETY: if there is one, a string of the C library's, which stays.
    let name = if found.tm_zone.is_null() { c"" } else { unsafe { CStr::from_ptr(found.tm_zone) } };
    (found.tm_gmtoff, found.tm_isdst > 0, name.to_string_lossy().into_owned())
}

fn to_unix(ticks: u64) -> i64 {
    (ticks / TICKS) as i64 - EPOCH
}

/// The present offset of local time from UTC, in 100 ns.
pub fn local_offset(now: u64) -> i64 {
    local(to_unix(now)).0 * TICKS as i64
}

/// `TIME_ZONE_INFORMATION`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct TimeZone {
    /// UTC is local time plus this, in minutes.
    pub bias: i32,
    pub standard_name: [Wchar; 32],
    pub standard_date: SystemTime,
    pub standard_bias: i32,
    pub daylight_name: [Wchar; 32],
    pub daylight_date: SystemTime,
    pub daylight_bias: i32,
}

/// `TIME_ZONE_ID_UNKNOWN`, `..._STANDARD` and `..._DAYLIGHT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum ZoneId {
    Unknown,
    Standard,
    Daylight,
}

fn zone_name(name: &str) -> [Wchar; 32] {
    let mut result = [0; 32];
    for (unit, c) in result[..31].iter_mut().zip(to_wide(name)) {
        *unit = c;
    }
    result
}

/// The rule of a change of the clocks, in Windows' form: the n-th such weekday of a month, 5 for the last, at a local time before
/// the change.
fn rule(seconds: i64, offset_before: i64) -> SystemTime {
    let ticks = (seconds + offset_before + EPOCH) as u64 * TICKS;
    let at = SystemTime::from_ticks(ticks).unwrap_or_default();
    let is_last = at.day + 7 > days_in_month(at.year, at.month);
    SystemTime { year: 0, day: if is_last { 5 } else { (at.day - 1) / 7 + 1 }, ..at }
}

/// The time zone in the year around a moment.
pub fn time_zone(now: u64) -> (ZoneId, TimeZone) {
    let now = to_unix(now);
    let (offset, summer, name) = local(now);
    let mut zone = TimeZone {
        bias: (-offset / 60) as i32,
        standard_name: zone_name(&name),
        standard_date: SystemTime::default(),
        standard_bias: 0,
        daylight_name: zone_name(&name),
        daylight_date: SystemTime::default(),
        daylight_bias: 0,
    };
    let (year, ..) = civil_from_days((now + offset).div_euclid(DAY));
    let (begin, end) = (days_from_civil(year, 1, 1) * DAY, days_from_civil(year + 1, 1, 1) * DAY);
    let mut changes = Vec::new();
    let mut day = begin;
    while day < end {
        let next = day + DAY;
        if local(day).1 != local(next).1 {
            // The second at which the clocks change.
            let (mut before, mut after) = (day, next);
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                if local(middle).1 == local(day).1 { before = middle } else { after = middle }
            }
            changes.push((after, local(before), local(after)));
        }
        day = next;
    }
    let [first, second] = &changes[..] else { return (ZoneId::Unknown, zone) };
    for (at, before, after) in [first, second] {
        if after.1 {
            zone.daylight_name = zone_name(&after.2);
            zone.daylight_date = rule(*at, before.0);
            zone.daylight_bias = ((before.0 - after.0) / 60) as i32;
        } else {
            zone.bias = (-after.0 / 60) as i32;
            zone.standard_name = zone_name(&after.2);
            zone.standard_date = rule(*at, before.0);
        }
    }
    (if summer { ZoneId::Daylight } else { ZoneId::Standard }, zone)
}
