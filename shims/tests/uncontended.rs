//! What nobody waits for costs no system call: shown in a process to which the kernel leaves none but its exit.

use win32::api::completion_port::*;
use win32::api::event::*;
use win32::api::wait::ndw_WaitForSingleObject;
use win32::arguments::Out;
use win32::arguments::Text;
use win32::object::RawHandle;
use win32::sync::condition::ConditionVariable;
use win32::sync::critical::CriticalSection;
use win32::sync::srw::SrwLock;

fn operations(event: RawHandle, port: RawHandle) {
    let (section, lock, condition) =
        (CriticalSection::new(0), SrwLock::default(), ConditionVariable::default());
    for key in 0..10 {
        ndw_SetEvent(event);
        assert_eq!(ndw_WaitForSingleObject(event, u32::MAX), 0);
        ndw_SetEvent(event);
        ndw_ResetEvent(event);

        ndw_PostQueuedCompletionStatus(port, 0, key, std::ptr::null_mut());
        let (mut bytes, mut found, mut overlapped) = (0, 0, std::ptr::null_mut());
        ndw_GetQueuedCompletionStatus(
            port,
            Out::from(&mut bytes),
            Out::from(&mut found),
            Out::from(&mut overlapped),
            u32::MAX,
        );
        assert_eq!(found, key);

        section.enter();
        section.leave();
        lock.write();
        lock.unlock_write();
        lock.read();
        lock.unlock_read();
        condition.wake(1);
    }
}

/// From here on every system call but the exit of a thread kills the process.
fn forbid_system_calls() {
    use libc::*;
    // SAFETY: these only put numbers together.
    let filter = unsafe {
        [
            BPF_STMT((BPF_LD | BPF_W | BPF_ABS) as u16, 0),
            BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, SYS_exit as u32, 0, 1),
            BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_ALLOW),
            BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_KILL_PROCESS),
        ]
    };
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, a local whose filter is one as well; the first call takes numbers.
    unsafe {
        assert_eq!(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

/// Runs `operations` twice: for memory and thread-local places at first, and then without system calls.
fn child(event: RawHandle, port: RawHandle) -> i32 {
    operations(event, port);
    forbid_system_calls();
    operations(event, port);
    // SAFETY: ends the only thread.
    unsafe { libc::syscall(libc::SYS_exit, 42) };
    1
}

#[test]
fn what_nobody_waits_for_costs_no_system_call() {
    let event = ndw_CreateEventW(std::ptr::null(), 0, 0, Text::NULL);
    let port = ndw_CreateIoCompletionPort(RawHandle::INVALID, RawHandle::NULL, 0, 0);
    // SAFETY: this process has no other test, so no thread that could hold a lock; the child ends in `child`.
    let (pid, mut status) = unsafe { (libc::fork(), 0) };
    if pid == 0 {
        let status = child(event, port);
        // SAFETY: leaves without unwinding into the test harness.
        unsafe { libc::_exit(status) };
    }
    // SAFETY: the status is a place of ours.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status), "killed by signal {}: a system call", libc::WTERMSIG(status));
    assert_eq!(libc::WEXITSTATUS(status), 42);
}
