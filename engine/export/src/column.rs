//! A column of a Parquet file: the values of a row group, page by page.
//!
//! The writer of the `parquet` crate looks each value of a dictionary up by its hash, names as
//! well, though those of a batch have keys already. This one keeps the keys, and knows which of
//! few encodings suits each column; the headers and the footer are those of the crate.

use crate::dictionary::{Names, Numbers};
use crate::encoding::{delta, hybrid, width};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, types::ArrowPrimitiveType};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter as _};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Rows of a page.
const PAGE: usize = 1 << 15;

/// A dictionary of numbers is of no more use when it has so many.
const NUMBERS: usize = 1 << 16;

/// Compresses pages: one for all columns, since it has tables of some hundred kilobytes.
pub(crate) struct Press(Compressor<'static>);

impl Press {
    pub(crate) fn new() -> Result<Press> {
        Ok(Press(Compressor::new(
            ZstdLevel::default().compression_level(),
        )?))
    }
}

/// How a column is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Numbers as differences, not in a dictionary.
    pub(crate) is_delta: bool,
    /// Row groups have the least and the greatest value.
    pub(crate) has_statistics: bool,
}

/// The values of a page that are not null.
enum Values {
    /// 64 bits.
    Deltas(Vec<u64>),
    /// 32 bits or fewer.
    Narrow(Vec<u64>),
    Numbers(Numbers, Vec<u32>),
    Names(Box<Names>, Vec<u32>),
    Flags(Vec<u32>),
}

/// Which rows of a page are not null: mostly all of them, or none.
enum Known {
    Same(bool),
    /// 1 for each that is not null.
    Each(Vec<u32>),
}

/// A column of a row group.
pub(crate) struct Column {
    description: ColumnDescPtr,
    form: Form,
    /// The encoding of the next page.
    values: Values,
    known: Known,
    /// Rows of the page.
    rows: usize,
    chunk: Chunk,
}

/// The pages of a row group.
#[derive(Default)]
struct Chunk {
    pages: Vec<u8>,
    rows: usize,
    nulls: usize,
    /// The least and the greatest value.
    range: Option<(u64, u64)>,
    /// Bytes of the pages before they were compressed.
    plain: usize,
    /// Some pages are compressed.
    is_compressed: bool,
    encodings: Vec<Encoding>,
    /// The page of the dictionary, and how many values it has.
    dictionary: Option<(Vec<u8>, usize)>,
}

impl Chunk {
    /// The bytes of a page, smaller if they can be.
    fn squeeze(&mut self, plain: Vec<u8>, press: &mut Press) -> Result<(Vec<u8>, bool)> {
        if plain.is_empty() {
            return Ok((plain, false));
        }
        let squeezed = press.0.compress(&plain)?;
        // What hardly shrinks is read faster as it is.
        let helps = squeezed.len() + plain.len() / 32 < plain.len();
        self.is_compressed |= helps;
        Ok(match helps {
            true => (squeezed, true),
            false => (plain, false),
        })
    }

    /// Adds a page of which so many bytes were there before it was compressed.
    fn write(&mut self, page: Page, plain: usize) -> Result<()> {
        let mut out = TrackedWrite::new(std::mem::take(&mut self.pages));
        let spec = SerializedPageWriter::new(&mut out);
        let spec = { spec }.write_page(CompressedPage::new(page, plain))?;
        self.pages = out.into_inner()?;
        self.plain += spec.uncompressed_size;
        Ok(())
    }

    /// Writes the dictionary before the other pages; its length.
    fn write_dictionary(&mut self, press: &mut Press) -> Result<Option<i64>> {
        let Some((page, count)) = self.dictionary.take() else {
            return Ok(None);
        };
        self.note(Encoding::PLAIN);
        let plain = page.len();
        let squeezed = press.0.compress(&page)?;
        // Unlike other pages, it is compressed if the chunk is.
        let is_compressed = self.is_compressed || squeezed.len() < plain;
        self.is_compressed = is_compressed;
        let page = Page::DictionaryPage {
            buf: Bytes::from(if is_compressed { squeezed } else { page }),
            num_values: count as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let after = std::mem::take(&mut self.pages);
        self.write(page, plain)?;
        let length = self.pages.len() as i64;
        self.pages.extend(after);
        Ok(Some(length))
    }

    fn note(&mut self, encoding: Encoding) {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
    }

    fn cover(&mut self, values: &[u64]) {
        for &value in values {
            let (least, greatest) = self.range.unwrap_or((value, value));
            self.range = Some((least.min(value), greatest.max(value)));
        }
    }
}

impl Known {
    /// More rows, after so many; `nulls` are those of them that are null.
    fn add(&mut self, before: usize, array: &dyn Array) {
        let same = match array.null_count() {
            0 => Some(true),
            nulls if nulls == array.len() => Some(false),
            _ => None,
        };
        match (&mut *self, same) {
            (Known::Same(known), Some(same)) if before == 0 => *known = same,
            (Known::Same(known), Some(same)) if *known == same => {}
            (Known::Same(known), _) => {
                *self = Known::Each(vec![u32::from(*known); before]);
                self.add_each(array);
            }
            _ => self.add_each(array),
        }
    }

