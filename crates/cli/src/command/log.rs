//! `hartrace log`: converts a log to another kind of log.

use crate::args::{Log, LogKind};
use crate::failure::Failure;
use crate::logs::{self, mode_of};
use crate::session::Session;
use crate::settings::{Program, chosen};
use crate::sink::Sink;
use crate::talk::Talk;
use hartrace_capture::config::Config;
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::Input;
use hartrace_capture::log::{
    Assume, Reading, RowWriter, has_time, head, ingress_layout, recognise_boot,
};
use hartrace_capture::output::Output;
use hartrace_flow::{Mode, Observer};
use hartrace_logs::{IngressColumns, PcWriter, SpikeWriter};
use hartrace_print::JsonSteps;
use hartrace_print::diagnostic::log;

pub(super) fn run(args: &Log, talk: &Talk) -> Result<(), Failure> {
    if args.with_trapped && args.to != LogKind::Pc {
        return Err(Failure::Usage("--with-trapped requires --to pc"));
    }
    let session = Session::of_log(&args.input, &args.program, args.strict, talk)?;
    let output = session.output(&args.output.output)?;
    let mut program = session.load()?;
    let mut image = program.image()?;
    let mut input = Input::open(&args.input)?;
    let kind = chosen(detect(input.peek(HEAD)?), &session.config);
    let head = head(kind, &mut input)?;
    recognise_boot(kind, head, &mut program, image.as_mut());
    need(args, kind, head, &session.config)?;
    let job = Job {
        args,
        reading: logs::reading(kind, head, &program, image.as_ref(), false, &session)?,
        columns: columns(kind, head, &session),
        session,
    };
    job.run(&program, input, output)
}

/// Refuses a log that lacks what is to be written.
fn need(args: &Log, kind: Kind, head: &[u8], config: &Config) -> Result<(), Failure> {
    if kind.is_log() && args.to == LogKind::Spike {
        logs::need_effects(&args.input, kind, head, config)?;
    }
    Ok(())
}

/// The columns of rows: the time, if there is one, and the sideband.
fn columns(kind: Kind, head: &[u8], session: &Session<'_>) -> IngressColumns {
    let given = (kind == Kind::IngressCsv).then(|| ingress_layout(head).0);
    IngressColumns {
        time: has_time(kind, head, &session.config),
        power_down: given.flatten().is_some_and(|c| c.power_down),
        pending: given.flatten().is_some_and(|c| c.pending),
        ..IngressColumns::with_sideband()
    }
}

struct Job<'a> {
    args: &'a Log,
    session: Session<'a>,
    reading: Reading<'a>,
    columns: IngressColumns,
}

impl Job<'_> {
    fn run(self, program: &Program, input: Input, output: Output) -> Result<(), Failure> {
        let sink = Sink::new(output);
        match self.args.to {
            LogKind::Pc => {
                let writer = PcWriter::new(self.reading.isa.xlen(), |bytes: &[u8]| sink.put(bytes));
                if self.args.with_trapped {
                    self.copy(input, &sink, true, writer.listing_traps())?;
                } else {
                    self.copy(input, &sink, true, writer)?;
                }
            }
            LogKind::Spike => {
                let writer = SpikeWriter::new(self.reading.isa, |bytes: &[u8]| sink.put(bytes));
                self.copy(input, &sink, false, writer)?;
            }
            LogKind::Ingress => {
                let ingress = &program.config.ingress;
                let port = ingress.port(self.reading.isa);
                let put = |rows: Result<&[u8], _>| sink.put_rows(rows);
                let writer = RowWriter::new(port, self.columns, ingress.iretire(), put);
                if self.reading.modes {
                    self.copy(input, &sink, true, writer)?;
                } else {
                    self.rows_with_assumed_mode(input, &sink, writer)?;
                }
            }
            LogKind::Json => {
                let shown = self.reading.modes || self.args.mode.is_some();
                let writer = JsonSteps::new(self.reading.isa, shown, &sink);
                match self.args.mode {
                    Some(mode) if !self.reading.modes => {
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

    /// Rows have a mode, also where the log has none.
    fn rows_with_assumed_mode(
        self,
        input: Input,
        sink: &Sink,
        writer: impl Observer,
    ) -> Result<(), Failure> {
        let (args, talk) = (self.args, self.session.talk);
        let writer = Assume::new(writer, args.mode.map_or(Mode::M, mode_of));
        self.copy(input, sink, true, writer)?;
        if args.mode.is_none() {
            talk.warning(&log::assumed_mode(&args.input));
        }
        Ok(())
    }

    /// Reads all of the input; `single` outputs have no room for two harts.
    /// Gives the writer back.
    fn copy<O: Observer>(
        self,
        input: Input,
        sink: &Sink,
        single: bool,
        writer: O,
    ) -> Result<O, Failure> {
        let (session, which) = (&self.session, (self.args.hart, single));
        let check = || sink.check();
        let copied = logs::copy(self.reading, input, writer, which, session, check)?;
        // Pcs have no causes, and JSON says which are unknown.
        let instead = Some("exception 0").filter(|_| self.args.to == LogKind::Ingress);
        logs::judged(copied, instead, session)
    }
}
