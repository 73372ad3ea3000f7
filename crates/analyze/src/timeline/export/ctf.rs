//! CTF 2, the Common Trace Format: a folder with a metadata file and streams of events.
//!
//! Each hart has a stream of what slices tell: calls and returns, traps, threads, gaps.
//! The privilege mode and the context come from elsewhere (a [`Recorder`]) and are in a
//! second stream, if they are reported; readers put streams together by time.

mod metadata;
mod stream;

use super::signals::{CONTEXT, PRIVILEGE, Recorder};
use super::{Arrow, Beginning, Category, Counter, FileTrack, SliceWriter, Timescale};
use hartrace_flow::{Cause, HartId, Mode, PerHart};
use hartrace_wave::leb128;
use metadata::EventClass;
use std::io::{self, Write};
use stream::{Payload, Stream};

/// Makes the files of the folder, by name.
type NewFile<'w> = &'w mut dyn FnMut(&str) -> io::Result<Box<dyn Write + 'w>>;

/// Writes the folder: a [`SliceWriter`].
pub struct Ctf<'w> {
    new_file: NewFile<'w>,
    timescale: Option<Timescale>,
    recorder: Recorder,
    tracks: Vec<CtfTrack>,
    harts: PerHart<CtfHart<'w>>,
}

struct CtfTrack {
    hart: HartId,
    name: String,
    thread: Option<u32>,
    /// Whether each open slice is a trap.
    open: Vec<bool>,
}

#[derive(Default)]
struct CtfHart<'w> {
    stream: Option<Stream<'w>>,
    running: Option<u32>,
}

impl<'w> Ctf<'w> {
    /// Writes files that `new_file` makes; `timescale` is the length of a unit on the
    /// axis, if that is time and it is known.
    #[must_use]
    pub fn new(
        new_file: NewFile<'w>,
        recorder: &Recorder,
        timescale: Option<Timescale>,
    ) -> Ctf<'w> {
        Ctf {
            new_file,
            timescale,
            recorder: recorder.clone(),
            tracks: Vec::new(),
            harts: PerHart::default(),
        }
    }

    fn ticks(&self, at: u64) -> u64 {
        self.timescale.map_or(at, |scale| scale.ticks(at).1)
    }

    /// Writes an event of a hart.
    fn event(
        &mut self,
        hart: HartId,
        at: u64,
        (class, payload): (EventClass, Payload<'_>),
    ) -> io::Result<()> {
        let at = self.ticks(at);
        let of = self.harts.of(hart);
        let stream = match &mut of.stream {
            Some(stream) => stream,
            empty => {
                let file = (self.new_file)(&format!("hart{}", hart.0))?;
                empty.insert(Stream::new(file, hart, 0))
            }
        };
        stream.event(at, class, payload)
    }

    /// Whether a hart runs this track.
    fn is_running(&mut self, hart: HartId, track: u32) -> bool {
        self.harts.of(hart).running == Some(track)
    }

    /// Writes the modes and contexts of all harts.
    fn write_states(&mut self) -> io::Result<()> {
        let recorder = self.recorder.clone();
        let mut recorded = recorder.get();
        if let Some(error) = recorded.error.take() {
            return Err(error);
        }
        for (hart, spool) in recorded.spools.iter_mut() {
            let mut changes = spool.read()?;
            let mut stream = None;
            while let Some(change) = changes.peek() {
                let stream = match &mut stream {
                    Some(stream) => stream,
                    empty => {
                        let file = (self.new_file)(&format!("hart{}-state", hart.0))?;
                        empty.insert(Stream::new(file, hart, 1))
                    }
                };
                let at = self.ticks(change.at);
                let value = change.value.unwrap_or(0);
                match change.signal {
                    PRIVILEGE => {
                        let code = u8::try_from(value).ok();
                        let name = code.and_then(Mode::from_code).map_or("", Mode::name);
                        let payload = |out: &mut Vec<u8>| stream::text(out, name);
                        stream.event(at, EventClass::Privilege, &payload)?;
                    }
                    CONTEXT => {
                        let payload = |out: &mut Vec<u8>| leb128::unsigned(out, value);
                        stream.event(at, EventClass::Context, &payload)?;
                    }
                    _ => {}
                }
                changes.advance()?;
            }
            if let Some(mut stream) = stream {
                stream.finish()?;
            }
        }
        Ok(())
    }
}

