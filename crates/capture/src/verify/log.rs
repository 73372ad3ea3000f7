//! A log as the tandem stream that a verifier takes.

use super::{Choice, WrongHart};
use crate::detect::Kind;
use crate::log::{Damage, LineCount, LogReader, carries, has_effects, plan_of, spike_parts};
use hartrace_flow::{Effects, HartId, Observer, Step, Wants};
use hartrace_logs::{Column, LineError, LogFormat, Moment};
use hartrace_tandem::{Config, ConfigError, Elements, Encoder, Register};

/// Reads a log and writes what it says as a tandem stream of one hart, piece by piece.
pub struct LogStream<'a> {
    reader: LogReader<'a>,
    encoder: Encoder,
    choice: Choice,
    lines: LineCount,
    damage: Damage,
    /// Bytes of the stream that were given.
    given: u64,
}

/// When the groups of a piece of a stream were, for sources with times.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    /// Where steps start in the stream, and their times.
    starts: Vec<(u64, u64)>,
    exponent: Option<i8>,
}

impl Moments {
    /// The time of the step whose group starts at a byte of the stream, or before it.
    #[must_use]
    pub fn at(&self, offset: u64) -> Option<Moment> {
        let after = self.starts.partition_point(|(start, _)| *start <= offset);
        let (_, ticks) = *self.starts.get(after.checked_sub(1)?)?;
        let exponent = self.exponent;
        (ticks > 0).then_some(Moment { ticks, exponent })
    }
}

/// The steps of one hart on their way into a stream.
struct Steps<'s> {
    encoder: &'s mut Encoder,
    bytes: &'s mut Vec<u8>,
    choice: &'s mut Choice,
    wrong: Option<WrongHart>,
    /// Bytes before these.
    given: u64,
    starts: &'s mut Vec<(u64, u64)>,
}

impl Observer for Steps<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        // A loss may be of any hart.
        let taken = match step {
            Step::Signal(_) => Ok(self.choice.wanted.is_none_or(|wanted| wanted == hart.0)),
            Step::Insn(_) | Step::Trap(_) => self.choice.takes(hart),
        };
        match taken {
            Ok(true) => {
                let time = match step {
                    Step::Insn(insn) => insn.time,
                    Step::Trap(trap) => trap.time,
                    Step::Signal(_) => 0,
                };
                if time > 0 {
                    self.starts
                        .push((self.given + self.bytes.len() as u64, time));
                }
                self.encoder.step(step, effects, self.bytes);
            }
            Ok(false) => {}
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    fn finish(&mut self) {
        self.encoder.finish(self.bytes);
    }
}

impl<'a> LogStream<'a> {
    /// The stream of a hart of a log, or of the only one.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other.
    pub fn new(
        reader: LogReader<'a>,
        config: Config,
        hart: Option<u32>,
    ) -> Result<LogStream<'a>, ConfigError> {
        Ok(LogStream {
            reader,
            encoder: Encoder::new(config)?,
            choice: Choice::new(hart, true),
            lines: LineCount::default(),
            damage: Damage::default(),
            given: 0,
        })
    }

    /// What the next part of the log becomes, and when it was; `None`: the log has ended.
    ///
    /// # Errors
    ///
    /// Several harts where none is chosen, or not the one that is.
    pub fn read(
        &mut self,
        chunk: Option<&[u8]>,
        bytes: &mut Vec<u8>,
        moments: &mut Moments,
    ) -> Result<(), WrongHart> {
        bytes.clear();
        moments.starts.clear();
        moments.exponent = self.reader.exponent();
        let LogStream {
            reader,
            encoder,
            choice,
            lines,
            damage,
            given,
        } = self;
        let mut steps = Steps {
            encoder,
            bytes,
            choice,
            wrong: None,
            given: *given,
            starts: &mut moments.starts,
        };
        let mut damaged = |error: LineError| damage.add(error);
        match chunk {
            Some(chunk) => {
                lines.feed(chunk);
                reader.feed(chunk, &mut steps, &mut damaged);
            }
            None => reader.finish(&mut steps, &mut damaged),
        }
        let wrong = steps.wrong;
        *given += bytes.len() as u64;
        match (wrong, chunk) {
            (Some(wrong), _) => Err(wrong),
            (None, None) => self.choice.check(),
            (None, Some(_)) => Ok(()),
        }
    }

    /// Lines that could not be read, or edges of a waveform's clock, and all of them.
    #[must_use]
    pub fn damage(&self) -> (&Damage, u64) {
        let edges = self.reader.edges();
        (&self.damage, edges.unwrap_or(self.lines.count()))
    }
}

