//! `hartrace dump` of E-Trace: its packets.

use super::dump::{Stop, bad};
use crate::args::DumpFormat;
use crate::diagnostic::{Code, Diagnostic, Failure, count};
use crate::talk::Talk;
use hartrace_capture::input::{self, Input};
use hartrace_capture::output::Output;
use hartrace_capture::trace::pieces;
use hartrace_etrace::{
    BranchMap, Config, Field, Follower, Framer, Ioption, Kind, Layout, Packet, Piece, QualStatus,
    Report, Support, csv, explain,
};
use hartrace_flow::Mode;
use hartrace_print::json::Hex;
use hartrace_print::words::hex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// How packets are shown.
pub(super) struct Shape {
    pub(super) format: DumpFormat,
    /// One line per byte.
    pub(super) bytes: bool,
}

pub(super) fn run(
    input: Input,
    config: &Config,
    shape: &Shape,
    output: &mut Output,
    talk: &Talk,
) -> Result<(), Failure> {
    let path = input.path().to_path_buf();
    let mut shown = Shown {
        config,
        layout: config.layout(),
        follower: Follower::new(config),
        left_out: 0,
    };
    shown.heading(shape, output).map_err(|e| output.failed(e))?;
    pieces::<Framer, _>(input, |at, bytes, piece| {
        let written = match shape.format {
            DumpFormat::Json => shown.json(at, bytes, piece, output),
            DumpFormat::Csv => shown.csv(piece, output),
            DumpFormat::Text if shape.bytes => shown.table(at, bytes, piece, output),
            DumpFormat::Text => shown.line(at, bytes, piece, output),
        };
        written.map_err(|error| Stop::Output(output.failed(error)))
    })?;
    if shown.left_out > 0 {
        let name = input::name(&path);
        let pieces = count(shown.left_out, "piece");
        let message = format!("{name} has {pieces} that no row can show");
        let warning = Diagnostic::new(Code::Gaps, message);
        talk.warning(&warning.help("leave out -f csv to see them"));
    }
    Ok(())
}

/// What is needed to show a packet.
struct Shown<'a> {
    config: &'a Config,
    layout: Layout,
    follower: Follower,
    /// Pieces that are no row of a table.
    left_out: u64,
}

