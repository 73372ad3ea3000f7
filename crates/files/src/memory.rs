//! Memory ranges, written `BASE:SIZE`.

use crate::program::parse_address;
use crate::quantity::{parse_size, show_size};
use std::fmt;

/// Bytes from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryRange {
    /// The first address.
    pub base: u64,
    /// How many bytes.
    pub size: u64,
}

/// What memory is made of.
const PAGE: u64 = 4096;

/// Parts that are no further apart share a range.
const NEAR: u64 = 1 << 20;

impl MemoryRange {
    /// Reads `BASE:SIZE`, such as `0x80000000:256M`.
    #[must_use]
    pub fn parse(text: &str) -> Option<MemoryRange> {
        let (base, size) = text.split_once(':')?;
        Some(MemoryRange {
            base: parse_address(base).filter(|_| !base.is_empty())?,
            size: parse_size(size)?,
        })
    }

    /// The last address; one with no bytes counts as one of one byte.
    fn last(self) -> u64 {
        self.base.saturating_add(self.size.saturating_sub(1))
    }

    fn contains(self, other: MemoryRange) -> bool {
        self.base <= other.base && other.last() <= self.last()
    }

    fn overlaps(self, other: MemoryRange) -> bool {
        self.base <= other.last() && other.base <= self.last()
    }

    /// In whole pages.
    fn paged(self) -> MemoryRange {
        let base = self.base & !(PAGE - 1);
        let last = self.last() | (PAGE - 1);
        MemoryRange {
            base,
            size: (last - base).saturating_add(1),
        }
    }

    /// The memory that would hold all of `parts`: what there is already, where
    /// it does, and more, with some room for a stack.
    #[must_use]
    pub fn holding(parts: &[MemoryRange], memory: &[MemoryRange]) -> Vec<MemoryRange> {
        let used = memory
            .iter()
            .filter(|m| parts.iter().any(|p| p.overlaps(**m)));
        let mut wanted: Vec<MemoryRange> = parts.iter().map(|p| p.paged()).collect();
        wanted.extend(used);
        wanted.sort_unstable();
        let mut joined: Vec<MemoryRange> = Vec::new();
        for next in wanted {
            match joined.last_mut() {
                Some(before) if next.base.saturating_sub(before.last()) <= NEAR => {
                    let last = before.last().max(next.last());
                    before.size = (last - before.base).saturating_add(1);
                }
                _ => joined.push(next),
            }
        }
        let exact = joined.clone();
        for range in &mut joined {
            let room = MemoryRange {
                base: range.base,
                size: range
                    .size
                    .checked_next_power_of_two()
                    .unwrap_or(range.size)
                    .max(NEAR),
            };
            let free = exact
                .iter()
                .all(|e| range.contains(*e) || !room.overlaps(*e));
            if free && !memory.contains(range) && room.base.checked_add(room.size).is_some() {
                *range = room;
            }
        }
        joined
    }
}

/// `0x80000000:256M`.
impl fmt::Display for MemoryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}:{}", self.base, show_size(self.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> MemoryRange {
        MemoryRange::parse(text).unwrap()
    }

    #[test]
    fn base_and_size() {
        for text in [
            "0x80000000:256M",
            "0x0:64K",
            "0xffffffffffff0000:64K",
            "0x1000:0x1001",
        ] {
            assert_eq!(range(text).to_string(), text);
        }
        assert_eq!(range("4096:4096").base, 4096);
        for text in [
            "",
            ":",
            "0x80000000",
            "0x80000000:",
            ":1M",
            "x:1M",
            "0x0:1M:2",
            "0x0-0x10",
        ] {
            assert_eq!(MemoryRange::parse(text), None, "{text}");
        }
    }

    fn holding(parts: &[&str], memory: &[&str]) -> Vec<String> {
        let ranges = |texts: &[&str]| texts.iter().map(|t| range(t)).collect::<Vec<_>>();
        let found = MemoryRange::holding(&ranges(parts), &ranges(memory));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_would_hold_a_program() {
        let ram = "0x80000000:256M";
        assert_eq!(holding(&["0x20400123:0x3000"], &[ram]), ["0x20400000:1M"]);
        assert_eq!(
            holding(&["0x20400000:2M", "0x80000000:0x100"], &[ram]),
            ["0x20400000:2M", ram]
        );
        assert_eq!(holding(&["0x80000000:300M"], &[ram]), ["0x80000000:512M"]);
        assert_eq!(
            holding(&["0x10000:0x1800", "0x12800:0x10"], &[ram]),
            ["0x10000:1M"]
        );
        // No room to grow.
        assert_eq!(
            holding(&["0x100000:5M", "0x800000:4K"], &[ram]),
            ["0x100000:5M", "0x800000:1M"]
        );
        assert_eq!(
            holding(&["0xfffffffffffff000:4K"], &[ram]),
            ["0xfffffffffffff000:4K"]
        );
        let all = holding(&["0x0:0xffffffffffffffff"], &[ram]);
        assert_eq!(all.len(), 1);
    }
}
