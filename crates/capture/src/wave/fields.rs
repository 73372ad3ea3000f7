//! Numbers of the signals of each port.

/// A field of RVFI that is used, by its place in `WavePort::fields`; others are known so
/// that their names mean nothing else.
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

/// A field of the ingress port, by its place in `WavePort::fields`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_files::wave_port::{WavePort, csr_field};

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
            assert_eq!(WavePort::Rvfi.fields()[field as usize], name);
        }
        for (field, name) in [
            (Block::Itype, "itype"),
            (Block::Valid, "valid"),
            (Block::Cycles, "cycles"),
            (Block::Impdef, "impdef"),
        ] {
            assert_eq!(WavePort::Ingress.fields()[field as usize], name);
        }
        assert!(
            Block::is_shared(Block::Priv as usize) && !Block::is_shared(Block::Sijump as usize)
        );
        assert_eq!(csr_field("csr_mstatus_wmask"), Some(("mstatus", 1)));
        assert_eq!(csr_field("csr_wmask"), None);
    }
}
