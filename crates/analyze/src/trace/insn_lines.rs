//! The line of an instruction, and the source lines between.

use super::{Heading, Look, Render};
use crate::names::NamesIn;
use crate::places::{LineRanges, Places, PlacesIn};
use hartrace_flow::{Exit, Fetched, Image, Run, SpaceId};
use hartrace_isa::{Resolve, Style, Xlen, decode};
use rustc_hash::FxHashMap;
use std::fmt;
use std::io::Write as _;

/// The text of a source line, by file and number.
pub(super) type SourceLine<'a> = &'a dyn Fn(&str, u32) -> Option<String>;

/// Depths of calls that are told apart.
pub(super) const DEEPEST: u8 = 20;

/// Spaces for each call.
const STEP: usize = 2;

/// Columns of an instruction.
const WIDTH: usize = 32;

impl Resolve for NamesIn<'_> {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        write!(f, "{address:x}")?;
        match self.lookup(address) {
            None => Ok(()),
            Some(_) => write!(f, " <{}>", self.label(address)),
        }
    }
}

/// An instruction as listings show it, with the names of the addresses it has.
#[must_use]
pub fn instruction_text(pc: u64, insn: &Fetched, names: NamesIn<'_>) -> String {
    let inst = decode(insn.bits, insn.isa);
    let style = Style::new(insn.isa);
    let text = inst.text(pc, &style).resolve(&names).to_string();
    let (mnemonic, operands) = text.split_once('\t').unwrap_or((&text, ""));
    match operands {
        "" => mnemonic.to_owned(),
        operands => format!("{mnemonic:<7} {operands}"),
    }
}

/// Escape sequences, or nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Palette {
    pub(super) name: &'static str,
    pub(super) note: &'static str,
    pub(super) source: &'static str,
    pub(super) event: &'static str,
    pub(super) alarm: &'static str,
    pub(super) plain: &'static str,
}

impl Palette {
    pub(super) const fn new(colour: bool) -> Palette {
        match colour {
            true => Palette {
                name: "\x1b[36m",
                note: "\x1b[33m",
                source: "\x1b[32m",
                event: "\x1b[1m",
                alarm: "\x1b[1;31m",
                plain: "\x1b[0m",
            },
            false => Palette {
                name: "",
                note: "",
                source: "",
                event: "",
                alarm: "",
                plain: "",
            },
        }
    }
}

/// Writes the instructions of runs.
pub(super) struct InsnLines<'a> {
    pub(super) places: &'a Places<'a>,
    pub(super) palette: Palette,
    /// Where source text is, if it is wanted.
    pub(super) source: Option<SourceLine<'a>>,
    /// Source lines with the functions that were inlined there, numbered from 1.
    headings: FxHashMap<String, u32>,
    heading: Heading,
}

