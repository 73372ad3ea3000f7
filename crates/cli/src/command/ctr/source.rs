//! The sources of snapshots: dumps, and the steps of logs and traces.

use super::report::Report;
use crate::args::Ctr;
use crate::failure::Failure;
use crate::logs::{self, which_hart};
use crate::session::{Loaded, Session};
use crate::settings::{Program, kind_of};
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, Kind};
use hartrace_capture::input::Input;
use hartrace_capture::log::{has_time, head};
use hartrace_capture::records::{
    Control, Every, Form, Known, RecordSummary, Sampler, Snapshot, SnapshotError, SnapshotReader,
    SnapshotSink, Version,
};
use hartrace_capture::trace::{Trace, Transport};
use hartrace_flow::{HartId, Image, Interpolate, Replay};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::trace::no_program;
use hartrace_print::diagnostic::{is_json_log, records, unknown_format};
use hartrace_print::words::count;
use std::cell::RefCell;
use std::path::Path;

/// A file, and the program it is of.
pub(super) struct Opened<'a> {
    pub(super) program: Program,
    pub(super) image: Option<Image>,
    pub(super) content: Content<'a>,
}

/// What is in a file.
pub(super) struct Content<'a> {
    session: Session<'a>,
    data: Data,
}

enum Data {
    Dump(Form, Input),
    Log(Kind, Input),
    Trace(Box<Trace>, Isa),
}

impl<'a> Opened<'a> {
    pub(super) fn open(path: &'a Path, args: &Ctr, talk: &'a Talk) -> Result<Opened<'a>, Failure> {
        let mut input = Input::open(path)?;
        let kind = kind_of(input.peek(HEAD)?, path, &args.program)?;
        // Samples of pins may look like anything.
        let bare = args.transport.get() == Transport::default();
        let data = match kind {
            Kind::CtrDump if bare => Data::Dump(Form::Binary, input),
            Kind::CtrJson if bare => Data::Dump(Form::Json, input),
            kind if bare && kind.is_log() => Data::Log(kind, input),
            Kind::Unknown if bare && is_json_log(input.peek(HEAD)?) => {
                return Err(unknown_format(path, kind, input.peek(HEAD)?, "ctr").into());
            }
            _ => return Opened::trace(path, input, args, talk),
        };
        let session = Session::of_log(path, &args.program, args.strict, talk)?;
        let program = session.load()?;
        Ok(Opened {
            image: program.image()?,
            program,
            content: Content { session, data },
        })
    }

    fn trace(
        path: &'a Path,
        input: Input,
        args: &Ctr,
        talk: &'a Talk,
    ) -> Result<Opened<'a>, Failure> {
        let session = Session::new(path, &args.program, args.strict, talk)?;
        let input = session.accept(input, &args.transport, "ctr")?;
        let Loaded {
            program,
            isa,
            image,
            trace,
        } = session.loaded(input)?;
        let data = Data::Trace(Box::new(trace), isa);
        Ok(Opened {
            program,
            image: Some(image),
            content: Content { session, data },
        })
    }
}

impl Content<'_> {
    /// It has the snapshots it has; others are made of steps.
    pub(super) fn is_dump(&self) -> bool {
        matches!(self.data, Data::Dump(..))
    }

    /// Whether snapshots are taken at times between two timestamps.
    pub(super) fn is_interpolated(&self, args: &Ctr) -> bool {
        matches!(self.data, Data::Trace(..)) && matches!(args.every, Some(Every::Cycles(_)))
    }

    /// Gives all snapshots to the report; the version of the first of a dump.
    pub(super) fn read(
        self,
        program: &Program,
        image: Option<&Image>,
        args: &Ctr,
        report: &mut Report<'_, '_>,
    ) -> Result<Option<Version>, Failure> {
        let version = program.config.ctr.version.as_ref().map(|v| v.value);
        let job = Job {
            program,
            image,
            args,
            session: &self.session,
        };
        match self.data {
            Data::Dump(form, input) => return job.dump(form, input, report),
            Data::Log(kind, input) => job.log(kind, input, report)?,
            Data::Trace(trace, isa) => job.trace(*trace, isa, report)?,
        }
        Ok(version)
    }
}

struct Job<'a> {
    program: &'a Program,
    image: Option<&'a Image>,
    args: &'a Ctr,
    session: &'a Session<'a>,
}

