//! The CRC of an FPDU: CRC32C over length field, ULPDU and pad, stored with the least significant byte first.

/// A CRC computed step by step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crc(u32);

impl Crc {
    /// Adds the next bytes.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Crc {
        Crc(crc32c::crc32c_append(self.0, bytes))
    }

    /// The four bytes that end the FPDU.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, B.4: the values that iSCSI gives for CRC32C, in the order of the wire.
    #[test]
    fn the_values_of_rfc_3720() {
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        assert_eq!(Crc::default().update(&[0; 32]).bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(Crc::default().update(&[0xff; 32]).bytes(), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(Crc::default().update(&rising).bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(Crc::default().update(&falling).bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn parts_make_the_same_as_the_whole() {
        let bytes: Vec<u8> = (0..200).map(|i| (i * 7) as u8).collect();
        for cut in 0..bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(
                Crc::default().update(left).update(right).bytes(),
                Crc::default().update(&bytes).bytes()
            );
        }
    }
}
