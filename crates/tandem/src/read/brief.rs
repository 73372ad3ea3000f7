//! The groups of most instructions, looked at without a [`Group`](crate::Group): those
//! with the shape that our own encoder gives them (`encode/plain.rs`).
//!
//! An instruction has groups of the same shape again and again: the same bytes, but for a
//! few values. So the shape is kept, and the next group of the instruction is compared with
//! it in words, without a look at each item.

use alloc::vec;
use alloc::vec::Vec;

use super::quick::Widths;
use crate::register::Register;

/// Bytes of the longest group that has a shape.
const LONGEST: usize = 40;

/// Bytes that are looked at: those of a group, and eight of a field wherever it starts.
pub(crate) const ROOM: usize = 72;

/// Shapes that are kept.
const SHAPES: usize = 8192;

/// Where the values of a group are, and everything else in it. All of it is what a
/// [`Group`](crate::Group) would say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// Bytes of all groups of this shape, with zeros in the place of values.
    same: [u64; LONGEST / 8],
    /// Which bits those are.
    masks: [u64; LONGEST / 8],
    /// The instruction, a compressed one in the low half.
    pub(crate) bits: u32,
    /// Its length by its opcode in the trace.
    pub(crate) insn_len: u8,
    /// Bytes, without the begin of the next group if that is what ends it.
    pub(crate) len: u8,
    /// The new pc; `None` for an increment.
    pub(crate) to: Option<Field>,
    /// The register that is written, never x0.
    pub(crate) reg: Option<(Register, Field)>,
    /// The CSR that is written.
    pub(crate) csr: Option<(Register, Field)>,
    /// The effective address of its access.
    pub(crate) addr: Option<Field>,
    /// What it stores: log2 of the size in bytes, and the data.
    pub(crate) store: Option<(u8, Field)>,
}

/// A value in a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    at: u8,
    /// Bits that do not belong to it in the eight bytes from its place on.
    cut: u8,
}

impl Field {
    fn new(at: usize, width: usize) -> Field {
        Field {
            at: at as u8,
            cut: 64 - 8 * width as u8,
        }
    }

    /// The value in this group.
    #[inline(always)]
    pub(crate) fn value(self, window: &[u8; ROOM]) -> u64 {
        // No field starts later.
        let at = usize::from(self.at) % 64;
        let word = little(window.get(at..at + 8).unwrap_or_default());
        word & u64::MAX >> (self.cut % 64)
    }
}

impl Shape {
    /// Whether it is that of the group at the start of these bytes.
    #[inline(always)]
    fn fits(&self, window: &[u8; ROOM]) -> bool {
        let mut differences = 0;
        let words = window.chunks_exact(8).zip(self.same.iter().zip(self.masks));
        for (bytes, (same, mask)) in words {
            differences |= little(bytes) & mask ^ same;
        }
        differences == 0 && self.len > 0
    }

