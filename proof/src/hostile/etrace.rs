//! E-Trace: the bytes of packets, and packets as rows of a table.

use std::ops::ControlFlow;

use hartrace_etrace::{
    BranchMap, Config, Context, DataPacket, DataSupport, Decoder, Encapsulation, Fault, Form,
    Framer, Kind, Layout, MAX_PAYLOAD, Outstanding, Packet, Piece, QualStatus, Report, Start,
    Support, Trap, boundary, csv, explain, explain_data, guess, is_framed,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{
    Consumer, Effects, Event, HartId, Image, Insn, Mode, Observer, Port, SpaceId, Step,
};
use hartrace_isa::{Isa, Xlen, length};

use super::trace::BASE;
use super::{Input, ensure};
use crate::etrace::ETrace;
use crate::etrace::data::numbered;
use crate::trace::Format;

/// A stretch of a stream that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stretch {
    Packet(Kind, Vec<u8>),
    Idle(u64),
    Bad(Fault, u64),
    Lost(u16, Fault, u64),
}

/// The layout of some setting, with a predictor, a cache and implicit
/// exceptions or without.
fn layout(input: &mut Input<'_>) -> Layout {
    let isa = if input.flag() {
        Isa::RV64GC
    } else {
        Isa::RV32GC
    };
    let plain = ETrace::setting(input.number(2), isa).config;
    let mut config = plain.clone();
    config.bpred_size = input.below(16);
    config.cache_size = input.below(16);
    if config.bpred_size > 0 && config.cache_size > 0 {
        config.f0s_width = config.f0s_width.max(1);
    }
    let layout = match config.validate() {
        Ok(()) => config.layout(),
        Err(_) => plain.layout(),
    };
    Layout {
        implicit_exception: input.flag(),
        ..layout
    }
}

/// Any bytes: they are divided the same way in any chunks, every byte is in one
/// piece, what a packet says is written and read back, as bytes and as a row;
/// the guess at the settings and the search for places to begin take anything.
pub(super) fn packet(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let layout = layout(&mut input);
    let chunk = 1 + usize::from(input.byte());
    let from = input.number(2) as usize;
    let form = form(&mut input);
    let stream = input.rest();

    let pieces = divide(form, [stream])?;
    let again = divide(form, stream.chunks(chunk))?;
    ensure(pieces == again, || {
        format!("{pieces:?}, in chunks {again:?}")
    })?;
    for piece in &pieces {
        if let Stretch::Packet(Kind::Instruction, payload) = piece {
            says(payload, &layout)?;
        }
    }
    says(stream.get(..32).unwrap_or(stream), &layout)?;
    if let Some(at) = boundary(stream, from, &form) {
        ensure(at > from && at <= stream.len(), || format!("boundary {at}"))?;
    }
    let guessed = guess(stream, Xlen::Rv64, None);
    ensure(guessed.is_some() == is_framed(stream), || {
        format!("{guessed:?}")
    })
}

/// Some encapsulation.
pub(super) fn form(input: &mut Input<'_>) -> Encapsulation {
    let forms = [
        Form::Reference,
        Form::Riscv,
        Form::Smi,
        Form::Atb,
        Form::Esp32,
        Form::Slots,
    ];
    let (which, parameters) = (input.byte(), input.byte());
    let form = forms.get(usize::from(which) % forms.len());
    let form = Encapsulation::new(form.copied().unwrap_or_default());
    let riscv = matches!(form.form, Form::Riscv | Form::Slots);
    let (smi, atb) = (form.form == Form::Smi, form.form == Form::Atb);
    Encapsulation {
        src_bits: if riscv || smi { parameters % 17 } else { 0 },
        time_bytes: match parameters >> 5 {
            time if riscv => time + 1 - (time & 1),
            time if smi || atb => time & 2,
            _ => 0,
        },
        type_bits: match parameters >> 3 & 3 {
            bits if riscv => bits,
            bits if atb => bits & 1,
            _ => 0,
        },
        slot_bytes: 33 + which % 32,
        marks: form.form == Form::Riscv && which & 0x80 != 0,
        ..form
    }
}

