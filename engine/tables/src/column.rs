//! Columns as they are filled, row by row.
//!
//! A column that is not wanted takes no values. Names are numbers while rows are made; their
//! text is added once per batch, as the dictionary of the column.

use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::DataType;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// The type of names: text, stored once.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A column that is filled.
pub(crate) trait Column {
    /// Whether it may have nulls.
    const NULLABLE: bool;

    /// Its Arrow type.
    fn data_type() -> DataType;

    /// No rows yet.
    fn new(wanted: bool) -> Self;

    /// Its rows, or nothing if it is not wanted; it starts again. `functions` has the names
    /// of functions.
    fn take(&mut self, functions: &Arc<StringArray>) -> Option<ArrayRef>;
}

/// Numbers.
pub(crate) struct Numbers<T: ArrowPrimitiveType> {
    wanted: bool,
    values: Vec<T::Native>,
}

impl<T: ArrowPrimitiveType> Numbers<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: T::Native) {
        if self.wanted {
            self.values.push(value);
        }
    }

    /// Those of several rows.
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = T::Native>) {
        if self.wanted {
            self.values.extend(values);
        }
    }

    /// The numbers; the next ones have a place of the same size.
    fn values(&mut self) -> ScalarBuffer<T::Native> {
        let next = Vec::with_capacity(self.values.len());
        std::mem::replace(&mut self.values, next).into()
    }
}

impl<T: ArrowPrimitiveType> Column for Numbers<T> {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        T::DATA_TYPE
    }

    fn new(wanted: bool) -> Self {
        let values = Vec::new();
        Numbers { wanted, values }
    }

    fn take(&mut self, _: &Arc<StringArray>) -> Option<ArrayRef> {
        let wanted = self.wanted;
        wanted.then(|| Arc::new(PrimitiveArray::<T>::new(self.values(), None)) as _)
    }
}

/// Numbers that may be unknown.
pub(crate) struct Maybe<T: ArrowPrimitiveType> {
    numbers: Numbers<T>,
    known: Known,
}

/// Which numbers are known: mostly all of them, or none.
enum Known {
    /// Like the first.
    Same(bool),
    Each(NullBufferBuilder),
}

impl Known {
    /// One more, after so many.
    #[inline]
    fn push(&mut self, is_known: bool, before: usize) {
        match self {
            Known::Same(same) if *same == is_known => {}
            Known::Same(same) if before == 0 => *same = is_known,
            _ => self.push_other(is_known, before),
        }
    }

    /// Several more.
    fn extend(&mut self, are_known: impl Iterator<Item = bool> + Clone, before: usize) {
        let first = are_known.clone().next().unwrap_or(true);
        let is_like = match self {
            Known::Same(same) => before == 0 || *same == first,
            Known::Each(_) => false,
        };
        if is_like && are_known.clone().all(|is_known| is_known == first) {
            *self = Known::Same(first);
            return;
        }
        for (more, is_known) in are_known.enumerate() {
            self.push(is_known, before + more);
        }
    }

    fn push_other(&mut self, is_known: bool, before: usize) {
        if let Known::Same(same) = *self {
            let mut each = NullBufferBuilder::new(before);
            match same {
                true => each.append_n_non_nulls(before),
                false => each.append_n_nulls(before),
            }
            *self = Known::Each(each);
        }
        if let Known::Each(each) = self {
            each.append(is_known);
        }
    }

    /// Those of so many numbers that are not known.
    fn take(&mut self, count: usize) -> Option<NullBuffer> {
        match std::mem::replace(self, Known::Same(true)) {
            Known::Same(true) => None,
            Known::Same(false) => Some(NullBuffer::new_null(count)),
            Known::Each(mut each) => each.finish(),
        }
    }
}

impl<T: ArrowPrimitiveType> Maybe<T> {
    #[inline]
    pub(crate) fn push(&mut self, value: Option<T::Native>) {
        if self.numbers.wanted {
            self.known.push(value.is_some(), self.numbers.values.len());
            self.numbers.values.push(value.unwrap_or_default());
        }
    }

    /// Those of several rows.
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = Option<T::Native>> + Clone) {
        if self.numbers.wanted {
            let known = values.clone().map(|value| value.is_some());
            self.known.extend(known, self.numbers.values.len());
            let values = values.map(Option::unwrap_or_default);
            self.numbers.values.extend(values);
        }
    }

    fn array(&mut self) -> PrimitiveArray<T> {
        let values = self.numbers.values();
        let nulls = self.known.take(values.len());
        PrimitiveArray::new(values, nulls)
    }
}

