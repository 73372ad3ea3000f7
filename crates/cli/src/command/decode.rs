//! `hartrace decode`: reconstructs the executed instructions.

use crate::args::{Decode, DecodeFormat, is_stdout};
use crate::failure::Failure;
use crate::points::{self, has_doubt};
use crate::session::{Loaded, Session};
use crate::settings::names_of;
use crate::sink::Sink;
use crate::source::{functions, places};
use crate::talk::{Talk, leave_signals_to_pager};
use hartrace_analyze::{ListingStyle, TraceListing, Window, WindowOptions, Windowed};
use hartrace_capture::input::Input;
use hartrace_capture::output::Output;
use hartrace_capture::shard::cores;
use hartrace_capture::source_text::SourceText;
use hartrace_capture::trace::{Decoded, Trace, Watch};
use hartrace_flow::{Consumer, HartId, Image};
use hartrace_print::diagnostic::trace::no_data_trace;
use hartrace_print::events::{self, EventForm, EventText};
use std::io::IsTerminal as _;

pub(super) fn run(args: &Decode, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.format != DecodeFormat::Pc {
        return Err(Failure::Usage("--with-trapped requires -f pc"));
    }
    let session = Session::new(&args.trace, &args.program, args.strict, talk)?;
    let output = session.output(&args.output.output)?;
    // A file that is no trace is reported before a missing program.
    let input = session.open(&args.transport, "decode")?;
    let mut loaded = session.loaded(input)?;
    if let Some(data) = &args.data {
        if !loaded.trace.can_join() {
            return Err(no_data_trace(&args.trace).into());
        }
        loaded.trace = loaded.trace.with_data(Input::open(data)?)?;
    }
    let part = points::part(&args.part, &loaded.program, &functions(&loaded.program))?;
    match args.format {
        DecodeFormat::Text | DecodeFormat::Source => list(args, &session, loaded, part, output),
        DecodeFormat::Pc | DecodeFormat::Json => match part {
            Some(part) if has_doubt(&part) => {
                Err(Failure::Usage("`doubt` requires -f text or -f source"))
            }
            part => write_events(args, &session, loaded, part, output),
        },
    }
}

/// Lists instructions as text.
fn list(
    args: &Decode,
    session: &Session<'_>,
    loaded: Loaded,
    part: Option<WindowOptions>,
    output: Output,
) -> Result<(), Failure> {
    let Loaded {
        program,
        image,
        trace,
        ..
    } = loaded;
    let is_terminal = is_stdout(&args.output.output) && std::io::stdout().is_terminal();
    let pager = match is_terminal && !args.no_pager {
        true => pager(),
        false => None,
    };
    let is_paged = pager.is_some();
    let output = pager.unwrap_or(output);
    let text = SourceText::new(args.sources.source_dir.clone());
    let line = |file: &str, number: u32| text.line(file, number);
    let style = ListingStyle {
        harts: trace.has_sources(),
        colour: is_stdout(&args.output.output) && session.talk.colours_stdout(),
        source: match args.format {
            DecodeFormat::Source => Some(&line),
            _ => None,
        },
    };
    let places = places(&program);
    let sink = Sink::new(output);
    let (decoded, found) = {
        let about = (&places, functions(&program));
        let mut listing = TraceListing::new(&image, about, style, flush(Some(&sink)));
        if let Some(options) = part {
            listing = listing.within(Window::new(&image, options));
        }
        let mut watch = Watch::new(listing, args.hart.map(HartId));
        let done = |listing: &TraceListing<'_, _>| listing.window().is_some_and(Window::is_done);
        decode(session, trace, (&image, &sink, is_paged), &mut watch, done)?;
        let decoded = std::mem::take(&mut watch.decoded);
        let mut listing = watch.inner;
        listing.out().finish();
        let found = listing.window().map_or(Ok(()), |window| {
            points::found(window, &args.part, &args.trace)
        });
        (decoded, found)
    };
    finish(session, sink, &decoded, args.hart).and(found)
}

