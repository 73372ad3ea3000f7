use super::*;
use std::ops::ControlFlow;

/// An initial pc, and instructions.
fn stream(groups: usize) -> Vec<u8> {
    // As long as three instructions, with a group of nothing.
    let mut bytes = vec![1, 11, 7, 10, 0, 16, 0, 0, 0, 0, 0, 0, 7, 1, 3, 2, 1, 2];
    bytes.extend([1, 3, 16, 1, 0, 2].repeat(groups));
    bytes
}

fn packed(streams: &[(u32, &[u8])], compress: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let parameters = Parameters::default();
    let sink = |bytes: &[u8]| file.extend_from_slice(bytes);
    let mut writer = ContainerWriter::new(&parameters, compress, sink).unwrap();
    let most = streams.iter().map(|s| s.1.len()).max().unwrap();
    // As encoders do it: a little of each hart.
    for from in (0..most).step_by(6 * 1000) {
        for (hart, bytes) in streams {
            let part = bytes.get(from..).unwrap_or_default();
            let part = &part[..part.len().min(6 * 1000)];
            if !part.is_empty() {
                writer.put(HartId(*hart), part);
            }
        }
    }
    let written = writer.finish();
    assert_eq!(written, file.len() as u64);
    file
}

fn unpacked(file: &[u8], chunk: usize) -> (Vec<(u32, Vec<u8>)>, Vec<Fault>) {
    let (mut all, mut lost) = (Vec::new(), Vec::new());
    let mut streams = Streams::default();
    let mut take = |piece: StreamPiece<'_>| {
        match piece {
            StreamPiece::Lost(problem) => lost.push(problem.fault),
            StreamPiece::Bytes(hart, bytes) => {
                if !all.iter().any(|(id, _)| *id == hart.0) {
                    all.push((hart.0, Vec::new()));
                }
                let stream = all.iter_mut().find(|(id, _)| *id == hart.0).unwrap();
                stream.1.extend_from_slice(bytes);
            }
        }
        Ok::<(), ()>(())
    };
    for bytes in file.chunks(chunk) {
        streams.feed(bytes, &mut take).unwrap();
    }
    streams.finish(&mut take).unwrap();
    (all, lost)
}

#[derive(Default)]
struct Seen {
    insns: Vec<(u32, u64)>,
    gaps: Vec<&'static str>,
}

impl Consumer for Seen {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => {
                if !self.insns.iter().any(|(id, _)| *id == hart.0) {
                    self.insns.push((hart.0, 0));
                }
                let one = self.insns.iter_mut().find(|(id, _)| *id == hart.0);
                one.unwrap().1 += u64::from(run.insns);
            }
            Event::Gap(gap) => self.gaps.push(gap.reason.code),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn decoded(file: &[u8], chunk: usize) -> Seen {
    let mut decoder = TandemDecoder::new(Config::default(), None, HartId(0)).unwrap();
    let mut seen = Seen::default();
    for bytes in file.chunks(chunk) {
        assert_eq!(decoder.feed(bytes, &mut seen), bytes.len());
    }
    decoder.finish(&mut seen);
    assert_eq!(decoder.position(), file.len() as u64);
    seen
}

#[test]
fn what_is_packed_comes_out() {
    let (one, two) = (stream(100_000), stream(50_001));
    for compress in [false, true] {
        let file = packed(&[(0, &one), (5, &two)], compress);
        assert_eq!(file.len() < one.len() / 20, compress);
        for chunk in [1000, 4096, file.len()] {
            let (all, lost) = unpacked(&file, chunk);
            assert!(all == [(0, one.clone()), (5, two.clone())], "{chunk}");
            assert_eq!(lost, []);
        }
        let seen = decoded(&file, 5000);
        assert_eq!(seen.insns, [(0, 100_000), (5, 50_001)]);
        assert_eq!(seen.gaps, [""; 0]);
    }
}

#[test]
fn a_plain_stream_is_one() {
    let plain = stream(100);
    assert!(unpacked(&plain, 7) == (vec![(0, plain.clone())], vec![]));
    assert_eq!(decoded(&plain, 7).insns, [(0, 100)]);
    assert!(Streams::parameters(&plain).is_none());
}

/// A flipped bit costs a frame; what follows is not known to follow.
#[test]
fn damage_is_told() {
    let plain = stream(100_000);
    for compress in [false, true] {
        let mut file = packed(&[(0, &plain)], compress);
        let at = 300 + file.len() / 3;
        file[at] ^= 0x10;
        let (all, lost) = unpacked(&file, 1 << 16);
        assert!(!lost.is_empty(), "{compress}");
        assert!((1..plain.len()).contains(&all[0].1.len()));
        let seen = decoded(&file, 1 << 16);
        assert!(seen.gaps.iter().any(|code| code.starts_with("TP04")));
        // No whole pc comes after it.
        assert!(seen.insns.first().map_or(0, |i| i.1) < 100_000);
    }
    let file = packed(&[(0, &plain)], true);
    let (_, lost) = unpacked(&file[..file.len() - 28], 100);
    assert_eq!(lost, [Fault::NoEnd]);
}

#[test]
fn parameters_are_read() {
    let parameters = Parameters {
        isa: Some("rv64gc".to_owned()),
        ..Parameters::default()
    };
    let mut file = Vec::new();
    let sink = |bytes: &[u8]| file.extend_from_slice(bytes);
    ContainerWriter::new(&parameters, false, sink)
        .unwrap()
        .finish();
    assert_eq!(Streams::parameters(&file), Some(Ok(parameters)));
    file[25] ^= 1;
    assert_eq!(
        Streams::parameters(&file),
        Some(Err(Fault::ContainerParameters))
    );
}
