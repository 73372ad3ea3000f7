//! The JSON array of Chrome's trace event format: what older viewers read.
//!
//! A hart is a process, a track a thread. Times are microseconds there; one unit of time,
//! or one instruction, is written as one.

use super::{Arrow, Beginning, Counter, SliceWriter};
use hartrace_flow::HartId;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the array.
pub struct Chrome<'w> {
    out: &'w mut dyn Write,
    /// The hart of each track.
    harts: Vec<u32>,
    is_first: bool,
    line: String,
}

impl<'w> Chrome<'w> {
    /// Writes to `out`.
    pub fn new(out: &'w mut dyn Write) -> Chrome<'w> {
        Chrome {
            out,
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
    fn track(&mut self, track: u32, hart: HartId, name: &str) -> io::Result<()> {
        let hart = hart.0;
        if !self.harts.contains(&hart) {
            self.describe("process_name", (hart, track), &format!("hart {hart}"))?;
        }
        self.harts.push(hart);
        self.describe("thread_name", (hart, track), name)
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        let (hart, track, at) = (self.hart(slice.track), slice.track, slice.at);
        self.line.push_str(r#"{"ph":"B","name":"#);
        self.quote(slice.name.1);
        let category = slice.category.name();
        let _ = write!(
            self.line,
            r#","cat":"{category}","pid":{hart},"tid":{track},"ts":{at}}}"#
        );
        self.send()?;
        let (phase, flow) = match slice.arrow {
            Arrow::None => return Ok(()),
            Arrow::From(flow) => (r#""ph":"s""#, flow),
            Arrow::To(flow) => (r#""ph":"f","bp":"e""#, flow),
        };
        let _ = write!(
            self.line,
            r#"{{{phase},"name":"trap","cat":"trap","id":{flow},"pid":{hart},"tid":{track},"ts":{at}}}"#
        );
        self.send()
    }

    fn end(&mut self, track: u32, at: u64) -> io::Result<()> {
        let hart = self.hart(track);
        let _ = write!(
            self.line,
            r#"{{"ph":"E","pid":{hart},"tid":{track},"ts":{at}}}"#
        );
        self.send()
    }

    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()> {
        let hart = counter.hart.map_or(0, |hart| hart.0);
        for (at, value) in counter.values {
            self.line.push_str(r#"{"ph":"C","name":"#);
            self.quote(counter.name);
            let _ = write!(
                self.line,
                r#","pid":{hart},"ts":{at},"args":{{"value":{value}}}}}"#
            );
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
