//! What writes a file for a viewer, and what it is given.

use hartrace_flow::{Cause, Context, HartId};
use std::io;

/// Kinds of slices in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// A call.
    Call,
    /// An interrupt or an exception.
    Trap,
    /// The hart runs another thread.
    Away,
    /// Something is missing.
    Gap,
}

impl Category {
    /// All, in the order of their numbers.
    pub const ALL: [Category; 4] = [
        Category::Call,
        Category::Trap,
        Category::Away,
        Category::Gap,
    ];

    /// What it is called in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Call => "call",
            Category::Trap => "trap",
            Category::Away => "other threads",
            Category::Gap => "gap",
        }
    }
}

/// An arrow from a trap to its handler, or from the return from a trap to where the hart
/// resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// None.
    None,
    /// One with this number starts here.
    From(u64),
    /// It ends here.
    To(u64),
}

/// A track of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileTrack<'a> {
    /// Its number, from 0.
    pub id: u32,
    /// The hart.
    pub hart: HartId,
    /// What it is called.
    pub name: &'a str,
    /// Which of the threads of the hart it shows, and the context of that; `None` for
    /// the track of gaps.
    pub thread: Option<(u32, Option<Context>)>,
}

/// A slice that begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The track.
    pub track: u32,
    /// Where, on the axis.
    pub at: u64,
    /// Its name, and a number for the name.
    pub name: (u32, &'a str),
    /// Its kind.
    pub category: Category,
    /// Why a trap was taken.
    pub cause: Option<Cause>,
    /// Where a function that is called starts.
    pub address: Option<u64>,
    /// How long an interrupt was pending before it, in units of time, if that is known.
    pub latency: Option<u64>,
    /// Its arrow.
    pub arrow: Arrow,
}

/// Values over time or instructions.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    /// What is counted.
    pub name: &'a str,
    /// The hart; `None` for all.
    pub hart: Option<HartId>,
    /// Where each value begins, and the value.
    pub values: &'a [(u64, f64)],
}

/// Writes a file for a viewer. All methods fail as a write does.
pub trait SliceWriter {
    /// A track of a hart.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn track(&mut self, track: &FileTrack<'_>) -> io::Result<()>;

    /// A slice begins.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn begin(&mut self, slice: &Beginning<'_>) -> io::Result<()>;

    /// The slice of a track that began last ends, perhaps with an arrow from its end.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn end(&mut self, track: u32, at: u64, arrow: Arrow) -> io::Result<()>;

    /// The arrow with this number ends here: the hart resumes after a trap.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn resumed(&mut self, track: u32, at: u64, arrow: u64) -> io::Result<()> {
        let _ = (track, at, arrow);
        Ok(())
    }

    /// Whether the time that a hart spends in other threads is a slice. Otherwise the
    /// writer is told which track runs: all that is written of a hart is in order then.
    fn shows_away(&self) -> bool {
        true
    }

    /// A hart runs this track from here on.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn runs(&mut self, track: u32, at: u64) -> io::Result<()> {
        let _ = (track, at);
        Ok(())
    }

    /// Whether it wants to go on in another file.
    fn is_full(&self) -> bool {
        false
    }

    /// Goes on in another file: tracks are given again.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn next_file(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// How many values a counter may have in a file.
    fn most_values(&self) -> usize {
        4096
    }

    /// A counter, after all slices of a file.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn counter(&mut self, counter: &Counter<'_>) -> io::Result<()>;

    /// No more of anything.
    ///
    /// # Errors
    ///
    /// A failing write.
    fn finish(&mut self) -> io::Result<()>;
}
