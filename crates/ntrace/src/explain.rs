//! Messages for display: every field with its bytes, and full addresses and
//! times.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fields::Fields;
use crate::{Body, Btype, Evcode, Fault, Layout, Message, Owner, Process, Tcode};

/// A field as it stands in the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the specification.
    pub name: &'static str,
    /// The value as sent; bits above 64 are dropped.
    pub value: u64,
    /// Bits sent, padding included.
    pub bits: u32,
    /// The first of them, counted in MDO bits from the start of the message.
    pub first_bit: u32,
}

impl Field {
    /// Index of the byte that has its last bit.
    #[must_use]
    pub const fn last_byte(&self) -> usize {
        ((self.first_bit + self.bits).saturating_sub(1) / 6) as usize
    }
}

/// What a field is made of.
#[derive(Clone, Copy)]
enum Kind {
    Fixed(&'static str, u8),
    Var(&'static str),
}
use Kind::{Fixed, Var};

const BTYPE: Kind = Fixed("BTYPE", 2);
const SYNC: Kind = Fixed("SYNC", 4);
const ICNT: Kind = Var("ICNT");
const FADDR: Kind = Var("FADDR");
const UADDR: Kind = Var("UADDR");
const HIST: Kind = Var("HIST");

/// The names of the fields of all messages.
pub const FIELD_NAMES: &[&str] = &[
    "TCODE", "SRC", "PROCESS", "ICNT", "BTYPE", "UADDR", "ETYPE", "ECODE", "SYNC", "FADDR",
    "RCODE", "RDATA", "HREPEAT", "HIST", "BCNT", "EVCODE", "CDF", "TSTAMP", "DATA",
];

/// The fields between `SRC` and `TSTAMP`; `RCODE` and `CDF` may add more.
const fn fields_of(tcode: Tcode) -> Option<&'static [Kind]> {
    Some(match tcode {
        Tcode::OWNERSHIP => &[Var("PROCESS")],
        Tcode::DIRECT_BRANCH => &[ICNT],
        Tcode::INDIRECT_BRANCH => &[BTYPE, ICNT, UADDR],
        Tcode::ERROR => &[Fixed("ETYPE", 4), Var("ECODE")],
        Tcode::PROG_TRACE_SYNC | Tcode::DIRECT_BRANCH_SYNC => &[SYNC, ICNT, FADDR],
        Tcode::INDIRECT_BRANCH_SYNC => &[SYNC, BTYPE, ICNT, FADDR],
        Tcode::RESOURCE_FULL => &[Fixed("RCODE", 4), Var("RDATA")],
        Tcode::INDIRECT_BRANCH_HIST => &[BTYPE, ICNT, UADDR, HIST],
        Tcode::INDIRECT_BRANCH_HIST_SYNC => &[SYNC, BTYPE, ICNT, FADDR, HIST],
        Tcode::REPEAT_BRANCH => &[Var("BCNT")],
        Tcode::PROG_TRACE_CORRELATION => &[Fixed("EVCODE", 4), Fixed("CDF", 2), ICNT],
        _ => return None,
    })
}

/// The fields of one message, from its first byte to the one with MSEO = 11,
/// as far as they can be determined; those of vendors' and reserved messages are
/// called `DATA`. Beside them what is wrong with the message, if anything.
///
/// ```
/// use hartrace_ntrace::{Layout, explain};
///
/// // Table 6 of the specification.
/// let bytes = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];
/// let (fields, fault) = explain(&bytes, &Layout::default());
/// let told: Vec<_> = fields.iter().map(|f| (f.name, f.bits, f.value, f.last_byte())).collect();
/// assert_eq!(told[..2], [("TCODE", 6, 28, 0), ("BTYPE", 2, 0, 1)]);
/// assert_eq!(told[2..], [("ICNT", 10, 0x7d, 2), ("UADDR", 6, 7, 3), ("HIST", 12, 0xffe, 5)]);
/// assert_eq!(fault, None);
/// ```
#[must_use]
pub fn explain(bytes: &[u8], layout: &Layout) -> (Vec<Field>, Option<Fault>) {
    let mut reading = Reading {
        fields: Fields::new(bytes),
        len: bytes.len(),
        found: Vec::new(),
    };
    let fault = reading.all(layout).err();
    let fault = fault.or_else(|| Message::read(bytes, layout).err());
    (reading.found, fault)
}

struct Reading<'a> {
    fields: Fields<'a>,
    len: usize,
    found: Vec<Field>,
}

