//! How packets are encapsulated for transport: what comes before a payload in a
//! stream of bytes.
//!
//! The E-Trace texts leave this open (chapter 6 of the draft has examples); the
//! RISC-V packet encapsulation (e-trace-encap 1.0.0) defines one form. In all of
//! them but the slots the first byte of a packet gives its length, so one framer
//! ([`Framer`](crate::Framer)) serves all.

mod heads;
mod pack;

pub(crate) use heads::{Head, Headed, Heads, Lead, WINDOW, window, word};
pub use pack::{Packed, Packer};

use core::fmt;

use crate::packet::bits::mask;
use crate::{ConfigError, Kind, MAX_PAYLOAD};

/// What the bytes before a payload look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The file form of the reference models: a byte with the length in bits 0 to
    /// 4 and the kind in bits 5 and 6.
    #[default]
    Reference,
    /// The RISC-V packet encapsulation, e-trace-encap 1.0.0: header, `srcID`,
    /// `timestamp`, `type`.
    Riscv,
    /// Siemens messages (draft, figure 6.1): header with the kind, index, 16-bit
    /// time tag.
    Smi,
    /// The header for ATB of the draft: length, a bit for a 16-bit time. The source
    /// is outside, in `ATID`.
    Atb,
    /// Packets of the ESP32 trace units: a length that counts the header, and a
    /// 16-bit number.
    Esp32,
    /// The slots of the PULP tracer: a packet of [`Form::Riscv`] in a slot of
    /// fixed size, its last byte first, zeros before it.
    Slots,
}

/// An encapsulation and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encapsulation {
    /// Which one.
    pub form: Form,
    /// Bits of the source: `srcID`, or the index of SMI, which takes whole bytes.
    pub src_bits: u8,
    /// Encoder: the source of hart 0; hart n has the one n above it. Decoder: the
    /// source that is hart 0.
    pub src_id: u16,
    /// Bytes of a timestamp (T); 0 for none.
    pub time_bytes: u8,
    /// Bits of `type`: 0, or 1 and more where 0 is instruction trace and 1 data
    /// trace. In the header for ATB its one bit is bit 6.
    pub type_bits: u8,
    /// Encoder: `flow`.
    pub flow: u8,
    /// Encoder: a synchronisation sequence comes after so many bytes; 0 for none.
    pub sync_bytes: u32,
    /// Bytes of a slot.
    pub slot_bytes: u8,
    /// Packets with `flow` = 3 mark bytes that were lost ([`Encapsulation::MERGED`]).
    pub marks: bool,
}

impl Default for Encapsulation {
    fn default() -> Encapsulation {
        Encapsulation::new(Form::Reference)
    }
}

/// Bytes of the longest packet with everything before its payload.
pub(crate) const LONGEST: usize = 1 + 2 + 8 + MAX_PAYLOAD;

/// Largest slot.
pub(crate) const MAX_SLOT: usize = 64;

/// Zero bytes that an ESP32 trace unit writes at the start of its buffer and now
/// and then after: no packet has so many.
const ESP32_ZEROS: usize = 14;

/// The value of `flow` that marks lost bytes in a merged stream.
const MARK: u8 = 3;

/// `RISC-V packet encapsulation, srcID of 8 bits, timestamps of 2 bytes`.
impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.form {
            Form::Reference => "the file form of the reference models",
            Form::Riscv => "RISC-V packet encapsulation",
            Form::Smi => "SMI messages",
            Form::Atb => "headers for ATB",
            Form::Esp32 => "ESP32 trace unit packets",
            Form::Slots => "PULP tracer slots",
        })?;
        if self.form == Form::Slots {
            write!(f, " of {} bytes", self.slot_bytes)?;
        }
        if self.src_bits > 0 {
            write!(f, ", source of {} bits", self.src_bits)?;
        }
        if self.time_bytes > 0 {
            write!(f, ", timestamps of {} bytes", self.time_bytes)?;
        }
        if self.type_bits > 0 {
            write!(f, ", type of {} bits", self.type_bits)?;
        }
        Ok(())
    }
}