/// All pieces of a stream in chunks; padding is put together.
fn divide<'a>(
    form: Encapsulation,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Stretch>, String> {
    let mut framer = Framer::of(form);
    let mut all = Vec::new();
    let (mut next, mut total) = (0, 0);
    let mut take = |at: u64, piece: Piece<'_>| {
        ensure(at == next, || format!("{at}, not {next}"))?;
        next += Framer::length(&piece) as u64;
        match (piece, all.last_mut()) {
            (Piece::Idle(n), Some(Stretch::Idle(sum))) => *sum += n,
            (Piece::Idle(n), _) => all.push(Stretch::Idle(n)),
            (Piece::Packet(packet), _) => {
                all.push(Stretch::Packet(packet.kind, packet.payload.to_vec()));
            }
            (Piece::Bad(fault, n), _) => all.push(Stretch::Bad(fault, n)),
            (Piece::Lost(src, fault, value, _), _) => {
                all.push(Stretch::Lost(src, fault, value));
            }
        }
        Ok::<(), String>(())
    };
    for mut chunk in chunks {
        total += chunk.len() as u64;
        while let Some((at, piece)) = framer.next_piece(&mut chunk) {
            take(at, piece)?;
        }
    }
    if let Some((at, piece)) = framer.finish() {
        take(at, piece)?;
    }
    ensure(next == total, || format!("{next} of {total} bytes"))?;
    Ok(all)
}

/// What a packet says is written and read back.
fn says(payload: &[u8], layout: &Layout) -> Result<(), String> {
    let read = Packet::read(payload, layout);
    let (fields, fault) = explain(payload, layout);
    ensure(fault == read.err(), || format!("{fault:?}, but {read:?}"))?;
    let mut bit = 0;
    for field in &fields {
        ensure(field.first_bit == bit && field.sent <= field.bits, || {
            format!("{field:?} at {bit}")
        })?;
        bit += field.bits;
    }
    let Ok(packet) = read else {
        return Ok(());
    };
    let written = packet.write(layout);
    let again = Packet::read(written.bytes(), layout);
    ensure(again == Ok(packet), || {
        format!("{packet:?}, again {again:?}")
    })?;
    // It may be longer: bits after the branches of a map, which mean nothing,
    // may have been what let it be short.
    ensure(written.bytes().len() <= MAX_PAYLOAD, || {
        format!("{packet:?} is too long")
    })?;
    let mut framed = Vec::new();
    written.write_framed(Kind::Instruction, &mut framed);
    let whole = divide(Encapsulation::default(), [&framed[..]])?;
    let expected = Stretch::Packet(Kind::Instruction, written.bytes().to_vec());
    ensure(whole == [expected], || format!("{whole:?}"))?;
    let mut row = String::new();
    csv::row(&packet, layout, &mut row);
    let again = csv::parse_row(&row, layout);
    ensure(again == Ok(packet), || format!("{row}: {again:?}"))
}

/// Any bytes as data packets of any setting: each is read and written again, or
/// refused as `explain_data` says; the fast path reads the same; and a stream of them
/// after a start of a program decodes to boundedly many events, the same in any
/// chunks.
pub(super) fn data(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let (config, _) = numbered(input.number(4), Isa::RV64GC);
    let chunk = 1 + usize::from(input.byte());
    let stream = input.rest();
    let layout = config.data_layout().ok_or("no data trace")?;
    let mut outstanding = Outstanding::default();
    for payload in stream.chunks(11) {
        let read = DataPacket::read(payload, &layout, &outstanding);
        let (_, fault) = explain_data(payload, &layout, &outstanding);
        ensure(fault == read.err(), || format!("{fault:?}, but {read:?}"))?;
        let Ok(packet) = read else { continue };
        let written = packet.write(&layout, &outstanding);
        let again = DataPacket::read(written.bytes(), &layout, &outstanding);
        ensure(again == Ok(packet), || {
            format!("{packet:?}, again {again:?}")
        })?;
        outstanding.note(&packet);
    }
    let once = events(&config, [stream])?;
    let again = events(&config, stream.chunks(chunk))?;
    ensure(once == again, || format!("{once:?}, in chunks {again:?}"))
}