impl SliceWriter for Ctf<'_> {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        self.tracks.push(CtfTrack {
            hart: track.hart,
            name: track.name.to_owned(),
            thread: track.thread.map(|(number, _)| number),
            open: Vec::new(),
        });
        Ok(())
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let Some(track) = self.tracks.get_mut(slice.track as usize) else {
            return Ok(());
        };
        let (hart, name) = (track.hart, slice.name.1);
        let class = match (slice.category, slice.cause) {
            (Category::Gap, _) => EventClass::Gap,
            (_, Some(Cause::Interrupt(_))) => EventClass::Interrupt,
            (_, Some(Cause::Exception(_))) => EventClass::Exception,
            (Category::Trap, _) => EventClass::Trap,
            _ => EventClass::Call,
        };
        if class != EventClass::Gap {
            track.open.push(slice.category == Category::Trap);
            // What a thread has open that waits for ever is not written, nor its end.
            if !self.is_running(hart, slice.track) {
                return Ok(());
            }
        }
        let code = match slice.cause {
            Some(Cause::Interrupt(code) | Cause::Exception(code)) => code,
            _ => None,
        };
        let latency = slice.latency.map(|time| self.ticks(time));
        let latency = latency.map_or(-1, |time| i64::try_from(time).unwrap_or(i64::MAX));
        let payload = |out: &mut Vec<u8>| {
            stream::text(out, name);
            match class {
                EventClass::Call => leb128::unsigned(out, slice.address.unwrap_or(0)),
                EventClass::Interrupt | EventClass::Exception => {
                    leb128::signed(out, code.map_or(-1, i64::from));
                }
                _ => {}
            }
            if class == EventClass::Interrupt {
                leb128::signed(out, latency);
            }
        };
        self.event(hart, slice.at, (class, &payload))
    }

    fn end(&mut self, track: u32, at: u64, _: Arrow) -> io::Result<()> {
        let Some(of) = self.tracks.get_mut(track as usize) else {
            return Ok(());
        };
        let hart = of.hart;
        let class = match (of.thread, of.open.pop()) {
            (None, _) => EventClass::GapEnd,
            (_, Some(true)) => EventClass::TrapReturn,
            _ => EventClass::Return,
        };
        if class != EventClass::GapEnd && !self.is_running(hart, track) {
            return Ok(());
        }
        self.event(hart, at, (class, &|_| {}))
    }

    fn shows_away(&self) -> bool {
        false
    }

    fn runs(&mut self, track: u32, at: u64) -> io::Result<()> {
        let Some(of) = self.tracks.get(track as usize) else {
            return Ok(());
        };
        let (hart, thread, name) = (of.hart, of.thread, of.name.clone());
        self.harts.of(hart).running = Some(track);
        let payload = |out: &mut Vec<u8>| {
            leb128::unsigned(out, thread.unwrap_or(0).into());
            stream::text(out, &name);
        };
        self.event(hart, at, (EventClass::Thread, &payload))
    }

    fn counter(&mut self, _: &Counter<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        for (_, hart) in self.harts.iter_mut() {
            if let Some(stream) = &mut hart.stream {
                stream.finish()?;
            }
        }
        self.write_states()?;
        let frequency = self
            .timescale
            .map_or(1_000_000_000, |scale| scale.ticks(0).0);
        let mut file = (self.new_file)("metadata")?;
        file.write_all(&metadata::metadata(frequency))?;
        file.flush()
    }
}
