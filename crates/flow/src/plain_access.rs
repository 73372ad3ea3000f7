//! Loads and stores in few bytes.

use crate::{Access, AccessKind, DataAccess, Part};

/// A load or store of which all parts are known. Most accesses of a data trace are such,
/// and are kept in this form, which is a third of the size of a [`DataAccess`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainAccess {
    /// The address; 0 if the trace does not report it.
    pub addr: u64,
    /// The value, zero-extended; 0 if the trace does not report it.
    pub data: u64,
    /// What it does, its size, and what of it is reported.
    pub form: PlainForm,
}

/// What a [`PlainAccess`] has besides its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainForm(u8);

/// Bit 0: a store; bits 1 to 3: log2 of the size.
const SAME: u8 = 0xf;
/// The address is reported.
const HAS_ADDRESS: u8 = 1 << 4;
/// The value is reported.
const HAS_DATA: u8 = 1 << 5;

impl PlainForm {
    /// No load or store has this form.
    pub const ABSENT: PlainForm = PlainForm(0xff);

    /// `None` if it is no load or store of at most 64 bytes; `size` is log2 of the size.
    #[must_use]
    pub const fn new(
        kind: AccessKind,
        size: u8,
        has_address: bool,
        has_data: bool,
    ) -> Option<PlainForm> {
        let store = match kind {
            AccessKind::Load => 0,
            AccessKind::Store => 1,
            _ => return None,
        };
        if size > 6 {
            return None;
        }
        let address = if has_address { HAS_ADDRESS } else { 0 };
        let data = if has_data { HAS_DATA } else { 0 };
        Some(PlainForm(store | size << 1 | address | data))
    }

    /// Of an access of this kind and size, to be compared with others; [`PlainForm::ABSENT`]
    /// if none has it.
    pub(crate) fn of(kind: AccessKind, size: u8) -> PlainForm {
        PlainForm::new(kind, size, true, true).unwrap_or(PlainForm::ABSENT)
    }

    /// 0 if kind and size are the same.
    #[inline(always)]
    pub(crate) const fn difference(self, other: PlainForm) -> u8 {
        (self.0 ^ other.0) & SAME
    }
}

impl PlainAccess {
    /// The same as an access of the instruction with this index in its run.
    #[must_use]
    #[inline]
    pub const fn access(&self, insn: Option<u32>) -> DataAccess {
        let form = self.form.0;
        DataAccess {
            insn,
            access: Access {
                kind: match form & 1 {
                    0 => AccessKind::Load,
                    _ => AccessKind::Store,
                },
                size: form >> 1 & 7,
                addr: self.addr,
                paddr: None,
                data: match form & HAS_DATA {
                    0 => None,
                    _ => Some(self.data),
                },
                operand: None,
            },
            has_address: form & HAS_ADDRESS != 0,
            part: Part::Whole,
        }
    }
}

/// Accesses in one slice.
const SLICE: usize = 8;

/// Gives accesses in slices.
pub(crate) fn in_slices(
    accesses: impl Iterator<Item = DataAccess>,
    mut give: impl FnMut(&[DataAccess]),
) {
    let mut room = [DataAccess::of(0, Access::default()); SLICE];
    let mut accesses = accesses;
    loop {
        let mut count = 0;
        for (to, access) in room.iter_mut().zip(&mut accesses) {
            *to = access;
            count += 1;
        }
        if count > 0 {
            give(room.get(..count).unwrap_or_default());
        }
        if count < SLICE {
            return;
        }
    }
}
