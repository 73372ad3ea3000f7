//! `hartrace timeline`: calls, traps and threads over time, for other viewers.

mod attempt;
mod files;

use crate::args::{Timeline, TimelineFormat, is_stdout};
use crate::failure::Failure;
use crate::talk::Talk;
use attempt::{Attempt, Plan, attempt};
use files::{Destination, HeldFiles, PartFiles};
use hartrace_analyze::{Exported, Measure};
use hartrace_capture::input::{self, is_stdin};
use hartrace_capture::output;
use hartrace_print::diagnostic::{Code, Diagnostic};
use hartrace_print::words::counted;
use std::io::{self, IsTerminal};

/// Bytes of a file at most, about, if the least duration is not given.
const TARGET: u64 = 180_000_000;

/// Slices, and values of the pc, in a waveform at most. They take a few bytes each, or a
/// few dozen, depending on how well they are compressed.
const WAVE_SLICES: u64 = 4_000_000;

pub(super) fn run(args: &Timeline, talk: &Talk) -> Result<(), Failure> {
    check(args)?;
    let least = args.min_duration.unwrap_or(0);
    let plan = Plan {
        axis: None,
        least,
        least_pc: least,
        counters: Vec::new(),
    };
    if let Some(size) = args.split {
        return split(args, size, plan, talk);
    }
    let mut destination = Destination::create(args)?;
    if is_stdin(&args.trace) && args.min_duration.is_some() {
        return once(args, destination, &plan, talk);
    }
    let (made, held, plan) = measure(args, plan, talk)?;
    let exported = held.tried(made.exported)?;
    // What is left out of a large file makes it small enough.
    let is_known = held.fits() || args.min_duration.is_some();
    if is_known && held.count() > most(args) {
        talk.warning(&too_large(args, held.count()));
    }
    let (exported, least) = match held.fits() {
        true => {
            destination.copy(&held)?;
            (exported, plan.least)
        }
        false => {
            again(args)?;
            let plan = second(args, &exported, held.count(), plan);
            let made = attempt(args, &plan, &mut destination, &talk.silent())?;
            (destination.tried(made.exported)?, plan.least)
        }
    };
    destination.finish()?;
    say_units(args, made.axis, talk);
    say_left_out(&exported, (made.axis, least), talk);
    Ok(())
}

/// Flags that do not fit the format.
fn check(args: &Timeline) -> Result<(), Failure> {
    let to_stdout = is_stdout(&args.output.output);
    let is_file = matches!(
        args.format,
        TimelineFormat::Perfetto | TimelineFormat::Chrome
    );
    if args.format == TimelineFormat::Ctf && to_stdout {
        return Err(Failure::Usage(
            "a CTF trace is a directory: give its name with -o",
        ));
    }
    if to_stdout && io::stdout().is_terminal() {
        return Err(Failure::Usage("a timeline is no text: give a file with -o"));
    }
    if args.split.is_some() && !is_file {
        return Err(Failure::Usage(
            "--split is for -f perfetto and -f chrome: viewers of waveforms and CTF read parts \
            of a file",
        ));
    }
    if args.split.is_some() && to_stdout {
        return Err(Failure::Usage(
            "--split writes several files: give a name with -o",
        ));
    }
    Ok(())
}

/// Reads the trace once. A file of moderate size is held; of a larger one, only what it
/// would be is found out.
fn measure(
    args: &Timeline,
    mut plan: Plan,
    talk: &Talk,
) -> Result<(Attempt, HeldFiles, Plan), Failure> {
    let mut held = HeldFiles::default();
    let mut made = attempt(args, &plan, &mut held, talk)?;
    if made.lacks_time {
        again(args)?;
        plan.axis = Some(Measure::Instructions);
        held = HeldFiles::default();
        made = attempt(args, &plan, &mut held, &talk.silent())?;
    }
    if args.timescale.is_some() && made.axis != Measure::Time {
        let message = format!("{} has no timestamps", input::name(&args.trace));
        return Err(Diagnostic::new(Code::NoTime, message)
            .help("leave out --timescale: one unit is one instruction")
            .into());
    }
    plan.axis = Some(made.axis);
    Ok((made, held, plan))
}

