//! A tandem stream cut into its groups.

use hartrace_tandem::{Config, Group, Item, Next, Problem, Reader};

/// A part of a tandem stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GroupPiece<'g> {
    /// A group, or what stands outside of any.
    Group(&'g Group),
    /// What cannot be used, and why.
    Bad(Problem),
    /// Ends of groups that never began.
    Stray,
}

/// Divides a stream into its groups; each comes with its offset and its bytes.
/// Bytes that are no group may come in several parts: memory does not grow
/// with the stream.
pub(crate) struct Groups {
    reader: Reader,
    /// Bytes; those not given out yet start at `given`.
    kept: Vec<u8>,
    given: usize,
    /// Offset of the first that is not given out.
    base: u64,
    /// Why the bytes since `base` are of no use.
    problem: Option<Problem>,
}

/// The items in the bytes of a group, each with its offset there and its
/// length.
pub(crate) fn items<'a>(
    bytes: &'a [u8],
    config: &'a Config,
) -> impl Iterator<Item = (usize, usize, Item)> + 'a {
    let (mut at, mut request) = (0, None);
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        // The reader has read it before.
        let (item, length) = Item::read(rest, config, request.as_ref()).ok()??;
        request = match item {
            Item::Request(request) => Some(request),
            _ => None,
        };
        let here = at;
        at += length;
        Some((here, length, item))
    })
}

/// Useless bytes that are given out at once.
const MOST: u64 = 1 << 16;

impl Groups {
    /// At the start of a stream.
    #[must_use]
    pub(crate) fn new(config: Config) -> Groups {
        Groups {
            reader: Reader::new(config),
            kept: Vec::new(),
            given: 0,
            base: 0,
            problem: None,
        }
    }

    /// The next bytes of the stream.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(crate) fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(u64, &[u8], &GroupPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.kept.extend_from_slice(chunk);
        let mut rest = chunk;
        loop {
            let next = self.reader.next(&mut rest);
            if next == Next::More {
                break;
            }
            self.next(next, &mut take)?;
        }
        if let Some(problem) = self.problem
            && self.reader.offset() - self.base > MOST
        {
            self.give_bad(self.reader.offset(), &mut take)?;
            self.problem = Some(problem);
        }
        self.kept.drain(..self.given);
        self.given = 0;
        Ok(())
    }

    /// The stream ends: what is left.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub(crate) fn finish<E>(
        &mut self,
        mut take: impl FnMut(u64, &[u8], &GroupPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let next = self.reader.finish();
            if next == Next::More {
                break;
            }
            self.next(next, &mut take)?;
        }
        let left = self.kept.len() - self.given;
        self.give_bad(self.base + left as u64, &mut take)
    }

    fn next<E>(
        &mut self,
        next: Next,
        take: &mut impl FnMut(u64, &[u8], &GroupPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match next {
            Next::More | Next::Resumed(_) => {}
            Next::Problem(problem) => {
                // What was wrong before ends where this group began.
                let begun = self.reader.group().at;
                let start = if begun > self.base && begun <= problem.at {
                    begun
                } else {
                    problem.at
                };
                if self.problem.is_some() {
                    self.give_bad(start, take)?;
                }
                self.problem = Some(problem);
            }
            Next::Group => {
                let (at, end) = (self.reader.group().at, self.reader.offset());
                self.give_bad(at, take)?;
                let length = (end - at) as usize;
                take(
                    at,
                    self.bytes(length),
                    &GroupPiece::Group(self.reader.group()),
                )?;
                self.pass(length);
            }
        }
        Ok(())
    }

    /// Gives out what is no group, up to an offset.
    fn give_bad<E>(
        &mut self,
        to: u64,
        take: &mut impl FnMut(u64, &[u8], &GroupPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = to.saturating_sub(self.base) as usize;
        if length == 0 {
            return Ok(());
        }
        let piece = match self.problem.take() {
            Some(problem) => GroupPiece::Bad(problem),
            None => GroupPiece::Stray,
        };
        take(self.base, self.bytes(length), &piece)?;
        self.pass(length);
        Ok(())
    }

    fn bytes(&self, length: usize) -> &[u8] {
        let end = self.given.saturating_add(length).min(self.kept.len());
        self.kept.get(self.given..end).unwrap_or_default()
    }

    fn pass(&mut self, length: usize) {
        self.given = (self.given + length).min(self.kept.len());
        self.base += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_tandem::Fault;

    const NOP: [u8; 6] = [1, 3, 16, 1, 0, 2];

    fn cut(bytes: &[u8], chunk: usize) -> Vec<(u64, usize, Option<Fault>)> {
        let mut all = Vec::new();
        let mut seen = Vec::new();
        let mut take = |at: u64, piece: &[u8], kind: &GroupPiece<'_>| {
            assert_eq!(at, seen.len() as u64);
            seen.extend_from_slice(piece);
            all.push((
                at,
                piece.len(),
                match kind {
                    GroupPiece::Bad(problem) => Some(problem.fault),
                    _ => None,
                },
            ));
            Ok::<(), ()>(())
        };
        let mut groups = Groups::new(Config::default());
        for chunk in bytes.chunks(chunk) {
            groups.feed(chunk, &mut take).unwrap();
        }
        groups.finish(&mut take).unwrap();
        assert!(seen == bytes);
        all
    }

    /// Good, stray, damaged, twice a pc, good again, cut off.
    #[test]
    fn the_pieces_are_the_stream() {
        let mut bytes = NOP.repeat(4);
        bytes.push(2);
        bytes.extend([1, 0xff, 0, 0]);
        bytes.extend(NOP.repeat(5));
        bytes.extend([1, 3, 3, 16, 1, 0, 2]);
        bytes.extend(NOP.repeat(3));
        bytes.extend([1, 3, 16]);
        let whole = cut(&bytes, bytes.len());
        let faults: Vec<_> = whole.iter().filter_map(|p| p.2).collect();
        assert_eq!(
            faults,
            [Fault::UnknownOpcode, Fault::TwoPcs, Fault::Truncated]
        );
        assert_eq!(whole.iter().filter(|p| p.1 == 6).count(), 12);
        for chunk in 1..20 {
            assert_eq!(cut(&bytes, chunk), whole, "{chunk}");
        }
    }

    #[test]
    fn useless_bytes_are_not_kept() {
        let mut groups = Groups::new(Config::default());
        let (mut given, mut most) = (0, 0);
        for _ in 0..200 {
            groups
                .feed(&[0xff; 1 << 14], |_, bytes, _| {
                    given += bytes.len();
                    Ok::<(), ()>(())
                })
                .unwrap();
            most = most.max(groups.kept.len());
        }
        assert!(most < 1 << 18 && given > 100 << 14, "{most} {given}");
    }
}
