//! The types of VHDL in a GHW file.

use crate::bytes::Bytes;
use crate::header::Leaf;

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
fn is_empty(range: Option<(i64, i64)>) -> bool {
    range == Some(EMPTY)
}

/// Stands for every range without elements: none has these bounds.
const EMPTY: (i64, i64) = (i64::MAX, i64::MIN);

/// All types of a file, from number 1 on.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Types that the file has.
    count: usize,
    /// Those that were read.
    types: Vec<Known>,
    /// Those that bounds and further dimensions make of others, from number `count + 1` on.
    made: Vec<Known>,
}

/// A type, and what follows from its parts. That is looked at once: a few types in each other
/// may have more parts than could ever be looked at.
#[derive(Clone, Debug)]
struct Known {
    kind: Type,
    /// It has bounds, and so have its parts.
    is_bounded: bool,
    /// It has no scalar.
    is_empty: bool,
}

impl Types {
    fn known(&self, number: usize) -> Option<&Known> {
        match number.checked_sub(self.count + 1) {
            Some(at) => self.made.get(at),
            None => self.types.get(number.checked_sub(1)?),
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&Type> {
        Some(&self.known(number)?.kind)
    }

    /// Whether a type has no scalars: nothing in the file stands for a signal of it.
    pub(super) fn is_empty(&self, number: usize) -> bool {
        self.known(number).is_some_and(|known| known.is_empty)
    }

    /// A type whose parts are known. The parts of a record that have no scalars are left out.
    fn examine(&self, mut kind: Type) -> Option<Known> {
        let (is_bounded, is_empty) = match &mut kind {
            Type::Leaf(_) => (true, false),
            Type::Array { element, range } => {
                let element = self.known(*element)?;
                let empty = is_empty(*range) || element.is_empty;
                (range.is_some() && element.is_bounded, empty)
            }
            Type::Record(fields) => {
                let mut is_bounded = true;
                for (_, kind) in fields.iter() {
                    is_bounded &= self.known(*kind)?.is_bounded;
                }
                fields.retain(|(_, kind)| !self.is_empty(*kind));
                (is_bounded, fields.is_empty())
            }
        };
        Some(Known {
            kind,
            is_bounded,
            is_empty,
        })
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
        let mut types = Types {
            count,
            ..Types::default()
        };
        for _ in 0..count {
            let code = bytes.byte()?;
            bytes.varint()?;
            let read = types.one(bytes, code, version, texts)?;
            let read = types.examine(read)?;
            types.types.push(read);
        }
        // The section ends with a zero.
        (bytes.byte()? == 0).then_some(types)
    }

    /// The number of a type that the file does not have itself.
    fn make(&mut self, made: Type) -> Option<usize> {
        let made = self.examine(made)?;
        self.made.push(made);
        (self.made.len() < MAX_TYPES).then_some(self.count + self.made.len())
    }

    fn one(
        &mut self,
        bytes: &mut Bytes<'_>,
        code: u8,
        version: u8,
        texts: &[String],
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
                let mut element = bytes.small()?;
                let range = None;
                // Of several dimensions, the last ones are arrays in the first: bounds and
                // elements have the same order.
                for at in 0..bytes.small()? {
                    bytes.varint()?;
                    if at > 0 {
                        element = self.make(Type::Array { element, range })?;
                    }
                }
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
                self.bounded(bytes, base, 0)?
            }
            SUBTYPE_UNBOUNDED_ARRAY | SUBTYPE_UNBOUNDED_RECORD => self.get(bytes.small()?)?.clone(),
            _ => return None,
        })
    }

    /// A type with the bounds that follow, where it has none.
    fn bounded(&mut self, bytes: &mut Bytes<'_>, base: usize, depth: usize) -> Option<Type> {
        if depth > MAX_DEPTH {
            return None;
        }
        Some(match self.get(base)?.clone() {
            Type::Array { element, .. } => {
                let range = Some(range(bytes)?);
                let element = self.part(bytes, element, depth)?;
                Type::Array { element, range }
            }
            Type::Record(mut fields) => {
                for (_, kind) in &mut fields {
                    *kind = self.part(bytes, *kind, depth)?;
                }
                Type::Record(fields)
            }
            leaf @ Type::Leaf(_) => leaf,
        })
    }

    /// The number of a part of a type, with its bounds.
    fn part(&mut self, bytes: &mut Bytes<'_>, kind: usize, depth: usize) -> Option<usize> {
        if self.known(kind)?.is_bounded {
            return Some(kind);
        }
        let bounded = self.bounded(bytes, kind, depth + 1)?;
        self.make(bounded)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of a file whose texts are all empty.
    fn read(types: &[&[u8]]) -> Option<Types> {
        let mut bytes = types.concat();
        bytes.push(0);
        Types::read(&mut Bytes::new(&bytes), types.len(), 1, &[String::new()])
    }

    const LEAF: &[u8] = &[E8, 0, 1, 0];
    /// An array of type 1, without bounds.
    const ARRAY_OF_LEAVES: &[u8] = &[ARRAY, 0, 1, 1, 1];

    #[test]
    fn dimensions_are_arrays_in_each_other() {
        let two = [ARRAY, 0, 1, 2, 1, 1];
        // 0 to 1, 5 downto 3
        let bounded = [SUBTYPE_ARRAY, 0, 2, I32, 0, 1, I32 | 0x80, 5, 3];
        let types = read(&[LEAF, &two, &bounded]).unwrap();
        let Some(Type::Array { element, range }) = types.get(3) else {
            panic!("{types:?}");
        };
        assert_eq!(*range, Some((0, 1)));
        let Some(Type::Array { element, range }) = types.get(*element) else {
            panic!("{types:?}");
        };
        assert_eq!((*element, *range), (1, Some((5, 3))));
    }

    /// Forty records of two each, one in the other: looked at one by one, their parts would
    /// never end.
    #[test]
    fn parts_are_looked_at_once() {
        let empty: &[u8] = &[SUBTYPE_ARRAY, 0, 2, I32, 1, 0];
        for (first, is_empty) in [(LEAF, false), (empty, true)] {
            let mut types = vec![LEAF.to_vec(), ARRAY_OF_LEAVES.to_vec(), first.to_vec()];
            for number in 3..43 {
                types.push(vec![RECORD, 0, 2, 0, number, 0, number]);
            }
            let types: Vec<&[u8]> = types.iter().map(Vec::as_slice).collect();
            let types = read(&types).unwrap();
            assert_eq!(types.is_empty(43), is_empty);
            assert!(types.known(43).unwrap().is_bounded);
        }
    }

    #[test]
    fn a_type_that_comes_later_is_no_part() {
        assert!(read(&[&[RECORD, 0, 1, 0, 2], LEAF]).is_none());
        assert!(read(&[&[ARRAY, 0, 1, 1, 1], LEAF]).is_none());
    }
}
