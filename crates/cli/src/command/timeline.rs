//! `hartrace timeline`: calls, traps and threads over time, for other viewers.

use crate::args::{Timeline, TimelineFormat, is_stdout};
use crate::failure::Failure;
use crate::files::create;
use crate::points;
use crate::reporting::{bandwidth, feed};
use crate::source::{How, Opened, functions, places};
use crate::talk::Talk;
use hartrace_analyze::{
    Chrome, Counter, Export, ExportOptions, Exported, Grouping, Held, Measure, Perfetto,
    SliceWriter, Timeline as Engine, Window, Windowed,
};
use hartrace_capture::input::is_stdin;
use hartrace_capture::output::Output;
use hartrace_print::diagnostic::doubt::judge_doubts;
use hartrace_print::words::counted;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Bytes of a file that are kept until it is known that nothing has to be left out.
const HELD: usize = 32 << 20;

/// Slices of a file at most, if the least duration is not given: 40 bytes each with
/// Perfetto and up to 200 with Chrome.
const PERFETTO_SLICES: u64 = 4_000_000;
const CHROME_SLICES: u64 = 800_000;

/// What became of an attempt.
struct Attempt {
    exported: io::Result<Exported>,
    axis: Measure,
    /// Times were expected, and there are none.
    lacks_time: bool,
}

pub(super) fn run(args: &Timeline, talk: &Talk) -> Result<(), Failure> {
    if is_stdout(&args.output.output) && io::stdout().is_terminal() {
        return Err(Failure::Usage("a timeline is no text: give a file with -o"));
    }
    let mut output = create(&args.output.output, [args.trace.as_path()])?;
    let min_duration = args.min_duration.unwrap_or(0);
    let (mut made, mut held) = first(args, (None, min_duration), &mut output, talk)?;
    if made.lacks_time {
        again(args)?;
        let how = (Some(Measure::Instructions), min_duration);
        (made, held) = first(args, how, &mut output, &talk.silent())?;
    }
    let mut exported = made.exported.map_err(|error| output.failed(error))?;
    let mut least = min_duration;
    if let Some(bytes) = held {
        let written = output.write_all(&bytes);
        written.map_err(|error| output.failed(error))?;
    } else if args.min_duration.is_none() {
        again(args)?;
        least = exported.min_duration(match args.format {
            TimelineFormat::Perfetto => PERFETTO_SLICES,
            TimelineFormat::Chrome => CHROME_SLICES,
        });
        let how = (Some(made.axis), least);
        let second = attempt(args, how, &mut output, &talk.silent())?;
        exported = second.exported.map_err(|error| output.failed(error))?;
    }
    output.finish()?;
    say_left_out(&exported, (made.axis, least), talk);
    say_too_large(&args.output.output, talk);
    Ok(())
}

/// A file of moderate size needs one pass: it is given. A larger one has been written if
/// the least duration is given, and measured otherwise.
fn first(
    args: &Timeline,
    how: (Option<Measure>, u64),
    output: &mut Output,
    talk: &Talk,
) -> Result<(Attempt, Option<Vec<u8>>), Failure> {
    let rest = args.min_duration.map(|_| output as &mut dyn Write);
    let mut held = Held::new(HELD, rest);
    let made = attempt(args, how, &mut held, talk)?;
    Ok((made, held.finish()))
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

/// Browsers open files up to this size.
const MOST: u64 = 2 << 30;

/// The file may be of no use.
fn say_too_large(path: &Path, talk: &Talk) {
    let size = fs::metadata(path).map_or(0, |file| file.len());
    if size > MOST {
        talk.summary(&format!(
            "{} has {}: viewers in a browser open up to 2 GB; give a larger --min-duration, or \
            --from and --until",
            path.display(),
            counted(size, "byte")
        ));
    }
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

/// Writes a file with slices of this duration at least.
fn attempt(
    args: &Timeline,
    (axis, min_duration): (Option<Measure>, u64),
    out: &mut dyn Write,
    talk: &Talk,
) -> Result<Attempt, Failure> {
    let Opened {
        program,
        image,
        isa,
        mut source,
    } = Opened::open(&args.trace, &args.traced, "timeline", talk)?;
    let named = functions(&program);
    let part = args.between.part();
    let window = points::part(&part, &program, &named)?;
    let has_time = axis != Some(Measure::Instructions) && source.may_have_time()?;
    let options = ExportOptions {
        axis: match has_time {
            true => Measure::Time,
            false => Measure::Instructions,
        },
        min_duration,
        max_depth: args.max_depth.unwrap_or(usize::MAX),
    };
    let mut writer: Box<dyn SliceWriter + '_> = match args.format {
        TimelineFormat::Perfetto => Box::new(Perfetto::new(out)),
        TimelineFormat::Chrome => Box::new(Chrome::new(out)),
    };
    let mut export = Export::new(options, named.clone(), &mut *writer);
    let grouping = Grouping::default();
    let mut profiler = Engine::profiler(&image, named, grouping, &mut export);
    let how = How {
        only: args.traced.hart,
        single: false,
        progress: true,
        census: window.is_none(),
        check: &|| Ok(()),
    };
    let of = (&program, &image, isa);
    let mut verdict = match window {
        None => feed((source, has_time), of, &mut *profiler, &how)?,
        Some(options) => {
            let window = Window::new(&image, options);
            let inner = &mut *profiler;
            let mut windowed = Windowed { inner, window };
            let verdict = feed((source, has_time), of, &mut windowed, &how)?;
            points::found(&windowed.window, &part, &args.trace)?;
            verdict
        }
    };
    let bytes = verdict.take_counted();
    verdict.report()?;
    let (profile, timeline) = profiler.finish();
    timeline.finish();
    if profile.doubts.count > 0 {
        let strict = args.traced.strict;
        let places = places(&program);
        talk.report(judge_doubts(&profile.doubts, &places, &args.trace, strict))?;
    }
    let bytes = bytes.map(|(census, growth)| bandwidth(&census, &growth));
    let (name, values) = match &bytes {
        Some(bytes) => {
            let values = bytes.x.iter().zip(&bytes.bytes);
            let values: Vec<_> = values.map(|(x, bytes)| (*x, *bytes as f64)).collect();
            (format!("trace {}", bytes.unit), values)
        }
        None => (String::new(), Vec::new()),
    };
    let counter = Counter {
        name: &name,
        hart: None,
        values: &values,
    };
    let counters = if values.is_empty() {
        &[][..]
    } else {
        &[counter]
    };
    Ok(Attempt {
        exported: export.finish(counters),
        axis: options.axis,
        lacks_time: has_time && !profile.timed,
    })
}
