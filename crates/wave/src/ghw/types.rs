//! The types of VHDL in a GHW file.

use super::Leaf;
use crate::bytes::Bytes;

/// Codes of types.
const B2: u8 = 22;
const E8: u8 = 23;
const I32: u8 = 25;
const I64: u8 = 26;
const F64: u8 = 27;
const P32: u8 = 28;
const P64: u8 = 29;
const ARRAY: u8 = 31;
const RECORD: u8 = 32;
const SUBTYPE_SCALAR: u8 = 34;
const SUBTYPE_ARRAY: u8 = 35;
const SUBTYPE_UNBOUNDED_ARRAY: u8 = 37;
const SUBTYPE_RECORD: u8 = 38;
const SUBTYPE_UNBOUNDED_RECORD: u8 = 39;

/// Types in each other.
pub(super) const MAX_DEPTH: usize = 32;

/// Types of a file, those that bounds make of others included.
const MAX_TYPES: usize = 1 << 20;

/// A type.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Leaf(Leaf),
    Array {
        /// The number of the type of its elements.
        element: usize,
        /// Its bounds; `None` where a subtype has them.
        range: Option<(i64, i64)>,
    },
    /// Names and types of its fields.
    Record(Vec<(usize, usize)>),
}

/// Whether a range has no element. Its direction is in its bounds, but for this.
pub(super) fn is_empty(range: Option<(i64, i64)>) -> bool {
    range == Some(EMPTY)
}

/// Stands for every range without elements: none has these bounds.
const EMPTY: (i64, i64) = (i64::MAX, i64::MIN);

/// All types of a file, from number 1 on.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// By number, and then those that bounds have made.
    types: Vec<Type>,
}

impl Types {
    pub(super) fn get(&self, number: usize) -> Option<&Type> {
        self.types.get(number.checked_sub(1)?)
    }

    /// The scalar with this number; `None` for others.
    pub(super) fn leaf(&self, number: usize) -> Option<Leaf> {
        match self.get(number)? {
            Type::Leaf(leaf) => Some(*leaf),
            _ => None,
        }
    }

    pub(super) fn read(
        bytes: &mut Bytes<'_>,
        count: usize,
        version: u8,
        texts: &[String],
    ) -> Option<Types> {
        // Each takes two bytes at least.
        if count > MAX_TYPES {
            return None;
        }
        // Those that bounds make are put aside: a number must stay that of its type.
        let mut made = Vec::new();
        let mut types = Types::default();
        for _ in 0..count {
            let code = bytes.byte()?;
            bytes.varint()?;
            let read = types.one(bytes, code, version, texts, (count, &mut made))?;
            types.types.push(read);
        }
        types.types.append(&mut made);
        // The section ends with a zero.
        (bytes.byte()? == 0).then_some(types)
    }

    fn one(
        &self,
        bytes: &mut Bytes<'_>,
        code: u8,
        version: u8,
        texts: &[String],
        made: (usize, &mut Vec<Type>),
    ) -> Option<Type> {
        Some(match code {
            B2 | E8 => {
                let count = bytes.small()?;
                let mut logic = count == 9;
                for at in 0..count {
                    let literal = texts.get(bytes.small()?)?;
                    let level = super::LEVELS.get(at).map(u8::to_ascii_uppercase);
                    logic &= literal.as_bytes().get(1).map(u8::to_ascii_uppercase) == level;
                }
                let bits = usize::BITS - count.saturating_sub(1).max(1).leading_zeros();
                Type::Leaf(match logic {
                    true => Leaf::Logic,
                    false => Leaf::Enum(u8::try_from(bits).ok().filter(|bits| *bits <= 8)?),
                })
            }
            I32 => Type::Leaf(Leaf::Integer(32)),
            I64 => Type::Leaf(Leaf::Integer(64)),
            F64 => Type::Leaf(Leaf::Real),
            P32 | P64 => {
                if version > 0 {
                    for _ in 0..bytes.small()? {
                        bytes.varint()?;
                        bytes.signed()?;
                    }
                }
                Type::Leaf(Leaf::Integer(if code == P32 { 32 } else { 64 }))
            }
            ARRAY => {
                let element = bytes.small()?;
                let dimensions = bytes.small()?;
                for _ in 0..dimensions {
                    bytes.varint()?;
                }
                // Of several dimensions, the others are as arrays of arrays.
                (dimensions == 1).then_some(())?;
                let range = None;
                Type::Array { element, range }
            }
            RECORD => {
                let mut fields = Vec::new();
                for _ in 0..bytes.small()? {
                    fields.push((bytes.small()?, bytes.small()?));
                }
                Type::Record(fields)
            }
            SUBTYPE_SCALAR => {
                let base = self.get(bytes.small()?)?.clone();
                range(bytes)?;
                base
            }
            SUBTYPE_ARRAY | SUBTYPE_RECORD => {
                let base = bytes.small()?;
                let (count, made) = made;
                self.bounded(bytes, base, 0, count, made)?
            }
            SUBTYPE_UNBOUNDED_ARRAY | SUBTYPE_UNBOUNDED_RECORD => self.get(bytes.small()?)?.clone(),
            _ => return None,
        })
    }

    /// A type with the bounds that follow, where it has none.
    fn bounded(
        &self,
        bytes: &mut Bytes<'_>,
        base: usize,
        depth: usize,
        count: usize,
        made: &mut Vec<Type>,
    ) -> Option<Type> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut part = |kind: usize, bytes: &mut Bytes<'_>| {
            if self.is_bounded(kind, 0)? {
                return Some(kind);
            }
            let bounded = self.bounded(bytes, kind, depth + 1, count, made)?;
            made.push(bounded);
            (made.len() < MAX_TYPES).then_some(count + made.len())
        };
        Some(match self.get(base)? {
            Type::Array { element, .. } => {
                let range = Some(range(bytes)?);
                let element = part(*element, bytes)?;
                Type::Array { element, range }
            }
            Type::Record(fields) => {
                let bounded = fields
                    .iter()
                    .map(|(name, kind)| Some((*name, part(*kind, bytes)?)));
                Type::Record(bounded.collect::<Option<_>>()?)
            }
            Type::Leaf(leaf) => Type::Leaf(*leaf),
        })
    }

    fn is_bounded(&self, number: usize, depth: usize) -> Option<bool> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match self.get(number)? {
            Type::Leaf(_) => true,
            Type::Array { range: None, .. } => false,
            Type::Array { element, .. } => self.is_bounded(*element, depth + 1)?,
            Type::Record(fields) => {
                for (_, kind) in fields {
                    if !self.is_bounded(*kind, depth + 1)? {
                        return Some(false);
                    }
                }
                true
            }
        })
    }
}

/// The bounds of a subtype, the left one first.
fn range(bytes: &mut Bytes<'_>) -> Option<(i64, i64)> {
    let code = bytes.byte()?;
    let downwards = code & 0x80 != 0;
    let (left, right) = match code & 0x7f {
        B2 | E8 => (bytes.byte()?.into(), bytes.byte()?.into()),
        I32 | I64 | P32 | P64 => (bytes.signed()?, bytes.signed()?),
        F64 => {
            bytes.take(16)?;
            (0, 0)
        }
        _ => return None,
    };
    let is_empty = match downwards {
        true => left < right,
        false => left > right,
    };
    Some(if is_empty { EMPTY } else { (left, right) })
}
