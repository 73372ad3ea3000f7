//! Reads loads and stores, which are most of a data trace, without their fields one by
//! one. What the first bits of a packet say depends on the settings alone, so it is in a
//! table. `data` has whole bytes, so `data` and `address` start at the same bit of a
//! byte: each is one unaligned word, shifted.

use alloc::vec::Vec;

use hartrace_flow::{Access, AccessKind, DataAccess, Part};
use hartrace_isa::Xlen;

use super::history::{History, Sent, extend};
use super::read::value_mask;
use super::{DataConfig, DataLayout};
use crate::packet::bits::mask;
use crate::{Config, MAX_PAYLOAD, frame};

/// Bytes that are looked at, the header included.
pub(crate) const WINDOW: usize = MAX_PAYLOAD + 1;

/// Accesses that are read at once, at most.
const BATCH: usize = 128;

/// Loads and stores of one layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transfers {
    /// By the first bits of a packet, as many as `format`, `size` and `diff` have: at
    /// most eight.
    shapes: [Shape; 256],
    /// The bits of the three.
    head_mask: u64,
    /// Their number.
    head: u32,
    content: Content,
    data_width: u8,
    address_width: u8,
    xor_addresses: bool,
    xlen: Xlen,
}

/// What packets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Both,
    Address,
    Data,
}

/// What the first bits of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// The bits of a value.
    value: u64,
    /// What address and data refer to, which must be known.
    needs: u16,
    /// What is known after it.
    gives: u16,
    kind: AccessKind,
    /// log2 of the size.
    size: u8,
    /// By how many bits the address is shifted.
    shift: u8,
    /// The first bit of the data, after its length.
    start: u8,
    /// Eight times the largest `data_len`.
    longest: u8,
    /// All bits, if the address is a difference.
    address_base: u64,
    /// All bits, if the data refers to that before it.
    data_base: u64,
    /// And is a difference.
    adds: bool,
}

impl Shape {
    /// No load or store, or one with something wrong.
    const OTHER: Shape = Shape {
        value: 0,
        needs: History::NEVER,
        gives: 0,
        kind: AccessKind::Load,
        size: 0,
        shift: 0,
        start: 0,
        longest: 0,
        address_base: 0,
        data_base: 0,
        adds: false,
    };

    /// Of a load or store of this format.
    fn new(
        (format, size, diff): (u64, u8, u8),
        head: u8,
        content: Content,
        config: &DataConfig,
    ) -> Shape {
        let (moves, data) = match content {
            Content::Both => (diff != 0, Sent::from_code(diff)),
            Content::Address => (diff != 0, Sent::Full),
            Content::Data => (false, Sent::from_diff(diff, config)),
        };
        let refers = data != Sent::Full;
        Shape {
            value: value_mask(size),
            needs: History::bases(size, moves, refers),
            gives: History::bases(size, content != Content::Data, content != Content::Address),
            kind: match format & 2 {
                0 => AccessKind::Load,
                _ => AccessKind::Store,
            },
            size,
            shift: if format & 1 == 0 { size } else { 0 },
            start: head + size,
            longest: 8 * ((1 << size) - 1),
            address_base: if moves { u64::MAX } else { 0 },
            data_base: if refers { u64::MAX } else { 0 },
            adds: data == Sent::Difference,
        }
    }
}

/// Room for accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// As many as there may be, alike but for what packets say of them.
    slots: Vec<DataAccess>,
    /// What packets said of them last.
    content: Option<Content>,
}

impl Batch {
    /// Accesses of which all is known that is the same in every packet.
    fn prepare(&mut self, content: Content) -> &mut [DataAccess] {
        if self.content != Some(content) {
            let access = Access {
                data: (content != Content::Address).then_some(0),
                ..Access::default()
            };
            let slot = DataAccess {
                insn: None,
                access,
                has_address: content != Content::Data,
                part: Part::Whole,
            };
            self.slots.clear();
            self.slots.resize(BATCH, slot);
            self.content = Some(content);
        }
        &mut self.slots
    }

    /// The first so many.
    pub(crate) fn first(&self, count: usize) -> &[DataAccess] {
        self.slots.get(..count).unwrap_or_default()
    }
}

