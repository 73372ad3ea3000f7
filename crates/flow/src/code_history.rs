//! A code history: which code harts executed, where and when.
//!
//! A decoder of a trace needs the code that ran. Of a program that is an ELF file; of a
//! whole system it is firmware, a kernel that patches itself, modules and processes, and
//! no file has all of it. A code history does. Most of it is code that was the same
//! whenever it ran ([`CodePiece`]); the rest has versions, each with the moment from which
//! on it was in place ([`VaryingCode`]).

mod record;

use alloc::vec::Vec;

use hartrace_isa::Isa;

use crate::{HartId, Image, SpaceId, Version};

pub use record::CodeRecorder;

/// The code that harts executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeHistory {
    /// Code that was always the same, by address, none overlapping.
    pub pieces: Vec<CodePiece>,
    /// Code that was not, by address, none overlapping.
    pub varying: Vec<VaryingCode>,
    /// The synchronisation messages from which versions count, by offset: a trace without
    /// them is another one.
    pub syncs: Vec<NamedSync>,
}

/// A synchronisation message of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedSync {
    /// Offset of the byte after it in the stream.
    pub offset: u64,
    /// The hart that it is about.
    pub hart: HartId,
    /// Address of the instruction that it names.
    pub address: u64,
}

/// Code that was always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePiece {
    /// Address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: Vec<u8>,
}

/// Code that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingCode {
    /// Address of its first instruction.
    pub address: u64,
    /// All instructions that start in so many bytes from there belong to it.
    pub len: u64,
    /// What was there, from the address on, to the end of the last instruction.
    pub contents: Vec<Vec<u8>>,
    /// Which of it was there when, as [`Image::vary`] takes it.
    pub versions: Vec<Version>,
}

impl CodeHistory {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.varying.is_empty()
    }

    /// Whether an image has all of this code, and the same.
    #[must_use]
    pub fn is_in(&self, image: &Image) -> bool {
        let mut room = Vec::new();
        self.varying.is_empty()
            && self.pieces.iter().all(|piece| {
                room.clear();
                room.resize(piece.bytes.len(), 0);
                let read = image.read(SpaceId::FIRST, piece.address, &mut room);
                read == room.len() && room == piece.bytes
            })
    }

    /// Puts the code into the first space of an image, over whatever is there.
    pub fn add_to(&self, image: &mut Image, isa: Isa) {
        let pieces = self.pieces.iter();
        image.add_all(
            SpaceId::FIRST,
            pieces.map(|piece| (piece.address, piece.bytes.as_slice())),
            isa,
        );
        let mut contents: Vec<&[u8]> = Vec::new();
        for code in &self.varying {
            contents.clear();
            contents.extend(code.contents.iter().map(Vec::as_slice));
            let end = code.address.saturating_add(code.len);
            image.vary(code.address..end, &contents, &code.versions, isa);
        }
        image.expect(&self.syncs);
    }
}
