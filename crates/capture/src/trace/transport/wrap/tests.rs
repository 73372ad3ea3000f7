use super::*;
use crate::config::Config;
use crate::input::Input;
use crate::trace::{Format, Known, Order, PibWidth, RamSink, Trace, TraceWriter, WriteOptions};
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{
    Consumer, Effects, Event, HartId, Image, Insn, Mode, Observer as _, SpaceId, Step,
};
use hartrace_isa::{Isa, Xlen};
use hartrace_testkit::Random;
use std::ops::ControlFlow;
use std::path::Path;

/// loop: c.nop; c.bnez a0, loop; c.jr a1
const CODE: [u8; 6] = [0x01, 0x00, 0x7d, 0xfd, 0x82, 0x85];
const BASE: u64 = 0x1000;

fn image() -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, BASE, &CODE, Isa::RV64GC);
    image
}

/// Both formats with synchronisations, and E-Trace in several forms.
const SETTINGS: [&str; 6] = [
    "[trace]\nformat = \"ntrace\"\n[ntrace]\nsrc_bits = 2\nsync_max = 0\n",
    "[trace]\nformat = \"etrace\"\n[etrace]\nresync = \"packets\"\nresync_max = 0\n[etrace.encapsulation]\nform = \"riscv\"\nsrc_bits = 8\nsync_bytes = 128\nsrc_id = 3\n",
    "[trace]\nformat = \"etrace\"\n[etrace]\nresync = \"packets\"\nresync_max = 0\n[etrace.encapsulation]\nform = \"smi\"\nsrc_bits = 8\ntime_bytes = 2\nsrc_id = 3\n",
    "[trace]\nformat = \"etrace\"\n[etrace]\nresync = \"packets\"\nresync_max = 0\n[etrace.encapsulation]\nform = \"atb\"\nsrc_id = 3\n",
    "[trace]\nformat = \"etrace\"\n[etrace]\nresync = \"packets\"\nresync_max = 0\n[etrace.encapsulation]\nform = \"esp32\"\nsync_bytes = 128\nsrc_id = 3\n",
    "[trace]\nformat = \"etrace\"\n[etrace]\nresync = \"packets\"\nresync_max = 0\n",
];

struct Recorded {
    config: Config,
    settings: Settings,
    stream: Vec<u8>,
    /// The instructions of each hart.
    pcs: Vec<Vec<u64>>,
}

/// A trace of the loop above, left and entered again so many times.
fn recorded(text: &str, transport: &Transport, rounds: u64) -> Recorded {
    let config = Config::parse(text, Path::new("t.toml")).unwrap();
    let format = Format::said(&config).unwrap();
    let full = config.clone().over(Config::defaults());
    let settings = format.settings(&full, Xlen::Rv64).unwrap();
    let encoder = encoder(transport, &settings);
    let harts = if encoder.has_sources() { 3 } else { 1 };
    let port = settings.port(full.ingress).port(Isa::RV64GC);
    let (mut stream, mut pcs) = (Vec::new(), vec![Vec::new(); harts]);
    let put = Box::new(|part: &[u8]| stream.extend_from_slice(part));
    let filter = FilterConfig::default();
    let options = WriteOptions::default();
    let mut writer = TraceWriter::new(&encoder, port, &filter, options, put).unwrap();
    let mut random = Random::new(5);
    let mut step = |hart: usize, pc: u64, bits: u32, next: u64| {
        pcs[hart].push(pc);
        let insn = Insn {
            pc,
            bits,
            next,
            mode: Mode::M,
            ..Insn::default()
        };
        writer.step(HartId(hart as u32), &Step::Insn(insn), &Effects::default());
    };
    for _ in 0..rounds {
        let hart = random.index(harts);
        for n in (0..=random.below(6)).rev() {
            step(hart, BASE, 0x0001, BASE + 2);
            step(hart, BASE + 2, 0xfd7d, if n > 0 { BASE } else { BASE + 4 });
        }
        step(hart, BASE + 4, 0x8582, BASE);
    }
    writer.finish();
    drop(writer.done());
    Recorded {
        config,
        settings,
        stream,
        pcs,
    }
}

/// The instructions of each hart, and how many gaps there are.
#[derive(Default)]
struct Pcs(Vec<Vec<u64>>, usize);

