//! Writes packets in their encapsulation.

use super::{Encapsulation, Form, LONGEST, MAX_SLOT};
use crate::packet::bits::mask;
use crate::{Fault, Kind};

/// Bytes that one packet can come to, with a synchronisation sequence before it.
pub(crate) const ROOM: usize = 2 * LONGEST + 16;

const _: () = assert!(ROOM >= MAX_SLOT, "a slot fits");

/// Writes the packets of one source.
///
/// ```
/// use hartrace_etrace::{Encapsulation, Form, Kind, Packer};
///
/// let riscv = Encapsulation { src_bits: 8, time_bytes: 2, ..Encapsulation::new(Form::Riscv) };
/// let mut packer = Packer::new(riscv, 5);
/// let mut stream = Vec::new();
/// stream.extend_from_slice(packer.pack(Kind::Instruction, &[0x1f], 0x1234).bytes());
/// // Null packets first: decoding may begin here.
/// assert_eq!(stream.len(), 31 + 2 + 1 + 1 + 5);
/// assert_eq!(stream[34..], [0x80, 0x81, 5, 0x34, 0x12, 0x1f][..]);
/// ```
#[derive(Clone, Debug)]
pub struct Packer {
    form: Encapsulation,
    src: u16,
    /// Number of the next packet, where packets have one.
    index: u16,
    /// Bytes since the last synchronisation sequence; none yet.
    since: Option<u32>,
}

/// The bytes of a packet in its encapsulation.
#[derive(Clone, Debug)]
pub struct Packed {
    bits: Bits,
    payload: usize,
}

impl Packed {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bits.bytes()
    }

    /// How many of them are not payload.
    #[must_use]
    pub fn framing(&self) -> u64 {
        self.bytes().len().saturating_sub(self.payload) as u64
    }
}

/// Collects the fields of one packet, the first in the lowest bits.
#[derive(Clone, Debug)]
struct Bits {
    bytes: [u8; ROOM],
    /// How many bits.
    len: usize,
}

impl Bits {
    fn new() -> Bits {
        Bits {
            bytes: [0; ROOM],
            len: 0,
        }
    }

    /// A field of at most 64 bits.
    fn put(&mut self, value: u64, width: usize) {
        let value = value & mask(width as u32);
        let shifted = (u128::from(value) << (self.len % 8)).to_le_bytes();
        let from = self.len / 8;
        for (to, bits) in self.bytes.iter_mut().skip(from).zip(shifted.iter().take(9)) {
            *to |= bits;
        }
        self.len += width;
    }

    /// The bytes of a payload; the last bit is repeated up to the end of a byte.
    fn payload(&mut self, payload: &[u8]) {
        for &byte in payload {
            self.put(byte.into(), 8);
        }
        let sign = payload.last().is_some_and(|last| last & 0x80 != 0);
        let padding = self.len.next_multiple_of(8) - self.len;
        self.put(if sign { u64::MAX } else { 0 }, padding);
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len / 8).unwrap_or_default()
    }
}

impl Packer {
    /// For the packets of this source.
    #[must_use]
    pub const fn new(form: Encapsulation, src: u16) -> Packer {
        Packer {
            form,
            src: src.wrapping_add(form.src_id),
            index: 0,
            since: None,
        }
    }

    /// The same of a packet that has a timestamp or not, where the form has room for one.
    pub fn pack_timed(&mut self, kind: Kind, payload: &[u8], time: Option<u64>) -> Packed {
        let form = self.form;
        if time.is_none() && matches!(form.form, Form::Riscv | Form::Smi | Form::Atb) {
            self.form.time_bytes = 0;
        }
        let packed = self.pack(kind, payload, time.unwrap_or(0));
        self.form = form;
        packed
    }

