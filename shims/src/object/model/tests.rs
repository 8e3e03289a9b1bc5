//! What must hold whatever the processor does.

use super::sync::{AtomicU32, Mutex, Ordering, RwLock};
use super::table::{Slots, Table};
use super::tls_indices::TlsIndices;
use loom::thread;
use std::sync::Arc;

/// What lives as long as an execution of the model; its tests leak a little of each.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn serials(count: usize) -> &'static [AtomicU32] {
    Vec::leak((0..count).map(|_| AtomicU32::new(0)).collect())
}

/// A table of one slot, which is used again at once.
fn table() -> Arc<Table<Arc<AtomicU32>>> {
    Arc::new(Table { slots: leak(RwLock::new(Slots::NONE)), serials: serials(1), resting: 0 })
}

fn next(serial: u32) -> u32 {
    serial + 1
}

#[test]
fn who_reads_a_serial_sees_what_its_object_was_made_of() {
    loom::model(|| {
        let (table, made) = (table(), Arc::new(AtomicU32::new(0)));
        let reader = {
            let (table, made) = (table.clone(), made.clone());
            thread::spawn(move || {
                if table.serial(0) != 0 {
                    assert_eq!(made.load(Ordering::Relaxed), 1);
                }
            })
        };
        made.store(1, Ordering::Relaxed);
        table.open(made, next).unwrap();
        reader.join().unwrap();
    });
}

#[test]
fn a_remembered_serial_is_not_found_again_after_the_close() {
    loom::model(|| {
        let (table, closed) = (table(), Arc::new(AtomicU32::new(0)));
        let (position, first) = table.open(Arc::new(AtomicU32::new(1)), next).unwrap();
        let user = {
            let (table, closed) = (table.clone(), closed.clone());
            thread::spawn(move || {
                let was_closed = closed.load(Ordering::Acquire) == 1;
                let is_open = table.serial(position) == first;
                assert!(!(was_closed && is_open), "closed before, but not seen");
                // What is found under a serial is of that use.
                if let Some(object) = table.find(position, |serial| serial == first) {
                    assert_eq!(object.load(Ordering::Relaxed), 1);
                }
            })
        };
        assert!(table.close(position, |serial| serial == first).is_some());
        closed.store(1, Ordering::Release);
        let (again, second) = table.open(Arc::new(AtomicU32::new(2)), next).unwrap();
        assert_eq!((again, second != first), (position, true));
        user.join().unwrap();
    });
}

#[test]
fn only_one_of_two_threads_closes_a_handle() {
    loom::model(|| {
        let table = table();
        let (position, first) = table.open(Arc::new(AtomicU32::new(1)), next).unwrap();
        let close = move |table: &Table<_>| table.close(position, |serial| serial == first).is_some();
        let other = {
            let table = table.clone();
            thread::spawn(move || close(&table))
        };
        let own = close(&table);
        assert!(own != other.join().unwrap());
    });
}

#[test]
fn a_slot_has_one_owner_and_its_values_end_with_its_use() {
    loom::model(|| {
        let slots = Arc::new(TlsIndices { uses: serials(2), allocation: leak(Mutex::new(())) });
        let other = {
            let slots = slots.clone();
            thread::spawn(move || slots.allocate().unwrap())
        };
        let own = slots.allocate().unwrap();
        let first = slots.current(own);
        let other = other.join().unwrap();
        assert!(own != other && slots.allocate().is_none());
        assert!(slots.free(own) && !slots.free(own), "freed once");
        let freed = slots.current(own);
        assert_eq!(slots.allocate(), Some(own));
        let second = slots.current(own);
        assert!(first != freed && freed != second && first != second);
    });
}
