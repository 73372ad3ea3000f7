//! A log as a source of events, to be read several times.

use super::{Copied, LogError, LogGuess, LogSource, Reading, has_time, head, recognise_boot};
use crate::detect::{HEAD, Kind};
use crate::digest::Digest;
use crate::input::{Input, InputError};
use crate::program::Program;
use crate::trace::{Decoded, Watch};
use hartrace_flow::{Consumer, Event, HartId, Image, Kept, Run, StepEvents, TiedRuns, erase};
use hartrace_isa::Isa;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A log, which is opened again each time it is read: memory does not grow with it.
#[derive(Clone, Debug)]
pub struct LogFile {
    path: PathBuf,
    kind: Kind,
    isa: Isa,
    size: u64,
    has_time: bool,
}

/// Why a log cannot be read.
#[derive(Debug)]
pub enum LogFileError {
    /// A failing read.
    Input(InputError),
    /// It is not read as steps.
    Log(LogError),
}

impl From<InputError> for LogFileError {
    fn from(error: InputError) -> LogFileError {
        LogFileError::Input(error)
    }
}

impl From<LogError> for LogFileError {
    fn from(error: LogError) -> LogFileError {
        LogFileError::Log(error)
    }
}

impl LogFile {
    /// A log of this kind, of a program. If it starts in Spike's boot code, the image gets that
    /// code. `guessed` gets every guess about how it is read.
    ///
    /// # Errors
    ///
    /// A failing read, and a log that cannot be read by its settings.
    pub fn open(
        path: &Path,
        kind: Kind,
        program: &mut Program,
        image: &mut Image,
        guessed: &mut dyn FnMut(LogGuess),
    ) -> Result<LogFile, LogFileError> {
        let mut input = Input::open(path)?;
        let size = input.size().unwrap_or(0);
        let has_time = has_time(kind, input.peek(HEAD)?, &program.config);
        let head = head(kind, &mut input)?;
        recognise_boot(kind, head, program, Some(image));
        let reading = Reading::new(kind, head, program, Some(image), false, guessed)?;
        Ok(LogFile {
            path: path.to_path_buf(),
            kind,
            isa: program.isa.unwrap_or(reading.isa),
            size,
            has_time,
        })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The instruction set of its steps.
    #[must_use]
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// Its size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether it has times.
    #[must_use]
    pub const fn has_time(&self) -> bool {
        self.has_time
    }

    /// A digest of its size and of samples of its bytes.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn fingerprint(&self) -> Result<Digest, InputError> {
        let contents = Input::open(&self.path)?.contents(u64::MAX)?;
        Ok(Digest::of_samples(&contents))
    }

    /// Gives the events of the hart `only`, or of all, to `out`, until it breaks. Lines that
    /// cannot be read are gaps. Now and then `after` gets the number of bytes that are done. What
    /// else is known of the log comes with what was counted; of a part there is nothing.
    ///
    /// # Errors
    ///
    /// A failing read.
    pub fn events(
        &self,
        (program, image): (&Program, &Image),
        only: Option<HartId>,
        out: &mut dyn Consumer,
        after: &mut dyn FnMut(u64),
    ) -> Result<(Decoded, Option<Copied<()>>), LogFileError> {
        let mut input = Input::open(&self.path)?;
        let head = head(self.kind, &mut input)?;
        // Guesses were reported when it was opened.
        let reading = Reading::new(self.kind, head, program, Some(image), false, &mut |_| {})?;
        let ended = Cell::new(false);
        let mut watch = Watch::new(out, only);
        let mut events = StepEvents::new(
            self.isa,
            UntilBreak {
                out: &mut watch,
                ended: &ended,
            },
        );
        let mut overseer = |_: &[HartId], _: bool, done: u64| {
            after(done);
            match ended.get() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        // The harts are told apart by what counts the events.
        let log = LogSource::new(reading.reader, input, (None, false), &mut overseer);
        let copied = erase::run(log, &mut events)?;
        drop(events);
        let whole = (!ended.get()).then_some(copied);
        Ok((watch.decoded, whole))
    }
}

/// Notes that a consumer breaks, and gives it nothing more.
struct UntilBreak<'o, C> {
    out: &'o mut C,
    ended: &'o Cell<bool>,
}

impl<C> UntilBreak<'_, C> {
    #[inline]
    fn give(&mut self, give: impl FnOnce(&mut C) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.ended.get() {
            return ControlFlow::Break(());
        }
        let flow = give(self.out);
        self.ended.set(flow.is_break());
        flow
    }
}

impl<C: Consumer> Consumer for UntilBreak<'_, C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        self.give(|out| out.event(hart, event))
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        self.give(|out| out.runs(hart, runs))
    }

    fn kept_runs(&mut self, hart: HartId, kept: Kept, runs: &[Run]) -> ControlFlow<()> {
        self.give(|out| out.kept_runs(hart, kept, runs))
    }

    fn tied_runs(&mut self, hart: HartId, tied: &TiedRuns<'_>) -> ControlFlow<()> {
        self.give(|out| out.tied_runs(hart, tied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    struct Counting {
        insns: u64,
        gaps: u64,
        most: u64,
    }

    impl Consumer for Counting {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            match event {
                Event::Run(run) => self.insns += u64::from(run.insns),
                Event::Gap(_) => self.gaps += 1,
                _ => {}
            }
            match self.insns >= self.most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    /// A log is read as often as it is asked for; damage is a gap; a break ends it.
    #[test]
    fn a_log_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.log");
        let line = |pc: u64| format!("core   0: 3 {pc:#018x} (0x00000013)\n");
        let lines: Vec<String> = (0..1000).map(|n| line(0x8000_0000 + 4 * n)).collect();
        let (first, second) = lines.split_at(500);
        let text = format!(
            "{}core   0: 3 nonsense\n{}",
            first.concat(),
            second.concat()
        );
        std::fs::write(&path, &text).unwrap();
        let mut program = Program::load(Config::defaults(), &mut |_| {}).unwrap();
        let mut image = Image::new();
        let mut guess = |_| panic!("nothing to guess");
        let log = LogFile::open(&path, Kind::SpikeLog, &mut program, &mut image, &mut guess);
        let log = log.unwrap();
        assert_eq!(log.size(), text.len() as u64);
        let read = |most| {
            let (insns, gaps) = (0, 0);
            let mut count = Counting { insns, gaps, most };
            let events = log.events((&program, &image), None, &mut count, &mut |_| ());
            let (decoded, whole) = events.unwrap();
            assert_eq!(
                (decoded.instructions, decoded.gaps),
                (count.insns, count.gaps)
            );
            (count.insns, count.gaps, whole.map(|log| log.damage.lines))
        };
        assert_eq!(read(u64::MAX), (1000, 1, Some(1)));
        assert_eq!(read(u64::MAX), (1000, 1, Some(1)));
        let (insns, gaps, whole) = read(1);
        assert!(insns <= 1024 && gaps == 0 && whole.is_none(), "{insns}");
        assert!(log.fingerprint().is_ok());
    }
}
