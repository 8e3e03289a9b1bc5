//! The lock of the data path, on a cache line of its own.
//!
//! `std`'s mutex needs a second atomic instruction to learn whether somebody sleeps, and looks for panics: together half of
//! what a request cost. Here nobody sleeps until called: who finds the lock taken looks again, first at once, then after
//! others have run. What the locks guard is short, so that is rare.
//!
//! Mostly one thread alone uses a queue. After a while the lock is that thread's own: it takes it by plain stores and loads,
//! without an atomic instruction, which would take longer than all else that a request costs. Another thread that comes takes
//! the favour away, once and for all, and pays for that with a barrier in all threads.

use crate::membarrier;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// The smallest piece of memory that processors pass to each other.
pub(crate) const CACHE_LINE: usize = 64;

/// A value on cache lines of its own.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

const _: () = assert!(align_of::<Padded<u8>>() == CACHE_LINE && align_of::<Lock<u8>>() == CACHE_LINE);

/// A value that one thread at a time uses, on cache lines of its own.
#[repr(C, align(64))]
pub(crate) struct Lock<T> {
    /// 1 while the owner has the lock as its own. The first, so that its address is the lock's.
    inside: AtomicU32,
    /// 1 while somebody has it otherwise.
    held: AtomicU32,
    /// Whose own the lock is: a thread, or [`UNDECIDED`], or [`NOBODY`], which is for good. Written under `held`.
    owner: AtomicUsize,
    value: UnsafeCell<T>,
    trial: UnsafeCell<Trial>,
}

/// Nobody's own yet.
const UNDECIDED: usize = 0;
/// Nobody's own any more.
const NOBODY: usize = 1;

/// How it is found out whose own the lock shall be; under `held`.
struct Trial {
    /// Who has taken the lock of late, ...
    thread: usize,
    /// ... how often in a row, ...
    times: u32,
    /// ... and how often that must be.
    enough: u32,
    /// How often others came between.
    changes: u8,
}

/// After so many changes of thread there is no owner.
const MANY: u8 = 16;

// SAFETY: the value is used by one thread at a time: either by the owner, or by who has `held` and knows that the owner is not
// inside and, as there is none any more, will not be.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, for as long as this lives.
pub(crate) struct Held<'a, T, W: Way<'a> = Either<'a>> {
    lock: &'a Lock<T>,
    way: W,
}

