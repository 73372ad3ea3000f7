//! Interrupts by cause: tables for people, and JSON.

use crate::json::{self, Hex, Span};
use crate::profile::percent;
use crate::words::{self, counted};
use hartrace_analyze::{
    FunctionId, Interrupts, Measure, Places, Profile, SliceKind, Spans, TrapSpan, WorstTrap,
    cause_name,
};
use hartrace_flow::Cause;
use serde::Serialize;
use std::io::{self, Write};

/// What is printed instead of latencies.
const NO_LATENCY: &str =
    "latency: not known; the source does not report when interrupts became pending";

/// Interrupts, and what is needed to show them.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The interrupts of each cause.
    pub causes: &'a [Interrupts<'a>],
    /// The profile of the same trace.
    pub profile: &'a Profile,
    /// Source lines.
    pub places: &'a Places<'a>,
    /// Whether exceptions are among them.
    pub exceptions: bool,
    /// Interrupted functions and longest interrupts of each cause at most.
    pub top: usize,
}

impl Shown<'_> {
    /// What all of them are.
    const fn word(&self) -> &'static str {
        match self.exceptions {
            true => "trap",
            false => "interrupt",
        }
    }

    fn timed(&self) -> bool {
        self.profile.timed
    }

    fn function(&self, id: Option<FunctionId>) -> &str {
        id.map_or("[unknown]", |id| {
            self.profile.functions.get(id).name.as_str()
        })
    }

    /// What a call path shows of a slice.
    fn name(&self, kind: SliceKind) -> String {
        match kind {
            SliceKind::Trap(cause) => format!("[{}]", cause_name(cause)),
            kind => self.function(kind.function()).to_owned(),
        }
    }

    /// A call path, outermost first; `...` stands for calls that are left out.
    fn path(&self, worst: &WorstTrap<'_>) -> Vec<String> {
        let omitted = (worst.omitted > 0).then(|| "...".to_owned());
        let names = worst.path.iter().map(|kind| self.name(*kind));
        omitted.into_iter().chain(names).collect()
    }
}

/// Tables of durations, then what each cause interrupted and its longest interrupts.
///
/// # Errors
///
/// A failing write.
pub fn text(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let total = shown.profile.total();
    let count = shown.causes.iter().map(|cause| cause.spans.count).sum();
    let word = shown.word();
    write!(out, "{}", counted(total.insns, "instruction"))?;
    if shown.timed() {
        write!(out, ", {} of time", counted(total.time, "unit"))?;
    }
    writeln!(out, ", {}", counted(count, word))?;
    if shown.causes.is_empty() {
        return Ok(());
    }
    durations(shown, Measure::Instructions, out)?;
    if shown.timed() {
        durations(shown, Measure::Time, out)?;
    }
    latencies(shown, out)?;
    shown
        .causes
        .iter()
        .try_for_each(|cause| details(shown, cause, out))
}

/// One row for each cause.
fn durations(shown: &Shown<'_>, axis: Measure, out: &mut impl Write) -> io::Result<()> {
    let unit = match axis {
        Measure::Instructions => "instructions",
        Measure::Time => "time",
    };
    let word = shown.word();
    writeln!(
        out,
        "\n{:>8} {:>7} {:>6} {:>10} {:>10} {:>10} {:>10} {:>12} {:>7}  {unit} per {word}",
        "count", "nested", "depth", "p50", "p90", "p99", "max", "total", "%"
    )?;
    let whole = shown.profile.total().of(axis);
    for cause in shown.causes {
        let Spans {
            p50, p90, p99, max, ..
        } = cause.spans.duration(axis);
        let total = match axis {
            Measure::Instructions => cause.insns,
            Measure::Time => cause.time,
        };
        writeln!(
            out,
            "{:>8} {:>7} {:>6} {p50:>10} {p90:>10} {p99:>10} {max:>10} {total:>12} {:>7.2}  {}",
            cause.spans.count,
            cause.nested,
            cause.spans.nesting,
            percent(total, whole),
            cause_name(cause.spans.cause)
        )?;
    }
    Ok(())
}