impl Reading<'_> {
    fn all(&mut self, layout: &Layout) -> Result<(), Fault> {
        let tcode = Tcode(self.one(Fixed("TCODE", 6))? as u8);
        match layout.src_width() {
            0 => {}
            width => drop(self.one(Fixed("SRC", width as u8))?),
        }
        let Some(kinds) = fields_of(tcode) else {
            while !self.fields.is_end() {
                self.one(Var("DATA"))?;
            }
            return Ok(());
        };
        let mut selector = 0;
        for &kind in kinds {
            let value = self.one(kind)?;
            if let Fixed("RCODE" | "CDF", _) = kind {
                selector = value;
            }
        }
        match (tcode, selector) {
            (Tcode::RESOURCE_FULL, 2) => drop(self.one(Var("HREPEAT"))?),
            (Tcode::PROG_TRACE_CORRELATION, 1) => drop(self.one(HIST)?),
            _ => {}
        }
        if !self.fields.is_end() {
            self.one(Var("TSTAMP"))?;
        }
        while !self.fields.is_end() {
            self.one(Var("DATA"))?;
        }
        Ok(())
    }

    fn one(&mut self, kind: Kind) -> Result<u64, Fault> {
        let first_bit = self.fields.taken(self.len);
        let (name, value, bits) = match kind {
            Fixed(name, width) => {
                let value = self.fields.fixed(u32::from(width))?;
                (name, u64::from(value), u32::from(width))
            }
            Var(name) => {
                let var = self.fields.var()?;
                (name, var.value, var.bits)
            }
        };
        self.found.push(Field {
            name,
            value,
            bits,
            first_bit,
        });
        Ok(value)
    }
}

impl Message<'_> {
    /// What the codes in it mean, in a few words.
    #[must_use]
    pub fn meaning(&self) -> Option<String> {
        let of = |btype| match btype {
            Btype::Indirect => None,
            Btype::Trap => Some("trap"),
            Btype::Exception => Some("exception"),
            Btype::Interrupt => Some("interrupt"),
        };
        match self.body {
            Body::Ownership { process } => Some(ownership(process)),
            Body::ProgTraceSync { sync, .. } | Body::DirectBranchSync { sync, .. } => {
                Some(sync.name().to_owned())
            }
            Body::IndirectBranchSync { sync, btype, .. }
            | Body::IndirectBranchHistSync { sync, btype, .. } => Some(match of(btype) {
                Some(trap) => format!("{}, {trap}", sync.name()),
                None => sync.name().to_owned(),
            }),
            Body::IndirectBranch { btype, .. } | Body::IndirectBranchHist { btype, .. } => {
                of(btype).map(str::to_owned)
            }
            Body::IcntFull { .. } => Some("I-CNT".to_owned()),
            Body::HistFull { .. } => Some("HIST".to_owned()),
            Body::HistRepeat { .. } => Some("HIST, repeated".to_owned()),
            Body::ProgTraceCorrelation { evcode, .. } => Some(Evcode::name(evcode).to_owned()),
            _ => None,
        }
    }
}

fn ownership(process: u64) -> String {
    match Process::from_field(process) {
        Err(fault) => fault.text().to_owned(),
        Ok(Process { mode, owner }) => match owner {
            Owner::Mode => format!("mode {}", mode.name()),
            Owner::Scontext(c) => format!("mode {}, scontext {c:#x}", mode.name()),
            Owner::Hcontext(c) => format!("mode {}, hcontext {c:#x}", mode.name()),
        },
    }
}

/// Keeps the address and the time each source sent last, so that a message
/// can be shown with the full ones.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    sources: BTreeMap<u16, Last>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    addr: Option<u64>,
    time: Option<u64>,
}

impl Follower {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Follower {
        Follower::default()
    }

    /// The full address and the full time of the next message, where it has
    /// them and they can be known.
    pub fn message(&mut self, message: &Message<'_>) -> (Option<u64>, Option<u64>) {
        let last = self.sources.entry(message.src).or_default();
        let address = match message.body {
            Body::ProgTraceSync { faddr, .. }
            | Body::DirectBranchSync { faddr, .. }
            | Body::IndirectBranchSync { faddr, .. }
            | Body::IndirectBranchHistSync { faddr, .. } => {
                last.addr = Some(faddr);
                last.addr
            }
            Body::IndirectBranch { uaddr, .. } | Body::IndirectBranchHist { uaddr, .. } => {
                last.addr = last.addr.map(|addr| addr ^ uaddr);
                last.addr
            }
            _ => None,
        };
        let time = message.tstamp.and_then(|stamp| {
            last.time = match message.body.tcode().is_sync() {
                true => Some(stamp),
                false => last.time.map(|time| time.wrapping_add(stamp)),
            };
            last.time
        });
        (address.map(|addr| addr << 1), time)
    }

    /// Something is missing: differences lead nowhere until the next full
    /// address.
    pub fn lost(&mut self) {
        self.sources.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Btype, Evcode, Sync};
    use hartrace_isa::Xlen;

