//! Where snapshots come from: dumps, and the steps of logs and traces.

use super::report::Report;
use crate::args::Ctr;
use crate::diagnostic::{Code, Diagnostic, Failure, count, is_json_log, unknown_format};
use crate::logs::{self, Verdict, which_hart};
use crate::progress::Progress;
use crate::records;
use crate::settings::{self, Program};
use crate::talk::Talk;
use crate::traces::{Loaded, Settings, Watch, no_program};
use hartrace_capture::detect::{HEAD, Kind, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::log::{
    Chosen, Damage, LineCount, LogOptions, LogReader, ingress_layout, tells_modes,
};
use hartrace_capture::records::{Form, RecordSummary, SnapshotError, SnapshotReader};
use hartrace_capture::trace::{self, Transport};
use hartrace_ctr::{Control, Every, Sampler, Snapshot, SnapshotSink, Told, Version};
use hartrace_flow::{HartId, Image, Replay};
use hartrace_isa::Isa;
use std::cell::RefCell;
use std::path::Path;

/// A file, and the program it is of.
pub(super) struct Opened {
    pub(super) program: Program,
    pub(super) image: Option<Image>,
    pub(super) content: Content,
}

/// What is in a file.
pub(super) enum Content {
    Dump(Form, Input),
    Log(Kind, Input),
    Trace(Box<trace::Settings>, Isa, Input),
}

impl Opened {
    pub(super) fn open(path: &Path, args: &Ctr, talk: &Talk) -> Result<Opened, Failure> {
        let mut input = Input::open(path)?;
        let kind = detect(input.peek(HEAD)?);
        // Samples of pins may look like anything.
        let bare = args.transport.get() == Transport::default();
        let content = match kind {
            Kind::CtrDump if bare => Content::Dump(Form::Binary, input),
            Kind::CtrJson if bare => Content::Dump(Form::Json, input),
            Kind::SpikeLog | Kind::PcList | Kind::IngressCsv | Kind::SpikeCsv if bare => {
                Content::Log(kind, input)
            }
            Kind::Unknown if bare && is_json_log(input.peek(HEAD)?) => {
                return Err(unknown_format(path, kind, input.peek(HEAD)?, "ctr").into());
            }
            _ => return Opened::trace(path, input, args, talk),
        };
        let (config, sidecar) = settings::resolve_beside(path, &args.program, talk)?;
        let program = settings::load(config, talk)?;
        if let Some(sidecar) = &sidecar {
            program.check_against(sidecar)?;
        }
        Ok(Opened {
            image: program.image()?,
            program,
            content,
        })
    }

    fn trace(path: &Path, input: Input, args: &Ctr, talk: &Talk) -> Result<Opened, Failure> {
        let settings = Settings::resolve(path, &args.program, talk)?;
        let input = settings.accept(input, &args.transport, "ctr")?;
        let Loaded {
            program,
            isa,
            image,
            settings,
            input,
        } = settings.with_program(input, args.strict, talk)?;
        Ok(Opened {
            program,
            image: Some(image),
            content: Content::Trace(Box::new(settings), isa, input),
        })
    }
}

impl Content {
    /// Gives all snapshots to the report; the version of the first of a dump.
    pub(super) fn read(
        self,
        program: &Program,
        image: Option<&Image>,
        args: &Ctr,
        talk: &Talk,
        report: &mut Report<'_, '_>,
    ) -> Result<Option<Version>, Failure> {
        let version = program.config.ctr.version.as_ref().map(|v| v.value);
        let job = Job {
            program,
            image,
            args,
            talk,
        };
        match self {
            Content::Dump(form, input) => return job.dump(form, input, report),
            Content::Log(kind, input) => job.log(kind, input, report)?,
            Content::Trace(settings, isa, input) => job.trace(&settings, isa, input, report)?,
        }
        Ok(version)
    }
}

struct Job<'a> {
    program: &'a Program,
    image: Option<&'a Image>,
    args: &'a Ctr,
    talk: &'a Talk,
}

