//! The ids of COM.

/// A Windows `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(u32, u16, u16, [u8; 8]);

impl Guid {
    /// A GUID from its 128-bit value.
    pub const fn new(value: u128) -> Guid {
        Guid((value >> 96) as u32, (value >> 80) as u16, (value >> 64) as u16, (value as u64).to_be_bytes())
    }
}