    /// The shape of the group at the start of `bytes`: begin, a pc, an instruction, perhaps a
    /// register, perhaps a CSR, perhaps an access, end, in this order. `None` for anything
    /// else.
    fn read(window: &[u8; ROOM], widths: &Widths) -> Option<Shape> {
        let (mut shape, mut masks) = (Shape::default(), [0; LONGEST]);
        let mut at = match word(window, 0)? {
            start if start & 0xffff == 0x0301 => keep(&mut masks, 0, 2)?,
            start if start & 0x00ff_ffff == 0x000a_0701 && widths.new_pc => {
                let at = keep(&mut masks, 0, 3)?;
                shape.to = Some(Field::new(at, widths.xlen));
                at + widths.xlen
            }
            _ => return None,
        };
        let insn = word(window, at)?;
        (shape.bits, shape.insn_len) = match insn as u8 {
            16 if insn >> 8 & 3 != 3 => (u32::from((insn >> 8) as u16), 2),
            17 => ((insn >> 8) as u32, 4),
            _ => return None,
        };
        at = keep(&mut masks, at, 1 + usize::from(shape.insn_len))?;
        let item = word(window, at)?;
        if item as u8 == 4 && (item >> 8) as u16 >= 0x1000 {
            let register = Register::new((item >> 8) as u16)?;
            let width = match register.number() {
                0x1001..=0x101f => widths.xlen,
                0x1020..=0x103f if widths.flen > 0 => widths.flen,
                _ => return None,
            };
            at = keep(&mut masks, at, 3)?;
            shape.reg = Some((register, Field::new(at, width)));
            at += width;
        }
        let item = word(window, at)?;
        if item as u8 == 4 {
            let register = Register::new((item >> 8) as u16)?;
            register.as_csr()?;
            at = keep(&mut masks, at, 3)?;
            shape.csr = Some((register, Field::new(at, widths.xlen)));
            at += widths.xlen;
        }
        let item = word(window, at)?;
        if item & 0xffff == 0x0307 {
            at = keep(&mut masks, at, 2)?;
            shape.addr = Some(Field::new(at, widths.eaddr));
            at += widths.eaddr;
        }
        let item = word(window, at)?;
        if let (7, size @ 4..=7) = (item as u8, (item >> 8) as u8) {
            let size = size - 4;
            at = keep(&mut masks, at, 2)?;
            shape.store = Some((size, Field::new(at, 1 << size)));
            at += 1 << size;
        }
        let end = keep(&mut masks, at, 1)?;
        shape.len = match word(window, at)? as u8 {
            1 => at as u8,
            2 => end as u8,
            _ => return None,
        };
        let words = masks.chunks_exact(8).zip(window.chunks_exact(8));
        let kept = shape.masks.iter_mut().zip(&mut shape.same);
        for ((mask, same), (bytes, group)) in kept.zip(words) {
            *mask = little(bytes);
            *same = little(group) & *mask;
        }
        Some(shape)
    }
}

/// Notes that all groups of a shape have these bytes. Gives where the next ones are.
fn keep(masks: &mut [u8; LONGEST], at: usize, len: usize) -> Option<usize> {
    masks.get_mut(at..at + len)?.fill(0xff);
    Some(at + len)
}

/// Eight bytes, little-endian.
#[inline(always)]
fn little(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

/// The eight bytes at a place.
fn word(window: &[u8; ROOM], at: usize) -> Option<u64> {
    window.get(at..at + 8).map(little)
}

/// Shapes of groups, by the address of the instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    /// None, or as many as are kept.
    list: Vec<Shape>,
}

impl Shapes {
    /// The number of the shape of the group at the start of these bytes, whose instruction is
    /// at `pc`; it is the same until the next call. `None` if it has none.
    #[inline(always)]
    pub(super) fn find(&mut self, window: &[u8; ROOM], pc: u64, widths: &Widths) -> Option<u16> {
        // A branch has two shapes.
        let [_, kind, ..] = *window;
        let number = (pc / 2) as usize % (SHAPES / 2) + usize::from(kind & 4) * (SHAPES / 8);
        if !self.get(number as u16).fits(window) {
            self.learn(number, window, widths)?;
        }
        Some(number as u16)
    }

    /// A shape that was found.
    #[inline(always)]
    pub(crate) fn get(&self, number: u16) -> &Shape {
        static NONE: Shape = Shape {
            same: [0; LONGEST / 8],
            masks: [0; LONGEST / 8],
            bits: 0,
            insn_len: 0,
            len: 0,
            to: None,
            reg: None,
            csr: None,
            addr: None,
            store: None,
        };
        self.list.get(usize::from(number)).unwrap_or(&NONE)
    }

    #[inline(never)]
    fn learn(&mut self, number: usize, window: &[u8; ROOM], widths: &Widths) -> Option<()> {
        let shape = Shape::read(window, widths)?;
        if self.list.is_empty() {
            self.list = vec![Shape::default(); SHAPES];
        }
        *self.list.get_mut(number)? = shape;
        Some(())
    }
}
