//! LLVM sample profiles: how often each line of each function was executed, for
//! `clang -fprofile-sample-use`.

use super::FlowCounts;
use crate::scopes::{LinePlace, Scopes, SourcePoint};
use hartrace_flow::order;
use hartrace_flow::{Image, SpaceId};
use hartrace_isa::{Flow, Link};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Instructions of a range at most, and of a function.
const MOST_INSNS: u64 = 1 << 20;

/// What was executed of a function, or of a function that was inlined in one place.
#[derive(Clone, Debug, Default)]
struct FunctionSamples {
    /// Instructions, those of inlined functions included.
    total: u64,
    /// How often it was called, and how often its first instruction was executed otherwise
    /// than by a jump inside it.
    calls: u64,
    entries: u64,
    lines: BTreeMap<LinePlace, LineSamples>,
    inlined: BTreeMap<(LinePlace, String), FunctionSamples>,
}

#[derive(Clone, Debug, Default)]
struct LineSamples {
    /// How often the instruction of the line that was executed most often was, or more if
    /// there are more calls.
    count: u64,
    calls: BTreeMap<String, u64>,
}

/// A profile of the functions of a program, in LLVM's terms.
///
/// The count of a line is that of its instruction that was executed most often, and no
/// less than that of its calls. Lines that were not executed are there with 0, if anything of their function was executed.
/// The total of a function is the number of executed instructions.
#[derive(Clone, Debug, Default)]
pub struct SampleProfile {
    functions: BTreeMap<String, FunctionSamples>,
    /// Instructions of code without debugging information.
    unknown: u64,
    known: u64,
}

impl SampleProfile {
    /// The profile of code that was run through so often.
    #[must_use]
    pub fn new(flow: &FlowCounts, image: &Image, scopes: &[Scopes]) -> SampleProfile {
        let mut profile = SampleProfile::default();
        let counts = instructions(flow, image);
        let mut points = Vec::new();
        for (&pc, &count) in &counts {
            find(scopes, pc, &mut points);
            match points.is_empty() {
                true => profile.unknown += count,
                false => {
                    profile.known += count;
                    profile.add(&points, count);
                }
            }
        }
        profile.add_zeros(&counts, image, scopes);
        // How often each function was entered, by its first instruction.
        let mut entries = counts;
        for ((source, target), count) in flow.branches() {
            let is_inside = scopes.iter().any(|s| s.is_one_function(source, target));
            match is_inside && !is_call(image, source) {
                true => {
                    let jumps = entries.entry(target).or_default();
                    *jumps = jumps.saturating_sub(count);
                }
                false => profile.call(source, target, count, scopes),
            }
        }
        for (pc, count) in entries {
            let name = scopes.iter().find_map(|scopes| scopes.starts_at(pc));
            let function = name.and_then(|name| profile.functions.get_mut(name));
            // Those that are not called are entered by a trap, or at the start.
            function.into_iter().for_each(|f| f.entries += count);
        }
        profile
    }

    /// Executed instructions of functions with debugging information, and of all others.
    #[must_use]
    pub const fn instructions(&self) -> (u64, u64) {
        (self.known, self.unknown)
    }

