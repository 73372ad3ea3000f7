//! Comparison with riscv-etrace: the same streams and rows through its decoder
//! and encoder and through ours, alternating in one run.

use std::num::NonZeroU8;

use hartrace_etrace::{Config, Decoder, Encoder, Ending, ResyncUnit, Version};
use hartrace_flow::{
    HartId, Ingress, IngressSink, ItypeWidth, Observer, Port, PortConfig, Retirement, Retires,
};
use hartrace_isa::{Isa, ItypeTable, Xlen};
use riscv_etrace::binary::{self, Adaptable};
use riscv_etrace::config::Parameters;
use riscv_etrace::tracer::{self, Tracer, item};
use riscv_etrace::{generator, instruction, packet, types};

use crate::bench::Bench;
use crate::trace::recorded::Recorded;
use crate::trace::speed::Count;

/// Instructions of each program.
const INSNS: u64 = 10_000_000;

/// Repetitions; the best counts.
const REPETITIONS: u32 = 5;

const HART: HartId = HartId(0);

/// `etrace-peer [PROGRAM...]`.
///
/// # Errors
///
/// Programs that cannot be run, and streams that either side cannot decode.
pub fn command(args: &[String]) -> Result<(), String> {
    let default = ["long-rv64gc", "bench-sort-rv64gc", "bench-crc-rv64gc"];
    let default: Vec<String> = default.map(String::from).to_vec();
    let names = if args.is_empty() { &default } else { args };
    for name in names {
        let program = Recorded::named(name)?;
        beside(&program)?;
    }
    Ok(())
}

/// Settings that both have: the baseline, no resync (the peer's callers ask for
/// one, its encoder does not count).
fn config(isa: Isa) -> Config {
    let mut config = Config::new(Version::V2_0, isa.xlen());
    config.context_width = 32;
    config.ecause_width = 5;
    config.resync.unit = ResyncUnit::Off;
    config.ending = Ending::Reported;
    config
}

fn parameters(isa: Isa) -> Option<Parameters> {
    let width = match isa.xlen() {
        Xlen::Rv32 => 32,
        Xlen::Rv64 => 64,
    };
    Some(Parameters {
        cache_size_p: 0,
        call_counter_size_p: 0,
        context_width_p: NonZeroU8::new(32)?,
        time_width_p: NonZeroU8::new(1)?,
        ecause_width_p: NonZeroU8::new(5)?,
        f0s_width_p: 0,
        iaddress_lsb_p: 1,
        iaddress_width_p: NonZeroU8::new(width)?,
        nocontext_p: false,
        notime_p: true,
        privilege_width_p: NonZeroU8::new(2)?,
        return_stack_size_p: 0,
        sijump_p: false,
    })
}

fn beside(program: &Recorded) -> Result<(), String> {
    let config = config(program.isa);
    let port = PortConfig {
        itype_width: ItypeWidth::Four,
        table: ItypeTable::ETrace20,
        retirement: Retirement::Single,
        sijump: false,
        retires: Retires::Neither,
        ..PortConfig::new(program.isa)
    };
    let mut rows = Rows::default();
    let insns = {
        let mut port = Port::new(port, &mut rows);
        let insns = program.run(INSNS, &mut port, |_| false)?;
        port.finish();
        insns
    };
    let Rows(rows) = rows;
    let trace = ours_encoded(&config, &rows)?;
    let params = parameters(program.isa).ok_or("widths")?;
    let decoded = (
        ours_decoded(&config, program, &trace)?,
        theirs_decoded(&params, program, &trace)?,
    );
    if decoded != (insns, insns) {
        return Err(format!(
            "{}: of {insns} instructions {decoded:?}",
            program.name
        ));
    }
    println!(
        "\n{}: {insns} instructions, {} bytes; both decode all of them",
        program.name,
        trace.len()
    );
    let steps: Vec<PeerRow> = rows.iter().filter_map(PeerRow::of).collect();
    let mut bench = Bench::new("instructions");
    bench.measure("their decoder", insns, || {
        theirs_decoded(&params, program, &trace)
    });
    bench.measure("our decoder", insns, || {
        ours_decoded(&config, program, &trace)
    });
    bench.measure("their encoder", insns, || theirs_encoded(&params, &steps));
    bench.measure("our encoder", insns, || ours_encoded(&config, &rows));
    let report = bench.run(REPETITIONS);
    print!("{report}");
    for (ours, theirs) in [
        ("our decoder", "their decoder"),
        ("our encoder", "their encoder"),
    ] {
        if let Some(ratio) = report.ratio(ours, theirs) {
            println!("{ours}: {ratio:.1} times {theirs}");
        }
    }
    Ok(())
}

/// Keeps the rows of the port.
#[derive(Default)]
struct Rows(Vec<Ingress>);

