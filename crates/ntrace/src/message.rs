//! Messages as plain values, from bytes and to bytes (chapters 6 and 7).

pub(crate) mod quick;

use hartrace_isa::Xlen;

use crate::fields::{EMPTY, Fields, Packer, Room, Var};
use crate::{Btype, Evcode, Fault, MAX_SRC_BITS, Sync, Tcode};

/// What the bytes of a message depend on beside the message itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Width of `SRC`, 0 to 12 bits (trTeSrcBits).
    pub src_bits: u8,
    /// Width of addresses.
    pub xlen: Xlen,
    /// Equal upper bits of an address are left out (trTeInstExtendAddrMSB).
    pub extend_addr_msb: bool,
}

impl Default for Layout {
    /// One hart, 64 bits, nothing left out.
    fn default() -> Layout {
        Layout {
            src_bits: 0,
            xlen: Xlen::Rv64,
            extend_addr_msb: false,
        }
    }
}

impl Layout {
    /// Width of `SRC`; the register field has no room for more.
    pub(crate) const fn src_width(&self) -> u32 {
        if self.src_bits > MAX_SRC_BITS {
            MAX_SRC_BITS as u32
        } else {
            self.src_bits as u32
        }
    }
}

/// One message.
///
/// ```
/// use hartrace_ntrace::{Body, Btype, Layout, Message};
///
/// // Table 6 of the specification.
/// let bytes = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff];
/// let message = Message::read(&bytes, &Layout::default()).unwrap();
/// let body = Body::IndirectBranchHist { btype: Btype::Indirect, icnt: 0x7d, uaddr: 7, hist: 0xffe };
/// assert_eq!(message.body, body);
/// let mut written = Vec::new();
/// message.write(&Layout::default(), &mut written);
/// assert_eq!(written, bytes);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// `SRC`: which encoder sent it; 0 where there is no such field.
    pub src: u16,
    /// The fields of its own.
    pub body: Body<'a>,
    /// `TSTAMP`, as sent: absolute in sync messages, else the time since the
    /// last one.
    pub tstamp: Option<u64>,
}

/// What a message says. Addresses are as sent, without bit 0; `uaddr` is the
/// difference (exclusive or) to the last address sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Who runs; the field is a [`Process`](crate::Process).
    Ownership {
        /// `PROCESS`.
        process: u64,
    },
    /// A taken branch.
    DirectBranch {
        /// Halfwords retired.
        icnt: u64,
    },
    /// A jump or a trap.
    IndirectBranch {
        /// What it was.
        btype: Btype,
        /// Halfwords retired.
        icnt: u64,
        /// The target.
        uaddr: u64,
    },
    /// Messages were lost.
    Error {
        /// `ETYPE`: 0 for a full queue.
        etype: u8,
        /// `ECODE`: which messages, one bit each.
        ecode: u64,
    },
    /// A full address.
    ProgTraceSync {
        /// Why.
        sync: Sync,
        /// Halfwords retired.
        icnt: u64,
        /// Where the hart is.
        faddr: u64,
    },
    /// A taken branch and a full address.
    DirectBranchSync {
        /// Why.
        sync: Sync,
        /// Halfwords retired.
        icnt: u64,
        /// Where the hart is.
        faddr: u64,
    },
    /// A jump or trap and a full address.
    IndirectBranchSync {
        /// Why.
        sync: Sync,
        /// What it was.
        btype: Btype,
        /// Halfwords retired.
        icnt: u64,
        /// Where the hart is.
        faddr: u64,
    },
    /// `RCODE` = 0: the instruction counter is full.
    IcntFull {
        /// Halfwords retired.
        icnt: u64,
    },
    /// `RCODE` = 1: the history is full.
    HistFull {
        /// `HIST`, with its stop bit.
        hist: u64,
    },
    /// `RCODE` = 2: the same history several times.
    HistRepeat {
        /// `HIST`, with its stop bit.
        hist: u64,
        /// `HREPEAT`, how often.
        count: u64,
    },
    /// A jump or trap and the branches before it.
    IndirectBranchHist {
        /// What it was.
        btype: Btype,
        /// Halfwords retired.
        icnt: u64,
        /// The target.
        uaddr: u64,
        /// `HIST`, with its stop bit.
        hist: u64,
    },
    /// A jump or trap, the branches before it and a full address.
    IndirectBranchHistSync {
        /// Why.
        sync: Sync,
        /// What it was.
        btype: Btype,
        /// Halfwords retired.
        icnt: u64,
        /// Where the hart is.
        faddr: u64,
        /// `HIST`, with its stop bit.
        hist: u64,
    },
    /// The branch message before, again.
    RepeatBranch {
        /// `B-CNT`, how many more times.
        count: u64,
    },
    /// Tracing ends.
    ProgTraceCorrelation {
        /// Why.
        evcode: Evcode,
        /// Halfwords retired.
        icnt: u64,
        /// `HIST`, with its stop bit; `None` for `CDF` = 0.
        hist: Option<u64>,
    },
    /// A vendor's or a reserved message, all its bytes.
    Other {
        /// Its type.
        tcode: Tcode,
        /// The whole message.
        bytes: &'a [u8],
    },
}