impl Consumer for Pcs {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        let hart = hart.0 as usize;
        if self.0.len() <= hart {
            self.0.resize(hart + 1, Vec::new());
        }
        match event {
            Event::Run(run) => {
                let mut pc = run.start;
                for _ in 0..run.insns {
                    self.0[hart].push(pc);
                    pc += 2;
                }
            }
            Event::Gap(_) => self.1 += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn decoded(file: &[u8], transport: &Transport, config: &Config) -> Pcs {
    let config = Config {
        transport: crate::config::TransportSection::of(transport),
        ..config.clone()
    };
    let full = config.over(Config::defaults());
    let input = Input::of(Path::new("t"), file.to_vec());
    let input = Trace::accept(input, &Transport::default(), &full).unwrap();
    let known = Known {
        xlen: Some(Xlen::Rv64),
        ..Known::default()
    };
    let image = image();
    let trace = Trace::open(input, &full, known).unwrap();
    let mut pcs = Pcs::default();
    trace
        .decode(&image, None, &mut pcs, |_, _| {
            Ok::<(), crate::trace::TraceError>(())
        })
        .unwrap();
    pcs
}

fn transports() -> Vec<Transport> {
    let mut all = vec![Transport::default()];
    for width in [1, 2, 4, 8, 16] {
        for high_first in [false, true] {
            all.push(Transport {
                pib: Some(Pib {
                    high_first,
                    ..Pib::new(PibWidth::from_pins(width).unwrap())
                }),
                ..Transport::default()
            });
        }
    }
    all.push(Transport {
        ram: Some(RamSink::from_registers(0x8000, 0x8000 + 0x7ffc, 0x8000)),
        ..Transport::default()
    });
    let mut orders = Vec::new();
    for order in [Order::Plain, Order::Swapped16, Order::Swapped32] {
        for coresight in [None, Some(CoreSight::default())] {
            orders.extend(all.iter().map(|transport| Transport {
                order,
                coresight,
                ..*transport
            }));
        }
    }
    orders
}

/// Every format and form through every transport: what comes back is what was traced.
#[test]
fn every_transport_there_and_back() {
    for text in SETTINGS {
        let frames = Transport {
            coresight: Some(CoreSight::default()),
            ..Transport::default()
        };
        let plain = recorded(text, &Transport::default(), 150);
        let framed = recorded(text, &frames, 150);
        for transport in transports() {
            let traced = match transport.coresight {
                None => &plain,
                Some(_) => &framed,
            };
            let wrapped = wrap(&transport, traced.stream.clone(), &traced.settings);
            let (file, read) = match wrapped {
                // The last form has no ids.
                Err(TransportError::Ids) if traced.config.etrace.form().src_id == 0 => continue,
                wrapped => wrapped.unwrap(),
            };
            let found = decoded(&file, &read, &traced.config);
            assert_eq!(found.1, 0, "{text} {transport:?}");
            assert!(found.0 == traced.pcs, "{text} {transport:?}");
        }
    }
}

/// A buffer that wrapped, of many sizes, holds the last part of the trace.
#[test]
fn a_buffer_holds_the_end() {
    for text in SETTINGS {
        for coresight in [None, Some(CoreSight::default())] {
            let frames = Transport {
                coresight,
                ..Transport::default()
            };
            let traced = recorded(text, &frames, 3000);
            for words in [200, 201, 333] {
                let ram = RamSink::from_registers(0x8000, 0x8000 + 4 * (words - 1), 0x8000);
                let transport = Transport {
                    ram: Some(ram),
                    coresight,
                    ..Transport::default()
                };
                let wrapped = wrap(&transport, traced.stream.clone(), &traced.settings);
                let (file, read) = match wrapped {
                    Err(TransportError::Ids) if traced.config.etrace.form().src_id == 0 => continue,
                    wrapped => wrapped.unwrap(),
                };
                assert_eq!(file.len() as u64, 4 * words);
                assert!(read.ram.unwrap().wrapped, "{text}: {}", traced.stream.len());
                let found = decoded(&file, &read, &traced.config);
                let all: usize = found.0.iter().map(Vec::len).sum();
                assert!(all > 50, "{text} {words} {coresight:?}: {all}");
                for (found, pcs) in found.0.iter().zip(&traced.pcs) {
                    assert!(pcs.ends_with(found), "{text} {words} {coresight:?}");
                }
            }
        }
    }
}

#[test]
fn what_a_transport_cannot_hold() {
    let frames = Transport {
        coresight: Some(CoreSight::default()),
        ..Transport::default()
    };
    let settings = |text: &str| {
        let config = Config::parse(text, Path::new("t")).unwrap();
        let full = config.over(Config::defaults());
        let format = Format::said(&full).unwrap();
        format.settings(&full, Xlen::Rv64).unwrap()
    };
    let etrace = |text: &str| settings(&format!("[trace]\nformat = \"etrace\"\n{text}"));
    let refused = |transport: Transport, settings: &Settings| {
        let error = wrap(&transport, Vec::new(), settings).unwrap_err();
        error.to_string()
    };
    assert!(refused(frames, &etrace("")).contains("src_id"));
    let tandem = settings("[trace]\nformat = \"tandem\"\n");
    assert!(refused(frames, &tandem).contains("tandem"));
    assert!(wrap(&Transport::default(), vec![1], &tandem).is_ok());
    let both = Transport {
        pib: Some(Pib::new(PibWidth::Four)),
        ram: Some(RamSink::from_registers(0, 4, 0)),
        ..Transport::default()
    };
    assert!(refused(both, &etrace("")).contains("not both"));
}
