//! Profiles for speedscope, in its own file format: for each thread, where functions begin
//! and end.

use super::Shown;
use super::folded::what_name;
use super::threads::{frame_line, thread_name};
use hartrace_analyze::{NodeId, PathSequence, PathThread, What};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Writes a profile of each thread. Positions are costs of the thread alone, so that what
/// speedscope adds up are the costs of a profile. What a trap interrupts ends before it
/// and begins again after it, for the same reason.
///
/// # Errors
///
/// A failing write.
pub fn speedscope(
    shown: &Shown<'_>,
    sequence: &PathSequence,
    name: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut writer = Writer {
        shown,
        frames: HashMap::new(),
        list: Vec::new(),
        out,
    };
    let version = concat!("hartrace ", env!("CARGO_PKG_VERSION"));
    write!(
        writer.out,
        "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"{version}\",\"name\":"
    )?;
    serde_json::to_writer(&mut *writer.out, name)?;
    write!(writer.out, ",\"activeProfileIndex\":0,\"profiles\":[")?;
    for (at, thread) in sequence.threads().enumerate() {
        let separator = if at > 0 { ",\n" } else { "\n" };
        write!(writer.out, "{separator}{{\"type\":\"evented\",\"name\":")?;
        serde_json::to_writer(&mut *writer.out, &thread_name(thread, sequence, shown))?;
        writer.events(thread)?;
    }
    write!(writer.out, "\n],\"shared\":{{\"frames\":[")?;
    writer.frames()?;
    writeln!(writer.out, "]}}}}")
}

struct Writer<'w, 'a> {
    shown: &'w Shown<'a>,
    /// Numbers of functions and traps.
    frames: HashMap<What, usize>,
    list: Vec<What>,
    out: &'w mut dyn Write,
}

impl Writer<'_, '_> {
    /// The call path of a node, outermost first.
    fn path(&mut self, node: NodeId, path: &mut Vec<usize>) {
        path.clear();
        let tree = &self.shown.profile.tree;
        let mut at = node;
        while let Some(node) = tree.node(at).filter(|_| at != NodeId::ROOT) {
            if matches!(node.what, What::Function(_) | What::Trap(_)) {
                path.push(self.frame(node.what));
            }
            at = node.parent;
        }
        if path.is_empty() {
            path.push(self.frame(What::Unknown));
        }
        path.reverse();
    }

    fn frame(&mut self, what: What) -> usize {
        *self.frames.entry(what).or_insert_with(|| {
            self.list.push(what);
            self.list.len() - 1
        })
    }

    fn events(&mut self, thread: &PathThread) -> io::Result<()> {
        let by = self.shown.by;
        // Speedscope has no name for units of its own.
        write!(self.out, ",\"unit\":\"none\",\"startValue\":0,\"events\":[")?;
        let (mut open, mut path) = (Vec::new(), Vec::new());
        let (mut now, mut separator) = (0u64, "");
        let mut event = |out: &mut dyn Write, kind: char, frame: usize, at: u64| {
            let result = write!(
                out,
                "{separator}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}"
            );
            separator = ",";
            result
        };
        let mut before = None;
        for visit in &thread.visits {
            if before != Some(visit.node) {
                self.path(visit.node, &mut path);
                let same = open.iter().zip(&path).take_while(|(a, b)| a == b).count();
                for frame in open.drain(same..).rev() {
                    event(self.out, 'C', frame, now)?;
                }
                for frame in path.iter().skip(same) {
                    event(self.out, 'O', *frame, now)?;
                    open.push(*frame);
                }
            }
            before = Some(visit.node);
            now += visit.cost.of(by);
        }
        for frame in open.drain(..).rev() {
            event(self.out, 'C', frame, now)?;
        }
        write!(self.out, "],\"endValue\":{now}}}")
    }

    fn frames(&mut self) -> io::Result<()> {
        let functions = &self.shown.profile.functions;
        for (at, what) in self.list.iter().enumerate() {
            let name = what_name(*what, functions);
            let place = frame_line(*what, self.shown);
            let frame = Frame {
                name: &name,
                file: place.map(|line| line.file),
                line: place.map(|line| line.line),
            };
            self.out.write_all(if at > 0 { b",\n" } else { b"\n" })?;
            serde_json::to_writer(&mut *self.out, &frame)?;
        }
        Ok(())
    }
}
