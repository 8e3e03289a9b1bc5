//! `timeGetTime` and related functions. The resolution of Linux's clocks and waits is always at least that of Windows' shortest
//! period.

use crate::arguments::Out;
use crate::time::tick_count;

const TIMERR_NOERROR: u32 = 0;
const TIMERR_NOCANDO: u32 = 97;
/// The valid periods, in milliseconds.
const PERIODS: std::ops::RangeInclusive<u32> = 1..=1_000_000;

/// `TIMECAPS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct Capabilities {
    pub least: u32,
    pub most: u32,
}

/// `timeGetTime`: milliseconds since the system was started.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_timeGetTime() -> u32 {
    tick_count() as u32
}

/// `timeBeginPeriod`: there is nothing to change.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_timeBeginPeriod(period: u32) -> u32 {
    if PERIODS.contains(&period) { TIMERR_NOERROR } else { TIMERR_NOCANDO }
}

/// `timeEndPeriod`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_timeEndPeriod(period: u32) -> u32 {
    ndw_timeBeginPeriod(period)
}

/// `timeGetDevCaps`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_timeGetDevCaps(capabilities: Out<'_, Capabilities>, size: u32) -> u32 {
    if capabilities.is_null() || (size as usize) < size_of::<Capabilities>() {
        return TIMERR_NOCANDO;
    }
    capabilities.put(Capabilities { least: *PERIODS.start(), most: *PERIODS.end() });
    TIMERR_NOERROR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ndw_GetTickCount;

    #[test]
    fn multimedia_time_is_that_of_ticks_and_periods_have_their_limits() {
        let before = ndw_GetTickCount();
        let time = ndw_timeGetTime();
        assert!(time.wrapping_sub(before) <= ndw_GetTickCount().wrapping_sub(before));
        let mut capabilities = Capabilities::default();
        assert_eq!(ndw_timeGetDevCaps((&mut capabilities).into(), 7), TIMERR_NOCANDO);
        assert_eq!(ndw_timeGetDevCaps(Out::NULL, 8), TIMERR_NOCANDO);
        assert_eq!(capabilities, Capabilities::default());
        assert_eq!(ndw_timeGetDevCaps((&mut capabilities).into(), 8), TIMERR_NOERROR);
        for (period, result) in [
            (0, TIMERR_NOCANDO),
            (capabilities.least, TIMERR_NOERROR),
            (capabilities.most, TIMERR_NOERROR),
            (capabilities.most + 1, TIMERR_NOCANDO),
        ] {
            assert_eq!(
                (ndw_timeBeginPeriod(period), ndw_timeEndPeriod(period)),
                (result, result),
                "{period}"
            );
        }
    }
}
