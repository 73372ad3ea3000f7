//! Stretches and calls, found step by step and without anything that the tables use.

use super::*;
use hartrace_flow::Insn;
use hartrace_isa::{Flow, Isa, Link};

/// Follows the steps of a hart.
struct Naive {
    isa: Isa,
    insns: u64,
    /// Start, end and instructions of a stretch.
    open: Option<(u64, u64, u64)>,
    runs: Vec<(u64, u64, u64)>,
    /// Return address, entry and first instruction of each open call.
    stack: Vec<(u64, u64, u64)>,
    called: Option<u64>,
    /// Entry, first instruction and end of each call that returned.
    calls: Vec<(u64, u64, u64)>,
}

impl Naive {
    fn cut(&mut self) {
        self.runs.extend(self.open.take());
    }
}

impl Observer for Naive {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        let Step::Insn(insn) = step else {
            if let Step::Trap(_) = step {
                self.cut();
            }
            return;
        };
        let Insn { pc, bits, next, .. } = *insn;
        if let Some(ret) = self.called.take() {
            self.stack.push((ret, pc, self.insns));
        }
        let open = self.open.get_or_insert((pc, pc, 0));
        (open.1, open.2) = (insn.end(), open.2 + 1);
        self.insns += 1;
        let flow = Flow::of_retired(bits, self.isa);
        let is_branch = matches!(flow, Flow::Branch { .. });
        let jumps = !flow.is_sequential() && !is_branch;
        if jumps || next != insn.end() {
            self.cut();
        }
        match flow.link() {
            Some(Link::Call) => self.called = Some(insn.end()),
            Some(Link::Return) if self.stack.last().is_some_and(|top| top.0 == next) => {
                let (_, entry, begin) = self.stack.pop().unwrap();
                self.calls.push((entry, begin, self.insns));
            }
            _ => {}
        }
    }
}

/// The name of the function in a row of calls, which may have spaces.
pub(super) fn function(row: &str) -> &str {
    let rest = row.split("function=").nth(1).unwrap();
    rest.split(" caller=").next().unwrap()
}

/// The value of a column of a row.
pub(super) fn value<'r>(row: &'r str, column: &str) -> &'r str {
    let mut cells = row.split(' ').filter_map(|cell| cell.split_once('='));
    cells.find(|(name, _)| *name == column).unwrap().1
}

#[test]
fn stretches_and_calls_are_those_of_a_naive_observer() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sort-rv64gc", "recursion-rv64gc"] {
        let limit = 200_000;
        let source = record(folder.path(), name, "ntrace", "", limit);
        let opened = source.open("test").unwrap();
        let mut naive = Naive {
            isa: opened.isa,
            insns: 0,
            open: None,
            runs: Vec::new(),
            stack: Vec::new(),
            called: None,
            calls: Vec::new(),
        };
        run(name, limit, &mut naive);
        naive.cut();
        let (rows, _) = whole(&opened, &FLOW, &[]);
        let number = |row: &str, column: &str| value(row, column).parse::<u64>().unwrap();
        let runs: Vec<(u64, u64, u64)> = rows.rows[&(Table::Runs, 0)]
            .iter()
            .map(|row| {
                (
                    number(row, "start"),
                    number(row, "end"),
                    number(row, "instructions"),
                )
            })
            .collect();
        for (run, expected) in runs.iter().zip(&naive.runs) {
            assert_eq!(run, expected, "{name}");
        }
        assert_eq!(runs.len(), naive.runs.len(), "{name}");
        let calls: Vec<(u64, u64, u64)> = rows.rows[&(Table::Calls, 0)]
            .iter()
            .filter(|row| row.contains("ended=returned") && value(row, "site") != "-")
            .map(|row| {
                let function = function(row);
                let mut functions = opened.functions.iter().map(|(_, function)| function);
                let entry = functions
                    .find(|known| known.name == function)
                    .unwrap()
                    .start;
                (entry, number(row, "begin"), number(row, "end"))
            })
            .collect();
        assert!(calls.len() > 50);
        let tail: Vec<u64> = rows.rows[&(Table::Calls, 0)]
            .iter()
            .filter(|row| row.contains("ended=tail call"))
            .map(|row| number(row, "end"))
            .collect();
        for (call, expected) in calls.iter().zip(&naive.calls) {
            // The function that returns may have taken the place of the one that was called.
            let took_place = call.1 > expected.1 && tail.contains(&call.1);
            let same = call == expected || took_place && call.2 == expected.2;
            assert!(same, "{name}: {call:?} {expected:?}");
        }
        assert_eq!(calls.len(), naive.calls.len(), "{name}");
    }
}
