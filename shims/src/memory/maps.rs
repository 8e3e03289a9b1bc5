//! The address space, from `/proc/self/maps`.

use std::fs;
use std::ops::Range;

/// One mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    pub range: Range<usize>,
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    pub shared: bool,
    /// Backed by a file.
    pub file: bool,
}

/// A mapping or a gap at an address.
#[derive(Debug, PartialEq)]
pub enum AddressRange {
    Mapped(Mapping),
    Free(Range<usize>),
}

fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let &[read, write, execute, shared] = fields.next()?.as_bytes() else { return None };
    let inode = fields.nth(2)?;
    Some(Mapping {
        range: address(start)?..address(end)?,
        read: read == b'r',
        write: write == b'w',
        execute: execute == b'x',
        shared: shared == b's',
        file: inode != "0",
    })
}

fn find(maps: &str, address: usize) -> AddressRange {
    let mut free = 0..usize::MAX;
    for mapping in maps.lines().filter_map(parse) {
        if mapping.range.contains(&address) {
            return AddressRange::Mapped(mapping);
        }
        if mapping.range.start > address {
            free.end = mapping.range.start;
            break;
        }
        free.start = mapping.range.end;
    }
    AddressRange::Free(free)
}

/// What is at an address of this process.
pub fn at(address: usize) -> AddressRange {
    find(&fs::read_to_string("/proc/self/maps").unwrap_or_default(), address)
}

/// The gaps up to the last mapping.
pub fn gaps() -> Vec<Range<usize>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut end = 0;
    let mut gaps = Vec::new();
    for mapping in maps.lines().filter_map(parse) {
        gaps.push(end..mapping.range.start);
        end = mapping.range.end;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "1000-3000 r-xp 00000000 08:01 42   /usr/bin/a b\n\
                        5000-6000 rw-s 00000000 00:00 0 \n";

    #[test]
    fn mappings_and_gaps() {
        let AddressRange::Mapped(text) = find(MAPS, 0x2FFF) else { panic!("free") };
        assert_eq!(text.range, 0x1000..0x3000);
        assert_eq!(
            (text.read, text.write, text.execute, text.shared, text.file),
            (true, false, true, false, true)
        );
        let AddressRange::Mapped(data) = find(MAPS, 0x5000) else { panic!("free") };
        assert_eq!((data.write, data.shared, data.file), (true, true, false));
        assert_eq!(find(MAPS, 0), AddressRange::Free(0..0x1000));
        assert_eq!(find(MAPS, 0x3000), AddressRange::Free(0x3000..0x5000));
        assert_eq!(find(MAPS, 0x9000), AddressRange::Free(0x6000..usize::MAX));
    }
}
