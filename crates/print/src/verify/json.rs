//! A report as JSON lines, header first. 64-bit values are hexadecimal strings.

use super::place::numbered;
use super::text::reported_cause;
use super::{Facts, Outcome};
use crate::json::{self, Hex};
use crate::words::interrupt;
use hartrace_flow::Mode;
use hartrace_logs::Moment;
use hartrace_tandem::Problem;
use hartrace_tandem::verify::{self, Counters, Field, Kind, Mismatch};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Header {
        schema: &'static str,
        version: u32,
        trace: String,
        isa: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        absent: Vec<String>,
    },
    Mismatch {
        number: u64,
        insn: u64,
        group: u64,
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        time: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        moment: Option<String>,
        #[serde(flatten)]
        place: Place<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        trap: Option<String>,
        differences: Vec<Difference>,
        past: Vec<Past<'a>>,
    },
    Problem {
        group: u64,
        offset: u64,
        fault: &'static str,
        text: &'static str,
        value: Hex,
    },
    Resumed {
        skipped: u64,
    },
    Summary(Box<Summary>),
}

/// An instruction and where it is.
#[derive(Serialize)]
struct Place<'a> {
    pc: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize)]
struct Difference {
    field: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<String>,
}

#[derive(Serialize)]
struct Past<'a> {
    insn: u64,
    group: u64,
    offset: u64,
    #[serde(flatten)]
    place: Place<'a>,
}

#[derive(Serialize)]
struct Summary {
    verdict: &'static str,
    end: &'static str,
    groups: u64,
    instructions: u64,
    exceptions: u64,
    interrupts: u64,
    inits: u64,
    resets: u64,
    updates: u64,
    unchecked: u64,
    compared: Map<String, Value>,
    mismatches: u64,
    differences: Map<String, Value>,
    taken_back: u64,
    loads_taken: u64,
    csrs_taken: u64,
    conditionals_taken: u64,
    unmodelled: u64,
    problems: u64,
    skipped: u64,
}

fn line(line: &Line<'_>) -> String {
    let mut text = Vec::new();
    // Writing to memory does not fail, and neither do these values.
    let _ = json::line(line, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

pub(super) fn header(facts: &Facts<'_>) -> String {
    line(&Line::Header {
        schema: "hartrace-verify",
        version: 1,
        trace: facts.trace.display().to_string(),
        isa: facts.isa.to_string(),
        absent: facts.config.absent.names(),
    })
}

pub(super) fn mismatch(
    facts: &Facts<'_>,
    number: u64,
    moment: Option<Moment>,
    mismatch: &Mismatch<'_>,
) -> String {
    let past = mismatch.past.iter().map(|past| Past {
        insn: past.insn,
        group: past.group,
        offset: past.at,
        place: place(facts, past.pc, Some(past.bits).filter(|bits| *bits != 0)),
    });
    line(&Line::Mismatch {
        number,
        insn: mismatch.insn,
        group: mismatch.group.number,
        offset: mismatch.group.at,
        time: moment.map(|moment| moment.ticks),
        moment: moment.map(|moment| moment.to_string()),
        place: place(facts, mismatch.pc, mismatch.bits),
        trap: reported_cause(mismatch.group).map(|cause| facts.places.cause(cause)),
        differences: mismatch.differences.iter().map(difference).collect(),
        past: past.collect(),
    })
}

fn place<'a>(facts: &Facts<'a>, pc: u64, bits: Option<u32>) -> Place<'a> {
    let line = facts.places.line(pc);
    Place {
        pc: Hex(pc),
        symbol: facts.places.symbol(pc),
        file: line.map(|(file, _)| file),
        line: line.map(|(_, line)| line),
        bits: bits.map(|bits| Hex(bits.into())),
        text: bits.map(|bits| facts.places.text(pc, bits)),
    }
}

fn difference(difference: &verify::Difference) -> Difference {
    let verify::Difference {
        field,
        expected,
        actual,
    } = *difference;
    Difference {
        field: field.to_string(),
        kind: field.kind().name(),
        register: match field {
            Field::Register(register) => numbered(register),
            _ => None,
        },
        expected: expected.map(Hex),
        actual: actual.map(Hex),
        meaning: match field {
            Field::Interrupt => Some(match (expected, actual) {
                (None, None) => "taken, not reported".to_owned(),
                (Some(code), None) => format!("{}, not reported", interrupt(code as u32)),
                (_, Some(code)) => format!("{}, taken though disabled", interrupt(code as u32)),
            }),
            Field::Handler => Some("no interrupt that is enabled leads there".to_owned()),
            Field::Mode => {
                let mode = |code: Option<u64>| Mode::from_code(code? as u8).map(Mode::name);
                let (a, b) = (mode(expected).unwrap_or("?"), mode(actual).unwrap_or("?"));
                Some(format!("{a}, not {b}"))
            }
            _ => None,
        },
    }
}

pub(super) fn problem(problem: &Problem) -> String {
    line(&Line::Problem {
        group: problem.group,
        offset: problem.at,
        fault: problem.fault.code(),
        text: problem.fault.text(),
        value: Hex(problem.value),
    })
}

pub(super) fn resumed(skipped: u64) -> String {
    line(&Line::Resumed { skipped })
}

pub(super) fn summary(outcome: &Outcome<'_>) -> String {
    let Counters {
        groups,
        retired,
        exceptions,
        interrupts,
        inits,
        resets,
        updates,
        compared,
        mismatches,
        differences,
        loads_taken,
        csrs_taken,
        conditionals_taken,
        taken_back,
        unmodelled,
        unchecked,
    } = *outcome.counters;
    line(&Line::Summary(Box::new(Summary {
        verdict: outcome.verdict(),
        end: outcome.end.name(),
        groups,
        instructions: retired,
        exceptions,
        interrupts,
        inits,
        resets,
        updates,
        unchecked,
        compared: by_kind(&compared),
        mismatches,
        differences: by_kind(&differences),
        taken_back,
        loads_taken,
        csrs_taken,
        conditionals_taken,
        unmodelled,
        problems: outcome.problems,
        skipped: outcome.skipped,
    })))
}

fn by_kind(numbers: &[u64; Kind::ALL.len()]) -> Map<String, Value> {
    let kinds = Kind::ALL.iter().zip(numbers).filter(|(_, n)| **n > 0);
    kinds
        .map(|(kind, n)| (kind.name().to_owned(), Value::from(*n)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_in_words() {
        let meaning = |expected, actual| {
            let field = Field::Interrupt;
            let told = verify::Difference {
                field,
                expected,
                actual,
            };
            difference(&told).meaning.unwrap()
        };
        assert_eq!(meaning(None, None), "taken, not reported");
        assert!(meaning(Some(7), None).ends_with("(7), not reported"));
        assert!(meaning(None, Some(7)).ends_with("(7), taken though disabled"));
    }
}
