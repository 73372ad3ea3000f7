//! The names of processes, from what Linux programs ask their kernel for.
//!
//! A hart sees no processes, only address spaces. Their names follow from system calls,
//! whose numbers and arguments are part of Linux's interface to programs: a program that
//! executes another names it, and the kernel gives it a new address space for that; one that
//! forks has a child of the same name. Nothing of the kernel itself is known here. A system
//! other than Linux has no names.

use std::collections::{BTreeMap, BTreeSet};

use hartrace_flow::Context;

use crate::bus::Bus;
use crate::cpu::{Cpu, envcfg};
use crate::mmu::{self, Use};

/// Numbers of system calls.
const CLONE: u64 = 220;
const CLONE3: u64 = 435;
const EXECVE: u64 = 221;
/// The flag of a child that has the memory of its parent.
const SAME_MEMORY: u64 = 0x100;
const EXECVEAT: u64 = 281;
const PRCTL: u64 = 167;
/// The first argument of [`PRCTL`] that sets the name of the caller.
const SET_NAME: u64 = 15;

/// Registers with the number of a call and its arguments.
const A0: u8 = 10;
const A7: u8 = 17;

/// Bytes of a name that are read, and of a name that is kept: Linux cuts at 15.
const LONGEST_PATH: u64 = 256;
const LONGEST_NAME: usize = 32;

/// Contexts that are remembered.
const MOST: usize = 1 << 16;

/// What a program that a process executes by itself is called: its own file.
const OWN_FILE: &str = "/proc/self/exe";

/// What is known of processes so far, by context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    seen: BTreeSet<Context>,
    names: BTreeMap<Context, String>,
    /// What contexts have asked to execute.
    executing: BTreeMap<Context, String>,
    /// Contexts that have asked for children that have not run yet, and how many.
    forking: BTreeMap<Context, u32>,
}

impl Processes {
    /// A hart goes from one context to another.
    pub(crate) fn enter(&mut self, before: Context, context: Context) {
        if self.seen.len() >= MOST || !self.seen.insert(context) {
            return;
        }
        let name = self.executing.remove(&before);
        if let Some(name) = name.or_else(|| self.forked(before)) {
            self.names.insert(context, name);
        }
    }

    /// The name of a child that runs for the first time after a context: its parent's. That
    /// is the context before it, or one that waits for a child; if several do, their names
    /// must be the same.
    fn forked(&mut self, before: Context) -> Option<String> {
        let name = |context: &Context| self.names.get(context);
        let parent = match self.forking.contains_key(&before) {
            true => before,
            false => {
                let first = *self.forking.keys().next()?;
                let alike = self.forking.keys().all(|other| name(other) == name(&first));
                alike.then_some(first)?
            }
        };
        let name = name(&parent).cloned();
        let children = self.forking.get_mut(&parent)?;
        *children -= 1;
        if *children == 0 {
            self.forking.remove(&parent);
        }
        name
    }

    /// A program in this context calls the kernel: to execute another, or to fork.
    fn call(&mut self, context: Context, call: Call) {
        // Whatever it wanted to execute, it still runs.
        self.executing.remove(&context);
        if matches!(call, Call::Other) {
            return;
        }
        if self.names.is_empty() {
            // The kernel starts the first program by itself.
            self.names.insert(context, "init".to_owned());
            self.names.insert(Context(0), "kernel".to_owned());
        }
        self.seen.insert(context);
        match call {
            Call::Execute(name) => _ = self.executing.insert(context, name),
            Call::Rename(name) => _ = self.names.insert(context, name),
            Call::Fork => *self.forking.entry(context).or_default() += 1,
            Call::Other => {}
        }
    }

    /// The contexts that have names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (Context, &str)> {
        let names = self.names.iter();
        names.map(|(context, name)| (*context, name.as_str()))
    }
}

/// What a program wants.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Execute(String),
    Rename(String),
    Fork,
    Other,
}

/// Takes note of a call to the kernel by a program, before it is made.
#[cold]
pub(crate) fn note_call(cpu: &Cpu, bus: &mut Bus) {
    let context = cpu.context();
    let call = match cpu.read_x(A7) {
        CLONE => forked(Some(cpu.read_x(A0))),
        CLONE3 => {
            // The flags are the first of its arguments in memory.
            let cpu = without_effects(cpu);
            forked(word(&cpu, bus, cpu.read_x(A0)))
        }
        EXECVE => executed(cpu, bus, A0),
        EXECVEAT => executed(cpu, bus, A0 + 1),
        PRCTL if cpu.read_x(A0) == SET_NAME => {
            let cpu = without_effects(cpu);
            let name = string(&cpu, bus, cpu.read_x(A0 + 1));
            name.map_or(Call::Other, |name| Call::Rename(short(&name)))
        }
        _ => Call::Other,
    };
    if let Some(processes) = &mut bus.processes {
        processes.call(context, call);
    }
}

