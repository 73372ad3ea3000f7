//! `hartrace decode`: reconstructs the executed instructions.

use crate::args::{Decode, DecodeFormat};
use crate::failure::Failure;
use crate::session::{Loaded, Session};
use crate::settings::names_of;
use crate::sink::Sink;
use crate::talk::Talk;
use hartrace_capture::input::Input;
use hartrace_capture::shard::cores;
use hartrace_capture::trace::{Decoded, Watch};
use hartrace_flow::HartId;
use hartrace_print::diagnostic::trace::no_data_trace;
use hartrace_print::events::{self, EventForm, EventText};

pub(super) fn run(args: &Decode, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.format != DecodeFormat::Pc {
        return Err(Failure::Usage("--with-trapped requires -f pc"));
    }
    let session = Session::new(&args.trace, &args.program, args.strict, talk)?;
    let output = session.output(&args.output.output)?;
    // A file that is no trace is reported before a missing program.
    let input = session.open(&args.transport, "decode")?;
    let Loaded {
        program,
        isa,
        image,
        trace,
    } = session.loaded(input)?;
    let trace = match &args.data {
        None => trace,
        Some(_) if !trace.can_join() => return Err(no_data_trace(&args.trace).into()),
        Some(data) => trace.with_data(Input::open(data)?)?,
    };
    let names = names_of(&program.elf);
    let form = match args.format {
        DecodeFormat::Text => EventForm::Listing {
            harts: trace.has_sources(),
        },
        DecodeFormat::Pc => EventForm::Pcs {
            traps: args.with_trapped,
        },
        DecodeFormat::Json => EventForm::Json,
    };
    let is_file = output.is_file();
    let sink = Sink::new(output);
    if form == EventForm::Json {
        let header = events::write_header(isa, &mut &sink);
        header.map_err(|error| sink.failed(error))?;
    }
    let part = |alone: bool| {
        let to = alone.then_some(&sink);
        let text = EventText::new(form, &image, isa, &names, flush(to));
        Watch::new(text, args.hart.map(HartId))
    };
    let mut decoded = Decoded::default();
    let mut progress = session.progress(&trace.input);
    let threads = args.threads.unwrap_or_else(cores);
    talk.detail(&format!("threads: up to {threads}"));
    trace.decode_parts(&image, threads, part, |part, done| {
        progress.reach(done);
        decoded.add(std::mem::take(&mut part.decoded));
        flush(Some(&sink))(part.inner.text());
        sink.check()
    })?;
    drop(progress);
    let verdict = session.judge(&decoded, args.hart);
    // A file would pass for a good one; a stream has been read already.
    let kept = match verdict.is_ok() || !is_file {
        true => sink.finish(),
        false => Ok(()),
    };
    verdict.and(kept)
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
