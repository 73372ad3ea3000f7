//! The trace ingress port: what a hart shows its trace encoder (E-Trace
//! chapter 4, shared by N-Trace). Encoders eat nothing else, so a row from an
//! RTL simulation drives the same model as our own hart.

use hartrace_isa::Itype;

use crate::{Access, AccessKind, Context, HartId, Mode};

mod data;
mod kinds;
mod loads;
mod pass;
mod port;
mod run;

pub use pass::{PassRuns, Passing, PushOutcomes, Tally};
pub use run::{IngressRun, IngressRuns};

pub use port::{DataPort, ItypeWidth, Port, PortConfig, Retirement, Retires};

/// One block of the instruction interface: tables 4.1 to 4.3 and the sideband
/// inputs of table 4.5.
///
/// A port that retires several blocks in a cycle shows them one after the
/// other, oldest first. Of the signals it has only once per cycle, the levels
/// (`priv`, `context`, `time`, `halted`, `reset`, `power_down`, `impdef`) stand
/// in each block; what happens once appears once: `ctype`, trace-on and `external` in the
/// oldest block, trace-off in the newest, `cause` and `tval` in the block that
/// traps (always the newest), and notify in the block it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ingress {
    /// How the block ended.
    pub itype: Itype,
    /// Halfwords retired in the block. Single-retirement ports show 0 or 1
    /// instructions instead; readers convert.
    pub iretire: u32,
    /// log2 of the size of the last retired instruction, in halfwords, rounded
    /// up: the port cannot say 48 bits. Such an instruction has a block of its
    /// own.
    pub ilastsize: u8,
    /// Address of the first instruction retired. With `iretire` = 0 and
    /// `itype` = 1 the instruction that trapped (2.0; undefined in the draft).
    pub iaddr: u64,
    /// xcause without its interrupt bit; for `itype` 1 and 2.
    pub cause: u32,
    /// xtval; for `itype` 1 and 2.
    pub tval: u64,
    /// `priv`: mode of the instructions in the block.
    pub mode: Mode,
    /// Software context.
    pub context: Context,
    /// How a change of `context` is to be reported.
    pub ctype: Ctype,
    /// The uninferable jump that ends the block is sequentially inferable. The
    /// port says so of returns too; E-Trace ignores it for `itype` 13.
    pub sijump: bool,
    /// Time of retirement.
    pub time: u64,
    /// Index of the block in its cycle, 0 the oldest (what `dblock` of
    /// [`DataIngress`] refers to).
    pub block: u8,
    /// Debug trigger actions (table 4.7).
    pub trigger: Trigger,
    /// The hart is halted.
    pub halted: bool,
    /// The hart is in reset.
    pub reset: bool,
    /// The hart is in a low-power state, in which nothing retires. Not in the
    /// tables; encoders report it as a reason to synchronise.
    pub power_down: bool,
    /// Implementation-defined sideband, for filters.
    pub impdef: u32,
    /// Pulses on the encoder's external trigger inputs, one bit each (trace
    /// control interface, trTeTrigExtInControl).
    pub external: u8,
    /// Not a signal: blocks are missing before this one, because the source of
    /// the steps was damaged. Encoders treat it as trace they have lost.
    pub lost: bool,
    /// Not a signal either: blocks are left out before this one, because the
    /// trace that the steps come from was switched off. Encoders stop as they
    /// do for a filter.
    pub untraced: bool,
    /// Not a signal: when the interrupt of `itype` 2 became pending, if the source of the
    /// steps reports it. Encoders have no use for it.
    pub pending: Option<u64>,
}

/// Takes what the port shows.
pub trait IngressSink {
    /// One block of one hart, in order.
    fn ingress(&mut self, hart: HartId, block: &Ingress);

    /// Runs of one hart that follow each other. How many of them it took: a sink
    /// that must look at the blocks of a run one by one stops before it, and is
    /// given each block. It may then have done what the address of the first block
    /// asks for.
    fn runs(&mut self, hart: HartId, runs: IngressRuns<'_>) -> usize {
        let _ = (hart, runs);
        0
    }

    /// One data access, after the block its instruction retired in.
    fn data(&mut self, hart: HartId, access: &DataIngress) {
        let _ = (hart, access);
    }

    /// Data accesses of the unified form, as [`IngressSink::data`]: for a port that
    /// knows no more than the accesses themselves.
    fn accesses(&mut self, hart: HartId, accesses: &[Access]) {
        for access in accesses {
            self.data(hart, &DataIngress::unified(access, 0));
        }
    }

    /// Nothing follows.
    fn finish(&mut self) {}
}

impl<F: FnMut(HartId, &Ingress)> IngressSink for F {
    fn ingress(&mut self, hart: HartId, block: &Ingress) {
        self(hart, block);
    }
}

impl Default for Ingress {
    fn default() -> Self {
        Ingress {
            itype: Itype::None,
            iretire: 0,
            ilastsize: 0,
            iaddr: 0,
            cause: 0,
            tval: 0,
            mode: Mode::M,
            context: Context(0),
            ctype: Ctype::Unreported,
            sijump: false,
            time: 0,
            block: 0,
            trigger: Trigger::default(),
            halted: false,
            reset: false,
            power_down: false,
            impdef: 0,
            external: 0,
            lost: false,
            untraced: false,
            pending: None,
        }
    }
}

