//! How the option sets of all formats compare: tables for people (text, Markdown),
//! rows for spreadsheets (CSV) and programs (JSON lines).

mod object;
mod table;

use crate::diagnostic::{Code, Diagnostic};
use crate::json;
use crate::words::{clean, count, counted};
use hartrace_capture::compare::{Bandwidth, Compared, OutputModel};
use object::{Header, Line};
use std::io::{self, Write};
use table::{Align, Table};

/// The forms of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Tables for a terminal.
    Text,
    /// A header and one object per option set.
    Json,
    /// One line per option set.
    Csv,
    /// Tables for a page of GitHub.
    Markdown,
}

/// What a terminal can show; by default as little as a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Its columns: where there is room beside the table, there are bars.
    pub columns: Option<usize>,
    /// It has colours.
    pub color: bool,
}

/// What was compared, and how.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The name of the program or the log.
    pub file: String,
    /// Whether the source has times; otherwise each instruction counts as a cycle.
    pub timed: bool,
    /// The output that was modelled.
    pub output: &'a OutputModel,
    /// The result.
    pub compared: &'a Compared,
}

impl Report<'_> {
    /// Writes it.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn write(&self, form: Form, look: Look, out: &mut impl Write) -> io::Result<()> {
        let lines: Vec<Line<'_>> = self.compared.rows.iter().map(|r| self.line(r)).collect();
        match form {
            Form::Json => {
                json::line(&Header::new(self), out)?;
                lines.iter().try_for_each(|line| json::line(line, out))
            }
            Form::Csv => {
                let mut all = sizes(&lines, true);
                all.append(self.outputs(&lines, true));
                all.csv(out)
            }
            Form::Text => {
                writeln!(out, "{}\n", self.summary())?;
                let shares = lines.iter().map(|line| line.bytes);
                sizes(&lines, false).text(shares, look, out)?;
                if self.is_modelled() {
                    writeln!(out, "\n{}\n", self.legend().join("\n"))?;
                    self.outputs(&lines, false).text([], look, out)?;
                    writeln!(out, "\n{}", self.answers().join("\n"))?;
                }
                Ok(())
            }
            Form::Markdown => {
                writeln!(out, "{}\n", self.summary())?;
                sizes(&lines, false).markdown(out)?;
                if self.is_modelled() {
                    writeln!(out, "\n```text\n{}\n```\n", self.legend().join("\n"))?;
                    self.outputs(&lines, false).markdown(out)?;
                    writeln!(out)?;
                    for answer in self.answers() {
                        writeln!(out, "* {answer}")?;
                    }
                }
                Ok(())
            }
        }
    }

    fn is_modelled(&self) -> bool {
        self.output.bandwidth.is_some() || !self.output.depths.is_empty()
    }

    /// What ran, and what the columns count.
    fn summary(&self) -> String {
        let all = self.compared;
        let mut text = format!(
            "{}: {}",
            clean(&self.file),
            counted(all.instructions, "instruction")
        );
        if all.traced != all.instructions {
            text += &format!(", {} traced", counted(all.traced, "instruction"));
        }
        match self.timed {
            true => text += &format!(", {}", counted(all.cycles, "cycle")),
            false => text += ", one cycle each",
        }
        text + "; mean and peak in bytes per 1000 cycles"
    }

    /// What the columns of the second table are.
    fn legend(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(bandwidth) = self.output.bandwidth {
            lines.push(format!("output of {bandwidth}:"));
            lines
                .push("  load       mean bandwidth of the trace, of that of the output".to_owned());
            lines.push(
                "  buffer     bytes that must fit before the output so that nothing is lost;"
                    .to_owned(),
            );
            lines.push("             with a load above 100 %, this grows with the run".to_owned());
        }
        for depth in &self.output.depths {
            lines.push(format!("buffer of {depth} bytes:"));
            if self.output.bandwidth.is_some() {
                lines.push("  overflows  how often it overflows before that output".to_owned());
            }
            lines.push(
                "  bits       bits per cycle that an output must carry so that nothing is lost"
                    .to_owned(),
            );
            lines.push(format!(
                "  pins       the same in pins of {} each",
                self.pin_bits()
            ));
        }
        lines
    }

    /// The least that is enough.
    fn answers(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(bandwidth), Some(row)) = (self.output.bandwidth, self.compared.least_buffer())
        {
            let (set, bytes) = (row.set, some(row.lossless_depth));
            lines.push(format!(
                "smallest buffer at {bandwidth}: {bytes} bytes, {} {}",
                set.format.name(),
                set.name
            ));
        }
        for (n, depth) in self.output.depths.iter().enumerate() {
            if let Some((row, drain)) = self.compared.slowest_output(n) {
                let (line, set) = (self.line(row), row.set);
                let pins = line.buffers.get(n).and_then(|buffer| buffer.pins);
                let pins = pins.map_or("more than 16 pins".to_owned(), |n| count(n, "pin"));
                lines.push(format!(
                    "slowest output with a buffer of {depth} bytes: {:.3} bits per cycle, {pins}, {} {}",
                    object::bits(drain),
                    set.format.name(),
                    set.name
                ));
            }
        }
        lines
    }

    /// What a pin carries.
    fn pin_bits(&self) -> String {
        match self.pin().pin_bits() {
            1.0 => "1 bit per cycle".to_owned(),
            bits => format!("{bits} bits per cycle"),
        }
    }

    /// The pins that an output is made of.
    fn pin(&self) -> Bandwidth {
        self.output.bandwidth.unwrap_or(Bandwidth::PIN)
    }

    /// What each option set needs of the output; with `keys`, only that, with the
    /// names of JSON.
    fn outputs(&self, lines: &[Line<'_>], keys: bool) -> Table {
        let mut table = match keys {
            true => Table::new(lines.len()),
            false => names(lines),
        };
        if self.output.bandwidth.is_some() {
            let load = |line: &Line<'_>| line.load.map(|load| format!("{:.0} %", load * 100.0));
            match keys {
                true => table.column("load", Align::Right, lines, |l| some(l.load)),
                false => table.column("load", Align::Right, lines, |l| some(load(l))),
            }
            let head = if keys { "lossless_buffer" } else { "buffer" };
            table.column(head, Align::Right, lines, |l| some(l.lossless_buffer));
        }
        for (n, depth) in self.output.depths.iter().enumerate() {
            let head = |name: &str, short: &str| match keys {
                true => format!("{name}_{depth}"),
                false => format!("{short}@{depth}"),
            };
            if self.output.bandwidth.is_some() {
                table.column(&head("overflows", "overflows"), Align::Right, lines, |l| {
                    some(l.buffers.get(n).and_then(|b| b.overflows))
                });
            }
            let bits = |l: &Line<'_>| {
                let bits = l.buffers.get(n).and_then(|b| b.lossless_bandwidth);
                bits.map_or("-".to_owned(), |bits| format!("{bits:.3}"))
            };
            table.column(
                &head("lossless_bandwidth", "bits"),
                Align::Right,
                lines,
                bits,
            );
            let pins = |l: &Line<'_>| match l.buffers.get(n) {
                Some(b) if b.pins.is_none() && b.lossless_bandwidth.is_some() => ">16".to_owned(),
                buffer => some(buffer.and_then(|b| b.pins)),
            };
            table.column(&head("pins", "pins"), Align::Right, lines, pins);
        }
        table
    }
}