/// How the trace is read for a file that is too large to be held.
fn second(args: &Timeline, exported: &Exported, bytes: u64, plan: Plan) -> Plan {
    if args.min_duration.is_some() {
        return plan;
    }
    let least = exported.min_duration(match args.format {
        TimelineFormat::Fst => WAVE_SLICES,
        _ => {
            let fits = u128::from(exported.slices) * u128::from(TARGET);
            u64::try_from(fits / u128::from(bytes.max(1))).unwrap_or(u64::MAX)
        }
    });
    let interval = exported.end.div_ceil(WAVE_SLICES).next_power_of_two();
    Plan {
        least,
        least_pc: least.max(interval),
        ..plan
    }
}

/// A stream of which nothing is left out that was not asked for is written as it is read.
fn once(
    args: &Timeline,
    mut destination: Destination,
    plan: &Plan,
    talk: &Talk,
) -> Result<(), Failure> {
    let (warning, talk_then) = (too_large(args, most(args)), *talk);
    destination.watch(most(args), move || talk_then.warning(&warning));
    let made = attempt(args, plan, &mut destination, talk)?;
    if made.lacks_time {
        again(args)?;
    }
    let exported = destination.tried(made.exported)?;
    destination.finish()?;
    say_units(args, made.axis, talk);
    say_left_out(&exported, (made.axis, plan.least), talk);
    Ok(())
}

/// Writes several files. The trace is read twice, since each of them has its part of the
/// counters.
fn split(args: &Timeline, size: u64, plan: Plan, talk: &Talk) -> Result<(), Failure> {
    again(args)?;
    let mut files = PartFiles::create(args, size)?;
    let (made, held, mut plan) = measure(args, plan, talk)?;
    held.tried(made.exported)?;
    plan.counters = made.counters;
    let made = attempt(args, &plan, &mut files, &talk.silent())?;
    let exported = files.tried(made.exported)?;
    let unit = match made.axis {
        Measure::Instructions => "instructions",
        Measure::Time => "units",
    };
    for (path, part) in files.finish()?.iter().zip(&made.parts) {
        let (from, until) = part.range;
        talk.summary(&format!(
            "{}: {}, {unit} {from} to {until}",
            path.display(),
            counted(part.bytes, "byte")
        ));
    }
    say_left_out(&exported, (made.axis, plan.least), talk);
    Ok(())
}

/// The trace is read once more, which it must allow.
fn again(args: &Timeline) -> Result<(), Failure> {
    match is_stdin(&args.trace) {
        false => Ok(()),
        true => Err(Failure::Usage(
            "this trace has to be read twice: give a file, or --min-duration",
        )),
    }
}

/// Viewers open files up to this size: the memory of Perfetto's page, and the length of a
/// text in a browser.
fn most(args: &Timeline) -> u64 {
    args.warn_above.unwrap_or(match args.format {
        TimelineFormat::Perfetto => 2 << 30,
        TimelineFormat::Chrome => 1 << 29,
        TimelineFormat::Fst | TimelineFormat::Ctf => u64::MAX,
    })
}

/// The file will be of no use.
fn too_large(args: &Timeline, size: u64) -> Diagnostic {
    let name = output::name(&args.output.output);
    let message = format!(
        "{name} will have {}, more than viewers open",
        counted(size, "byte")
    );
    Diagnostic::new(Code::LargeTimeline, message)
        .help("give --split 500M for several files, a larger --min-duration, or --from and --until")
}

/// What a unit in a waveform or a CTF trace is.
fn say_units(args: &Timeline, axis: Measure, talk: &Talk) {
    let shows_time = matches!(args.format, TimelineFormat::Fst | TimelineFormat::Ctf);
    if !shows_time || args.timescale.is_some() {
        return;
    }
    talk.summary(match axis {
        Measure::Instructions => {
            "the trace has no timestamps: a nanosecond in the file is one instruction"
        }
        Measure::Time => {
            "a nanosecond in the file is a unit of time of the trace; --timescale says how \
            long that is"
        }
    });
}

/// What is not in the file.
fn say_left_out(exported: &Exported, (axis, least): (Measure, u64), talk: &Talk) {
    let unit = match axis {
        Measure::Instructions => "instruction",
        Measure::Time => "unit",
    };
    if exported.too_short > 0 {
        talk.summary(&format!(
            "left out: {} shorter than {}; --min-duration or --from and --until give more detail",
            counted(exported.too_short, "slice"),
            counted(least.max(1), unit)
        ));
    }
    if exported.too_deep > 0 {
        let count = counted(exported.too_deep, "slice");
        talk.summary(&format!("left out: {count} deeper than --max-depth"));
    }
}
