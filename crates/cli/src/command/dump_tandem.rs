//! `hartrace dump` of a tandem trace: its groups.

use super::dump::{Stop, bad};
use super::info_text::hex;
use super::log_json::Hex;
use crate::args::DumpFormat;
use crate::diagnostic::Failure;
use hartrace_capture::input::Input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{GroupPiece, Groups, StreamPiece, Streams, items};
use hartrace_flow::{HartId, Mode};
use hartrace_isa::{Isa, Resolve, Style, decode};
use hartrace_tandem::{
    Config, Field, Follower, Group, Item, Operation, Problem, Request, Response, explain,
};
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// How groups are shown.
pub(super) struct Shape {
    pub(super) format: DumpFormat,
    /// One line per field.
    pub(super) bytes: bool,
    /// Whose instructions they are.
    pub(super) isa: Isa,
    /// Groups have a hart: they are in a container.
    pub(super) harts: bool,
}

pub(super) fn run(
    input: Input,
    config: &Config,
    shape: &Shape,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut shown = Shown {
        config,
        shape,
        style: Style::new(shape.isa),
        hart: None,
        pc: None,
    };
    shown.heading(output).map_err(|e| output.failed(e))?;
    let mut streams = Streams::default();
    let mut harts: Vec<Stream> = Vec::new();
    let mut write = |piece: StreamPiece<'_>, output: &mut Output| -> Result<(), Stop> {
        match piece {
            StreamPiece::Lost(problem) => {
                let written = shown.lost(&problem, output);
                written.map_err(|error| Stop::Output(output.failed(error)))
            }
            StreamPiece::Bytes(hart, bytes) => {
                let stream = match harts.iter_mut().position(|s| s.hart == hart) {
                    Some(at) => harts.get_mut(at),
                    None => {
                        harts.push(Stream::new(hart, config));
                        harts.last_mut()
                    }
                };
                let Some(Stream { groups, pc, .. }) = stream else {
                    return Ok(());
                };
                shown.hart = shape.harts.then_some(hart.0);
                shown.pc = *pc;
                groups.feed(bytes, |at, bytes, piece| {
                    let written = shown.piece(at, bytes, piece, output);
                    written.map_err(|error| Stop::Output(output.failed(error)))
                })?;
                *pc = shown.pc;
                Ok(())
            }
        }
    };
    input.chunks(|chunk| streams.feed(chunk, |piece| write(piece, output)))?;
    streams.finish(|piece| write(piece, output))?;
    for Stream { hart, groups, pc } in &mut harts {
        shown.hart = shape.harts.then_some(hart.0);
        shown.pc = *pc;
        groups.finish(|at, bytes, piece| {
            let written = shown.piece(at, bytes, piece, output);
            written.map_err(|error| Stop::Output(output.failed(error)))
        })?;
    }
    Ok(())
}

/// The stream of a hart, and its pc as far as groups have told it.
struct Stream {
    hart: HartId,
    groups: Groups,
    pc: Option<u64>,
}

impl Stream {
    fn new(hart: HartId, config: &Config) -> Stream {
        Stream {
            hart,
            groups: Groups::new(config.clone()),
            pc: None,
        }
    }
}

/// What is needed to show a group.
struct Shown<'a> {
    config: &'a Config,
    shape: &'a Shape,
    style: Style,
    /// Whose groups come, if there are several.
    hart: Option<u32>,
    /// The pc, as far as groups have told it.
    pc: Option<u64>,
}

