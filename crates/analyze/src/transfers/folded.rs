//! Call stacks for flame graphs.

use super::Sample;
use crate::places::Places;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Stacks of calls that have not returned, folded: one line for each stack
/// there was, the outermost function first, with `;` between, and how many
/// samples had it.
///
/// The samples are those of RAS emulation. A call gives its caller (the
/// function of its source) and its callee (the function of its target). Where a
/// call comes from another function than the one that was called last, that one
/// went on there without a call, by a tail call or a jump: both are in the
/// stack. So is the function the hart is in. Without symbols the callees stand
/// in the stack by the addresses they were called at.
///
/// A stack whose outermost calls may have been overwritten begins with `[cut]`;
/// one that no call was recorded for has the function the hart is in alone.
pub struct Folded<'p, 'a> {
    places: &'p Places<'a>,
    /// The frame of an address: places are few and samples are many.
    frames: HashMap<u64, u32>,
    /// Frames by their names.
    by_name: HashMap<String, u32>,
    stacks: HashMap<Box<[u32]>, u64>,
    cut: u64,
    moved: u64,
    samples: u64,
    /// The stack in work.
    stack: Vec<u32>,
}

/// What stands before a stack that is not whole.
const CUT: &str = "[cut]";

impl<'p, 'a> Folded<'p, 'a> {
    /// No stacks yet.
    #[must_use]
    pub fn new(places: &'p Places<'a>) -> Folded<'p, 'a> {
        Folded {
            places,
            frames: HashMap::new(),
            by_name: HashMap::new(),
            stacks: HashMap::new(),
            cut: 0,
            moved: 0,
            samples: 0,
            stack: Vec::new(),
        }
    }

