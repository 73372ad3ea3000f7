//! The picture. Lengths are pixels; positions in it are hundredths of a pixel.
//!
//! `script.js` knows the layout: the classes, the order of the elements of a frame, and
//! the constants below.

use super::colour;
use super::frames::{Costs, Placed};
use crate::profile::percent;
use crate::words::{counted, grouped};
use hartrace_analyze::Measure;
use std::fmt::Write as _;
use std::io::{self, Write};

const SCRIPT: &str = include_str!("script.js");
const STYLE: &str = include_str!("style.css");

const WIDTH: u64 = 1200;
/// Beside and below the frames.
const MARGIN: u64 = 10;
/// The title, and a line about everything.
const HEAD: u64 = 60;
/// From one depth to the next; frames are a pixel less high.
const ROW: u64 = 18;
/// The width of a character in hundredths of a pixel: that of the widest of the usual
/// fixed-width fonts at the size of the style sheet, and of the title.
const LETTER: u64 = 730;
const TITLE_LETTER: u64 = 1000;
/// From the side of a frame to its label.
const INDENT: u64 = 3;
/// A label of fewer columns says nothing.
const LEAST_COLUMNS: u64 = 3;
/// Names are cut after so many columns, so that generic names of many kilobytes do not
/// make a picture that no browser opens.
const NAME_COLUMNS: u64 = 1000;

/// A flame graph with everything that is written.
pub(super) struct Picture<'a> {
    title: &'a str,
    by: Measure,
    is_difference: bool,
    frames: &'a [Placed<'a>],
    whole: Costs,
    /// The largest change of a frame's own cost.
    most: u64,
    /// Rows of frames.
    rows: u64,
}

impl<'a> Picture<'a> {
    pub(super) fn new(
        title: &'a str,
        by: Measure,
        is_difference: bool,
        frames: &'a [Placed<'a>],
    ) -> Picture<'a> {
        let changes = frames.iter().map(|f| f.own.now.abs_diff(f.own.before));
        let rows = frames.iter().map(|f| f.depth as u64 + 1);
        Picture {
            title,
            by,
            is_difference,
            frames,
            whole: frames.first().map_or_else(Costs::default, |all| all.total),
            most: changes.max().unwrap_or(0),
            rows: rows.max().unwrap_or(0),
        }
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let height = HEAD + self.rows * ROW + MARGIN;
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">"
        )?;
        writeln!(
            out,
            "<title>{}</title>",
            escaped(&cut(self.title, NAME_COLUMNS))
        )?;
        writeln!(out, "<style><![CDATA[\n{STYLE}]]></style>")?;
        writeln!(out, "<rect class=\"back\" width=\"100%\" height=\"100%\"/>")?;
        writeln!(out, "<g class=\"frames\">")?;
        let mut line = String::new();
        for frame in self.frames {
            line.clear();
            // Writing to memory does not fail.
            let _ = self.frame(frame, &mut line);
            out.write_all(line.as_bytes())?;
        }
        writeln!(out, "</g>")?;
        self.head(out)?;
        writeln!(out, "<script><![CDATA[\n{SCRIPT}]]></script>")?;
        writeln!(out, "</svg>")
    }

    /// The title and what everything costs. The head is above the frames, also when
    /// the script moves it with the window.
    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let columns = 100 * (WIDTH - 2 * MARGIN) / TITLE_LETTER;
        let title = escaped(&cut(self.title, columns));
        let mut about = self.cost(self.whole.now);
        if self.is_difference {
            let before = grouped(self.whole.before);
            about += &format!(", before {before}; red: more by itself than before; blue: less");
        }
        writeln!(
            out,
            "<g class=\"head\"><rect class=\"back\" width=\"100%\" height=\"{}\"/>\n\
             <text class=\"title\" x=\"{MARGIN}\" y=\"24\">{title}</text>\n\
             <text class=\"about\" x=\"{MARGIN}\" y=\"46\">{about}</text></g>",
            HEAD - 6,
        )
    }

    fn frame(&self, frame: &Placed<'_>, line: &mut String) -> std::fmt::Result {
        let Placed { start, depth, .. } = *frame;
        let now = frame.total.now;
        let (left, right) = (self.x(start), self.x(start.saturating_add(now)));
        let y = HEAD + ROW * self.rows.saturating_sub(depth as u64 + 1);
        let fill = match (self.is_difference, depth) {
            (true, _) => colour::of_change(frame.own, self.most),
            (false, 0) => colour::of_name("[all]"),
            (false, _) => colour::of_name(frame.name),
        };
        write!(
            line,
            "<g class=\"frame\" data-depth=\"{depth}\" data-start=\"{start}\" data-cost=\"{now}\">\
             <title>{}\n{}</title>\
             <rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>",
            escaped(&cut(frame.name, NAME_COLUMNS)),
            self.details(frame),
            pixels(left),
            pixels(right - left),
            ROW - 1,
        )?;
        let columns = (right - left).saturating_sub(200 * INDENT) / LETTER;
        if columns >= LEAST_COLUMNS {
            let (x, y) = (pixels(left + 100 * INDENT), y + 13);
            let label = escaped(&cut(frame.name, columns));
            write!(line, "<text x=\"{x}\" y=\"{y}\">{label}</text>")?;
        }
        writeln!(line, "</g>")
    }

    /// What a frame cost: the second line of its tooltip.
    fn details(&self, frame: &Placed<'_>) -> String {
        let (own, total) = (frame.own, frame.total);
        let share = percent(total.now, self.whole.now);
        let before = |cost| match self.is_difference {
            true => format!(", before {}", grouped(cost)),
            false => String::new(),
        };
        format!(
            "{}, {share:.2} %{}; self {}{}",
            self.cost(total.now),
            before(total.before),
            grouped(own.now),
            before(own.before),
        )
    }

    fn cost(&self, cost: u64) -> String {
        match self.by {
            Measure::Instructions => counted(cost, "instruction"),
            Measure::Time => counted(cost, "unit") + " of time",
        }
    }

    /// Where a cost is. Both sides of a frame are computed by this, so that frames
    /// touch, and never leave the frame below.
    fn x(&self, cost: u64) -> u64 {
        let whole = u128::from(self.whole.now.max(1));
        let width = u128::from(100 * (WIDTH - 2 * MARGIN));
        let offset = u128::from(cost).min(whole) * width / whole;
        100 * MARGIN + offset as u64
    }
}

fn pixels(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Columns that a character takes in a fixed-width font: two from the first of the
/// East Asian scripts on, which is at least what it needs.
const fn columns(c: char) -> u64 {
    if c < '\u{1100}' { 1 } else { 2 }
}

/// The start of a text, with an ellipsis if it needs more than `most` columns.
pub(super) fn cut(text: &str, most: u64) -> String {
    let mut taken = 0;
    // Where the ellipsis goes, should one be needed.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if taken < most {
            end = at;
        }
        taken += columns(c);
        if taken > most {
            return text.get(..end).unwrap_or_default().to_owned() + "…";
        }
    }
    text.to_owned()
}

/// Text for elements and attributes. What XML 1.0 (2.2) does not allow, other control
/// characters, and marks that change the direction of text become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fffe}'
            | '\u{ffff}' => safe.push('\u{fffd}'),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
