//! The built-in hart as the core: what it retires is given to a checker as a port would,
//! with and without faults.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use hartrace_capture::config::Config;
use hartrace_cosim::{CheckOptions, Checker, Finding, machine};
use hartrace_flow::{Cause, Effects, HartId, Mode, Observer, RegId, RegWrite, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config as HartConfig, Platform, Program};
use hartrace_isa::Xlen;
use hartrace_logs::{Entry, EntryAccess, EntryTrap, Rvfi, RvfiMemory};
use hartrace_tandem::verify::{Counters, Field};
use hartrace_testkit::{assemble, elf_at};
use std::path::{Path, PathBuf};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../programs")
        .join(name)
}

/// What a port shows of each step.
struct Port {
    entries: Vec<Entry>,
    options: CheckOptions,
    /// An interrupt was taken before the next instruction.
    intr: bool,
    most: usize,
}

impl Observer for Port {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        if self.entries.len() == self.most {
            return;
        }
        let mut entry = Entry::default();
        match step {
            Step::Insn(insn) => {
                entry.pc = insn.pc;
                entry.bits = Some(insn.bits);
                entry.next = Some(insn.next);
                entry.mode = self.options.modes.then_some(insn.mode);
                if self.intr && self.options.interrupts {
                    entry.handler = Some(Cause::Interrupt(None));
                }
            }
            Step::Trap(trap) if matches!(trap.trap.cause, Cause::Exception(_)) => {
                entry.pc = trap.trap.epc.unwrap();
                entry.bits = trap.bits;
                entry.mode = self.options.modes.then_some(trap.mode);
                entry.trap = Some(EntryTrap {
                    cause: Cause::Exception(None),
                    tval: None,
                });
            }
            Step::Trap(_) => {
                self.intr = true;
                return;
            }
            Step::Signal(_) => return,
        }
        self.intr = false;
        for write in effects.regs.iter() {
            if self.options.floats || matches!(write.reg, RegId::X(_)) {
                entry.reg(write.reg, write.value);
            }
        }
        for access in effects.accesses.iter().filter(|_| self.options.memory) {
            entry.access(EntryAccess {
                store: access.kind.code() != 0,
                addr: access.addr,
                paddr: None,
                size: Some(access.size),
                data: access.data,
            });
        }
        self.entries.push(entry);
    }
}

/// The first instructions that a program executes.
fn run(name: &str, most: usize, options: CheckOptions) -> Vec<Entry> {
    let bytes = std::fs::read(program(name)).unwrap();
    let xlen = match name.contains("rv32") {
        true => Xlen::Rv32,
        false => Xlen::Rv64,
    };
    run_elf(&bytes, xlen, most, options)
}

fn run_elf(bytes: &[u8], xlen: Xlen, most: usize, options: CheckOptions) -> Vec<Entry> {
    let config = HartConfig::new(Platform::Virt, xlen);
    let mut machine = machine::build(&config, Host::silent()).unwrap();
    machine
        .load(Program::from_elf(bytes).unwrap(), None)
        .unwrap();
    let mut port = Port {
        entries: Vec::new(),
        options,
        intr: false,
        most,
    };
    machine.run(most as u64, &mut port);
    port.entries
}

fn config(name: &str, more: &str) -> Config {
    let file = program(name);
    let text = format!("[program]\nelf = {:?}\n{more}", file.to_str().unwrap());
    Config::parse(&text, Path::new("core.toml")).unwrap()
}

fn checker(name: &str, options: CheckOptions) -> Checker {
    Checker::new(config(name, ""), Vec::new(), options, &mut |_| {}).unwrap()
}

/// The same as an entry in the signals of a port, if it can be said with them.
fn rvfi(entry: &Entry, options: CheckOptions) -> Option<Rvfi> {
    let rd = match &entry.regs[..] {
        [] => (0, 0),
        [
            RegWrite {
                reg: RegId::X(number),
                value,
            },
        ] => (*number, *value),
        _ => return None,
    };
    let mut memory = RvfiMemory::default();
    match &entry.accesses[..] {
        [] => {}
        [access] => {
            let mask = ((1u32 << (1 << access.size?)) - 1) as u8;
            let data = access.data?;
            memory.addr = access.addr;
            match access.store {
                true => (memory.wmask, memory.wdata) = (mask, data),
                false => (memory.rmask, memory.rdata) = (mask, data),
            }
        }
        _ => return None,
    }
    Some(Rvfi {
        insn: entry.bits?,
        trap: entry.trap.is_some(),
        intr: entry.handler.is_some(),
        mode: entry.mode.map(Mode::code),
        ixl: None,
        pc_rdata: entry.pc,
        pc_wdata: entry.next,
        rd: options.registers.then_some(rd),
        memory: options.memory.then_some(memory),
    })
}