    /// Counts a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        if sample.cut {
            self.cut += 1;
            stack.push(self.named(CUT.to_owned()));
        }
        let mut called = None;
        let mut moved = false;
        for call in sample.transfers.iter().rev() {
            moved |= self.go_on(&mut stack, called, call.source) && called.is_some();
            let callee = self.frame(call.target, true);
            stack.extend(callee);
            called = Some(callee);
        }
        if let Some(pc) = sample.pc {
            self.go_on(&mut stack, called, pc);
        }
        self.moved += u64::from(moved);
        if !stack.is_empty() {
            self.samples += 1;
            match self.stacks.get_mut(stack.as_slice()) {
                Some(count) => *count += 1,
                None => {
                    self.stacks.insert(stack.as_slice().into(), 1);
                }
            }
        }
        self.stack = stack;
    }

    /// The hart is at an address: a frame more unless the last callee is there.
    /// Whether there is one more.
    fn go_on(&mut self, stack: &mut Vec<u32>, called: Option<Option<u32>>, address: u64) -> bool {
        let here = self.frame(address, called.is_none());
        let more = here.is_some() && called != Some(here);
        if more {
            stack.extend(here);
        }
        more
    }

    /// The frame of an address. Without a symbol it is the address itself, if
    /// that is where a function starts.
    fn frame(&mut self, address: u64, start: bool) -> Option<u32> {
        if address == 0 {
            return None;
        }
        if let Some(frame) = self.frames.get(&address) {
            return Some(*frame);
        }
        let name = match self.places.function(address) {
            // Semicolons part frames, and the last space is before the count.
            Some(name) => name.replace(';', ":"),
            None if start => format!("{address:#x}"),
            None => return None,
        };
        let frame = self.named(name);
        self.frames.insert(address, frame);
        Some(frame)
    }

    fn named(&mut self, name: String) -> u32 {
        let next = self.by_name.len() as u32;
        *self.by_name.entry(name).or_insert(next)
    }

    /// How many samples there were, and how many stacks of them may not be
    /// whole.
    #[must_use]
    pub const fn samples(&self) -> (u64, u64) {
        (self.samples, self.cut)
    }

    /// How many samples had a call that does not come from the last callee. It
    /// went on elsewhere without a call, or it is long gone.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// Writes the stacks in the order of their text.
    ///
    /// # Errors
    ///
    /// Failures of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut names = vec![""; self.by_name.len()];
        for (name, frame) in &self.by_name {
            if let Some(slot) = names.get_mut(*frame as usize) {
                *slot = name;
            }
        }
        let text = |stack: &[u32]| {
            let frames = stack.iter().filter_map(|frame| names.get(*frame as usize));
            frames.copied().collect::<Vec<&str>>().join(";")
        };
        let mut lines = BTreeMap::new();
        for (stack, count) in &self.stacks {
            *lines.entry(text(stack)).or_insert(0) += count;
        }
        for (stack, count) in lines {
            writeln!(out, "{stack} {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use hartrace_flow::Transfer;
    use hartrace_isa::Itype;

    fn call(source: u64, target: u64) -> Transfer {
        testing(source, target, Itype::DirectCall)
    }

    fn folded(places: &Places<'_>, samples: &[(Option<u64>, &[Transfer], bool)]) -> String {
        stacks(places, samples).0
    }

    fn stacks(places: &Places<'_>, samples: &[(Option<u64>, &[Transfer], bool)]) -> (String, u64) {
        let mut folded = Folded::new(places);
        for &(pc, transfers, cut) in samples {
            folded.add(&Sample {
                pc,
                transfers,
                cut,
                ..Sample::default()
            });
        }
        let mut out = Vec::new();
        folded.write(&mut out).unwrap();
        (String::from_utf8(out).unwrap(), folded.moved())
    }

    #[test]
    fn stacks_without_symbols() {
        let places = Places::new();
        let inner = [call(0x204, 0x300), call(0x104, 0x200)];
        let outer = [call(0x104, 0x200)];
        let text = folded(
            &places,
            &[
                (Some(0x304), &inner, false),
                (Some(0x204), &outer, false),
                (Some(0x308), &inner, false),
                (Some(0x308), &inner, true),
                (Some(0x104), &[], false),
                (None, &[], false),
            ],
        );
        assert_eq!(
            text,
            "0x104 1\n0x104;0x200 1\n0x104;0x200;0x300 2\n[cut];0x104;0x200;0x300 1\n"
        );
    }

    /// Functions of the program `sort`, whose addresses are found by name.
    #[test]
    fn stacks_with_symbols() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/recursion/");
        let file = std::fs::read([folder, "recursion-rv64gc.elf"].concat()).unwrap();
        let mut places = Places::new();
        places.add_elf(&file, None).unwrap();
        let at = |name: &str| places.names().address(name).unwrap();
        let (start, main, print) = (at("_start"), at("main"), at("printf"));
        let calls = [call(main + 8, print), call(start + 4, main)];
        // A tail call: main jumped to printf's code, which calls main.
        let tail = [call(print + 4, main), call(start + 4, main)];
        // A longjmp, or a handler: the hart is in none of the callees.
        let (text, moved) = stacks(
            &places,
            &[
                (Some(print + 2), &calls, false),
                (None, &calls, false),
                (Some(main + 2), &tail, false),
                (Some(start), &calls, false),
                // Of a call from another mode only the callee is known.
                (Some(main), &[call(0, main)], false),
            ],
        );
        assert_eq!(
            text,
            "_start;main;printf 2\n_start;main;printf;_start 1\n_start;main;printf;main 1\nmain 1\n"
        );
        // The tail call; where the hart is now says nothing about calls.
        assert_eq!(moved, 1);
    }

    #[test]
    fn recursion_keeps_every_frame() {
        let places = Places::new();
        let calls: Vec<Transfer> = (0..5)
            .map(|_| call(0x110, 0x100))
            .chain([call(0x10, 0x100)])
            .collect();
        let text = folded(&places, &[(Some(0x104), &calls, false)]);
        assert_eq!(text, "0x10;0x100;0x100;0x100;0x100;0x100;0x100 1\n");
    }
}
