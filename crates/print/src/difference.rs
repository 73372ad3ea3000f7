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
    let [a, b] = found.at;
    writeln!(
        out,
        "difference {number}: after instruction {a} of A, {b} of B"
    )?;
    let [first, _] = runs;
    if !found.common.is_empty() {
        writeln!(out, "  both")?;
        instructions(&found.common, first, text, out)?;
    }
    for (((side, run), then), alone) in ["A", "B"]
        .iter()
        .zip(runs)
        .zip(&found.then)
        .zip(found.alone)
    {
        let all = match found.meeting {
            Meeting::Apart => format!("more than {}", count(alone, "instruction")),
            _ => count(alone, "instruction"),
        };
        writeln!(out, "  only {side}, {}: {all}", run.name)?;
        let shown = usize::try_from(alone).map_or(then.len(), |alone| alone.min(then.len()));
        instructions(then.get(..shown).unwrap_or_default(), run, text, out)?;
        if alone > shown as u64 {
            writeln!(out, "    ...")?;
        }
    }
    match found.meeting {
        Meeting::At(pc) => writeln!(out, "  both again from {}", first.places.at(pc)),
        Meeting::End => writeln!(out, "  one of them, or both, end here"),
        Meeting::Apart => writeln!(out, "  they do not meet again in so many instructions"),
    }
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

/// What the comparison came to, on one line.
///
/// # Errors
///
/// A failing write.
pub fn summary(compared: &Compared, out: &mut impl Write) -> io::Result<()> {
    let common = counted(compared.common, "instruction");
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
pub fn json_header(runs: &[Run<'_>; 2], out: &mut impl Write) -> io::Result<()> {
    let [a, b] = runs;
    let header = Header {
        r#type: "header",
        schema: "hartrace-diff",
        version: 1,
        a: a.name,
        b: b.name,
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
