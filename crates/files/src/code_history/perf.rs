//! Reads the side-band of Linux perf: which files are mapped where, and what the kernel
//! patched when.
//!
//! A `perf.data` file has a header, descriptions of its events (`perf_event_attr`), and
//! records; one that was written to a pipe has its descriptions among the records. Records
//! of samples and of hardware trace are passed over. Numbers are little-endian. Nothing in
//! the file is trusted: a record may claim any length.

use std::collections::HashMap;
use std::fmt;

/// The first bytes of a file.
const MAGIC: &[u8; 8] = b"PERFILE2";

/// Bytes of the header of a file, and of one that was written to a pipe.
const FILE_HEADER: u64 = 104;
const PIPE_HEADER: u64 = 16;

/// `perf_event_attr.sample_type`: which fields records have at their end.
mod sample {
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Bit of `perf_event_attr.flags`: all records have these fields.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Bits of `perf_event_header.misc`.
const MMAP_DATA: u16 = 1 << 13;
const COMM_EXEC: u16 = 1 << 13;
const MMAP_BUILD_ID: u16 = 1 << 14;

/// `PROT_EXEC` of a mapping.
const PROT_EXEC: u32 = 4;

/// The process of the kernel's own mappings.
pub const KERNEL_PID: u32 = u32::MAX;

/// A record, and the offset of its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfRecord {
    /// Where it is in the file.
    pub offset: u64,
    /// In nanoseconds, as perf counts them; 0 for what was there before. `None` if records
    /// have no time.
    pub time: Option<u64>,
    /// What it says.
    pub what: PerfEvent,
}

/// A file that is mapped as code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The process; [`KERNEL_PID`] for the kernel and its modules.
    pub pid: u32,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Where in the file they start; of the kernel, the address of its first symbol.
    pub file_offset: u64,
    /// The file as the kernel names it.
    pub file: String,
    /// Its build id, if perf knew it.
    pub build_id: Option<Vec<u8>>,
}

impl Mapping {
    /// Whether it is of the kernel or a module.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        self.pid == KERNEL_PID
    }
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfEvent {
    /// A file is mapped as code.
    Map(Mapping),
    /// A thread executes another program, or has another name.
    Comm {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// Its new name.
        name: String,
        /// It executes another program: its mappings are gone.
        exec: bool,
    },
    /// A process or a thread begins.
    Fork {
        /// The process.
        pid: u32,
        /// The process that made it; the same if it is a thread of it.
        parent: u32,
        /// The thread.
        tid: u32,
    },
    /// A thread ends.
    Exit {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// Code that the kernel makes or removes has a name.
    Symbol {
        /// First address.
        address: u64,
        /// Bytes.
        len: u64,
        /// Its name.
        name: String,
        /// It is removed.
        gone: bool,
    },
    /// The kernel changed code.
    Poke {
        /// First address.
        address: u64,
        /// What was there; nothing for new code.
        old: Vec<u8>,
        /// What is there.
        new: Vec<u8>,
    },
}

/// How the time of perf is related to that of the hart's counter: the file's
/// `PERF_RECORD_TIME_CONV`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConversion {
    /// Bits by which a product is shifted.
    pub shift: u64,
    /// Nanoseconds for each tick, shifted.
    pub mult: u64,
    /// Nanoseconds at tick 0.
    pub zero: u64,
}

/// What a file says about code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfData {
    /// By time; those of the same time as they are in the file.
    pub records: Vec<PerfRecord>,
    /// How its time is related to the hart's, if the file says so.
    pub time_conversion: Option<TimeConversion>,
}

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfError {
    /// It is something else.
    NotPerf,
    /// It is of a machine of the other byte order.
    BigEndian,
    /// It was compressed (`perf record -z`), at this offset.
    Compressed(u64),
    /// A part of the header does not lie within the file.
    Header(&'static str),
    /// A record does not lie within the file, or is too short for its type.
    Record {
        /// Offset of its first byte.
        offset: u64,
        /// Its type, as perf numbers it.
        kind: u32,
    },
    /// The file ends inside a record, or before.
    CutOff(u64),
}

impl fmt::Display for PerfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerfError::NotPerf => f.write_str("it is not a perf.data file"),
            PerfError::BigEndian => f.write_str("it is a perf.data file of a big-endian machine"),
            PerfError::Compressed(offset) => {
                write!(f, "the records from byte {offset:#x} on are compressed")
            }
            PerfError::Header(part) => {
                write!(
                    f,
                    "the header is damaged: {part} does not lie within the file"
                )
            }
            PerfError::Record { offset, kind } => {
                write!(f, "the record at byte {offset:#x} is damaged (type {kind})")
            }
            PerfError::CutOff(offset) => {
                write!(
                    f,
                    "the file is cut off: it ends inside the record at byte {offset:#x}"
                )
            }
        }
    }
}

impl std::error::Error for PerfError {}

