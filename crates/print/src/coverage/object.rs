//! Coverage as JSON lines.

use super::Covered;
use crate::json::{self, Hex};
use hartrace_analyze::Share;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Part {
    hit: u64,
    all: u64,
}

impl From<Share> for Part {
    fn from(share: Share) -> Part {
        Part {
            hit: share.hit,
            all: share.all,
        }
    }
}

#[derive(Serialize)]
struct Header<'a> {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    instructions: Part,
    branches: Part,
    lines: Part,
    functions: Part,
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    name: &'a str,
    address: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    count: u64,
    instructions: Part,
    branches: Part,
}

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    file: &'a str,
    line: u32,
    count: u64,
    instructions: Part,
}

#[derive(Serialize)]
struct Branch {
    r#type: &'static str,
    pc: Hex,
    not_taken: u64,
    taken: u64,
}

/// A header with the sums, then functions, lines and branches.
///
/// # Errors
///
/// A failing write.
pub fn json(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    let all = covered.coverage.shares();
    let header = Header {
        r#type: "header",
        schema: "hartrace-coverage",
        version: 1,
        context: covered.group.and_then(|g| g.context).map(|c| c.0),
        name: covered.group.and_then(|group| group.name),
        instructions: all.insns.into(),
        branches: all.branches.into(),
        lines: all.lines.into(),
        functions: all.functions.into(),
    };
    json::line(&header, out)?;
    for function in &covered.coverage.functions {
        let found = covered.functions.get(function.function);
        let line = covered.places.line(found.start);
        let object = Function {
            r#type: "function",
            name: &found.name,
            address: Hex(found.start),
            file: line.map(|line| line.file),
            line: line.map(|line| line.line),
            count: function.count,
            instructions: function.insns.into(),
            branches: function.branches.into(),
        };
        json::line(&object, out)?;
    }
    for (file, lines) in &covered.coverage.files {
        for (&line, coverage) in lines {
            let object = Line {
                r#type: "line",
                file,
                line,
                count: coverage.count,
                instructions: coverage.insns.into(),
            };
            json::line(&object, out)?;
        }
    }
    for (&pc, branch) in &covered.coverage.branches {
        let object = Branch {
            r#type: "branch",
            pc: Hex(pc),
            not_taken: branch.not_taken,
            taken: branch.taken,
        };
        json::line(&object, out)?;
    }
    Ok(())
}
