//! What a C `va_list` is made of, for arguments that are as large as a pointer.

use std::ffi::c_void;

/// A `va_list` parameter.
pub type VaList = *mut c_void;

/// `va_list` of the System V ABI for x86-64: the argument registers, as the function saved them, then the stack.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    gp_offset: u32,
    fp_offset: u32,
    stack: *const u64,
    registers: *const u8,
}

/// `va_list` of the AArch64 procedure call standard: offsets from the ends of the saved registers, then the stack.
#[cfg(target_arch = "aarch64")]
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    stack: *const u64,
    general_top: *const u8,
    vector_top: *const u8,
    general_offset: i32,
    vector_offset: i32,
}

impl Arguments {
    /// Arguments that all lie on a stack, as if the registers had run out: 8 bytes each.
    pub(crate) fn on_stack(values: &[u64]) -> Arguments {
        #[cfg(target_arch = "x86_64")]
        return Arguments {
            gp_offset: 48,
            fp_offset: 176,
            stack: values.as_ptr(),
            registers: std::ptr::null(),
        };
        #[cfg(target_arch = "aarch64")]
        return Arguments {
            stack: values.as_ptr(),
            general_top: std::ptr::null(),
            vector_top: std::ptr::null(),
            general_offset: 0,
            vector_offset: 0,
        };
    }

    /// As a parameter.
    pub(crate) fn list(&mut self) -> VaList {
        (&raw mut *self).cast()
    }

    /// The next argument, as `va_arg` takes it.
    ///
    /// # Safety
    /// There is one, and it is no floating-point number.
    pub(crate) unsafe fn next(&mut self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if self.gp_offset < 48 {
            // SAFETY: an argument lies in the registers that were saved.
            let value = unsafe { self.registers.wrapping_add(self.gp_offset as usize).cast::<u64>().read() };
            self.gp_offset += 8;
            return value;
        }
        #[cfg(target_arch = "aarch64")]
        if self.general_offset < 0 {
            // SAFETY: an argument lies in the registers that were saved.
            let value = unsafe { self.general_top.offset(self.general_offset as isize).cast::<u64>().read() };
            self.general_offset += 8;
            return value;
        }
        // SAFETY: there is one more argument, as the caller promises; it is not in the registers, hence on the stack.
        let value = unsafe { self.stack.read() };
        self.stack = self.stack.wrapping_add(1);
        value
    }
}