/// What bytes after a start packet decode to, in numbers: instructions, accesses with
/// and without an instruction, everything else.
fn events<'b>(
    config: &Config,
    chunks: impl IntoIterator<Item = &'b [u8]>,
) -> Result<[u64; 4], String> {
    struct Count([u64; 4]);
    impl Consumer for Count {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            let [insns, tied, loose, others] = &mut self.0;
            match event {
                Event::Run(run) => *insns += u64::from(run.insns),
                Event::Access(access) if access.insn.is_some() => *tied += 1,
                Event::Access(_) => *loose += 1,
                _ => *others += 1,
            }
            ControlFlow::Continue(())
        }
    }
    // lw, sd, a branch back, amoadd.w, csrrw, ret.
    let code = [
        0x0005_a503u32,
        0x00a5_b423,
        0xfe05_0ce3,
        0x00b6_252f,
        0x3405_9573,
        0x0000_8067,
    ];
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    let start = Packet::Start(Start {
        branch: true,
        privilege: 3,
        address: 0x1000 >> 1,
        ..Start::default()
    });
    let mut bytes = Vec::new();
    start
        .write(&config.layout())
        .write_framed(Kind::Instruction, &mut bytes);
    let text = |e: hartrace_etrace::ConfigError| e.to_string();
    let mut decoder = Decoder::new(config.clone(), &image).map_err(text)?;
    let mut tie = config.tie(&image).ok_or("no data trace")?;
    let mut count = Count([0; 4]);
    decoder.feed(&bytes, &mut tie.to(&mut count));
    for mut chunk in chunks {
        while !chunk.is_empty() {
            let used = decoder.feed(chunk, &mut tie.to(&mut count));
            chunk = chunk.get(used.max(1)..).unwrap_or_default();
        }
    }
    let mut tied = tie.to(&mut count);
    decoder.finish(&mut tied);
    tied.finish();
    Ok(count.0)
}

/// Accesses of every kind, split and unified, and packets between them.
pub(super) fn data_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for number in [0u32, 9, 27, 54, 1000, 77_777, 500_000] {
        let (config, _) = numbered(number.into(), Isa::RV64GC);
        let Some(layout) = config.data_layout() else {
            continue;
        };
        let mut seed = number.to_le_bytes().to_vec();
        seed.push(40);
        let outstanding = Outstanding::default();
        for size in 0..4 {
            let transfer = DataPacket::Transfer {
                multiple: false,
                store: size & 1 != 0,
                aligned: true,
                size,
                diff: 0,
                data: Some(0x5a),
                address: Some(0x8000_0000 >> size),
            };
            let atomic = DataPacket::Atomic {
                subtype: size,
                size: 2,
                diff: 0,
                operand: Some(7),
                data: Some(0xff),
                address: Some(0x2000_0000),
            };
            for packet in [transfer, atomic] {
                let payload = packet.write(&layout, &outstanding);
                payload.write_framed(Kind::Data, &mut seed);
            }
        }
        let branches = Packet::Branches {
            map: BranchMap { bits: 2, count: 2 },
            address: Some(Report::default()),
        };
        branches
            .write(&config.layout())
            .write_framed(Kind::Instruction, &mut seed);
        seeds.push(seed);
    }
    seeds
}

/// Any text as a row of a table: it is a packet or refused, and a packet is
/// written and read back.
pub(super) fn row(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let layout = layout(&mut input);
    let text = String::from_utf8_lossy(input.rest());
    for line in text.split_inclusive('\n') {
        let Ok(packet) = csv::parse_row(line, &layout) else {
            continue;
        };
        let mut row = String::new();
        csv::row(&packet, &layout, &mut row);
        let again = csv::parse_row(&row, &layout);
        ensure(again == Ok(packet), || {
            format!("{packet:?}, again {again:?}")
        })?;
        let payload = packet.write(&layout);
        let again = Packet::read(payload.bytes(), &layout);
        ensure(again == Ok(packet), || {
            format!("{packet:?}, again {again:?}")
        })?;
    }
    Ok(())
}

/// One packet of each kind.
fn packets() -> [Packet; 9] {
    let report = Report {
        address: 0x7ffc,
        notify: true,
        ..Report::default()
    };
    let map = BranchMap {
        bits: 0x55,
        count: 7,
    };
    let full = BranchMap {
        bits: 0x7fff_fff0,
        count: 31,
    };
    [
        Packet::Support(Support {
            ienable: true,
            encoder_mode: 0,
            qual_status: QualStatus::EndedRep,
            ioptions: 0x12,
            data: Some(DataSupport::default()),
        }),
        Packet::Start(Start {
            branch: true,
            privilege: 3,
            time: 99,
            context: 0x1234,
            address: 0x4000_0000,
        }),
        Packet::Trap(Trap {
            branch: false,
            privilege: 1,
            time: 7,
            context: 1,
            ecause: 2,
            interrupt: false,
            thaddr: true,
            address: Some(0x4000_0040),
            tval: Some(0x8000_0000),
        }),
        Packet::Context(Context {
            privilege: 0,
            time: 1,
            context: 5,
        }),
        Packet::Branches {
            map,
            address: Some(report),
        },
        Packet::Branches {
            map: full,
            address: None,
        },
        Packet::Address(report),
        Packet::BranchCount {
            branch_count: 1000,
            address: Some((true, report)),
        },
        Packet::JumpTarget {
            index: 5,
            map,
            irreport: false,
            irdepth: 0,
        },
    ]
}

