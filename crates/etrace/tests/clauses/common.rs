//! What the clause tests share: small programs, ways through them, packets and
//! events as text, and the round trip from steps to bytes to events.

use hartrace_flow::decode::Framing as _;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use hartrace_etrace::{
    BranchMap, Config, Decoder, Encapsulated, Encoder, Framer, Ioption, Kind, Packet, Piece,
    QualStatus, Report, ResyncUnit, Start, Support, Trap as TrapPacket, Version,
};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Cause, Check, Consumer, Effects, Event, Gap, HartId, Image, Ingress, IngressSink, Mode,
    Observer, Port, PortConfig, Retirement, SpaceId, Step, Trap, Unreported,
};
use hartrace_isa::{Isa, ItypeTable, Xlen};

use crate::book;

#[path = "../../../flow/tests/shared/paths.rs"]
mod paths;
#[path = "../shared/plain.rs"]
mod plain_decoder;
pub(crate) use paths::{Do, asm, code, go, image};

pub(crate) const VERSIONS: [Version; 2] = [Version::V1_1_1, Version::V2_0];
pub(crate) const DRAFT: Version = Version::V1_1_1;
pub(crate) const RATIFIED: Version = Version::V2_0;
pub(crate) const REVIEW: Version = Version::V2_05;

/// An image for RV64 with compressed instructions.
pub(crate) fn rv64(parts: &[(u64, &[u32])]) -> Image {
    image(Isa::RV64GC, parts)
}

/// Default settings of a version, with periodic synchronisation far away.
pub(crate) fn plain(version: Version) -> Config {
    Config::new(version, Xlen::Rv64)
}

/// The same for both versions.
pub(crate) fn both() -> [Config; 2] {
    VERSIONS.map(plain)
}

pub(crate) const fn exception(code: u32) -> Cause {
    Cause::Exception(Some(code))
}

pub(crate) const fn interrupt(code: u32) -> Cause {
    Cause::Interrupt(Some(code))
}

/// Several pieces of a way.
pub(crate) fn way(parts: &[&[Do]]) -> Vec<Do> {
    parts.concat()
}

/// A path of one hart as steps.
pub(crate) fn steps(image: &Image, path: &[Do]) -> Vec<Step> {
    let steps = paths::steps(image, path).into_iter();
    steps.map(|(_, step)| step).collect()
}

/// A single-retirement port.
pub(crate) fn port(config: &Config, isa: Isa) -> PortConfig {
    PortConfig {
        table: match config.version {
            Version::V1_1_1 => ItypeTable::ETrace111,
            Version::V2_0 | Version::V2_05 => ItypeTable::ETrace20,
        },
        ..PortConfig::new(isa)
    }
}

const HART: HartId = HartId(0);

/// The stream that an encoder behind such a port makes of steps.
pub(crate) fn encode_at(
    port: PortConfig,
    config: &Config,
    filter: &FilterConfig,
    steps: &[Step],
) -> Vec<u8> {
    let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let mut port = Port::new(port, encoder.with_filter(filter));
    for step in steps {
        port.step(HART, step, &Effects::default());
    }
    port.finish();
    port.into_sink().into_sink()
}

pub(crate) fn encode(config: &Config, image: &Image, way: &[Do]) -> Vec<u8> {
    let port = port(config, image.isa().unwrap());
    let filter = FilterConfig::default();
    encode_at(port, config, &filter, &steps(image, way))
}

/// The packets that blocks of the port lead to.
pub(crate) fn encode_blocks(config: &Config, blocks: &[Ingress]) -> Vec<Packet> {
    let mut encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    for block in blocks {
        encoder.ingress(HART, block);
    }
    encoder.finish();
    packets(config, &encoder.into_sink())
}

/// The packets of a stream.
pub(crate) fn packets(config: &Config, bytes: &[u8]) -> Vec<Packet> {
    let mut layout = config.layout();
    let read = |piece: &&[u8]| {
        let packet = Packet::read(&piece[1..], &layout).unwrap();
        layout.follow(&packet);
        packet
    };
    pieces(bytes).iter().map(read).collect()
}