impl Body<'_> {
    /// The message's type.
    #[must_use]
    pub const fn tcode(&self) -> Tcode {
        match self {
            Body::Ownership { .. } => Tcode::OWNERSHIP,
            Body::DirectBranch { .. } => Tcode::DIRECT_BRANCH,
            Body::IndirectBranch { .. } => Tcode::INDIRECT_BRANCH,
            Body::Error { .. } => Tcode::ERROR,
            Body::ProgTraceSync { .. } => Tcode::PROG_TRACE_SYNC,
            Body::DirectBranchSync { .. } => Tcode::DIRECT_BRANCH_SYNC,
            Body::IndirectBranchSync { .. } => Tcode::INDIRECT_BRANCH_SYNC,
            Body::IcntFull { .. } | Body::HistFull { .. } | Body::HistRepeat { .. } => {
                Tcode::RESOURCE_FULL
            }
            Body::IndirectBranchHist { .. } => Tcode::INDIRECT_BRANCH_HIST,
            Body::IndirectBranchHistSync { .. } => Tcode::INDIRECT_BRANCH_HIST_SYNC,
            Body::RepeatBranch { .. } => Tcode::REPEAT_BRANCH,
            Body::ProgTraceCorrelation { .. } => Tcode::PROG_TRACE_CORRELATION,
            Body::Other { tcode, .. } => *tcode,
        }
    }
}

impl Body<'_> {
    /// `SYNC`, where the message has it.
    #[must_use]
    pub const fn sync(&self) -> Option<Sync> {
        match self {
            Body::ProgTraceSync { sync, .. }
            | Body::DirectBranchSync { sync, .. }
            | Body::IndirectBranchSync { sync, .. }
            | Body::IndirectBranchHistSync { sync, .. } => Some(*sync),
            _ => None,
        }
    }
}

