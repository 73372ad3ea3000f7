use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::config::{Config, PcForm};
use crate::read::Problem;
use crate::testing::configs;
use hartrace_testkit::Random;

/// What a reader gave; of frames the payload too.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Start(String),
    Frame(u32, Vec<u8>),
    Problem(Fault, u64),
}

fn read_chunks(file: &[u8], chunk: usize) -> Vec<Told> {
    let mut reader = FrameReader::new();
    let mut told = Vec::new();
    let take = |reader: &FrameReader, next: NextFrame, told: &mut Vec<Told>| match next {
        NextFrame::Start(parameters) => told.push(Told::Start(parameters.to_string())),
        NextFrame::Frame(frame) => {
            told.push(Told::Frame(frame.hart.0, reader.payload().to_vec()));
        }
        NextFrame::Problem(Problem { at, fault, .. }) => told.push(Told::Problem(fault, at)),
        NextFrame::More | NextFrame::End => {}
    };
    for mut chunk in file.chunks(chunk) {
        loop {
            let next = reader.next(&mut chunk);
            if matches!(next, NextFrame::More | NextFrame::End) {
                assert!(chunk.is_empty());
                break;
            }
            take(&reader, next, &mut told);
        }
    }
    loop {
        let next = reader.finish();
        if next == NextFrame::End {
            break;
        }
        take(&reader, next, &mut told);
    }
    assert_eq!(reader.offset(), file.len() as u64);
    told
}

fn read(file: &[u8]) -> Vec<Told> {
    read_chunks(file, usize::MAX)
}

fn faults(file: &[u8]) -> Vec<(Fault, u64)> {
    let fault = |told: &Told| match told {
        Told::Problem(fault, at) => Some((*fault, *at)),
        _ => None,
    };
    read(file).iter().filter_map(fault).collect()
}

fn frames(file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let frame = |told| match told {
        Told::Frame(hart, payload) => Some((hart, payload)),
        _ => None,
    };
    read(file).into_iter().filter_map(frame).collect()
}

fn start() -> Vec<u8> {
    let mut file = Vec::new();
    write_start(&Parameters::default(), &mut file).unwrap();
    file
}

/// Frames with 10, 20, 30 ... bytes of their hart's number, and where they
/// start.
fn container(harts: &[u32]) -> (Vec<u8>, Vec<usize>) {
    let mut file = start();
    let mut starts = Vec::new();
    for (number, hart) in (1..).zip(harts) {
        starts.push(file.len());
        write_stored(HartId(*hart), &vec![*hart as u8; number * 10], &mut file);
    }
    starts.push(file.len());
    write_end(&mut file);
    (file, starts)
}

#[test]
fn parameters_lead_back() {
    let mut random = Random::new(5);
    for mut config in configs() {
        config.style = crate::Style::default();
        config.max_items = 64 + random.below(1000) as u32;
        config.lenient_pc_identifier = random.below(2) == 0;
        config.absent = ["", "trap.mstatus,pc", "fpr,mip"][random.below(3) as usize]
            .parse()
            .unwrap();
        let parameters = Parameters {
            config,
            isa: [None, Some("rv64gc".to_string())][random.below(2) as usize].clone(),
        };
        let again: Parameters = parameters.to_string().parse().unwrap();
        assert_eq!(again, parameters);
        let mut file = Vec::new();
        write_start(&parameters, &mut file).unwrap();
        write_end(&mut file);
        assert_eq!(read(&file), [Told::Start(parameters.to_string())]);
    }
}

#[test]
fn parameters_that_make_no_sense() {
    let parse = |text: &str| text.parse::<Parameters>();
    assert!(parse("xlen = 64\nmlen=64\n\n# a remark\nnews = 1\n").is_ok());
    for (text, error) in [
        ("mlen = 64", ParameterError::Missing("xlen")),
        ("xlen = 64", ParameterError::Missing("mlen")),
        (
            "xlen = 64\nmlen = 33",
            ParameterError::Line(2, "mlen = 33".to_string()),
        ),
        ("xlen 64", ParameterError::Line(1, "xlen 64".to_string())),
        (
            "version = 2",
            ParameterError::Line(1, "version = 2".to_string()),
        ),
        (
            "isa = z80",
            ParameterError::Line(1, "isa = z80".to_string()),
        ),
        (
            "absent = nothing",
            ParameterError::Line(1, "absent = nothing".to_string()),
        ),
    ] {
        assert_eq!(parse(text), Err(error.clone()), "{text}");
        assert!(!error.to_string().is_empty());
    }
    assert!(matches!(
        parse("xlen = 64\nmlen = 32"),
        Err(ParameterError::Config(_))
    ));
    let mut many = Parameters::default();
    many.config.pc = PcForm::Both;
    assert_eq!(many.to_string().parse(), Ok(many.clone()));
}