/// A whole packet taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) src: u16,
    /// `None` for a `type` that is neither instruction nor data trace.
    pub(crate) kind: Option<Kind>,
    pub(crate) time: Option<u64>,
    /// Number of the packet, where packets have one.
    pub(crate) index: Option<u16>,
    /// The first bit of the payload.
    pub(crate) payload: usize,
    /// It marks lost bytes.
    pub(crate) mark: bool,
}

impl Encapsulation {
    /// The form that streams of several sources are brought into when a transport
    /// keeps the sources apart: `srcID` of 16 bits, timestamps of 8 bytes, `type` of
    /// 8 bits, and marks where bytes of one source were lost.
    pub const MERGED: Encapsulation = Encapsulation {
        src_bits: 16,
        time_bytes: 8,
        type_bits: 8,
        marks: true,
        ..Encapsulation::new(Form::Riscv)
    };

    /// A form with its usual parameters.
    #[must_use]
    pub const fn new(form: Form) -> Encapsulation {
        Encapsulation {
            form,
            src_bits: 0,
            src_id: 0,
            time_bytes: match form {
                Form::Slots => 8,
                _ => 0,
            },
            type_bits: 0,
            flow: 0,
            sync_bytes: match form {
                Form::Riscv => 4096,
                _ => 0,
            },
            slot_bytes: 40,
            marks: false,
        }
    }

    /// Whether packets have nothing but the header byte of the reference models.
    #[must_use]
    #[inline]
    pub const fn is_reference(&self) -> bool {
        matches!(self.form, Form::Reference)
    }

    /// Whether packets can say of which source they are.
    #[must_use]
    pub const fn has_sources(&self) -> bool {
        self.src_bits > 0
    }

    /// Whether packets say if they are of instruction or data trace.
    #[must_use]
    pub const fn has_kinds(&self) -> bool {
        match self.form {
            Form::Reference | Form::Smi => true,
            Form::Riscv | Form::Slots | Form::Atb => self.type_bits > 0,
            Form::Esp32 => false,
        }
    }

    /// Whole bytes of the source.
    const fn src_bytes(&self) -> usize {
        match self.form {
            Form::Riscv | Form::Slots => self.src_bits as usize / 8,
            Form::Smi => self.src_bits.div_ceil(8) as usize,
            _ => 0,
        }
    }

    /// Bits that count as payload in the length.
    const fn extra_bits(&self) -> usize {
        match self.form {
            Form::Riscv | Form::Slots => self.src_bits as usize % 8 + self.type_bits as usize,
            _ => 0,
        }
    }

    /// Whether payloads start with a byte, so that their length in bytes is exact.
    pub(crate) const fn is_aligned(&self) -> bool {
        self.extra_bits().is_multiple_of(8)
    }

    /// The longest payload, in bits.
    #[must_use]
    pub const fn room(&self) -> usize {
        match self.form {
            Form::Esp32 => (MAX_PAYLOAD - 3) * 8,
            _ => MAX_PAYLOAD * 8 - self.extra_bits(),
        }
    }

    /// Bytes of the longest packet, and how far apart two headers can be.
    pub(crate) const fn longest(&self) -> usize {
        match self.form {
            Form::Esp32 => MAX_PAYLOAD,
            Form::Slots => self.slot_bytes as usize,
            _ => 1 + self.src_bytes() + self.time_bytes as usize + MAX_PAYLOAD,
        }
    }

    /// The most bytes of a packet that are not payload; half of a synchronisation
    /// sequence is counted with each, for one comes before two packets at most.
    pub(crate) const fn framing(&self) -> usize {
        let sync = match self.sync_bytes {
            0 => 0,
            _ => self.sync_run().div_ceil(2),
        };
        sync + match self.form {
            Form::Reference => 1,
            Form::Esp32 => 3,
            Form::Slots => self.slot_bytes as usize,
            _ => 2 + self.src_bytes() + self.time_bytes as usize,
        }
    }

