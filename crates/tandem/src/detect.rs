//! Detects whether bytes are a trace, and its widths and dialect. The format
//! has no marker: the only sign is that group after group can be read.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hartrace_isa::Xlen;

use crate::config::{Config, EaddrWidth, Flen, Mlen, Nibbles, PcForm};
use crate::follow::Follower;
use crate::group::{Group, NewPc};
use crate::read::{Next, Reader, WINDOW};

/// Groups that must be whole in bytes that do not end with the last of them.
const MIN_GROUPS: u64 = 3;

/// Groups in bytes that are damaged.
const MIN_DAMAGED: u64 = 64;

/// Bytes that are read before it is asked whether that is enough.
const CHUNK: usize = 1 << 12;

/// Settings that fit a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// Settings by which the bytes can be read.
    pub config: Config,
    /// Groups that were read.
    pub groups: u64,
    /// Other settings that fit as well, in words.
    pub also: Vec<String>,
}

/// `XLEN 64, FLEN 64, MLEN 64`, and the dialect.
impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words(&self.config))
    }
}

fn words(config: &Config) -> String {
    let mut text = format!(
        "XLEN {}, FLEN {}, MLEN {}",
        config.xlen.bits(),
        config.flen.bits(),
        config.mlen.bits()
    );
    if config.eaddr == EaddrWidth::Xlen {
        text += ", effective addresses of XLEN bits";
    }
    if config.nibbles == Nibbles::High {
        text += ", four-bit fields from the top";
    }
    if config.pc == PcForm::Both {
        text += ", two pcs";
    }
    if config.lenient_pc_identifier {
        text += ", identifier 16 for the pc";
    }
    text
}

/// Settings by which the bytes at the start of a stream can be read, and with
/// them what `base` says else; `None` if they are no trace. `xlen` leaves only
/// settings of this width.
#[must_use]
pub fn guess(head: &[u8], base: &Config, xlen: Option<Xlen>) -> Option<Guess> {
    // Those that read worse than one before them are not read to the end.
    let mut least = u64::MAX;
    let readings: Vec<(Config, Reading)> = candidates(base)
        .filter(|config| xlen.is_none_or(|xlen| config.xlen == xlen))
        .map(|config| {
            let reading = Reading::of(head, &config, |reading| reading.wrong() <= least);
            least = least.min(reading.wrong());
            (config, reading)
        })
        .collect();
    // The first of the best: the specification comes before its dialects.
    let best = readings.iter().map(|(_, r)| r.merit()).max()?;
    let mut fitting = readings.iter().filter(|(_, r)| r.merit() == best);
    let (config, reading) = fitting.next()?;
    if !reading.is_trace(head.len() as u64) {
        return None;
    }
    // Settings that read the same are the same here.
    let (mut sums, mut also) = (Vec::from([reading.sum]), Vec::new());
    for (config, other) in fitting {
        if !sums.contains(&other.sum) {
            sums.push(other.sum);
            also.push(words(config));
        }
    }
    Some(Guess {
        config: config.clone(),
        groups: reading.groups,
        also,
    })
}

/// Whether a stream that starts with `head` is a trace.
#[must_use]
pub fn is_trace(head: &[u8]) -> bool {
    // Nearly everything else is recognised by its first bytes.
    let starts = head.first() == Some(&1) && head.get(1).is_some_and(|&b| (3..=17).contains(&b));
    let base = Config::default();
    if starts && guess(head, &base, None).is_some() {
        return true;
    }
    let length = head.len() as u64;
    candidates(&base).any(|config| {
        let reading = Reading::of(head, &config, |reading| !reading.is_too_bad(length));
        reading.groups >= MIN_DAMAGED && reading.is_trace(length)
    })
}

/// What may be meant, the likeliest first.
fn candidates(base: &Config) -> impl Iterator<Item = Config> + '_ {
    use EaddrWidth::{Mlen as AsMlen, Xlen as AsXlen};
    let widths = [
        (Xlen::Rv64, Mlen::M64, AsMlen),
        (Xlen::Rv32, Mlen::M34, AsMlen),
        (Xlen::Rv32, Mlen::M34, AsXlen),
        (Xlen::Rv32, Mlen::M32, AsMlen),
    ];
    let forms = [
        (PcForm::New, Nibbles::Low, false),
        (PcForm::New, Nibbles::High, false),
        (PcForm::Both, Nibbles::Low, false),
        (PcForm::New, Nibbles::Low, true),
    ];
    let flens = [base.flen, Flen::F64, Flen::F32];
    forms.into_iter().flat_map(move |(pc, nibbles, lenient)| {
        flens.into_iter().flat_map(move |flen| {
            widths.into_iter().map(move |(xlen, mlen, eaddr)| Config {
                xlen,
                flen,
                mlen,
                eaddr,
                nibbles,
                pc,
                lenient_pc_identifier: lenient,
                ..base.clone()
            })
        })
    })
}

