//! The JSON array of Chrome's trace event format: what older viewers read.
//!
//! A hart is a process, a track a thread. Times are microseconds there; one unit of time
//! of unknown length, or one instruction, is written as one.

use super::{Arrow, Beginning, Counter, FileTrack, SliceWriter, Timescale};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the array.
pub struct Chrome<'w> {
    out: Box<dyn Write + 'w>,
    timescale: Option<Timescale>,
    /// The hart of each track.
    harts: Vec<u32>,
    is_first: bool,
    line: String,
}

impl<'w> Chrome<'w> {
    /// Writes to `out`, with units of this length.
    #[must_use]
    pub fn new(out: Box<dyn Write + 'w>, timescale: Option<Timescale>) -> Chrome<'w> {
        Chrome {
            out,
            timescale,
            harts: Vec::new(),
            is_first: true,
            line: String::new(),
        }
    }

    /// Writes the event in `line`.
    fn send(&mut self) -> io::Result<()> {
        let before = if self.is_first { "[\n" } else { ",\n" };
        self.is_first = false;
        self.out.write_all(before.as_bytes())?;
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }

    fn hart(&self, track: u32) -> u32 {
        self.harts.get(track as usize).copied().unwrap_or(0)
    }

    /// A place on the axis, and the rest of the event.
    fn time(&mut self, at: u64, rest: &str) {
        let _ = match self.timescale {
            None => write!(self.line, r#","ts":{at}{rest}"#),
            Some(scale) => {
                let at = scale.nanoseconds(at);
                let (whole, rest_of) = (at / 1000, at % 1000);
                write!(self.line, r#","ts":{whole}.{rest_of:03}{rest}"#)
            }
        };
    }

    /// A length of time, in nanoseconds if that is known.
    fn length(&self, time: u64) -> u64 {
        self.timescale.map_or(time, |scale| scale.nanoseconds(time))
    }

    /// The start or the end of an arrow, inside the slice that is open there.
    fn flow(&mut self, (track, at): (u32, u64), arrow: Arrow) -> io::Result<()> {
        let (phase, flow) = match arrow {
            Arrow::None => return Ok(()),
            Arrow::From(flow) => (r#""ph":"s""#, flow),
            Arrow::To(flow) => (r#""ph":"f","bp":"e""#, flow),
        };
        let hart = self.hart(track);
        let _ = write!(
            self.line,
            r#"{{{phase},"name":"trap","cat":"trap","id":{flow},"pid":{hart},"tid":{track}"#
        );
        self.time(at, "}");
        self.send()
    }

    /// A text in quotes.
    fn quote(&mut self, text: &str) {
        self.line.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.line.extend(['\\', c]),
                // Writing to memory does not fail, here and below.
                c if c.is_control() => drop(write!(self.line, "\\u{:04x}", u32::from(c))),
                c => self.line.push(c),
            }
        }
        self.line.push('"');
    }

    /// A name of a process or a thread.
    fn describe(&mut self, what: &str, (hart, track): (u32, u32), name: &str) -> io::Result<()> {
        let _ = write!(
            self.line,
            r#"{{"ph":"M","name":"{what}","pid":{hart},"tid":{track},"args":{{"name":"#
        );
        self.quote(name);
        self.line.push_str("}}");
        self.send()
    }
}

impl SliceWriter for Chrome<'_> {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        let hart = track.hart.0;
        if !self.harts.contains(&hart) {
            self.describe("process_name", (hart, track.id), &format!("hart {hart}"))?;
        }
        self.harts.push(hart);
        self.describe("thread_name", (hart, track.id), track.name)
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let (hart, track) = (self.hart(slice.track), slice.track);
        self.line.push_str(r#"{"ph":"B","name":"#);
        self.quote(slice.name.1);
        let category = slice.category.name();
        let _ = write!(
            self.line,
            r#","cat":"{category}","pid":{hart},"tid":{track}"#
        );
        match slice.latency {
            None => self.time(slice.at, "}"),
            Some(latency) => {
                let latency = self.length(latency);
                self.time(slice.at, &format!(r#","args":{{"latency":{latency}}}}}"#));
            }
        }
        self.send()?;
        self.flow((track, slice.at), slice.arrow)
    }

    fn end(&mut self, track: u32, at: u64, arrow: Arrow) -> io::Result<()> {
        self.flow((track, at), arrow)?;
        let hart = self.hart(track);
        let _ = write!(self.line, r#"{{"ph":"E","pid":{hart},"tid":{track}"#);
        self.time(at, "}");
        self.send()
    }

    fn resumed(&mut self, track: u32, at: u64, arrow: u64) -> io::Result<()> {
        // Viewers draw the arrow to this event; without it, to the trap that ends here.
        let hart = self.hart(track);
        let _ = write!(
            self.line,
            r#"{{"ph":"i","s":"t","name":"resumed","cat":"trap","pid":{hart},"tid":{track}"#
        );
        self.time(at, "}");
        self.send()?;
        self.flow((track, at), Arrow::To(arrow))
    }

    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()> {
        let hart = counter.hart.map_or(0, |hart| hart.0);
        for (at, value) in counter.values {
            self.line.push_str(r#"{"ph":"C","name":"#);
            self.quote(counter.name);
            let _ = write!(self.line, r#","pid":{hart}"#);
            self.time(*at, &format!(r#","args":{{"value":{value}}}}}"#));
            self.send()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let end: &[u8] = if self.is_first { b"[]\n" } else { b"\n]\n" };
        self.out.write_all(end)?;
        self.out.flush()
    }
}
