use super::*;
use hartrace_ntrace::Fault;
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
    pieces(Input::open(&path).unwrap(), |at, piece, kind| {
        assert_eq!(at, seen.len() as u64);
        assert_eq!(piece.len(), length(kind));
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