impl Transfers {
    /// `None` without data trace.
    pub(crate) fn new(config: &Config) -> Option<Transfers> {
        let (data, layout) = (config.data.as_ref()?, config.data_layout()?);
        let (content, diff_width) = match (layout.no_data, layout.no_address) {
            (true, _) => (Content::Address, 1),
            (false, true) => (Content::Data, layout.diff_width),
            (false, false) => (Content::Both, 2),
        };
        let widths = [layout.format_width, layout.size_width, diff_width];
        let head = widths.into_iter().sum();
        let mut shapes = [Shape::OTHER; 256];
        for (shape, bits) in shapes.iter_mut().zip(0u64..) {
            let mut bits = bits;
            let fields = widths.map(|width| {
                let field = bits & mask(width.into());
                bits >>= width;
                field
            });
            *shape = shape_of(fields, head, &layout, content, data);
        }
        Some(Transfers {
            shapes,
            head_mask: mask(head.into()),
            head: head.into(),
            content,
            data_width: layout.data_width,
            address_width: layout.daddress_width,
            xor_addresses: data.xor_addresses,
            xlen: config.xlen,
        })
    }

    /// Reads packets with their headers at the front of the bytes, as far as they are
    /// loads and stores without anything wrong: how many, and how many bytes they are.
    pub(super) fn read_all(
        &self,
        bytes: &[u8],
        history: &mut History,
        out: &mut Batch,
    ) -> (usize, usize) {
        let out = out.prepare(self.content);
        match self.content {
            Content::Both if self.is_usual() => self.read_with::<USUAL>(bytes, history, out),
            Content::Both => self.read_with::<BOTH>(bytes, history, out),
            Content::Address => self.read_with::<ADDRESS>(bytes, history, out),
            Content::Data => self.read_with::<DATA>(bytes, history, out),
        }
    }

    /// Whether addresses have 64 bits, and their differences are differences.
    fn is_usual(&self) -> bool {
        self.address_width == 64 && self.xlen == Xlen::Rv64 && !self.xor_addresses
    }

    /// The same for packets of one content.
    #[inline(never)]
    fn read_with<const WHAT: u8>(
        &self,
        bytes: &[u8],
        history: &mut History,
        out: &mut [DataAccess],
    ) -> (usize, usize) {
        let (mut rest, mut count) = (bytes, 0);
        for access in out {
            let Some((&[header, ref payload @ ..], _)) = rest.split_first_chunk::<WINDOW>() else {
                break;
            };
            let Some(len) = frame::data(header) else {
                break;
            };
            let read = self.read::<WHAT>(payload, len, history, &mut access.access);
            if read.is_none() {
                break;
            }
            count += 1;
            rest = rest.get(len + 1..).unwrap_or_default();
        }
        (count, bytes.len() - rest.len())
    }

    /// A load or store with a payload of `len` bytes. `None` for any other packet, and
    /// for one that has something wrong.
    pub(super) fn read_one(
        &self,
        payload: &[u8; MAX_PAYLOAD],
        len: usize,
        history: &mut History,
        out: &mut Batch,
    ) -> Option<()> {
        let slot = out.prepare(self.content).first_mut();
        let access = &mut slot.filter(|_| len > 0)?.access;
        match self.content {
            Content::Both => self.read::<BOTH>(payload, len, history, access),
            Content::Address => self.read::<ADDRESS>(payload, len, history, access),
            Content::Data => self.read::<DATA>(payload, len, history, access),
        }
    }

    #[inline(always)]
    fn read<const WHAT: u8>(
        &self,
        payload: &[u8; MAX_PAYLOAD],
        len: usize,
        history: &mut History,
        out: &mut Access,
    ) -> Option<()> {
        if len > 8 {
            return match WHAT {
                USUAL | BOTH => self.longer(payload, len, history, out),
                _ => None,
            };
        }
        // The bits that were sent, the last of which is repeated.
        let unused = 64 - 8 * len as u32;
        let all = (word(payload, 0)? << (unused & 63)) as i64 >> (unused & 63);
        let shape = self.shape(all);
        if !history.has(shape.needs) {
            return None;
        }
        let fields = match WHAT {
            USUAL | BOTH => {
                let data = all >> shape.start;
                // A length of n has n + 1 bytes.
                let length = (all >> (self.head - 3)) as u8 & shape.longest;
                let cut = 56 - length;
                let address = data >> length >> 8;
                if WHAT != USUAL {
                    signed(address, self.address_width)?;
                }
                (data << cut >> cut, address)
            }
            ADDRESS => (0, signed(all >> self.head, self.address_width)?),
            _ => (signed(all >> self.head, self.data_width)?, 0),
        };
        self.restore::<WHAT>(fields, shape, history, out);
        Some(())
    }