impl Job<'_> {
    fn dump(
        &self,
        form: Form,
        input: Input,
        report: &mut Report<'_, '_>,
    ) -> Result<Option<Version>, Failure> {
        let path = input.path().to_path_buf();
        let mut reader = SnapshotReader::new(form);
        let mut summary = RecordSummary::default();
        let mut progress = Progress::new(self.talk, input.size());
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
        if let Some(diagnostic) = records::judge(&path, &summary, self.args.strict) {
            return Err(diagnostic.into());
        }
        if summary.errors > 0 {
            self.talk.warning(&records::damaged(&path, &summary));
        }
        if summary.snapshots == 0 {
            let message = format!("{} has no snapshots", input::name(&path));
            let diagnostic = Diagnostic::new(Code::NoSnapshots, message);
            self.talk
                .warning(&diagnostic.note("it is whole: whoever wrote it ended before the first"));
        }
        let missing = only.is_some_and(|only| !summary.harts.contains(&HartId(only)));
        let harts: Vec<HartId> = summary.harts.iter().copied().collect();
        which_hart(&path, &harts, missing && !harts.is_empty())?;
        Ok(summary.first.map(|(version, _)| version))
    }

    /// Records as a hart set by `[ctr]` would have them, of a source that tells
    /// so much.
    fn sampler<S: SnapshotSink>(
        &self,
        path: &Path,
        isa: Isa,
        told: Told,
        sink: S,
    ) -> Result<Sampler<S>, Failure> {
        let ctr = self.program.config.ctr.recorder(isa.xlen())?;
        let name = input::name(path);
        if !told.modes && !ctr.control().has(Control::MODES) {
            let message = format!("{name} does not tell modes, and [ctr] records some only");
            let modes = ctr.control().and(Control::MODES);
            self.talk.warning(
                &Diagnostic::new(Code::Assumed, message)
                    .note(format!("these are enabled: {modes}; all are recorded")),
            );
        }
        Ok(Sampler::new(ctr, isa, self.args.every, told, sink))
    }

    /// Snapshots by cycles need a time.
    fn need_time(&self, path: &Path, told: bool) -> Result<(), Failure> {
        if told || !matches!(self.args.every, Some(Every::Cycles(_))) {
            return Ok(());
        }
        let message = format!("{} does not tell any time", input::name(path));
        Err(Diagnostic::new(Code::UnfitRecords, message)
            .help("take snapshots by instructions: --every N")
            .into())
    }

    fn log(
        &self,
        kind: Kind,
        mut input: Input,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Failure> {
        let path = input.path().to_path_buf();
        let head = input.peek(HEAD)?;
        let not_readable = |error| logs::not_readable(&path, head, error);
        let bare = LogOptions {
            image: self.image,
            ..LogOptions::default()
        };
        // Refused before anything is guessed about it.
        LogReader::new(kind, &bare).map_err(not_readable)?;
        let options = logs::options(kind, head, self.program, self.image, self.talk);
        let mut reader = LogReader::new(kind, &options).map_err(not_readable)?;
        let timed = kind == Kind::IngressCsv && ingress_layout(head).0.is_some_and(|c| c.time);
        let told = Told {
            modes: tells_modes(kind, &options, head),
            cycles: timed,
        };
        self.need_time(&path, timed)?;
        let isa = options.isa.unwrap_or(Isa::RV64GC);
        let report = RefCell::new(report);
        let take = |snapshot: &Snapshot| report.borrow_mut().snapshot(snapshot);
        let sampler = self.sampler(&path, isa, told, take)?;
        let mut chosen = Chosen::new(sampler, self.args.hart.map(HartId), false);
        let (mut damage, mut lines) = (Damage::default(), LineCount::default());
        let mut progress = Progress::new(self.talk, input.size());
        input.chunks(|chunk| {
            reader.feed(chunk, &mut chosen, &mut |error| damage.add(error));
            lines.feed(chunk);
            progress.advance(chunk.len());
            report.borrow_mut().check()
        })?;
        reader.finish(&mut chosen, &mut |error| damage.add(error));
        drop(progress);
        report.borrow_mut().check()?;
        let nothing = chosen.harts().is_empty();
        if !nothing || damage.lines == 0 {
            which_hart(&path, chosen.harts(), chosen.missing())?;
        }
        let strict = self.args.strict;
        let fit = chosen.fit();
        let sampler = chosen.into_inner();
        if sampler.has_traps() && !reader.tells_traps() {
            self.talk.warning(&guessed_traps(&path));
        }
        self.tell_restarts(&path, sampler.restarts());
        self.tell(logs::judge_fit(&path, fit, strict))?;
        self.tell(logs::judge(&path, &damage, lines.count(), nothing, strict))
    }

    /// Where steps were missing, which shortens what stands in snapshots.
    fn tell_restarts(&self, path: &Path, restarts: u64) {
        if restarts > 0 {
            let times = count(restarts, "time");
            let name = path.display();
            let why = "steps are missing, or the hart was reset";
            let text = format!("{name}: records started anew {times}: {why}");
            self.talk.summary(&text);
        }
    }

    fn tell(&self, verdict: Verdict) -> Result<(), Failure> {
        match verdict {
            Verdict::Error(diagnostic) => return Err(diagnostic.into()),
            Verdict::Warning(diagnostic) => self.talk.warning(&diagnostic),
            Verdict::Clean => {}
        }
        Ok(())
    }

    fn trace(
        &self,
        settings: &trace::Settings,
        isa: Isa,
        input: Input,
        report: &mut Report<'_, '_>,
    ) -> Result<(), Failure> {
        let path = input.path().to_path_buf();
        self.need_time(&path, settings.tells_time())?;
        // Traces tell the time now and then, not that of each jump.
        let told = Told {
            modes: settings.tells_modes(),
            cycles: false,
        };
        let Some(image) = self.image else {
            return Err(no_program());
        };
        let report = RefCell::new(report);
        let take = |snapshot: &Snapshot| report.borrow_mut().snapshot(snapshot);
        let replay = Replay::new(image, self.sampler(&path, isa, told, take)?).keep_unplaced();
        let mut watch = Watch::new(replay, self.args.hart);
        let mut progress = Progress::new(self.talk, input.size());
        trace::decode(input, settings, image, &mut watch, |_, used| {
            progress.advance(used);
            report.borrow_mut().check()
        })?;
        drop(progress);
        let Watch {
            inner,
            report: decoded,
            ..
        } = watch;
        let sampler = inner.finish();
        report.borrow_mut().check()?;
        self.need_time(&path, sampler.has_time() || decoded.instructions == 0)?;
        self.tell_restarts(&path, sampler.restarts());
        decoded.judge(&path, self.args.strict, self.talk)
    }
}

/// Traps that stand in no line.
fn guessed_traps(path: &Path) -> Diagnostic {
    let message = format!("{} does not tell traps", input::name(path));
    Diagnostic::new(Code::Assumed, message)
        .note("they are guessed from where the hart went: some may be recorded as jumps, or as exceptions though they are interrupts")
        .help("use a log that tells them, such as that of `spike -l --log-commits`, or a trace")
}
