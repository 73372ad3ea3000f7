//! `hartrace log`: a log as another kind of log.

use crate::args::{Log, LogKind};
use crate::diagnostic::{Code, Diagnostic, Failure};
use crate::files::{configs, create, inputs, one_stdin};
use crate::logs::{self, Verdict, mode_of, which_hart};
use crate::progress::Progress;
use crate::settings::{self, Program};
use crate::sink::{RowWriter, Sink, Text};
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{
    Assume, Chosen, Damage, LineCount, LogOptions, LogReader, ingress_layout, tells_modes,
};
use hartrace_capture::output::Output;
use hartrace_flow::{HartId, Mode, Observer};
use hartrace_isa::Isa;
use hartrace_logs::{IngressColumns, PcWriter};
use hartrace_print::JsonSteps;
use std::path::Path;

pub(super) fn run(args: &Log, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.to != LogKind::Pc {
        return Err(Failure::Usage("--with-trapped goes with --to pc"));
    }
    let (config, sidecar) = settings::resolve_beside(&args.input, &args.program, talk)?;
    let output = {
        let files = inputs(&config).chain([args.input.as_path()]);
        one_stdin(files.clone().chain(configs(&args.program)))?;
        create(&args.output.output, files)?
    };
    let mut program = settings::load(config, talk)?;
    if let Some(sidecar) = &sidecar {
        program.check_against(sidecar)?;
    }
    let mut image = program.image()?;
    let mut input = Input::open(&args.input)?;
    let head = input.peek(HEAD)?;
    let kind = detect(head);
    logs::recognise_boot(kind, head, &mut program, image.as_mut());
    let not_readable = |error| logs::not_readable(&args.input, head, error);
    let options = LogOptions {
        image: image.as_ref(),
        ..LogOptions::default()
    };
    // Refused before anything is guessed about it.
    LogReader::new(kind, &options).map_err(not_readable)?;
    let options = logs::options(kind, head, &program, image.as_ref(), talk);
    let job = Job {
        args,
        talk,
        reader: LogReader::new(kind, &options).map_err(not_readable)?,
        isa: options.isa.unwrap_or(Isa::RV64GC),
        told: tells_modes(kind, &options, head),
        columns: columns(kind, head),
    };
    job.run(&program, input, output)
}

/// The columns of the reference flow, the sideband without which loss could
/// not be shown, and the time if there is one.
fn columns(kind: Kind, head: &[u8]) -> IngressColumns {
    let given = (kind == Kind::IngressCsv).then(|| ingress_layout(head).0);
    IngressColumns {
        time: given.flatten().is_some_and(|c| c.time),
        power_down: given.flatten().is_some_and(|c| c.power_down),
        trigger: true,
        halted: true,
        reset: true,
        external: true,
        lost: true,
        ..IngressColumns::default()
    }
}

struct Job<'a> {
    args: &'a Log,
    talk: &'a Talk,
    reader: LogReader<'a>,
    isa: Isa,
    told: bool,
    columns: IngressColumns,
}

impl Job<'_> {
    fn run(self, program: &Program, input: Input, output: Output) -> Result<(), Failure> {
        let sink = Sink::new(output);
        match self.args.to {
            LogKind::Pc => {
                let writer = PcWriter::new(self.isa.xlen(), |bytes: &[u8]| sink.put(bytes));
                if self.args.with_trapped {
                    self.copy(input, &sink, true, writer.listing_traps())?;
                } else {
                    self.copy(input, &sink, true, writer)?;
                }
            }
            LogKind::Ingress => {
                let ingress = &program.config.ingress;
                let port = ingress.port(self.isa);
                let text = Text::new(&sink);
                let writer = RowWriter::new(port, self.columns, ingress.iretire(), text);
                if self.told {
                    self.copy(input, &sink, true, writer)?;
                } else {
                    self.rows_with_assumed_mode(input, &sink, writer)?;
                }
            }
            LogKind::Json => {
                let shown = self.told || self.args.mode.is_some();
                let writer = JsonSteps::new(self.isa, shown, &sink);
                match self.args.mode {
                    Some(mode) if !self.told => {
                        let writer = Assume::new(writer, mode_of(mode));
                        self.copy(input, &sink, false, writer)?;
                    }
                    _ => {
                        self.copy(input, &sink, false, writer)?;
                    }
                }
            }
        }
        sink.finish()
    }

    /// Rows have a mode and a cause, also where the log has none.
    fn rows_with_assumed_mode(
        self,
        input: Input,
        sink: &Sink,
        writer: RowWriter<'_>,
    ) -> Result<(), Failure> {
        let (args, talk) = (self.args, self.talk);
        let writer = Assume::new(writer, args.mode.map_or(Mode::M, mode_of));
        let causes = self.copy(input, sink, true, writer)?.unknown_causes();
        if args.mode.is_none() || causes > 0 {
            talk.warning(&assumed(&args.input, args.mode.is_none(), causes));
        }
        Ok(())
    }

    /// Reads all of the input; `single` outputs have no room for two harts.
    /// Gives the writer back.
    fn copy<O: Observer>(
        mut self,
        input: Input,
        sink: &Sink,
        single: bool,
        writer: O,
    ) -> Result<O, Failure> {
        let path = &self.args.input;
        let mut chosen = Chosen::new(writer, self.args.hart.map(HartId), single);
        let (mut damage, mut lines) = (Damage::default(), LineCount::default());
        let mut progress = Progress::new(self.talk, input.size());
        input.chunks(|chunk| {
            let mut note = |error| damage.add(error);
            self.reader.feed(chunk, &mut chosen, &mut note);
            lines.feed(chunk);
            progress.advance(chunk.len());
            sink.check()?;
            which_hart(path, chosen.harts(), chosen.clash())
        })?;
        self.reader
            .finish(&mut chosen, &mut |error| damage.add(error));
        drop(progress);
        sink.check()?;
        let nothing = chosen.harts().is_empty();
        if !nothing || damage.lines == 0 {
            which_hart(path, chosen.harts(), chosen.clash() || chosen.missing())?;
        }
        let strict = self.args.strict;
        // The wrong program is a reason for damage, not the other way round.
        self.tell(logs::judge_fit(path, chosen.fit(), strict))?;
        self.tell(logs::judge(path, &damage, lines.count(), nothing, strict))?;
        Ok(chosen.into_inner())
    }

    fn tell(&self, verdict: Verdict) -> Result<(), Failure> {
        match verdict {
            Verdict::Error(diagnostic) => return Err(diagnostic.into()),
            Verdict::Warning(diagnostic) => self.talk.warning(&diagnostic),
            Verdict::Clean => {}
        }
        Ok(())
    }
}

/// Values that stand in the rows and not in the log.
fn assumed(path: &Path, mode: bool, causes: u64) -> Diagnostic {
    let name = input::name(path);
    let what = match (mode, causes) {
        (true, 0) => "modes; mode M is assumed".to_owned(),
        (true, _) => "modes and causes; mode M and cause 0 are assumed".to_owned(),
        (false, _) => "causes; cause 0 is assumed".to_owned(),
    };
    let mut diagnostic = Diagnostic::new(Code::Assumed, format!("{name} does not tell {what}"));
    if causes > 0 {
        diagnostic = diagnostic.note(format!("traps of unknown cause: {causes}"));
    }
    if mode {
        diagnostic = diagnostic.help("say the mode with --mode u, s or m");
    }
    diagnostic
}
