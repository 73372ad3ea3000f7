//! What was decoded, and what is to be said of it.

use super::Text;
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::talk::Talk;
use hartrace_capture::detect::{HEAD, detect};
use hartrace_capture::input::{self, Input};
use hartrace_capture::shard::Part;
use hartrace_capture::trace::{Format, likely_cause};
use hartrace_flow::{Consumer, Event, Gap, HartId, Run, boot};
use std::ops::ControlFlow;
use std::path::Path;

/// Gaps that are told one by one.
const TOLD: usize = 5;

/// Passes on events, and counts.
pub(crate) struct Watch<C> {
    pub(crate) inner: C,
    only: Option<HartId>,
    pub(crate) report: Report,
}

/// What was decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The hart that was asked for.
    only: Option<HartId>,
    pub(crate) instructions: u64,
    pub(crate) traps: u64,
    pub(crate) gaps: u64,
    /// Harts that appeared, in their order.
    pub(crate) harts: Vec<HartId>,
    first: Vec<Gap>,
}

impl<C> Watch<C> {
    pub(crate) fn new(inner: C, only: Option<u32>) -> Watch<C> {
        let only = only.map(HartId);
        let report = Report {
            only,
            ..Report::default()
        };
        Watch {
            inner,
            only,
            report,
        }
    }

    #[inline]
    fn skips(&mut self, hart: HartId) -> bool {
        if self.report.harts.last() != Some(&hart) {
            self.report.appeared(hart);
        }
        self.only.is_some_and(|only| only != hart)
    }

    /// Takes in what another counted right behind this one.
    pub(crate) fn take<D>(&mut self, part: &mut Watch<D>) {
        let only = self.only;
        let part = std::mem::replace(
            &mut part.report,
            Report {
                only,
                ..Report::default()
            },
        );
        let report = &mut self.report;
        report.instructions += part.instructions;
        report.traps += part.traps;
        report.gaps += part.gaps;
        for hart in part.harts {
            report.appeared(hart);
        }
        let room = TOLD - report.first.len();
        report.first.extend(part.first.into_iter().take(room));
    }
}

/// Text that is gathered by a part before it has to wait for its turn.
const FULL: usize = 16 << 20;

impl<C: Text + Send> Part for Watch<C> {
    fn is_full(&self) -> bool {
        self.inner.size() > FULL
    }
}

impl Report {
    #[cold]
    fn appeared(&mut self, hart: HartId) {
        if let Err(at) = self.harts.binary_search(&hart) {
            self.harts.insert(at, hart);
        }
    }

    /// Nothing could be decoded, and why, probably.
    fn nothing(&self, path: &Path) -> Diagnostic {
        let name = input::name(path);
        let message = format!("nothing of {name} could be decoded");
        let diagnostic = Diagnostic::new(Code::NotSynchronised, message);
        let codes = || self.first.iter().map(|gap| gap.reason.code);
        if let Some((other, section)) = codes().next().and_then(|code| other_format(path, code)) {
            return diagnostic
                .note(format!("it looks like {other}"))
                .help(format!("give its settings in section [{section}]: -c FILE"));
        }
        if codes().any(|code| code == "ET0206") {
            return diagnostic
                .note("the encoder was in a mode that is refused: see the gaps above")
                .help("trace without that mode; or is it another order of ioptions in [etrace]?");
        }
        diagnostic
            .note("no full address was found, or none that is in the program")
            .note("a short piece may have none; an encoder that synchronises more often sends more")
            .help("is it the right program, and are these the settings of the encoder?")
    }

    /// Tells the gaps, and what they mean for the command.
    pub(crate) fn judge(&self, path: &Path, strict: bool, talk: &Talk) -> Result<(), Failure> {
        let name = input::name(path);
        for gap in &self.first {
            talk.warning(&gap_diagnostic(&name, gap));
        }
        let more = self.gaps - self.first.len() as u64;
        let missing = self.only.filter(|only| !self.harts.contains(only));
        if let Some(only) = missing.filter(|_| !self.harts.is_empty()) {
            let list: Vec<String> = self.harts.iter().map(|h| h.0.to_string()).collect();
            let message = format!("{name} has nothing of hart {}", only.0);
            return Err(Diagnostic::new(Code::WhichHart, message)
                .note(format!("it has these: {}", list.join(", ")))
                .help("choose one that is there with --hart N")
                .into());
        }
        if self.instructions == 0 {
            return Err(self.nothing(path).into());
        }
        let message = format!("{name} has {}", count(self.gaps, "gap"));
        let diagnostic = Diagnostic::new(Code::Gaps, message);
        match self.gaps {
            0 => Ok(()),
            _ if strict => Err(diagnostic
                .help("leave out --strict to let them pass")
                .into()),
            _ if more > 0 => {
                talk.warning(&diagnostic.note(format!("{more} of them are not told here")));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl<C: Consumer> Consumer for Watch<C> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        match event {
            Event::Run(run) => self.report.instructions += u64::from(run.insns),
            Event::Trap(_) => self.report.traps += 1,
            Event::Gap(gap) => {
                self.report.gaps += 1;
                if self.report.first.len() < TOLD {
                    self.report.first.push(*gap);
                }
            }
            _ => {}
        }
        self.inner.event(hart, event)
    }

    #[inline]
    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        if self.skips(hart) {
            return ControlFlow::Continue(());
        }
        let insns = runs.iter().map(|run| u64::from(run.insns));
        self.report.instructions += insns.sum::<u64>();
        self.inner.runs(hart, runs)
    }
}

/// Takes everything and writes nothing.
#[derive(Default)]
pub(crate) struct Nothing(Vec<u8>);

impl Text for Nothing {
    fn text(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    fn size(&self) -> usize {
        0
    }

    fn flush(&mut self) {}
}

impl Consumer for Nothing {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn runs(&mut self, _: HartId, _: &[Run]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// What a file looks like that was read as something else, and the section with
/// its settings; `code` is of a gap in it.
fn other_format(path: &Path, code: &str) -> Option<(Format, &'static str)> {
    if input::is_stdin(path) {
        return None; // it has been read
    }
    let mut input = Input::open(path).ok()?;
    let looks = Format::from_kind(detect(input.peek(HEAD).ok()?))?;
    let was = Format::from_fault(code);
    (Some(looks) != was).then_some((looks, looks.name()))
}

fn gap_diagnostic(name: &str, gap: &Gap) -> Diagnostic {
    let reason = gap.reason;
    let message = format!(
        "{name}, byte {:#x}: {} ({:#x})",
        gap.at, reason.text, reason.value
    );
    let mut diagnostic = Diagnostic::new(Code::Gaps, message).named(reason.code);
    if gap.bytes > 0 {
        diagnostic = diagnostic.note(format!("{} could not be used", count(gap.bytes, "byte")));
    }
    if gap.unconfirmed > 0 {
        let insns = count(gap.unconfirmed, "instruction");
        diagnostic = diagnostic.note(format!("nothing confirms the last {insns} before it"));
    }
    let boot = boot::RANGE;
    if matches!(reason.code, "NT0302" | "ET0301") && boot.contains(&reason.value) {
        let text = "Spike's boot code: machine = \"spike\" in [hart] of a configuration tells it";
        return diagnostic.note(text);
    }
    match likely_cause(reason.code) {
        Some(text) => diagnostic.note(text),
        None => diagnostic,
    }
}