/// Reads little-endian numbers off the front of bytes.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, len: usize) -> Option<u64> {
        let bytes = self.take(len)?.iter().rev();
        Some(bytes.fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }

    fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.number(4)?).ok()
    }

    fn u16(&mut self) -> Option<u16> {
        u16::try_from(self.number(2)?).ok()
    }

    /// Up to the first zero.
    fn text(self) -> String {
        let name = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

fn at(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let from = usize::try_from(offset).ok()?;
    let len = usize::try_from(len).ok()?;
    bytes.get(from..from.checked_add(len)?)
}

/// What is known of an event: which fields its records have at their end.
#[derive(Clone, Copy, Default)]
struct Layout {
    sample_type: u64,
    all: bool,
}

impl Layout {
    /// Of a `perf_event_attr`.
    fn read(attr: &[u8]) -> Option<Layout> {
        let mut fields = Fields(attr.get(24..48)?);
        let sample_type = fields.u64()?;
        fields.u64()?;
        Some(Layout {
            sample_type,
            all: fields.u64()? & SAMPLE_ID_ALL != 0,
        })
    }

    fn has(self, field: u64) -> bool {
        self.all && self.sample_type & field != 0
    }

    /// Bytes from the time to the end of a record; `None` if there is no time.
    fn time_to_end(self) -> Option<usize> {
        use sample::{CPU, ID, IDENTIFIER, STREAM_ID, TIME};
        let all = [TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let fields = all.into_iter().filter(|field| self.has(*field)).count();
        self.has(TIME).then_some(8 * fields)
    }

    /// Bytes of all of them.
    fn len(self) -> usize {
        let rest = [
            sample::ID,
            sample::STREAM_ID,
            sample::CPU,
            sample::IDENTIFIER,
        ];
        let rest = rest.into_iter().filter(|field| self.has(*field)).count();
        8 * (rest + usize::from(self.has(sample::TID)) + usize::from(self.has(sample::TIME)))
    }
}

/// The events of a file.
#[derive(Default)]
struct Layouts {
    first: Layout,
    /// By the identifier that records have at their very end.
    by_id: HashMap<u64, Layout>,
}

impl Layouts {
    fn add(&mut self, attr: &[u8], ids: &[u8]) -> Option<()> {
        let layout = Layout::read(attr)?;
        if self.first.sample_type == 0 && !self.first.all {
            self.first = layout;
        }
        for id in ids.chunks_exact(8) {
            self.by_id.insert(Fields(id).u64()?, layout);
        }
        Some(())
    }

    /// Of a record with this body.
    fn of(&self, body: &[u8]) -> Layout {
        if !self.first.has(sample::IDENTIFIER) {
            return self.first;
        }
        let id = body.len().checked_sub(8).and_then(|at| body.get(at..));
        let id = id.and_then(|id| Fields(id).u64());
        let known = id.and_then(|id| self.by_id.get(&id));
        known.copied().unwrap_or(self.first)
    }
}

impl PerfData {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// A file that is something else, or damaged.
    pub fn read(file: &[u8]) -> Result<PerfData, PerfError> {
        if file.starts_with(b"2ELIFREP") {
            return Err(PerfError::BigEndian);
        }
        if !file.starts_with(MAGIC) {
            return Err(PerfError::NotPerf);
        }
        let size = at(file, 8, 8).and_then(|size| Fields(size).u64());
        let mut reader = Reader::default();
        match size {
            Some(PIPE_HEADER) => {
                let rest = file.get(16..).unwrap_or_default();
                reader.records(rest, PIPE_HEADER)?;
            }
            Some(FILE_HEADER..) => reader.file(file)?,
            _ => return Err(PerfError::Header("its size")),
        }
        let mut data = reader.data;
        data.records.sort_by_key(|record| record.time);
        Ok(data)
    }
}

#[derive(Default)]
struct Reader {
    layouts: Layouts,
    data: PerfData,
}

impl Reader {
    /// A file that is not from a pipe.
    fn file(&mut self, file: &[u8]) -> Result<(), PerfError> {
        let mut fields = Fields(at(file, 16, 40).ok_or(PerfError::Header("its table"))?);
        let mut next = || fields.u64().unwrap_or(0);
        let (attr_size, attrs, attrs_len) = (next(), next(), next());
        let (data, data_len) = (next(), next());
        let attrs = at(file, attrs, attrs_len).ok_or(PerfError::Header("the list of events"))?;
        // Each is followed by where its identifiers are.
        let size = usize::try_from(attr_size).ok().filter(|size| *size >= 64);
        let size = size.ok_or(PerfError::Header("the size of an event"))?;
        for entry in attrs.chunks(size) {
            let split = entry.len().checked_sub(16);
            let parts = split.and_then(|split| entry.split_at_checked(split));
            let (attr, section) = parts.ok_or(PerfError::Header("an event"))?;
            let mut section = Fields(section);
            let (from, len) = (section.u64().unwrap_or(0), section.u64().unwrap_or(0));
            let ids =
                at(file, from, len).ok_or(PerfError::Header("the identifiers of an event"))?;
            let added = self.layouts.add(attr, ids);
            added.ok_or(PerfError::Header("an event"))?;
        }
        // A perf that did not end in good order has not written how many there are.
        let unfinished = data_len == 0 && data < file.len() as u64;
        let Some(records) = at(file, data, data_len).filter(|_| !unfinished) else {
            // What is there is of no use: a patch that is missing makes wrong code of it.
            return Err(match data <= file.len() as u64 {
                true => PerfError::CutOff(data),
                false => PerfError::Header("its data"),
            });
        };
        self.records(records, data)
    }

    /// Records, the first of which is at an offset of the file.
    fn records(&mut self, bytes: &[u8], start: u64) -> Result<(), PerfError> {
        let mut rest = Fields(bytes);
        while !rest.0.is_empty() {
            let offset = start + (bytes.len() - rest.0.len()) as u64;
            let cut = || PerfError::CutOff(offset);
            let kind = rest.u32().ok_or_else(cut)?;
            let misc = rest.u16().ok_or_else(cut)?;
            let size = usize::from(rest.u16().ok_or_else(cut)?);
            let bad = || PerfError::Record { offset, kind };
            let size = size.checked_sub(8).ok_or_else(bad)?;
            let body = rest.take(size).ok_or_else(cut)?;
            let more = self.record((kind, misc), body, offset).ok_or_else(bad)?;
            if let 81 | 83 = kind {
                return Err(PerfError::Compressed(offset));
            }
            let more = usize::try_from(more).map_err(|_| bad())?;
            rest.take(more).ok_or_else(cut)?;
        }
        Ok(())
    }

    /// One record; gives the bytes that follow it and belong to it. `None` if it is too
    /// short.
    fn record(&mut self, (kind, misc): (u32, u16), body: &[u8], offset: u64) -> Option<u64> {
        // What the kernel writes has fields at its end that say when.
        let own = match kind {
            1 | 3 | 4 | 7 | 10 | 17 | 20 => body.len().checked_sub(self.layouts.of(body).len())?,
            _ => body.len(),
        };
        let mut fields = Fields(body.get(..own)?);
        let what = match kind {
            1 | 10 => {
                let what = map((kind, misc), fields)?;
                what.map_or(Some(()), |what| self.push(what, body, offset))?;
                None
            }
            3 => Some(PerfEvent::Comm {
                pid: fields.u32()?,
                tid: fields.u32()?,
                name: fields.text(),
                exec: misc & COMM_EXEC != 0,
            }),
            4 | 7 => {
                let (pid, parent) = (fields.u32()?, fields.u32()?);
                let (tid, _) = (fields.u32()?, fields.u32()?);
                fields.u64()?;
                Some(match kind {
                    7 => PerfEvent::Fork { pid, parent, tid },
                    _ => PerfEvent::Exit { pid, tid },
                })
            }
            17 => Some(PerfEvent::Symbol {
                address: fields.u64()?,
                len: fields.u32()?.into(),
                gone: {
                    fields.u16()?;
                    fields.u16()? & 1 != 0
                },
                name: fields.text(),
            }),
            20 => {
                let address = fields.u64()?;
                let (old, new) = (fields.u16()?.into(), fields.u16()?.into());
                let (old, new) = (fields.take(old)?.to_vec(), fields.take(new)?.to_vec());
                Some(PerfEvent::Poke { address, old, new })
            }
            64 => {
                let size = at(body, 4, 4).and_then(|size| Fields(size).u32())?;
                let attr = fields.take(usize::try_from(size).ok()?)?;
                self.layouts.add(attr, fields.0)?;
                None
            }
            // The size of what follows: tracing data, and hardware trace.
            66 => return Some(u64::from(fields.u32()?).next_multiple_of(8)),
            71 => return fields.u64(),
            79 => {
                self.data.time_conversion = Some(TimeConversion {
                    shift: fields.u64()?,
                    mult: fields.u64()?,
                    zero: fields.u64()?,
                });
                None
            }
            _ => None,
        };
        if let Some(what) = what {
            self.push(what, body, offset)?;
        }
        Some(0)
    }

    fn push(&mut self, what: PerfEvent, body: &[u8], offset: u64) -> Option<()> {
        let layout = self.layouts.of(body);
        let time = match layout.time_to_end() {
            Some(from_end) => Some(Fields(body.get(body.len() - from_end..)?).u64()?),
            None => None,
        };
        self.data.records.push(PerfRecord { offset, time, what });
        Some(())
    }
}

/// A mapping: `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`. Within, `None` if it is not one
/// of code.
fn map((kind, misc): (u32, u16), mut fields: Fields<'_>) -> Option<Option<PerfEvent>> {
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let (address, len, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut build_id = None;
    let mut code = misc & MMAP_DATA == 0;
    if kind == 10 {
        let mut file = Fields(fields.take(24)?);
        if misc & MMAP_BUILD_ID != 0 {
            let size = usize::try_from(file.number(4)? & 0xff).ok()?;
            build_id = Some(file.take(size)?.to_vec());
        }
        let prot = fields.u32()?;
        fields.u32()?;
        // perf makes up records of the kernel, without rights.
        code = prot & PROT_EXEC != 0 || pid == KERNEL_PID;
    }
    let file = fields.text();
    Some(code.then_some(PerfEvent::Map(Mapping {
        pid,
        address,
        len,
        file_offset,
        file,
        build_id,
    })))
}

#[cfg(test)]
mod tests;