impl Job<'_> {
    fn dump(
        &self,
        form: Form,
        input: Input,
        report: &mut Report<'_, '_>,
    ) -> Result<Option<Version>, Failure> {
        let Session { path, talk, .. } = *self.session;
        let mut reader = SnapshotReader::new(form);
        let mut summary = RecordSummary::default();
        let mut progress = self.session.progress(&input);
        let only = self.args.hart;
        let take = |result: Result<&Snapshot, SnapshotError>,
                    summary: &mut RecordSummary,
                    report: &mut Report<'_, '_>| {
            if let Ok(snapshot) = &result
                && only.is_none_or(|only| only == snapshot.hart.0)
            {
                report.snapshot(snapshot);
            }
            summary.add(result);
        };
        input.chunks(|chunk| {
            progress.advance(chunk.len());
            reader.feed(chunk, &mut |result| take(result, &mut summary, report));
            report.check()
        })?;
        let end = reader.finish(&mut |result| take(result, &mut summary, report));
        if let Err(error) = end {
            summary.error(error);
        }
        drop(progress);
        report.check()?;
        talk.report(records::judge(path, &summary, self.args.strict))?;
        if summary.snapshots == 0 {
            talk.warning(&records::no_snapshots(path));
        }
        let missing = only.is_some_and(|only| !summary.harts.contains(&HartId(only)));
        let harts: Vec<HartId> = summary.harts.iter().copied().collect();
        which_hart(path, &harts, missing && !harts.is_empty())?;
        Ok(summary.first.map(|(version, _)| version))
    }

    /// Records as a hart with the settings in `[ctr]` would hold, from a source that reports
    /// so much.
    fn sampler<'s>(
        &self,
        isa: Isa,
        told: Known,
        sink: impl SnapshotSink + 's,
    ) -> Result<Sampler<'s>, Failure> {
        let ctr = self.program.config.ctr.recorder(isa.xlen())?;
        if !told.modes && !ctr.control().has(Control::MODES) {
            let modes = ctr.control().and(Control::MODES);
            let unknown = records::unknown_modes(self.session.path, modes);
            self.session.talk.warning(&unknown);
        }
        Ok(Sampler::new(ctr, isa, self.args.every, told, sink))
    }

    /// Snapshots by cycles need a time.
    fn need_time(&self, told: bool) -> Result<(), Failure> {
        if told || !matches!(self.args.every, Some(Every::Cycles(_))) {
            return Ok(());
        }
        Err(records::no_time(self.session.path).into())
    }

    fn log(
        &self,
        kind: Kind,
        mut input: Input,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Failure> {
        let session = self.session;
        let head = head(kind, &mut input)?;
        let reading = logs::reading(kind, head, self.program, self.image, false, session)?;
        let timed = has_time(kind, head, &session.config);
        let told = Known {
            modes: reading.modes,
            cycles: timed,
        };
        self.need_time(timed)?;
        let report = RefCell::new(report);
        let take = |snapshot: &Snapshot| report.borrow_mut().snapshot(snapshot);
        let sampler = self.sampler(reading.isa, told, take)?;
        let which = (self.args.hart, false);
        let check = || report.borrow_mut().check();
        let copied = logs::copy(reading, input, sampler, which, session, check)?;
        let sampler = copied.chosen.inner();
        let causeless = copied.chosen.fit().causeless > 0;
        if sampler.has_traps() && !copied.traps && !causeless {
            session.talk.warning(&records::guessed_traps(session.path));
        }
        self.tell_restarts(sampler.restarts());
        logs::judged(copied, Some("an exception"), session).map(drop)
    }

    /// Where steps were missing, which shortens the snapshots.
    fn tell_restarts(&self, restarts: u64) {
        if restarts > 0 {
            let times = count(restarts, "time");
            let name = self.session.path.display();
            let why = "steps are missing, or the hart was reset";
            let text = format!("{name}: recording restarted {times}: {why}");
            self.session.talk.summary(&text);
        }
    }

    fn trace(&self, trace: Trace, isa: Isa, report: &mut Report<'_, '_>) -> Result<(), Failure> {
        self.need_time(trace.settings.has_time())?;
        // Traces have the time of some messages, not of each jump.
        let told = Known {
            modes: trace.settings.has_modes(),
            cycles: false,
        };
        let Some(image) = self.image else {
            return Err(no_program().into());
        };
        let report = RefCell::new(report);
        let take = |snapshot: &Snapshot| report.borrow_mut().snapshot(snapshot);
        let mut sampler = self.sampler(isa, told, take)?;
        let mut replay = Replay::new(image, &mut sampler)
            .keep_unplaced()
            .spread_times();
        let mut timed = Interpolate::new(image, &mut replay);
        let mut progress = self.session.progress(&trace.input);
        let only = self.args.hart.map(HartId);
        let decoded = trace.decode(image, only, &mut timed, |_, done| {
            progress.reach(done);
            report.borrow_mut().check()
        })?;
        drop(progress);
        let (_, spread) = timed.finish();
        let kinds = replay.assumed().kinds;
        replay.finish();
        report.borrow_mut().check()?;
        self.need_time(sampler.has_time() || decoded.instructions == 0)?;
        if spread.insns > 0 && matches!(self.args.every, Some(Every::Cycles(_))) {
            let talk = self.session.talk;
            talk.warning(&records::interpolated(self.session.path, &spread));
        }
        self.tell_restarts(sampler.restarts());
        self.session.judge(&decoded, self.args.hart)?;
        let Session { path, strict, .. } = *self.session;
        self.session
            .talk
            .report(records::judge_kinds(path, kinds, strict))
    }
}
