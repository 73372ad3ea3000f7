//! Profiles for the Firefox Profiler, in its processed profile format.

mod tables;

use super::Shown;
use super::threads::{hart_name, thread_name};
use crate::json::Hex;
use hartrace_analyze::{
    Cost, Measure, Module, PathSequence, PathThread, Position, TrapMark, cause_name,
};
use serde::Serialize;
use std::io::{self, Write};
use tables::{Shared, Tables};

/// The version of the format that is written. Later versions of the profiler read it, too.
const VERSION: u32 = 70;

/// Categories, by number.
const CODE: usize = 0;
pub(super) const TRAP: usize = 1;

#[derive(Serialize)]
struct Profile<'a> {
    meta: Meta,
    libs: Vec<Lib<'a>>,
    shared: &'a Shared,
    threads: Vec<Thread>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    /// A unit, in milliseconds.
    interval: f64,
    start_time: u32,
    process_type: u32,
    product: &'static str,
    stackwalk: u32,
    version: u32,
    preprocessed_profile_version: u32,
    symbolicated: bool,
    categories: [Category; 2],
    marker_schema: [Schema; 2],
    sample_units: Units,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    keep_profile_thread_order: bool,
    imported_from: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Units {
    time: &'static str,
    event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    ran: &'static str,
}

