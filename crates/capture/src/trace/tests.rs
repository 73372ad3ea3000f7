use super::pieces::KEPT;
use super::*;
use crate::detect::Kind;
use crate::input::{Input, InputError};
use hartrace_flow::HartId;
use hartrace_flow::decode::Framing as _;
use hartrace_isa::Isa;
use hartrace_ntrace::{Fault, Framer, Piece};
use std::fs;

/// Messages that cross the chunks of the input, with damage in between.
#[test]
fn the_pieces_are_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let mut bytes = Vec::new();
    while bytes.len() < (5 << 20) / 2 {
        bytes.extend([
            0x0c, 0x0f, 0xff, 0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff, 0x02, 0x03,
        ]);
    }
    bytes.extend([0x0c, 0x00]);
    fs::write(&path, &bytes).unwrap();
    let mut seen = Vec::new();
    let mut last = None;
    pieces(
        Input::open(&path).unwrap(),
        Framer::new(),
        |at, piece, kind| {
            assert_eq!(at, seen.len() as u64);
            assert_eq!(piece.len(), Framer::length(kind));
            seen.extend_from_slice(piece);
            last = match *kind {
                Piece::Bad(fault, _) => Some(fault),
                _ => None,
            };
            Ok::<(), InputError>(())
        },
    )
    .unwrap();
    assert!(seen == bytes);
    assert_eq!(last, Some(Fault::Truncated));
}

/// Memory that was never written: no message ends there.
#[test]
fn a_piece_without_end_is_not_kept() {
    let mut pieces = Pieces::new(Framer::new());
    let zeros = vec![0; 1 << 16];
    let nothing = |_, _: &[u8], _: &Piece<'_>| Err("a piece");
    for _ in 0..100 {
        assert_eq!(pieces.feed(&zeros, nothing), Ok(()));
        assert!(pieces.kept.capacity() <= 2 * KEPT);
    }
    let mut seen = Vec::new();
    let mut take = |at, bytes: &[u8], piece: &Piece<'_>| {
        seen.push((at, bytes.len(), Framer::length(piece)));
        Ok::<(), ()>(())
    };
    pieces.feed(&[0x03, 0x0c, 0x0f, 0x0c], &mut take).unwrap();
    pieces.finish(take).unwrap();
    let all = 100 << 16;
    assert_eq!(
        seen,
        [
            (0, KEPT, all + 1),
            (all as u64 + 1, 2, 2),
            (all as u64 + 3, 1, 1)
        ]
    );
}

fn opened(bytes: &[u8], config: &str) -> Result<Trace, TraceError> {
    let config = Config::parse(config, Path::new("t.toml")).unwrap();
    let input = Input::of(Path::new("t"), bytes.to_vec());
    Trace::open(input, &config, Known::default())
}

#[test]
fn settings_are_given_or_guessed() {
    let groups = [1, 3, 16, 1, 0, 2].repeat(100);
    let trace = opened(&groups, "").unwrap();
    assert_eq!(trace.format(), Format::Tandem);
    let guess = trace.guess.unwrap();
    assert_eq!((guess.of, guess.hints), ("the tandem trace", vec![]));
    let trace = opened(&groups, "[tandem]\nxlen = 32").unwrap();
    assert_eq!(
        (trace.guess, trace.settings.general_isa()),
        (None, Isa::RV32GC)
    );
    let error = opened(b"nothing", "").err().unwrap();
    assert_eq!(error.to_string(), "does not look like a trace");
    let error = opened(b"nothing", "[trace]\nformat = \"etrace\"")
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "does not look like E-Trace");
}

#[test]
fn other_files_are_refused() {
    let accept = |bytes: &[u8], transport: &Transport| {
        let input = Input::of(Path::new("t"), bytes.to_vec());
        let tandem = "[trace]\nformat = \"tandem\"";
        let config = Config::parse(tandem, Path::new("c")).unwrap();
        Trace::accept(input, transport, &config)
    };
    let plain = Transport::default();
    assert!(matches!(
        accept(b"", &plain),
        Err(Refusal::Unreadable(Kind::Empty, _))
    ));
    assert!(matches!(
        accept(b"\x7fELF", &plain),
        Err(Refusal::NotATrace(Kind::Elf))
    ));
    let pins = Transport {
        pib: Some(Pib::new(PibWidth::Four)),
        ..plain
    };
    assert!(matches!(accept(&[0x41, 0x1f], &pins), Err(Refusal::Pins)));
    assert!(accept(&[0x41, 0x1f], &plain).is_ok());
}

/// Into a container and out of it, the bytes stay the same.
#[test]
fn streams_are_repacked() {
    let groups = [1, 3, 16, 1, 0, 2].repeat(1000);
    let trace = opened(&groups, "[tandem]\nxlen = 64").unwrap();
    for compress in [false, true] {
        let mut packed = Vec::new();
        let put = Box::new(|bytes: &[u8]| packed.extend_from_slice(bytes));
        let repack = Repack::container(&trace.settings, None, compress, None, put);
        let mut repack = repack.unwrap().unwrap();
        groups.chunks(777).for_each(|chunk| repack.feed(chunk));
        assert_eq!(repack.finish().bytes, groups.len() as u64);
        assert!(opened(&packed, "").unwrap().is_contained());
        let input = Input::of(Path::new("t"), packed.clone());
        assert_eq!(harts_in(input).unwrap(), [HartId(0)]);
        let mut plain = Vec::new();
        let mut repack = Repack::plain(None, true, |_, bytes| plain.extend_from_slice(bytes));
        packed.chunks(777).for_each(|chunk| repack.feed(chunk));
        assert_eq!((repack.clashes(), repack.finish().lost), (false, 0));
        assert!(plain == groups);
    }
}

#[test]
fn a_census_of_groups() {
    let trace = opened(&[1, 3, 16, 1, 0, 2].repeat(10), "[tandem]\nxlen = 64").unwrap();
    let mut counting = Counting::new(&trace.settings);
    counting.feed(&trace.input.read_all(100).unwrap());
    let census = counting.finish();
    assert_eq!((census.all.messages, census.bytes()), (10, 60));
    assert_eq!(
        census.items.iter().map(|i| i.count.messages).sum::<u64>(),
        40
    );
}
