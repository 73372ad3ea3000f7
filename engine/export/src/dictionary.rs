//! Dictionaries of columns: each value once, and keys in its place.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{Array as _, ArrayRef, DictionaryArray, StringArray};
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers of a column.
pub(crate) struct Numbers {
    /// The key after each place, plus one; 0 is empty. The size is a power of two.
    slots: Vec<u32>,
    pub(crate) values: Vec<u64>,
}

impl Numbers {
    pub(crate) fn new() -> Numbers {
        Numbers {
            slots: vec![0; 64],
            values: Vec::new(),
        }
    }

    /// The key of a number.
    #[inline]
    pub(crate) fn key(&mut self, value: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut place = Self::place(value, mask);
        loop {
            match self.slots.get(place).copied().unwrap_or(0) {
                0 => return self.add(value, place),
                key if self.values.get(key as usize - 1) == Some(&value) => return key - 1,
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[inline]
    const fn place(value: u64, mask: usize) -> usize {
        (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
    }

    fn add(&mut self, value: u64, place: usize) -> u32 {
        self.values.push(value);
        let count = self.values.len() as u32;
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = count;
        }
        if self.values.len() * 2 > self.slots.len() {
            self.grow();
        }
        count - 1
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![0; mask + 1];
        for (key, &value) in (1..).zip(&self.values) {
            let mut place = Self::place(value, mask);
            while let Some(slot) = self.slots.get_mut(place) {
                if *slot == 0 {
                    *slot = key;
                    break;
                }
                place = (place + 1) & mask;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        self.values.clear();
    }

    /// The values as a page.
    pub(crate) fn page(&self) -> Vec<u8> {
        let bytes = self.values.iter().flat_map(|value| value.to_le_bytes());
        bytes.collect()
    }
}

/// The names of a column. Batches have dictionaries of their own, mostly one after another the
/// same, with many names that the column does not have: a name is looked up once for each.
pub(crate) struct Names {
    known: HashMap<String, u32>,
    /// All of them as a page.
    page: Vec<u8>,
    /// The dictionary of the last batch, and the key of each of its names, plus one; 0 is
    /// not known yet.
    last: Option<ArrayRef>,
    keys: Vec<u32>,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names {
            known: HashMap::new(),
            page: Vec::new(),
            last: None,
            keys: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// All names as a page.
    pub(crate) fn page(&self) -> Vec<u8> {
        self.page.clone()
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.page.clear();
        self.keys.fill(0);
    }

    /// Adds the keys of the names of a batch, without nulls.
    pub(crate) fn add(&mut self, names: &DictionaryArray<Int32Type>, keys: &mut Vec<u32>) {
        let values = names.values();
        let is_last = self
            .last
            .as_ref()
            .is_some_and(|last| Arc::ptr_eq(last, values));
        if !is_last {
            self.keys.clear();
            self.keys.resize(values.len(), 0);
            self.last = Some(Arc::clone(values));
        }
        let Some(texts) = values.as_string_opt::<i32>() else {
            return;
        };
        let own = names.keys();
        match own.nulls() {
            None => keys.extend(own.values().iter().map(|key| self.key(*key, texts))),
            Some(_) => keys.extend(own.iter().flatten().map(|key| self.key(key, texts))),
        }
    }

    #[inline]
    fn key(&mut self, own: i32, texts: &StringArray) -> u32 {
        match self.keys.get(own as usize).copied() {
            Some(known) if known != 0 => known - 1,
            _ => self.find(own as usize, texts),
        }
    }

    #[cold]
    fn find(&mut self, own: usize, texts: &StringArray) -> u32 {
        let text = texts.value(own);
        let next = self.known.len() as u32;
        let key = *self.known.entry(text.to_owned()).or_insert_with(|| {
            self.page.extend((text.len() as u32).to_le_bytes());
            self.page.extend(text.as_bytes());
            next
        });
        if let Some(slot) = self.keys.get_mut(own) {
            *slot = key + 1;
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_key() {
        let mut numbers = Numbers::new();
        for round in 0..2 {
            for value in 0..5_000u64 {
                let key = numbers.key(value << 40 | value);
                assert_eq!(u64::from(key), value, "round {round}");
            }
        }
        assert_eq!(numbers.values.len(), 5_000);
        numbers.clear();
        assert_eq!(numbers.key(7), 0);
    }

    #[test]
    fn names_are_the_same_in_any_batch() {
        let mut names = Names::new();
        let mut keys = Vec::new();
        for texts in [["b", "a"], ["a", "c"]] {
            let texts = texts.map(Some).into_iter().chain([None]);
            names.add(&texts.collect(), &mut keys);
        }
        assert_eq!(keys, [0, 1, 1, 2]);
        assert_eq!(names.page(), b"\x01\0\0\0b\x01\0\0\0a\x01\0\0\0c");
    }
}