impl<'a> Message<'a> {
    /// A message without a timestamp.
    #[must_use]
    pub const fn new(src: u16, body: Body<'a>) -> Message<'a> {
        Message {
            src,
            body,
            tstamp: None,
        }
    }

    /// Reads one message: its bytes from the first to the one with MSEO = 11.
    ///
    /// # Errors
    ///
    /// What is wrong with its fields.
    #[inline]
    pub fn read(bytes: &'a [u8], layout: &Layout) -> Result<Message<'a>, Fault> {
        let (tcode, mut fields) = Fields::behind_tcode(bytes)?;
        let tcode = Tcode(tcode);
        let src = match layout.src_width() {
            0 => 0,
            width => fields.fixed(width)?,
        };
        let body = match tcode {
            Tcode::OWNERSHIP => Body::Ownership {
                process: fields.var()?.within(64)?,
            },
            Tcode::DIRECT_BRANCH => Body::DirectBranch {
                icnt: icnt(&mut fields)?,
            },
            Tcode::INDIRECT_BRANCH => Body::IndirectBranch {
                btype: btype(&mut fields)?,
                icnt: icnt(&mut fields)?,
                uaddr: addr(&mut fields, layout)?,
            },
            Tcode::ERROR => Body::Error {
                etype: fields.fixed(4)? as u8,
                ecode: fields.var()?.within(64)?,
            },
            Tcode::PROG_TRACE_SYNC => Body::ProgTraceSync {
                sync: sync(&mut fields)?,
                icnt: icnt(&mut fields)?,
                faddr: addr(&mut fields, layout)?,
            },
            Tcode::DIRECT_BRANCH_SYNC => Body::DirectBranchSync {
                sync: sync(&mut fields)?,
                icnt: icnt(&mut fields)?,
                faddr: addr(&mut fields, layout)?,
            },
            Tcode::INDIRECT_BRANCH_SYNC => Body::IndirectBranchSync {
                sync: sync(&mut fields)?,
                btype: btype(&mut fields)?,
                icnt: icnt(&mut fields)?,
                faddr: addr(&mut fields, layout)?,
            },
            Tcode::RESOURCE_FULL => match fields.fixed(4)? {
                0 => Body::IcntFull {
                    icnt: icnt(&mut fields)?,
                },
                1 => Body::HistFull {
                    hist: hist(&mut fields)?,
                },
                2 => Body::HistRepeat {
                    hist: hist(&mut fields)?,
                    count: fields.var()?.within(64)?,
                },
                _ => return Err(Fault::UnknownRcode),
            },
            Tcode::INDIRECT_BRANCH_HIST => Body::IndirectBranchHist {
                btype: btype(&mut fields)?,
                icnt: icnt(&mut fields)?,
                uaddr: addr(&mut fields, layout)?,
                hist: hist(&mut fields)?,
            },
            Tcode::INDIRECT_BRANCH_HIST_SYNC => Body::IndirectBranchHistSync {
                sync: sync(&mut fields)?,
                btype: btype(&mut fields)?,
                icnt: icnt(&mut fields)?,
                faddr: addr(&mut fields, layout)?,
                hist: hist(&mut fields)?,
            },
            Tcode::REPEAT_BRANCH => Body::RepeatBranch {
                count: fields.var()?.within(64)?,
            },
            Tcode::PROG_TRACE_CORRELATION => correlation(&mut fields)?,
            tcode => return Ok(Message::new(src, Body::Other { tcode, bytes })),
        };
        let tstamp = if fields.is_end() {
            None
        } else {
            let stamp = fields.var()?.within(64)?;
            if !fields.is_end() {
                return Err(Fault::ExtraField);
            }
            Some(stamp)
        };
        Ok(Message { src, body, tstamp })
    }

    /// `TCODE` and `SRC` alone; all that can be had of a message whose fields
    /// are not known or not right.
    #[must_use]
    pub fn head(bytes: &[u8], layout: &Layout) -> Option<(Tcode, u16)> {
        let mut fields = Fields::new(bytes);
        let tcode = Tcode(fields.fixed(6).ok()? as u8);
        let src = fields.fixed(layout.src_width()).ok()?;
        Some((tcode, src))
    }

    /// Appends the message's bytes. Of `src` and the fixed-length fields as many
    /// bits are sent as they have.
    pub fn write(&self, layout: &Layout, out: &mut impl Extend<u8>) {
        if let Body::Other { bytes, .. } = self.body {
            out.extend(bytes.iter().copied());
            return;
        }
        let mut room = EMPTY;
        let len = self.pack(layout, &mut room);
        out.extend(room.into_iter().take(len));
    }

    /// Packs the fields of the message and gives its length; nothing but `TCODE` for
    /// [`Body::Other`]. Always part of the caller: where that has just made the
    /// body, nothing has to be found out about it.
    #[inline(always)]
    pub(crate) fn pack(&self, layout: &Layout, room: &mut Room) -> usize {
        let mut p = Packer::new(room);
        p.fixed(u16::from(self.body.tcode().0), 6);
        p.fixed(self.src, layout.src_width());
        match self.body {
            Body::Ownership { process } => p.var(process),
            Body::DirectBranch { icnt } => p.var(icnt),
            Body::IndirectBranch { btype, icnt, uaddr } => {
                p.fixed(u16::from(btype.bits()), 2);
                p.var(icnt);
                put_addr(&mut p, uaddr, layout);
            }
            Body::Error { etype, ecode } => {
                p.fixed(u16::from(etype), 4);
                p.var(ecode);
            }
            Body::ProgTraceSync { sync, icnt, faddr }
            | Body::DirectBranchSync { sync, icnt, faddr } => {
                p.fixed(u16::from(sync.0), 4);
                p.var(icnt);
                put_addr(&mut p, faddr, layout);
            }
            Body::IndirectBranchSync {
                sync,
                btype,
                icnt,
                faddr,
            } => {
                p.fixed(u16::from(sync.0), 4);
                p.fixed(u16::from(btype.bits()), 2);
                p.var(icnt);
                put_addr(&mut p, faddr, layout);
            }
            Body::IcntFull { icnt } => {
                p.fixed(0, 4);
                p.var(icnt);
            }
            Body::HistFull { hist } => {
                p.fixed(1, 4);
                p.var(hist);
            }
            Body::HistRepeat { hist, count } => {
                p.fixed(2, 4);
                p.var(hist);
                p.var(count);
            }
            Body::IndirectBranchHist {
                btype,
                icnt,
                uaddr,
                hist,
            } => {
                p.fixed(u16::from(btype.bits()), 2);
                p.var(icnt);
                put_addr(&mut p, uaddr, layout);
                p.var(hist);
            }
            Body::IndirectBranchHistSync {
                sync,
                btype,
                icnt,
                faddr,
                hist,
            } => {
                p.fixed(u16::from(sync.0), 4);
                p.fixed(u16::from(btype.bits()), 2);
                p.var(icnt);
                put_addr(&mut p, faddr, layout);
                p.var(hist);
            }
            Body::RepeatBranch { count } => p.var(count),
            Body::ProgTraceCorrelation { evcode, icnt, hist } => {
                p.fixed(u16::from(evcode.0), 4);
                p.fixed(u16::from(hist.is_some()), 2);
                p.var(icnt);
                if let Some(hist) = hist {
                    p.var(hist);
                }
            }
            Body::Other { .. } => {}
        }
        if let Some(stamp) = self.tstamp {
            p.var(stamp);
        }
        p.finish()
    }
}

/// Bits of a count: far above any counter, and far below what could overflow a sum.
const ICNT_BITS: u32 = 56;

#[inline]
fn icnt(fields: &mut Fields<'_>) -> Result<u64, Fault> {
    fields.var()?.within(ICNT_BITS)
}

fn btype(fields: &mut Fields<'_>) -> Result<Btype, Fault> {
    Ok(Btype::from_bits(fields.fixed(2)? as u8))
}

fn sync(fields: &mut Fields<'_>) -> Result<Sync, Fault> {
    Ok(Sync(fields.fixed(4)? as u8))
}

/// `HIST`; the specification stops at 32 bits, here 64 are good.
fn hist(fields: &mut Fields<'_>) -> Result<u64, Fault> {
    match fields.var()?.within(64)? {
        0 => Err(Fault::EmptyHist),
        hist => Ok(hist),
    }
}

fn correlation<'a>(fields: &mut Fields<'_>) -> Result<Body<'a>, Fault> {
    let evcode = Evcode(fields.fixed(4)? as u8);
    let cdf = fields.fixed(2)?;
    let icnt = icnt(fields)?;
    let hist = match cdf {
        0 => None,
        1 => Some(hist(fields)?),
        _ => return Err(Fault::UnknownCdf),
    };
    Ok(Body::ProgTraceCorrelation { evcode, icnt, hist })
}

