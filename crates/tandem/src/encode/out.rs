//! Assembles a group.

use crate::item::Put;

/// More than the longest group of an encoder: sixteen registers, twelve CSRs
/// and sixteen accesses with addresses, data, requests and responses.
const ROOM: usize = 4096;

/// The bytes of one group.
#[derive(Clone, Debug)]
pub(super) struct Out {
    bytes: [u8; ROOM],
    len: usize,
}

impl Out {
    pub(super) const fn new() -> Out {
        Out {
            bytes: [0; ROOM],
            len: 0,
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// All the room there is.
    #[inline]
    pub(super) fn all(&mut self) -> &mut [u8; ROOM] {
        &mut self.bytes
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Put for Out {
    /// Always writes eight bytes, which is one instruction, and counts those
    /// that were meant.
    #[inline(always)]
    fn put(&mut self, width: usize, value: u64) {
        let rest = self.bytes.get_mut(self.len..);
        if let Some(eight) = rest.and_then(|rest| rest.first_chunk_mut::<8>()) {
            *eight = value.to_le_bytes();
            self.len += width;
        }
    }
}
