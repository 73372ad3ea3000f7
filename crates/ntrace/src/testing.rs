//! Random messages for the tests.

use alloc::vec::Vec;

use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use crate::{Body, Btype, Evcode, Layout, Message, Sync};

/// What the format needs random.
pub(crate) trait RandomMessages {
    fn body(&mut self, xlen: Xlen) -> Body<'static>;
    fn message(&mut self, layout: &Layout) -> Message<'static>;
}

impl RandomMessages for Random {
    fn body(&mut self, xlen: Xlen) -> Body<'static> {
        let icnt = self.bits(56);
        let addr = self.bits(xlen.bits()) >> 1;
        let hist = self.bits(64) | 1;
        let count = self.bits(64);
        let sync = Sync(self.below(16) as u8);
        let btype = Btype::from_bits(self.below(4) as u8);
        let evcode = Evcode(self.below(16) as u8);
        body(
            self.below(KINDS),
            icnt,
            addr,
            hist,
            count,
            sync,
            btype,
            evcode,
        )
    }

    fn message(&mut self, layout: &Layout) -> Message<'static> {
        Message {
            src: self.below(1 << layout.src_bits) as u16,
            body: self.body(layout.xlen),
            tstamp: (self.below(2) == 0).then(|| self.bits(64)),
        }
    }
}

/// How many kinds of messages [`body`] knows.
pub(crate) const KINDS: u64 = 15;

/// The kinds of messages, by number.
#[allow(clippy::too_many_arguments)] // the fields there are
pub(crate) fn body(
    kind: u64,
    icnt: u64,
    addr: u64,
    hist: u64,
    count: u64,
    sync: Sync,
    btype: Btype,
    evcode: Evcode,
) -> Body<'static> {
    let (uaddr, faddr) = (addr, addr);
    match kind {
        0 => Body::Ownership { process: count },
        1 => Body::DirectBranch { icnt },
        2 => Body::IndirectBranch { btype, icnt, uaddr },
        3 => Body::Error {
            etype: evcode.0,
            ecode: count,
        },
        4 => Body::ProgTraceSync { sync, icnt, faddr },
        5 => Body::DirectBranchSync { sync, icnt, faddr },
        6 => Body::IndirectBranchSync {
            sync,
            btype,
            icnt,
            faddr,
        },
        7 => Body::IcntFull { icnt },
        8 => Body::HistFull { hist },
        9 => Body::HistRepeat { hist, count },
        10 => Body::IndirectBranchHist {
            btype,
            icnt,
            uaddr,
            hist,
        },
        11 => Body::IndirectBranchHistSync {
            sync,
            btype,
            icnt,
            faddr,
            hist,
        },
        12 => Body::RepeatBranch { count },
        13 => Body::ProgTraceCorrelation {
            evcode,
            icnt,
            hist: None,
        },
        _ => Body::ProgTraceCorrelation {
            evcode,
            icnt,
            hist: Some(hist),
        },
    }
}

/// Every layout there is.
pub(crate) fn layouts() -> impl Iterator<Item = Layout> {
    (0..=12).flat_map(|src_bits| {
        [Xlen::Rv32, Xlen::Rv64].into_iter().flat_map(move |xlen| {
            [false, true].map(|extend_addr_msb| Layout {
                src_bits,
                xlen,
                extend_addr_msb,
            })
        })
    })
}

/// The bytes of a message.
pub(crate) fn written(message: &Message<'_>, layout: &Layout) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.write(layout, &mut bytes);
    bytes
}