impl Shown<'_> {
    fn heading(&self, shape: &Shape, out: &mut impl Write) -> io::Result<()> {
        match shape.format {
            DumpFormat::Json => {
                let schema = "hartrace-packets";
                put(&Line::Header { schema, version: 1 }, out)
            }
            DumpFormat::Csv => write!(out, "{}{}", csv::HEADER, csv::LINE_END),
            DumpFormat::Text if shape.bytes => writeln!(out, "offset    byte  bits      decoded"),
            DumpFormat::Text => Ok(()),
        }
    }

    /// The full address of a packet; nothing of what cannot be read.
    fn follow(&mut self, src: u16, payload: &[u8]) -> (Option<Packet>, Option<u64>) {
        match Packet::read(payload, &self.layout) {
            Ok(packet) => (Some(packet), self.follower.packet(src, &packet)),
            Err(_) => {
                self.follower.lost();
                (None, None)
            }
        }
    }

    /// One line per piece.
    fn line(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (src, payload) = match *piece {
            Piece::Idle(count) => return writeln!(out, "{at:08x}  (idle) {count}"),
            Piece::Bad(fault, count) => {
                self.follower.lost();
                let text = bad(fault.code(), fault.text(), bytes, count);
                return writeln!(out, "{at:08x}  {text}");
            }
            Piece::Packet(_, Kind::Data, payload) => {
                return writeln!(out, "{at:08x}  (data) {}", hex(payload));
            }
            Piece::Packet(src, Kind::Instruction, payload) => (src, payload),
        };
        let (fields, fault) = explain(payload, &self.layout);
        let (packet, address) = self.follow(src, payload);
        let mut line = format!("{at:08x}  ");
        match packet {
            Some(packet) => line += packet.name(),
            None => line += "(packet)",
        }
        for field in fields.iter().filter(|f| !is_named(f)) {
            let _ = write!(line, " {}={}", field.name, value(field));
        }
        if let Some(meaning) = packet.and_then(|packet| self.meaning(&packet)) {
            let _ = write!(line, " ({meaning})");
        }
        if let Some(address) = address {
            let _ = write!(line, " -> {address:#x}");
        }
        if let Some(fault) = fault {
            let text = bad(fault.code(), fault.text(), bytes, bytes.len() as u64);
            let _ = write!(line, "  {text}");
        }
        writeln!(out, "{line}")
    }

    /// One line per byte, with the fields that end in it. What was compressed
    /// away stands at the last byte.
    fn table(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (fields, fault) = match *piece {
            Piece::Packet(_, Kind::Instruction, payload) => explain(payload, &self.layout),
            Piece::Bad(fault, _) => (Vec::new(), Some(fault)),
            _ => (Vec::new(), None),
        };
        let last = bytes.len().saturating_sub(1);
        for (i, byte) in bytes.iter().enumerate() {
            let mut told: Vec<String> = match (i, piece) {
                (_, Piece::Idle(_)) => vec!["Idle".to_owned()],
                (0, Piece::Packet(_, kind, payload)) => vec![header(*kind, payload.len())],
                _ => {
                    let here = fields.iter().filter(|f| f.last_byte() == i.checked_sub(1));
                    here.map(field_text).collect()
                }
            };
            if i == last {
                let implied = fields.iter().filter(|f| f.last_byte().is_none());
                told.extend(implied.map(|f| format!("({})", field_text(f))));
                told.extend(fault.map(|fault| format!("{}: {}", fault.code(), fault.text())));
            }
            let at = at + i as u64;
            let line = format!("{at:08x}  0x{byte:02X}  {byte:08b}  {}", told.join(", "));
            writeln!(out, "{}", line.trim_end())?;
        }
        match piece {
            Piece::Bad(_, count) if *count > bytes.len() as u64 => {
                writeln!(out, "... {count} bytes")
            }
            _ => Ok(()),
        }
    }

    /// A row as the reference models write it.
    fn csv(&mut self, piece: &Piece<'_>, out: &mut impl Write) -> io::Result<()> {
        let packet = match *piece {
            Piece::Packet(_, Kind::Instruction, payload) => {
                Packet::read(payload, &self.layout).ok()
            }
            Piece::Idle(_) => return Ok(()),
            _ => None,
        };
        let Some(packet) = packet else {
            self.left_out += 1;
            return Ok(());
        };
        let mut row = String::new();
        csv::row(&packet, &self.layout, &mut row);
        row += csv::LINE_END;
        out.write_all(row.as_bytes())
    }

    fn json(
        &mut self,
        offset: u64,
        bytes: &[u8],
        piece: &Piece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let line = match *piece {
            Piece::Idle(count) => Line::Idle { offset, count },
            Piece::Bad(fault, count) => {
                self.follower.lost();
                Line::Bad {
                    offset,
                    count,
                    fault: fault.code(),
                    text: fault.text(),
                }
            }
            Piece::Packet(_, Kind::Data, _) => Line::Data {
                offset,
                bytes: hex(bytes),
            },
            Piece::Packet(src, Kind::Instruction, payload) => {
                let (fields, fault) = explain(payload, &self.layout);
                let (packet, address) = self.follow(src, payload);
                let number = |name| fields.iter().find(|f| f.name == name).map(|f| f.value);
                Line::Packet {
                    offset,
                    bytes: hex(bytes),
                    format: number("format"),
                    subformat: number("subformat"),
                    name: packet.map(|packet| packet.name()),
                    fields: {
                        let named = fields.iter().filter(|f| !is_named(f));
                        named.map(|f| (f.name, Hex(f.value))).collect()
                    },
                    address: address.map(Hex),
                    fault: fault.map(|f| f.code()),
                }
            }
        };
        put(&line, out)
    }

    /// What the codes in a packet mean.
    fn meaning(&self, packet: &Packet) -> Option<String> {
        let mut words = Vec::new();
        match packet {
            Packet::BranchCount { address, .. } => {
                words.extend(address.iter().flat_map(|(_, report)| flags(report)));
            }
            Packet::JumpTarget { map, irreport, .. } => {
                words.extend(outcomes(map));
                words.extend(irreport.then(|| "irreport".to_owned()));
            }
            Packet::Branches { map, address } => {
                words.extend(outcomes(map));
                words.extend(address.iter().flat_map(flags));
            }
            Packet::Address(report) => words.extend(flags(report)),
            Packet::Start(start) => {
                words.push(mode(start.privilege));
                words.extend((!start.branch).then(|| "taken branch".to_owned()));
            }
            Packet::Trap(trap) => {
                let kind = if trap.interrupt {
                    "interrupt"
                } else {
                    "exception"
                };
                words.push(mode(trap.privilege));
                words.push(format!("{kind} {}", trap.ecause));
                words.extend((!trap.thaddr).then(|| "no handler".to_owned()));
            }
            Packet::Context(context) => words.push(mode(context.privilege)),
            Packet::Support(support) => self.support(support, &mut words),
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn support(&self, support: &Support, words: &mut Vec<String>) {
        let on = if support.ienable {
            "enabled"
        } else {
            "disabled"
        };
        words.push(on.to_owned());
        let status = match support.qual_status {
            QualStatus::NoChange => None,
            QualStatus::EndedRep => Some("ended_rep"),
            QualStatus::TraceLost => Some("trace_lost"),
            QualStatus::EndedNtr => Some("ended_ntr"),
        };
        words.extend(status.map(str::to_owned));
        for (bit, option) in self.config.ioptions.order().iter().enumerate() {
            if support.ioptions >> bit & 1 != 0 {
                words.push(match option {
                    Some(option) => option_name(*option).to_owned(),
                    None => format!("option {bit}"),
                });
            }
        }
    }
}

/// Format and subformat are part of a packet's name.
fn is_named(field: &Field) -> bool {
    matches!(field.name, "format" | "subformat")
}

/// Numbers that count are decimal, the others hexadecimal.
fn value(field: &Field) -> String {
    match field.name {
        "format" | "subformat" | "branch" | "branches" | "branch_count" | "privilege"
        | "ecause" | "interrupt" | "thaddr" | "notify" | "updiscon" | "irreport" | "ienable"
        | "enable" | "encoder_mode" | "qual_status" | "denable" | "dloss" => {
            field.value.to_string()
        }
        _ => format!("{:#x}", field.value),
    }
}

/// `address[63]=0x558`.
fn field_text(field: &Field) -> String {
    format!("{}[{}]={}", field.name, field.bits, value(field))
}

fn header(kind: Kind, len: usize) -> String {
    let kind = match kind {
        Kind::Instruction => "te_inst",
        Kind::Data => "te_data",
    };
    format!("{kind}, {}", count(len as u64, "byte"))
}

/// The oldest first: T for taken, N for not taken.
fn outcomes(map: &BranchMap) -> Option<String> {
    let letter = |n| if map.bits >> n & 1 == 0 { 'T' } else { 'N' };
    (map.count > 0).then(|| (0..map.count).map(letter).collect())
}

fn flags(report: &Report) -> impl Iterator<Item = String> {
    let all = [
        (report.notify, "notify"),
        (report.updiscon, "updiscon"),
        (report.irreport, "irreport"),
    ];
    let told = all.into_iter().filter(|(told, _)| *told);
    told.map(|(_, name)| name.to_owned())
}

fn mode(code: u8) -> String {
    match Mode::from_code(code) {
        Some(mode) => mode.name().to_owned(),
        None => format!("mode {code}"),
    }
}

const fn option_name(option: Ioption) -> &'static str {
    match option {
        Ioption::SequentialJump => "sequential jumps",
        Ioption::ImplicitReturn => "implicit return",
        Ioption::ImplicitException => "implicit exception",
        Ioption::BranchPrediction => "branch prediction",
        Ioption::JumpTargetCache => "jump target cache",
        Ioption::FullAddress => "full addresses",
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Header {
        schema: &'static str,
        version: u32,
    },
    Packet {
        offset: u64,
        bytes: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        subformat: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'static str>,
        fields: BTreeMap<&'static str, Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<Hex>,
        #[serde(skip_serializing_if = "Option::is_none")]
        fault: Option<&'static str>,
    },
    Data {
        offset: u64,
        bytes: String,
    },
    Idle {
        offset: u64,
        count: u64,
    },
    Bad {
        offset: u64,
        count: u64,
        fault: &'static str,
        text: &'static str,
    },
}

fn put(line: &Line, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
