//! Profiles as JSON lines.

use super::Shown;
use super::folded::what_name;
use super::table::groups;
use crate::json::{self, Hex, Span};
use hartrace_analyze::{Cost, FunctionCost, Latency, NodeId};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct Header {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
    total: Costs,
}

/// Time is left out where there is none.
#[derive(Serialize)]
struct Costs {
    instructions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
}

#[derive(Serialize)]
struct Place<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    name: &'a str,
    address: Hex,
    #[serde(flatten)]
    place: Place<'a>,
    #[serde(rename = "self")]
    own: Costs,
    total: Costs,
    calls: u64,
}

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    caller: String,
    callee: &'a str,
    calls: u64,
    total: Costs,
}

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    file: &'a str,
    line: u32,
    count: u64,
    #[serde(flatten)]
    own: Costs,
}

#[derive(Serialize)]
struct Insn {
    r#type: &'static str,
    pc: Hex,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
}

#[derive(Serialize)]
struct Loop<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    head: Hex,
    back: Hex,
    entries: u64,
    iterations: u64,
    #[serde(flatten)]
    own: Costs,
}

#[derive(Serialize)]
struct Path {
    r#type: &'static str,
    path: Vec<String>,
    #[serde(rename = "self")]
    own: Costs,
    total: Costs,
    calls: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inferred: bool,
}

#[derive(Serialize)]
struct Measured<'a> {
    r#type: &'static str,
    function: &'a str,
    calls: u64,
    instructions: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Span>,
}

impl Shown<'_> {
    fn costs(&self, cost: Cost) -> Costs {
        Costs {
            instructions: cost.insns,
            time: self.profile.timed.then_some(cost.time),
        }
    }

    fn place(&self, address: u64) -> Place<'_> {
        let line = self.places.line(address);
        Place {
            file: line.map(|line| line.file),
            line: line.map(|line| line.line),
        }
    }

    fn header(&self, schema: &'static str, out: &mut impl Write) -> io::Result<()> {
        let header = Header {
            r#type: "header",
            schema,
            version: 1,
            total: self.costs(self.profile.total()),
        };
        json::line(&header, out)
    }
}

/// The whole profile as JSON lines: functions, calls, lines, loops and instructions;
/// each kind the most expensive first.
///
/// # Errors
///
/// A failing write.
pub fn json(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    shown.header("hartrace-profile", out)?;
    let profile = shown.profile;
    for cost in profile.by_function(shown.by).iter().take(shown.rows()) {
        function(shown, None, cost, out)?;
    }
    for (node, name) in groups(shown) {
        let list = profile.by_function_below(node, shown.by);
        for cost in list.iter().take(shown.rows()) {
            function(shown, Some(&name), cost, out)?;
        }
    }
    for edge in profile.call_edges(shown.by).iter().take(shown.rows()) {
        let call = Call {
            r#type: "call",
            caller: what_name(edge.caller, &profile.functions),
            callee: &profile.functions.get(edge.callee).name,
            calls: edge.calls,
            total: shown.costs(edge.total),
        };
        json::line(&call, out)?;
    }
    code(shown, out)
}

fn function(
    shown: &Shown<'_>,
    group: Option<&str>,
    cost: &FunctionCost,
    out: &mut impl Write,
) -> io::Result<()> {
    let function = shown.profile.functions.get(cost.function);
    let object = Function {
        r#type: "function",
        group,
        name: &function.name,
        address: Hex(function.start),
        place: shown.place(function.start),
        own: shown.costs(cost.own),
        total: shown.costs(cost.total),
        calls: cost.calls,
    };
    json::line(&object, out)
}

/// Lines, loops and instructions.
fn code(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let profile = shown.profile;
    let lines = profile.by_line(shown.insns, shown.places, shown.by);
    for line in lines.iter().take(shown.rows()) {
        let object = Line {
            r#type: "line",
            file: &line.file,
            line: line.line,
            count: line.count,
            own: shown.costs(line.own),
        };
        json::line(&object, out)?;
    }
    for found in profile
        .loops(shown.insns, shown.by)
        .iter()
        .take(shown.rows())
    {
        let object = Loop {
            r#type: "loop",
            function: found
                .function
                .map(|id| profile.functions.get(id).name.as_str()),
            head: Hex(found.head),
            back: Hex(found.back),
            entries: found.entries,
            iterations: found.iterations,
            own: shown.costs(found.own),
        };
        json::line(&object, out)?;
    }
    for (&(_, pc), cost) in shown.insns.iter().take(shown.rows()) {
        let object = Insn {
            r#type: "instruction",
            pc: Hex(pc),
            count: cost.insns,
            time: profile.timed.then_some(cost.time),
        };
        json::line(&object, out)?;
    }
    Ok(())
}

/// The tree of calls and the latencies of functions, as JSON lines.
///
/// # Errors
///
/// A failing write.
pub fn json_calls(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    shown.header("hartrace-calls", out)?;
    let (tree, functions) = (&shown.profile.tree, &shown.profile.functions);
    let totals = tree.totals();
    for (at, node) in tree.nodes().iter().enumerate().skip(1) {
        let total = totals.get(at).copied().unwrap_or_default();
        if total.insns == 0 {
            continue;
        }
        let mut path = Vec::new();
        let mut id = tree.id(at);
        while let Some(node) = tree.node(id).filter(|_| id != NodeId::ROOT) {
            path.push(what_name(node.what, functions));
            id = node.parent;
        }
        path.reverse();
        let object = Path {
            r#type: "path",
            path,
            own: shown.costs(node.own),
            total: shown.costs(total),
            calls: node.calls,
            inferred: node.inferred,
        };
        json::line(&object, out)?;
    }
    let Some(latencies) = shown.latencies else {
        return Ok(());
    };
    for cost in shown.profile.by_function(shown.by) {
        if let Some(latency) = latencies.get(cost.function) {
            json::line(
                &measured(shown, &functions.get(cost.function).name, latency),
                out,
            )?;
        }
    }
    Ok(())
}

fn measured<'a>(shown: &Shown<'_>, function: &'a str, latency: &Latency) -> Measured<'a> {
    Measured {
        r#type: "latency",
        function,
        calls: latency.calls,
        instructions: latency.insns().into(),
        time: shown.profile.timed.then(|| latency.time().into()),
    }
}
