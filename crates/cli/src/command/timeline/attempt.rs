//! One pass over a trace, which makes a timeline.

use super::files::{FIRST, Files};
use crate::args::{Timeline, TimelineFormat};
use crate::failure::Failure;
use crate::points;
use crate::reporting::{bandwidth, feed};
use crate::source::{How, Opened, Verdict, functions, places};
use crate::talk::Talk;
use hartrace_analyze::{
    Chrome, Ctf, Export, ExportOptions, Exported, Grouping, Measure, OnePart, Parts, Perfetto,
    Recorder, SignalOptions, Signals, SliceWriter, Timeline as Engine, Timescale, Waves, Window,
    Windowed, WrittenPart,
};
use hartrace_flow::Consumer;
use hartrace_print::diagnostic::doubt::judge_doubts;
use std::io::{self, Write};

/// How a trace is read.
pub(super) struct Plan {
    /// The axis, if that is known.
    pub(super) axis: Option<Measure>,
    /// The least duration of slices, and between two values of the pc.
    pub(super) least: u64,
    pub(super) least_pc: u64,
    /// Counters for a timeline in several files.
    pub(super) counters: Vec<Values>,
}

/// Values over the axis, and what they are called.
pub(super) type Values = (String, Vec<(u64, f64)>);

/// What became of it.
pub(super) struct Attempt {
    pub(super) exported: io::Result<Exported>,
    pub(super) axis: Measure,
    /// Times were expected, and there are none.
    pub(super) lacks_time: bool,
    /// Values over the axis.
    pub(super) counters: Vec<Values>,
    /// The files that were written, if these are several.
    pub(super) parts: Vec<WrittenPart>,
}

/// Reads the trace and writes a timeline.
pub(super) fn attempt(
    args: &Timeline,
    plan: &Plan,
    files: &mut dyn Files,
    talk: &Talk,
) -> Result<Attempt, Failure> {
    let mut opened = Opened::open(&args.trace, &args.traced, "timeline", talk)?;
    let has_time = plan.axis != Some(Measure::Instructions) && opened.source.may_have_time()?;
    let axis = match has_time {
        true => Measure::Time,
        false => Measure::Instructions,
    };
    let timescale = args.timescale.filter(|_| has_time);
    let options = ExportOptions {
        axis,
        min_duration: plan.least,
        max_depth: args.max_depth.unwrap_or(usize::MAX),
        timescale,
    };
    let recorder = Recorder::new(files.scratch());
    let xlen = opened.isa.xlen().bits();
    let failed = |error| Attempt {
        exported: Err(error),
        axis,
        lacks_time: false,
        counters: Vec::new(),
        parts: Vec::new(),
    };
    let run = Pass {
        args,
        plan,
        opened,
        options,
        recorder: &recorder,
        talk,
    };
    if let Some(size) = files.part_size() {
        let mut name = FIRST;
        let mut next = || {
            let out = files.open(name)?;
            name = "";
            Ok(OnePart::new(out, |out| plain(args.format, out, timescale)))
        };
        let mut parts = match Parts::new(size, &mut next) {
            Ok(parts) => parts,
            Err(error) => return Ok(failed(error)),
        };
        let mut made = run.pass(&mut parts, &|| false)?;
        made.parts = parts.written().to_vec();
        return Ok(made);
    }
    if args.format == TimelineFormat::Ctf {
        let over = files.is_over();
        let mut new_file = |name: &str| files.open(name);
        let mut writer = Ctf::new(&mut new_file, &recorder, timescale);
        return run.pass(&mut writer, &*over);
    }
    let out = match files.open("") {
        Ok(out) => out,
        Err(error) => return Ok(failed(error)),
    };
    match args.format {
        TimelineFormat::Fst => {
            let over = files.is_over();
            let mut writer = Waves::new(out, &recorder, (axis, timescale), xlen);
            run.pass(&mut writer, &*over)
        }
        format => run.pass(&mut *plain(format, out, timescale), &|| false),
    }
}

/// The writer of a format that is one file of slices.
fn plain<'w>(
    format: TimelineFormat,
    out: Box<dyn Write + 'w>,
    timescale: Option<Timescale>,
) -> Box<dyn SliceWriter + 'w> {
    match format {
        TimelineFormat::Chrome => Box::new(Chrome::new(out, timescale)),
        _ => Box::new(Perfetto::new(out, timescale)),
    }
}

/// A pass over a trace that is open.
struct Pass<'a> {
    args: &'a Timeline,
    plan: &'a Plan,
    opened: Opened<'a>,
    options: ExportOptions,
    recorder: &'a Recorder,
    talk: &'a Talk,
}

impl Pass<'_> {
    /// Gives all slices to a writer. Where there is too much to be put aside, nothing is
    /// written in the end.
    fn pass(
        self,
        writer: &mut dyn SliceWriter,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Attempt, Failure> {
        let Pass {
            args, plan, talk, ..
        } = self;
        let Opened {
            program,
            image,
            isa,
            source,
        } = self.opened;
        let named = functions(&program);
        let part = args.between.part();
        let window = points::part(&part, &program, &named)?;
        let axis = self.options.axis;
        let has_time = axis == Measure::Time;
        let mut export = Export::new(self.options, named.clone(), writer);
        for (name, values) in &plan.counters {
            export.counter(name, values.clone());
        }
        let mut profiler = Engine::profiler(&image, named, Grouping::default(), &mut export);
        let how = How {
            only: args.traced.hart,
            single: false,
            progress: true,
            census: window.is_none(),
            check: &|| Ok(()),
        };
        let signals = SignalOptions {
            axis,
            least: plan.least_pc,
            with_pc: args.format == TimelineFormat::Fst,
        };
        let mut with_signals;
        let inner: &mut dyn Consumer = match args.format {
            TimelineFormat::Fst | TimelineFormat::Ctf => {
                with_signals = Signals::new(&mut *profiler, self.recorder, signals);
                &mut with_signals
            }
            _ => &mut *profiler,
        };
        let of = (&program, &image, isa);
        let mut verdict: Verdict<'_> = match window {
            None => feed((source, has_time), of, inner, &how)?,
            Some(options) => {
                let window = Window::new(&image, options);
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
        let counters = bytes.map(|bytes| {
            let values = bytes.x.iter().zip(&bytes.bytes);
            let values = values.map(|(x, bytes)| (*x, *bytes as f64)).collect();
            (format!("trace {}", bytes.unit), values)
        });
        let counters: Vec<Values> = counters.into_iter().collect();
        if plan.counters.is_empty() {
            for (name, values) in &counters {
                export.counter(name, values.clone());
            }
        }
        Ok(Attempt {
            exported: match is_over() {
                true => Ok(export.measured()),
                false => export.finish(),
            },
            axis,
            lacks_time: has_time && !profile.timed,
            counters,
            parts: Vec::new(),
        })
    }
}