#[derive(Serialize)]
struct Category {
    name: &'static str,
    color: &'static str,
    subcategories: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    name: &'static str,
    chart_label: &'static str,
    table_label: &'static str,
    display: [&'static str; 3],
    fields: [Field; 1],
}

#[derive(Serialize)]
struct Field {
    key: &'static str,
    label: &'static str,
    format: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lib<'a> {
    arch: &'static str,
    name: &'a str,
    path: &'a str,
    debug_name: &'a str,
    debug_path: &'a str,
    breakpad_id: String,
    code_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thread {
    process_type: &'static str,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [(); 0],
    show_markers_in_timeline: bool,
    name: String,
    is_main_thread: bool,
    process_name: String,
    pid: String,
    tid: usize,
    samples: Samples,
    markers: Markers,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Vec<f64>,
    /// What the thread ran since the sample before, which draws its activity.
    #[serde(rename = "threadCPUDelta")]
    ran: Vec<u64>,
    weight_type: &'static str,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Markers {
    data: Vec<Payload>,
    name: Vec<usize>,
    start_time: Vec<f64>,
    end_time: Vec<Option<f64>>,
    phase: Vec<u8>,
    category: Vec<usize>,
    length: usize,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Payload {
    Trap { epc: Option<Hex> },
    Gap { reason: &'static str },
}

/// Phases of markers.
const INSTANT: u8 = 0;
const INTERVAL: u8 = 1;
const START: u8 = 2;

/// Writes a thread for each thread of a hart, with a sample for each time it was on a call
/// path. One unit of time, or one instruction, is a microsecond; weights are instructions,
/// or the time.
///
/// # Errors
///
/// A failing write.
pub fn firefox(
    shown: &Shown<'_>,
    sequence: &PathSequence,
    modules: &[Module],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut tables = Tables::new(shown, modules);
    let mut threads: Vec<Thread> = Vec::new();
    for thread in sequence.threads() {
        let pid = format!("{}.{}", thread.trace + 1, thread.hart.0);
        threads.push(Thread {
            process_type: "default",
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: 0.0,
            unregister_time: None,
            paused_ranges: [],
            show_markers_in_timeline: true,
            name: thread_name(thread, sequence, shown),
            is_main_thread: threads.iter().all(|other| other.pid != pid),
            process_name: hart_name(thread, sequence),
            pid,
            tid: threads.len() + 1,
            samples: samples(thread, shown.by, &mut tables),
            markers: markers(thread, shown.by, &mut tables),
        });
    }
    let profile = Profile {
        meta: meta(),
        libs: modules.iter().map(lib).collect(),
        shared: &tables.finish(),
        threads,
    };
    serde_json::to_writer(&mut *out, &profile)?;
    out.write_all(b"\n")
}

fn meta() -> Meta {
    let category = |name, color| Category {
        name,
        color,
        subcategories: ["Other"],
    };
    let schema = |name, table_label, key, label| Schema {
        name,
        chart_label: "{marker.name}",
        table_label,
        display: ["marker-chart", "marker-table", "timeline-overview"],
        fields: [Field {
            key,
            label,
            format: "string",
        }],
    };
    Meta {
        interval: millis(1),
        start_time: 0,
        process_type: 0,
        product: "hartrace",
        stackwalk: 1,
        version: 36,
        preprocessed_profile_version: VERSION,
        symbolicated: true,
        categories: [
            // Frames without a category, and without a caller that has one, have the first
            // that is grey.
            category("Code", "grey"),
            category("Traps", "orange"),
        ],
        marker_schema: [
            schema("Trap", "{marker.data.epc}", "epc", "Taken at"),
            schema("Gap", "{marker.data.reason}", "reason", "Reason"),
        ],
        sample_units: Units {
            time: "ms",
            event_delay: "ms",
            ran: "µs",
        },
        uses_only_one_stack_type: true,
        source_code_is_not_on_searchfox: true,
        keep_profile_thread_order: true,
        imported_from: concat!("hartrace ", env!("CARGO_PKG_VERSION")),
    }
}

/// A unit is shown as a microsecond.
fn millis(units: u64) -> f64 {
    units as f64 / 1000.0
}

/// A build id in the form of Breakpad: three numbers of its first bytes have the other
/// order of bytes, and an age follows.
fn lib(module: &Module) -> Lib<'_> {
    let name = super::short(&module.name);
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let mut id = module.build_id.clone();
    id.resize(16, 0);
    for (start, end) in [(0, 4), (4, 6), (6, 8)] {
        id.get_mut(start..end).unwrap_or_default().reverse();
    }
    Lib {
        arch: "riscv",
        name,
        path: &module.name,
        debug_name: name,
        debug_path: &module.name,
        breakpad_id: hex(&id).to_uppercase() + "0",
        code_id: (!module.build_id.is_empty()).then(|| hex(&module.build_id)),
    }
}

/// A sample for each visit, and one without a stack where the thread stops running.
fn samples(thread: &PathThread, by: Measure, tables: &mut Tables<'_, '_>) -> Samples {
    let mut samples = Samples {
        weight_type: match by {
            Measure::Instructions => "samples",
            Measure::Time => "tracing-ms",
        },
        ..Samples::default()
    };
    let weight = |cost: Cost| match by {
        Measure::Instructions => cost.insns as f64,
        Measure::Time => millis(cost.time),
    };
    let mut ran = 0;
    let mut add = |stack, at: u64, cost: Cost| {
        samples.stack.push(stack);
        samples.time.push(millis(at));
        samples.weight.push(weight(cost));
        samples.ran.push(std::mem::replace(&mut ran, cost.of(by)));
        samples.length += 1;
    };
    let mut end = None;
    for visit in &thread.visits {
        let begin = visit.begin.on(by).max(end.unwrap_or(0));
        if let Some(end) = end.filter(|end| *end < begin) {
            add(None, end, Cost::default());
        }
        add(Some(tables.stack(visit.node)), begin, visit.cost);
        end = Some(begin + visit.cost.of(by));
    }
    if let Some(end) = end {
        add(None, end, Cost::default());
    }
    samples
}

/// Traps and gaps, by their begins.
fn markers(thread: &PathThread, by: Measure, tables: &mut Tables<'_, '_>) -> Markers {
    let mut markers = Markers::default();
    let on = |position: Position| millis(position.on(by));
    let mut all: Vec<(Position, Result<&TrapMark, &'static str>)> = Vec::new();
    all.extend(thread.traps().map(|trap| (trap.begin, Ok(trap))));
    all.extend(thread.gaps.iter().map(|gap| (gap.at, Err(gap.reason))));
    all.sort_by_key(|(at, _)| *at);
    for (at, mark) in all {
        let (name, category, payload) = match mark {
            Ok(trap) => {
                let epc = trap.epc.map(Hex);
                (cause_name(trap.cause), TRAP, Payload::Trap { epc })
            }
            Err(reason) => ("gap".to_owned(), CODE, Payload::Gap { reason }),
        };
        let end = mark.ok().and_then(|trap| trap.end);
        markers.name.push(tables.string(&name));
        markers.category.push(category);
        markers.data.push(payload);
        markers.start_time.push(on(at));
        markers.end_time.push(end.map(on));
        markers.phase.push(match (mark, end) {
            (Err(_), _) => INSTANT,
            (_, Some(_)) => INTERVAL,
            (_, None) => START,
        });
        markers.length += 1;
    }
    markers
}