/// Frames of several harts, in the order they were written, and each hart's
/// stream by itself.
#[test]
fn harts_are_told_apart() {
    let (file, _) = container(&[0, 7, 0, 3, 7]);
    let all = frames(&file);
    let harts: Vec<_> = all.iter().map(|(hart, _)| *hart).collect();
    assert_eq!(harts, [0, 7, 0, 3, 7]);
    let of_7: Vec<u8> = all
        .iter()
        .filter(|f| f.0 == 7)
        .flat_map(|f| f.1.clone())
        .collect();
    assert_eq!(of_7, [7; 20 + 50]);
    assert_eq!(faults(&file), []);
}

/// Any method's payload is given as it is; whoever undoes it checks it.
#[test]
fn compressed_frames() {
    let plain = [5; 1000];
    let packed = [1, 2, 3];
    let frame = Frame::of(HartId(1), Method::Deflate, &plain, packed.len()).unwrap();
    let mut file = start();
    frame.write(&mut file);
    file.extend(packed);
    write_end(&mut file);
    assert_eq!(frames(&file), [(1, packed.to_vec())]);
    let mut reader = FrameReader::new();
    let mut rest = &file[..];
    let _ = reader.next(&mut rest);
    assert_eq!(reader.next(&mut rest), NextFrame::Frame(frame));
    assert_eq!(frame.check(&plain), Ok(()));
    assert_eq!(frame.check(&plain[1..]), Err(Fault::FrameChecksum));
    assert_eq!(frame.check(&[4; 1000]), Err(Fault::FrameChecksum));
    // What is no frame.
    for (method, plain, payload) in [
        (Method::Stored, &[][..], 0),
        (Method::Stored, &[1, 2], 1),
        (Method::Deflate, &[1, 2], 3),
        (Method::Deflate, &[0; MAX_PLAIN + 1], 3),
    ] {
        assert_eq!(Frame::of(HartId(0), method, plain, payload), None);
    }
}

#[test]
fn chunks_make_no_difference() {
    let (mut file, starts) = container(&[0, 1, 2]);
    for damage in [None, Some(starts[1] + 3), Some(starts[1] + 40)] {
        if let Some(at) = damage {
            file[at] ^= 1;
        }
        let whole = read(&file);
        for chunk in 1..100 {
            assert_eq!(read_chunks(&file, chunk), whole);
        }
    }
}

/// One bit, anywhere behind the start: at most one frame is missing, and what
/// is wrong is told with its place.
#[test]
fn damage_costs_a_frame() {
    let (good, starts) = container(&[0, 1, 2, 3]);
    let all = frames(&good);
    for at in starts[0]..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let hit = starts.iter().rposition(|s| *s <= at).unwrap();
            let mut left = all.clone();
            if hit < left.len() {
                left.remove(hit);
            }
            assert_eq!(frames(&bad), left, "{at}");
            let faults = faults(&bad);
            assert_eq!(faults[0].1, starts[hit] as u64, "{faults:?}");
        }
    }
}

/// Bytes missing or too many: the frame they were in is lost, and the next one
/// at most.
#[test]
fn bytes_too_few_or_too_many() {
    let (good, starts) = container(&[0, 1, 2, 3]);
    let all = frames(&good);
    for at in starts[0]..starts[4] {
        let hit = starts.iter().rposition(|s| *s <= at).unwrap();
        let mut left = all.clone();
        left.remove(hit);
        for len in [1, 5, 30] {
            let mut bad = good.clone();
            bad.drain(at..(at + len).min(starts[hit + 1]));
            assert_eq!(frames(&bad), left, "{at} {len} removed");
            let mut bad = good.clone();
            bad.splice(at..at, vec![0x5a; len]);
            // In front of a frame nothing is lost.
            let expected = if at == starts[hit] { &all } else { &left };
            assert_eq!(frames(&bad), *expected, "{at} {len} inserted");
            assert!(!faults(&bad).is_empty());
        }
    }
}

#[test]
fn truncation_at_every_byte() {
    let (file, starts) = container(&[0, 1, 2]);
    for len in 0..file.len() {
        let cut = &file[..len];
        let whole = starts[1..].iter().filter(|s| **s <= len).count();
        assert_eq!(frames(cut).len(), whole);
        let fault = match len {
            _ if len < starts[0] => (Fault::NotContainer, 0),
            _ if starts.contains(&len) => (Fault::NoEnd, len as u64),
            _ => {
                let start = starts.iter().rfind(|s| **s <= len).unwrap();
                (Fault::FrameTruncated, *start as u64)
            }
        };
        assert_eq!(faults(cut), [fault], "{len}");
    }
}

/// A start that cannot be used, each with its fault.
#[test]
fn starts_that_are_none() {
    let (good, starts) = container(&[0]);
    let with = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        faults(&bad)
    };
    assert_eq!(with(0, 1), [(Fault::NotContainer, 0)]);
    assert_eq!(with(8, 2), [(Fault::ContainerVersion, 0)]);
    assert_eq!(with(15, 1), [(Fault::ContainerParameters, 0)]);
    assert_eq!(with(16, !good[16]), [(Fault::ContainerParameters, 0)]);
    assert_eq!(with(starts[0] - 2, b'!'), [(Fault::ContainerParameters, 0)]);
    // A trace is none.
    assert_eq!(faults(&[1, 3, 16, 1, 0, 2]), [(Fault::NotContainer, 0)]);
    assert!(FrameReader::is_container(&good) && !FrameReader::is_container(&[1; 20]));
}

