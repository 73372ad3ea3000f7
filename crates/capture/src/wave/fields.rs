//! The signals of each port.

/// A kind of port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WavePort {
    /// The RISC-V Formal Interface.
    Rvfi,
    /// The trace ingress port (E-Trace chapter 4).
    Ingress,
    /// The trace port of CVA6 (ITI), whose blocks count an instruction that traps as
    /// retired.
    Cva6,
}

impl WavePort {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WavePort::Rvfi => "RVFI",
            WavePort::Ingress => "E-Trace ingress port",
            WavePort::Cva6 => "CVA6 trace port",
        }
    }

    /// The word by which it is chosen.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WavePort::Rvfi => "rvfi",
            WavePort::Ingress => "ingress",
            WavePort::Cva6 => "cva6",
        }
    }

    /// Its fields. Those that it cannot do without come first.
    pub(super) const fn fields(self) -> &'static [&'static str] {
        match self {
            WavePort::Rvfi => &RVFI,
            WavePort::Ingress | WavePort::Cva6 => &INGRESS,
        }
    }

    /// How many of its fields it cannot do without.
    pub(super) const fn needed(self) -> usize {
        match self {
            WavePort::Rvfi | WavePort::Ingress => 3,
            WavePort::Cva6 => 4,
        }
    }
}

/// Fields of RVFI, in the order of [`Rvfi`].
const RVFI: [&str; 25] = [
    "valid",
    "insn",
    "pc_rdata",
    "pc_wdata",
    "order",
    "trap",
    "intr",
    "halt",
    "mode",
    "ixl",
    "rs1_addr",
    "rs1_rdata",
    "rs2_addr",
    "rs2_rdata",
    "rd_addr",
    "rd_wdata",
    "frd_addr",
    "frd_wdata",
    "frd_wvalid",
    "mem_addr",
    "mem_rmask",
    "mem_wmask",
    "mem_rdata",
    "mem_wdata",
    "cause",
];

/// A field of RVFI that is used; others are known so that their names mean nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Rvfi {
    Valid = 0,
    Insn = 1,
    PcRdata = 2,
    PcWdata = 3,
    Order = 4,
    Trap = 5,
    Intr = 6,
    Mode = 8,
    Ixl = 9,
    RdAddr = 14,
    RdWdata = 15,
    FrdAddr = 16,
    FrdWdata = 17,
    FrdWvalid = 18,
    MemAddr = 19,
    MemRmask = 20,
    MemWmask = 21,
    MemWdata = 23,
    Cause = 24,
}

/// Fields of the ingress port, in the order of [`Block`].
const INGRESS: [&str; 17] = [
    "itype",
    "iaddr",
    "iretire",
    "valid",
    "ilastsize",
    "cause",
    "tval",
    "priv",
    "context",
    "ctype",
    "time",
    "cycles",
    "sijump",
    "trigger",
    "halted",
    "reset",
    "impdef",
];

/// A field of the ingress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Block {
    Itype = 0,
    Iaddr = 1,
    Iretire = 2,
    Valid = 3,
    Ilastsize = 4,
    Cause = 5,
    Tval = 6,
    Priv = 7,
    Context = 8,
    Ctype = 9,
    Time = 10,
    Cycles = 11,
    Sijump = 12,
    Trigger = 13,
    Halted = 14,
    Reset = 15,
    Impdef = 16,
}

impl Block {
    /// The port has it once, and not for each block.
    pub(super) const fn is_shared(field: usize) -> bool {
        const SHARED: [usize; 11] = [
            Block::Cause as usize,
            Block::Tval as usize,
            Block::Priv as usize,
            Block::Context as usize,
            Block::Ctype as usize,
            Block::Time as usize,
            Block::Cycles as usize,
            Block::Trigger as usize,
            Block::Halted as usize,
            Block::Reset as usize,
            Block::Impdef as usize,
        ];
        let mut at = 0;
        while at < SHARED.len() {
            #[allow(clippy::indexing_slicing)] // below its length
            if SHARED[at] == field {
                return true;
            }
            at += 1;
        }
        false
    }
}

/// The four signals of a CSR of RVFI.
pub(super) const CSR_PARTS: [&str; 4] = ["rmask", "wmask", "rdata", "wdata"];

/// `csr_mstatus_wdata`: the name of the CSR and the place of the signal among
/// [`CSR_PARTS`].
pub(super) fn csr_field(field: &str) -> Option<(&str, usize)> {
    let (name, part) = field.strip_prefix("csr_")?.rsplit_once('_')?;
    let part = CSR_PARTS.iter().position(|known| *known == part)?;
    (!name.is_empty()).then_some((name, part))
}

/// Whether a port has a signal of this name.
#[must_use]
pub fn is_field(name: &str) -> bool {
    RVFI.contains(&name) || INGRESS.contains(&name) || csr_field(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_in_the_order_of_their_names() {
        for (field, name) in [
            (Rvfi::Valid, "valid"),
            (Rvfi::PcWdata, "pc_wdata"),
            (Rvfi::Mode, "mode"),
            (Rvfi::RdAddr, "rd_addr"),
            (Rvfi::FrdWvalid, "frd_wvalid"),
            (Rvfi::MemWdata, "mem_wdata"),
            (Rvfi::Cause, "cause"),
        ] {
            assert_eq!(RVFI[field as usize], name);
        }
        for (field, name) in [
            (Block::Itype, "itype"),
            (Block::Valid, "valid"),
            (Block::Cycles, "cycles"),
            (Block::Impdef, "impdef"),
        ] {
            assert_eq!(INGRESS[field as usize], name);
        }
        assert!(
            Block::is_shared(Block::Priv as usize) && !Block::is_shared(Block::Sijump as usize)
        );
        assert_eq!(csr_field("csr_mstatus_wmask"), Some(("mstatus", 1)));
        assert_eq!(csr_field("csr_wmask"), None);
    }
}