    /// The smallest queue: two of the longest packets with all that comes before them.
    pub(crate) const fn min_queue(&self) -> usize {
        match self.form {
            Form::Slots => 2 * self.slot_bytes as usize,
            _ => 2 * (self.framing() + MAX_PAYLOAD),
        }
    }

    /// Null bytes in a row after which the next byte that is not one must be a
    /// header: of a synchronisation sequence all but the last.
    pub(crate) const fn sync_run(&self) -> usize {
        match self.form {
            Form::Esp32 => ESP32_ZEROS,
            _ => self.longest(),
        }
    }

    /// On a port of fewer than eight pins: zeros after which a one ends a byte, for it is
    /// that of null.alignment after a synchronisation sequence. `None` where there is no
    /// such sequence.
    #[must_use]
    pub const fn alignment_zeros(&self) -> Option<u32> {
        match self.form {
            Form::Riscv => Some(8 * (self.longest() as u32 - 1) + 7),
            _ => None,
        }
    }

    /// The bits of a byte that are 0 in null packets, and in no other header.
    #[inline]
    pub(crate) const fn null_mask(&self) -> u8 {
        match self.form {
            Form::Riscv => 31,
            _ => 0xff,
        }
    }

    /// Whether a byte can be part of a synchronisation sequence.
    #[inline]
    pub(crate) const fn is_null(&self, byte: u8) -> bool {
        byte & self.null_mask() == 0
    }

    /// The bytes of the packet that starts with this byte: 1 for a null packet,
    /// `None` if none can.
    #[inline]
    pub(crate) const fn length(&self, first: u8) -> Option<usize> {
        let len = (first & 31) as usize;
        let time = self.time_bytes as usize;
        let top = first >> 7 != 0;
        match self.form {
            Form::Reference | Form::Smi => match first >> 5 & 3 {
                _ if first == 0 => Some(1),
                2 | 3 if len > 0 && !top => Some(1 + self.src_bytes() + len),
                2 | 3 if len > 0 && time > 0 => Some(1 + self.src_bytes() + time + len),
                _ => None,
            },
            Form::Riscv if len == 0 => Some(1),
            Form::Riscv if top && time == 0 => None,
            Form::Riscv => Some(1 + self.src_bytes() + if top { time } else { 0 } + len),
            Form::Atb => {
                let stamped = first & 1 << 5 != 0;
                let unused = if self.type_bits > 0 { 1 << 7 } else { 3 << 6 };
                match len {
                    0 if first == 0 => Some(1),
                    0 => None,
                    _ if first & unused != 0 || stamped && time == 0 => None,
                    _ => Some(1 + if stamped { time } else { 0 } + len),
                }
            }
            Form::Esp32 => match first {
                0 => Some(1),
                4..=31 => Some(len),
                _ => None,
            },
            Form::Slots => Some(self.slot_bytes as usize),
        }
    }

