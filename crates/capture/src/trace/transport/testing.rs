//! Random messages of N-Trace for the tests.

use hartrace_ntrace::{Body, Btype, Evcode, Layout, Message, Sync};
use hartrace_testkit::Random;

/// The bytes of a message of any length.
pub(super) fn message(random: &mut Random) -> Vec<u8> {
    let (icnt, addr) = (random.bits(56), random.bits(63));
    let (hist, count) = (random.bits(64) | 1, random.bits(64));
    let sync = Sync(random.below(16) as u8);
    let btype = Btype::from_bits(random.below(4) as u8);
    let evcode = Evcode(random.below(16) as u8);
    let body = match random.below(8) {
        0 => Body::Ownership { process: count },
        1 => Body::DirectBranch { icnt },
        2 => Body::IndirectBranch {
            btype,
            icnt,
            uaddr: addr,
        },
        3 => Body::ProgTraceSync {
            sync,
            icnt,
            faddr: addr,
        },
        4 => Body::HistRepeat { hist, count },
        5 => Body::IndirectBranchHistSync {
            sync,
            btype,
            icnt,
            faddr: addr,
            hist,
        },
        6 => Body::RepeatBranch { count },
        _ => Body::ProgTraceCorrelation {
            evcode,
            icnt,
            hist: None,
        },
    };
    let message = Message {
        src: 0,
        body,
        tstamp: (random.below(2) == 0).then(|| random.bits(64)),
    };
    let mut bytes = Vec::new();
    message.write(&Layout::default(), &mut bytes);
    bytes
}