/// A child with an address space of its own, or a thread.
fn forked(flags: Option<u64>) -> Call {
    match flags {
        Some(flags) if flags & SAME_MEMORY == 0 => Call::Fork,
        _ => Call::Other,
    }
}

/// A hart that reads memory without a change of page tables.
fn without_effects(cpu: &Cpu) -> Cpu {
    let mut cpu = cpu.clone();
    cpu.update_ad = false;
    cpu.menvcfg &= !envcfg::ADUE;
    cpu
}

/// What is executed, of which the path is in a register, and the arguments in the next.
fn executed(cpu: &Cpu, bus: &mut Bus, path: u8) -> Call {
    let cpu = without_effects(cpu);
    let mut name = string(&cpu, bus, cpu.read_x(path));
    if name.as_deref() == Some(OWN_FILE) {
        let first = word(&cpu, bus, cpu.read_x(path + 1));
        name = first.and_then(|first| string(&cpu, bus, first)).or(name);
    }
    match name {
        Some(name) => Call::Execute(short(&name)),
        None => Call::Other,
    }
}

/// The last part of a path; login shells have a `-` before it.
fn short(path: &str) -> String {
    let name = path.rsplit('/').find(|part| !part.is_empty());
    let name = name.unwrap_or(path).trim_start_matches('-');
    let plain = name.chars().filter(|c| !c.is_control());
    plain.take(LONGEST_NAME).collect()
}

fn byte(cpu: &Cpu, bus: &mut Bus, addr: u64) -> Option<u8> {
    let at = mmu::translate(cpu, bus, addr, 1, Use::Load).ok()?;
    let mut byte = [0];
    bus.memory.read(at, &mut byte).then_some(byte[0])
}

fn word(cpu: &Cpu, bus: &mut Bus, addr: u64) -> Option<u64> {
    let size = u64::from(cpu.xlen().bits() / 8);
    let mut word = 0;
    for at in (0..size).rev() {
        word = word << 8 | u64::from(byte(cpu, bus, addr.wrapping_add(at))?);
    }
    Some(word)
}

/// A string that ends with a zero, if it is text and not too long.
fn string(cpu: &Cpu, bus: &mut Bus, addr: u64) -> Option<String> {
    let mut text = Vec::new();
    for at in 0..LONGEST_PATH {
        match byte(cpu, bus, addr.wrapping_add(at))? {
            0 => return String::from_utf8(text).ok().filter(|text| !text.is_empty()),
            byte => text.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(processes: &Processes) -> Vec<(u64, &str)> {
        processes.names().map(|(c, name)| (c.0, name)).collect()
    }

    fn execute(name: &str) -> Call {
        Call::Execute(name.to_owned())
    }

    #[test]
    fn a_shell_forks_and_executes() {
        let mut processes = Processes::default();
        let c = Context;
        processes.enter(c(0), c(1));
        processes.call(c(1), Call::Other);
        assert_eq!(names(&processes), []);
        processes.call(c(1), Call::Fork);
        processes.enter(c(1), c(2));
        // The first place where it looks has no such program; the parent runs meanwhile.
        processes.call(c(2), execute("cat"));
        processes.call(c(2), execute("cat"));
        processes.enter(c(2), c(1));
        processes.call(c(1), Call::Other);
        processes.enter(c(1), c(2));
        processes.enter(c(2), c(3));
        // One that is only forked, and one whose execution fails.
        processes.enter(c(3), c(1));
        processes.call(c(1), Call::Fork);
        processes.enter(c(1), c(4));
        processes.call(c(4), execute("nothing"));
        processes.call(c(4), Call::Other);
        processes.enter(c(4), c(5));
        assert_eq!(processes.names.get(&c(5)), None);
        // Two children for a pipe, which start after another process. One names itself.
        processes.call(c(1), Call::Fork);
        processes.call(c(1), Call::Fork);
        processes.enter(c(1), c(3));
        processes.enter(c(3), c(6));
        processes.call(c(6), Call::Rename("head".to_owned()));
        processes.enter(c(6), c(7));
        processes.enter(c(7), c(8));
        let expected = [
            (0, "kernel"),
            (1, "init"),
            (2, "init"),
            (3, "cat"),
            (4, "init"),
            (6, "head"),
            (7, "init"),
        ];
        assert_eq!(names(&processes), expected);
    }

    #[test]
    fn names_are_the_last_part_of_paths() {
        assert_eq!(short("/bin/sh"), "sh");
        assert_eq!(short("-sh"), "sh");
        assert_eq!(short("cat"), "cat");
        assert_eq!(short("/"), "/");
        assert_eq!(short("/a\u{7}b/"), "ab");
        assert_eq!(short(&"x".repeat(99)).len(), LONGEST_NAME);
    }
}
