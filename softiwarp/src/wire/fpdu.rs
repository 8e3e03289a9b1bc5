//! MPA's frame around a segment: `length (2) | ULPDU | pad (0 to 3) | CRC (4)`, without markers.
//!
//! The length counts the ULPDU alone. The pad makes length field and ULPDU a multiple of four.

/// Bytes of the length field.
pub const LENGTH_SIZE: usize = 2;
/// Bytes of the CRC. Without CRCs they are zeros.
pub const CRC_SIZE: usize = 4;
/// The longest ULPDU that fits the length field.
pub const MAX_ULPDU: usize = u16::MAX as usize;
/// The longest FPDU.
pub const MAX_FPDU: usize = size(MAX_ULPDU);

/// How many bytes of pad follow a ULPDU of this length.
pub const fn pad(ulpdu: usize) -> usize {
    (LENGTH_SIZE + ulpdu).wrapping_neg() % 4
}

/// The length of the FPDU for a ULPDU of this length.
pub const fn size(ulpdu: usize) -> usize {
    LENGTH_SIZE + ulpdu + pad(ulpdu) + CRC_SIZE
}

/// The longest ULPDU whose FPDU is at most `space` bytes long, without pad; 0 if there is none.
pub const fn ulpdu_within(space: usize) -> usize {
    let space = space - space % 4;
    let ulpdu = space.saturating_sub(LENGTH_SIZE + CRC_SIZE);
    if ulpdu < MAX_ULPDU { ulpdu } else { MAX_ULPDU - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_multiples_of_four_and_fit() {
        assert_eq!((pad(0x17), size(0x17)), (3, 32));
        assert_eq!((pad(0x0e), size(0x0e)), (0, 20));
        for ulpdu in 0..=MAX_ULPDU {
            assert_eq!(size(ulpdu) % 4, 0);
            assert!(pad(ulpdu) < 4);
        }
        for space in 0..70_000 {
            let ulpdu = ulpdu_within(space);
            assert!(ulpdu == 0 || size(ulpdu) <= space && pad(ulpdu) == 0);
        }
        assert_eq!(ulpdu_within(1448), 0x5a2, "what siw fills a segment with");
    }
}
