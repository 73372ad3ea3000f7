//! Statistics of transfers: counts by type, source, target and edge.

use super::{Sample, kind_name, percent};
use crate::places::Places;
use hartrace_flow::Transfer;
use hartrace_flow::order;
use hartrace_isa::Itype;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Counts of transfers by type, by source and by edge.
///
/// Records do not show whether there was a branch predictor. If none was
/// mispredicted, none is assumed, and the numbers are `-`; so they are for branches
/// that were not taken where those are not recorded.
#[derive(Debug, Default)]
pub struct Branches {
    edges: HashMap<(u64, u64, Itype), Tally>,
    not_taken: bool,
    /// In some sample not every mode is recorded.
    some_modes: bool,
}

/// Which numbers mean something.
#[derive(Clone, Copy)]
struct Known {
    mispredicted: bool,
    not_taken: bool,
    all_modes: bool,
}

impl Known {
    /// An address of a transfer; `-` where it was not recorded.
    fn place(self, places: &Places<'_>, address: u64, kind: Itype) -> String {
        match address {
            0 if Transfer::hides_address(kind, self.all_modes) => "-".to_owned(),
            address => places.at(address).to_string(),
        }
    }

    /// Two columns: how many were mispredicted, and the rate.
    fn mispredicted(self, tally: Tally) -> (String, String) {
        match self.mispredicted {
            true => (
                tally.mispredicted.to_string(),
                percent(tally.mispredicted, tally.count),
            ),
            false => ("-".to_owned(), "-".to_owned()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    mispredicted: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.count += other.count;
        self.mispredicted += other.mispredicted;
    }
}

/// From one address to another, by one kind of transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it comes from; 0 where that was not recorded.
    pub source: u64,
    /// Where it goes; 0 where that was not recorded.
    pub target: u64,
    /// What it is.
    pub kind: Itype,
    /// How often.
    pub count: u64,
    /// How often of these a predictor was wrong.
    pub mispredicted: u64,
}

/// The number of edges listed at the end by default.
const EDGES: usize = 20;

/// All edges of one source.
#[derive(Default)]
struct Source {
    all: Tally,
    not_taken: u64,
    edges: Vec<Edge>,
}

impl Branches {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Branches {
        Branches::default()
    }

    /// Counts the transfers of a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        self.not_taken |= sample.not_taken;
        self.some_modes |= !sample.all_modes;
        for t in sample.transfers {
            self.not_taken |= t.kind == Itype::NotTaken;
            let one = Tally {
                count: 1,
                mispredicted: u64::from(t.mispredicted),
            };
            let edge = self.edges.entry((t.source, t.target, t.kind));
            edge.or_default().add(one);
        }
    }

    /// All edges, the most frequent first.
    #[must_use]
    pub fn edges(&self) -> Vec<Edge> {
        let one = |(&(source, target, kind), tally): (&(u64, u64, Itype), &Tally)| Edge {
            source,
            target,
            kind,
            count: tally.count,
            mispredicted: tally.mispredicted,
        };
        let mut edges: Vec<Edge> = self.edges.iter().map(one).collect();
        order::sort_by_key(&mut edges, |e| {
            (Reverse(e.count), e.source, e.target, e.kind)
        });
        edges
    }

    /// Writes three tables: types, sources with their targets, and the most
    /// frequent edges; of sources, of the targets of each and of edges at most
    /// `top`.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(
        &self,
        top: Option<usize>,
        places: &Places<'_>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let edges = self.edges();
        let all = sum(&edges);
        let told = Known {
            mispredicted: all.mispredicted > 0,
            not_taken: self.not_taken,
            all_modes: !self.some_modes,
        };
        write!(out, "{} transfers, ", all.count)?;
        match told.mispredicted(all) {
            (wrong, rate) if told.mispredicted => writeln!(out, "{wrong} mispredicted ({rate})\n")?,
            _ => writeln!(out, "mispredictions not recorded\n")?,
        }
        write_types(&edges, all.count, told, out)?;
        write_sources(&edges, told, top, places, out)?;
        writeln!(out, "\n{:>12} {:>12}  edge", "count", "mispredicted")?;
        let taken = edges.iter().filter(|e| e.kind != Itype::NotTaken);
        for e in taken.take(top.unwrap_or(EDGES)) {
            writeln!(
                out,
                "{:>12} {:>12}  {} -> {}, {}",
                e.count,
                told.mispredicted(sum([e])).0,
                told.place(places, e.source, e.kind),
                told.place(places, e.target, e.kind),
                kind_name(e.kind)
            )?;
        }
        Ok(())
    }
}