/// A value, or a dash.
fn some<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The names of option sets.
fn names(lines: &[Line<'_>]) -> Table {
    let mut table = Table::new(lines.len());
    table.column("format", Align::Left, lines, |l| l.format.to_owned());
    table.column("options", Align::Left, lines, |l| l.options.to_owned());
    table
}

/// How large each trace is; with `keys`, under the names of JSON.
fn sizes(lines: &[Line<'_>], keys: bool) -> Table {
    let mut table = names(lines);
    if keys {
        table.column("messages", Align::Right, lines, |l| l.messages.to_string());
    }
    table.column("bytes", Align::Right, lines, |l| l.bytes.to_string());
    let head = if keys {
        "bits_per_instruction"
    } else {
        "bits/insn"
    };
    table.column(head, Align::Right, lines, |l| {
        format!("{:.4}", l.bits_per_instruction)
    });
    table.column("mean", Align::Right, lines, |l| format!("{:.1}", l.mean));
    table.column("peak", Align::Right, lines, |l| l.peak.to_string());
    table.verdict("verified", lines, |l| l.verified);
    table
}

/// The traces that do not decode to what was run.
#[must_use]
pub fn differences(compared: &Compared) -> Option<Diagnostic> {
    let rows = compared.rows.iter();
    let bad = rows.filter_map(|row| Some((row.set, row.check.as_ref().err()?)));
    let bad: Vec<_> = bad.collect();
    if bad.is_empty() {
        return None;
    }
    let message = format!(
        "{} of {} decoded traces differ from the run",
        bad.len(),
        compared.rows.len()
    );
    let start = Diagnostic::new(Code::Difference, message);
    let diagnostic = bad.iter().fold(start, |diagnostic, (set, difference)| {
        let (format, options) = (set.format.name(), set.name);
        diagnostic.note(format!("{format} {options}: {difference}"))
    });
    let path = bad
        .iter()
        .any(|(_, difference)| !difference.is_about_a_trap());
    Some(match path {
        true => diagnostic.help(
            "if the program modifies its own code, the ELF file does not match what was executed",
        ),
        false => diagnostic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_capture::compare::{OPTION_SETS, Row};
    use hartrace_flow::{Checked, Difference, HartId, What};

    /// A comparison of two option sets, the second of which differs.
    fn compared() -> Compared {
        let row = |set, bytes, check| Row {
            set,
            messages: 10,
            bytes,
            peak: 7,
            check,
            lossless_depth: None,
            buffers: Vec::new(),
        };
        let difference = Difference {
            hart: HartId(0),
            after: 3,
            expected: Some(What::Insn(0x100)),
            actual: None,
        };
        Compared {
            instructions: 1000,
            traced: 1000,
            cycles: 2000,
            rows: vec![
                row(OPTION_SETS[0], 800, Ok(Checked::default())),
                row(OPTION_SETS[2], 100, Err(Box::new(difference))),
            ],
        }
    }

    fn shown(form: Form, look: Look) -> String {
        let (output, compared) = (OutputModel::default(), compared());
        let report = Report {
            file: "a\u{1b}b.elf".to_owned(),
            timed: true,
            output: &output,
            compared: &compared,
        };
        let mut out = Vec::new();
        report.write(form, look, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_file_has_neither_bars_nor_colours() {
        let text = shown(Form::Text, Look::default());
        assert_eq!(
            text,
            "a\u{fffd}b.elf: 1 000 instructions, 2 000 cycles; mean and peak in bytes per 1000 cycles

format  options  bytes  bits/insn   mean  peak  verified
ntrace  btm        800     6.4000  400.0     7  yes
ntrace  htm        100     0.8000   50.0     7  NO
"
        );
    }

    #[test]
    fn bars_take_the_room_that_is_left() {
        for columns in [20, 60, 66, 67, 80, 100, 300] {
            let look = Look {
                columns: Some(columns),
                color: false,
            };
            let text = shown(Form::Text, look);
            let bars = text.matches('█').count();
            let longest = text.lines().skip(2).map(|line| line.chars().count()).max();
            match columns {
                ..67 => assert_eq!(bars, 0, "{text}"),
                _ => {
                    assert!(longest.unwrap() < columns, "{text}");
                    // The second is an eighth of the first.
                    assert!(bars >= 8 && bars <= 40 + 5, "{text}");
                }
            }
        }
    }

    #[test]
    fn colours_only_where_they_are_asked_for() {
        let look = Look {
            columns: Some(100),
            color: true,
        };
        let text = shown(Form::Text, look);
        assert!(text.contains("\x1b[32myes\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[1;31mNO\x1b[0m"), "{text:?}");
        for form in [Form::Json, Form::Csv, Form::Markdown] {
            assert!(!shown(form, look).contains('\x1b'));
        }
    }

    #[test]
    fn a_difference_is_a_diagnostic() {
        let found = differences(&compared()).unwrap();
        assert_eq!(found.code, Code::Difference);
        let good = Compared {
            rows: Vec::new(),
            ..compared()
        };
        assert!(differences(&good).is_none());
        let json = shown(Form::Json, Look::default());
        assert!(
            json.contains("\"verified\":false,\"difference\":\"hart 0 after 3 "),
            "{json}"
        );
    }
}