    /// The innermost function of a place, with instructions added to those it is in.
    fn function(&mut self, points: &[SourcePoint<'_>], insns: u64) -> Option<&mut FunctionSamples> {
        let (first, rest) = points.split_first()?;
        let mut function = self.functions.entry(first.function.to_owned()).or_default();
        function.total += insns;
        let mut place = first.place;
        for inner in rest {
            let at = (place?, inner.function.to_owned());
            function = function.inlined.entry(at).or_default();
            function.total += insns;
            place = inner.place;
        }
        Some(function)
    }

    /// An instruction that was executed so often, or never.
    fn add(&mut self, points: &[SourcePoint<'_>], count: u64) {
        let place = points.last().and_then(|last| last.place);
        let copies = points.last().map_or(1, |last| u64::from(last.copies));
        if let Some((function, place)) = self.function(points, count).zip(place) {
            let line = function.lines.entry(place).or_default();
            line.count = line.count.max(count.saturating_mul(copies));
        }
    }

    /// The lines of functions that were not executed.
    fn add_zeros(&mut self, counts: &BTreeMap<u64, u64>, image: &Image, scopes: &[Scopes]) {
        let mut points = Vec::new();
        let mut done = 0;
        for &pc in counts.keys() {
            if pc < done {
                continue;
            }
            done = pc + 1;
            for (start, end) in scopes.iter().flat_map(|scopes| scopes.code(pc)) {
                if start <= pc {
                    done = done.max(end);
                }
                for at in addresses(image, start, end.saturating_sub(1)) {
                    if !counts.contains_key(&at) {
                        find(scopes, at, &mut points);
                        self.add(&points, 0);
                    }
                }
            }
        }
    }

    /// A jump out of a function, or a call: it counts if it leads to the start of one.
    fn call(&mut self, source: u64, target: u64, count: u64, scopes: &[Scopes]) {
        let Some(callee) = scopes.iter().find_map(|scopes| scopes.starts_at(target)) else {
            return;
        };
        let mut points = Vec::new();
        find(scopes, source, &mut points);
        self.functions.entry(callee.to_owned()).or_default().calls += count;
        let place = points.last().and_then(|last| last.place);
        if let Some((function, place)) = self.function(&points, 0).zip(place) {
            let line = function.lines.entry(place).or_default();
            *line.calls.entry(callee.to_owned()).or_default() += count;
            // Calls of a line may be several instructions. As in llvm-profgen, they are
            // not added up where they were inlined.
            if points.len() == 1 {
                line.count = line.count.max(line.calls.values().sum());
            }
        }
    }

    /// Writes LLVM's text. Functions with names that it cannot have are left out.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut all: Vec<_> = self.functions.iter().collect();
        all.retain(|(name, function)| is_plain(name) && function.total + function.head() > 0);
        order::sort_by_key(&mut all, |(_, function)| std::cmp::Reverse(function.total));
        for (name, function) in all {
            writeln!(out, "{name}:{}:{}", function.total, function.head())?;
            function.write(1, out)?;
        }
        Ok(())
    }
}

impl FunctionSamples {
    /// How often it was entered. Samples may have the one or the other.
    fn head(&self) -> u64 {
        self.calls.max(self.entries)
    }

    fn write(&self, depth: usize, out: &mut dyn Write) -> io::Result<()> {
        for (place, line) in &self.lines {
            write!(out, "{:depth$}{}: {}", "", place, line.count)?;
            for (callee, count) in line.calls.iter().filter(|(name, _)| is_plain(name)) {
                write!(out, " {callee}:{count}")?;
            }
            writeln!(out)?;
        }
        for ((place, name), inner) in self.inlined.iter().filter(|((_, name), _)| is_plain(name)) {
            writeln!(out, "{:depth$}{}: {name}:{}", "", place, inner.total)?;
            inner.write(depth + 1, out)?;
        }
        Ok(())
    }
}

/// Whether a name can stand in the text: it ends at a space or a colon, and some first
/// characters have a meaning.
fn is_plain(name: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    !name.is_empty() && !name.contains(odd) && !name.starts_with(['#', '[', '!'])
}

/// How often each instruction was executed.
fn instructions(flow: &FlowCounts, image: &Image) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for ((first, last), count) in flow.ranges() {
        for pc in addresses(image, first, last) {
            *counts.entry(pc).or_default() += count;
        }
    }
    counts
}

/// The instructions from one address to another.
fn addresses(image: &Image, first: u64, last: u64) -> impl Iterator<Item = u64> {
    let insns = image.insns(SpaceId::FIRST, first, MOST_INSNS);
    insns.map(|(pc, _)| pc).take_while(move |pc| *pc <= last)
}

/// Where an instruction comes from.
fn find<'s>(scopes: &'s [Scopes], pc: u64, points: &mut Vec<SourcePoint<'s>>) {
    points.clear();
    for scopes in scopes {
        scopes.at(pc, points);
        if !points.is_empty() {
            return;
        }
    }
}

/// Whether an instruction calls.
fn is_call(image: &Image, pc: u64) -> bool {
    let insn = image.fetch(SpaceId::FIRST, pc);
    match insn.map(|insn| Flow::of_retired(insn.bits, insn.isa)) {
        Some(Flow::Jump { link, .. } | Flow::Table { link, .. } | Flow::Indirect { link, .. }) => {
            link == Link::Call
        }
        _ => false,
    }
}
