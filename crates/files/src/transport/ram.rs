//! The circular buffer of a RAM sink, as defined by the Trace Control Interface
//! (trRamControl, trRamStart, trRamLimit, trRamWP).

use crate::program::parse_address;
use std::fmt;

/// The registers that say what a dump of the buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamSink {
    /// trRamStart: address of the first word.
    pub start: u64,
    /// trRamLimit: address of the last word, which is part of the buffer.
    pub limit: u64,
    /// trRamWP without its lowest bits: where the next word goes.
    pub write_pointer: u64,
    /// trRamWrap, bit 0 of trRamWPLow: the pointer went back to the start.
    pub wrapped: bool,
    /// trRamStopOnWrap: the sink stopped when the buffer was full. Nothing in it
    /// was overwritten, if it was filled from its start.
    pub stop_on_wrap: bool,
    /// Bytes of a word (A): 4, or a larger power of two for system memory.
    pub word: u32,
}

/// A dump in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwrapped<'a> {
    /// What was written first.
    pub older: &'a [u8],
    /// What was written after it.
    pub newer: &'a [u8],
    /// What came before `older` was overwritten, perhaps the start of a message.
    pub is_cut: bool,
}

/// Registers and a dump that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RamError {
    /// The word is not a power of two of at least four bytes.
    Word,
    /// An address is not that of a word.
    Unaligned,
    /// The limit is below the start, or the buffer as large as all memory.
    Limit,
    /// The write pointer is outside of the buffer.
    Pointer,
    /// The dump does not have the size of the buffer.
    Size {
        /// Bytes of the buffer.
        expected: u64,
        /// Bytes of the dump.
        found: u64,
    },
}

impl fmt::Display for RamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RamError::Word => f.write_str("a word has 4 bytes or a larger power of two"),
            RamError::Unaligned => f.write_str(
                "start, limit and write pointer must be aligned \
                to words",
            ),
            RamError::Limit => f.write_str(
                "the limit is the last word and must not be below \
                the start",
            ),
            RamError::Pointer => f.write_str("the write pointer is outside the buffer"),
            RamError::Size { expected, found } => {
                write!(f, "the buffer has {expected} bytes, the dump {found}")
            }
        }
    }
}

impl std::error::Error for RamError {}

impl RamSink {
    /// From the values of trRamStart, trRamLimit and trRamWP, with words of four
    /// bytes.
    #[must_use]
    pub const fn from_registers(start: u64, limit: u64, wp: u64) -> RamSink {
        RamSink {
            start: start & !3,
            limit: limit & !3,
            write_pointer: wp & !3,
            wrapped: wp & 1 != 0,
            stop_on_wrap: false,
            word: 4,
        }
    }

    /// From `START:LIMIT[:WP[:wrap]]`. Without a write pointer, the buffer is empty.
    ///
    /// # Errors
    ///
    /// Registers that make no sense, or `None` for another text.
    pub fn parse(text: &str) -> Result<RamSink, Option<RamError>> {
        let mut parts = text.split(':');
        let mut number = || parts.next().map(|text| parse_address(text).ok_or(None));
        let start = number().unwrap_or(Err(None))?;
        let limit = number().unwrap_or(Err(None))?;
        let pointer = number().unwrap_or(Ok(start))?;
        let mut ram = RamSink::from_registers(start, limit, pointer);
        match (parts.next(), parts.next()) {
            (None, _) => {}
            (Some("wrap"), None) => ram.wrapped = true,
            _ => return Err(None),
        }
        ram.size().map_err(Some)?;
        Ok(ram)
    }

    /// Bytes of the buffer.
    ///
    /// # Errors
    ///
    /// Registers that make no sense.
    pub fn size(&self) -> Result<u64, RamError> {
        let word = u64::from(self.word);
        if word < 4 || !word.is_power_of_two() {
            return Err(RamError::Word);
        }
        if !(self.start | self.limit | self.write_pointer).is_multiple_of(word) {
            return Err(RamError::Unaligned);
        }
        let last = self.limit.checked_sub(self.start).ok_or(RamError::Limit)?;
        let size = last.checked_add(word).ok_or(RamError::Limit)?;
        if !(self.start..=self.limit).contains(&self.write_pointer) {
            return Err(RamError::Pointer);
        }
        Ok(size)
    }

    /// Puts a dump of the buffer, from its start to its limit, into the order of
    /// time.
    ///
    /// # Errors
    ///
    /// Registers and sizes that do not fit together.
    ///
    /// ```
    /// use hartrace_files::transport::RamSink;
    ///
    /// let ram = RamSink::from_registers(0x100, 0x104, 0x105);
    /// let dump = [0x0c, 0x07, 0x10, 0x05, 0x07, 0x0c, 0x0c, 0x07];
    /// let trace = ram.unwrap(&dump).unwrap();
    /// assert_eq!(trace.older, [0x07, 0x0c, 0x0c, 0x07]);
    /// assert_eq!(trace.newer, [0x0c, 0x07, 0x10, 0x05]);
    /// assert_eq!(trace.messages()[0], [0x0c, 0x0c, 0x07]);
    /// ```
    pub fn unwrap<'a>(&self, dump: &'a [u8]) -> Result<Unwrapped<'a>, RamError> {
        let expected = self.size()?;
        let found = dump.len() as u64;
        let size = RamError::Size { expected, found };
        if found != expected {
            return Err(size);
        }
        let at = (self.write_pointer - self.start) as usize;
        let (low, high) = dump.split_at_checked(at).ok_or(size)?;
        if !self.wrapped {
            return Ok(Unwrapped {
                older: low,
                newer: &[],
                is_cut: false,
            });
        }
        Ok(Unwrapped {
            older: high,
            newer: low,
            is_cut: !(self.stop_on_wrap && at == 0),
        })
    }
}

/// `0x1000:0x1ffc:0x1234:wrap`.
impl fmt::Display for RamSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, limit) = (self.start, self.limit);
        write!(f, "{start:#x}:{limit:#x}:{:#x}", self.write_pointer)?;
        f.write_str(if self.wrapped { ":wrap" } else { "" })
    }
}

impl<'a> Unwrapped<'a> {
    /// Both parts.
    #[must_use]
    pub fn concat(&self) -> Vec<u8> {
        [self.older, self.newer].concat()
    }

    /// The two parts from the first whole message of N-Trace on.
    #[must_use]
    pub fn messages(&self) -> [&'a [u8]; 2] {
        let cut = self.cut();
        let behind = cut.saturating_sub(self.older.len());
        [
            self.older.get(cut..).unwrap_or_default(),
            self.newer.get(behind..).unwrap_or_default(),
        ]
    }

    /// Bytes at the start that are the rest of a message of N-Trace; all if none ends.
    #[must_use]
    pub fn cut(&self) -> usize {
        if !self.is_cut {
            return 0;
        }
        // The byte in front is gone, so whether an idle byte here is one
        // does not matter: a message starts after it.
        let mut all = self.older.iter().chain(self.newer);
        let end = all.position(|b| b & 3 == 3);
        end.map_or(self.older.len() + self.newer.len(), |end| end + 1)
    }
}