fn sum<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> Tally {
    let mut all = Tally::default();
    for e in edges {
        all.add(Tally {
            count: e.count,
            mispredicted: e.mispredicted,
        });
    }
    all
}

fn write_types(edges: &[Edge], all: u64, told: Known, out: &mut impl Write) -> io::Result<()> {
    let mut types: BTreeMap<Itype, Tally> = BTreeMap::new();
    for e in edges {
        types
            .entry(e.kind)
            .or_default()
            .add(sum(std::slice::from_ref(e)));
    }
    let mut types: Vec<(Itype, Tally)> = types.into_iter().collect();
    order::sort_by_key(&mut types, |(kind, tally)| (Reverse(tally.count), *kind));
    writeln!(
        out,
        "{:>12} {:>7} {:>12} {:>7}  type",
        "count", "share", "mispredicted", "rate"
    )?;
    for (kind, tally) in types {
        let (wrong, rate) = told.mispredicted(tally);
        writeln!(
            out,
            "{:>12} {:>7} {wrong:>12} {rate:>7}  {}",
            tally.count,
            percent(tally.count, all),
            kind_name(kind)
        )?;
    }
    Ok(())
}

fn write_sources(
    edges: &[Edge],
    told: Known,
    top: Option<usize>,
    places: &Places<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sources: HashMap<u64, Source> = HashMap::new();
    for e in edges {
        let source = sources.entry(e.source).or_default();
        source.all.add(sum(std::slice::from_ref(e)));
        if e.kind == Itype::NotTaken {
            source.not_taken += e.count;
        }
        source.edges.push(*e);
    }
    let mut sources: Vec<(u64, Source)> = sources.into_iter().collect();
    order::sort_by_key(&mut sources, |(address, s)| {
        (Reverse(s.all.count), *address)
    });
    writeln!(
        out,
        "\n{:>12} {:>12} {:>12} {:>12} {:>7}  source, and its targets",
        "count", "taken", "not taken", "mispredicted", "rate"
    )?;
    for (address, s) in sources.iter().take(top.unwrap_or(usize::MAX)) {
        let (wrong, rate) = told.mispredicted(s.all);
        let not_taken = match told.not_taken {
            true => s.not_taken.to_string(),
            false => "-".to_owned(),
        };
        writeln!(
            out,
            "{:>12} {:>12} {not_taken:>12} {wrong:>12} {rate:>7}  {}",
            s.all.count,
            s.all.count - s.not_taken,
            told.place(
                places,
                *address,
                s.edges.first().map_or(Itype::None, |e| e.kind)
            )
        )?;
        let shown = top.unwrap_or(usize::MAX).min(s.edges.len());
        for e in s.edges.iter().take(shown) {
            writeln!(
                out,
                "{:>12} {:47}  -> {}, {}",
                e.count,
                "",
                told.place(places, e.target, e.kind),
                kind_name(e.kind)
            )?;
        }
        let more: u64 = s.edges.iter().skip(shown).map(|e| e.count).sum();
        if more > 0 {
            let targets = s.edges.len() - shown;
            writeln!(out, "{more:>12} {:47}  -> {targets} more", "")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    #[test]
    fn the_targets_of_a_source_are_limited_too() {
        let jumps: Vec<Transfer> = (1..=9)
            .map(|n| testing(0x50, 0x100 * n, Itype::IndirectJump))
            .collect();
        let mut branches = Branches::new();
        branches.add(&Sample {
            transfers: &jumps,
            ..Sample::default()
        });
        let mut out = Vec::new();
        branches.write(Some(2), &Places::new(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let targets = text.lines().filter(|line| line.contains("  -> "));
        let targets: Vec<&str> = targets.map(|l| l.split("-> ").nth(1).unwrap()).collect();
        let expected = ["0x100, indirect jump", "0x200, indirect jump", "7 more"];
        assert_eq!(targets, expected);
    }

    #[test]
    fn types_sources_and_edges() {
        let wrong = |t: Transfer| Transfer {
            mispredicted: true,
            ..t
        };
        let taken = testing(0x10, 0x40, Itype::Taken);
        let not = testing(0x10, 0x14, Itype::NotTaken);
        let jump = |target| testing(0x50, target, Itype::IndirectJump);
        let transfers = [taken, wrong(not), taken, jump(0x10), wrong(jump(0x20))];
        let mut branches = Branches::new();
        for _ in 0..2 {
            branches.add(&Sample {
                transfers: &transfers,
                ..Sample::default()
            });
        }
        let first = branches.edges()[0];
        let expected = Edge {
            source: 0x10,
            target: 0x40,
            kind: Itype::Taken,
            count: 4,
            mispredicted: 0,
        };
        assert_eq!(first, expected);
        let mut out = Vec::new();
        branches.write(None, &Places::new(), &mut out).unwrap();
        let expected = "\
10 transfers, 4 mispredicted (40.0 %)

       count   share mispredicted    rate  type
           4  40.0 %            0   0.0 %  taken
           4  40.0 %            2  50.0 %  indirect jump
           2  20.0 %            2 100.0 %  not taken

       count        taken    not taken mispredicted    rate  source, and its targets
           6            4            2            2  33.3 %  0x10
           4                                                  -> 0x40, taken
           2                                                  -> 0x14, not taken
           4            4            0            2  50.0 %  0x50
           2                                                  -> 0x10, indirect jump
           2                                                  -> 0x20, indirect jump

       count mispredicted  edge
           4            0  0x10 -> 0x40, taken
           2            0  0x50 -> 0x10, indirect jump
           2            2  0x50 -> 0x20, indirect jump
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        branches.write(Some(1), &Places::new(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("0x50"), "{text}");
    }

    #[test]
    fn nothing_to_count() {
        let mut out = Vec::new();
        Branches::new()
            .write(None, &Places::new(), &mut out)
            .unwrap();
        assert!(out.starts_with(b"0 transfers, mispredictions not recorded\n"));
    }

    /// There is no predictor, branches that are not taken are not recorded, and one
    /// end of a record is in another mode.
    #[test]
    fn what_nobody_told() {
        let text = |not_taken| {
            let mut branches = Branches::new();
            branches.add(&Sample {
                transfers: &[
                    testing(0x10, 0x40, Itype::Taken),
                    testing(0x14, 0, Itype::Exception),
                    testing(0, 0x18, Itype::TrapReturn),
                ],
                not_taken,
                ..Sample::default()
            });
            let mut out = Vec::new();
            branches.write(None, &Places::new(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "\
3 transfers, mispredictions not recorded

       count   share mispredicted    rate  type
           1  33.3 %            -       -  exception
           1  33.3 %            -       -  trap return
           1  33.3 %            -       -  taken

       count        taken    not taken mispredicted    rate  source, and its targets
           1            1            -            -       -  -
           1                                                  -> 0x18, trap return
           1            1            -            -       -  0x10
           1                                                  -> 0x40, taken
           1            1            -            -       -  0x14
           1                                                  -> -, exception

       count mispredicted  edge
           1            -  - -> 0x18, trap return
           1            -  0x10 -> 0x40, taken
           1            -  0x14 -> -, exception
";
        assert_eq!(text(false), expected);
        let recorded = text(true);
        assert!(
            recorded
                .contains("           1            1            0            -       -  0x10\n")
        );
    }
}