impl Shown<'_> {
    fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        match self.shape.format {
            DumpFormat::Json => {
                let schema = "hartrace-groups";
                put(&Line::Header { schema, version: 1 }, out)
            }
            _ if self.shape.bytes => writeln!(out, "offset    bytes                    meaning"),
            _ => Ok(()),
        }
    }

    fn piece(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &GroupPiece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self.shape.format {
            DumpFormat::Json => self.json(at, bytes, piece, out),
            _ if self.shape.bytes => self.table(at, bytes, piece, out),
            _ => self.line(at, bytes, piece, out),
        }
    }

    /// Something of the container is missing.
    fn lost(&mut self, problem: &Problem, out: &mut impl Write) -> io::Result<()> {
        self.hart = None;
        if self.shape.format == DumpFormat::Json {
            return put(&self.json_bad(problem.at, 0, problem), out);
        }
        let (code, text) = (problem.fault.code(), problem.fault.text());
        writeln!(out, "{:08x}  (container) {code}: {text}", problem.at)
    }

    /// Where the instruction of a group is; and the pc moves on.
    fn follow(&mut self, group: &Group) -> Option<u64> {
        let mut follower = Follower::at(self.config.xlen, self.pc);
        let here = follower.follow(group);
        self.pc = follower.pc();
        here.filter(|_| group.insn.is_some())
    }

    /// One line per group.
    fn line(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &GroupPiece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let group = match piece {
            GroupPiece::Group(group) => group,
            GroupPiece::Stray => {
                return writeln!(out, "{at:08x}  (stray) {} end group", bytes.len());
            }
            GroupPiece::Bad(problem) => {
                self.pc = None;
                return self.bad(at, bytes, problem, out);
            }
        };
        let here = self.follow(group);
        let mut line = format!("{at:08x}  ");
        if let Some(hart) = self.hart {
            let _ = write!(line, "hart {hart}  ");
        }
        match group.outside {
            true => line.push('-'),
            false => {
                let _ = write!(line, "{}", group.number);
            }
        }
        if let Some(pc) = here {
            let _ = write!(line, " @{pc:#x}");
        }
        let mut gap = "  ";
        for (_, _, item) in items(bytes, self.config) {
            if matches!(item, Item::BeginGroup | Item::EndGroup) {
                continue;
            }
            line += gap;
            gap = "; ";
            let _ = self.item(&item, here, &mut line);
        }
        writeln!(out, "{line}")
    }

    fn bad(
        &self,
        at: u64,
        bytes: &[u8],
        problem: &Problem,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (code, text) = (problem.fault.code(), problem.fault.text());
        let what = format!(
            "{text} ({:#x}) at {:#x}, in group {}",
            problem.value, problem.at, problem.group
        );
        let text = bad(code, &what, bytes, bytes.len() as u64);
        writeln!(out, "{at:08x}  {text}")
    }

    /// An item in a few words.
    fn item(&self, item: &Item, here: Option<u64>, out: &mut String) -> fmt::Result {
        match *item {
            Item::BeginGroup => out.write_str("begin"),
            Item::EndGroup => out.write_str("end"),
            Item::IncrementPc => out.write_str("pc+"),
            Item::Full(register, value) => write!(out, "{register}={value:#x}"),
            Item::Offset(register, offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, "{register}{sign}={:#x}", offset.unsigned_abs())
            }
            Item::Mask(register, mask) => write!(out, "{register}|={mask:#x}"),
            Item::Mode(code) => write!(out, "priv={}", mode(code)),
            Item::PhysicalAddress(addr) => write!(out, "paddr={addr:#x}"),
            Item::EffectiveAddress(addr) => write!(out, "eaddr={addr:#x}"),
            Item::StoreData(size, data) => write!(out, "store{}={data:#x}", 8u32 << size),
            Item::Mtime(time) => write!(out, "mtime={time:#x}"),
            Item::PcPhysical(addr) => write!(out, "pc_paddr={addr:#x}"),
            Item::Pc(pc) => write!(out, "pc={pc:#x}"),
            Item::TwoPcs(old, new) => write!(out, "pc={old:#x}->{new:#x}"),
            Item::Request(request) => {
                let Request {
                    addr,
                    op,
                    size,
                    data,
                } = request;
                write!(out, "{}{} [{addr:#x}]", operation(op), 8u32 << size)?;
                match op.only_reads() {
                    true => Ok(()),
                    false => write!(out, "={data:#x}"),
                }
            }
            Item::Response(response) => {
                let Response {
                    op, failure, data, ..
                } = response;
                out.write_str(if failure { "failure" } else { "success" })?;
                match op.only_writes() {
                    true => Ok(()),
                    false => write!(out, " {data:#x}"),
                }
            }
            Item::Reset => out.write_str("reset"),
            Item::StateInit => out.write_str("init"),
            Item::Insn16(bits) => write!(out, "{bits:04x} {}", self.text(bits.into(), here)),
            Item::Insn32(bits) => write!(out, "{bits:08x} {}", self.text(bits, here)),
        }
    }

    /// The instruction, with places relative to it if nobody knows where it is.
    fn text(&self, bits: u32, here: Option<u64>) -> String {
        let inst = decode(bits, self.style.isa);
        let text = match here {
            Some(pc) => inst.text(pc, &self.style).to_string(),
            None => inst.text(0, &self.style).resolve(&Relative).to_string(),
        };
        text.replace('\t', " ")
    }

    /// One line per field, as in the tables of the specification's examples.
    fn table(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &GroupPiece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let group = match piece {
            GroupPiece::Group(group) => group,
            _ => return self.line(at, bytes, piece, out),
        };
        let here = self.follow(group);
        for (start, length, item) in items(bytes, self.config) {
            let fields = explain(&item, self.config);
            let byte = |f: &Field| f.first_bit as usize / 8;
            let mut rest = fields.as_slice();
            while let Some(first) = rest.first() {
                // Fields that share a byte share a line.
                let (now, behind) = rest.split_at(
                    rest.iter()
                        .position(|f| byte(f) != byte(first))
                        .unwrap_or(rest.len()),
                );
                rest = behind;
                let from = start + byte(first);
                let to = behind.first().map_or(start + length, |f| start + byte(f));
                let told: Vec<String> = now.iter().map(|f| self.field(f, &item, here)).collect();
                let shown = bytes.get(from..to).unwrap_or_default();
                let shown: Vec<String> = shown.iter().map(|b| format!("{b:02x}")).collect();
                let offset = at + from as u64;
                let (shown, told) = (shown.join(" "), told.join(", "));
                writeln!(out, "{offset:08x}  {shown:<23}  {told}")?;
            }
        }
        Ok(())
    }

    fn field(&self, field: &Field, item: &Item, here: Option<u64>) -> String {
        match (field.name, item) {
            ("opcode", _) => match item.identifier() {
                Some(_) => "additional state".to_owned(),
                None => item.name().to_owned(),
            },
            ("identifier", _) => item.name().to_owned(),
            (_, Item::Insn16(bits)) => self.text((*bits).into(), here),
            (_, Item::Insn32(bits)) => self.text(*bits, here),
            (name, _) => format!("{name} {field}"),
        }
    }

    fn json(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &GroupPiece<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let count = bytes.len() as u64;
        let group = match piece {
            GroupPiece::Group(group) => group,
            GroupPiece::Stray => {
                let hart = self.hart;
                let offset = at;
                return put(
                    &Line::Stray {
                        hart,
                        offset,
                        count,
                    },
                    out,
                );
            }
            GroupPiece::Bad(problem) => {
                self.pc = None;
                return put(&self.json_bad(at, count, problem), out);
            }
        };
        let here = self.follow(group);
        let items = items(bytes, self.config);
        let items = items.filter(|(_, _, i)| !matches!(i, Item::BeginGroup | Item::EndGroup));
        let line = Line::Group {
            hart: self.hart,
            offset: at,
            bytes: hex(bytes),
            number: (!group.outside).then_some(group.number),
            pc: here.map(Hex),
            items: items
                .map(|(_, _, item)| self.json_item(&item, here))
                .collect(),
        };
        put(&line, out)
    }

    fn json_bad(&self, offset: u64, count: u64, problem: &Problem) -> Line {
        Line::Bad {
            hart: self.hart,
            offset,
            count,
            at: problem.at,
            group: problem.group,
            fault: problem.fault.code(),
            text: problem.fault.text(),
            value: Hex(problem.value),
        }
    }

    fn json_item(&self, item: &Item, here: Option<u64>) -> JsonItem {
        let plain = |item: &'static str| JsonItem {
            item,
            ..JsonItem::default()
        };
        let valued = |item: &'static str, value: u64| JsonItem {
            value: Some(Hex(value)),
            ..plain(item)
        };
        let register = |item, register: hartrace_tandem::Register| JsonItem {
            register: Some(register.to_string()),
            ..plain(item)
        };
        match *item {
            Item::BeginGroup => plain("begin"),
            Item::EndGroup => plain("end"),
            Item::IncrementPc => plain("increment_pc"),
            Item::Full(r, value) => JsonItem {
                value: Some(Hex(value)),
                ..register("register", r)
            },
            Item::Offset(r, offset) => JsonItem {
                offset: Some(offset),
                ..register("register", r)
            },
            Item::Mask(r, mask) => JsonItem {
                mask: Some(Hex(mask.into())),
                ..register("register", r)
            },
            Item::Mode(code) => JsonItem {
                mode: Some(mode(code)),
                ..plain("priv")
            },
            Item::PhysicalAddress(addr) => valued("paddr", addr),
            Item::EffectiveAddress(addr) => valued("eaddr", addr),
            Item::StoreData(size, data) => JsonItem {
                size: Some(1 << size),
                ..valued("store", data)
            },
            Item::Mtime(time) => valued("mtime", time),
            Item::PcPhysical(addr) => valued("pc_paddr", addr),
            Item::Pc(pc) => valued("pc", pc),
            Item::TwoPcs(old, new) => JsonItem {
                old: Some(Hex(old)),
                ..valued("pc", new)
            },
            Item::Request(request) => JsonItem {
                op: Some(operation(request.op)),
                size: Some(1 << request.size),
                address: Some(Hex(request.addr)),
                value: (!request.op.only_reads()).then_some(Hex(request.data)),
                ..plain("request")
            },
            Item::Response(response) => JsonItem {
                op: Some(operation(response.op)),
                size: Some(1 << response.size),
                failure: Some(response.failure),
                value: (!response.op.only_writes()).then_some(Hex(response.data)),
                ..plain("response")
            },
            Item::Reset => plain("reset"),
            Item::StateInit => plain("init"),
            Item::Insn16(bits) => self.json_insn(bits.into(), 2, here),
            Item::Insn32(bits) => self.json_insn(bits, 4, here),
        }
    }

    fn json_insn(&self, bits: u32, size: u8, here: Option<u64>) -> JsonItem {
        JsonItem {
            item: "insn",
            value: Some(Hex(bits.into())),
            size: Some(size),
            text: Some(self.text(bits, here)),
            ..JsonItem::default()
        }
    }
}