/// What became of bytes by some settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    /// Groups that are whole.
    groups: u64,
    /// Those with an instruction.
    insns: u64,
    /// Places where something is wrong.
    problems: u64,
    /// Bytes that are in no group because of them.
    bad: u64,
    /// Groups that contradict what they should follow.
    odd: u64,
    /// All that was read: other settings may read the same.
    sum: u64,
}

impl Reading {
    /// Reads all bytes, or some of them if that is enough to know that it does not go
    /// on.
    fn of(head: &[u8], config: &Config, goes_on: impl Fn(&Reading) -> bool) -> Reading {
        let mut reading = Reading::default();
        let mut reader = Reader::new(config.clone());
        // Where the bytes began that are in no group.
        let mut lost = None;
        let mut follower = Follower::new(config.xlen);
        let mut at = 0;
        for mut rest in head.chunks(CHUNK) {
            at += rest.len() as u64;
            loop {
                match reader.next(&mut rest) {
                    Next::Group => reading.group(reader.group(), config, &mut follower),
                    Next::More => break,
                    Next::Problem(problem) => {
                        reading.problems += 1;
                        // No settings will be right that are wrong so often.
                        let often = reading.problems > 64 && reading.problems > reading.groups;
                        follower.set(None);
                        lost = problem.fault.breaks_framing().then_some(problem.at);
                        if often || !goes_on(&reading) {
                            return reading.without(lost, head.len() as u64);
                        }
                    }
                    Next::Resumed(bytes) => {
                        reading.bad += bytes;
                        lost = None;
                    }
                }
            }
            // A group may yet be found among the last bytes.
            let so_far = reading.without(lost, at.saturating_sub(WINDOW as u64));
            if !goes_on(&so_far) {
                return so_far;
            }
        }
        reading.without(lost, head.len() as u64)
    }

    /// The same where bytes from one place to another are in no group.
    const fn without(mut self, from: Option<u64>, to: u64) -> Reading {
        if let Some(from) = from {
            self.bad += to.saturating_sub(from);
        }
        self
    }

    fn group(&mut self, group: &Group, config: &Config, follower: &mut Follower) {
        let before = follower.pc();
        let from = follower.follow(group);
        if group.outside || group.items == 0 {
            self.odd += u64::from(group.items == 0);
            return;
        }
        self.groups += 1;
        self.insns += u64::from(group.insn.is_some());
        // Another place than the last group left it at.
        self.odd += u64::from(!group.reset && before.is_some() && from != before);
        if let Some(NewPc::To(to) | NewPc::FromTo(_, to)) = group.pc {
            self.odd += to & 1;
        }
        if let Some(insn) = group.insn {
            // A length by its opcode that the bits do not have; 0 is illegal
            // at any length.
            let long = insn.bits & 3 == 3;
            self.odd += u64::from(long != (insn.len == 4) && insn.bits != 0);
        }
        // Addresses wider than MLEN, as bytes of what comes next would be.
        let wide = |addr: Option<u64>| {
            let unused = config.mlen.bits() < 64 && !config.mlen.bits().is_multiple_of(8);
            addr.is_some_and(|addr| unused && addr >> config.mlen.bits() != 0)
        };
        let data = group.data.iter().any(|d| wide(d.paddr) || wide(d.eaddr));
        self.odd += u64::from(data);
        self.mix(group.at);
        self.mix(follower.pc().unwrap_or(0));
        for change in &group.changes {
            self.mix(match change.how {
                crate::How::Full(value) => value,
                crate::How::Offset(offset) => offset.cast_unsigned().into(),
                crate::How::Mask(mask) => mask.into(),
            });
        }
        for data in &group.data {
            self.mix(data.paddr.unwrap_or(1));
            self.mix(data.eaddr.unwrap_or(2));
        }
        for transaction in &group.memory {
            self.mix(transaction.request.addr);
            self.mix(transaction.request.op.code().into());
        }
    }

    fn mix(&mut self, value: u64) {
        let sum = self.sum.rotate_left(5) ^ value;
        self.sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// How much is wrong; never less after more bytes.
    const fn wrong(&self) -> u64 {
        self.bad + 16 * self.problems + 4 * self.odd
    }

    /// What is best has the least that is wrong.
    fn merit(&self) -> (u64, u64) {
        (u64::MAX - self.wrong(), self.groups.min(1))
    }

    /// Whether too many of so many bytes are in no group for a trace.
    const fn is_too_bad(&self, length: u64) -> bool {
        self.bad > length / 8
    }

    /// Whether it is a trace, and not bytes that can be read as one.
    fn is_trace(&self, length: u64) -> bool {
        // The last group may be cut.
        if self.problems == 0 && self.odd == 0 {
            return self.groups >= MIN_GROUPS || self.groups > 0 && length <= 1 << 10;
        }
        self.groups >= MIN_DAMAGED
            && self.insns > 0
            && !self.is_too_bad(length)
            && self.problems + self.odd <= self.groups / 8
    }
}

#[cfg(test)]
mod tests;
