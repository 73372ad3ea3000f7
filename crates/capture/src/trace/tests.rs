use super::pieces::KEPT;
use super::*;
use hartrace_flow::decode::Framing as _;
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
    pieces::<Framer, _>(Input::open(&path).unwrap(), |at, piece, kind| {
        assert_eq!(at, seen.len() as u64);
        assert_eq!(piece.len(), Framer::length(kind));
        seen.extend_from_slice(piece);
        last = match *kind {
            Piece::Bad(fault, _) => Some(fault),
            _ => None,
        };
        Ok::<(), InputError>(())
    })
    .unwrap();
    assert!(seen == bytes);
    assert_eq!(last, Some(Fault::Truncated));
}

/// Memory that was never written: no message ends there.
#[test]
fn a_piece_without_end_is_not_kept() {
    let mut pieces = Pieces::<Framer>::default();
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