/// The packets of a stream with their headers.
pub(crate) fn pieces(bytes: &[u8]) -> Vec<&[u8]> {
    let mut framer = Framer::new();
    let mut rest = bytes;
    let mut all = Vec::new();
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        let Piece::Packet(Encapsulated {
            src: 0,
            kind: Kind::Instruction,
            payload,
            ..
        }) = piece
        else {
            panic!("{piece:?}");
        };
        all.push(&bytes[at as usize..][..=payload.len()]);
    }
    assert!(!framer.is_inside());
    all
}

/// The stream of packets.
pub(crate) fn stream(config: &Config, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for packet in packets {
        let payload = packet.write(&config.layout());
        payload.write_framed(Kind::Instruction, &mut bytes);
    }
    bytes
}

/// Packets as lines of text, with whole addresses: what a reader of the
/// specification would call them.
pub(crate) fn text(config: &Config, packets: &[Packet]) -> Vec<String> {
    let mut base = 0;
    packets.iter().map(|p| line(config, p, &mut base)).collect()
}

fn line(config: &Config, packet: &Packet, base: &mut u64) -> String {
    let lsb = config.iaddress_lsb;
    let name = if config.iret_ext { "irets" } else { "irdepth" };
    let returns = |irreport, irdepth| match irreport {
        true => format!(" {name} {irdepth}"),
        false => String::new(),
    };
    let mut report = |r: &Report| {
        let unused = 64 - u32::from(config.iaddress_width - lsb);
        let field = ((r.address << unused) as i64 >> unused) as u64;
        let from = if config.full_address { 0 } else { *base };
        *base = extended(config, from.wrapping_add(field << lsb));
        let mut line = format!("{base:x}");
        for (on, word) in [(r.notify, " notify"), (r.updiscon, " updiscon")] {
            line.push_str(if on { word } else { "" });
        }
        line + &returns(r.irreport, r.irdepth)
    };
    match packet {
        Packet::Address(r) => format!("address {}", report(r)),
        Packet::Branches { map, address } => {
            let address = address.as_ref().map(|r| format!(" {}", report(r)));
            format!("branches {}{}", letters(*map), address.unwrap_or_default())
        }
        Packet::BranchCount {
            branch_count,
            address,
        } => {
            let count = u64::from(*branch_count) + 31;
            let fails = address.as_ref().is_none_or(|(failed, _)| *failed);
            let fails = if fails { " fails" } else { "" };
            let address = address.as_ref().map(|(_, r)| format!(" {}", report(r)));
            format!("count {count}{fails}{}", address.unwrap_or_default())
        }
        Packet::JumpTarget {
            index,
            map,
            irreport,
            irdepth,
        } => {
            let line = format!("index {index} {}", letters(*map));
            line.trim_end().to_owned() + &returns(*irreport, *irdepth)
        }
        Packet::Start(s) => {
            *base = full(config, s.address);
            let taken = if s.branch { "" } else { " taken" };
            let owner = owner(config, s.privilege, s.time, s.context);
            format!("start {base:x}{taken}{owner}")
        }
        Packet::Trap(t) => {
            let address = t.address.map(|a| full(config, a));
            *base = address.unwrap_or(*base);
            let kind = if t.interrupt {
                "interrupt"
            } else {
                "exception"
            };
            let place = if t.thaddr { "to" } else { "at" };
            let taken = if t.branch { "" } else { " taken" };
            let owner = owner(config, t.privilege, t.time, t.context);
            let tval = t.tval.map(|tval| format!(" tval {tval:x}"));
            let tval = tval.unwrap_or_default();
            let address = address.map_or_else(|| "?".to_owned(), |a| format!("{a:x}"));
            format!("{kind} {} {place} {address}{taken}{tval}{owner}", t.ecause)
        }
        Packet::Context(c) => {
            let owner = owner(config, c.privilege, c.time, c.context);
            format!("context{owner}")
        }
        Packet::Support(s) => {
            let on = if s.ienable { "on" } else { "off" };
            let status = match s.qual_status {
                QualStatus::NoChange => "",
                QualStatus::EndedRep => " ended_rep",
                QualStatus::TraceLost => " trace_lost",
                QualStatus::EndedNtr => " ended_ntr",
            };
            let modes = config.ioptions.order().iter().enumerate();
            let on_bits = modes.filter(|(bit, _)| s.ioptions >> bit & 1 != 0);
            let optional = |option: &Ioption| {
                !matches!(option, Ioption::FullAddress | Ioption::SequentialJump)
            };
            let words: String = on_bits
                .filter_map(|(_, option)| option.filter(optional))
                .map(|option| format!(", {}", option.words()))
                .collect();
            format!("support {on}{status}{words}")
        }
    }
}

