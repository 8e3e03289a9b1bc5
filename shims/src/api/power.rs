//! `SetThreadExecutionState`: kept, and without effect. What keeps a Linux machine awake is a matter of its session manager.

use std::cell::Cell;

/// `ES_SYSTEM_REQUIRED`, `ES_DISPLAY_REQUIRED`, `ES_USER_PRESENT`, `ES_AWAYMODE_REQUIRED`, `ES_CONTINUOUS`.
const STATES: u32 = 0x1 | 0x2 | 0x4 | 0x40 | ES_CONTINUOUS;
const ES_CONTINUOUS: u32 = 0x8000_0000;

thread_local! {
    static STATE: Cell<u32> = const { Cell::new(ES_CONTINUOUS) };
}

/// `SetThreadExecutionState`: the state before, which stays unless `ES_CONTINUOUS` is given; 0 for unknown flags.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadExecutionState(flags: u32) -> u32 {
    if flags & !STATES != 0 {
        return 0;
    }
    if flags & ES_CONTINUOUS != 0 { STATE.replace(flags) } else { STATE.get() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_continuous_execution_state_is_kept() {
        assert_eq!(ndw_SetThreadExecutionState(1), ES_CONTINUOUS);
        assert_eq!(ndw_SetThreadExecutionState(ES_CONTINUOUS | 1), ES_CONTINUOUS);
        assert_eq!(ndw_SetThreadExecutionState(ES_CONTINUOUS), ES_CONTINUOUS | 1);
        assert_eq!((ndw_SetThreadExecutionState(0x100), ndw_SetThreadExecutionState(2)), (0, ES_CONTINUOUS));
    }
}
