use super::super::testing::message;
use super::*;
use hartrace_flow::decode::Framing as _;
use hartrace_ntrace::{Framer, IDLE, Piece};
use hartrace_testkit::Random;

const EMPTY: RamSink = RamSink {
    start: 0x8000,
    limit: 0x8000,
    write_pointer: 0x8000,
    wrapped: false,
    stop_on_wrap: false,
    word: 4,
};

fn messages(chunks: [&[u8]; 2]) -> (Vec<Vec<u8>>, usize) {
    let mut framer = Framer::new();
    let (mut good, mut bad) = (Vec::new(), 0);
    for mut chunk in chunks {
        while let Some((_, piece)) = framer.next_piece(&mut chunk) {
            match piece {
                Piece::Message(bytes) => good.push(bytes.to_vec()),
                Piece::Bad(..) => bad += 1,
                Piece::Idle(_) => {}
            }
        }
    }
    bad += usize::from(framer.finish().is_some());
    (good, bad)
}

#[test]
fn buffers_of_every_size_and_fill() {
    for word in [4, 8, 32] {
        for words in 1..40 {
            let mut random = Random::new(u64::from(word) * 100 + words);
            let sink = RamSink {
                limit: 0x8000 + (words - 1) * u64::from(word),
                word,
                ..EMPTY
            };
            let mut buffer = RamBuffer::new(sink, IDLE).unwrap();
            assert_eq!(buffer.dump().len() as u64, words * u64::from(word));
            let mut sent = Vec::new();
            for _ in 0..random.below(60) {
                let message = message(&mut random);
                buffer.message(&message);
                sent.push(message);
            }
            buffer.flush();
            assert!(!buffer.is_enabled());
            let trace = buffer.registers().unwrap(buffer.dump()).unwrap();
            let (good, bad) = messages(trace.messages());
            assert_eq!(bad, 0, "{words} words");
            assert!(sent.ends_with(&good), "{words} words");
            let total: usize = sent.iter().map(Vec::len).sum();
            if !buffer.registers().wrapped {
                assert_eq!((good.len(), trace.cut()), (sent.len(), 0));
                assert_eq!(trace.older.len(), total.next_multiple_of(word as usize));
            } else {
                // All but the one that was cut, and perhaps one more.
                let kept: usize = good.iter().map(Vec::len).sum();
                assert!(
                    kept + 48 + word as usize > buffer.dump().len(),
                    "{words} words"
                );
            }
        }
    }
}

#[test]
fn stop_on_wrap_keeps_the_beginning() {
    for words in 1..60 {
        let mut random = Random::new(words);
        let sink = RamSink {
            limit: 0x8000 + (words - 1) * 4,
            stop_on_wrap: true,
            ..EMPTY
        };
        let mut buffer = RamBuffer::new(sink, IDLE).unwrap();
        let mut sent = Vec::new();
        let mut taken = 0;
        while buffer.is_enabled() {
            let message = message(&mut random);
            taken += buffer.write(&message);
            sent.push(message);
        }
        assert_eq!(taken as u64, words * 4);
        assert_eq!(buffer.write(&[1, 2, 3]), 0);
        buffer.flush();
        let registers = buffer.registers();
        assert!(registers.wrapped && registers.write_pointer == registers.start);
        let trace = registers.unwrap(buffer.dump()).unwrap();
        assert_eq!((trace.older, trace.cut()), (buffer.dump(), 0));
        let (good, bad) = messages(trace.messages());
        assert!(sent.starts_with(&good));
        // Only the last may be cut.
        assert!(good.len() + bad == sent.len() && bad <= 1);
    }
}

#[test]
fn a_pointer_in_the_middle() {
    let dump: Vec<u8> = (0..16).map(|i| i << 2).collect();
    for wp in 0..4 {
        let raw = 0x1000 + wp * 4;
        let at = wp as usize * 4;
        let flat = RamSink::from_registers(0x1000, 0x100c, raw);
        let trace = flat.unwrap(&dump).unwrap();
        assert_eq!((trace.older, trace.newer), (&dump[..at], &[][..]));
        let round = RamSink::from_registers(0x1000, 0x100c, raw | 1);
        assert!(round.wrapped);
        let trace = round.unwrap(&dump).unwrap();
        assert_eq!((trace.older, trace.newer), (&dump[at..], &dump[..at]));
        assert_eq!(trace.cut(), 16, "no message ends");
        assert_eq!(trace.messages().concat(), [0; 0]);
    }
}

#[test]
fn a_message_across_the_edge() {
    // It ends in the newer part: the cut reaches into it.
    let dump = [0x08, 0x07, 0x0c, 0x0f, 0x10, 0x20, 0x30, 0x40];
    let ram = RamSink::from_registers(0, 4, 5);
    let trace = ram.unwrap(&dump).unwrap();
    assert_eq!(trace.cut(), 6);
    assert_eq!(trace.messages(), [&[][..], &[0x0c, 0x0f]]);
}

#[test]
fn registers_that_make_no_sense() {
    let unwrap = |sink: RamSink, len: usize| sink.unwrap(&vec![0; len]).map(|_| ());
    let good = RamSink {
        limit: 0x800c,
        ..EMPTY
    };
    assert_eq!(unwrap(good, 16), Ok(()));
    let found = |found| RamError::Size {
        expected: 16,
        found,
    };
    for len in [0, 12, 15, 17, 20] {
        assert_eq!(unwrap(good, len), Err(found(len as u64)));
    }
    for word in [0, 1, 2, 3, 6, 12] {
        assert_eq!(unwrap(RamSink { word, ..good }, 16), Err(RamError::Word));
    }
    let with = |start, limit, write_pointer| RamSink {
        start,
        limit,
        write_pointer,
        ..good
    };
    for (sink, error) in [
        (with(0x8002, 0x800c, 0x8004), RamError::Unaligned),
        (with(0x8000, 0x800f, 0x8004), RamError::Unaligned),
        (with(0x8000, 0x800c, 0x8001), RamError::Unaligned),
        (with(0x8000, 0x7ffc, 0x8000), RamError::Limit),
        (with(0, !3, 0), RamError::Limit),
        (with(0x8000, 0x800c, 0x7ffc), RamError::Pointer),
        (with(0x8000, 0x800c, 0x8010), RamError::Pointer),
    ] {
        assert_eq!(unwrap(sink, 16), Err(error));
        assert!(RamBuffer::new(sink, IDLE).is_err());
    }
    assert!(matches!(
        RamBuffer::new(with(0, 1 << 32, 0), IDLE).map(|_| ()),
        Err(RamError::Limit)
    ));
    // At the very top of memory.
    let top = with(!0xf, !3, !7);
    assert_eq!(unwrap(top, 16), Ok(()));
    let mut buffer = RamBuffer::new(top, IDLE).unwrap();
    assert_eq!(buffer.write(&[0; 64]), 64);
}
