//! What harts do as signals of a waveform, to be laid beside one of a simulation.
//!
//! Slices give the function, the trap and the thread; the rest is in a [`Recorder`].

use super::signals::{CONTEXT, PC, PRIVILEGE, Recorder};
use super::spool::{Change, Changes, Spool};
use super::{Arrow, Beginning, Category, Counter, FileTrack, SliceWriter, Timescale};
use crate::stacks::Measure;
use hartrace_flow::order;
use hartrace_flow::{Cause, HartId, Mode, PerHart};
use hartrace_wave::fst::{Kind, Scope, Sections, Start, Written, write_start};
use std::io::{self, Write};

/// The signals of a hart, after those of the recorder.
const FUNCTION: u32 = 3;
const TRAP: u32 = 4;
const CAUSE: u32 = 5;
const THREAD: u32 = 6;
const DEPTH: u32 = 7;
const GAP: u32 = 8;
const GAPS: u32 = 9;
const SIGNALS: u32 = 10;

/// Changes in a section of the file, about.
const SECTION: u64 = 1 << 18;

/// Writes FST waveforms: a [`SliceWriter`]. All is put aside first, since the changes of
/// all harts have to be in order of time.
pub struct Waves<'w> {
    out: Box<dyn Write + 'w>,
    axis: Measure,
    timescale: Option<Timescale>,
    /// Bits of a register.
    xlen: u32,
    recorder: Recorder,
    tracks: Vec<WaveTrack>,
    harts: PerHart<WaveHart>,
    /// Names of functions and traps.
    texts: Vec<String>,
}

/// What is open on a track.
struct WaveTrack {
    hart: HartId,
    thread: Option<u32>,
    open: Vec<WaveSlice>,
}

/// An open slice, with what there is to show while it is the innermost: stacks are deep.
#[derive(Clone, Copy, Default)]
struct WaveSlice {
    /// The name of the function, if it is a call.
    function: Option<u32>,
    /// The innermost trap: its name and its cause.
    trap: Option<(u32, Option<Cause>)>,
    /// Calls, this one included.
    depth: u64,
}

#[derive(Default)]
struct WaveHart {
    spool: Spool,
    running: Option<u32>,
    /// The values given last, by number of the signal.
    last: [Option<u64>; SIGNALS as usize],
    gaps: u64,
}

