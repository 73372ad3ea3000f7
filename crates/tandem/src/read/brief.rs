//! The groups of most instructions, looked at without a [`Group`](crate::Group): those
//! with the shape that our own encoder gives them (`encode/plain.rs`).

use super::quick::Widths;
use crate::register::Register;

/// Bytes that are looked at: more than there are in the longest of these groups (59), and
/// the eight bytes of a field wherever it starts.
const WINDOW: usize = 72;

/// What such a group says. All of it is what a [`Group`](crate::Group) would say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    /// The new pc; `None` for an increment.
    pub(crate) to: Option<u64>,
    /// The instruction, a compressed one in the low half.
    pub(crate) bits: u32,
    /// Its length by its opcode in the trace.
    pub(crate) insn_len: u8,
    /// The register that is written, never x0.
    pub(crate) reg: Option<(Register, u64)>,
    /// Where the item of the CSR that is written starts; 0 without one. Few groups have
    /// one, and a value that all of them carry would cost each of them.
    csr: u8,
    /// The effective address of its access.
    pub(crate) addr: Option<u64>,
    /// What it stores: log2 of the size in bytes, and the data.
    pub(crate) store: Option<(u8, u64)>,
    /// Bytes, without the begin of the next group if that is what ends it.
    pub(crate) len: usize,
}

impl Brief {
    /// Reads the group at the start of `bytes`: begin, a pc, an instruction, perhaps a
    /// register, perhaps a CSR, perhaps an access, end, in this order. `None` for anything else, and
    /// near the end of the bytes.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8], widths: &Widths) -> Option<Brief> {
        let window = bytes.first_chunk::<WINDOW>()?;
        let (to, at) = place(window, widths)?;
        let insn = word(window, at)?;
        let (bits, insn_len) = match insn as u8 {
            16 if insn >> 8 & 3 != 3 => (u32::from((insn >> 8) as u16), 2),
            17 => ((insn >> 8) as u32, 4),
            _ => return None,
        };
        let mut at = at + 1 + usize::from(insn_len);
        let mut item = word(window, at)?;
        let mut reg = None;
        if item as u8 == 4 && (item >> 8) as u16 >= 0x1000 {
            let register = Register::new((item >> 8) as u16)?;
            let width = match register.number() {
                0x1001..=0x101f => widths.xlen,
                0x1020..=0x103f if widths.flen > 0 => widths.flen,
                _ => return None,
            };
            reg = Some((register, low(word(window, at + 3)?, width)));
            at += 3 + width;
            item = word(window, at)?;
        }
        let mut csr = 0;
        if item as u8 == 4 {
            Register::new((item >> 8) as u16)?.as_csr()?;
            csr = at as u8;
            at += 3 + widths.xlen;
            item = word(window, at)?;
        }
        let mut addr = None;
        if item & 0xffff == 0x0307 {
            addr = Some(low(word(window, at + 2)?, widths.eaddr));
            at += 2 + widths.eaddr;
            item = word(window, at)?;
        }
        let mut store = None;
        if let (7, size @ 4..=7) = (item as u8, (item >> 8) as u8) {
            let size = size - 4;
            let data = low(word(window, at + 2)?, 1 << size);
            store = Some((size, data));
            at += 2 + (1 << size);
            item = word(window, at)?;
        }
        let len = match item as u8 {
            1 => at,
            2 => at + 1,
            _ => return None,
        };
        Some(Brief {
            to,
            bits,
            insn_len,
            reg,
            csr,
            addr,
            store,
            len,
        })
    }

    /// Whether a CSR is written.
    #[inline(always)]
    pub(crate) const fn has_csr(&self) -> bool {
        self.csr > 0
    }

    /// The CSR that is written; `bytes` are those that the group was read from.
    #[inline(never)]
    pub(super) fn csr(&self, bytes: &[u8], widths: &Widths) -> Option<(Register, u64)> {
        let window = bytes.first_chunk::<WINDOW>()?;
        let at = usize::from(self.csr);
        let register = Register::new((word(window, at)? >> 8) as u16)?;
        let written = self.has_csr() && register.as_csr().is_some();
        written.then_some((register, low(word(window, at + 3)?, widths.xlen)))
    }
}

/// The begin and the new pc; where the item after them is.
#[inline(always)]
fn place(window: &[u8; WINDOW], widths: &Widths) -> Option<(Option<u64>, usize)> {
    match word(window, 0)? {
        start if start & 0xffff == 0x0301 => Some((None, 2)),
        start if start & 0x00ff_ffff == 0x000a_0701 && widths.new_pc => {
            let to = low(word(window, 3)?, widths.xlen);
            Some((Some(to), 3 + widths.xlen))
        }
        _ => None,
    }
}

/// The eight bytes at a place, little-endian.
#[inline(always)]
fn word(window: &[u8; WINDOW], at: usize) -> Option<u64> {
    let bytes = window.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The lowest `width` bytes, 1 to 8.
#[inline(always)]
fn low(word: u64, width: usize) -> u64 {
    word & (u64::MAX >> (64 - 8 * width as u32))
}
