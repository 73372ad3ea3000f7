//! Straight-line code at once, and instruction by instruction: the same trace.

use std::ops::Range;

use hartrace_capture::detect::Kind;
use hartrace_capture::log::{LogOptions, LogReader};
use hartrace_flow::{Effects, HartId, Observer, Port, Step, Straights, Wants};
use hartrace_logs::{PcWriter, SpikeWriter};

use super::{Format, Recorded, programs};

/// Two ports with the same encoder: one is given straight-line code at once, the
/// other each instruction.
struct Twins<F: Format> {
    number: u64,
    whole: Port<F::Encoder<Vec<u8>>>,
    single: Port<F::Encoder<Vec<u8>>>,
}

struct All<F: Format>(Vec<Twins<F>>);

impl<F: Format> Observer for All<F> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        for twins in &mut self.0 {
            twins.whole.step(hart, step, effects);
            twins.single.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        for twins in &mut self.0 {
            twins.whole.straights(hart, code);
            for insn in code.iter() {
                twins.single.step(hart, &Step::Insn(insn), &Effects::NONE);
            }
        }
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Instructions run, each with every setting.
    pub insns: u64,
    /// Bytes of all traces.
    pub bytes: u64,
    /// Traces.
    pub traces: u64,
}

impl Compared {
    fn add(&mut self, other: Compared) {
        self.insns += other.insns;
        self.bytes += other.bytes;
        self.traces += other.traces;
    }
}

/// Runs a program with so many settings, from the one with this number on.
///
/// # Errors
///
/// The first trace that differs.
pub fn compare<F: Format>(
    program: &Recorded,
    insns: u64,
    first: u64,
    settings: u64,
) -> Result<Compared, String> {
    let mut all = All::<F>(twins(program, first..first + settings)?);
    let mut compared = Compared {
        insns: program.run(insns, &mut all, |_| false)?,
        ..Compared::default()
    };
    for twins in all.0 {
        compared.add(twins.finish(&program.name)?);
    }
    Ok(compared)
}

/// The same of a list of the program's pcs: read as pieces of straight-line code,
/// and as single steps.
///
/// # Errors
///
/// The first trace that differs.
pub fn compare_list<F: Format>(
    program: &Recorded,
    insns: u64,
    first: u64,
    settings: u64,
) -> Result<Compared, String> {
    let mut list = Vec::new();
    let put = |bytes: &[u8]| list.extend_from_slice(bytes);
    let mut writer = PcWriter::new(program.isa.xlen(), put).listing_traps();
    let insns = program.run(insns, &mut writer, |_| false)?;
    writer.finish();
    drop(writer);
    let name = format!("{} from a list of pcs", program.name);
    let settings = first..first + settings;
    let compared = compare_reading::<F>(&name, program, (Kind::PcList, &list), settings)?;
    Ok(Compared { insns, ..compared })
}

/// The same of a log of the program's commits, with and without the lines of `-l`.
///
/// # Errors
///
/// The first trace that differs.
pub fn compare_commits<F: Format>(
    program: &Recorded,
    insns: u64,
    first: u64,
    settings: u64,
) -> Result<Compared, String> {
    let mut log = Vec::new();
    let put = |bytes: &[u8]| log.extend_from_slice(bytes);
    let mut writer = SpikeWriter::new(program.isa, put).with_traps();
    let insns = program.run(insns, &mut writer, |_| false)?;
    writer.finish();
    drop(writer);
    let log = String::from_utf8(log).map_err(|error| error.to_string())?;
    let commits = only_commits(&log);
    let listing = with_listing(&log);
    let mut sum = Compared {
        insns,
        ..Compared::default()
    };
    let name = format!("{} from a log of commits", program.name);
    for log in [log, commits, listing] {
        let settings = first..first + settings;
        sum.add(compare_reading::<F>(
            &name,
            program,
            (Kind::SpikeLog, log.as_bytes()),
            settings,
        )?);
    }
    Ok(sum)
}

/// A log without lines of traps.
fn only_commits(log: &str) -> String {
    let lines = log.split_inclusive('\n');
    lines.filter(|line| listed(line).is_some()).collect()
}

/// A log with a line of `-l` before each commit.
fn with_listing(log: &str) -> String {
    let lines = log.split_inclusive('\n');
    lines
        .flat_map(|line| [listed(line).unwrap_or_default(), line.into()])
        .collect()
}

/// The line of `-l` that belongs to a commit. It has no mode, and always eight digits.
fn listed(line: &str) -> Option<String> {
    let (head, rest) = line.split_once(" (0x")?;
    let (digits, _) = rest.split_once(')')?;
    let (core, pc) = head.split_once(": ")?;
    let (_, pc) = pc.split_once(' ')?;
    Some(format!("{core}: {pc} (0x{digits:0>8}) text\n"))
}

/// Traces of a log, read one by one and in pieces.
fn compare_reading<F: Format>(
    name: &str,
    program: &Recorded,
    (kind, log): (Kind, &[u8]),
    settings: Range<u64>,
) -> Result<Compared, String> {
    let mut compared = Compared::default();
    for mut twins in twins::<F>(program, settings)? {
        let mut damaged = None;
        for (isa, port) in [
            (None, &mut twins.single),
            (Some(program.isa), &mut twins.whole),
        ] {
            let options = LogOptions {
                image: Some(&program.image),
                // Without it, there are no pieces.
                isa,
                ..LogOptions::default()
            };
            let mut reader = LogReader::new(kind, &options).map_err(|error| error.to_string())?;
            let mut damage = |error| {
                damaged.get_or_insert(error);
            };
            reader.feed(log, &mut Steps(&mut *port), &mut damage);
            reader.finish(&mut Steps(port), &mut damage);
        }
        if let Some(error) = damaged {
            return Err(format!("{name}: {error}"));
        }
        compared.add(twins.finish(name)?);
    }
    Ok(compared)
}

