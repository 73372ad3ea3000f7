//! Writes the tandem traces of several harts to one file.

use super::checker::Checker;
use super::write::TandemWriter;
use super::{Put, Settings, SettingsError, Written};
use hartrace_flow::{
    Checked, Difference, Effects, HartId, Image, Observer, Step, Straights, Unreported, Wants,
};
use hartrace_tandem as tandem;

/// A stream for each hart that appears.
pub(super) struct Harts<'a> {
    config: tandem::Config,
    /// The program, if the traces are to be decoded at once.
    check: Option<&'a Image>,
    /// Another thread decodes them.
    beside: bool,
    /// What takes the stream of a hart.
    open: Box<dyn FnMut(HartId) -> Put<'a> + 'a>,
    /// What is in memory before the first step.
    load: Vec<(u64, Vec<u8>)>,
    writers: Vec<(HartId, TandemWriter<'a, Put<'a>>)>,
    /// Ends the container they are in, and gives its size.
    end: Option<Box<dyn FnMut() -> u64 + 'a>>,
    container: Option<u64>,
    /// The one whose turn it is.
    current: usize,
}

impl<'a> Harts<'a> {
    /// Settings that contradict each other are refused.
    pub(super) fn new(
        config: &tandem::Config,
        (check, beside): (Option<&'a Image>, bool),
        load: Vec<(u64, Vec<u8>)>,
        open: impl FnMut(HartId) -> Put<'a> + 'a,
    ) -> Result<Harts<'a>, SettingsError> {
        config.validate()?;
        Ok(Harts {
            config: config.clone(),
            check,
            beside,
            open: Box::new(open),
            load,
            writers: Vec::new(),
            end: None,
            container: None,
            current: 0,
        })
    }

    /// The streams are in a container, which `end` ends.
    pub(super) fn inside(mut self, end: impl FnMut() -> u64 + 'a) -> Harts<'a> {
        self.end = Some(Box::new(end));
        self
    }

    /// What was written; after [`Observer::finish`].
    pub(super) fn written(self) -> Written {
        let none = Written {
            blocks: 0,
            passed: None,
            instructions: 0,
            messages: 0,
            bytes: 0,
            overflows: 0,
            lost: 0,
            meter: None,
            check: self.check.map(|_| Ok(Checked::default())),
            container: self.container,
            absent: self.unreported().names(),
            code: None,
        };
        let each = self.writers.into_iter().map(|(_, writer)| writer.written());
        each.fold(none, |all, one| Written {
            passed: None,
            instructions: all.instructions + one.instructions,
            messages: all.messages + one.messages,
            bytes: all.bytes + one.bytes,
            check: all.check.zip(one.check).map(|(a, b)| both(a, b)),
            ..all
        })
    }

    /// What the steps of no hart reported.
    fn unreported(&self) -> tandem::Elements {
        let mut all = tandem::Elements::default();
        for (_, writer) in &self.writers {
            for name in writer.unreported().names() {
                // They come from such a list.
                let _ = all.add(&name);
            }
        }
        all
    }

    /// The writer of a hart; there is one, since the settings have been validated.
    #[inline]
    fn writer(&mut self, hart: HartId) -> Option<&mut TandemWriter<'a, Put<'a>>> {
        let current = self.writers.get(self.current);
        if current.is_none_or(|(id, _)| *id != hart) {
            self.enter(hart).ok()?;
        }
        let (_, writer) = self.writers.get_mut(self.current)?;
        Some(writer)
    }

    /// Makes the writer of a hart the current one; the first gets what is loaded.
    #[cold]
    fn enter(&mut self, hart: HartId) -> Result<(), SettingsError> {
        if let Some(at) = self.writers.iter().position(|(id, _)| *id == hart) {
            self.current = at;
            return Ok(());
        }
        let mut writer = TandemWriter::new(self.config.clone(), (self.open)(hart))?;
        if let Some(image) = self.check {
            let settings = Settings::Tandem(Box::new(self.config.clone()));
            let all = Unreported::default();
            let checker = Checker::new((&settings, hart), all, image, self.beside)?;
            writer = writer.checking(checker);
        }
        for (addr, bytes) in std::mem::take(&mut self.load) {
            writer.load(addr, &bytes);
        }
        self.current = self.writers.len();
        self.writers.push((hart, writer));
        Ok(())
    }
}

type Check = Result<Checked, Box<Difference>>;

fn both(a: Check, b: Check) -> Check {
    let (a, b) = (a?, b?);
    Ok(Checked {
        insns: a.insns + b.insns,
        traps: a.traps + b.traps,
        accesses: a.accesses + b.accesses,
        lost: a.lost + b.lost,
    })
}

impl Observer for Harts<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        if let Some(writer) = self.writer(hart) {
            writer.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        if let Some(writer) = self.writer(hart) {
            writer.straights(hart, code);
        }
    }

    fn finish(&mut self) {
        for (_, writer) in &mut self.writers {
            writer.finish();
        }
        self.container = self.end.as_mut().map(|end| end());
    }
}
