//! The instruction type of the trace ingress port, derived from [`Flow`].

use crate::{Flow, Link, MRET};

/// `itype`: how a block of retired instructions ended (E-Trace table 4.1).
///
/// Names are those of the ratified texts; the drafts call 10 and 11
/// "tail-call".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Itype {
    /// Nothing the other codes name.
    None = 0,
    /// An exception trapped after the last retired instruction.
    Exception = 1,
    /// An interrupt trapped after the last retired instruction.
    Interrupt = 2,
    /// Return from an exception or interrupt handler.
    TrapReturn = 3,
    /// A branch that was not taken.
    NotTaken = 4,
    /// A taken branch.
    Taken = 5,
    /// Any uninferable jump, where `itype` has three bits.
    Uninferable = 6,
    /// Reserved; some N-Trace rc7 ports use it for direct jumps with
    /// trTeInstEnAllJumps.
    Reserved = 7,
    /// Uninferable call.
    IndirectCall = 8,
    /// Inferable call.
    DirectCall = 9,
    /// Uninferable jump without linkage.
    IndirectJump = 10,
    /// Inferable jump without linkage.
    DirectJump = 11,
    /// Co-routine swap.
    Swap = 12,
    /// Function return.
    Return = 13,
    /// Other uninferable jump, with linkage.
    OtherIndirect = 14,
    /// Other inferable jump, with linkage.
    OtherDirect = 15,
}

impl Itype {
    const ALL: [Itype; 16] = [
        Itype::None,
        Itype::Exception,
        Itype::Interrupt,
        Itype::TrapReturn,
        Itype::NotTaken,
        Itype::Taken,
        Itype::Uninferable,
        Itype::Reserved,
        Itype::IndirectCall,
        Itype::DirectCall,
        Itype::IndirectJump,
        Itype::DirectJump,
        Itype::Swap,
        Itype::Return,
        Itype::OtherIndirect,
        Itype::OtherDirect,
    ];

    /// The type of this code; `None` above 15.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Itype> {
        Itype::ALL.get(usize::from(code)).copied()
    }

    /// The code on the port, 0 to 15.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Exception or interrupt.
    #[must_use]
    pub const fn is_trap(self) -> bool {
        matches!(self, Itype::Exception | Itype::Interrupt)
    }

    /// Taken or not.
    #[must_use]
    pub const fn is_branch(self) -> bool {
        matches!(self, Itype::NotTaken | Itype::Taken)
    }

    /// A jump, trap return included, whose target the program's code does not
    /// give (returns included: implicit-return modes decide about those).
    #[must_use]
    pub const fn is_uninferable(self) -> bool {
        matches!(
            self,
            Itype::TrapReturn
                | Itype::Uninferable
                | Itype::IndirectCall
                | Itype::IndirectJump
                | Itype::Swap
                | Itype::Return
                | Itype::OtherIndirect
        )
    }
}

/// Whose table assigns `itype`. The four texts differ in jumps without
/// linkage, in `jalr` through x0 and in the table jumps of Zcmt; the reference
/// programs have rules of their own.
///
/// | instruction | E-Trace 1.1.1 | E-Trace 2.0 | N-Trace rc7 | N-Trace 1.0 |
/// |---|---|---|---|---|
/// | `jal x0`, `c.j` | 11 | 11 | 15 | 11 |
/// | `jalr x0, rs`, `c.jr rs`, rs no link | 10 | 10 | 14 | 10 |
/// | `jalr x1, x0` | 9 | 9 | 8 | 8 |
/// | `jalr x0, x0` | 11 | 11 | 14 | 10 |
/// | `jalr rd, x0`, rd other | 15 | 15 | 14 | 14 |
/// | any `jalr` through x0, three bits | 0 | 0 | 6 | 6 |
/// | `cm.jt` | 11 | 11 | 0 | 11 |
///
/// E-Trace classes a jump as inferable when its target stands in the
/// instruction, which includes `jalr` through x0 (its decoder says so
/// explicitly); the N-Trace tables name `jalr` without that exception. The two
/// E-Trace versions agree for every instruction: the draft lists `jal x0` under
/// both tail-calls and other jumps, and only the first reading gives code 11 a
/// meaning. E-Trace does not name the table jumps of Zcmt at all; they are
/// inferable here, as N-Trace 1.0 has them, because the table is part of the
/// program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItypeTable {
    /// E-Trace 1.1.1-draft, section 4.1.1.
    ETrace111,
    /// E-Trace 2.0 and 2.05, "Jump classification and target inference".
    ETrace20,
    /// N-Trace 1.0.0-rc7, table 2.
    NTraceRc7,
    /// N-Trace 1.0, "Generating itype for different instructions".
    NTrace10,
    /// The reference encoder of N-Trace, NexRv, which goes by the mnemonics of a
    /// disassembly with aliases:
    ///
    /// | mnemonic | code |
    /// |---|---|
    /// | `j` | 11 |
    /// | `jal`, whatever it links | 9 |
    /// | `ret` (`jalr x0, 0(x1)`, `c.jr x1`), `mret` | 13 |
    /// | `jr`: any other `jalr` that links x0, `c.jr` | 10 |
    /// | `jalr`: all others, `c.jalr` | 8 |
    /// | `ecall`, which it takes for a retired call | 8 |
    /// | `ebreak`, `sret` and the like, jumps of Zcmp and Zcmt | 0 |
    NexRv,
    /// The reference flow of E-Trace, as its `post-iss` makes the input of the
    /// encoder. It differs from the text in these:
    ///
    /// | instruction | four bits | three bits |
    /// |---|---|---|
    /// | `mret`, `sret`, `uret`, `dret` | 14 | 6 |
    /// | `mnret`, jumps of Zcmp and Zcmt, which it does not know | 0 | 0 |
    ETraceReference,
}