/// A header with these fields and a good seal.
fn header(method: u8, plain: u32, payload: u32) -> Vec<u8> {
    let mut out = Vec::new();
    sealed(&mut out, |out| {
        out.extend(SYNC);
        out.extend([method, 0, 0, 0]);
        for field in [0, plain, payload, 0] {
            out.extend(u32::to_le_bytes(field));
        }
    });
    out
}

/// Sizes that may not be, and methods that nobody knows: the frames behind
/// them are found.
#[test]
fn hostile_headers() {
    let max = MAX_PLAIN as u32;
    for (method, plain, payload, fault) in [
        (0, max + 1, max + 1, Fault::FrameSize),
        (1, u32::MAX, 5, Fault::FrameSize),
        (1, 5, u32::MAX, Fault::FrameSize),
        (1, 5, 6, Fault::FrameSize),
        (1, 5, 0, Fault::FrameSize),
        (1, 0, 0, Fault::FrameSize),
        (0, 5, 4, Fault::FrameSize),
        (2, 6, 5, Fault::FrameMethod),
        (0, 5, 5, Fault::FrameChecksum),
    ] {
        let mut file = start();
        let at = file.len() as u64;
        file.extend(header(method, plain, payload));
        file.extend([0; 5]);
        write_stored(HartId(9), &[1, 2], &mut file);
        write_end(&mut file);
        assert_eq!(
            frames(&file),
            [(9, vec![1, 2])],
            "{method} {plain} {payload}"
        );
        assert_eq!(faults(&file)[0], (fault, at));
    }
    let (mut file, _) = container(&[0]);
    let end = file.len() as u64;
    file.push(0);
    assert_eq!(faults(&file), [(Fault::AfterEnd, end)]);
}

/// Headers in headers in headers, each of which promises a frame as long as
/// may be: no byte is looked at over and over.
#[test]
fn nested_headers_take_bounded_time() {
    let mut file = start();
    let nested = header(0, MAX_PLAIN as u32, MAX_PLAIN as u32);
    while file.len() < 3 * MAX_PLAIN {
        file.extend(&nested);
    }
    let told = read(&file);
    assert!(told.len() < 20, "{}", told.len());
    let mut file = start();
    file.extend(SYNC.repeat(200_000));
    assert_eq!(faults(&file).len(), 2);
}

/// Frames start where groups start, and are as long as asked for.
#[test]
fn groups_are_gathered() {
    let group = |len: u8| [vec![1], vec![9; usize::from(len)], vec![2]].concat();
    let mut given: Vec<Vec<u8>> = Vec::new();
    let mut gather = Gather::new(100, |plain: &[u8]| given.push(plain.to_vec()));
    let mut all = Vec::new();
    for len in [10, 50, 40, 200, 3, 3] {
        gather.group(&group(len));
        all.extend(group(len));
    }
    // The end of the last group by itself.
    gather.group(&[2]);
    gather.finish();
    gather.finish();
    all.push(2);
    assert_eq!(given.concat(), all);
    assert!(given.iter().all(|frame| frame[0] == 1));
    let lens: Vec<_> = given.iter().map(Vec::len).collect();
    assert_eq!(lens, [64, 42, 202, 11]);
    let mut lens = Vec::new();
    let mut gather = Gather::new(usize::MAX, |plain: &[u8]| lens.push(plain.len()));
    gather.group(&vec![1; MAX_PLAIN + 7]);
    gather.finish();
    assert_eq!(lens, [MAX_PLAIN, 7]);
}

/// A frame that is missing is a gap, and the next one goes on.
#[test]
fn a_missing_frame_is_a_gap() {
    use core::ops::ControlFlow;
    use hartrace_flow::{Consumer, Event};

    #[derive(Default)]
    struct Told(Vec<String>);
    impl Consumer for Told {
        fn event(&mut self, _: HartId, event: &Event) -> ControlFlow<()> {
            self.0.push(match event {
                Event::Run(run) => alloc::format!("run {:x} {}", run.start, run.insns),
                Event::Gap(gap) => alloc::format!("gap {}", gap.reason.code),
                other => alloc::format!("{other:?}"),
            });
            ControlFlow::Continue(())
        }
    }
    let nop = [1, 3, 16, 1, 0, 2];
    let place = |pc: u8| [1, 11, 7, 10, pc, 0, 0, 0, 0, 0, 0, 0, 2];
    let mut decoder = crate::Decoder::new(Config::default(), HartId(0)).unwrap();
    let mut told = Told::default();
    decoder.feed(&place(16), &mut told);
    decoder.feed(&nop, &mut told);
    decoder.feed(&nop[..4], &mut told);
    decoder.missing(Fault::FrameChecksum, 0, &mut told);
    decoder.feed(&nop, &mut told);
    decoder.feed(&place(32), &mut told);
    decoder.feed(&nop, &mut told);
    decoder.finish(&mut told);
    assert_eq!(told.0, ["run 10 1", "gap TP0407", "run 20 1"]);
}