    /// Takes a whole packet apart; not a null packet. Slots are turned round first.
    #[inline]
    pub(crate) fn open(&self, packet: &[u8]) -> Opened {
        let mut head = [0; 16];
        for (to, from) in head.iter_mut().zip(packet) {
            *to = *from;
        }
        let [first, ..] = head;
        let head = u128::from_le_bytes(head);
        let field = |at: usize, width: usize| (head >> at) as u64 & mask(width as u32);
        let time_bits = 8 * usize::from(self.time_bytes);
        let mut opened = Opened {
            src: 0,
            kind: Some(Kind::Instruction),
            time: None,
            index: None,
            payload: 8,
            mark: false,
        };
        match self.form {
            Form::Reference | Form::Smi => {
                opened.kind = Some(Kind::of_bit(first >> 5 & 1 != 0));
                opened.src = field(8, usize::from(self.src_bits)) as u16;
                opened.payload += 8 * self.src_bytes();
                if first >> 7 != 0 {
                    opened.time = Some(field(opened.payload, time_bits));
                    opened.payload += time_bits;
                }
            }
            Form::Riscv | Form::Slots => {
                opened.src = field(8, usize::from(self.src_bits)) as u16;
                opened.payload += usize::from(self.src_bits);
                if first >> 7 != 0 {
                    opened.time = Some(field(opened.payload, time_bits));
                    opened.payload += time_bits;
                }
                let kind = field(opened.payload, usize::from(self.type_bits));
                opened.kind = match kind {
                    0 | 1 => Some(Kind::of_bit(kind == 1)),
                    _ => None,
                };
                opened.payload += usize::from(self.type_bits);
                opened.mark = self.marks && first >> 5 & 3 == MARK;
            }
            Form::Atb => {
                opened.kind = Some(Kind::of_bit(first >> 6 & 1 != 0));
                if first & 1 << 5 != 0 {
                    opened.time = Some(field(8, time_bits));
                    opened.payload += time_bits;
                }
            }
            Form::Esp32 => {
                opened.index = Some(field(8, 16) as u16);
                opened.payload = 24;
            }
        }
        // Sources below the first are told apart as well.
        opened.src = opened.src.wrapping_sub(self.src_id) & mask(self.src_bits.into()) as u16;
        opened
    }

    /// Whether a slot holds a packet, or nothing; it is turned round already.
    pub(crate) fn is_slot(&self, slot: &[u8]) -> bool {
        let Some((&first, rest)) = slot.split_first() else {
            return false;
        };
        let used = match first & 31 {
            0 if first != 0 => return false,
            0 => 0,
            len => {
                let time = usize::from(self.time_bytes) * usize::from(first >> 7);
                if first >> 7 != u8::from(self.time_bytes > 0) {
                    return false;
                }
                self.src_bytes() + time + usize::from(len)
            }
        };
        let unused = rest.get(used..);
        unused.is_some_and(|unused| unused.iter().all(|&byte| byte == 0))
    }

    /// The bytes of a slot that a packet takes; it is turned round already.
    pub(crate) fn used(&self, slot: &[u8]) -> usize {
        let first = slot.first().copied().unwrap_or(0);
        let riscv = Encapsulation {
            form: Form::Riscv,
            ..*self
        };
        riscv.length(first).unwrap_or(0).min(slot.len())
    }

    /// Checks the parameters; `longest` is that of the packets, in bits.
    ///
    /// # Errors
    ///
    /// The first parameter that does not fit.
    pub(crate) const fn validate(&self, longest: usize, data: bool) -> Result<(), ConfigError> {
        let smi = matches!(self.form, Form::Smi);
        let atb = matches!(self.form, Form::Atb);
        let riscv = matches!(self.form, Form::Riscv | Form::Slots);
        if self.src_bits > 16 || self.src_bits > 0 && !riscv && !smi {
            return Err(ConfigError::SourceBits);
        }
        let time = self.time_bytes;
        if !(time == 0 || riscv && time <= 8 || (smi || atb) && time == 2) {
            return Err(ConfigError::TimeBytes);
        }
        if self.type_bits > 8 || self.type_bits > 0 && !riscv && !(atb && self.type_bits == 1) {
            return Err(ConfigError::TypeBits);
        }
        if self.flow > 3 {
            return Err(ConfigError::Flow);
        }
        if self.sync_bytes > 0 && !matches!(self.form, Form::Riscv | Form::Esp32) {
            return Err(ConfigError::SyncBytes);
        }
        if matches!(self.form, Form::Slots) {
            let least = 1 + self.src_bytes() + time as usize;
            let slot = self.slot_bytes as usize;
            if slot > MAX_SLOT || slot < least + longest.div_ceil(8) {
                return Err(ConfigError::SlotBytes);
            }
        }
        if data && !self.has_kinds() {
            return Err(ConfigError::NoKinds);
        }
        if longest > self.room() {
            return Err(ConfigError::PacketTooLong);
        }
        Ok(())
    }
}