fn full(config: &Config, field: u64) -> u64 {
    extended(config, field << config.iaddress_lsb)
}

/// The highest bit that is told goes on to the top.
fn extended(config: &Config, address: u64) -> u64 {
    let unused = 64 - u32::from(config.iaddress_width);
    config
        .xlen
        .wrap(((address << unused) as i64 >> unused) as u64)
}

/// Outcomes, the oldest first: T taken, N not.
fn letters(map: BranchMap) -> String {
    let letter = |i: u8| match map.bits >> i & 1 {
        0 => 'T',
        _ => 'N',
    };
    (0..map.count).map(letter).collect()
}

/// The mode if it is not M, and what else there is.
fn owner(config: &Config, privilege: u8, time: u64, context: u64) -> String {
    let mode = match Mode::from_code(privilege) {
        Some(Mode::M) => String::new(),
        Some(mode) => format!(" in {}", mode.name()),
        None => format!(" in {privilege}?"),
    };
    let part = |width, name, value| match width {
        0 => String::new(),
        _ => format!(" {name} {value:x}"),
    };
    let time = part(config.time_width, "time", time);
    mode + &time + &part(config.context_width, "context", context)
}

/// Everything a decoder gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Events(pub(crate) Vec<Event>);

impl Consumer for Events {
    fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
        self.0.push(*event);
        ControlFlow::Continue(())
    }
}

pub(crate) fn decode(config: &Config, image: &Image, bytes: &[u8]) -> Events {
    let mut events = Events::default();
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    assert_eq!(decoder.feed(bytes, &mut events), bytes.len());
    decoder.finish(&mut events);
    events
}

/// The same, with another decoder after each packet.
fn decode_in_pieces(config: &Config, image: &Image, bytes: &[u8]) -> Events {
    let mut events = Events::default();
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    for piece in pieces(bytes) {
        decoder.feed(piece, &mut events);
        let mut other = decoder.another();
        other.resume(&decoder.seam());
        decoder = other;
    }
    decoder.finish(&mut events);
    events
}

impl Events {
    /// As lines of text: runs as first address, number of instructions and
    /// where they went; traps, contexts, marks and gaps in words.
    pub(crate) fn text(&self) -> Vec<String> {
        let line = |event: &Event| match event {
            Event::Run(r) => format!("{:x}+{}>{:x}", r.start, r.insns, r.next),
            Event::Trap(t) => {
                let (kind, code) = match t.cause {
                    Cause::Exception(code) => ("exception", code),
                    Cause::Interrupt(code) => ("interrupt", code),
                    Cause::Unknown => ("trap", None),
                };
                let code = code.map_or_else(String::new, |c| format!(" {c}"));
                let hex = |a: Option<u64>| a.map_or_else(|| "?".into(), |a| format!("{a:x}"));
                let (epc, handler, tval) = (hex(t.epc), hex(t.handler), hex(t.tval));
                format!("{kind}{code} at {epc} to {handler} tval {tval}")
            }
            Event::Context(o) => {
                let mode = o.mode.map_or("?", Mode::name);
                let context = o.context.map(|c| format!(" context {:x}", c.0));
                format!("in {mode}{}", context.unwrap_or_default())
            }
            Event::Gap(g) => format!("gap {}", g.reason.code),
            Event::Mark(m) => format!("{m:?}").to_lowercase(),
            Event::Time(t) => format!("time {t:x}"),
            other => format!("{other:?}"),
        };
        // Packets of one rule often have no end; `warned` has what is reported.
        let said = |event: &&Event| !matches!(event, Event::Warning(_));
        self.0.iter().filter(said).map(line).collect()
    }