impl<'w> Waves<'w> {
    /// Writes to `out`, for harts with registers of `xlen` bits.
    #[must_use]
    pub fn new(
        out: Box<dyn Write + 'w>,
        recorder: &Recorder,
        (axis, timescale): (Measure, Option<Timescale>),
        xlen: u32,
    ) -> Waves<'w> {
        Waves {
            out,
            axis,
            timescale,
            xlen,
            recorder: recorder.clone(),
            tracks: Vec::new(),
            harts: PerHart::default(),
            texts: Vec::new(),
        }
    }

    fn push(&mut self, hart: HartId, at: u64, values: &[(u32, Option<u64>)]) -> io::Result<()> {
        let of = self.harts.of(hart);
        for &(signal, value) in values {
            let Some(last) = of.last.get_mut(signal as usize).filter(|v| **v != value) else {
                continue;
            };
            *last = value;
            let change = Change { at, signal, value };
            of.spool.push(change, &mut self.recorder.get().scratch)?;
        }
        Ok(())
    }

    /// Gives the values of a track if it is the one that runs.
    fn show(&mut self, id: u32, at: u64) -> io::Result<()> {
        // Before the first timestamp nothing can be placed.
        if self.axis == Measure::Time && at == 0 {
            return Ok(());
        }
        let Some(track) = self.tracks.get(id as usize) else {
            return Ok(());
        };
        let hart = track.hart;
        if self.harts.of(hart).running != Some(id) {
            return Ok(());
        }
        let top = track.open.last().copied().unwrap_or_default();
        let high = 1u64 << (self.xlen - 1);
        let cause = top.trap.and_then(|(_, cause)| match cause? {
            Cause::Interrupt(code) => Some(high | u64::from(code?)),
            Cause::Exception(code) => Some(u64::from(code?)),
            Cause::Unknown => None,
        });
        let values = [
            (FUNCTION, top.function.map(u64::from)),
            (TRAP, top.trap.map(|(name, _)| name.into())),
            (CAUSE, cause),
            (THREAD, track.thread.map(u64::from)),
            (DEPTH, Some(top.depth)),
        ];
        if self.harts.of(hart).gaps == 0 {
            self.push(hart, at, &[(GAP, Some(0)), (GAPS, Some(0))])?;
        }
        self.push(hart, at, &values)
    }

    /// Writes the file.
    fn write(&mut self) -> io::Result<()> {
        let recorder = self.recorder.clone();
        let mut recorded = recorder.get();
        if let Some(error) = recorded.error.take() {
            return Err(error);
        }
        let mut ids: Vec<HartId> = self.harts.iter().map(|(id, _)| id).collect();
        order::sort_by_key(&mut ids, |id| id.0);
        let scopes: Vec<Scope> = ids.iter().map(|id| scope(*id, self.xlen)).collect();
        let (times, exponent) = match self.timescale.filter(|_| self.axis == Measure::Time) {
            Some(scale) => scale.decimal(),
            None => (1, -9),
        };
        let (mut of_events, mut of_slices) = (Vec::new(), Vec::new());
        for &id in &ids {
            of_events.push(std::mem::take(recorded.spools.of(id)));
            of_slices.push(std::mem::take(&mut self.harts.of(id).spool));
        }
        let survey = Survey::of(&mut Merged::new(&mut of_events, &mut of_slices)?)?;
        let header = Start {
            begin: survey.begin.saturating_mul(times),
            end: survey.end.saturating_mul(times),
            exponent,
            sections: survey.sections,
        };
        write_start(&mut *self.out, &header, &scopes)?;
        let mut sections = Sections::new(&scopes, header.begin);
        let mut merged = Merged::new(&mut of_events, &mut of_slices)?;
        let mut cuts = Cuts::default();
        let mut pending: Vec<Change> = Vec::new();
        while let Some(change) = merged.next()? {
            let is_later = pending.first().is_some_and(|first| first.at < change.at);
            if is_later {
                self.settle(&mut pending, times, &mut sections);
            }
            if cuts.cuts(change.at) {
                sections.write(&mut *self.out)?;
            }
            match pending.iter_mut().find(|p| p.signal == change.signal) {
                Some(earlier) => *earlier = change,
                None => pending.push(change),
            }
        }
        self.settle(&mut pending, times, &mut sections);
        sections.write(&mut *self.out)?;
        self.out.flush()
    }

    /// Writes the changes at one time: of each signal the last, if it makes a difference.
    fn settle(&self, pending: &mut Vec<Change>, times: u64, sections: &mut Sections) {
        for change in pending.drain(..) {
            let text = |text: Option<&'static str>| Written::Text(text.unwrap_or(""));
            let number = change.value;
            let value = match (change.signal % SIGNALS, number) {
                (PRIVILEGE, number) => {
                    let code = number.and_then(|code| u8::try_from(code).ok());
                    text(code.and_then(Mode::from_code).map(Mode::name))
                }
                (FUNCTION | TRAP, number) => {
                    let name = number.and_then(|n| self.texts.get(n as usize));
                    Written::Text(name.map_or("", String::as_str))
                }
                (_, Some(number)) => Written::Bits(number),
                (_, None) => Written::Unknown,
            };
            if sections.differs(change.signal as usize, value) {
                sections.time(change.at.saturating_mul(times));
                sections.change(change.signal as usize, value);
            }
        }
    }
}

/// The signals of a hart.
fn scope(hart: HartId, xlen: u32) -> Scope {
    let bits = |signal| match signal {
        PRIVILEGE => ("privilege", Kind::Text),
        CONTEXT => ("context", Kind::Bits(64)),
        FUNCTION => ("function", Kind::Text),
        TRAP => ("trap", Kind::Text),
        CAUSE => ("cause", Kind::Bits(xlen)),
        THREAD => ("thread", Kind::Bits(32)),
        DEPTH => ("depth", Kind::Bits(32)),
        GAP => ("gap", Kind::Bits(1)),
        GAPS => ("gaps", Kind::Bits(32)),
        _ => ("pc", Kind::Bits(xlen)),
    };
    Scope {
        name: format!("hart{}", hart.0),
        signals: (PC..SIGNALS).map(bits).collect(),
    }
}

