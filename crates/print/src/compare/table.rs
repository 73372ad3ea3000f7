//! Tables of any form.

use super::Look;
use std::io::{self, Write};

/// The side of a column that its values share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

struct Column {
    head: String,
    align: Align,
    cells: Vec<String>,
    /// `yes` is good and anything else is not.
    verdict: bool,
}

/// Columns of the same length.
pub(super) struct Table {
    rows: usize,
    columns: Vec<Column>,
}

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[1;31m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

/// The longest bar, and the shortest that is worth it, in columns.
const BARS: (usize, usize) = (40, 8);

impl Table {
    pub(super) fn new(rows: usize) -> Table {
        Table {
            rows,
            columns: Vec::new(),
        }
    }

    pub(super) fn column<T>(
        &mut self,
        head: &str,
        align: Align,
        rows: &[T],
        cell: impl Fn(&T) -> String,
    ) {
        self.columns.push(Column {
            head: head.to_owned(),
            align,
            cells: rows.iter().map(cell).collect(),
            verdict: false,
        });
    }

    /// A column of what is well or not.
    pub(super) fn verdict<T>(&mut self, head: &str, rows: &[T], good: impl Fn(&T) -> bool) {
        let word = |row: &T| if good(row) { "yes" } else { "NO" }.to_owned();
        self.column(head, Align::Left, rows, word);
        if let Some(last) = self.columns.last_mut() {
            last.verdict = true;
        }
    }

    /// The columns of another table of the same length.
    pub(super) fn append(&mut self, other: Table) {
        self.columns.extend(other.columns);
    }

    /// Aligned columns, with bars for the values where there is room.
    pub(super) fn text(
        &self,
        values: impl IntoIterator<Item = u64>,
        look: Look,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let widths = self.columns.iter().map(|column| {
            let cells = column.cells.iter().chain([&column.head]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        });
        let widths: Vec<usize> = widths.collect();
        let used: usize = widths.iter().map(|width| width + 2).sum();
        let room = look.columns.unwrap_or(0).saturating_sub(used + 1);
        let room = Some(room.min(BARS.0)).filter(|room| *room >= BARS.1);
        let values: Vec<u64> = values.into_iter().collect();
        let most = values.iter().copied().max().unwrap_or(0).max(1);
        self.text_line(&widths, |column| &column.head, (look, String::new()), out)?;
        for row in 0..self.rows {
            let bar = match (room, values.get(row)) {
                (Some(room), Some(value)) => bar(*value, most, room),
                _ => String::new(),
            };
            self.text_line(
                &widths,
                |column| column.cells.get(row).map_or("", String::as_str),
                (look, bar),
                out,
            )?;
        }
        Ok(())
    }

    fn text_line<'t>(
        &'t self,
        widths: &[usize],
        cell: impl Fn(&'t Column) -> &'t str,
        (look, bar): (Look, String),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let mut line = String::new();
        // What colours add to the line is not shown: spaces are added apart.
        let mut pending = 0;
        let mut paint = |text: &str, color: Option<&str>, spaces: usize| {
            if !text.is_empty() {
                line.extend(std::iter::repeat_n(' ', spaces));
                match color.filter(|_| look.color) {
                    Some(color) => line.extend([color, text, RESET]),
                    None => line.push_str(text),
                }
            }
        };
        for (n, (column, width)) in self.columns.iter().zip(widths).enumerate() {
            let text = cell(column);
            let rest = width.saturating_sub(text.chars().count());
            let (before, after) = match column.align {
                Align::Left => (0, rest),
                Align::Right => (rest, 0),
            };
            let color = match text {
                "yes" if column.verdict => Some(GREEN),
                "NO" if column.verdict => Some(RED),
                _ => None,
            };
            let gap = if n == 0 { 0 } else { 2 };
            paint(text, color, pending + gap + before);
            pending = after;
        }
        paint(&bar, Some(CYAN), pending + 2);
        writeln!(out, "{line}")
    }

    /// As GitHub has them.
    pub(super) fn markdown(&self, out: &mut impl Write) -> io::Result<()> {
        let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
        let heads = self.columns.iter().map(|column| column.head.as_str());
        writeln!(out, "{}", line(heads.collect()))?;
        let rules = self.columns.iter().map(|column| match column.align {
            Align::Left => "---",
            Align::Right => "---:",
        });
        writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"))?;
        for row in 0..self.rows {
            let cells = self.columns.iter().filter_map(|c| c.cells.get(row));
            writeln!(out, "{}", line(cells.map(String::as_str).collect()))?;
        }
        Ok(())
    }

    /// Values with commas between them; none has one itself. A dash is no value.
    pub(super) fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        let heads = self.columns.iter().map(|column| column.head.as_str());
        writeln!(out, "{}", heads.collect::<Vec<_>>().join(","))?;
        for row in 0..self.rows {
            let cells = self.columns.iter().filter_map(|c| c.cells.get(row));
            let cells = cells.map(|cell| if cell == "-" { "" } else { cell });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// A bar for a value, in eighths of a column.
fn bar(value: u64, most: u64, room: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(value) * room as u128 * 8;
    let eighths = eighths.div_ceil(u128::from(most)).min(room as u128 * 8) as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    "█".repeat(eighths / 8) + part
}