impl<T: ArrowPrimitiveType> Column for Maybe<T> {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        T::DATA_TYPE
    }

    fn new(wanted: bool) -> Self {
        Maybe {
            numbers: Numbers::new(wanted),
            known: Known::Same(true),
        }
    }

    fn take(&mut self, _: &Arc<StringArray>) -> Option<ArrayRef> {
        let wanted = self.numbers.wanted;
        wanted.then(|| Arc::new(self.array()) as _)
    }
}

pub(crate) type U8 = Numbers<UInt8Type>;
pub(crate) type U32 = Numbers<UInt32Type>;
pub(crate) type U64 = Numbers<UInt64Type>;
pub(crate) type MaybeU32 = Maybe<UInt32Type>;
pub(crate) type MaybeU64 = Maybe<UInt64Type>;

/// Yes or no.
pub(crate) struct Flag {
    wanted: bool,
    values: Vec<bool>,
}

impl Flag {
    /// Those of several rows.
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = bool>) {
        if self.wanted {
            self.values.extend(values);
        }
    }
}

impl Column for Flag {
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn new(wanted: bool) -> Self {
        let values = Vec::new();
        Flag { wanted, values }
    }

    fn take(&mut self, _: &Arc<StringArray>) -> Option<ArrayRef> {
        let bit = |at: usize| self.values.get(at).copied().unwrap_or_default();
        let bits = BooleanBuffer::collect_bool(self.values.len(), bit);
        self.values.clear();
        self.wanted
            .then(|| Arc::new(BooleanArray::new(bits, None)) as _)
    }
}

/// Keys of names.
type Keys = Maybe<Int32Type>;

impl Keys {
    /// With their names, if they are wanted.
    fn named(&mut self, names: &Arc<StringArray>) -> Option<ArrayRef> {
        if !self.numbers.wanted {
            return None;
        }
        let keys = self.array();
        let rows = keys.len();
        // Every key was made for these names.
        let made = DictionaryArray::try_new(keys, Arc::clone(names) as _);
        Some(match made {
            Ok(array) => Arc::new(array),
            Err(_) => arrow_array::new_null_array(&name_type(), rows),
        })
    }
}

/// Functions by their keys; null where none is known.
pub(crate) struct Function(Keys);

impl Function {
    #[inline]
    pub(crate) fn push(&mut self, key: Option<i32>) {
        self.0.push(key);
    }

    /// Those of several rows.
    pub(crate) fn extend(&mut self, keys: impl Iterator<Item = Option<i32>> + Clone) {
        self.0.extend(keys);
    }
}

impl Column for Function {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        name_type()
    }

    fn new(wanted: bool) -> Self {
        Function(Keys::new(wanted))
    }

    fn take(&mut self, functions: &Arc<StringArray>) -> Option<ArrayRef> {
        self.0.named(functions)
    }
}

/// The words that a column may have.
pub(crate) trait Words {
    const LIST: &'static [&'static str];
}

/// One of a few words, by its place in the list.
pub(crate) struct Word<W> {
    keys: Keys,
    names: Arc<StringArray>,
    words: PhantomData<W>,
}

impl<W: Words> Word<W> {
    #[inline]
    pub(crate) fn push(&mut self, word: Option<u8>) {
        self.keys.push(word.map(i32::from));
    }

    /// Those of several rows.
    pub(crate) fn extend(&mut self, words: impl Iterator<Item = Option<u8>> + Clone) {
        self.keys.extend(words.map(|word| word.map(i32::from)));
    }
}

impl<W: Words> Column for Word<W> {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        name_type()
    }

    fn new(wanted: bool) -> Self {
        Word {
            keys: Keys::new(wanted),
            names: Arc::new(StringArray::from(W::LIST.to_vec())),
            words: PhantomData,
        }
    }

    fn take(&mut self, _: &Arc<StringArray>) -> Option<ArrayRef> {
        self.keys.named(&self.names)
    }
}

/// Text of which the same comes again and again.
pub(crate) struct Text {
    keys: Keys,
    known: HashMap<String, i32>,
    names: Vec<String>,
}

impl Text {
    pub(crate) fn push(&mut self, text: Option<&str>) {
        if !self.keys.numbers.wanted {
            return;
        }
        let key = text.map(|text| match self.known.get(text) {
            Some(key) => *key,
            None => {
                let key = self.names.len() as i32;
                self.known.insert(text.to_owned(), key);
                self.names.push(text.to_owned());
                key
            }
        });
        self.keys.push(key);
    }
}

impl Column for Text {
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        name_type()
    }

    fn new(wanted: bool) -> Self {
        Text {
            keys: Keys::new(wanted),
            known: HashMap::new(),
            names: Vec::new(),
        }
    }

    fn take(&mut self, _: &Arc<StringArray>) -> Option<ArrayRef> {
        let names = Arc::new(StringArray::from_iter_values(&self.names));
        let taken = self.keys.named(&names);
        self.known.clear();
        self.names.clear();
        taken
    }
}