    /// The addresses of all instructions.
    pub(crate) fn pcs(&self, image: &Image) -> Vec<u64> {
        let mut pcs = Vec::new();
        for event in &self.0 {
            let Event::Run(run) = event else { continue };
            let mut pc = run.start;
            for _ in 0..run.insns {
                pcs.push(pc);
                let f = image.fetch(SpaceId::FIRST, pc).unwrap();
                pc = pc.wrapping_add(u64::from(f.len));
            }
            assert_eq!(pc, run.end);
        }
        pcs
    }

    /// The codes of the warnings.
    pub(crate) fn warned(&self) -> Vec<&'static str> {
        let warned = self.0.iter().filter_map(|e| match e {
            Event::Warning(warning) => Some(warning.reason.code),
            _ => None,
        });
        warned.collect()
    }

    /// The codes of gaps in data trace.
    pub(crate) fn data_gaps(&self) -> Vec<&'static str> {
        let gaps = self.0.iter().filter_map(|e| match e {
            Event::DataGap(gap) => Some(gap.reason.code),
            _ => None,
        });
        gaps.collect()
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        let gaps = self.0.iter().filter_map(|e| match e {
            Event::Gap(gap) => Some(*gap),
            _ => None,
        });
        gaps.collect()
    }

    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.gaps().iter().map(|gap| gap.reason.code).collect()
    }

    pub(crate) fn traps(&self) -> Vec<Trap> {
        let traps = self.0.iter().filter_map(|e| match e {
            Event::Trap(trap) => Some(*trap),
            _ => None,
        });
        traps.collect()
    }
}

/// What the packets say, as text; nothing may be wrong with them.
#[track_caller]
pub(crate) fn events(config: &Config, image: &Image, packets: &[Packet]) -> Vec<String> {
    let bytes = stream(config, packets);
    let events = decode(config, image, &bytes);
    assert_eq!(decode_in_pieces(config, image, &bytes), events, "in pieces");
    agrees(config, image, &bytes, &events);
    events.text()
}

/// The same without the start that every stream has: tracing starts, in M.
#[track_caller]
pub(crate) fn tells(config: &Config, image: &Image, packets: &[Packet], expected: &[&str]) {
    let lines = events(config, image, packets);
    assert_eq!(lines[2..], *expected, "{lines:?}");
}

/// What comes out for this way; everybody must be able to decode it.
#[track_caller]
pub(crate) fn sends(config: &Config, image: &Image, way: &[Do], expected: &[&str]) {
    let packets = round_trip(config, image, way);
    assert_eq!(text(config, &packets), expected, "{:?}", config.version);
}

/// Encodes a way, decodes it and compares. Gives the packets.
#[track_caller]
pub(crate) fn round_trip(config: &Config, image: &Image, way: &[Do]) -> Vec<Packet> {
    let port = port(config, image.isa().unwrap());
    let none = FilterConfig::default();
    let steps = steps(image, way);
    let bytes = encode_at(port, config, &none, &steps);
    // "The same as if retiring one instruction at a time."
    if config.resync.unit != ResyncUnit::Cycles {
        for room in [3, 16] {
            let retirement = Retirement::Block(room);
            let other = encode_at(PortConfig { retirement, ..port }, config, &none, &steps);
            let (one, many) = (packets(config, &bytes), packets(config, &other));
            let (one, many) = (text(config, &one), text(config, &many));
            assert_eq!(one, many, "blocks of {room} halfwords");
        }
    }
    understood(config, image, &steps, &bytes);
    packets(config, &bytes)
}