/// How entries are given to a checker.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// One by one, as they are.
    Long,
    /// The short way first ([`Checker::agrees`]).
    Short,
    /// In rows ([`Checker::agree`]).
    Rows,
}

/// The first difference, and the number of the entry whose call reported it. All ways give
/// the same.
fn check(name: &str, entries: &mut [Entry], options: CheckOptions) -> Option<(usize, Finding)> {
    let found = check_by(name, entries, options, Way::Long);
    for way in [Way::Short, Way::Rows] {
        assert_eq!(found, check_by(name, entries, options, way), "{way:?}");
    }
    found.0
}

/// What is found, and what was counted.
type Outcome = (Option<(usize, Finding)>, Counters);

fn check_by(name: &str, entries: &mut [Entry], options: CheckOptions, way: Way) -> Outcome {
    let mut checker = checker(name, options);
    let (mut passed, mut number) = (0, 0);
    while number < entries.len() {
        let short = match way {
            Way::Long => 0,
            Way::Short => {
                let rvfi = rvfi(&entries[number], options);
                usize::from(rvfi.is_some_and(|rvfi| checker.agrees(HartId(0), &rvfi)))
            }
            Way::Rows => {
                let row = entries[number..].iter().take(100);
                let row = row.map_while(|entry| rvfi(entry, options));
                checker.agree(HartId(0), row)
            }
        };
        (number, passed) = (number + short, passed + short);
        if short != 0 {
            continue;
        }
        if let Some(finding) = checker.retire(&mut entries[number]).unwrap() {
            return (Some((number, finding.clone())), *checker.counters());
        }
        number += 1;
    }
    // Most instructions of any program go the short way.
    assert!(
        way == Way::Long || 2 * passed >= entries.len(),
        "{name}: {passed}"
    );
    let finding = checker.finish().cloned();
    let counters = *checker.counters();
    assert!(counters.instructions() + counters.interrupts + 1 >= entries.len() as u64);
    (finding.map(|finding| (entries.len(), finding)), counters)
}

#[test]
fn a_core_that_is_right_agrees() {
    let all = CheckOptions {
        floats: true,
        ..CheckOptions::default()
    };
    let bare = CheckOptions {
        modes: false,
        memory: false,
        interrupts: false,
        ..all
    };
    for name in [
        "sieve/sieve-rv64gc.elf",
        "sieve/sieve-rv32imac.elf",
        "timer/timer-rv64gc.elf",
        "timer/timer-rv32gc.elf",
        "exceptions/exceptions-rv64gc.elf",
        "causes/causes-rv32gc.elf",
        "float/float-rv64gc.elf",
        "modes/modes-rv64gc.elf",
    ] {
        for options in [all, bare] {
            let mut entries = run(name, 20_000, options);
            let found = check(name, &mut entries, options);
            assert!(
                found.is_none(),
                "{name} {options:?}\n{}",
                found.unwrap().1.text
            );
        }
    }
}

#[test]
fn a_wrong_sum_is_found_at_its_instruction_at_once() {
    let options = CheckOptions::default();
    let name = "sieve/sieve-rv32imac.elf";
    let mut entries = run(name, 2000, options);
    let at = entries
        .iter()
        .rposition(|entry| entry.bits.is_some_and(|bits| bits & 0x707f == 0x13))
        .unwrap();
    let mut write = entries[at].regs[0];
    write.value ^= 4;
    entries[at].regs.clear();
    entries[at].reg(write.reg, write.value);
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!(
        (call, finding.insn, finding.pc),
        (at, at as u64, entries[at].pc)
    );
    assert_eq!(finding.bits, entries[at].bits);
    let [difference] = &finding.differences[..] else {
        panic!("{finding:?}");
    };
    assert_eq!(
        difference.expected,
        difference.actual.map(|value| value ^ 4)
    );
    assert!(
        finding.text.starts_with("mismatch 1: instruction "),
        "{}",
        finding.text
    );
    assert!(finding.text.contains("differing bits"), "{}", finding.text);
}