impl IngressSink for &mut Rows {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        self.0.push(*block);
    }
}

fn ours_encoded(config: &Config, rows: &[Ingress]) -> Result<Vec<u8>, String> {
    let mut encoder = Encoder::new(config.clone(), Vec::new()).map_err(|e| e.to_string())?;
    for row in rows {
        encoder.ingress(HART, row);
    }
    encoder.finish();
    Ok(encoder.into_sink())
}

fn ours_decoded(config: &Config, program: &Recorded, trace: &[u8]) -> Result<u64, String> {
    let decoder = Decoder::new(config.clone(), &program.image);
    let mut decoder = decoder.map_err(|e| e.to_string())?;
    let mut count = Count::default();
    decoder.feed(trace, &mut count);
    decoder.finish(&mut count);
    Ok(count.0)
}

/// As its example `simple` does it.
fn theirs_decoded(params: &Parameters, program: &Recorded, trace: &[u8]) -> Result<u64, String> {
    let says = |e: &dyn std::fmt::Debug| format!("riscv-etrace: {e:?}");
    let elf = elf::ElfBytes::<elf::endian::LittleEndian>::minimal_parse(program.elf());
    let elf: binary::elf::Elf<_, _, instruction::base::Set> =
        binary::elf::Elf::new(elf.map_err(|e| says(&e))?).map_err(|e| says(&e))?;
    let mut decoder = packet::builder()
        .for_unit(packet::unit::Reference)
        .with_params(params)
        .decoder(trace);
    let mut tracer: Tracer<_> = tracer::builder()
        .with_binary(binary::Multi::from(vec![elf.boxed()]))
        .with_params(params)
        .build()
        .map_err(|e| says(&e))?;
    let mut count = 0;
    while decoder.bytes_left() > 0 {
        let packet = decoder.decode_smi_packet().map_err(|e| says(&e))?;
        let payload = packet.decode_payload().map_err(|e| says(&e))?;
        tracer.process_payload(&payload).map_err(|e| says(&e))?;
        for item in tracer.by_ref() {
            let item = item.map_err(|e| says(&e))?;
            if let item::Kind::Regular(_) = item.kind() {
                std::hint::black_box(item.pc());
                count += 1;
            }
        }
    }
    Ok(count)
}

/// A row as the peer's encoder takes it.
#[derive(Clone, Copy, Debug)]
struct PeerRow {
    kind: generator::step::Kind,
    context: types::Context,
    iaddr: u64,
}

impl PeerRow {
    fn of(block: &Ingress) -> Option<PeerRow> {
        let size = match block.ilastsize {
            0 => instruction::Size::Compressed,
            _ => instruction::Size::Normal,
        };
        let itype = block.itype.code().try_into().ok()?;
        let retired = block.iretire > 0;
        let cause = block.cause as u16;
        let kind = generator::step::Kind::from_hart(itype, cause, block.tval, size, retired, false);
        let privilege = block.mode.code().try_into().ok()?;
        let context = block.context.0;
        Some(PeerRow {
            kind,
            context: types::Context { privilege, context },
            iaddr: block.iaddr,
        })
    }
}

impl generator::step::Step for PeerRow {
    fn address(&self) -> u64 {
        self.iaddr
    }

    fn kind(&self) -> generator::step::Kind {
        self.kind
    }

    fn ctype(&self) -> generator::hart2enc::CType {
        generator::hart2enc::CType::Unreported
    }

    fn context(&self) -> types::Context {
        self.context
    }
}

fn theirs_encoded(params: &Parameters, rows: &[PeerRow]) -> Result<usize, String> {
    let says = |e: &dyn std::fmt::Debug| format!("riscv-etrace: {e:?}");
    let mut out = vec![0; rows.len() * 2 + 4096];
    let room = out.len();
    let builder = packet::builder()
        .for_unit(packet::unit::Reference)
        .with_params(params);
    let mut encoder = builder.encoder(out.as_mut_slice());
    let mut generator: generator::Generator<PeerRow> = generator::builder()
        .with_params(params)
        .build()
        .map_err(|e| says(&e))?;
    let mut send = |payload: packet::payload::InstructionTrace| {
        let packet = packet::smi::Packet::new(0b10, 0, payload);
        encoder.encode(&packet).map_err(|e| says(&e))
    };
    let options = packet::unit::ReferenceIOptions::default();
    let begin = generator.begin_qualification(options, Default::default());
    send(begin.map_err(|e| says(&e))?.into())?;
    for row in rows {
        for payload in generator.process_step(*row, None) {
            send(payload.map_err(|e| says(&e))?)?;
        }
    }
    for payload in generator.end_qualification(true) {
        send(payload.map_err(|e| says(&e))?)?;
    }
    Ok(room - encoder.uncommitted())
}