/// As [`sends`] in an optional mode, which the decoder of chapter 11 does not know.
#[track_caller]
pub(crate) fn sends_modal(config: &Config, image: &Image, way: &[Do], expected: &[&str]) {
    let packets = modal_trip(config, image, way);
    // Without the first support packet, which reports the modes.
    let lines = &text(config, &packets)[1..];
    assert_eq!(lines, expected, "{:?}", config.version);
}

/// As [`round_trip`], likewise.
#[track_caller]
pub(crate) fn modal_trip(config: &Config, image: &Image, way: &[Do]) -> Vec<Packet> {
    let port = port(config, image.isa().unwrap());
    let none = FilterConfig::default();
    let steps = steps(image, way);
    let bytes = encode_at(port, config, &none, &steps);
    for room in [3, 16] {
        let retirement = Retirement::Block(room);
        let other = encode_at(PortConfig { retirement, ..port }, config, &none, &steps);
        assert_eq!(other, bytes, "blocks of {room} halfwords");
    }
    decodes(config, image, &steps, &bytes);
    packets(config, &bytes)
}

/// Whether these bytes tell these steps: to the decoder, in one go and in
/// pieces, and to the one of chapter 11.
#[track_caller]
pub(crate) fn understood(config: &Config, image: &Image, steps: &[Step], bytes: &[u8]) {
    decodes(config, image, steps, bytes);
    let said = text(config, &packets(config, bytes));
    let retired = |step: &Step| match step {
        Step::Insn(insn) => Some(insn.pc),
        _ => None,
    };
    let pcs: Vec<u64> = steps.iter().filter_map(retired).collect();
    match book::decode(config, image, &packets(config, bytes)) {
        Ok(book) => same(&book, &pcs, &said),
        Err(e) => panic!("by the book: {e}\n{said:#?}"),
    }
}

/// The same for the decoder only.
#[track_caller]
pub(crate) fn decodes(config: &Config, image: &Image, steps: &[Step], bytes: &[u8]) {
    let unreported = Unreported {
        traps: config.version == DRAFT,
        ..Unreported::default()
    };
    decodes_but(config, image, steps, bytes, unreported);
}

/// The same but for what is not told.
#[track_caller]
pub(crate) fn decodes_but(
    config: &Config,
    image: &Image,
    steps: &[Step],
    bytes: &[u8],
    unreported: Unreported,
) {
    let said = || text(config, &packets(config, bytes));
    let mut check = Check::new().without(unreported);
    for step in steps {
        check.step(HART, step, &Effects::default());
    }
    let events = decode(config, image, bytes);
    for event in &events.0 {
        let _ = check.event(HART, event);
    }
    if let Err(difference) = check.result() {
        panic!("{difference}\n{:#?}\n{:#?}", said(), events.text());
    }
    let pieces = decode_in_pieces(config, image, bytes);
    assert_eq!(pieces.text(), events.text(), "in pieces: {:#?}", said());
    agrees(config, image, bytes, &events);
}

/// Whether the plain decoder of the testkit says the same.
#[track_caller]
pub(crate) fn agrees(config: &Config, image: &Image, bytes: &[u8], events: &Events) {
    if !plain_decoder::is_covered(config) {
        return;
    }
    let isa = image.isa().unwrap();
    if let Err(e) = plain_decoder::compare(config, image, isa, bytes, &events.0) {
        let said = text(config, &packets(config, bytes));
        panic!("{e}\n{said:#?}\n{:#?}", events.text());
    }
}

/// Both ways are the same; else tells where they part.
#[track_caller]
pub(crate) fn same(decoded: &[u64], pcs: &[u64], packets: &[String]) {
    if decoded != pcs {
        let equal = decoded.iter().zip(pcs).take_while(|(a, b)| a == b);
        let at = equal.count().saturating_sub(4);
        let part = |pcs: &[u64]| format!("{:x?}", pcs.iter().skip(at).take(8).collect::<Vec<_>>());
        let (decoded, pcs) = (part(decoded), part(pcs));
        panic!("from instruction {at}:\n{decoded}, should be\n{pcs}\n{packets:#?}");
    }
}