#[test]
fn a_lost_store_and_a_wrong_branch_are_found_at_once() {
    let options = CheckOptions::default();
    let name = "sieve/sieve-rv64gc.elf";
    let right = run(name, 2000, options);
    let stores = |entry: &Entry| entry.accesses.first().is_some_and(|access| access.store);
    let at = right.iter().rposition(stores).unwrap();
    let mut entries = right.clone();
    entries[at].accesses.clear();
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!((call, finding.pc), (at, right[at].pc));
    assert_eq!(finding.differences[0].field, Field::StoreAddress);

    let jumps = |entry: &Entry| entry.bits.is_some_and(|bits| bits & 0x7f == 0x63);
    let at = right.iter().rposition(jumps).unwrap();
    let mut entries = right.clone();
    entries[at].next = entries[at].next.map(|next| next + 8);
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!((call, finding.pc), (at, right[at].pc));
    assert_eq!(finding.differences[0].field, Field::Pc);
    // The port says where it goes, and then is elsewhere.
    let mut entries = right.clone();
    entries[at + 1].pc += 8;
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!((call, finding.pc), (at + 1, right[at + 1].pc + 8));
    assert_eq!(finding.differences[0].expected, Some(right[at + 1].pc));
}

#[test]
fn what_is_read_of_csrs_is_compared_though_no_port_shows_them() {
    let options = CheckOptions::default();
    let name = "timer/timer-rv32gc.elf";
    let mut entries = run(name, 20_000, options);
    // csrr of mcause or mepc in the handler.
    let reads = |entry: &Entry| {
        let bits = entry.bits.unwrap_or(0);
        bits & 0x707f == 0x2073 && matches!(bits >> 20, 0x341 | 0x342)
    };
    let Some(at) = entries.iter().rposition(reads) else {
        panic!("the program has a handler that reads them");
    };
    let mut write = entries[at].regs[0];
    write.value ^= 1 << 4;
    entries[at].regs.clear();
    entries[at].reg(write.reg, write.value);
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!((call, finding.pc), (at, entries[at].pc));
}

#[test]
fn an_interrupt_that_is_disabled_is_found() {
    let options = CheckOptions::default();
    let name = "timer/timer-rv32gc.elf";
    let mut entries = run(name, 20_000, options);
    let taken = entries
        .iter()
        .position(|entry| entry.handler.is_some())
        .unwrap();
    let handler = entries[taken].clone();
    // While the handler runs, interrupts are off.
    entries.truncate(taken + 3);
    entries.push(handler);
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!(call, taken + 3);
    assert_eq!(finding.differences[0].field, Field::Handler);
    assert_eq!(finding.differences[0].actual, Some(entries[taken].pc));
    assert!(finding.text.contains("interrupt"), "{}", finding.text);
}