impl Ingress {
    /// Size of the last retired instruction in bytes.
    #[must_use]
    #[inline]
    pub const fn last_size(&self) -> u64 {
        2u64 << (self.ilastsize & 7)
    }

    /// Address after the last retired instruction.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.iaddr.wrapping_add(self.iretire as u64 * 2)
    }

    /// Address of the last retired instruction; `iaddr` when none retired.
    #[must_use]
    #[inline]
    pub const fn last_addr(&self) -> u64 {
        let all = self.iretire as u64 * 2;
        if all <= self.last_size() {
            self.iaddr
        } else {
            self.iaddr.wrapping_add(all - self.last_size())
        }
    }
}

/// `ctype`: what to do about a change of context (table 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ctype {
    /// Nothing.
    #[default]
    Unreported = 0,
    /// Report it when convenient, without an address.
    Imprecise = 1,
    /// Report it with the address of the first instruction, as a privilege
    /// change.
    Precise = 2,
    /// Report it as a discontinuity, as an exception.
    Discontinuity = 3,
}

impl Ctype {
    /// The action with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Ctype> {
        match code {
            0 => Some(Ctype::Unreported),
            1 => Some(Ctype::Imprecise),
            2 => Some(Ctype::Precise),
            3 => Some(Ctype::Discontinuity),
            _ => None,
        }
    }

    /// The code, 0 to 3.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// The `trigger` inputs: pulses in the cycle of the instruction they concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trigger {
    /// Bit 0, trace-on.
    pub on: bool,
    /// Bit 1, trace-off.
    pub off: bool,
    /// Bit 2, trace-notify.
    pub notify: bool,
}

impl Trigger {
    /// From the signal's three bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Trigger {
        Trigger {
            on: bits & 1 != 0,
            off: bits & 2 != 0,
            notify: bits & 4 != 0,
        }
    }

    /// The signal's three bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.on as u8 | (self.off as u8) << 1 | (self.notify as u8) << 2
    }
}

/// One access of the data interface (table 4.9), in its unified or its split
/// form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataIngress {
    /// A data access retired; without it only a load response may be valid.
    pub dretire: bool,
    /// Access type, with its raw code where that is reserved.
    pub dtype: u8,
    /// Address of the access.
    pub daddr: u64,
    /// log2 of the size in bytes.
    pub dsize: u8,
    /// Unified form: the data; for atomics and CSRs the stored value in the
    /// low half of the signal, the loaded value or operand in the high half.
    pub data: u128,
    /// Low bits of the instruction's address.
    pub iaddr_lsbs: u64,
    /// Block of the cycle the instruction is in.
    pub dblock: u8,
    /// Split form: id of the load request.
    pub lrid: u16,
    /// Split form: 0 none, 2 okay, 3 error.
    pub lresp: u8,
    /// Split form: id of the load that `lresp` answers.
    pub lid: u16,
    /// Split form: store data.
    pub sdata: u64,
    /// Split form: load data.
    pub ldata: u64,
}

impl DataIngress {
    /// What `dtype` 2 and 3, a load and a store of several accesses of an instruction,
    /// have more than 0 and 1 (E-Trace 2.05).
    pub const MULTIPLE: u8 = 2;

    /// `dtype` of the access by itself, and whether it is one of several accesses of an
    /// instruction.
    #[must_use]
    pub const fn plain_dtype(&self) -> (u8, bool) {
        match self.dtype {
            dtype @ (2 | 3) => (dtype & !DataIngress::MULTIPLE, true),
            dtype => (dtype, false),
        }
    }

    /// An access of the instruction at `pc` in its unified form.
    #[must_use]
    pub fn unified(access: &Access, pc: u64) -> DataIngress {
        // Both values in one signal, the stored one in the low half.
        let paired = access.kind.code() >= AccessKind::CsrReadWrite.code();
        let high = match paired {
            true => u128::from(access.operand.unwrap_or(0)),
            false => 0,
        };
        let shift = 8u32.checked_shl(u32::from(access.size)).unwrap_or(u32::MAX);
        DataIngress {
            dretire: true,
            dtype: access.kind.code(),
            daddr: access.addr,
            dsize: access.size,
            data: u128::from(access.data.unwrap_or(0)) | high.checked_shl(shift).unwrap_or(0),
            iaddr_lsbs: pc,
            ..DataIngress::default()
        }
    }

    /// The access in its unified form; `None` if none retired, or of a reserved type.
    #[must_use]
    pub fn access(&self) -> Option<Access> {
        let (dtype, _) = self.plain_dtype();
        let kind = AccessKind::from_code(dtype).filter(|_| self.dretire)?;
        let bits = (8u32 << (self.dsize & 7)).min(64);
        let mask = u64::MAX >> (64 - bits);
        let paired = kind.code() >= AccessKind::CsrReadWrite.code() && !kind.is_failure();
        // A read-only CSR has one value.
        let read_only = kind.is_csr() && self.daddr >> 10 & 3 == 3;
        let operand = (self.data >> bits) as u64 & mask;
        Some(Access {
            kind,
            size: self.dsize,
            addr: self.daddr,
            paddr: None,
            data: Some(self.data as u64 & mask),
            operand: (paired && !read_only).then_some(operand),
        })
    }
}