fn mode(code: u8) -> String {
    match Mode::from_code(code) {
        Some(mode) => mode.name().to_owned(),
        None => code.to_string(),
    }
}

const fn operation(op: Operation) -> &'static str {
    match op {
        Operation::Load => "load",
        Operation::Store => "store",
        Operation::LoadReserved => "lr",
        Operation::StoreConditional => "sc",
        Operation::AmoSwap => "amoswap",
        Operation::AmoAdd => "amoadd",
        Operation::AmoXor => "amoxor",
        Operation::AmoAnd => "amoand",
        Operation::AmoOr => "amoor",
        Operation::AmoMin => "amomin",
        Operation::AmoMax => "amomax",
        Operation::AmoMinu => "amominu",
        Operation::AmoMaxu => "amomaxu",
        Operation::InstructionFetch => "fetch",
    }
}

/// Places relative to an instruction at 0.
pub(super) struct Relative;

impl Resolve for Relative {
    fn address(&self, f: &mut fmt::Formatter<'_>, address: u64) -> fmt::Result {
        // Of RV32 the upper half is zero.
        let distance = match u32::try_from(address) {
            Ok(short) => i64::from(short.cast_signed()),
            Err(_) => address.cast_signed(),
        };
        let sign = if distance < 0 { '-' } else { '+' };
        write!(f, ".{sign}{:#x}", distance.unsigned_abs())
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Header {
        schema: &'static str,
        version: u32,
    },
    Group {
        #[serde(skip_serializing_if = "Option::is_none")]
        hart: Option<u32>,
        offset: u64,
        bytes: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pc: Option<Hex>,
        items: Vec<JsonItem>,
    },
    Stray {
        #[serde(skip_serializing_if = "Option::is_none")]
        hart: Option<u32>,
        offset: u64,
        count: u64,
    },
    Bad {
        #[serde(skip_serializing_if = "Option::is_none")]
        hart: Option<u32>,
        offset: u64,
        count: u64,
        at: u64,
        group: u64,
        fault: &'static str,
        text: &'static str,
        value: Hex,
    },
}

#[derive(Default, Serialize)]
struct JsonItem {
    item: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

fn put(line: &Line, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
