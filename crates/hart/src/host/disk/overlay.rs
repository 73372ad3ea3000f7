//! A file with what was written to a disk, beside the image, which stays as it is.
//!
//! It begins with [`MAGIC`] and the size of the image, eight bytes, the lowest first. Then
//! come the pieces that were written, in any order: the number of each, eight bytes, and its
//! content.

use std::collections::BTreeMap;
use std::io::{self, SeekFrom};

use super::{PIECE, Piece, Storage};

const MAGIC: [u8; 8] = *b"\x89HTDISK\n";

/// Bytes before the first piece.
const HEADER: u64 = 16;

/// Bytes of a piece with its number.
const RECORD: u64 = 8 + PIECE as u64;

/// Where the pieces are.
pub(super) struct Overlay {
    storage: Box<dyn Storage>,
    /// Offset of the content of each piece, by its number.
    pieces: BTreeMap<u64, u64>,
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

impl Overlay {
    /// The overlay of an image of so many bytes.
    pub(super) fn open(mut storage: Box<dyn Storage>, image: u64) -> io::Result<Overlay> {
        let len = storage.seek(SeekFrom::End(0))?;
        storage.seek(SeekFrom::Start(0))?;
        let mut pieces = BTreeMap::new();
        if len == 0 {
            storage.write_all(&MAGIC)?;
            storage.write_all(&image.to_le_bytes())?;
            return Ok(Overlay { storage, pieces });
        }
        let mut magic = [0; 8];
        storage
            .read_exact(&mut magic)
            .map_err(|_| invalid("it is not an overlay"))?;
        if magic != MAGIC {
            return Err(invalid("it is not an overlay"));
        }
        if len < HEADER || !(len - HEADER).is_multiple_of(RECORD) {
            return Err(invalid("it was cut off"));
        }
        let size = number(&mut storage)?;
        if size != image {
            return Err(invalid(&format!(
                "it belongs to an image of {size} bytes, not {image}"
            )));
        }
        for at in (HEADER..len).step_by(RECORD as usize) {
            storage.seek(SeekFrom::Start(at))?;
            let piece = number(&mut storage)?;
            if piece >= image.div_ceil(PIECE as u64) || pieces.insert(piece, at + 8).is_some() {
                return Err(invalid("it is damaged"));
            }
        }
        Ok(Overlay { storage, pieces })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Reads a piece, if it is there.
    pub(super) fn read(&mut self, number: u64, into: &mut Piece) -> io::Result<bool> {
        let Some(&at) = self.pieces.get(&number) else {
            return Ok(false);
        };
        self.storage.seek(SeekFrom::Start(at))?;
        self.storage.read_exact(into)?;
        Ok(true)
    }

    pub(super) fn write(&mut self, number: u64, piece: &Piece) -> io::Result<()> {
        if let Some(&at) = self.pieces.get(&number) {
            self.storage.seek(SeekFrom::Start(at))?;
            return self.storage.write_all(piece);
        }
        // Whole at once: a run that is interrupted leaves no half of it.
        let mut record = [0; RECORD as usize];
        let (head, content) = record.split_at_mut(8);
        head.copy_from_slice(&number.to_le_bytes());
        content.copy_from_slice(piece);
        let at = HEADER + RECORD * self.pieces.len() as u64;
        self.storage.seek(SeekFrom::Start(at))?;
        self.storage.write_all(&record)?;
        self.pieces.insert(number, at + 8);
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.storage.flush()
    }
}

/// The next number.
fn number(storage: &mut dyn Storage) -> io::Result<u64> {
    let mut bytes = [0; 8];
    storage.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{Cursor, Read, Seek, Write};
    use std::rc::Rc;

    use super::super::Disk;
    use super::*;

    /// Bytes that outlive a disk.
    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

    impl Read for Shared {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.borrow_mut().read(buf)
        }
    }

    impl Write for Shared {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(buf)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Shared {
        fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
            self.0.borrow_mut().seek(pos)
        }
    }

    fn image(len: usize) -> Shared {
        Shared(Rc::new(RefCell::new(Cursor::new(vec![7; len]))))
    }

    fn disk(len: usize, overlay: &Shared) -> io::Result<Disk> {
        Disk::with_overlay(Box::new(image(len)), Box::new(overlay.clone()))
    }

    fn read(disk: &mut Disk, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        disk.read(offset, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_there_again() {
        let overlay = Shared::default();
        let mut first = disk(20_000, &overlay).unwrap();
        first.write(4000, &[1; 200]).unwrap();
        first.write(4096, &[2; 512]).unwrap();
        first.write(19_968, &[3; 32]).unwrap();
        drop(first);
        let mut again = disk(20_000, &overlay).unwrap();
        assert_eq!(read(&mut again, 3999, 3), [7, 1, 1]);
        assert_eq!(read(&mut again, 4095, 2), [1, 2]);
        assert_eq!(read(&mut again, 4607, 2), [2, 7]);
        assert_eq!(read(&mut again, 19_967, 2), [7, 3]);
        again.write(4096, &[4; 512]).unwrap();
        drop(again);
        // Three pieces: one that is written again stays where it is.
        assert_eq!(overlay.0.borrow().get_ref().len(), 16 + 3 * (8 + 4096));
        assert_eq!(read(&mut disk(20_000, &overlay).unwrap(), 4096, 1), [4]);
    }

    #[test]
    fn wrong_overlays_are_refused() {
        let overlay = Shared::default();
        disk(20_000, &overlay).unwrap().write(0, &[1; 512]).unwrap();
        let good = overlay.0.borrow().get_ref().clone();
        let open = |bytes: &[u8], len| {
            let overlay = Shared(Rc::new(RefCell::new(Cursor::new(bytes.to_vec()))));
            disk(len, &overlay).err().map(|error| error.to_string())
        };
        assert_eq!(open(&good, 20_000), None);
        let other = open(&good, 20_001).unwrap();
        assert_eq!(other, "it belongs to an image of 20000 bytes, not 20001");
        for len in 1..good.len() {
            let expected = if len < 8 {
                "it is not an overlay"
            } else {
                "it was cut off"
            };
            if len != 16 {
                assert_eq!(open(&good[..len], 20_000).unwrap(), expected, "{len}");
            }
        }
        assert_eq!(open(&[0; 4096], 20_000).unwrap(), "it is not an overlay");
        let mut twice = good.clone();
        twice.extend_from_slice(&good[16..]);
        assert_eq!(open(&twice, 20_000).unwrap(), "it is damaged");
        let mut outside = good;
        outside[16] = 5;
        assert_eq!(open(&outside, 20_000).unwrap(), "it is damaged");
    }
}