/// The choices of a seed.
fn choices(number: u8) -> Vec<u8> {
    vec![number & 1, number, 0, number % 7, number % 5, number & 1]
}

pub(super) fn packet_seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let mut bytes = choices(number);
        let layout = layout(&mut Input::new(&bytes));
        bytes.extend_from_slice(&[9, 3, 0, 0, 0]);
        for packet in packets() {
            let payload = packet.write(&layout);
            payload.write_framed(Kind::Instruction, &mut bytes);
        }
        bytes.extend_from_slice(&[0, 0, 0x63, 1, 2, 3]);
        bytes
    };
    (0..32).map(seed).collect()
}

pub(super) fn row_seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let bytes = choices(number);
        let layout = layout(&mut Input::new(&bytes));
        let mut text = String::new();
        for packet in packets() {
            csv::row(&packet, &layout, &mut text);
            text.push_str("\r\n");
        }
        [bytes, text.into_bytes()].concat()
    };
    (0..16).map(seed).collect()
}

/// A loop, a call and a return, again and again.
const PROGRAM: [(u64, u32); 6] = [
    (0, 0x0001),       // c.nop
    (2, 0xfd7d),       // c.bnez a0, 0
    (4, 0x0080_00ef),  // jal ra, 12
    (8, 0xff9f_f06f),  // j 0
    (12, 0x8082),      // c.jr ra
    (14, 0x0000_0073), // ecall
];

/// Seeds for the flow: the program above, and its trace as the encoder of some
/// setting makes it. They have format 0, each mode and every version.
pub(super) fn flow_seeds() -> Vec<Vec<u8>> {
    (0..96).filter_map(flow_seed).collect()
}

fn flow_seed(number: u8) -> Option<Vec<u8>> {
    let isa = match number & 1 {
        0 => Isa::RV32GC,
        _ => Isa::RV64GC,
    };
    let mut code = Vec::new();
    for (_, bits) in PROGRAM {
        let bytes = bits.to_le_bytes();
        code.extend_from_slice(bytes.get(..usize::from(length(bits as u16)))?);
    }
    let setting = ETrace::setting(number.into(), isa);
    let encoder = ETrace::encoder(&setting.config, Vec::new()).ok()?;
    let mut port = Port::new(setting.port, encoder);
    let mut go = |from: u64, to: u64| {
        let bits = PROGRAM.iter().find(|insn| insn.0 == from);
        let insn = Insn {
            pc: BASE + from,
            next: BASE + to,
            bits: bits.map_or(0, |insn| insn.1),
            mode: Mode::M,
            ..Insn::default()
        };
        port.step(HartId(0), &Step::Insn(insn), &Effects::NONE);
    };
    for rounds in [3, 40, 1, 70, 40] {
        for round in 1..=rounds {
            go(0, 2);
            go(2, if round < rounds { 0 } else { 4 });
        }
        go(4, 12);
        go(12, 8);
        go(8, 0);
    }
    port.finish();
    let mut seed = vec![number & 1, number, 0, 3, code.len() as u8];
    seed.extend_from_slice(&code);
    seed.extend_from_slice(&ETrace::into_out(port.into_sink()));
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds have every version, and format 0 of both kinds.
    #[test]
    fn seeds_of_the_flow_have_all_modes() {
        let (mut versions, mut counts, mut indexes) = (Vec::new(), 0, 0);
        for number in 0..96 {
            let isa = [Isa::RV32GC, Isa::RV64GC][usize::from(number & 1)];
            let config = ETrace::setting(number.into(), isa).config;
            let seed = flow_seed(number).unwrap();
            let trace = &seed[5 + usize::from(seed[4])..];
            for piece in divide(Encapsulation::default(), [trace]).unwrap() {
                let Stretch::Packet(_, payload) = piece else {
                    continue;
                };
                match Packet::read(&payload, &config.layout()) {
                    Ok(Packet::BranchCount { .. }) => counts += 1,
                    Ok(Packet::JumpTarget { .. }) => indexes += 1,
                    _ => {}
                }
            }
            versions.push(config.version);
        }
        versions.dedup();
        assert!(versions.len() > 2 && counts > 20 && indexes > 20);
    }
}
