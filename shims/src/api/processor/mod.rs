//! Processors: affinity, priorities, groups and NUMA nodes.

mod affinity;
mod information;
mod priority;
mod topology;

pub use affinity::*;
pub use information::*;
pub use priority::*;
pub use topology::*;

use crate::arguments::{In, Out};
use crate::boundary::guard;
use crate::error::*;
use crate::processor::topology::{self as machine, Topology};
use crate::processor::{GROUP, Set, number_of};

/// `GROUP_AFFINITY`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct GroupAffinity {
    pub mask: u64,
    pub group: u16,
    pub reserved: [u16; 3],
}

/// `PROCESSOR_NUMBER`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct ProcessorNumber {
    pub group: u16,
    pub number: u8,
    pub reserved: u8,
}

const _: () = assert!(size_of::<GroupAffinity>() == 16 && size_of::<ProcessorNumber>() == 4);

impl From<usize> for ProcessorNumber {
    fn from(processor: usize) -> ProcessorNumber {
        let (group, number) = number_of(processor);
        ProcessorNumber { group, number, reserved: 0 }
    }
}

impl ProcessorNumber {
    /// Linux's number of the processor, if it exists.
    fn processor(self) -> Result<usize, u32> {
        let processor = usize::from(self.group) * GROUP + usize::from(self.number);
        let is_one = usize::from(self.number) < GROUP && machine::topology().online.contains(&processor);
        if is_one && self.reserved == 0 { Ok(processor) } else { Err(ERROR_INVALID_PARAMETER) }
    }
}

fn output<T>(place: Out<'_, T>, value: T) -> Result<(), u32> {
    place.required(ERROR_INVALID_PARAMETER)?.put(value);
    Ok(())
}

fn input<T: Copy>(place: In<'_, T>) -> Result<T, u32> {
    place.read().ok_or(ERROR_INVALID_PARAMETER)
}

/// A number, or `failed` and the last error.
fn number<T>(failed: T, body: impl FnOnce() -> Result<T, u32>) -> T
where
    T: Copy,
{
    guard(failed, || {
        body().unwrap_or_else(|code| {
            set_last_error(code);
            failed
        })
    })
}

/// The group of masks without a group: the first one where the thread may run.
fn group_of(processors: &Set) -> u16 {
    processors.first().map_or(0, |first| number_of(*first).0)
}

/// How many processors a group could have.
fn maximum_in(machine: &Topology, group: u16) -> u32 {
    machine.possible.saturating_sub(usize::from(group) * GROUP).min(GROUP) as u32
}

#[cfg(test)]
mod tests;