    fn add_each(&mut self, array: &dyn Array) {
        let Known::Each(each) = self else { return };
        match array.nulls() {
            Some(nulls) => each.extend(nulls.iter().map(u32::from)),
            None => each.resize(each.len() + array.len(), 1),
        }
    }

    /// As definition levels of so many rows.
    fn levels(&self, rows: usize) -> Vec<u8> {
        let mut levels = Vec::new();
        match self {
            Known::Same(same) => hybrid(&mut levels, 1, &vec![u32::from(*same); rows]),
            Known::Each(each) => hybrid(&mut levels, 1, each),
        }
        levels
    }
}

impl Values {
    fn new(data_type: &DataType, is_delta: bool) -> Result<Values> {
        Ok(match data_type {
            DataType::UInt64 if is_delta => Values::Deltas(Vec::new()),
            DataType::UInt64 => Values::Numbers(Numbers::new(), Vec::new()),
            DataType::UInt32 | DataType::UInt8 => Values::Narrow(Vec::new()),
            DataType::Boolean => Values::Flags(Vec::new()),
            DataType::Dictionary(..) => Values::Names(Box::new(Names::new()), Vec::new()),
            other => return Err(ParquetError::NYI(format!("a column of {other}"))),
        })
    }

    fn len(&self) -> usize {
        match self {
            Values::Deltas(values) | Values::Narrow(values) => values.len(),
            Values::Numbers(_, keys) | Values::Names(_, keys) | Values::Flags(keys) => keys.len(),
        }
    }

    fn add(&mut self, array: &dyn Array) {
        match self {
            Values::Deltas(values) => numbers::<UInt64Type, _>(array, values, |value| value),
            Values::Narrow(values) => match array.data_type() {
                DataType::UInt8 => numbers::<UInt8Type, _>(array, values, u64::from),
                _ => numbers::<UInt32Type, _>(array, values, u64::from),
            },
            Values::Numbers(dictionary, keys) => {
                numbers::<UInt64Type, _>(array, keys, |value| dictionary.key(value));
            }
            Values::Names(names, keys) => {
                if let Some(array) = array.as_dictionary_opt::<Int32Type>() {
                    names.add(array, keys);
                }
            }
            Values::Flags(flags) => {
                let array = array.as_boolean_opt().into_iter().flatten();
                flags.extend(array.flatten().map(u32::from));
            }
        }
    }

    /// The values as a page; none are left.
    fn take_page(&mut self) -> (Encoding, Vec<u8>) {
        let mut page = Vec::new();
        let encoding = match self {
            Values::Deltas(values) => {
                delta::<false>(&mut page, values);
                values.clear();
                Encoding::DELTA_BINARY_PACKED
            }
            Values::Narrow(values) => {
                delta::<true>(&mut page, values);
                values.clear();
                Encoding::DELTA_BINARY_PACKED
            }
            Values::Numbers(Numbers { values, .. }, keys) => {
                indices(&mut page, values.len(), keys);
                Encoding::RLE_DICTIONARY
            }
            Values::Names(names, keys) => {
                indices(&mut page, names.len(), keys);
                Encoding::RLE_DICTIONARY
            }
            Values::Flags(flags) => {
                // Four bytes have the length.
                page.resize(4, 0);
                hybrid(&mut page, 1, flags);
                let length = (page.len() as u32 - 4).to_le_bytes();
                page.splice(..4, length);
                flags.clear();
                Encoding::RLE
            }
        };
        (encoding, page)
    }

    /// The dictionary as a page, and how many values it has; it is empty after that.
    fn take_dictionary(&mut self) -> Option<(Vec<u8>, usize)> {
        let (page, count) = match self {
            Values::Numbers(numbers, _) => {
                let taken = (numbers.page(), numbers.values.len());
                numbers.clear();
                taken
            }
            Values::Names(names, _) => {
                let taken = (names.page(), names.len());
                names.clear();
                taken
            }
            _ => return None,
        };
        (count > 0).then_some((page, count))
    }
}

/// Keys of a dictionary of so many values.
fn indices(page: &mut Vec<u8>, count: usize, keys: &mut Vec<u32>) {
    let width = width(count);
    page.push(width as u8);
    hybrid(page, width, keys);
    keys.clear();
}

/// Adds what the numbers of an array that are not null are written as.
fn numbers<T: ArrowPrimitiveType, W>(
    array: &dyn Array,
    out: &mut Vec<W>,
    write: impl FnMut(T::Native) -> W,
) {
    let Some(array) = array.as_primitive_opt::<T>() else {
        return;
    };
    let array: &PrimitiveArray<T> = array;
    match array.nulls() {
        None => out.extend(array.values().iter().copied().map(write)),
        Some(nulls) if nulls.null_count() == nulls.len() => {}
        Some(_) => out.extend(array.iter().flatten().map(write)),
    }
}

impl Column {
    /// A column without rows.
    pub(crate) fn new(
        description: ColumnDescPtr,
        data_type: &DataType,
        form: Form,
    ) -> Result<Column> {
        Ok(Column {
            description,
            form,
            values: Values::new(data_type, form.is_delta)?,
            known: Known::Same(true),
            rows: 0,
            chunk: Chunk::default(),
        })
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, array: &dyn Array, press: &mut Press) -> Result<()> {
        self.known.add(self.rows, array);
        self.values.add(array);
        self.rows += array.len();
        match self.rows >= PAGE {
            true => self.end_page(press),
            false => Ok(()),
        }
    }

