//! The code contained in a tandem trace: every instruction is recorded, so the
//! program is not needed.

use super::{StreamPiece, Streams};
use hartrace_flow::{HartId, Image, SpaceId};
use hartrace_isa::Isa;
use hartrace_tandem::{Config, Follower, Group, Next, Reader};
use std::collections::BTreeMap;

/// Halfwords of a page.
const PAGE: usize = 2048;

/// Gathers the instructions of tandem traces. Of code that changes, what came
/// first stays.
pub(crate) struct Code {
    config: Config,
    streams: Streams,
    harts: Vec<Hart>,
    pages: BTreeMap<u64, Box<Page>>,
}

struct Hart {
    id: HartId,
    reader: Reader,
    place: Follower,
}

struct Page {
    halfwords: [Option<u16>; PAGE],
}

/// It does not fail.
enum Never {}

impl Code {
    /// Nothing yet.
    #[must_use]
    pub(super) fn new(config: &Config) -> Code {
        Code {
            config: config.clone(),
            streams: Streams::default(),
            harts: Vec::new(),
            pages: BTreeMap::new(),
        }
    }

    /// The next bytes of the file.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut streams = std::mem::take(&mut self.streams);
        let _ = streams.feed(bytes, |piece| {
            match piece {
                StreamPiece::Bytes(hart, bytes) => self.stream(hart, bytes),
                StreamPiece::Lost(_) => {
                    self.harts.iter_mut().for_each(|hart| hart.place.set(None));
                }
            }
            Ok::<(), Never>(())
        });
        self.streams = streams;
    }

    /// What was executed, as a program.
    #[must_use]
    pub(super) fn image(mut self, isa: Isa) -> Image {
        for Hart { reader, place, .. } in &mut self.harts {
            // The last group may have no end of its own.
            if reader.finish() == Next::Group {
                follow(reader.group(), place, &mut self.pages);
            }
        }
        let mut image = Image::new();
        let (mut start, mut bytes) = (0, Vec::new());
        for (base, page) in &self.pages {
            for (halfword, at) in page.halfwords.iter().zip((*base..).step_by(2)) {
                let Some(halfword) = halfword else { continue };
                if at != start + bytes.len() as u64 {
                    if !bytes.is_empty() {
                        image.add_raw(SpaceId::FIRST, start, &bytes, isa);
                    }
                    start = at;
                    bytes.clear();
                }
                bytes.extend(halfword.to_le_bytes());
            }
        }
        if !bytes.is_empty() {
            image.add_raw(SpaceId::FIRST, start, &bytes, isa);
        }
        image
    }

    fn stream(&mut self, id: HartId, mut bytes: &[u8]) {
        if !self.harts.iter().any(|hart| hart.id == id) {
            self.harts.push(Hart {
                id,
                reader: Reader::new(self.config.clone()),
                place: Follower::new(self.config.xlen),
            });
        }
        let Code { harts, pages, .. } = self;
        let Some(Hart { reader, place, .. }) = harts.iter_mut().find(|hart| hart.id == id) else {
            return;
        };
        loop {
            match reader.next(&mut bytes) {
                Next::More => return,
                Next::Group => follow(reader.group(), place, pages),
                Next::Problem(_) | Next::Resumed(_) => place.set(None),
            }
        }
    }
}

/// Puts the instruction of a group where it was executed.
fn follow(group: &Group, place: &mut Follower, pages: &mut BTreeMap<u64, Box<Page>>) {
    let (Some(here), Some(insn)) = (place.follow(group), group.insn) else {
        return;
    };
    let halves = [(0, insn.bits as u16), (2, (insn.bits >> 16) as u16)];
    for (offset, halfword) in halves.into_iter().take(usize::from(insn.len) / 2) {
        let at = here.wrapping_add(offset) & !1;
        let base = at & !(2 * PAGE as u64 - 1);
        let page = pages.entry(base).or_insert_with(|| {
            Box::new(Page {
                halfwords: [None; PAGE],
            })
        });
        let slot = page.halfwords.get_mut((at - base) as usize / 2);
        slot.map(|slot| slot.get_or_insert(halfword));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// c.nop at 0x1000, a jump to 0x1ffe, and an instruction across the page.
    #[test]
    fn instructions_are_where_they_were() {
        let mut bytes = vec![1, 11, 7, 10, 0, 16, 0, 0, 0, 0, 0, 0, 2];
        bytes.extend([1, 3, 16, 1, 0, 2]);
        bytes.extend([1, 7, 10, 0xfe, 0x1f, 0, 0, 0, 0, 0, 0, 16, 2, 0x80, 2]);
        bytes.extend([1, 3, 17, 0x13, 0, 0, 0, 2]);
        for chunk in [1, 7, bytes.len()] {
            let mut code = Code::new(&Config::default());
            bytes.chunks(chunk).for_each(|chunk| code.feed(chunk));
            let image = code.image(Isa::RV64GC);
            let bits = |pc| image.fetch(SpaceId::FIRST, pc).map(|code| code.bits);
            assert_eq!(bits(0x1000), Some(1));
            assert_eq!(bits(0x1002), Some(0x8002));
            assert_eq!(bits(0x1ffe), Some(0x13));
            assert_eq!(bits(0x2002), None);
        }
    }
}
