//! One sample as a table.

use super::{Sample, kind_name};
use crate::places::Places;
use hartrace_flow::Transfer;
use hartrace_isa::Itype;
use std::collections::HashMap;
use std::io::{self, Write};

/// The transfers of a sample as a table, the newest first, with names, lines of
/// source text and what is not obvious.
pub struct Table<'p, 'a> {
    places: &'p Places<'a>,
    /// The text of an address, and its width: places are few and samples are
    /// many.
    texts: HashMap<u64, (Box<str>, usize)>,
}

/// Texts that are kept: those of a large program.
const MOST_TEXTS: usize = 1 << 18;

impl<'p, 'a> Table<'p, 'a> {
    /// Tables with what is known of the addresses.
    #[must_use]
    pub fn new(places: &'p Places<'a>) -> Table<'p, 'a> {
        Table {
            places,
            texts: HashMap::new(),
        }
    }

    /// Makes the texts of a sample; the width of the sources.
    fn prepare(&mut self, sample: &Sample<'_>) -> usize {
        if self.texts.len() > MOST_TEXTS {
            self.texts.clear();
        }
        let mut width = 4;
        for t in sample.transfers {
            self.add_text(t.target);
            width = width.max(self.add_text(t.source));
        }
        width
    }

    fn add_text(&mut self, address: u64) -> usize {
        let places = self.places;
        let (_, width) = self.texts.entry(address).or_insert_with(|| {
            let text = places.at(address).to_string();
            let width = text.chars().count();
            (text.into(), width)
        });
        *width
    }

    /// The text of an address, and how many characters it has.
    fn text(&self, address: u64) -> (&str, usize) {
        let found = self.texts.get(&address);
        found.map_or(("-", 1), |(text, width)| (text, *width))
    }

    /// Writes the table of a sample. `calls`: the transfers are calls that have
    /// not returned (RAS emulation).
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(
        &mut self,
        sample: &Sample<'_>,
        calls: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let width = self.prepare(sample);
        if !sample.transfers.is_empty() {
            writeln!(
                out,
                "{:>4}  {:<14} {:>9}  {:<width$}  to",
                "#", "type", "cycles", "from"
            )?;
        }
        for (i, t) in sample.transfers.iter().enumerate() {
            let number = sample.number(i);
            let hidden = sample.hides_address(t);
            let text = |address| match address {
                0 if hidden => ("-", 1),
                address => self.text(address),
            };
            let ((from, used), (to, _)) = (text(t.source), text(t.target));
            let fill = width.saturating_sub(used);
            write!(out, "{number:>4}  {:<14} ", kind_name(t.kind))?;
            match t.cycles {
                Some(cycles) => write!(out, "{cycles:>9}")?,
                None => write!(out, "{:>9}", "-")?,
            }
            let wrong = if t.mispredicted { "  mispredicted" } else { "" };
            writeln!(out, "  {from}{:fill$}  {to}{wrong}", "")?;
            let later = i.checked_sub(1).filter(|i| sample.is_joined(*i));
            let later = later.and_then(|i| sample.transfers.get(i));
            for note in self.notes(t, later, hidden, calls) {
                writeln!(out, "      {note}")?;
            }
        }
        if sample.cut && calls {
            writeln!(out, "      older calls may have been overwritten")?;
        }
        Ok(())
    }

    /// What is not obvious about a transfer and the one after it.
    fn notes(
        &self,
        t: &Transfer,
        later: Option<&Transfer>,
        hidden: bool,
        calls: bool,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        match (t.source, t.target) {
            (_, 0) if !hidden && !t.kind.is_trap() => {
                notes.push("it went to address 0: a null pointer, probably".to_owned());
            }
            _ if !hidden => {}
            (0, 0) => notes.push("neither address was recorded".to_owned()),
            (0, _) => notes.push("it came from a mode that is not recorded".to_owned()),
            (_, 0) => notes.push("it went to a mode that is not recorded".to_owned()),
            _ => {}
        }
        if t.kind == Itype::Swap {
            notes.push(match calls {
                false => "a co-routine swap: a return and a call in one".to_owned(),
                true => "a co-routine swap, which replaced the newest call: a return and a call \
                         in one"
                    .to_owned(),
            });
        }
        if let Some(later) = later.filter(|_| calls)
            && let Some(from) = self.moved(t.target, later.source)
        {
            notes.push(format!(
                "the next call came from {from}, reached without a call: by a tail call, \
                 longjmp or a stack switch"
            ));
        }
        notes
    }

