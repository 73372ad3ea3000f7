use super::super::drive::tests::image;
use super::super::{Format, TraceWriter, WriteOptions, Written};
use super::*;
use crate::config::Config;
use hartrace_flow::filter::FilterConfig;
use hartrace_flow::{Changes, Insn, SpaceId};
use hartrace_isa::{Flow, Isa, Xlen};
use hartrace_testkit::Random;

const BASE: u64 = 0x1000;

/// The code of [`image`]: c.nop; c.bnez a0, BASE; c.jr a1.
const BITS: [u32; 3] = [0x0001, 0xfd7d, 0x8582];

/// Writes rounds of that loop as steps and as straight-line code, by turns, and decodes them with
/// an image.
fn written(format: Format, image: &Image, beside: bool, rounds: u64) -> (Written, Vec<u8>) {
    let config = Config::defaults();
    let settings = format.settings(&config, Xlen::Rv64).unwrap();
    let port = settings.port(config.ingress).port(Isa::RV64GC);
    let mut bytes = Vec::new();
    let put = Box::new(|part: &[u8]| bytes.extend_from_slice(part));
    let options = WriteOptions {
        check: Some(image),
        beside,
        ..WriteOptions::default()
    };
    let filter = FilterConfig::default();
    let mut writer = TraceWriter::new(&settings, port, &filter, options, put).unwrap();
    let mut code = vec![Placed::default(); 3];
    let mut before = Placed::default();
    for (placed, bits) in code.iter_mut().zip(BITS) {
        *placed = Placed::after(&before, bits, Flow::of(bits, Isa::RV64GC), 1);
        before = *placed;
    }
    let mut random = Random::new(7);
    let mut time = 0;
    for _ in 0..rounds {
        // Left after this round or entered again.
        let left = random.below(4) == 0;
        let count = if left { 3 } else { 2 };
        if random.below(2) == 0 && format != Format::Tandem {
            let list = [Straight {
                pc: BASE,
                next: BASE,
                time,
                last: u32::from(count) - 1,
                count,
                taken: code[usize::from(count) - 1].is_branch().into(),
                extra: 0,
            }];
            let all = Straights {
                code: &code,
                list: &list,
                count: count.into(),
                accesses: &[],
                changes: Changes::NONE,
                context: Context(0),
                mode: Mode::M,
                news: None,
            };
            writer.straights(HartId(0), &all);
        } else {
            for n in 0..u64::from(count) {
                let pc = BASE + 2 * n;
                let insn = Insn {
                    pc,
                    bits: BITS[n as usize],
                    next: if n + 1 == u64::from(count) {
                        BASE
                    } else {
                        pc + 2
                    },
                    mode: Mode::M,
                    time: time + n,
                    ..Insn::default()
                };
                writer.step(HartId(0), &Step::Insn(insn), &Effects::NONE);
            }
        }
        time += u64::from(count);
    }
    writer.finish();
    (writer.done(), bytes)
}

/// A thread beside finds what is found at once, and the trace is the same.
#[test]
fn beside_is_the_same_as_at_once() {
    // Of another length, so that it goes another way.
    let mut other = Image::new();
    let code = [0x13, 0x00, 0x00, 0x00, 0x7d, 0xfd, 0x82, 0x85];
    other.add_raw(SpaceId::FIRST, BASE, &code, Isa::RV64GC);
    for format in [Format::Ntrace, Format::Etrace, Format::Tandem] {
        for rounds in [0, 1, 2, 100, 60_000] {
            let (here, bytes) = written(format, &image(), false, rounds);
            let (beside, same) = written(format, &image(), true, rounds);
            let expected = here.check.unwrap().unwrap();
            assert_eq!(expected.insns, here.instructions, "{format:?}");
            assert_eq!(beside.check.unwrap().unwrap(), expected, "{format:?}");
            assert!(bytes == same, "{format:?}");
            let (here, _) = written(format, &other, false, rounds);
            let (beside, _) = written(format, &other, true, rounds);
            let (here, beside) = (here.check.unwrap(), beside.check.unwrap());
            // A tandem trace has its instructions itself.
            let differs = rounds > 2 && format != Format::Tandem;
            assert!(here.is_err() || !differs, "{format:?}, {rounds} rounds");
            assert_eq!(here, beside, "{format:?}, {rounds} rounds");
        }
    }
}

/// A writer that is given up ends its thread.
#[test]
fn a_writer_that_is_given_up() {
    let image = image();
    let settings = Format::Ntrace.settings(&Config::defaults(), Xlen::Rv64);
    let settings = (&settings.unwrap(), HartId(0));
    let mut checker = Checker::new(settings, Unreported::default(), &image, true).unwrap();
    let Checker::Beside(beside) = &mut checker else {
        panic!("no thread");
    };
    let back = std::mem::replace(&mut beside.used, channel().1);
    beside.feed(&[0]);
    drop(checker);
    // It hands back what it has compared, and its side of the channel ends with it.
    assert!(back.recv().is_ok());
    assert!(back.recv().is_err());
}
