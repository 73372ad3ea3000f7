//! Flame graphs: the call paths of a profile as a picture.
//!
//! The picture is one SVG file. Without its script it is complete, for pages that show
//! it as an image; opened in a browser it can be zoomed and searched. Nothing in the
//! script comes from the trace: names and numbers are text and attributes of elements.

mod colour;
mod frames;
mod svg;
#[cfg(test)]
mod tests;

use super::Shown;
use frames::Frames;
use hartrace_analyze::Profile;
use std::io::{self, Write};
use svg::Picture;

/// Draws the call paths of a profile as SVG. The width of a frame is what its path cost
/// with everything it called; paths of less than 0.01 % are left out. With an earlier
/// profile, frames whose own cost has grown are red, and those whose own cost has
/// shrunk are blue; paths that are gone have no width.
///
/// The same profile and title give the same bytes.
///
/// # Errors
///
/// A failing write.
pub fn flamegraph(
    shown: &Shown<'_>,
    before: Option<&Profile>,
    title: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut frames = Frames::new();
    frames.add(shown.profile, shown.by, |costs| &mut costs.now);
    if let Some(before) = before {
        frames.add(before, shown.by, |costs| &mut costs.before);
    }
    let placed = frames.place();
    Picture::new(title, shown.by, before.is_some(), &placed).write(out)
}