impl<'a> InsnLines<'a> {
    pub(super) fn new(
        places: &'a Places<'a>,
        colour: bool,
        source: Option<SourceLine<'a>>,
    ) -> InsnLines<'a> {
        InsnLines {
            places,
            palette: Palette::new(colour),
            source,
            headings: FxHashMap::default(),
            heading: Heading::default(),
        }
    }

    /// The number of the source line at an address, and its text; 0 for none.
    fn source_at(
        &mut self,
        pc: u64,
        places: &PlacesIn<'_, '_>,
        ranges: &LineRanges<'_>,
    ) -> (u32, String) {
        let Some(line) = ranges.at(pc) else {
            return (0, String::new());
        };
        let Palette { source, plain, .. } = self.palette;
        let mut text = format!("{source}; {}:{}", short(line.file), line.line);
        let mut frames = places.frames(pc).into_iter();
        if let Some(inner) = frames.next() {
            text += &format!(" {}", inner.function);
            let mut at = inner.call;
            for outer in frames {
                text += &format!(", inlined into {}", outer.function);
                if let Some((file, number)) = at {
                    text += &format!(" at {}:{number}", short(&file));
                }
                at = outer.call;
            }
        }
        text += &format!("{plain}\n");
        let code = self.source.and_then(|source| source(line.file, line.line));
        if let Some(code) = code.filter(|code| !code.trim().is_empty()) {
            text += &format!("{source};   {}{plain}\n", code.trim_end());
        }
        let next = self.headings.len() as u32 + 1;
        (*self.headings.entry(text.clone()).or_insert(next), text)
    }

    fn line(
        &self,
        (pc, insn): (u64, &Fetched),
        names: NamesIn<'_>,
        (depth, note): (u8, &str),
        out: &mut Vec<u8>,
    ) {
        let digits = match insn.isa.xlen() {
            Xlen::Rv32 => 8,
            Xlen::Rv64 => 16,
        };
        let indent = usize::from(depth) * STEP;
        let text = instruction_text(pc, insn, names);
        let bits = match insn.len {
            2 => format!("{:04x}", insn.bits),
            _ => format!("{:08x}", insn.bits),
        };
        let Palette { name, plain, .. } = self.palette;
        // Writing to memory does not fail.
        let _ = write!(out, "{pc:0digits$x}  {bits:<8}  {:indent$}{text}", "");
        let label = names.label(pc).to_string();
        if !label.is_empty() || !note.is_empty() {
            let fill = WIDTH.saturating_sub(indent + text.len()) + 2;
            let _ = write!(out, "{:fill$}{name}{label}{plain}", "");
        }
        if !note.is_empty() {
            let gap = if label.is_empty() { "" } else { "  " };
            let _ = write!(out, "{gap}{}{note}{plain}", self.palette.note);
        }
        out.push(b'\n');
    }

    /// What the last instruction of a run did.
    fn note(look: Look, names: NamesIn<'_>) -> String {
        match (look.rest >> 8) as u8 {
            exit if exit == Exit::Taken as u8 => "[taken]".to_owned(),
            exit if exit == Exit::NotTaken as u8 => "[not taken]".to_owned(),
            _ if look.next == 0 => String::new(),
            _ => match names.label(look.next).to_string().as_str() {
                "" => format!("[to {:x}]", look.next),
                label => format!("[to {:x} <{label}>]", look.next),
            },
        }
    }
}

impl Render for InsnLines<'_> {
    #[inline]
    fn look(&self, run: &Run, depth: u8) -> Look {
        let indirect = run.exit.is_indirect();
        Look {
            next: if indirect { run.next } else { 0 },
            rest: (run.exit as u16) << 8 | u16::from(depth),
        }
    }

    fn lines(&mut self, image: &Image, space: SpaceId, run: &Run, look: Look, out: &mut Vec<u8>) {
        let places = self.places.within(image, space);
        let names = places.names();
        let ranges = match self.source {
            Some(_) => places.line_ranges(run.start, run.end),
            None => LineRanges::default(),
        };
        self.heading = Heading::default();
        let from = out.len();
        let mut last = 0;
        // Up to where the source line is known to be the same.
        let mut until = run.start;
        let insns = image.insns(space, run.start, u64::from(run.insns));
        for ((pc, insn), n) in insns.zip(1..) {
            if self.source.is_some() && (pc >= until || n == 1) {
                let (number, text) = self.source_at(pc, &places, &ranges);
                if number != last {
                    out.extend_from_slice(text.as_bytes());
                }
                if n == 1 {
                    self.heading.first = number;
                    self.heading.bytes = (out.len() - from) as u32;
                }
                last = number;
                until = ranges.end_of(pc);
            }
            let note = match n == run.insns {
                true => Self::note(look, names),
                false => String::new(),
            };
            self.line((pc, &insn), names, (look.rest as u8, &note), out);
        }
        self.heading.last = last;
    }

    fn heading(&self) -> Heading {
        self.heading
    }
}

/// The name of a file without its folders.
fn short(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
