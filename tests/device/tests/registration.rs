//! A process that ends while it registers much memory.

use ndcompat::Status;
use ndcompat::types::RegionFlags;
use std::process::Command;
use support::{Operation, adapter};

const LENGTH: usize = 512 << 20;

#[test]
fn a_process_may_end_while_it_registers() {
    let program = std::env::current_exe().unwrap();
    let arguments = ["200", program.to_str().unwrap(), "ends_while_it_registers", "--exact", "--ignored"];
    let status = Command::new("timeout").args(arguments).status().unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
#[ignore = "the process of `a_process_may_end_while_it_registers`"]
fn ends_while_it_registers() {
    let adapter = adapter();
    let file = adapter.create_overlapped_file().unwrap();
    let region = adapter.create_memory_region(&file).unwrap();
    let mut memory = vec![0; LENGTH];
    let mut operation = Operation::on(&file);
    // SAFETY: memory and operation last as long as the process.
    unsafe {
        let flags = RegionFlags::ALLOW_LOCAL_WRITE;
        let status = region.register(memory.as_mut_ptr(), LENGTH, flags, operation.ov());
        assert_eq!(status, Status::PENDING);
    }
    // Most likely it goes on.
    std::process::exit(7);
}