/// One row for each cause of which latencies are known.
fn latencies(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let known = shown.causes.iter();
    let mut known = known
        .filter_map(|cause| Some((cause.spans.cause, cause.spans.latency()?)))
        .peekable();
    if known.peek().is_none() {
        let mut causes = shown.causes.iter().map(|cause| cause.spans.cause);
        return match causes.all(|cause| matches!(cause, Cause::Exception(_))) {
            true => Ok(()),
            false => writeln!(out, "\n{NO_LATENCY}"),
        };
    }
    writeln!(
        out,
        "\n{:>8} {:>10} {:>10} {:>10} {:>10} {:>10}  latency in time",
        "count", "min", "p50", "p90", "p99", "max"
    )?;
    for (cause, (count, spans)) in known {
        let Spans {
            min,
            p50,
            p90,
            p99,
            max,
            ..
        } = spans;
        writeln!(
            out,
            "{count:>8} {min:>10} {p50:>10} {p90:>10} {p99:>10} {max:>10}  {}",
            cause_name(cause)
        )?;
    }
    Ok(())
}

fn details(shown: &Shown<'_>, cause: &Interrupts<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n{}", cause_name(cause.spans.cause))?;
    if cause.spans.unfinished > 0 {
        writeln!(out, "  {} did not return", cause.spans.unfinished)?;
    }
    writeln!(out, "{:>12}  interrupted function", "count")?;
    for preempted in cause.preempted.iter().take(shown.top) {
        let name = shown.function(preempted.function);
        write!(out, "{:>12}  {name}", preempted.count)?;
        let start = preempted
            .function
            .map(|id| shown.profile.functions.get(id).start);
        match start.and_then(|start| shown.places.line(start)) {
            Some(line) => writeln!(out, "  {}:{}", crate::profile::short(line.file), line.line)?,
            None => writeln!(out)?,
        }
    }
    let more = cause.preempted.len().saturating_sub(shown.top);
    if more > 0 {
        writeln!(
            out,
            "{:>12}  ({})",
            "",
            counted(more as u64, "more function")
        )?;
    }
    if shown.top == 0 {
        return Ok(());
    }
    if !cause.worst.is_empty() {
        write!(out, "{:>12} {:>12}", "instructions", "at")?;
        if shown.timed() {
            write!(out, " {:>10} {:>14}", "time", "at time")?;
        }
        writeln!(out, "  longest, interrupted call path")?;
    }
    for worst in cause.worst.iter().take(shown.top) {
        longest(shown, worst, out)?;
    }
    if !cause.delayed.is_empty() {
        writeln!(
            out,
            "{:>12} {:>12} {:>14}  longest latency, interrupted call path",
            "latency", "at", "pending at"
        )?;
    }
    for worst in cause.delayed.iter().take(shown.top) {
        delayed(shown, worst, out)?;
    }
    Ok(())
}

fn delayed(shown: &Shown<'_>, worst: &WorstTrap<'_>, out: &mut impl Write) -> io::Result<()> {
    let WorstTrap { trap, .. } = worst;
    let (latency, pending) = (trap.latency().unwrap_or(0), trap.pending.unwrap_or(0));
    let at = format!("#{}", trap.begin.insn);
    write!(out, "{latency:>12} {at:>12} {pending:>14}")?;
    interrupted(shown, worst, out)
}

fn longest(shown: &Shown<'_>, worst: &WorstTrap<'_>, out: &mut impl Write) -> io::Result<()> {
    let WorstTrap { trap, .. } = worst;
    let insns = trap.duration(Measure::Instructions).unwrap_or(0);
    write!(out, "{insns:>12} {:>12}", format!("#{}", trap.begin.insn))?;
    if shown.timed() {
        match trap.duration(Measure::Time) {
            Some(time) => write!(out, " {time:>10} {:>14}", trap.begin.time)?,
            None => write!(out, " {:>10} {:>14}", "-", "-")?,
        }
    }
    interrupted(shown, worst, out)
}

