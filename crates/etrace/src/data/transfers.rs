//! Reads loads and stores, which are most of a data trace, without their fields one by
//! one. What the first bits of a packet say depends on the settings alone, so it is in a
//! table. Packets of one word, with the sign of what was not sent, are one number; in longer
//! ones the address is in the last word and the data in the first two.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hartrace_flow::tally::Count;
use hartrace_flow::{AccessKind, PlainAccesses, PlainForm, PlainValues};
use hartrace_isa::Xlen;

use super::history::{History, Sent, extend};
use super::read::value_mask;
use super::{DataConfig, DataLayout, FORMATS};
use crate::encapsulation::{Head, Headed, Lead, window, word};
use crate::packet::bits::mask;
use crate::{Config, MAX_PAYLOAD};

/// Accesses that are read at once, at most.
const BATCH: usize = 128;

/// Loads and stores of one layout.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// What all of the following is made of.
    made_of: (DataLayout, DataConfig),
    /// By the first bits of a packet: `format`, `size` and `diff`, and as many of what
    /// follows as `data_len` may have.
    shapes: Box<[Shape]>,
    /// The same for those who look at no values, by so many bits that there is always one.
    outlines: Box<[Outline; OUTLINES]>,
    /// The bits by which a shape is found.
    first: u64,
    /// How many bits `format`, `size` and `diff` have.
    head: u32,
    content: Content,
    data_width: u8,
    address_width: u8,
    xor_addresses: bool,
    xlen: Xlen,
}

/// The table need not be compared.
impl PartialEq for Transfers {
    fn eq(&self, other: &Transfers) -> bool {
        (self.made_of, self.xlen) == (other.made_of, other.xlen)
    }
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
    /// The bits of an address that may be set.
    place: u64,
    /// What address and data refer to, which must be known.
    needs: u16,
    /// What is known after it.
    gives: u16,
    form: PlainForm,
    format: u8,
    /// log2 of the size, and where the last address and the last data of this size are.
    size: u8,
    /// Where those are that address and data refer to, or 0 where they refer to none.
    address_base: u8,
    data_base: u8,
    /// The data is a difference.
    adds: bool,
    /// The first bit of the data, and the first after it.
    start: u8,
    end: u8,
    /// Bytes that the payload may have, where the address has no more than 64 bits.
    longest: u8,
    /// By how many bits the data is shifted for its sign.
    unused: u8,
    /// By how many bits all are shifted for the data where they are one word, to the left
    /// and then to the right.
    left: u8,
    right: u8,
    /// By how many bits all are shifted for the address, and by how many the address is
    /// shifted back.
    skip: u8,
    shift: u8,
}

/// What of a [`Shape`] concerns those who look at no values: in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outline {
    needs: u16,
    /// What is as unknown after it as before.
    leaves: u16,
    form: PlainForm,
    /// Less than [`FORMATS`].
    format: u8,
    longest: u8,
}

impl Outline {
    const fn of(shape: &Shape) -> Outline {
        Outline {
            needs: shape.needs,
            leaves: !shape.gives,
            form: shape.form,
            format: shape.format,
            longest: shape.longest,
        }
    }
}

impl Shape {
    /// No load or store, or one with something wrong.
    const OTHER: Shape = Shape {
        value: 0,
        place: 0,
        needs: History::NEVER,
        gives: 0,
        form: PlainForm::ABSENT,
        format: 0,
        size: 0,
        address_base: 0,
        data_base: 0,
        adds: false,
        start: 0,
        end: 0,
        longest: 0,
        unused: 0,
        left: 0,
        right: 0,
        skip: 0,
        shift: 0,
    };

    /// Of a load or store of this format; `head` is the number of bits of its first
    /// fields.
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
        let kind = match format & 2 {
            0 => AccessKind::Load,
            _ => AccessKind::Store,
        };
        let (has_address, has_data) = (content != Content::Data, content != Content::Address);
        let Some(form) = PlainForm::new(kind, size, has_address, has_data) else {
            return Shape::OTHER;
        };
        let refers = data != Sent::Full;
        let start = match content {
            Content::Both => head + size,
            Content::Address | Content::Data => head,
        };
        let shift = if format & 1 == 0 { size } else { 0 };
        Shape {
            value: value_mask(size),
            place: u64::MAX << shift,
            needs: History::bases(size, moves, refers),
            gives: History::bases(size, has_address, has_data),
            form,
            format: format as u8,
            size,
            address_base: if moves { size } else { NOTHING },
            data_base: if refers { size } else { NOTHING },
            adds: data == Sent::Difference,
            start,
            end: start,
            longest: LONGEST,
            unused: 0,
            left: 0,
            right: 0,
            skip: start - shift,
            shift,
        }
    }

    /// The same where these bits follow: `data_len`, as many as `size` says.
    const fn with_length(self, bits: u8) -> Shape {
        let sent = 8 * ((bits & ((1 << self.size) - 1)) + 1);
        let end = self.start + sent;
        let skip = end - self.shift;
        let longest = (end + 64) / 8;
        Shape {
            end,
            longest: if longest < LONGEST { longest } else { LONGEST },
            unused: 64 - sent,
            left: 64_u8.saturating_sub(end),
            right: if end < 64 { 64 - sent } else { self.start },
            skip: if skip > 63 { 63 } else { skip },
            ..self
        }
    }
}

