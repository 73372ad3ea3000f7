//! A short list without heap allocation.

use core::fmt;
use core::ops::Deref;

/// At most `N` values, stored in place.
#[derive(Clone, Copy)]
pub struct Few<T, const N: usize> {
    len: u8,
    items: [T; N],
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        const { assert!(N <= u8::MAX as usize) };
        Few {
            len: 0,
            items: [T::default(); N],
        }
    }

    /// An empty list for constants; `vacant` stands where no value is.
    #[must_use]
    pub(crate) const fn vacant(vacant: T) -> Self {
        Few {
            len: 0,
            items: [vacant; N],
        }
    }

    /// Adds a value at the end; a full list hands it back.
    ///
    /// # Errors
    ///
    /// The value, when there is no room for it.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.items.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = item;
                self.len += 1;
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Empties the list.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Becomes a copy of `other`, at the cost of the values in it and not of
    /// the room there is.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.len = other.len;
        for (to, from) in self.items.iter_mut().zip(other.iter()) {
            *to = *from;
        }
    }
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Few::new()
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.items.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for Few<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for Few<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_list_hands_back_what_does_not_fit() {
        let mut few = Few::<u32, 2>::new();
        assert_eq!(few.push(1), Ok(()));
        assert_eq!(few.push(2), Ok(()));
        assert_eq!(few.push(3), Err(3));
        assert_eq!(&*few, &[1, 2]);
        few.clear();
        assert!(few.is_empty());
    }

    #[test]
    fn a_copy_has_the_same_values() {
        let mut few = Few::<u32, 4>::new();
        let mut copy = few;
        for length in 0..=4 {
            copy.copy_from(&few);
            assert_eq!(copy, few, "{length} values");
            _ = few.push(length);
        }
        few.clear();
        copy.copy_from(&few);
        assert!(copy.is_empty());
    }
}