/// The call path that was interrupted, at the end of a line.
fn interrupted(shown: &Shown<'_>, worst: &WorstTrap<'_>, out: &mut impl Write) -> io::Result<()> {
    let hart = match worst.track.hart.0 {
        0 => String::new(),
        hart => format!("hart {hart}: "),
    };
    writeln!(out, "  {hart}{}", shown.path(worst).join(" > "))
}

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
struct CauseObject<'a> {
    r#type: &'static str,
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    name: String,
    count: u64,
    unfinished: u64,
    nested: u64,
    depth: u32,
    total: Costs,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<LatencySpan>,
    preempted: Vec<PreemptedObject<'a>>,
}

#[derive(Serialize)]
struct PreemptedObject<'a> {
    function: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct WorstObject<'a> {
    r#type: &'static str,
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    hart: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    thread: u32,
    at: Costs,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Costs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<u64>,
    depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    epc: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tval: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<&'a str>,
    path: Vec<String>,
}

/// Of as many interrupts as it is known.
#[derive(Serialize)]
struct LatencySpan {
    count: u64,
    #[serde(flatten)]
    time: Span,
}

/// A header, then each cause, followed by its longest interrupts and those with the
/// longest latencies.
///
/// # Errors
///
/// A failing write.
pub fn json(shown: &Shown<'_>, out: &mut impl Write) -> io::Result<()> {
    let costs = |instructions, time: u64| Costs {
        instructions,
        time: shown.timed().then_some(time),
    };
    let total = shown.profile.total();
    let header = Header {
        r#type: "header",
        schema: "hartrace-interrupts",
        version: 1,
        total: costs(total.insns, total.time),
    };
    json::line(&header, out)?;
    for cause in shown.causes {
        let (kind, code) = words::cause(cause.spans.cause);
        let finished = cause.spans.count > cause.spans.unfinished;
        let span = |axis| Span::from(cause.spans.duration(axis));
        let preempted = cause.preempted.iter().take(shown.top);
        let preempted = preempted.map(|one| PreemptedObject {
            function: shown.function(one.function),
            count: one.count,
        });
        let object = CauseObject {
            r#type: "cause",
            cause: kind,
            code,
            name: cause_name(cause.spans.cause),
            count: cause.spans.count,
            unfinished: cause.spans.unfinished,
            nested: cause.nested,
            depth: cause.spans.nesting,
            total: costs(cause.insns, cause.time),
            instructions: finished.then(|| span(Measure::Instructions)),
            time: (finished && shown.timed()).then(|| span(Measure::Time)),
            latency: cause.spans.latency().map(|(count, spans)| LatencySpan {
                count,
                time: spans.into(),
            }),
            preempted: preempted.collect(),
        };
        json::line(&object, out)?;
        for (kind, traps) in [("longest", &cause.worst), ("delayed", &cause.delayed)] {
            for worst in traps.iter().take(shown.top) {
                json::line(&worst_object(shown, kind, worst), out)?;
            }
        }
    }
    Ok(())
}

fn worst_object<'a>(
    shown: &'a Shown<'_>,
    kind: &'static str,
    worst: &WorstTrap<'_>,
) -> WorstObject<'a> {
    let WorstTrap { trap, track, .. } = worst;
    let (cause, code) = words::cause(trap.cause);
    // Neither is known if the trap was taken before the first timestamp.
    let timed = shown.timed() && trap.begin.time > 0;
    let handler = |trap: &TrapSpan| Some(shown.function(Some(trap.handler?)));
    WorstObject {
        r#type: kind,
        cause,
        code,
        hart: track.hart.0,
        context: track.context.map(|context| context.0),
        thread: track.number,
        at: Costs {
            instructions: trap.begin.insn,
            time: timed.then_some(trap.begin.time),
        },
        duration: trap.end.map(|_| Costs {
            instructions: trap.duration(Measure::Instructions).unwrap_or(0),
            time: trap.duration(Measure::Time).filter(|_| timed),
        }),
        pending: trap.pending,
        latency: trap.latency(),
        depth: trap.nesting,
        epc: trap.epc.map(Hex),
        tval: trap.tval.map(Hex),
        handler: handler(trap),
        path: shown.path(worst),
    }
}
