//! The control transfer records of a run.

use super::files;
use crate::args::Run;
use crate::failure::Failure;
use crate::files::inputs;
use crate::settings::Elf;
use crate::sink::Sink;
use crate::talk::Talk;
use crate::trace_file::TraceFile;
use hartrace_capture::config::Config;
use hartrace_capture::records::{
    Ctr, Every, RecordWriter, RecordsWritten, Snapshot, SnapshotSink as _, Version, sidecar,
};
use hartrace_flow::HartId;
use hartrace_hart::Machine;
use hartrace_isa::{Isa, Xlen};
use hartrace_print::summary::records_written;
use std::path::PathBuf;

/// The files that are asked for.
pub(super) struct Recorded {
    files: Vec<TraceFile>,
}

impl Recorded {
    pub(super) fn new(args: &Run, config: &Config) -> Result<Recorded, Failure> {
        let read: Vec<_> = files(args, config).chain(inputs(config)).collect();
        let one = |path| TraceFile::create(path, read.iter().copied(), false);
        let files = args.records().map(one).collect::<Result<_, Failure>>()?;
        Ok(Recorded { files })
    }

    pub(super) fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.files.iter().map(|file| &file.sink)
    }

    fn recordings<'s>(&'s self) -> Vec<Recording<'s>> {
        let one = |sink: &'s Sink| RecordWriter::new(Box::new(|bytes: &[u8]| sink.put(bytes)) as _);
        self.sinks().map(one).collect()
    }

    /// Those of the hart, its own or beside it, if they are wanted.
    pub(super) fn looks(&self, every: Option<Every>) -> Option<Looks<'_>> {
        (!self.files.is_empty()).then(|| Looks {
            every,
            due: every.map(|every| match every {
                Every::Instructions(step) | Every::Cycles(step) => step,
            }),
            recordings: self.recordings(),
            snapshot: Snapshot::default(),
        })
    }

    /// Records to be kept beside the hart, if some are wanted.
    pub(super) fn beside(&self, config: &Config, xlen: Xlen) -> Result<Option<Ctr>, Failure> {
        if self.files.is_empty() {
            return Ok(None);
        }
        Ok(Some(config.ctr.recorder(xlen)?))
    }

    /// Gives the files and their sidecars their names. A reader that went away
    /// has what it wanted.
    pub(super) fn finish(
        self,
        config: &Config,
        elf: &[Elf],
        isa: Isa,
        own: bool,
        tallies: Vec<RecordsWritten>,
    ) -> Result<Finished, Failure> {
        let mut done = Vec::new();
        for (file, tally) in self.files.into_iter().zip(tallies) {
            let path = file.path().to_path_buf();
            let settings = config.ctr.clone();
            // What its own records are set to the program says.
            let settings = match own {
                true => settings.implemented(isa.xlen())?,
                false => settings.completed(isa.xlen())?,
            };
            let version = tally
                .last
                .map_or(Version::default(), |(version, ..)| version);
            let elf = elf.iter().map(|elf| (&elf.file, &*elf.bytes));
            let sidecar = sidecar(&path, version, settings, &config.program, elf);
            match file.close(config, sidecar) {
                Ok(()) | Err(Failure::ClosedPipe) => {}
                Err(failure) => return Err(failure),
            }
            done.push((path, tally));
        }
        Ok(Finished { own, files: done })
    }
}

/// Files that are written.
pub(super) struct Finished {
    own: bool,
    files: Vec<(PathBuf, RecordsWritten)>,
}

impl Finished {
    /// What is in them, and whose records these are.
    pub(super) fn report(&self, talk: &Talk) {
        for (path, tally) in &self.files {
            talk.summary(&records_written(path, self.own, tally));
        }
    }
}

/// Snapshots on their way into a file.
type Recording<'s> = RecordWriter<Box<dyn FnMut(&[u8]) + 's>>;

/// The hart's records, looked at while it stands still.
pub(super) struct Looks<'s> {
    every: Option<Every>,
    /// When the next snapshot is due.
    due: Option<u64>,
    recordings: Vec<Recording<'s>>,
    snapshot: Snapshot,
}

impl Looks<'_> {
    fn now(&self, machine: &Machine) -> u64 {
        match self.every {
            Some(Every::Cycles(_)) => machine.cycles(),
            _ => machine.instructions(),
        }
    }

    /// Instructions the hart may do before anything is due. How many cycles
    /// one takes is not known: most of the way at once, the rest one by one.
    pub(super) fn ahead(&self, machine: &Machine) -> u64 {
        let Some(due) = self.due else { return u64::MAX };
        let left = due.saturating_sub(self.now(machine)).max(1);
        match self.every {
            Some(Every::Cycles(_)) => (left / 64).max(1),
            _ => left,
        }
    }

    /// Takes a snapshot if one is due.
    pub(super) fn look(&mut self, machine: &Machine) {
        let now = self.now(machine);
        let (Some(due), Some(Every::Instructions(step) | Every::Cycles(step))) =
            (self.due, self.every)
        else {
            return;
        };
        if now >= due {
            let missed = (now - due) / step.max(1);
            self.due = Some(due.saturating_add((missed + 1).saturating_mul(step)));
            self.take(machine);
        }
    }

    /// Takes the one at the end.
    pub(super) fn finish(&mut self, machine: &Machine) {
        if self.snapshot.instructions != Some(machine.instructions()) {
            self.take(machine);
        }
    }

    fn take(&mut self, machine: &Machine) {
        let Some(ctr) = machine.ctr() else { return };
        ctr.snapshot_into(&mut self.snapshot);
        self.snapshot.hart = HartId(0);
        self.snapshot.pc = Some(machine.pc());
        self.snapshot.mode = Some(machine.mode());
        self.snapshot.instructions = Some(machine.instructions());
        self.snapshot.cycles = Some(machine.cycles());
        for recording in &mut self.recordings {
            recording.snapshot(&self.snapshot);
        }
    }

    /// No more snapshots; how many there were.
    pub(super) fn tallies(self) -> Vec<RecordsWritten> {
        self.recordings
            .into_iter()
            .map(RecordWriter::done)
            .collect()
    }
}
