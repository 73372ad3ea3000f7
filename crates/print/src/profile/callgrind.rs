//! The profile format of Valgrind's callgrind, which callgrind_annotate and
//! KCachegrind read.

use super::Shown;
use hartrace_analyze::{CallSites, Cost, FunctionId, Line, LineRanges, SiteCost};
use hartrace_flow::SpaceId;
use std::collections::HashMap;
use std::io::{self, Write};

/// Names that were written before: a number stands for them from then on.
#[derive(Default)]
struct Numbers(HashMap<String, usize>);

impl Numbers {
    fn spell(&mut self, name: &str) -> String {
        let next = self.0.len() + 1;
        match self.0.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.0.insert(name.to_owned(), next);
                // A name ends with its line.
                format!("({next}) {}", name.replace('\n', " "))
            }
        }
    }
}

struct Writer<'w, 'a, W> {
    shown: &'w Shown<'a>,
    out: &'w mut W,
    files: Numbers,
    functions: Numbers,
    lines: LineRanges<'w>,
}

/// Where code without a line is.
const NOWHERE: Line<'static> = Line {
    file: "???",
    line: 0,
};

/// The whole profile: instruction counts, and the time where there is one, of every
/// instruction with its line; calls with what they cost.
///
/// # Errors
///
/// A failing write.
pub fn callgrind(
    shown: &Shown<'_>,
    sites: &CallSites,
    program: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "# callgrind format\nversion: 1\ncreator: hartrace {}",
        env!("CARGO_PKG_VERSION")
    )?;
    writeln!(out, "positions: instr line")?;
    let timed = shown.profile.timed;
    writeln!(out, "event: Ir : Instructions")?;
    if timed {
        writeln!(out, "event: Time : Time in units of the trace")?;
    }
    writeln!(out, "events: Ir{}", if timed { " Time" } else { "" })?;
    writeln!(out, "summary: {}", costs(shown.profile.total(), timed))?;
    writeln!(out, "\nob={program}")?;
    let low = shown.insns.keys().map(|key| key.1).min().unwrap_or(0);
    let high = shown.insns.keys().map(|key| key.1).max().unwrap_or(0);
    let mut writer = Writer {
        shown,
        out,
        files: Numbers::default(),
        functions: Numbers::default(),
        lines: shown.places.line_ranges(low, high.saturating_add(1)),
    };
    writer.all(sites)
}

fn costs(cost: Cost, timed: bool) -> String {
    match timed {
        true => format!("{} {}", cost.insns, cost.time),
        false => cost.insns.to_string(),
    }
}

impl<'a, W: Write> Writer<'_, 'a, W> {
    fn line(&self, pc: u64) -> Line<'_> {
        self.lines.at(pc).unwrap_or(NOWHERE)
    }

    fn all(&mut self, sites: &CallSites) -> io::Result<()> {
        let mut calls: HashMap<u64, Vec<(FunctionId, SiteCost)>> = HashMap::new();
        for ((site, callee), cost) in sites.sorted() {
            calls.entry(site).or_default().push((callee, cost));
        }
        let shown: &Shown<'a> = self.shown;
        let functions = &shown.profile.functions;
        let mut current: Option<(Option<FunctionId>, String)> = None;
        for (&(space, pc), cost) in shown.insns {
            let function = functions.of(pc);
            let line = self.line(pc);
            let (file, number) = (line.file.to_owned(), line.line);
            if current.as_ref().map(|c| c.0) != Some(function) {
                let home = function.map_or_else(
                    || file.clone(),
                    |id| self.line(functions.get(id).start).file.to_owned(),
                );
                let name = function.map_or("???".to_owned(), |id| functions.get(id).name.clone());
                let (fl, fnn) = (self.files.spell(&home), self.functions.spell(&name));
                writeln!(self.out, "\nfl={fl}\nfn={fnn}")?;
                current = Some((function, home));
            }
            if current.as_ref().is_some_and(|c| c.1 != file) {
                let fi = self.files.spell(&file);
                writeln!(self.out, "fi={fi}")?;
                current = Some((function, file));
            }
            let timed = shown.profile.timed;
            writeln!(self.out, "{pc:#x} {number} {}", costs(*cost, timed))?;
            if space == SpaceId::FIRST {
                for (callee, cost) in calls.remove(&pc).unwrap_or_default() {
                    self.call((pc, number), callee, cost)?;
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        (pc, number): (u64, u32),
        callee: FunctionId,
        cost: SiteCost,
    ) -> io::Result<()> {
        let function = self.shown.profile.functions.get(callee);
        let target = self.line(function.start);
        let (file, line) = (target.file.to_owned(), target.line);
        let (cfi, cfn) = (
            self.files.spell(&file),
            self.functions.spell(&function.name),
        );
        let (start, calls) = (function.start, cost.calls);
        let total = costs(cost.total, self.shown.profile.timed);
        writeln!(
            self.out,
            "cfi={cfi}\ncfn={cfn}\ncalls={calls} {start:#x} {line}\n{pc:#x} {number} {total}"
        )
    }
}