    /// What the first bits say.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // eight bits, or fewer
    fn shape(&self, bits: i64) -> &Shape {
        &self.shapes[(bits as u64 & self.head_mask) as u8 as usize]
    }

    /// The access that these fields mean: data and address.
    #[inline(always)]
    fn restore<const WHAT: u8>(
        &self,
        (data, address): (i64, i64),
        shape: &Shape,
        history: &mut History,
        out: &mut Access,
    ) {
        (out.kind, out.size) = (shape.kind, shape.size);
        if WHAT != DATA {
            let field = (address as u64) << shape.shift;
            let before = history.last_address(shape.size) & shape.address_base;
            let mut addr = match WHAT != USUAL && self.xor_addresses {
                true => before ^ field,
                false => before.wrapping_add(field),
            };
            out.addr = addr;
            if WHAT != USUAL {
                addr = extend(addr, self.address_width) as u64;
                out.addr = self.xlen.wrap(addr);
            }
            history.put_address(addr, shape.size);
        }
        if WHAT != ADDRESS {
            let before = history.last_data(shape.size) & shape.data_base;
            let value = match shape.adds {
                true => before.wrapping_add(data as u64),
                false => before ^ data as u64,
            };
            let value = value & shape.value;
            history.put_data(value, shape.size);
            out.data = Some(value);
        }
        history.add(shape.gives);
    }

    /// A packet with data and address of more than a word.
    #[inline(never)]
    fn longer(
        &self,
        payload: &[u8; MAX_PAYLOAD],
        len: usize,
        history: &mut History,
        out: &mut Access,
    ) -> Option<()> {
        let first = word(payload, 0)? as i64;
        let shape = self.shape(first);
        if !history.has(shape.needs) {
            return None;
        }
        let length = u32::from((first >> (self.head - 3)) as u8 & shape.longest);
        let start = u32::from(shape.start);
        let end = start + length + 8;
        let (from, rest) = ((start / 8) as usize, start % 8);
        let mut data = word(payload, from)? >> rest;
        if length + 8 + rest > 64 {
            data |= word(payload, from + 1)? >> rest << 8;
        }
        // Bits of the address that were sent, the last of which is repeated.
        let sent = (8 * len as u32).checked_sub(end)?;
        if sent == 0 || sent + rest > 64 || sent > self.address_width.into() {
            return None;
        }
        let address = word(payload, (end / 8) as usize)? >> rest;
        let (cut, unused) = (56 - length, 64 - sent);
        let data = (data << cut) as i64 >> cut;
        let address = (address << unused) as i64 >> unused;
        self.restore::<BOTH>((data, address), shape, history, out);
        Some(())
    }
}

/// What packets have, where that is known when this is compiled. Data and an address
/// that is a difference of 64 bits:
const USUAL: u8 = 0;
/// Data and any address.
const BOTH: u8 = 1;
/// An address.
const ADDRESS: u8 = 2;
/// Data.
const DATA: u8 = 3;

/// What these first fields of a packet say: `format`, `size` and `diff`.
fn shape_of(
    [format, size, diff]: [u64; 3],
    head: u8,
    layout: &DataLayout,
    content: Content,
    config: &DataConfig,
) -> Shape {
    let split = layout.is_split() && format < 2;
    let fits = 8u64 << (size & 7) <= layout.data_width.into();
    let reserved = content == Content::Data && diff == 2;
    match format {
        // With classes the first fields are others, and may have more bits.
        _ if layout.mmacas => Shape::OTHER,
        0..=3 if fits && !split && !reserved => {
            Shape::new((format, size as u8, diff as u8), head, content, config)
        }
        _ => Shape::OTHER,
    }
}

/// Eight bytes from a place in the payload.
#[inline(always)]
fn word(payload: &[u8; MAX_PAYLOAD], from: usize) -> Option<u64> {
    let (word, _) = payload.get(from..)?.split_first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// A number of at most so many bits.
#[inline(always)]
const fn signed(value: i64, width: u8) -> Option<i64> {
    match value >> (width.wrapping_sub(1) & 63) {
        0 | -1 => Some(value),
        _ => None,
    }
}