    const BODIES: &[Body<'static>] = &[
        Body::Ownership { process: 0x3b2 },
        Body::DirectBranch { icnt: 300 },
        Body::Error { etype: 0, ecode: 5 },
        Body::IcntFull { icnt: 70 },
        Body::HistFull { hist: 0xffff_ffff },
        Body::HistRepeat {
            hist: 5,
            count: 150,
        },
        Body::RepeatBranch { count: 9 },
        Body::ProgTraceSync {
            sync: Sync(3),
            icnt: 0,
            faddr: 0x4000_0000,
        },
        Body::DirectBranchSync {
            sync: Sync(2),
            icnt: 1,
            faddr: u64::MAX >> 1,
        },
        Body::IndirectBranchSync {
            sync: Sync(2),
            btype: Btype::Trap,
            icnt: 1,
            faddr: 7,
        },
        Body::IndirectBranch {
            btype: Btype::Indirect,
            icnt: 3,
            uaddr: 0x1234,
        },
        Body::IndirectBranchHistSync {
            sync: Sync(2),
            btype: Btype::Interrupt,
            icnt: 1,
            faddr: 7,
            hist: 2,
        },
        Body::ProgTraceCorrelation {
            evcode: Evcode(4),
            icnt: 8,
            hist: Some(1),
        },
        Body::ProgTraceCorrelation {
            evcode: Evcode(0),
            icnt: 8,
            hist: None,
        },
    ];

    /// Every message, with and without `SRC` and a timestamp: the fields cover
    /// all its bits, one after the other.
    #[test]
    fn the_fields_are_the_message() {
        for src_bits in [0, 3, 6, 12] {
            for body in BODIES {
                for tstamp in [None, Some(77)] {
                    let layout = Layout {
                        src_bits,
                        xlen: Xlen::Rv64,
                        extend_addr_msb: false,
                    };
                    let message = Message {
                        src: 0,
                        body: *body,
                        tstamp,
                    };
                    let mut bytes = Vec::new();
                    message.write(&layout, &mut bytes);
                    let (fields, fault) = explain(&bytes, &layout);
                    assert_eq!(fault, None, "{message:?}");
                    let mut at = 0;
                    for field in &fields {
                        assert_eq!(field.first_bit, at, "{message:?}");
                        assert!(FIELD_NAMES.contains(&field.name), "{}", field.name);
                        at += field.bits;
                    }
                    assert_eq!(at as usize, bytes.len() * 6, "{message:?}");
                    assert_eq!(fields[0].value, u64::from(body.tcode().0));
                    let stamped = fields.last().unwrap().name == "TSTAMP";
                    assert_eq!(stamped, tstamp.is_some(), "{message:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_stands_beside_what_is_there() {
        let layout = Layout::default();
        let (fields, fault) = explain(&[0x6c, 0x0b], &layout);
        assert_eq!((fields.len(), fault), (3, Some(Fault::MissingField)));
        let (fields, fault) = explain(&[0x0c, 0x05, 0x05, 0x07], &layout);
        assert_eq!(fields.last().unwrap().name, "DATA");
        assert_eq!(fault, Some(Fault::ExtraField));
        let (fields, fault) = explain(&[56 << 2, 0x05, 0x07], &layout);
        assert_eq!((fields.len(), fault), (3, None));
        assert_eq!(explain(&[], &layout).1, Some(Fault::MissingField));
    }

    #[test]
    fn addresses_and_times_add_up() {
        let mut follower = Follower::new();
        let mut of = |body, tstamp| {
            follower.message(&Message {
                src: 1,
                body,
                tstamp,
            })
        };
        let jump = |uaddr| Body::IndirectBranch {
            btype: Btype::Indirect,
            icnt: 0,
            uaddr,
        };
        assert_eq!(of(jump(1), Some(5)), (None, None));
        let sync = Body::ProgTraceSync {
            sync: Sync(5),
            icnt: 0,
            faddr: 0x800,
        };
        assert_eq!(of(sync, Some(100)), (Some(0x1000), Some(100)));
        assert_eq!(of(jump(1), Some(5)), (Some(0x1002), Some(105)));
        assert_eq!(of(Body::DirectBranch { icnt: 1 }, None), (None, None));
        assert_eq!(of(jump(3), None), (Some(0x1004), None));
        follower.lost();
        let message = Message::new(1, jump(1));
        assert_eq!(follower.message(&message), (None, None));
    }

    #[test]
    fn src_has_twelve_bits_at_most() {
        let bytes = [0x0c, 0x04, 0x08, 0x17];
        let twelve = Layout {
            src_bits: 12,
            ..Layout::default()
        };
        let more = Layout {
            src_bits: u8::MAX,
            ..twelve
        };
        assert_eq!(explain(&bytes, &more), explain(&bytes, &twelve));
        assert_eq!(explain(&bytes, &more).1, None);
    }
}
