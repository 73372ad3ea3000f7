//! The groups of most instructions, written at once.
//!
//! With the usual style nearly every group has one of few shapes: a pc, the
//! instruction, perhaps one register, perhaps one CSR (the flags of a floating-point
//! operation), perhaps one load or store. The general encoder writes the same bytes item
//! by item.

use hartrace_flow::{Access, AccessKind, Effects, Insn, RegId};

use super::{Encoder, Sink, mode_code};
use crate::config::{Addresses, Config, MemoryStyle, PcForm, PcStyle};
use crate::elements::Elements;
use crate::register::Register;

/// Longest of these groups, with room for eight bytes written at its end: begin,
/// pc, instruction, register, CSR, address, data, end.
const ROOM: usize = 1 + 10 + 5 + 11 + 11 + 10 + 10 + 1 + 8;

/// Field widths of such groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    xlen: usize,
    flen: usize,
    eaddr: usize,
}

/// A group on its way. Its length is not beside the bytes, so that it can stay in a
/// register.
struct Line<'b> {
    bytes: &'b mut [u8; ROOM],
    len: usize,
}

impl Line<'_> {
    /// The lowest bytes of a value; always writes eight.
    #[inline(always)]
    fn put(&mut self, width: usize, value: u64) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + 8) {
            to.copy_from_slice(&value.to_le_bytes());
            self.len += width;
        }
    }
}

impl Plain {
    /// For a configuration whose usual groups have these shapes.
    pub(super) fn new(config: &Config) -> Option<Plain> {
        let style = &config.style;
        let usual = style.pc == PcStyle::Increment
            && !style.incremental
            && style.addresses == Addresses::Effective
            && !style.minstret
            && style.memory == MemoryStyle::None
            && style.end_group
            && config.pc == PcForm::New
            && config.absent == Elements::default();
        usual.then_some(Plain {
            xlen: config.xlen_bytes(),
            flen: config.flen.bits() as usize / 8,
            eaddr: config.eaddr_bytes(),
        })
    }
}

/// Loads, and stores with their data; of atomic instructions none.
#[inline(always)]
fn is_plain(access: &Access, bits: u32) -> bool {
    let kind = match access.kind {
        AccessKind::Load => true,
        AccessKind::Store => access.data.is_some(),
        _ => false,
    };
    kind && access.size <= 3 && bits & 0x7f != 0x2f
}

impl Encoder {
    /// Writes the group of an instruction if it has one of the usual shapes.
    #[inline(always)]
    pub(super) fn plain_insn<S: Sink>(
        &mut self,
        plain: Plain,
        insn: &Insn,
        effects: &Effects,
        sink: &mut S,
    ) -> bool {
        let here = self.pc == Some(insn.pc) && self.mode == Some(mode_code(insn.mode));
        let others = effects.mode.is_some() | effects.incomplete;
        let len = insn.len();
        if !here || self.outside.is_some() || others || len > 4 {
            return false;
        }
        let mut bytes = [0; ROOM];
        let mut line = Line {
            bytes: &mut bytes,
            len: 0,
        };
        // Begin and increment, or the new pc.
        if insn.next == self.config.xlen.wrap(insn.end()) {
            line.put(2, 0x0301);
        } else {
            line.put(3, 0x000a_0701);
            line.put(plain.xlen, insn.next);
        }
        match len {
            2 => line.put(3, 16 | u64::from(insn.bits as u16) << 8),
            _ => line.put(5, 17 | u64::from(insn.bits) << 8),
        }
        match &*effects.regs {
            [] => {}
            [write] => {
                let width = match write.reg {
                    RegId::X(1..) => plain.xlen,
                    RegId::F(_) if plain.flen > 0 => plain.flen,
                    RegId::X(0) | RegId::F(_) => return false,
                };
                let number = Register::from(write.reg).number();
                line.put(3, 4 | u64::from(number) << 8);
                line.put(width, write.value);
            }
            _ => return false,
        }
        match &*effects.csrs {
            [] => {}
            [write] => {
                let number = Register::csr(write.csr).number();
                line.put(3, 4 | u64::from(number) << 8);
                line.put(plain.xlen, write.value);
            }
            _ => return false,
        }
        match &*effects.accesses {
            [] => {}
            [access] if is_plain(access, insn.bits) => {
                line.put(2, 0x0307);
                line.put(plain.eaddr, access.addr);
                if let (AccessKind::Store, Some(data)) = (access.kind, access.data) {
                    line.put(2, 0x0407 + (u64::from(access.size) << 8));
                    line.put(1 << access.size, data);
                }
            }
            _ => return false,
        }
        line.put(1, 2);
        self.counters.groups += 1;
        let len = line.len;
        self.counters.bytes += len as u64;
        self.counters.instructions += 1;
        sink.short_group(&bytes, len);
        self.operands.follow(&effects.regs[..]);
        self.pc = Some(insn.next);
        true
    }
}
