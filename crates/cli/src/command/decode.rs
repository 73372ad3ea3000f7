//! `hartrace decode`: what a trace says was executed.

use crate::args::{Decode, DecodeFormat};
use crate::diagnostic::Failure;
use crate::files::{configs, create, inputs, one_stdin};
use crate::progress::Progress;
use crate::settings::names_of;
use crate::sink::Sink;
use crate::talk::Talk;
use crate::traces::{self, Loaded, Report, Settings, Text, Watch};
use hartrace_analyze::{PcList, TraceListing};
use hartrace_capture::detect::HEAD;
use hartrace_capture::input::Input;
use hartrace_capture::shard::Sharding;
use hartrace_capture::trace::{self, Streams};
use hartrace_flow::{Decode as _, Image};
use hartrace_print::events::{self, JsonEvents};
use std::io;

pub(super) fn run(args: &Decode, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.format != DecodeFormat::Pc {
        return Err(Failure::Usage("--with-trapped goes with -f pc"));
    }
    let settings = Settings::resolve(&args.trace, &args.program, talk)?;
    let output = {
        let files = inputs(&settings.config).chain([args.trace.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    // What is no trace is told first.
    let input = settings.open(&args.trace, &args.transport, "decode")?;
    let Loaded {
        program,
        isa,
        image,
        settings,
        mut input,
    } = settings.with_program(input, args.strict, talk)?;
    let names = names_of(&program);
    let job = Job {
        args,
        talk,
        settings,
        image: &image,
    };
    let contained = Streams::parameters(input.peek(HEAD)?).is_some();
    let harts = job.settings.has_sources() || contained;
    let is_file = output.is_file();
    let sink = Sink::new(output);
    let report = match args.format {
        DecodeFormat::Text => job.run(input, &sink, |to| {
            TraceListing::new(&image, isa, &names, harts, flush(to))
        }),
        DecodeFormat::Pc if args.with_trapped => job.run(input, &sink, |to| {
            PcList::new(&image, isa.xlen(), flush(to)).listing_traps()
        }),
        DecodeFormat::Pc => job.run(input, &sink, |to| {
            PcList::new(&image, isa.xlen(), flush(to))
        }),
        DecodeFormat::Json => {
            let header = events::write_header(isa, &mut &sink);
            header.map_err(|error| sink.failed(error))?;
            job.run(input, &sink, |to| {
                JsonEvents::new(&image, Some(&names), flush(to))
            })
        }
    }?;
    let verdict = report.judge(&args.trace, args.strict, talk);
    // A file would pass for a good one; a stream has been read already.
    if verdict.is_ok() || !is_file {
        sink.finish()?;
    }
    verdict
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

impl<F: FnMut(&mut Vec<u8>)> Text for JsonEvents<'_, F> {
    fn text(&mut self) -> &mut Vec<u8> {
        self.text()
    }

    fn size(&self) -> usize {
        self.len()
    }

    fn flush(&mut self) {
        self.finish();
    }
}

struct Job<'a> {
    args: &'a Decode,
    talk: &'a Talk,
    settings: trace::Settings,
    image: &'a Image,
}

impl Job<'_> {
    fn run<'s, T: Text + Send>(
        &self,
        input: Input,
        output: &'s Sink,
        make: impl Fn(Option<&'s Sink>) -> T + Sync,
    ) -> Result<Report, Failure> {
        let threads = self.args.threads.unwrap_or_else(traces::cores);
        if traces::is_for_threads(&input, self.settings.format(), threads) {
            return self.threaded(input, output, threads, make);
        }
        let mut all = Watch::new(make(Some(output)), self.args.hart);
        let mut progress = Progress::new(self.talk, input.size());
        trace::decode(input, &self.settings, self.image, &mut all, |all, used| {
            progress.advance(used);
            if used == 0 {
                all.inner.flush();
            }
            output.check()
        })?;
        Ok(all.report)
    }

    fn threaded<'s, T: Text + Send>(
        &self,
        input: Input,
        output: &'s Sink,
        threads: usize,
        make: impl Fn(Option<&'s Sink>) -> T + Sync,
    ) -> Result<Report, Failure> {
        let mut progress = Progress::new(self.talk, input.size());
        let bytes = input.contents(traces::MAX_WHOLE)?;
        let first = trace::Decoder::new(&self.settings, self.image)?;
        let part = || Watch::new(make(None), self.args.hart);
        let mut all = part();
        let give = |part: &mut Watch<T>, done: usize| -> io::Result<()> {
            progress.reach(done as u64);
            all.take(part);
            let text = part.inner.text();
            output.put(text);
            text.clear();
            match output.has_failed() {
                true => Err(io::Error::other("told by the sink")),
                false => Ok(()),
            }
        };
        let decoded = Sharding::new(threads).decode(&bytes, || first.another(), part, give);
        output.check()?;
        match decoded {
            Ok(()) => Ok(all.report),
            Err(error) => Err(output.failed(error)),
        }
    }
}