/// Adds the state that a log of this kind does not record.
pub fn add_absent(kind: Kind, head: &[u8], config: &crate::config::Config, to: &mut Elements) {
    let names = match plan_of(kind, head, config) {
        Some(Ok(plan)) => plan.absent(),
        _ => absent_in_log(kind, head, config),
    };
    for name in names {
        // They are names of elements.
        let _ = to.add(name);
    }
    if let Some(Ok(plan)) = plan_of(kind, head, config) {
        for csr in plan.csrs() {
            to.registers.remove(Register::csr(csr));
        }
    }
}

/// Whether a log of this kind records traps. In others, one is seen by where the hart goes.
#[must_use]
pub fn records_traps(kind: Kind, head: &[u8], config: &crate::config::Config) -> bool {
    match kind {
        Kind::SpikeLog => spike_parts(head).listing,
        Kind::Log(format) => {
            let columns = config.log.columns.columns().and_then(Result::ok);
            carries(format, columns.as_ref()).traps
        }
        Kind::PcList => false,
        _ => true,
    }
}

/// Names of the state that a log of this kind does not record.
fn absent_in_log(kind: Kind, head: &[u8], config: &crate::config::Config) -> Vec<&'static str> {
    let columns = config.log.columns.columns().and_then(Result::ok);
    let columns = columns.as_ref();
    // What a trap does to the status is in no log.
    let mut absent = vec!["trap.mstatus", "trap.sstatus"];
    let mut add = |names: &[&'static str]| absent.extend(names);
    match kind {
        Kind::SpikeLog if is_of_core(head) => {
            add(&["csr", "trap.csr", "fpr"]);
            if !head.windows(5).any(|window| window == b" mem ") {
                add(&["store"]);
            }
        }
        Kind::Log(LogFormat::Ibex) => add(&["csr", "trap.csr"]),
        Kind::Log(LogFormat::Rvvi) => add(&["store"]),
        Kind::Log(LogFormat::Rocket) => add(&["csr", "trap.csr", "fpr", "store"]),
        Kind::Log(LogFormat::RiscvDv) => add(&["csr", "trap.csr", "fpr", "store"]),
        Kind::Log(LogFormat::Columns) => {
            let has = |column| columns.is_some_and(|columns| columns.has(column));
            add(&["csr", "trap.csr"]);
            for (column, name) in [
                (Column::Rd, "gpr"),
                (Column::Frd, "fpr"),
                (Column::MemWdata, "store"),
            ] {
                if !has(column) {
                    add(&[name]);
                }
            }
        }
        kind if has_effects(kind, head, config) => {}
        _ => add(&["gpr", "fpr", "csr", "trap.csr", "store"]),
    }
    let modes = match kind {
        Kind::SpikeLog => has_effects(kind, head, config),
        Kind::Log(format) => carries(format, columns).modes,
        Kind::PcList => false,
        _ => true,
    };
    if !modes {
        add(&["priv"]);
    }
    absent
}

/// Whether it is a core's log in Spike's form: its commits have no `core`.
fn is_of_core(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n');
    lines.any(|line| matches!(line, [b'0'..=b'9', b' ', b'0'..=b'9', ..]))
}
