//! Statistics of a trace, as JSON.

use super::Counted;
use crate::json;
use hartrace_capture::trace::{KindCount, PacketCount, Warned};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct All<'a> {
    schema: &'static str,
    version: u32,
    file: &'a str,
    format: &'static str,
    bytes: u64,
    messages: u64,
    idle: u64,
    timestamps: u64,
    kinds: Vec<Kind<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<Kind<'a>>,
    bad: Vec<Bad>,
    warnings: Vec<Warning>,
    sources: Vec<Source>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<Bandwidth<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<Packets>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded: Option<Decoded>,
}

/// What only E-Trace packets report.
#[derive(Serialize)]
struct Packets {
    branches: u64,
    taken: u64,
    exceptions: u64,
    interrupts: u64,
    no_handler: u64,
    updiscon: u64,
    notify: u64,
    irreport: u64,
    ended: u64,
    lost: u64,
    data: u64,
    payload_bits: u64,
    whole_bits: u64,
}

/// Times can pass 2^53.
#[derive(Serialize)]
struct Bandwidth<'a> {
    from: String,
    slice: String,
    bytes: &'a [u64],
}

#[derive(Serialize)]
struct Kind<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tcode: Option<u8>,
    name: &'a str,
    messages: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Bad {
    code: &'static str,
    text: &'static str,
    pieces: u64,
    bytes: u64,
}

/// What a reader should know of, by code.
#[derive(Serialize)]
pub(crate) struct Warning {
    code: &'static str,
    text: &'static str,
    count: u64,
    /// Where the first is.
    offset: u64,
    /// Instructions may be missing.
    loss: bool,
}

impl Warning {
    pub(crate) fn new(warned: &Warned) -> Warning {
        Warning {
            code: warned.first.reason.code,
            text: warned.first.reason.text,
            count: warned.count,
            offset: warned.first.at,
            loss: warned.first.is_loss,
        }
    }
}

#[derive(Serialize)]
struct Source {
    src: u32,
    messages: u64,
    bytes: u64,
    syncs: u64,
    sync_interval: Option<u64>,
    longest_sync_interval: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<bool>,
}

#[derive(Serialize)]
struct Decoded {
    instructions: u64,
    bits_per_instruction: f64,
    traps: u64,
    gaps: u64,
    data_gaps: u64,
    unconfirmed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubtful_instructions: Option<u64>,
}

/// Prints it as one JSON object.
///
/// # Errors
///
/// A failing write.
pub fn json(counted: &Counted<'_>, out: &mut impl Write) -> io::Result<()> {
    let census = &counted.census;
    let kinds = census.kinds.iter().map(kind);
    let bad = census.faults.iter().map(|&(code, text, bad)| Bad {
        code,
        text,
        pieces: bad.messages,
        bytes: bad.bytes,
    });
    let sources = census.sources.iter().map(|source| Source {
        src: source.number,
        messages: source.all.messages,
        bytes: source.all.bytes,
        syncs: source.syncs,
        sync_interval: source.interval,
        longest_sync_interval: source.longest,
        ended: source.ended,
    });
    let decoded = counted.decoded.map(|report| Decoded {
        instructions: report.instructions,
        bits_per_instruction: counted.bytes as f64 * 8.0 / report.instructions.max(1) as f64,
        traps: report.traps,
        gaps: report.gaps,
        data_gaps: report.data_gap_count(),
        unconfirmed: report.unconfirmed,
        doubts: counted.doubts.map(|doubts| doubts.count),
        doubtful_instructions: counted.doubts.map(|doubts| doubts.instructions),
    });
    let all = All {
        schema: "hartrace-stats",
        version: 1,
        file: &counted.file,
        format: counted.format.name(),
        bytes: counted.bytes,
        messages: census.all.messages,
        idle: census.idle,
        timestamps: census.stamped,
        kinds: kinds.collect(),
        items: census.items.iter().map(kind).collect(),
        bad: bad.collect(),
        warnings: counted.warnings().iter().map(Warning::new).collect(),
        sources: sources.collect(),
        bandwidth: census.bandwidth.as_ref().map(|bandwidth| Bandwidth {
            from: format!("{:#x}", bandwidth.first),
            slice: format!("{:#x}", bandwidth.slice),
            bytes: &bandwidth.bytes,
        }),
        packets: census.packets.as_ref().map(packets),
        decoded,
    };
    json::line(&all, out)
}

fn kind(kind: &KindCount) -> Kind<'_> {
    Kind {
        tcode: kind.tcode,
        name: &kind.name,
        messages: kind.count.messages,
        bytes: kind.count.bytes,
    }
}

fn packets(packets: &PacketCount) -> Packets {
    let PacketCount {
        branches, reasons, ..
    } = packets;
    Packets {
        branches: branches.all(),
        taken: branches.taken,
        exceptions: reasons.exceptions,
        interrupts: reasons.interrupts,
        no_handler: reasons.no_handler,
        updiscon: reasons.updiscon,
        notify: reasons.notify,
        irreport: reasons.irreport,
        ended: reasons.ended,
        lost: reasons.lost,
        data: packets.data.messages,
        payload_bits: packets.payload_bits,
        whole_bits: packets.whole_bits,
    }
}