impl ItypeTable {
    const fn is_etrace(self) -> bool {
        matches!(
            self,
            ItypeTable::ETrace111 | ItypeTable::ETrace20 | ItypeTable::ETraceReference
        )
    }
}

impl Flow {
    /// `itype` in its four-bit form for a retired instruction. `taken` counts
    /// for conditional branches only.
    ///
    /// ecall and ebreak give [`Itype::None`]: their code 1 belongs to the trap
    /// that follows, not to a retirement. `bits` is the instruction itself,
    /// which the tables of the reference programs look at.
    #[must_use]
    pub const fn itype4(self, bits: u32, taken: bool, table: ItypeTable) -> Itype {
        match self {
            _ if matches!(table, ItypeTable::NexRv) => self.nexrv(bits, taken),
            Flow::Seq | Flow::Const { .. } | Flow::Trap => Itype::None,
            Flow::Branch { .. } if taken => Itype::Taken,
            Flow::Branch { .. } => Itype::NotTaken,
            Flow::PopReturn | Flow::Table { .. }
                if matches!(table, ItypeTable::ETraceReference) =>
            {
                Itype::None
            }
            Flow::TrapReturn if matches!(table, ItypeTable::ETraceReference) => match bits {
                MNRET => Itype::None,
                _ => Itype::OtherIndirect,
            },
            Flow::TrapReturn => Itype::TrapReturn,
            Flow::PopReturn => Itype::Return,
            Flow::Table {
                link: Link::None, ..
            } if matches!(table, ItypeTable::NTraceRc7) => Itype::None,
            Flow::Jump { link, .. } | Flow::Table { link, .. } => direct(link, table),
            Flow::Indirect { rs1, link, .. } if rs1.number() == 0 && table.is_etrace() => {
                direct(link, table)
            }
            Flow::Indirect { link, .. } => match link {
                Link::Call => Itype::IndirectCall,
                Link::Return => Itype::Return,
                Link::Swap => Itype::Swap,
                Link::None if !matches!(table, ItypeTable::NTraceRc7) => Itype::IndirectJump,
                Link::None | Link::Other => Itype::OtherIndirect,
            },
        }
    }

    /// `itype` in its three-bit form: inferable jumps are 0 and uninferable
    /// ones 6.
    #[must_use]
    pub const fn itype3(self, bits: u32, taken: bool, table: ItypeTable) -> Itype {
        match self.itype4(bits, taken, table) {
            Itype::DirectCall | Itype::DirectJump | Itype::OtherDirect => Itype::None,
            Itype::IndirectCall
            | Itype::IndirectJump
            | Itype::Swap
            | Itype::Return
            | Itype::OtherIndirect => Itype::Uninferable,
            code => code,
        }
    }

    const fn nexrv(self, bits: u32, taken: bool) -> Itype {
        // Of the compressed jumps c.jr links x0 and c.jalr x1.
        let rd = match bits & 3 {
            3 => bits >> 7 & 31,
            _ => bits >> 12 & 1,
        };
        match self {
            Flow::Branch { .. } if taken => Itype::Taken,
            Flow::Branch { .. } => Itype::NotTaken,
            Flow::Jump {
                link: Link::None, ..
            } => Itype::DirectJump,
            Flow::Jump { .. } => Itype::DirectCall,
            Flow::Indirect { .. } if rd != 0 => Itype::IndirectCall,
            Flow::Indirect { rs1, offset: 0, .. } if rs1.number() == 1 => Itype::Return,
            Flow::Indirect { .. } => Itype::IndirectJump,
            Flow::TrapReturn if bits == MRET => Itype::Return,
            Flow::Trap if bits == ECALL => Itype::IndirectCall,
            _ => Itype::None,
        }
    }
}

const ECALL: u32 = 0x0000_0073;
const MNRET: u32 = 0x7020_0073;

const fn direct(link: Link, table: ItypeTable) -> Itype {
    match link {
        Link::Call => Itype::DirectCall,
        Link::None if !matches!(table, ItypeTable::NTraceRc7) => Itype::DirectJump,
        _ => Itype::OtherDirect,
    }
}

#[cfg(test)]
mod tests;