/// Bytes of a payload that are read, at most.
const LONGEST: u8 = 16;

/// The place of an address or of data to which nothing refers, which is 0.
const NOTHING: u8 = 4;

/// Room for accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    forms: Vec<PlainForm>,
    values: Vec<PlainValues>,
    /// What was counted where the values have not been read.
    sums: Option<Sums>,
}

/// Packets and their bytes by format: of each the number in the upper half, of no more than
/// are read at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums([u64; FORMATS]);

impl Sums {
    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    fn add(&mut self, format: u8, bytes: usize) {
        self.0[usize::from(format & 3)] += 1 << 32 | bytes as u64;
    }

    /// In the order of the formats.
    pub(crate) fn counts(self) -> [Count; FORMATS] {
        self.0.map(|sum| Count {
            messages: sum >> 32,
            bytes: sum & mask(32),
        })
    }
}

impl Batch {
    /// Room for as many as are read at once.
    fn room(&mut self) -> (&mut [PlainForm], &mut [PlainValues]) {
        self.fill();
        self.sums = None;
        (&mut self.forms, &mut self.values)
    }

    /// The same without values.
    fn room_for_forms(&mut self) -> (&mut [PlainForm], &mut Sums) {
        self.fill();
        (&mut self.forms, self.sums.insert(Sums::default()))
    }

    #[inline]
    fn fill(&mut self) {
        if self.forms.is_empty() {
            self.forms.resize(BATCH, PlainForm::ABSENT);
            self.values.resize(BATCH, PlainValues::default());
        }
    }

    /// What was counted while they were read, if anything was.
    pub(crate) fn sums(&self) -> Option<Sums> {
        self.sums
    }

