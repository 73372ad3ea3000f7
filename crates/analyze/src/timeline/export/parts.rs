//! A timeline in several files, one after the other in time.

use super::{Arrow, Beginning, Counter, FileTrack, SliceWriter};
use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// One file of several.
pub struct OnePart<'w> {
    writer: Box<dyn SliceWriter + 'w>,
    count: Rc<Cell<u64>>,
}

impl<'w> OnePart<'w> {
    /// A file that `write` writes to `out`.
    pub fn new(
        out: Box<dyn Write + 'w>,
        write: impl FnOnce(Box<dyn Write + 'w>) -> Box<dyn SliceWriter + 'w>,
    ) -> OnePart<'w> {
        let count = Rc::new(Cell::new(0));
        let counted = Counted {
            out,
            count: Rc::clone(&count),
        };
        let writer = write(Box::new(counted));
        OnePart { writer, count }
    }
}

/// Counts bytes.
struct Counted<'w> {
    out: Box<dyn Write + 'w>,
    count: Rc<Cell<u64>>,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count.set(self.count.get() + bytes.len() as u64);
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Goes on in another file when one has so many bytes. The files are written by writers
/// of one format, which are made when they are needed.
pub struct Parts<'w> {
    limit: u64,
    part: OnePart<'w>,
    next: &'w mut dyn FnMut() -> io::Result<OnePart<'w>>,
    /// The first and the last place in the file.
    range: Option<(u64, u64)>,
    written: Vec<WrittenPart>,
}

/// A file that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenPart {
    /// Its size.
    pub bytes: u64,
    /// The first and the last place on the axis.
    pub range: (u64, u64),
}

impl<'w> Parts<'w> {
    /// Files of about `limit` bytes each, which `next` makes.
    ///
    /// # Errors
    ///
    /// The first file cannot be made.
    pub fn new(
        limit: u64,
        next: &'w mut dyn FnMut() -> io::Result<OnePart<'w>>,
    ) -> io::Result<Parts<'w>> {
        Ok(Parts {
            limit,
            part: next()?,
            next,
            range: None,
            written: Vec::new(),
        })
    }

    /// The files that were written, in order.
    #[must_use]
    pub fn written(&self) -> &[WrittenPart] {
        &self.written
    }

    fn place(&mut self, at: u64) {
        let (first, last) = self.range.unwrap_or((at, at));
        self.range = Some((first.min(at), last.max(at)));
    }

    fn end_file(&mut self) -> io::Result<()> {
        self.part.writer.finish()?;
        self.written.push(WrittenPart {
            bytes: self.part.count.get(),
            range: self.range.take().unwrap_or((0, 0)),
        });
        Ok(())
    }
}

impl SliceWriter for Parts<'_> {
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()> {
        self.part.writer.track(track)
    }

    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()> {
        self.place(slice.at);
        self.part.writer.begin(slice)
    }

    fn end(&mut self, track: u32, at: u64, arrow: Arrow) -> io::Result<()> {
        self.place(at);
        self.part.writer.end(track, at, arrow)
    }

    fn resumed(&mut self, track: u32, at: u64, arrow: u64) -> io::Result<()> {
        self.part.writer.resumed(track, at, arrow)
    }

    fn is_full(&self) -> bool {
        self.part.count.get() >= self.limit
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.end_file()?;
        self.part = (self.next)()?;
        Ok(())
    }

    fn most_values(&self) -> usize {
        // A few hundredths of the file.
        (self.limit / 1000).clamp(16, 4096) as usize
    }

    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()> {
        self.part.writer.counter(counter)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.end_file()
    }
}