/// A difference of addresses as a field.
pub(crate) fn by(config: &Config, difference: i64) -> Report {
    let width = u32::from(config.iaddress_width - config.iaddress_lsb);
    let field = (difference >> config.iaddress_lsb) as u64;
    Report {
        address: field & (u64::MAX >> (64 - width)),
        ..Report::default()
    }
}

/// Format 2.
pub(crate) fn address(config: &Config, difference: i64) -> Packet {
    Packet::Address(by(config, difference))
}

/// Format 2 with `updiscon`.
pub(crate) fn updiscon(config: &Config, difference: i64) -> Packet {
    Packet::Address(Report {
        updiscon: true,
        ..by(config, difference)
    })
}

/// Format 2 with `notify`.
pub(crate) fn notify(config: &Config, difference: i64) -> Packet {
    Packet::Address(Report {
        notify: true,
        ..by(config, difference)
    })
}

/// Outcomes, the oldest first: T taken, N not.
pub(crate) fn map(outcomes: &str) -> BranchMap {
    let bit = |(i, c)| u32::from(c == 'N') << i;
    BranchMap {
        bits: outcomes.chars().enumerate().map(bit).sum(),
        count: outcomes.len() as u8,
    }
}

/// Format 1 with an address.
pub(crate) fn branches(config: &Config, outcomes: &str, difference: i64) -> Packet {
    Packet::Branches {
        map: map(outcomes),
        address: Some(by(config, difference)),
    }
}

/// Format 1 without one.
pub(crate) fn full_map(outcomes: &str) -> Packet {
    let map = map(outcomes);
    assert_eq!(map.count, 31);
    Packet::Branches { map, address: None }
}

/// Format 3 subformat 0 in M-mode, at no branch or one not taken.
pub(crate) fn start(config: &Config, address: u64) -> Packet {
    start_in(config, address, Mode::M)
}

pub(crate) fn start_in(config: &Config, address: u64, mode: Mode) -> Packet {
    Packet::Start(Start {
        branch: true,
        privilege: mode.code(),
        address: address >> config.iaddress_lsb,
        ..Start::default()
    })
}

/// Format 3 subformat 0 at a taken branch.
pub(crate) fn start_taken(config: &Config, address: u64) -> Packet {
    Packet::Start(Start {
        privilege: Mode::M.code(),
        address: address >> config.iaddress_lsb,
        ..Start::default()
    })
}

/// Format 3 subformat 1 for an exception in M-mode, `tval` 0.
pub(crate) fn trap(config: &Config, ecause: u32, thaddr: bool, address: u64) -> TrapPacket {
    TrapPacket {
        branch: true,
        privilege: Mode::M.code(),
        ecause,
        thaddr,
        address: Some(address >> config.iaddress_lsb),
        tval: Some(0),
        ..TrapPacket::default()
    }
}

/// The same for an interrupt.
pub(crate) fn irq(config: &Config, ecause: u32, thaddr: bool, address: u64) -> TrapPacket {
    TrapPacket {
        interrupt: true,
        tval: (config.version == DRAFT).then_some(0),
        ..trap(config, ecause, thaddr, address)
    }
}

/// Format 3 subformat 3.
pub(crate) fn support(qual_status: QualStatus) -> Packet {
    Packet::Support(Support {
        ienable: true,
        qual_status,
        ..Support::default()
    })
}

/// An instruction of so many bytes in a block of its own.
pub(crate) fn one(iaddr: u64, bytes: u32) -> Ingress {
    Ingress {
        iaddr,
        iretire: bytes / 2,
        ilastsize: u8::from(bytes == 4),
        ..Ingress::default()
    }
}

/// How often each line comes.
pub(crate) fn tally(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let first = line.split(' ').next().unwrap();
        *counts.entry(first).or_default() += 1;
    }
    counts
}