/// Decodes in order, until `done` wants no more.
fn decode<C: Consumer>(
    session: &Session<'_>,
    trace: Trace,
    (image, sink, is_paged): (&Image, &Sink, bool),
    watch: &mut Watch<C>,
    done: impl Fn(&C) -> bool,
) -> Result<(), Failure> {
    let mut progress = (!is_paged).then(|| session.progress(&trace.input));
    let mut enough = false;
    let decoded = trace.decode(image, watch, |watch, bytes| {
        if let Some(progress) = &mut progress {
            progress.reach(bytes);
        }
        sink.check()?;
        enough = done(&watch.inner);
        match enough {
            true => Err(Failure::ClosedPipe),
            false => Ok(()),
        }
    });
    match enough {
        true => Ok(()),
        false => decoded,
    }
}

/// Writes a list of pcs, or events as JSON.
fn write_events(
    args: &Decode,
    session: &Session<'_>,
    loaded: Loaded,
    part: Option<WindowOptions>,
    output: Output,
) -> Result<(), Failure> {
    let Loaded {
        program,
        isa,
        image,
        trace,
    } = loaded;
    let names = names_of(&program.elf);
    let form = match args.format {
        DecodeFormat::Json => EventForm::Json,
        _ => EventForm::Pcs {
            traps: args.with_trapped,
        },
    };
    let sink = Sink::new(output);
    if form == EventForm::Json {
        let header = events::write_header(isa, &mut &sink);
        header.map_err(|error| sink.failed(error))?;
    }
    let new = |to| EventText::new(form, &image, isa, &names, flush(to));
    let Some(options) = part else {
        let decoded = decode_parts(args, session, trace, (&image, &sink), new)?;
        return finish(session, sink, &decoded, args.hart);
    };
    let (decoded, found) = {
        let inner = Windowed {
            inner: new(Some(&sink)),
            window: Window::new(&image, options),
        };
        let mut watch = Watch::new(inner, args.hart.map(HartId));
        let done = |windowed: &Windowed<'_, _>| windowed.window.is_done();
        decode(session, trace, (&image, &sink, false), &mut watch, done)?;
        let decoded = std::mem::take(&mut watch.decoded);
        let Windowed { mut inner, window } = watch.inner;
        flush(Some(&sink))(inner.text());
        let found = points::found(&window, &args.part, &args.trace);
        (decoded, found)
    };
    finish(session, sink, &decoded, args.hart).and(found)
}

/// Decodes everything, on several threads.
fn decode_parts<'a, F: FnMut(&mut Vec<u8>) + Send + 'a>(
    args: &Decode,
    session: &Session<'_>,
    trace: Trace,
    (image, sink): (&Image, &'a Sink),
    new: impl Fn(Option<&'a Sink>) -> EventText<'a, F> + Sync,
) -> Result<Decoded, Failure> {
    let part = |alone: bool| {
        let text = new(alone.then_some(sink));
        Watch::new(text, args.hart.map(HartId))
    };
    let mut decoded = Decoded::default();
    let mut progress = session.progress(&trace.input);
    let threads = args.threads.unwrap_or_else(cores);
    session.talk.detail(&format!("threads: up to {threads}"));
    trace.decode_parts(image, threads, part, |part, done| {
        progress.reach(done);
        decoded.add(std::mem::take(&mut part.decoded));
        flush(Some(sink))(part.inner.text());
        sink.check()
    })?;
    Ok(decoded)
}

/// Keeps the output and reports what was lost. A file would pass for a good one; a
/// stream has been read already, and a pager has to end first.
fn finish(
    session: &Session<'_>,
    sink: Sink,
    decoded: &Decoded,
    hart: Option<u32>,
) -> Result<(), Failure> {
    if !sink.is_file() {
        let kept = sink.finish();
        return session.judge(decoded, hart).and(kept);
    }
    session.judge(decoded, hart)?;
    sink.finish()
}

/// The pager of the user, started.
fn pager() -> Option<Output> {
    let command = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    if command.trim().is_empty() || command == "cat" {
        return None;
    }
    let output = Output::to_pager(&command)?;
    leave_signals_to_pager();
    Some(output)
}

/// Text goes to the sink, or stays where it is.
fn flush(to: Option<&Sink>) -> impl FnMut(&mut Vec<u8>) + Send {
    move |text| {
        if let Some(sink) = to {
            sink.put(text);
            text.clear();
        }
    }
}