    fn is_nullable(&self) -> bool {
        self.description.max_def_level() > 0
    }

    fn end_page(&mut self, press: &mut Press) -> Result<()> {
        self.choose();
        let rows = std::mem::take(&mut self.rows);
        let nulls = rows - self.values.len();
        if self.form.has_statistics
            && let Values::Deltas(values) = &self.values
        {
            self.chunk.cover(values);
        }
        let mut levels = match self.is_nullable() {
            true => self.known.levels(rows),
            false => Vec::new(),
        };
        self.known = Known::Same(true);
        // Without values, a page needs no dictionary.
        let (encoding, page) = match nulls == rows {
            true => (Encoding::PLAIN, Vec::new()),
            false => self.values.take_page(),
        };
        self.chunk.note(encoding);
        let (level_bytes, plain) = (levels.len(), levels.len() + page.len());
        let (page, is_compressed) = self.chunk.squeeze(page, press)?;
        levels.extend(page);
        self.chunk.rows += rows;
        self.chunk.nulls += nulls;
        let page = Page::DataPageV2 {
            buf: Bytes::from(levels),
            num_values: rows as u32,
            encoding,
            num_nulls: nulls as u32,
            num_rows: rows as u32,
            def_levels_byte_len: level_bytes as u32,
            rep_levels_byte_len: 0,
            is_compressed,
            statistics: None,
        };
        self.chunk.write(page, plain)?;
        if let Values::Numbers(numbers, _) = &self.values
            && numbers.values.len() > NUMBERS
        {
            self.end_dictionary();
            self.values = Values::Deltas(Vec::new());
        }
        Ok(())
    }

    /// A dictionary of numbers that hardly come again is not begun.
    fn choose(&mut self) {
        let Values::Numbers(numbers, keys) = &self.values else {
            return;
        };
        let is_first = self.chunk.rows == self.chunk.nulls;
        if is_first && numbers.values.len() * 2 > keys.len() {
            let values = keys.iter().map(|key| numbers.values.get(*key as usize));
            self.values = Values::Deltas(values.flatten().copied().collect());
        }
    }

    /// The pages have a dictionary, and those that follow do not add to it.
    fn end_dictionary(&mut self) {
        if self.form.has_statistics
            && let Values::Numbers(numbers, _) = &self.values
        {
            self.chunk.cover(&numbers.values);
        }
        if let Some(dictionary) = self.values.take_dictionary() {
            self.chunk.dictionary = Some(dictionary);
        }
    }

    /// The pages of a row group, with what the footer says about them; the next one begins.
    pub(crate) fn end_chunk(&mut self, press: &mut Press) -> Result<(Bytes, ColumnCloseResult)> {
        if self.rows > 0 {
            self.end_page(press)?;
        }
        self.end_dictionary();
        if !self.form.is_delta
            && let Values::Deltas(_) = self.values
        {
            self.values = Values::Numbers(Numbers::new(), Vec::new());
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        let dictionary = chunk.write_dictionary(press)?;
        let range = chunk.range.map(|(least, most)| (least as i64, most as i64));
        let codec = match chunk.is_compressed {
            true => Compression::ZSTD(ZstdLevel::default()),
            false => Compression::UNCOMPRESSED,
        };
        let mut metadata = ColumnChunkMetaData::builder(self.description.clone())
            .set_encodings(chunk.encodings)
            .set_compression(codec)
            .set_num_values(chunk.rows as i64)
            .set_total_compressed_size(chunk.pages.len() as i64)
            .set_total_uncompressed_size(chunk.plain as i64)
            .set_dictionary_page_offset(dictionary.map(|_| 0))
            .set_data_page_offset(dictionary.unwrap_or(0));
        if self.form.has_statistics {
            let (least, most) = range.unzip();
            let nulls = Some(chunk.nulls as u64);
            metadata = metadata.set_statistics(Statistics::int64(least, most, None, nulls, false));
        }
        let close = ColumnCloseResult {
            bytes_written: chunk.pages.len() as u64,
            rows_written: chunk.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((Bytes::from(chunk.pages), close))
    }
}