    /// The function that the next call came from, if it is not the callee.
    fn moved(&self, callee: u64, source: u64) -> Option<&str> {
        if callee == 0 || source == 0 {
            return None;
        }
        let (callee, source) = (self.places.function(callee)?, self.places.function(source)?);
        (callee != source).then_some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn text(places: &Places<'_>, calls: bool, sample: &Sample<'_>) -> String {
        let mut out = Vec::new();
        Table::new(places).write(sample, calls, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_table_with_notes() {
        let places = Places::new();
        let transfers = [
            Transfer {
                cycles: Some(12),
                mispredicted: true,
                ..testing(0x8000_0010, 0x20, Itype::Taken)
            },
            testing(0, 0x8000_0000, Itype::TrapReturn),
            testing(0x44, 0, Itype::Exception),
            testing(0x40, 0x50, Itype::Swap),
        ];
        let sample = Sample {
            pc: Some(0x20),
            transfers: &transfers,
            cut: true,
            ..Sample::default()
        };
        let expected = "   #  type              cycles  from        to
   0  taken                 12  0x80000010  0x20  mispredicted
   1  trap return            -  -           0x80000000
      it came from a mode that is not recorded
   2  exception              -  0x44        -
      it went to a mode that is not recorded
   3  swap                   -  0x40        0x50
      a co-routine swap: a return and a call in one
";
        assert_eq!(text(&places, false, &sample), expected);
        assert_eq!(text(&places, false, &Sample::default()), "");
        // Entries keep their numbers where one of them holds nothing.
        let sample = Sample {
            numbers: &[0, 1, 5, 6],
            ..sample
        };
        let text = text(&places, false, &sample);
        assert!(text.contains("\n   5  exception "), "{text}");
    }

    #[test]
    fn a_jump_to_address_0_is_no_hidden_mode() {
        let transfers = [
            testing(0, 0x100, Itype::Exception),
            testing(0x40, 0, Itype::IndirectCall),
        ];
        let sample = Sample {
            transfers: &transfers,
            all_modes: true,
            ..Sample::default()
        };
        let expected = "   #  type              cycles  from  to
   0  exception              -  0x0   0x100
   1  indirect call          -  0x40  0x0
      it went to address 0: a null pointer, probably
";
        assert_eq!(text(&Places::new(), false, &sample), expected);
    }

    #[test]
    fn calls_that_do_not_follow_are_explained() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/recursion/");
        let file = std::fs::read([folder, "recursion-rv64gc.elf"].concat()).unwrap();
        let mut places = Places::new();
        places.add_elf(&file, None).unwrap();
        let at = |name: &str| places.names().address(name).unwrap();
        let (start, main, print) = (at("_start"), at("main"), at("printf"));
        let call = |source, target| testing(source, target, Itype::DirectCall);
        let transfers = [call(print + 4, main), call(start + 4, main)];
        let sample = Sample {
            pc: Some(main),
            transfers: &transfers,
            cut: true,
            ..Sample::default()
        };
        let text = text(&places, true, &sample);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].contains("printf+0x4"), "{text}");
        assert!(lines[2].contains("_start+0x4"), "{text}");
        assert!(
            lines[3].starts_with("      the next call came from printf"),
            "{text}"
        );
        assert_eq!(lines[4], "      older calls may have been overwritten");
    }
}