/// Where sections end: at the first new time after so many changes.
#[derive(Default)]
struct Cuts {
    count: u64,
    last: u64,
}

impl Cuts {
    /// Whether the section ends before a change at this time.
    fn cuts(&mut self, at: u64) -> bool {
        let is_cut = self.count >= SECTION && at > self.last;
        self.count = if is_cut { 1 } else { self.count + 1 };
        self.last = at;
        is_cut
    }
}

/// What has to be known before a file is written.
struct Survey {
    begin: u64,
    end: u64,
    sections: u64,
}

impl Survey {
    fn of(merged: &mut Merged<'_>) -> io::Result<Survey> {
        let mut cuts = Cuts::default();
        let mut survey = Survey {
            begin: 0,
            end: 0,
            sections: 1,
        };
        let mut is_first = true;
        while let Some(change) = merged.next()? {
            if is_first {
                survey.begin = change.at;
                is_first = false;
            }
            survey.end = change.at;
            survey.sections += u64::from(cuts.cuts(change.at));
        }
        Ok(survey)
    }
}

/// The changes of all harts in order of time.
struct Merged<'a> {
    /// The number of the first signal of the hart, and its changes.
    streams: Vec<(u32, Changes<'a>)>,
}

impl<'a> Merged<'a> {
    fn new(of_events: &'a mut [Spool], of_slices: &'a mut [Spool]) -> io::Result<Merged<'a>> {
        let mut streams = Vec::new();
        for spools in [of_events, of_slices] {
            for (hart, spool) in (0..).zip(spools) {
                streams.push((hart * SIGNALS, spool.read()?));
            }
        }
        Ok(Merged { streams })
    }

    fn next(&mut self) -> io::Result<Option<Change>> {
        let first = self.streams.iter_mut();
        let first = first.filter(|(_, changes)| changes.peek().is_some());
        let at = |changes: &Changes<'_>| changes.peek().map(|change| change.at);
        let Some((base, changes)) = first.min_by_key(|(_, changes)| at(changes)) else {
            return Ok(None);
        };
        let change = changes.peek();
        changes.advance()?;
        Ok(change.map(|change| Change {
            signal: *base + change.signal,
            ..change
        }))
    }
}

impl SliceWriter for Waves<'_> {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        self.tracks.push(WaveTrack {
            hart: track.hart,
            thread: track.thread.map(|(number, _)| number),
            open: Vec::new(),
        });
        // A hart of which nothing is known but its name has signals, too.
        self.harts.of(track.hart);
        Ok(())
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let Some(track) = self.tracks.get_mut(slice.track as usize) else {
            return Ok(());
        };
        if slice.category == Category::Gap {
            let hart = track.hart;
            let of = self.harts.of(hart);
            of.gaps += 1;
            let gaps = Some(of.gaps);
            return self.push(hart, slice.at, &[(GAP, Some(1)), (GAPS, gaps)]);
        }
        let (number, name) = slice.name;
        if number as usize >= self.texts.len() {
            self.texts.resize(number as usize + 1, String::new());
        }
        if let Some(text) = self.texts.get_mut(number as usize).filter(|t| t.is_empty()) {
            name.clone_into(text);
        }
        let mut inner = track.open.last().copied().unwrap_or_default();
        match slice.category {
            Category::Trap => {
                inner.function = None;
                inner.trap = Some((number, slice.cause));
            }
            _ => {
                inner.function = Some(number);
                inner.depth += 1;
            }
        }
        track.open.push(inner);
        self.show(slice.track, slice.at)
    }

    fn end(&mut self, track: u32, at: u64, _: Arrow) -> io::Result<()> {
        let Some(of) = self.tracks.get_mut(track as usize) else {
            return Ok(());
        };
        if of.thread.is_none() {
            let hart = of.hart;
            return self.push(hart, at, &[(GAP, Some(0))]);
        }
        of.open.pop();
        self.show(track, at)
    }

    fn shows_away(&self) -> bool {
        false
    }

    fn runs(&mut self, track: u32, at: u64) -> io::Result<()> {
        if let Some(of) = self.tracks.get(track as usize) {
            self.harts.of(of.hart).running = Some(track);
        }
        self.show(track, at)
    }

    fn counter(&mut self, _: &Counter<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write()
    }
}