/// Bits of an address without its bit 0.
const fn addr_bits(xlen: Xlen) -> u32 {
    xlen.bits() - 1
}

/// An address field. With MSB extension the top bit sent stands for all those
/// above it (8.2).
fn addr(fields: &mut Fields<'_>, layout: &Layout) -> Result<u64, Fault> {
    let width = addr_bits(layout.xlen);
    let Var {
        mut value,
        bits,
        over,
    } = fields.var()?;
    let mask = u64::MAX >> (64 - width);
    if layout.extend_addr_msb && (1..64).contains(&bits) && value >> (bits - 1) & 1 != 0 {
        value |= u64::MAX << (bits - 1);
    }
    // Whole bytes have bits above the address: they are zero, or repeat its top
    // bit.
    let top = !(mask >> 1);
    let repeats = layout.extend_addr_msb && value & top == top;
    if (over || value & !mask != 0) && !repeats {
        return Err(Fault::FieldTooWide);
    }
    Ok(value & mask)
}

#[inline(always)]
fn put_addr(p: &mut Packer<'_>, value: u64, layout: &Layout) {
    let width = addr_bits(layout.xlen);
    let value = value & u64::MAX >> (64 - width);
    if !layout.extend_addr_msb {
        p.var(value);
        return;
    }
    // As few bytes as give the same value when their top bit is repeated.
    let signed = (value << (64 - width)) as i64 >> (64 - width);
    let same = if signed < 0 { !signed } else { signed } as u64;
    let needed = 64 - same.leading_zeros() + 1;
    let bytes = needed.div_ceil(6);
    if bytes * 6 <= width {
        p.var_bytes(signed as u64, bytes);
    } else {
        // Nothing can be left out; the bits above the address are zero.
        p.var_bytes(value, width.div_ceil(6));
    }
}

#[cfg(test)]
mod tests;
