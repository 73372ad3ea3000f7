//! Ports of harts in waveforms: their words, and the names of their signals.

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
    #[must_use]
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            WavePort::Rvfi => &RVFI,
            WavePort::Ingress | WavePort::Cva6 => &INGRESS,
        }
    }

    /// How many of its fields it cannot do without.
    #[must_use]
    pub const fn needed(self) -> usize {
        match self {
            WavePort::Rvfi | WavePort::Ingress => 3,
            WavePort::Cva6 => 4,
        }
    }
}

/// Fields of RVFI, in their order.
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

/// Fields of the ingress port, in their order.
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

/// The four signals of a CSR of RVFI.
pub const CSR_PARTS: [&str; 4] = ["rmask", "wmask", "rdata", "wdata"];

/// `csr_mstatus_wdata`: the name of the CSR and the place of the signal among
/// [`CSR_PARTS`].
#[must_use]
pub fn csr_field(field: &str) -> Option<(&str, usize)> {
    let (name, part) = field.strip_prefix("csr_")?.rsplit_once('_')?;
    let part = CSR_PARTS.iter().position(|known| *known == part)?;
    (!name.is_empty()).then_some((name, part))
}

/// Whether a port has a signal of this name.
#[must_use]
pub fn is_field(name: &str) -> bool {
    RVFI.contains(&name) || INGRESS.contains(&name) || csr_field(name).is_some()
}