/// As SERV does: an interrupt is a trap of the instruction that it comes before.
#[test]
fn an_interrupt_shown_as_a_trap_is_taken_if_it_is_enabled() {
    let options = CheckOptions::default();
    let name = "timer/timer-rv32gc.elf";
    let mut entries = run(name, 20_000, options);
    let mut taken = 0;
    for at in (0..entries.len()).rev() {
        if entries[at].handler.take().is_some() {
            let mut trapped = entries[at].clone();
            trapped.regs.clear();
            trapped.accesses.clear();
            trapped.pc = entries[at - 1].next.unwrap();
            // Whatever it is, it does not trap.
            trapped.bits = Some(0x13);
            trapped.trap = Some(EntryTrap {
                cause: Cause::Exception(None),
                tval: None,
            });
            entries.insert(at, trapped);
            taken += 1;
        }
    }
    assert!(taken > 3, "{taken}");
    let found = check(name, &mut entries, options);
    assert!(found.is_none(), "{}", found.unwrap().1.text);
    // Where none is enabled, it is a difference.
    let at = entries
        .iter()
        .position(|entry| entry.bits == Some(0x13))
        .unwrap();
    let mut wrong = entries[at].clone();
    wrong.pc = entries[at + 3].pc;
    entries.insert(at + 3, wrong);
    let (_, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!(finding.pc, entries[at + 3].pc);
}

/// As Ibex does: the next pc of mret is the address after it.
#[test]
fn a_return_from_a_trap_is_checked_by_where_it_leads() {
    let options = CheckOptions::default();
    let name = "timer/timer-rv32gc.elf";
    let mut entries = run(name, 20_000, options);
    let mut last = 0;
    for (at, entry) in entries.iter_mut().enumerate() {
        if entry.bits == Some(0x3020_0073) {
            entry.next = Some(entry.pc + 4);
            last = at;
        }
    }
    let found = check(name, &mut entries, options);
    assert!(found.is_none(), "{}", found.unwrap().1.text);
    entries.truncate(last + 2);
    entries[last + 1].pc += 2;
    let (call, finding) = check(name, &mut entries, options).unwrap();
    assert_eq!((call, finding.pc), (last + 1, entries[last + 1].pc));
}

/// A return to user mode, where an interrupt is pending: the port shows the first instruction
/// of its handler next, and nothing in user mode.
#[test]
fn an_interrupt_right_after_a_return_to_user_mode() {
    const BASE: u64 = 0x8000_0000;
    let code = assemble(
        BASE,
        "       auipc t0, 0
                addi t0, t0, 48         # handler
                csrw mtvec, t0
                lui t2, 0x2000
                li a3, 1
                sw a3, 0(t2)            # msip
                csrrsi zero, mie, 8
                addi t0, t0, 12         # user
                csrw mepc, t0
                csrw mstatus, zero
                mret
                nop
        handler:
                csrr a1, mcause
                sw zero, 0(t2)
                mret
        user:   nop
                j user",
    );
    let elf = elf_at(BASE, &code.unwrap().bytes);
    let options = CheckOptions::default();
    let entries = run_elf(&elf, Xlen::Rv64, 200, options);
    let at = entries.iter().position(|entry| entry.handler.is_some());
    assert_eq!(at, Some(11));
    let path = std::env::temp_dir().join(format!("hartrace-return-{}.elf", std::process::id()));
    std::fs::write(&path, elf).unwrap();
    for next in [BASE + 60, BASE + 44] {
        let mut entries = entries.clone();
        assert_eq!(entries[10].bits, Some(0x3020_0073));
        entries[10].next = Some(next);
        let found = check(path.to_str().unwrap(), &mut entries, options);
        assert!(found.is_none(), "{}", found.unwrap().1.text);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn nothing_is_compared_after_a_difference_until_the_caller_goes_on() {
    let options = CheckOptions::default();
    let name = "sieve/sieve-rv64gc.elf";
    let mut entries = run(name, 1000, options);
    let mut wrong = |at: usize| {
        let mut write = *entries[at].regs.first()?;
        write.value ^= 1;
        entries[at].regs.clear();
        entries[at].reg(write.reg, write.value);
        Some(at)
    };
    let first = (300..).find_map(&mut wrong).unwrap();
    let mut checker = checker(name, options);
    for (number, entry) in entries.iter_mut().enumerate() {
        let found = checker.retire(entry).unwrap();
        assert_eq!(found.is_some(), number >= first, "{number}");
    }
    let insn = checker.finding().unwrap().insn;
    assert_eq!(insn, first as u64);
    checker.go_on();
    assert!(checker.finding().is_none());
}

#[test]
fn a_start_that_is_configured_is_checked() {
    let name = "sieve/sieve-rv64gc.elf";
    let options = CheckOptions::default();
    let mut entries = run(name, 10, options);
    let start = entries[0].pc;
    for (entry, agrees) in [(start, true), (start + 4, false)] {
        let more = format!("[hart]\nentry = {entry:#x}\n");
        let config = config(name, &more);
        let mut checker = Checker::new(config, Vec::new(), options, &mut |_| {}).unwrap();
        let found = checker.retire(&mut entries[0]).unwrap();
        assert_eq!(found.is_none(), agrees, "{found:?}");
    }
    // So is the mode.
    let config = config(name, &format!("[hart]\nentry = {start:#x}\n"));
    let mut checker = Checker::new(config, Vec::new(), options, &mut |_| {}).unwrap();
    entries[0].mode = Some(Mode::U);
    let finding = checker.retire(&mut entries[0]).unwrap().unwrap();
    assert_eq!(finding.differences[0].field, Field::Mode);
}

#[test]
fn settings_that_cannot_be_are_refused_with_their_diagnostic() {
    let refused = |config: Config| {
        let options = CheckOptions::default();
        let made = Checker::new(config, Vec::new(), options, &mut |_| {});
        made.err().unwrap().to_string()
    };
    let text = refused(Config::default());
    assert!(
        text.starts_with("error[HT0304]: no program is given"),
        "{text}"
    );
    let text = refused(config("sieve/sieve-rv64gc.elf", "isa = \"rv32i\"\n"));
    assert!(text.starts_with("error["), "{text}");
    let text = refused(config(
        "sieve/sieve-rv64gc.elf",
        "[hart]\nentry = \"nowhere\"\n",
    ));
    assert!(text.contains("neither an address nor a symbol"), "{text}");
}
