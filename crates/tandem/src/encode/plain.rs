//! The groups of most instructions, written at once.
//!
//! With the usual style nearly every group has one of few shapes: a pc, the
//! instruction, perhaps one register, perhaps one CSR (the flags of a floating-point
//! operation), perhaps one load or store. The general encoder writes the same bytes item
//! by item.

use hartrace_flow::{Access, AccessKind, Change, CsrWrite, Effects, Insn, Placed, RegId, RegWrite};
use hartrace_isa::csr::FFLAGS;

use super::{Encoder, Sink, is_trap_return, mode_code};
use crate::config::{Addresses, Config, MemoryStyle, PcForm, PcStyle};
use crate::elements::Elements;
use crate::item::Put;
use crate::register::Register;

/// Longest of these groups, with room for eight bytes written at its end: begin,
/// pc, instruction, register, CSR, address, data, end.
pub(crate) const ROOM: usize = 1 + 10 + 5 + 11 + 11 + 10 + 10 + 1 + 8;

/// Field widths of such groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    xlen: usize,
    flen: usize,
    eaddr: usize,
}

/// A group on its way. Its length is not beside the bytes, so that it can stay in a
/// register.
pub(super) struct Line<'b> {
    pub(super) bytes: &'b mut [u8; ROOM],
    pub(super) len: usize,
}

/// What is in such a group.
pub(crate) struct Group<'a> {
    /// The instruction, of two or four bytes.
    pub(crate) bits: u32,
    /// Where it led to, if not to the next one.
    pub(crate) to: Option<u64>,
    pub(crate) reg: Option<&'a RegWrite>,
    pub(crate) csr: Option<CsrWrite>,
    pub(crate) access: Option<&'a Access>,
}

impl<'a> Group<'a> {
    /// That of an instruction in straight-line code that led `to` somewhere, if it may be
    /// plain.
    #[inline(always)]
    pub(crate) fn of(insn: &Placed, change: &'a Change, to: Option<u64>) -> Option<Group<'a>> {
        if change.more || insn.len > 4 || to.is_some() && is_trap_return(insn.bits) {
            return None;
        }
        Some(Group {
            bits: insn.bits,
            to,
            reg: change.reg.as_ref(),
            csr: change.fflags.map(|value| CsrWrite {
                csr: FFLAGS,
                value: value.into(),
            }),
            access: change.access.as_ref(),
        })
    }
}

impl Put for Line<'_> {
    /// Always writes eight bytes.
    #[inline(always)]
    fn put(&mut self, width: usize, value: u64) {
        if let Some(to) = self.bytes.get_mut(self.len..self.len + 8) {
            to.copy_from_slice(&value.to_le_bytes());
            // The least that the compiler has to know, so as to check no more than once.
            self.len += width.min(8);
        }
    }
}

impl Plain {
    /// For a configuration whose usual groups have these shapes.
    pub(crate) fn new(config: &Config) -> Option<Plain> {
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

    /// Puts a whole group. If it cannot have such a shape, what was put of it is to be
    /// dropped.
    #[inline(always)]
    pub(crate) fn put(self, group: &Group<'_>, to: &mut impl Put) -> bool {
        let (len, opcode) = match group.bits & 3 {
            3 => (5, 17),
            _ => (3, 16),
        };
        let insn = opcode | u64::from(group.bits) << 8;
        // Begin and increment, or the new pc.
        match group.to {
            None => to.put(2 + len, 0x0301 | insn << 16),
            Some(pc) => {
                to.put(3, 0x000a_0701);
                to.put(self.xlen, pc);
                to.put(len, insn);
            }
        }
        if let Some(write) = group.reg {
            let width = match write.reg {
                RegId::X(1..) => self.xlen,
                RegId::F(_) if self.flen > 0 => self.flen,
                RegId::X(0) | RegId::F(_) => return false,
            };
            let number = Register::from(write.reg).number();
            to.put(3, 4 | u64::from(number) << 8);
            to.put(width, write.value);
        }
        if let Some(write) = group.csr {
            let number = Register::csr(write.csr).number();
            to.put(3, 4 | u64::from(number) << 8);
            to.put(self.xlen, write.value);
        }
        if let Some(access) = group.access {
            if !is_plain(access, group.bits) {
                return false;
            }
            to.put(2, 0x0307);
            to.put(self.eaddr, access.addr);
            if let (AccessKind::Store, Some(data)) = (access.kind, access.data) {
                to.put(2, 0x0407 + (u64::from(access.size) << 8));
                to.put(1 << access.size, data);
            }
        }
        to.put(1, 2);
        true
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
        let (reg, csr, access) = match (&*effects.regs, &*effects.csrs, &*effects.accesses) {
            ([_, _, ..], _, _) | (_, [_, _, ..], _) | (_, _, [_, _, ..]) => return false,
            (regs, csrs, accesses) => (regs.first(), csrs.first().copied(), accesses.first()),
        };
        let sequential = insn.next == self.config.xlen.wrap(insn.end());
        let group = Group {
            bits: insn.bits,
            to: (!sequential).then_some(insn.next),
            reg,
            csr,
            access,
        };
        let mut bytes = [0; ROOM];
        let mut line = Line {
            bytes: &mut bytes,
            len: 0,
        };
        if !plain.put(&group, &mut line) {
            return false;
        }
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