/// How a lock is taken and given back. Where that is known to the compiler, it saves instructions.
pub(crate) trait Way<'a>: Sized {
    /// Takes the lock, if that can be done this way and nobody else has it.
    fn take<T>(lock: &'a Lock<T>) -> Option<Held<'a, T, Self>>;

    /// What says that the lock is taken.
    fn taken<T>(&self, lock: &'a Lock<T>) -> &'a AtomicU32;
}

/// By its owner, as its own.
pub(crate) struct Own;

impl<'a> Way<'a> for Own {
    #[inline(always)]
    fn take<T>(lock: &'a Lock<T>) -> Option<Held<'a, T, Own>> {
        lock.enter().then(|| Held { lock, way: Own })
    }

    #[inline(always)]
    fn taken<T>(&self, lock: &'a Lock<T>) -> &'a AtomicU32 {
        &lock.inside
    }
}

/// By anybody, as nobody's own.
pub(crate) struct Shared;

impl<'a> Way<'a> for Shared {
    #[inline(always)]
    fn take<T>(lock: &'a Lock<T>) -> Option<Held<'a, T, Shared>> {
        if !lock.set_held() {
            return None;
        }
        if lock.owner.load(Ordering::Relaxed) != NOBODY {
            lock.decide();
        }
        Some(Held { lock, way: Shared })
    }

    #[inline(always)]
    fn taken<T>(&self, lock: &'a Lock<T>) -> &'a AtomicU32 {
        &lock.held
    }
}

/// One of both; knows what says that the lock is taken.
pub(crate) struct Either<'a>(&'a AtomicU32);

impl<'a> Way<'a> for Either<'a> {
    #[inline(always)]
    fn take<T>(lock: &'a Lock<T>) -> Option<Held<'a, T, Either<'a>>> {
        Own::take(lock).map(Held::into_either).or_else(|| Shared::take(lock).map(Held::into_either))
    }

    #[inline(always)]
    fn taken<T>(&self, _lock: &'a Lock<T>) -> &'a AtomicU32 {
        self.0
    }
}

impl<'a, T, W: Way<'a>> Held<'a, T, W> {
    /// The same, for those who do not know the way.
    #[inline(always)]
    pub(crate) fn into_either(self) -> Held<'a, T> {
        let held = ManuallyDrop::new(self);
        Held { lock: held.lock, way: Either(held.way.taken(held.lock)) }
    }
}

/// A thread, as long as it lives.
#[inline(always)]
fn this_thread() -> usize {
    let thread: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of a thread's own data is the address of that data.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(nostack, readonly, pure, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the address of the thread's own data.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack, nomem, pure, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        std::thread_local!(static OWN: u8 = const { 0 });
        thread = OWN.with(|own| std::ptr::from_ref(own).addr());
    }
    thread
}

impl<T> Lock<T> {
    /// A lock that becomes its thread's own after being taken `enough` times in a row.
    pub(crate) const fn new(value: T, enough: u32) -> Lock<T> {
        Lock {
            owner: AtomicUsize::new(UNDECIDED),
            inside: AtomicU32::new(0),
            held: AtomicU32::new(0),
            trial: UnsafeCell::new(Trial { thread: 0, times: 0, enough, changes: 0 }),
            value: UnsafeCell::new(value),
        }
    }

    /// Sets `inside` if this thread is the owner, and is it still then.
    ///
    /// Who takes the lock away writes `owner`, has a barrier here, wherever this thread is, and reads `inside`. So either it
    /// sees the store, or this thread sees its.
    #[inline(always)]
    #[cfg(not(target_arch = "x86_64"))]
    fn enter(&self) -> bool {
        let me = this_thread();
        if self.owner.load(Ordering::Relaxed) != me {
            return false;
        }
        self.inside.store(1, Ordering::Relaxed);
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        let is_mine = self.owner.load(Ordering::Relaxed) == me;
        if !is_mine {
            self.inside.store(0, Ordering::Relaxed);
        }
        is_mine
    }

    /// As above; compilers do not compare with what they load atomically in one instruction.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    fn enter(&self) -> bool {
        // SAFETY: relaxed loads and stores of atomics, in this order; the first word of a thread's own data is the address of
        // that data.
        unsafe {
            std::arch::asm!(
                "mov {me}, fs:0",
                "cmp [{lock} + {owner}], {me}",
                "jne {other}",
                "mov dword ptr [{lock} + {inside}], 1",
                "cmp [{lock} + {owner}], {me}",
                "jne {late}",
                me = out(reg) _,
                lock = in(reg) self,
                owner = const offset_of!(Lock<T>, owner),
                inside = const offset_of!(Lock<T>, inside),
                other = label { return false },
                late = label { self.inside.store(0, Ordering::Relaxed); return false },
                options(nostack)
            );
        }
        true
    }

    /// The value, once nobody else uses it.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_, T> {
        if self.enter() {
            return Held { lock: self, way: Either(&self.inside) };
        }
        patiently(|| (self.held.load(Ordering::Relaxed) == 0 && self.set_held()).then_some(()));
        if self.owner.load(Ordering::Relaxed) != NOBODY {
            self.decide();
        }
        Held { lock: self, way: Either(&self.held) }
    }

    /// Sets `held`, if nobody has.
    #[inline(always)]
    fn set_held(&self) -> bool {
        // One bit, so that x86 has one instruction for it.
        self.held.fetch_or(1, Ordering::Acquire) & 1 == 0
    }

    /// Sees to whose own the lock is, or is to be; `held` is this thread's.
    #[cold]
    #[inline(never)]
    fn decide(&self) {
        let (me, owner) = (this_thread(), self.owner.load(Ordering::Relaxed));
        if owner == me {
            // It is not inside, and nobody can become the owner.
            return;
        }
        if owner != UNDECIDED {
            self.owner.store(NOBODY, Ordering::Relaxed);
            membarrier::barrier();
            return patiently(|| (self.inside.load(Ordering::Acquire) == 0).then_some(()));
        }
        // SAFETY: `held` is this thread's.
        let trial = unsafe { &mut *self.trial.get() };
        if trial.thread != me {
            (trial.thread, trial.times, trial.changes) = (me, 0, trial.changes + 1);
        }
        trial.times += 1;
        if trial.changes > MANY {
            self.owner.store(NOBODY, Ordering::Relaxed);
        } else if trial.times > trial.enough {
            let owner = if membarrier::is_available() { me } else { NOBODY };
            self.owner.store(owner, Ordering::Relaxed);
        }
    }
}