/// A port without the data accesses that it can show.
struct Steps<'p, O>(&'p mut O);

impl<O: Observer> Observer for Steps<'_, O> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        self.0.straights(hart, code);
    }
}

/// Twins with the settings of these numbers.
fn twins<F: Format>(program: &Recorded, numbers: Range<u64>) -> Result<Vec<Twins<F>>, String> {
    let twins = numbers.map(|number| {
        let setting = F::setting(number, program.isa);
        let port = || {
            let encoder = F::encoder(&setting.config, Vec::new())?;
            Ok::<_, String>(Port::new(setting.port, encoder))
        };
        Ok(Twins {
            number,
            whole: port()?,
            single: port()?,
        })
    });
    twins.collect()
}

impl<F: Format> Twins<F> {
    /// Whether both traces are the same.
    fn finish(mut self, name: &str) -> Result<Compared, String> {
        self.whole.finish();
        self.single.finish();
        let number = self.number;
        let [whole, single] = [self.whole, self.single].map(|p| F::into_out(p.into_sink()));
        if whole != single {
            let pairs = whole.iter().zip(&single);
            let at = pairs.take_while(|(a, b)| a == b).count();
            return Err(format!(
                "{name}: setting {number} differs from byte {at:#x} on"
            ));
        }
        Ok(Compared {
            insns: 0,
            bytes: whole.len() as u64,
            traces: 1,
        })
    }
}

/// `NAME-straight [INSTRUCTIONS] [SETTINGS] [FIRST]`: every program of the
/// repository.
///
/// # Errors
///
/// The first difference.
pub fn command<F: Format>(args: &[String]) -> Result<(), String> {
    let number = |index: usize, default: u64| match args.get(index) {
        Some(text) => text.parse().map_err(|_| format!("no number: {text}")),
        None => Ok(default),
    };
    let (insns, settings, first) = (number(0, 1_000_000)?, number(1, 32)?, number(2, 0)?);
    let mut sum = Compared::default();
    for path in programs()? {
        let program = Recorded::read(&path)?;
        sum.add(compare::<F>(&program, insns, first, settings)?);
        sum.add(compare_list::<F>(&program, insns, first, settings)?);
        sum.add(compare_commits::<F>(&program, insns, first, settings)?);
    }
    let Compared {
        insns,
        bytes,
        traces,
    } = sum;
    println!(
        "{traces} traces of {insns} instructions, {bytes} bytes: the same at once and one by one"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etrace::ETrace;
    use crate::ntrace::NTrace;

    /// Programs with interrupts, modes, indirect jumps and calls of all kinds.
    const PROGRAMS: [&str; 6] = [
        "timer-rv64gc",
        "timer-rv32gc",
        "modes-rv64gc",
        "callbacks-rv64gc",
        "interpreter-rv64gc",
        "longjmp-rv64gc",
    ];

    fn all_the_same<F: Format>() {
        for (index, name) in (0..).zip(PROGRAMS) {
            let program = Recorded::named(name).unwrap();
            let compared = compare::<F>(&program, 60_000, index * 12, 12).unwrap();
            assert!(compared.bytes > 0, "{name}");
        }
    }

    #[test]
    fn ntrace_is_the_same_from_straight_line_code_and_from_single_instructions() {
        all_the_same::<NTrace>();
    }

    /// As [`all_the_same`], from lists of pcs.
    fn all_lists_the_same<F: Format>() {
        for (index, name) in (0..).zip(PROGRAMS) {
            let program = Recorded::named(name).unwrap();
            let compared = compare_list::<F>(&program, 60_000, index * 12, 12).unwrap();
            assert!(compared.bytes > 0, "{name}");
        }
    }

    /// As [`all_the_same`], from logs of commits.
    fn all_commits_the_same<F: Format>() {
        for (index, name) in (0..).zip(PROGRAMS) {
            let program = Recorded::named(name).unwrap();
            let compared = compare_commits::<F>(&program, 20_000, index * 4, 4).unwrap();
            assert!(compared.bytes > 0, "{name}");
        }
    }

    #[test]
    fn ntrace_of_commits_is_the_same_in_pieces_and_in_single_steps() {
        all_commits_the_same::<NTrace>();
    }

    #[test]
    fn etrace_of_commits_is_the_same_in_pieces_and_in_single_steps() {
        all_commits_the_same::<ETrace>();
    }

    #[test]
    fn ntrace_of_a_pc_list_is_the_same_in_pieces_and_in_single_steps() {
        all_lists_the_same::<NTrace>();
    }

    #[test]
    fn etrace_of_a_pc_list_is_the_same_in_pieces_and_in_single_steps() {
        all_lists_the_same::<ETrace>();
    }

    #[test]
    fn etrace_is_the_same_from_straight_line_code_and_from_single_instructions() {
        all_the_same::<ETrace>();
    }
}