    /// The first so many.
    pub(crate) fn first(&self, count: usize) -> PlainAccesses<'_> {
        let forms = self.forms.get(..count).unwrap_or_default();
        let values = self.values.get(..count).filter(|_| self.sums.is_none());
        PlainAccesses::new(forms, values.unwrap_or_default())
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
        let head: u8 = widths.into_iter().sum();
        let lengths = match content {
            Content::Both => 3,
            Content::Address | Content::Data => 0,
        };
        let mut shapes = alloc::vec![Shape::OTHER; 1 << (head + lengths)].into_boxed_slice();
        for bits in 0..1u64 << head {
            let mut rest = bits;
            let fields = widths.map(|width| {
                let field = rest & mask(width.into());
                rest >>= width;
                field
            });
            let shape = shape_of(fields, head, &layout, content, data);
            if shape.form == PlainForm::ABSENT {
                continue;
            }
            for length in 0..1 << lengths {
                if let Some(place) = shapes.get_mut(bits as usize | usize::from(length) << head) {
                    *place = match content {
                        Content::Both => shape.with_length(length),
                        Content::Address | Content::Data => shape,
                    };
                }
            }
        }
        Some(Transfers {
            made_of: (layout, *data),
            outlines: outlines(&shapes),
            shapes,
            first: mask((head + lengths).into()),
            head: head.into(),
            content,
            data_width: layout.data_width,
            address_width: layout.daddress_width,
            xor_addresses: data.xor_addresses,
            xlen: config.xlen,
        })
    }

    /// Reads packets that `head` fits at the front of the bytes, as far as they are loads
    /// and stores without anything wrong: how many, and how many bytes they are. Without
    /// `values` their addresses and data, and those that come later, mean nothing.
    pub(super) fn read_all(
        &self,
        (head, bytes): (&Head, &[u8]),
        history: &mut History,
        out: &mut Batch,
        values: bool,
    ) -> (usize, usize) {
        if !values
            && self.content == Content::Both
            && self.is_usual()
            && let Some(lead) = head.lead()
        {
            return self.read_forms((&lead, bytes), history, out);
        }
        let (from, out) = ((head, bytes), out.room());
        match self.content {
            Content::Both if self.is_usual() => self.read_with::<USUAL>(from, history, out),
            Content::Both => self.read_with::<BOTH>(from, history, out),
            Content::Address => self.read_with::<ADDRESS>(from, history, out),
            Content::Data => self.read_with::<DATA>(from, history, out),
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
        (head, bytes): (&Head, &[u8]),
        history: &mut History,
        (forms, values): (&mut [PlainForm], &mut [PlainValues]),
    ) -> (usize, usize) {
        let (head, mut at, mut count) = (*head, 0, 0);
        let mut last = Last::new(history);
        for (form, values) in forms.iter_mut().zip(values) {
            let Some(packet) = window(bytes, at).and_then(|window| head.open(window)) else {
                break;
            };
            let Some(read) = self.read::<WHAT>(&packet, &mut last) else {
                break;
            };
            (*form, *values) = read;
            count += 1;
            at += packet.len;
        }
        last.save(history);
        (count, at)
    }

    /// The same where neither address nor data is looked at, of packets with both, which
    /// are counted.
    fn read_forms(
        &self,
        (lead, bytes): (&Lead, &[u8]),
        history: &mut History,
        out: &mut Batch,
    ) -> (usize, usize) {
        let (forms, sums) = out.room_for_forms();
        let (mut at, mut count) = (0, 0);
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let room = forms.get_mut(count..).unwrap_or_default();
            let (more, len) = self.read_usual((lead, rest), history, (room, sums));
            count += more;
            at += len;
            // The next may be shorter.
            let Some(form) = forms.get_mut(count) else {
                break;
            };
            let Some((outline, len)) = self.any_length(lead, bytes, at) else {
                break;
            };
            if outline.needs & !history.known != 0 {
                break;
            }
            *form = outline.form;
            history.known |= !outline.leaves;
            sums.add(outline.format, len);
            count += 1;
            at += len;
        }
        (count, at)
    }

    /// The same of packets that are long enough to have all first bits.
    #[inline(never)]
    fn read_usual(
        &self,
        (lead, bytes): (&Lead, &[u8]),
        history: &mut History,
        (forms, sums): (&mut [PlainForm], &mut Sums),
    ) -> (usize, usize) {
        let lead = *lead;
        let least = lead.with_payload(OUTLINES.trailing_zeros());
        let outlines = &*self.outlines;
        let mut unknown = !history.known;
        let (mut at, mut count) = (0, 0);
        while let Some(form) = forms.get_mut(count)
            && let Some((word, len)) = window(bytes, at).and_then(|window| lead.open(window))
            && len >= least
            && let outline = outline(outlines, lead.first_bits(word))
            && len <= lead.at + usize::from(outline.longest)
            && outline.needs & unknown == 0
        {
            *form = outline.form;
            unknown &= outline.leaves;
            sums.add(outline.format, len);
            count += 1;
            at += len;
        }
        history.known = !unknown;
        (count, at)
    }

    /// A packet of any length, unless it has no payload or too much.
    #[inline(never)]
    fn any_length(&self, lead: &Lead, bytes: &[u8], at: usize) -> Option<(&Outline, usize)> {
        let (word, len) = lead.open(window(bytes, at)?)?;
        let outline = outline(&self.outlines, lead.extended(word, len)?);
        (len <= lead.at + usize::from(outline.longest)).then_some((outline, len))
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
        let (forms, values) = out.room();
        let (form, values) = (forms.first_mut()?, values.first_mut()?);
        if len == 0 {
            return None;
        }
        let packet = Headed {
            len,
            payload,
            bytes: len,
            shift: 0,
        };
        let mut last = Last::new(history);
        (*form, *values) = match self.content {
            Content::Both => self.read::<BOTH>(&packet, &mut last),
            Content::Address => self.read::<ADDRESS>(&packet, &mut last),
            Content::Data => self.read::<DATA>(&packet, &mut last),
        }?;
        last.save(history);
        Some(())
    }

    #[inline(always)]
    fn read<const WHAT: u8>(
        &self,
        packet: &Headed<'_>,
        last: &mut Last,
    ) -> Option<(PlainForm, PlainValues)> {
        // The bits that were sent, the last of which is repeated.
        let Some(all) = packet.word() else {
            return match WHAT {
                USUAL | BOTH => self.longer::<WHAT>(packet, last),
                _ => None,
            };
        };
        let shape = self.shape(all as u64)?;
        if shape.needs & !last.known != 0 {
            return None;
        }
        let fields = match WHAT {
            USUAL | BOTH => {
                let data = all << (shape.left & 63) >> (shape.right & 63);
                let address = all >> (shape.skip & 63);
                if WHAT == BOTH {
                    signed(all >> (shape.end.min(63)), self.address_width)?;
                }
                (data, address)
            }
            ADDRESS => {
                signed(all >> self.head, self.address_width)?;
                (0, all >> (shape.skip & 63))
            }
            _ => (signed(all >> self.head, self.data_width)?, 0),
        };
        Some(self.restore::<WHAT>(fields, shape, last))
    }

    /// What the first bits say.
    #[inline(always)]
    fn shape(&self, bits: u64) -> Option<&Shape> {
        self.shapes.get((bits & self.first) as usize)
    }

    /// The access that these fields mean: data, and the address in bytes with any bits below
    /// its [`place`](Shape::place).
    #[inline(always)]
    fn restore<const WHAT: u8>(
        &self,
        (data, address): (i64, i64),
        shape: &Shape,
        last: &mut Last,
    ) -> (PlainForm, PlainValues) {
        let mut out = PlainValues::default();
        if WHAT != DATA {
            let field = address as u64 & shape.place;
            let before = last.addresses.get(shape.address_base);
            let mut addr = match WHAT != USUAL && self.xor_addresses {
                true => before ^ field,
                false => before.wrapping_add(field),
            };
            out.addr = addr;
            if WHAT != USUAL {
                addr = extend(addr, self.address_width) as u64;
                out.addr = self.xlen.wrap(addr);
            }
            last.addresses.set(shape.size, addr);
        }
        if WHAT != ADDRESS {
            let before = last.data.get(shape.data_base);
            let value = match shape.adds {
                true => before.wrapping_add(data as u64),
                false => before ^ data as u64,
            };
            let value = value & shape.value;
            last.data.set(shape.size, value);
            out.data = value;
        }
        last.known |= shape.gives;
        (shape.form, out)
    }

    /// A packet with data and address of more than a word.
    #[inline(always)]
    fn longer<const WHAT: u8>(
        &self,
        packet: &Headed<'_>,
        last: &mut Last,
    ) -> Option<(PlainForm, PlainValues)> {
        let Headed {
            payload,
            bytes: len,
            shift,
            ..
        } = *packet;
        let first = word(payload, 0)?;
        let shape = self.shape(first >> shift)?;
        if shape.needs & !last.known != 0 || len > shape.longest.into() {
            return None;
        }
        let end = word(payload, len.wrapping_sub(8))? as i64;
        // The second word, in which the last bit that was sent is repeated.
        let second = end >> (128u32.wrapping_sub(8 * len as u32) & 63);
        // The data starts in the second byte of the fields, or before it.
        let start = u32::from(shape.start & 15) + (shift & 15);
        let data = first >> start | (second as u64) << 1 << (63 - start);
        let sent = (8 * len as u32).saturating_sub(u32::from(shape.end) + shift);
        if WHAT != USUAL && sent > self.address_width.into() {
            return None;
        }
        let address = end >> 64u32.wrapping_sub(sent).min(63);
        let data = (data << (shape.unused & 63)) as i64 >> (shape.unused & 63);
        Some(self.restore::<WHAT>((data, address << (shape.shift & 63)), shape, last))
    }
}

