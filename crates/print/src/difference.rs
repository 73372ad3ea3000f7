//! Where two runs differ.

use crate::json::{self, Hex};
use crate::profile::SourceLine;
use crate::words::{count, counted};
use hartrace_analyze::{Compared, Divergence, Meeting, Places, instruction_text};
use hartrace_flow::{Image, SpaceId};
use serde::Serialize;
use std::io::{self, Write};

/// One of the two runs.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// Its code.
    pub image: &'a Image,
    /// Names and source lines.
    pub places: &'a Places<'a>,
}

/// What is shown of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// What both have before it.
    Both,
    /// What the first one has alone.
    OnlyA,
    /// What the second one has alone.
    OnlyB,
}

/// Writes a part of a difference, so many elements of it.
type Write1<'w, W> = dyn FnMut(Part, usize, &mut W) -> io::Result<()> + 'w;

/// A place where the runs differ, numbered from 1: what both did before it, what each
/// did alone, and where they meet again.
///
/// # Errors
///
/// A failing write.
pub fn divergence(
    number: u64,
    found: &Divergence,
    runs: &[Run<'_>; 2],
    text: &SourceLine<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let [first, second] = runs;
    let names = [first.name, second.name];
    parts(
        number,
        found,
        (names, "instruction"),
        out,
        &mut |part, count, out| {
            let (list, run) = match part {
                Part::Both => (&found.common, first),
                Part::OnlyA => (&found.then[0], first),
                Part::OnlyB => (&found.then[1], second),
            };
            instructions(list.get(..count).unwrap_or(list), run, text, out)
        },
    )?;
    match found.meeting {
        Meeting::At(pc) => writeln!(out, "  both again from {}", first.places.at(pc)),
        other => apart(other, "instructions", out),
    }
}

/// The same for messages of traces; `text` gives the line of a message, by trace and
/// number.
///
/// # Errors
///
/// A failing write.
pub fn message_divergence(
    number: u64,
    found: &Divergence,
    names: [&str; 2],
    text: &dyn Fn(usize, u64) -> String,
    out: &mut impl Write,
) -> io::Result<()> {
    parts(
        number,
        found,
        (names, "message"),
        out,
        &mut |part, count, out| {
            let (side, at) = match part {
                Part::Both => (0, found.at[0] - count as u64),
                Part::OnlyA => (0, found.at[0]),
                Part::OnlyB => (1, found.at[1]),
            };
            (at..at + count as u64).try_for_each(|n| writeln!(out, "    {}", text(side, n)))
        },
    )?;
    match found.meeting {
        Meeting::At(_) => {
            let from = found.at[0] + found.alone[0];
            writeln!(out, "  both again after message {from} of A")
        }
        other => apart(other, "messages", out),
    }
}

fn apart(meeting: Meeting, units: &str, out: &mut impl Write) -> io::Result<()> {
    match meeting {
        Meeting::End => writeln!(out, "  one of them, or both, end here"),
        _ => writeln!(out, "  they do not meet again in so many {units}"),
    }
}

/// What both have before a difference, and what each has alone.
fn parts<W: Write>(
    number: u64,
    found: &Divergence,
    (names, unit): ([&str; 2], &str),
    out: &mut W,
    write: &mut Write1<'_, W>,
) -> io::Result<()> {
    let [a, b] = found.at;
    writeln!(out, "difference {number}: after {unit} {a} of A, {b} of B")?;
    if !found.common.is_empty() {
        writeln!(out, "  both")?;
        write(Part::Both, found.common.len(), out)?;
    }
    let sides = [(Part::OnlyA, "A"), (Part::OnlyB, "B")].into_iter();
    let counts = found.alone.into_iter().zip(&found.then);
    for (((part, side), name), (alone, then)) in sides.zip(names).zip(counts) {
        let all = match found.meeting {
            Meeting::Apart => format!("more than {}", count(alone, unit)),
            _ => count(alone, unit),
        };
        writeln!(out, "  only {side}, {name}: {all}")?;
        let shown = usize::try_from(alone).map_or(then.len(), |alone| alone.min(then.len()));
        write(part, shown, out)?;
        if alone > shown as u64 {
            writeln!(out, "    ...")?;
        }
    }
    Ok(())
}

fn instructions(
    list: &[u64],
    run: &Run<'_>,
    text: &SourceLine<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut last = None;
    for &pc in list {
        let line = run.places.line(pc);
        if let Some(line) = line.filter(|line| last != Some((line.file, line.line)))
            && let Some(text) = text(line.file, line.line)
        {
            writeln!(out, "    ; {}", text.trim())?;
        }
        last = line.map(|line| (line.file, line.line));
        let insn = run.image.fetch(SpaceId::FIRST, pc);
        let code = insn.map_or("(no code)".to_owned(), |insn| {
            let names = run.places.names().within(run.image, SpaceId::FIRST);
            instruction_text(pc, &insn, names)
        });
        writeln!(out, "    {code:<36}  {}", run.places.at(pc))?;
    }
    Ok(())
}

/// What the comparison came to, on one line; `unit` is what was compared.
///
/// # Errors
///
/// A failing write.
pub fn summary(compared: &Compared, unit: &str, out: &mut impl Write) -> io::Result<()> {
    let common = counted(compared.common, unit);
    match compared.divergences {
        0 => writeln!(out, "no difference: {common}"),
        n => writeln!(out, "{}; {common} in both", count(n, "difference")),
    }
}

#[derive(Serialize)]
struct Header<'a> {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
    a: &'a str,
    b: &'a str,
}

