//! `hartrace decode`: reconstructs the executed instructions.

use crate::args::{Decode, DecodeFormat, is_stdout};
use crate::failure::Failure;
use crate::points::{self, has_doubt};
use crate::settings::names_of;
use crate::sink::Sink;
use crate::source::{How, Opened, Verdict, functions, places, source_text};
use crate::talk::{Talk, leave_signals_to_pager};
use hartrace_analyze::{ListingStyle, TraceListing, Window, WindowOptions, Windowed};
use hartrace_capture::output::Output;
use hartrace_capture::shard::cores;
use hartrace_flow::Gather as _;
use hartrace_print::events::{self, EventForm, EventText};
use std::io::IsTerminal as _;

pub(super) fn run(args: &Decode, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.format != DecodeFormat::Pc {
        return Err(Failure::Usage("--with-trapped requires -f pc"));
    }
    let mut opened = Opened::open(&args.trace, &args.traced, "decode", talk)?;
    let output = opened.source.output(&args.output.output)?;
    if let Some(data) = &args.data {
        opened.source = opened.source.with_data(data)?;
    }
    let part = points::part(&args.part, &opened.program, &functions(&opened.program))?;
    match args.format {
        DecodeFormat::Text | DecodeFormat::Source => list(args, opened, part, output, talk),
        DecodeFormat::Pc | DecodeFormat::Json => match part {
            Some(part) if has_doubt(&part) => {
                Err(Failure::Usage("`doubt` requires -f text or -f source"))
            }
            part => write_events(args, opened, part, output, talk),
        },
    }
}

/// Lists instructions as text.
fn list(
    args: &Decode,
    opened: Opened<'_>,
    part: Option<WindowOptions>,
    output: Output,
    talk: &Talk,
) -> Result<(), Failure> {
    let Opened {
        program,
        image,
        isa,
        source,
    } = opened;
    let is_terminal = is_stdout(&args.output.output) && std::io::stdout().is_terminal();
    let pager = match is_terminal && !args.no_pager {
        true => pager(),
        false => None,
    };
    let is_paged = pager.is_some();
    let output = pager.unwrap_or(output);
    let text = source_text(&args.sources, [&program]);
    let line = |file: &str, number: u32| text.line(file, number);
    let style = ListingStyle {
        harts: source.has_harts(),
        colour: is_stdout(&args.output.output) && talk.colours_stdout(),
        source: match args.format {
            DecodeFormat::Source => Some(&line),
            _ => None,
        },
    };
    let places = places(&program);
    let sink = Sink::new(output);
    let (verdict, found) = {
        let about = (&places, functions(&program));
        let mut listing = TraceListing::new(&image, about, style, flush(&sink));
        if let Some(options) = part {
            listing = listing.within(Window::new(&image, options));
        }
        let check = || sink.check();
        let how = How {
            only: args.traced.hart,
            single: true,
            progress: !is_paged,
            census: false,
            check: &check,
        };
        let verdict = source.read((&program, &image, isa), &mut listing, &how)?;
        listing.out().finish();
        let found = listing.window().map_or(Ok(()), |window| {
            points::found(window, &args.part, &args.trace)
        });
        (verdict, found)
    };
    finish(sink, verdict).and(found)
}

/// Writes a list of pcs, or events as JSON.
fn write_events(
    args: &Decode,
    opened: Opened<'_>,
    part: Option<WindowOptions>,
    output: Output,
    talk: &Talk,
) -> Result<(), Failure> {
    let Opened {
        program,
        image,
        isa,
        source,
    } = opened;
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
    let text = || EventText::new(form, &image, isa, &names, flush(&sink));
    let of = (&program, &image, isa);
    let check = || sink.check();
    let how = How {
        only: args.traced.hart,
        single: form != EventForm::Json,
        progress: true,
        census: false,
        check: &check,
    };
    let (verdict, found) = match part {
        None => {
            let threads = args.threads.unwrap_or_else(cores);
            talk.detail(&format!("threads: up to {threads}"));
            let verdict = source.read_parts(of, threads, &how, &|alone| match alone {
                true => Box::new(text()),
                false => Box::new(text().held()),
            })?;
            (verdict, Ok(()))
        }
        Some(options) => {
            let mut windowed = Windowed {
                inner: text(),
                window: Window::new(&image, options),
            };
            let verdict = source.read(of, &mut windowed, &how)?;
            // Nothing is left to end.
            let _ = windowed.inner.give();
            let found = points::found(&windowed.window, &args.part, &args.trace);
            (verdict, found)
        }
    };
    finish(sink, verdict).and(found)
}

/// Keeps the output and reports what was lost. A file would pass for a good one; a
/// stream has been read already, and a pager has to end first.
fn finish(sink: Sink, verdict: Verdict<'_>) -> Result<(), Failure> {
    if !sink.is_file() {
        let kept = sink.finish();
        return verdict.report().and(kept);
    }
    verdict.report()?;
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

/// Text goes to the sink.
fn flush(to: &Sink) -> impl FnMut(&mut Vec<u8>) + Send {
    move |text| {
        to.put(text);
        text.clear();
    }
}