/// What differences refer to, as a [`History`] has it.
struct Last {
    addresses: Five,
    data: Five,
    known: u16,
}

/// Values by log2 of the size, and [`NOTHING`].
struct Five([u64; 8]);

impl Five {
    fn new([a, b, c, d]: [u64; 4]) -> Five {
        Five([a, b, c, d, 0, 0, 0, 0])
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // three bits
    fn get(&self, at: u8) -> u64 {
        self.0[usize::from(at & 7)]
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // two bits
    fn set(&mut self, size: u8, value: u64) {
        self.0[usize::from(size & 3)] = value;
    }

    fn four(&self) -> [u64; 4] {
        let [a, b, c, d, ..] = self.0;
        [a, b, c, d]
    }
}

impl Last {
    #[inline(always)]
    fn new(history: &History) -> Last {
        Last {
            addresses: Five::new(history.addresses),
            data: Five::new(history.data),
            known: history.known,
        }
    }

    #[inline(always)]
    fn save(&self, history: &mut History) {
        (history.addresses, history.data) = (self.addresses.four(), self.data.four());
        history.known = self.known;
    }
}

/// Outlines: no layout has more first bits.
const OUTLINES: usize = 1 << 11;

/// The one that the first bits of a packet lead to.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // as many bits as there are outlines
fn outline(outlines: &[Outline; OUTLINES], bits: u64) -> &Outline {
    &outlines[bits as usize % OUTLINES]
}

/// Those of shapes, again and again where there are fewer.
fn outlines(shapes: &[Shape]) -> Box<[Outline; OUTLINES]> {
    let mut all = Box::new([Outline::of(&Shape::OTHER); OUTLINES]);
    for (outline, shape) in all.iter_mut().zip(shapes.iter().cycle()) {
        *outline = Outline::of(shape);
    }
    all
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

/// What the first fields of a packet say: `format`, `size` and `diff`.
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

/// A number of at most so many bits.
#[inline(always)]
const fn signed(value: i64, width: u8) -> Option<i64> {
    match value >> (width.wrapping_sub(1) & 63) {
        0 | -1 => Some(value),
        _ => None,
    }
}
