//! The source of a test's random choices: a seeded generator, or a fuzzer's input.

use fastrand::Rng;
use std::ops::{Bound, RangeBounds};

/// A source of choices.
#[derive(Debug)]
pub struct Chance {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Seed(Rng),
    /// The bytes that are left, last first.
    Bytes(Vec<u8>),
}

macro_rules! numbers {
    ($($name:ident)*) => {$(
        #[doc = concat!("A `", stringify!($name), "` in the range.")]
        pub fn $name(&mut self, range: impl RangeBounds<$name>) -> $name {
            let first = match range.start_bound() {
                Bound::Included(&first) => first,
                Bound::Excluded(&before) => before + 1,
                Bound::Unbounded => 0,
            };
            let last = match range.end_bound() {
                Bound::Included(&last) => last,
                Bound::Excluded(&after) => after.checked_sub(1).expect("a range with something in it"),
                Bound::Unbounded => $name::MAX,
            };
            first + self.up_to((last - first) as u64) as $name
        }
    )*};
}

impl Chance {
    /// Choices drawn from a seed.
    pub fn with_seed(seed: u64) -> Chance {
        Chance { source: Source::Seed(Rng::with_seed(seed)) }
    }

    /// Choices decoded from bytes, with as few bytes for each as it needs. After the last byte every choice is the first one.
    pub fn with_bytes(bytes: &[u8]) -> Chance {
        Chance { source: Source::Bytes(bytes.iter().rev().copied().collect()) }
    }

    /// Whether there are no bytes left.
    pub fn is_over(&self) -> bool {
        matches!(&self.source, Source::Bytes(bytes) if bytes.is_empty())
    }

    /// A number from 0 to `most`.
    fn up_to(&mut self, most: u64) -> u64 {
        match &mut self.source {
            Source::Seed(rng) => rng.u64(..=most),
            Source::Bytes(bytes) => {
                let size = (u64::BITS - most.leading_zeros()).div_ceil(8);
                let number = (0..size).fold(0, |number, _| number << 8 | u64::from(bytes.pop().unwrap_or(0)));
                most.checked_add(1).map_or(number, |count| number % count)
            }
        }
    }

    numbers! { u8 u16 u32 u64 usize }

    /// Yes or no.
    pub fn bool(&mut self) -> bool {
        self.up_to(1) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn choices_stay_in_their_range_whatever_the_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        for mut chance in [Chance::with_bytes(&bytes), Chance::with_seed(1)] {
            for _ in 0..200 {
                assert!((3..=9).contains(&chance.u32(3..=9)));
                assert!(chance.usize(..300) < 300);
                assert_eq!(chance.u8(7..=7), 7);
            }
            chance.u64(..);
        }
    }

    #[test]
    fn bytes_are_used_sparingly_and_end() {
        let mut chance = Chance::with_bytes(&[5, 1, 2]);
        assert_eq!(chance.u32(..10), 5);
        assert_eq!(chance.usize(..=0xFFFF), 0x0102);
        assert!(chance.is_over());
        assert_eq!(chance.u32(4..), 4);
        assert!(!Chance::with_seed(0).is_over());
    }
}