    /// The bytes of a packet made at this time, with a synchronisation sequence
    /// before them if one is due.
    pub fn pack(&mut self, kind: Kind, payload: &[u8], time: u64) -> Packed {
        let mut bits = Bits::new();
        self.sync(&mut bits);
        let from = bits.len;
        self.fields(&mut bits, kind, payload, time);
        if self.form.form == Form::Slots {
            bits.len = 8 * usize::from(self.form.slot_bytes).min(ROOM);
            let slot = bits.bytes.get_mut(..bits.len / 8);
            slot.unwrap_or_default().reverse();
        }
        if let Some(since) = &mut self.since {
            *since = since.saturating_add((bits.len - from) as u32 / 8);
        }
        Packed {
            payload: payload.len(),
            bits,
        }
    }

    /// A mark for bytes of the source that were lost, in a merged stream.
    #[must_use]
    pub fn mark(&self, fault: Fault, value: u64) -> Packed {
        let mut bits = Bits::new();
        let head = 10 | u64::from(super::MARK) << 5;
        bits.put(head, 8);
        bits.put(self.src.into(), self.form.src_bits.into());
        bits.put(0, self.form.type_bits.into());
        bits.put(fault.mark().into(), 16);
        bits.put(value, 56);
        Packed { payload: 0, bits }
    }

    /// A synchronisation sequence if one is due.
    fn sync(&mut self, bits: &mut Bits) {
        let due = self.form.sync_bytes;
        if due == 0 || self.since.is_some_and(|since| since < due) {
            return;
        }
        self.since = Some(0);
        let run = self.form.sync_run();
        bits.len = 8 * (run - 1);
        // null.alignment ends it: streams of bits need that.
        let last = if self.form.form == Form::Riscv {
            0x80
        } else {
            0
        };
        bits.put(last, 8);
    }

    fn fields(&mut self, bits: &mut Bits, kind: Kind, payload: &[u8], time: u64) {
        let from = bits.len;
        let form = &self.form;
        let data = u64::from(kind == Kind::Data);
        let stamped = u64::from(form.time_bytes > 0);
        let time_bits = 8 * usize::from(form.time_bytes);
        let src_bits = usize::from(form.src_bits);
        let bytes = payload.len() + self.extra_bytes(payload);
        match form.form {
            Form::Reference | Form::Smi => {
                let header = payload.len() as u64 | (2 | data) << 5 | stamped << 7;
                bits.put(header, 8);
                bits.put(self.src.into(), 8 * form.src_bytes());
                bits.put(time, time_bits);
            }
            Form::Riscv | Form::Slots => {
                let header = bytes as u64 & 31 | u64::from(form.flow) << 5 | stamped << 7;
                bits.put(header, 8);
                bits.put(self.src.into(), src_bits);
                bits.put(time, time_bits);
                bits.put(data, form.type_bits.into());
            }
            Form::Atb => {
                let kind = data & u64::from(form.type_bits);
                bits.put(payload.len() as u64 | stamped << 5 | kind << 6, 8);
                bits.put(time, time_bits);
            }
            Form::Esp32 => {
                bits.put(payload.len() as u64 + 3, 8);
                bits.put(self.index.into(), 16);
                self.index = self.index.wrapping_add(1);
            }
        }
        let header = 8 * (1 + self.form.src_bytes()) + time_bits;
        bits.payload(payload);
        if self.form.extra_bits() > 0 {
            bits.len = bits.len.min(from + header + 8 * bytes);
            let unused = bits.bytes.get_mut(bits.len / 8..);
            unused.unwrap_or_default().fill(0);
        }
    }

    /// Bytes that `type` and the rest of `srcID` add to a payload. Upper bits of the
    /// payload that are all the same may make room for them.
    fn extra_bytes(&self, payload: &[u8]) -> usize {
        let extra = self.form.extra_bits();
        let over = extra as u32 % 8;
        let last = payload.last().map_or(0, |&last| last as i8);
        let fits = over == 0 || matches!(last >> (7 - over), 0 | -1);
        extra / 8 + usize::from(!fits)
    }
}
