//! Memory as far as the trace has reported it: bytes, and which of them are
//! known.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A page: its bytes, and a bit for each that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    bytes: [u8; PAGE as usize],
    known: [u64; PAGE as usize / 64],
}

/// Pages found lately, by their numbers.
const LATELY: usize = 64;

/// Sparse memory. Unreported bytes read as zero and are unknown.
#[derive(Clone, Debug)]
pub struct Memory {
    pages: Vec<Box<Page>>,
    /// Where a page is in `pages`.
    index: BTreeMap<u64, u32>,
    /// Number of a page and where it is; a shortcut past `index`.
    lately: [(u64, u32); LATELY],
}

impl Memory {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Memory {
        Memory {
            pages: Vec::new(),
            index: BTreeMap::new(),
            // No page has this number.
            lately: [(u64::MAX, 0); LATELY],
        }
    }

    /// Writes the low `len` bytes of a value, at most 8.
    #[inline]
    pub fn write(&mut self, addr: u64, len: usize, value: u64) {
        let bytes = value.to_le_bytes();
        let bytes = bytes.get(..len).unwrap_or(&bytes);
        let at = (addr % PAGE) as usize;
        let page = self.page(addr / PAGE);
        if at % 8 + bytes.len() <= 8
            && let Some(to) = page.bytes.get_mut(at..at + bytes.len())
            && let Some(known) = page.known.get_mut(at / 64)
        {
            to.copy_from_slice(bytes);
            *known |= ((1 << bytes.len()) - 1) << (at % 64);
        } else {
            self.load(addr, bytes);
        }
    }

    /// Writes any number of bytes. After the last address comes the first.
    pub fn load(&mut self, addr: u64, bytes: &[u8]) {
        let (mut addr, mut rest) = (addr, bytes);
        while !rest.is_empty() {
            let at = (addr % PAGE) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE as usize - at));
            let page = self.page(addr / PAGE);
            if let Some(to) = page.bytes.get_mut(at..at + now.len()) {
                to.copy_from_slice(now);
            }
            for byte in at..at + now.len() {
                if let Some(known) = page.known.get_mut(byte / 64) {
                    *known |= 1 << (byte % 64);
                }
            }
            (addr, rest) = (addr.wrapping_add(now.len() as u64), later);
        }
    }

    /// `len` bytes as a value, at most 8; what is not known reads as zero.
    #[must_use]
    pub fn read(&self, addr: u64, len: usize) -> u64 {
        let byte = |i: usize| self.byte(addr.wrapping_add(i as u64)).unwrap_or(0);
        (0..len.min(8)).fold(0, |sum, i| sum | u64::from(byte(i)) << (8 * i))
    }

    /// A byte, if it is known.
    #[must_use]
    pub fn byte(&self, addr: u64) -> Option<u8> {
        let page = self.pages.get(*self.index.get(&(addr / PAGE))? as usize)?;
        let at = (addr % PAGE) as usize;
        let known = page.known.get(at / 64)? >> (at % 64) & 1 != 0;
        page.bytes.get(at).copied().filter(|_| known)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Memory::new();
    }

    /// Pages of which something is known, by number, in order.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.index.keys().copied()
    }

    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        // Masked to the size of the array.
        #[allow(clippy::indexing_slicing)]
        let (known, place) = self.lately[number as usize % LATELY];
        let place = match known == number {
            true => place,
            false => self.find(number),
        };
        // Pages are never taken away.
        #[allow(clippy::indexing_slicing)]
        &mut self.pages[place as usize]
    }

    #[cold]
    fn find(&mut self, number: u64) -> u32 {
        let next = self.pages.len() as u32;
        let place = *self.index.entry(number).or_insert(next);
        if place == next {
            self.pages.push(Box::new(Page {
                bytes: [0; PAGE as usize],
                known: [0; PAGE as usize / 64],
            }));
        }
        // As above.
        #[allow(clippy::indexing_slicing)]
        {
            self.lately[number as usize % LATELY] = (number, place);
        }
        place
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_and_nothing_else() {
        let mut memory = Memory::new();
        memory.write(0x1ffe, 4, 0x1122_3344);
        memory.write(0x8000_0000, 1, 0xfff);
        assert_eq!(memory.read(0x1ffe, 4), 0x1122_3344);
        assert_eq!(memory.read(0x2000, 8), 0x1122);
        assert_eq!(memory.byte(0x2001), Some(0x11));
        assert_eq!(memory.byte(0x2002), None);
        assert_eq!(memory.byte(0x1ffd), None);
        assert_eq!(memory.read(0x8000_0000, 2), 0xff);
        assert_eq!(memory.pages().count(), 3);
    }

    /// After the last address comes the first.
    #[test]
    fn addresses_wrap() {
        let mut memory = Memory::new();
        memory.write(u64::MAX, 2, 0xabcd);
        assert_eq!(memory.byte(u64::MAX), Some(0xcd));
        assert_eq!(memory.byte(0), Some(0xab));
        assert_eq!(memory.read(u64::MAX, 2), 0xabcd);
    }

    /// Pages that share a place among those found lately.
    #[test]
    fn pages_do_not_mix() {
        let mut memory = Memory::new();
        for i in 0..1000u64 {
            memory.write(i * PAGE * 7, 8, i);
        }
        for i in 0..1000u64 {
            assert_eq!(memory.read(i * PAGE * 7, 8), i);
        }
    }
}
