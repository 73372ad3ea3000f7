//! An FST file with its names first.

use super::{GEOMETRY, HEADER_LENGTH, HIERARCHY, HIERARCHY_LZ4, HIERARCHY_LZ4_TWICE};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Reads an FST file so that the lengths and names of its signals come right after its
/// header, whatever their place in the file. Blocks may have any order, so this is an FST
/// file as well; one that is not finished stays as it is.
#[derive(Debug)]
pub struct Front<F> {
    file: F,
    /// What is to be read of the file, in this order.
    parts: Vec<Range<u64>>,
    at: Option<u64>,
}

impl<F: Read + Seek> Front<F> {
    /// Looks for the names.
    ///
    /// # Errors
    ///
    /// Those of the file.
    pub fn new(mut file: F) -> io::Result<Front<F>> {
        let end = file.seek(SeekFrom::End(0))?;
        let header = (1 + HEADER_LENGTH).min(end);
        let mut moved: Vec<Range<u64>> = Vec::new();
        let mut at = header;
        // Most blocks are large, and a damaged length ends the search.
        while at < end && moved.len() < 2 {
            file.seek(SeekFrom::Start(at))?;
            let mut start = [0; 9];
            if file.read_exact(&mut start).is_err() {
                break;
            }
            let [kind, length @ ..] = start;
            let length = u64::from_be_bytes(length);
            let next = at.checked_add(1).and_then(|at| at.checked_add(length));
            let Some(next) = next.filter(|next| length >= 8 && *next <= end) else {
                break;
            };
            if matches!(
                kind,
                GEOMETRY | HIERARCHY | HIERARCHY_LZ4 | HIERARCHY_LZ4_TWICE
            ) {
                moved.push(at..next);
            }
            at = next;
        }
        if moved.len() < 2 {
            moved.clear();
        }
        let first = std::iter::once(0..header);
        let mut parts: Vec<Range<u64>> = first.chain(moved.iter().cloned()).collect();
        let mut from = header;
        for block in moved {
            parts.push(from..block.start);
            from = block.end;
        }
        parts.push(from..end);
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        Ok(Front {
            file,
            parts,
            at: None,
        })
    }
}

impl<F: Read + Seek> Read for Front<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(part) = self.parts.last_mut() else {
            return Ok(0);
        };
        if self.at != Some(part.start) {
            self.file.seek(SeekFrom::Start(part.start))?;
        }
        let left = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let count = self.file.read(buffer.get_mut(..room).unwrap_or_default())?;
        part.start += count as u64;
        self.at = Some(part.start);
        // A file that has become shorter ends there.
        if part.is_empty() || (count == 0 && room > 0) {
            self.parts.pop();
        }
        match count {
            0 if room > 0 => self.read(buffer),
            count => Ok(count),
        }
    }
}
