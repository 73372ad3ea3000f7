//! Loads and stores in few bytes.

use crate::{Access, AccessKind, DataAccess, Part};

/// Loads and stores of which all parts are known. Most accesses of a data trace are such.
/// What they are is kept apart from their values, so that a consumer that does not look at
/// values costs one byte for each.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainAccesses<'a> {
    forms: &'a [PlainForm],
    /// As many, or none: then they are 0.
    values: &'a [PlainValues],
}

/// The values of a plain access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainValues {
    /// The address; 0 if the trace does not report it.
    pub addr: u64,
    /// The value, zero-extended; 0 if the trace does not report it.
    pub data: u64,
}

/// What a plain access does, its size, and what of it is reported.
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

    /// Whether kind and size are the same.
    #[inline(always)]
    pub(crate) const fn is_alike(self, other: PlainForm) -> bool {
        (self.0 ^ other.0) & SAME == 0
    }

    /// The access of this form with these values.
    #[inline]
    const fn access(self, values: PlainValues) -> DataAccess {
        let form = self.0;
        DataAccess {
            insn: None,
            access: Access {
                kind: match form & 1 {
                    0 => AccessKind::Load,
                    _ => AccessKind::Store,
                },
                size: form >> 1 & 7,
                addr: values.addr,
                paddr: None,
                data: match form & HAS_DATA {
                    0 => None,
                    _ => Some(values.data),
                },
                operand: None,
            },
            has_address: form & HAS_ADDRESS != 0,
            part: Part::Whole,
        }
    }
}

impl<'a> PlainAccesses<'a> {
    /// Accesses of these forms. There are as many values, or none where no consumer looks at
    /// them.
    #[must_use]
    pub const fn new(forms: &'a [PlainForm], values: &'a [PlainValues]) -> PlainAccesses<'a> {
        PlainAccesses { forms, values }
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.forms.len()
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.forms.is_empty()
    }

    /// The accesses, without instructions.
    pub fn iter(self) -> impl Iterator<Item = DataAccess> + 'a {
        let values = self.values.iter().copied();
        let values = values.chain(core::iter::repeat(PlainValues::default()));
        let both = self.forms.iter().zip(values);
        both.map(|(form, values)| form.access(values))
    }

    /// What they are.
    #[inline]
    pub(crate) const fn forms(self) -> &'a [PlainForm] {
        self.forms
    }

    /// Their values: as many, or none.
    #[inline]
    pub(crate) const fn values(self) -> &'a [PlainValues] {
        self.values
    }

    /// The first so many, and the rest; `None` if there are fewer.
    #[inline(always)]
    pub(crate) fn split(self, count: usize) -> Option<(PlainAccesses<'a>, PlainAccesses<'a>)> {
        let (forms, other_forms) = self.forms.split_at_checked(count)?;
        let (values, other_values) = self.values.split_at_checked(count).unwrap_or_default();
        Some((
            PlainAccesses::new(forms, values),
            PlainAccesses::new(other_forms, other_values),
        ))
    }
}

/// The forms of eight accesses or fewer, to be compared at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormWord {
    forms: u64,
    /// The bits that are compared.
    mask: u64,
}

/// Forms in a word.
pub(crate) const FORMS: usize = 8;

impl FormWord {
    /// Of the first eight of these.
    pub(crate) fn new(forms: impl Iterator<Item = PlainForm>) -> FormWord {
        let mut word = FormWord { forms: 0, mask: 0 };
        for (form, at) in forms.zip(0..FORMS) {
            word.forms |= u64::from(form.0) << (8 * at);
            word.mask |= u64::from(SAME) << (8 * at);
        }
        word
    }

    /// Whether the first of these have the same kinds and sizes.
    #[inline(always)]
    pub(crate) fn is_alike(self, forms: &[PlainForm]) -> bool {
        let word = match forms.first_chunk::<FORMS>() {
            Some(forms) => u64::from_le_bytes(forms.map(|form| form.0)),
            None => FormWord::of_few(forms),
        };
        (word ^ self.forms) & self.mask == 0
    }

    /// Fewer than eight.
    #[inline(never)]
    fn of_few(forms: &[PlainForm]) -> u64 {
        FormWord::new(forms.iter().copied()).forms
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