/// Asks until there is an answer. Who has the lock may have lost its processor, perhaps to this very thread, so the thread
/// gives up its own: to any other first, then to those of lower priority, too.
fn patiently<R>(mut ask: impl FnMut() -> Option<R>) -> R {
    const SPINS: u32 = 100;
    const YIELDS: u32 = SPINS + 100;
    let mut looks = 0_u32;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        match looks {
            0..SPINS => spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
        looks = looks.saturating_add(1);
    }
}

impl<'a, T, W: Way<'a>> Deref for Held<'a, T, W> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<'a, T, W: Way<'a>> DerefMut for Held<'a, T, W> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<'a, T, W: Way<'a>> Drop for Held<'a, T, W> {
    #[inline(always)]
    fn drop(&mut self) {
        self.way.taken(self.lock).store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        const TIMES: usize = 20_000;
        let lock = Lock::new(0_usize, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let mut value = lock.lock();
                        // Not one addition: an update that is lost would show.
                        let seen = *value;
                        std::hint::black_box(&mut *value);
                        *value = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4 * TIMES);
    }

    impl<T> Lock<T> {
        /// Whether it is this thread's own.
        fn is_own(&self) -> bool {
            let own = self.enter();
            self.inside.store(0, Ordering::Release);
            own
        }
    }

    /// A lock that is this thread's own; none where the kernel has no barriers for it.
    fn own(value: usize) -> Option<Lock<usize>> {
        membarrier::prepare();
        if !membarrier::is_available() {
            eprintln!("not tested: no membarrier(2)");
            return None;
        }
        let lock = Lock::new(value, 3);
        for _ in 0..3 {
            assert!(!lock.is_own());
            drop(lock.lock());
        }
        drop(lock.lock());
        assert!(lock.is_own());
        Some(lock)
    }

    #[test]
    fn becomes_its_threads_own_until_another_comes() {
        let Some(lock) = own(7) else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!lock.is_own());
                *lock.lock() += 1;
            });
        });
        assert!(!lock.is_own());
        for _ in 0..10 {
            assert_eq!(*lock.lock(), 8);
        }
        assert!(!lock.is_own(), "once and for all");
    }

    #[test]
    fn an_owner_takes_it_otherwise_too() {
        let Some(lock) = own(1) else { return };
        drop(Own::take(&lock).unwrap());
        *Either::take(&lock).unwrap() = 2;
        assert_eq!(*Own::take(&lock).unwrap().into_either(), 2);
        assert_eq!(*lock.lock(), 2);
    }

    #[test]
    fn threads_in_turns_have_no_owner() {
        membarrier::prepare();
        let lock = Lock::new(0, 3);
        for _ in 0..MANY {
            std::thread::scope(|scope| {
                scope.spawn(|| drop(lock.lock()));
            });
            drop(lock.lock());
        }
        for _ in 0..10 {
            drop(lock.lock());
        }
        assert!(!lock.is_own());
    }

    /// The owner and one that comes: every way that they may meet in, many times.
    #[test]
    fn an_owner_and_a_newcomer_are_never_both_inside() {
        const MEETINGS: usize = 2000;
        for meeting in 0..MEETINGS {
            let Some(lock) = own(0) else { return };
            let (ready, done) = (AtomicU32::new(0), AtomicU32::new(0));
            let add = || {
                let mut value = lock.lock();
                let seen = *value;
                std::hint::black_box(&mut *value);
                *value = seen + 1;
            };
            let added = std::thread::scope(|scope| {
                scope.spawn(|| {
                    ready.store(1, Ordering::Relaxed);
                    // The owner is at it by then, now here, now there.
                    (0..100 + meeting % 100).for_each(|_| spin_loop());
                    (0..100).for_each(|_| add());
                    done.store(1, Ordering::Relaxed);
                });
                while ready.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                let mut added = 0;
                while done.load(Ordering::Relaxed) == 0 {
                    add();
                    added += 1;
                }
                added
            });
            assert_eq!(*lock.lock(), added + 100, "meeting {meeting}");
        }
    }

    #[test]
    fn an_owner_that_sleeps_is_waited_for() {
        let Some(lock) = own(1) else { return };
        std::thread::scope(|scope| {
            let mut held = lock.lock();
            scope.spawn(|| assert_eq!(*lock.lock(), 2));
            std::thread::sleep(Duration::from_millis(20));
            *held = 2;
            drop(held);
        });
        assert!(!lock.is_own());
    }

    #[test]
    fn a_holder_that_sleeps_is_waited_for() {
        let lock = Lock::new(1, 0);
        std::thread::scope(|scope| {
            let mut held = lock.lock();
            scope.spawn(|| assert_eq!(*lock.lock(), 2));
            std::thread::sleep(Duration::from_millis(20));
            *held = 2;
        });
    }
}