#[derive(Serialize)]
struct Object {
    r#type: &'static str,
    number: u64,
    at_a: u64,
    at_b: u64,
    common: Vec<Hex>,
    a: Vec<Hex>,
    b: Vec<Hex>,
    alone_a: u64,
    alone_b: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    meet: Option<Hex>,
    ended: bool,
}

#[derive(Serialize)]
struct Summary {
    r#type: &'static str,
    common: u64,
    differences: u64,
}

/// The first line of the JSON form.
///
/// # Errors
///
/// A failing write.
pub fn json_header([a, b]: [&str; 2], out: &mut impl Write) -> io::Result<()> {
    let header = Header {
        r#type: "header",
        schema: "hartrace-diff",
        version: 1,
        a,
        b,
    };
    json::line(&header, out)
}

/// A difference as JSON.
///
/// # Errors
///
/// A failing write.
pub fn json_divergence(number: u64, found: &Divergence, out: &mut impl Write) -> io::Result<()> {
    let hex = |list: &[u64]| list.iter().copied().map(Hex).collect();
    let ([at_a, at_b], [alone_a, alone_b]) = (found.at, found.alone);
    let [a, b] = &found.then;
    let object = Object {
        r#type: "difference",
        number,
        at_a,
        at_b,
        common: hex(&found.common),
        a: hex(a),
        b: hex(b),
        alone_a,
        alone_b,
        meet: match found.meeting {
            Meeting::At(pc) => Some(Hex(pc)),
            Meeting::End | Meeting::Apart => None,
        },
        ended: found.meeting == Meeting::End,
    };
    json::line(&object, out)
}

#[derive(Serialize)]
struct MessageObject {
    r#type: &'static str,
    number: u64,
    at_a: u64,
    at_b: u64,
    common: Vec<serde_json::Value>,
    a: Vec<serde_json::Value>,
    b: Vec<serde_json::Value>,
    alone_a: u64,
    alone_b: u64,
    ended: bool,
}

/// A difference between the messages of traces as JSON; `text` gives a message as JSON, by
/// trace and number.
///
/// # Errors
///
/// A failing write.
pub fn json_message_divergence(
    number: u64,
    found: &Divergence,
    text: &dyn Fn(usize, u64) -> String,
    out: &mut impl Write,
) -> io::Result<()> {
    let ([at_a, at_b], [alone_a, alone_b]) = (found.at, found.alone);
    let list = |side: usize, from: u64, count: usize| {
        let all = (from..).take(count).map(|n| text(side, n));
        all.map(|text| serde_json::from_str(&text).unwrap_or_default())
            .collect()
    };
    let [a, b] = &found.then;
    let common = found.common.len();
    let object = MessageObject {
        r#type: "difference",
        number,
        at_a,
        at_b,
        common: list(0, at_a - common as u64, common),
        a: list(0, at_a, a.len()),
        b: list(1, at_b, b.len()),
        alone_a,
        alone_b,
        ended: found.meeting == Meeting::End,
    };
    json::line(&object, out)
}

/// What the comparison came to, as JSON.
///
/// # Errors
///
/// A failing write.
pub fn json_summary(compared: &Compared, out: &mut impl Write) -> io::Result<()> {
    let object = Summary {
        r#type: "summary",
        common: compared.common,
        differences: compared.divergences,
    };
    json::line(&object, out)
}
