//! Runs of the built-in hart as RVFI in waveforms: read back, they are the same steps, and
//! this is how fast.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hartrace_capture::config::Config;
use hartrace_capture::detect::Kind;
use hartrace_capture::input::Input;
use hartrace_capture::log::{Damage, LogOptions, LogReader, head, plan_of};
use hartrace_flow::{AccessKind, Cause, Effects, HartId, Observer, RegId, Step, TrapStep, Wants};
use hartrace_isa::{Isa, Xlen, csr};
use hartrace_wave::WaveFormat;
use hartrace_wave::fst::{Kind as Signal, Scope, Sections, Start, Written, write_start};

use crate::trace::Recorded;

/// CSRs that the port shows.
const CSRS: [(&str, u16); 4] = [
    ("mepc", csr::MEPC),
    ("mscratch", csr::MSCRATCH),
    ("mstatus", csr::MSTATUS),
    ("mtvec", csr::MTVEC),
];

/// Words of the widest signal: four lanes of 64 bits.
const WORDS: usize = 4;

/// Changes in a section of an FST file, about.
const SECTION: u64 = 1 << 22;

/// Signals of the port, but for CSRs: names and widths of a lane; 0 for that of the hart.
const FIELDS: [(&str, u32); 20] = [
    ("rvfi_valid", 1),
    ("rvfi_order", 64),
    ("rvfi_insn", 32),
    ("rvfi_trap", 1),
    ("rvfi_intr", 1),
    ("rvfi_mode", 2),
    ("rvfi_ixl", 2),
    ("rvfi_cause", 6),
    ("rvfi_pc_rdata", 0),
    ("rvfi_pc_wdata", 0),
    ("rvfi_rd_addr", 5),
    ("rvfi_rd_wdata", 0),
    ("rvfi_frd_wvalid", 1),
    ("rvfi_frd_addr", 5),
    ("rvfi_frd_wdata", 64),
    ("rvfi_mem_addr", 0),
    ("rvfi_mem_rmask", 8),
    ("rvfi_mem_wmask", 8),
    ("rvfi_mem_rdata", 64),
    ("rvfi_mem_wdata", 64),
];

/// A lane of the port, in the order of the signals.
#[derive(Clone, Copy, Default)]
struct Lane([u64; FIELDS.len() + 2 * CSRS.len()]);

impl Lane {
    fn set(&mut self, name: &str, value: u64) {
        let at = FIELDS.iter().position(|field| field.0 == name);
        if let Some(slot) = at.and_then(|at| self.0.get_mut(at)) {
            *slot = value;
        }
    }

    fn of(step: &Step, effects: &Effects, order: u64, xlen: Xlen, handler: bool) -> Option<Lane> {
        let mut lane = Lane::default();
        let (pc, bits, mode) = match step {
            Step::Insn(insn) => (insn.pc, insn.bits, insn.mode),
            Step::Trap(trap) => {
                let Cause::Exception(cause) = trap.trap.cause else {
                    return None;
                };
                lane.set("rvfi_trap", 1);
                lane.set("rvfi_cause", cause.unwrap_or(0).into());
                (trap.trap.epc?, trap.bits.unwrap_or(0), trap.mode)
            }
            Step::Signal(_) => return None,
        };
        lane.set("rvfi_valid", 1);
        lane.set("rvfi_order", order);
        lane.set("rvfi_insn", bits.into());
        lane.set("rvfi_pc_rdata", pc);
        lane.set("rvfi_mode", mode.code().into());
        lane.set("rvfi_ixl", if xlen == Xlen::Rv32 { 1 } else { 2 });
        lane.set("rvfi_intr", handler.into());
        if let Step::Insn(insn) = step {
            lane.set("rvfi_pc_wdata", insn.next);
            lane.effects(effects);
        }
        Some(lane)
    }

    fn effects(&mut self, effects: &Effects) {
        for write in effects.regs.iter() {
            match write.reg {
                RegId::X(number) => {
                    self.set("rvfi_rd_addr", number.into());
                    self.set("rvfi_rd_wdata", write.value);
                }
                RegId::F(number) => {
                    self.set("rvfi_frd_wvalid", 1);
                    self.set("rvfi_frd_addr", number.into());
                    self.set("rvfi_frd_wdata", write.value);
                }
            }
        }
        // The port has room for one access, which is a load and a store if it is atomic.
        if let Some(access) = effects.accesses.first() {
            let mask = (1u64 << (1 << access.size.min(3))) - 1;
            let loads = access.kind == AccessKind::Load || access.operand.is_some();
            let stores = access.kind != AccessKind::Load && !access.kind.is_failure();
            self.set("rvfi_mem_addr", access.addr);
            if stores {
                self.set("rvfi_mem_wmask", mask);
                self.set("rvfi_mem_wdata", access.data.unwrap_or(0));
            }
            if loads {
                self.set("rvfi_mem_rmask", mask);
            }
        }
        for write in effects.csrs.iter() {
            if let Some(at) = CSRS.iter().position(|csr| csr.1 == write.csr) {
                for (place, value) in [(2 * at, u64::MAX), (2 * at + 1, write.value)] {
                    if let Some(slot) = self.0.get_mut(FIELDS.len() + place) {
                        *slot = value;
                    }
                }
            }
        }
    }
}

/// Where a waveform is written to.
enum Out {
    Vcd(String, fs::File),
    Fst(Box<Sections>, fs::File, u64),
}

/// The port of a hart that is observed, in a file.
struct Port {
    xlen: Xlen,
    lanes: usize,
    signals: Vec<(String, u32)>,
    /// What retires in the current cycle.
    retired: Vec<Lane>,
    last: Vec<[u64; WORDS]>,
    order: u64,
    cycle: u64,
    /// The next instruction is the first of a handler.
    handler: bool,
    facts: Vec<u64>,
    out: Out,
    failed: Option<String>,
}

impl Port {
    fn create(path: &Path, xlen: Xlen, lanes: usize) -> Result<Port, String> {
        let width = |bits: u32| match (bits, xlen) {
            (0, Xlen::Rv32) => 32,
            (0, Xlen::Rv64) => 64,
            (bits, _) => bits,
        };
        let own = FIELDS
            .iter()
            .map(|(name, bits)| ((*name).to_owned(), width(*bits)));
        let csrs = CSRS.iter().flat_map(|(name, _)| {
            let parts = ["wmask", "wdata"];
            parts.map(|part| (format!("rvfi_csr_{name}_{part}"), width(0)))
        });
        let signals: Vec<(String, u32)> = own.chain(csrs).collect();
        let blame = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut file = fs::File::create(path).map_err(blame)?;
        let fst = path.extension().is_some_and(|extension| extension == "fst");
        let out = match fst {
            false => Out::Vcd(vcd_header(&signals, lanes), file),
            true => {
                let kinds = signals.iter().map(|(name, width)| {
                    // The names of a file live as long as the program.
                    let name: &'static str = name.clone().leak();
                    (name, Signal::Bits(width * lanes as u32))
                });
                let kinds = [("clk", Signal::Bits(1))].into_iter().chain(kinds);
                let scopes = [Scope {
                    name: "tb".to_owned(),
                    signals: kinds.collect(),
                }];
                let start = Start {
                    begin: 0,
                    end: 0,
                    exponent: -9,
                    sections: 0,
                };
                write_start(&mut file, &start, &scopes).map_err(blame)?;
                Out::Fst(Box::new(Sections::new(&scopes, 0)), file, 0)
            }
        };
        Ok(Port {
            xlen,
            lanes,
            last: vec![[u64::MAX; WORDS]; signals.len()],
            signals,
            retired: Vec::new(),
            order: 0,
            cycle: 0,
            handler: false,
            facts: Vec::new(),
            out,
            failed: None,
        })
    }

    /// A cycle: the clock falls, then rises, and with it signals get the values that the
    /// next edge shows.
    fn tick(&mut self) {
        let time = 10 * self.cycle;
        self.cycle += 1;
        match &mut self.out {
            Out::Vcd(text, _) => {
                let _ = writeln!(text, "#{time}\n0!\n#{}\n1!", time + 5);
            }
            Out::Fst(sections, ..) => {
                sections.time(time);
                sections.change(0, Written::Bits(0));
                sections.time(time + 5);
                sections.change(0, Written::Bits(1));
            }
        }
        for at in 0..self.signals.len() {
            self.signal(at);
        }
        self.retired.clear();
        let written = match &mut self.out {
            Out::Vcd(text, file) if text.len() > 1 << 20 => {
                let written = file.write_all(text.as_bytes());
                text.clear();
                written
            }
            Out::Fst(sections, file, changes) if *changes > SECTION => {
                *changes = 0;
                sections.write(file)
            }
            _ => Ok(()),
        };
        self.failed = self.failed.take().or(written.err().map(|e| e.to_string()));
    }

    /// A signal gets the values of all lanes.
    fn signal(&mut self, at: usize) {
        let (Some((_, width)), Some(last)) = (self.signals.get(at), self.last.get_mut(at)) else {
            return;
        };
        let mut words = [0; WORDS];
        for lane in 0..self.lanes {
            let value = self
                .retired
                .get(lane)
                .and_then(|lane| lane.0.get(at))
                .copied();
            let value = value.unwrap_or(0) & (u64::MAX >> (64 - width));
            let (word, shift) = (lane * *width as usize / 64, lane as u32 * width % 64);
            // A lane does not cross a word: widths divide 64, but for those that fit anyway.
            if let Some(slot) = words.get_mut(word) {
                *slot |= value << shift;
            }
            if shift + width > 64
                && let Some(slot) = words.get_mut(word + 1)
            {
                *slot |= value >> (64 - shift);
            }
        }
        // A lane that retires nothing keeps its values, but for `valid`.
        if *last == words || (self.retired.is_empty() && at > 0) {
            return;
        }
        *last = words;
        let bits = width * self.lanes as u32;
        match &mut self.out {
            Out::Vcd(text, _) => {
                let _ = match bits {
                    1 => writeln!(text, "{}v{at}", words[0]),
                    _ => {
                        let digits = words.iter().rev().map(|word| format!("{word:064b}"));
                        let digits: String = digits.collect();
                        let shown = digits.trim_start_matches('0');
                        writeln!(
                            text,
                            "b{} v{at}",
                            if shown.is_empty() { "0" } else { shown }
                        )
                    }
                };
            }
            Out::Fst(sections, _, changes) => {
                *changes += 1;
                let value = match bits {
                    0..=64 => Written::Bits(words[0]),
                    _ => Written::Wide(&words),
                };
                sections.change(at + 1, value);
            }
        }
    }
}

impl Observer for Port {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.facts.extend(fact(step, effects));
        let lane = Lane::of(step, effects, self.order, self.xlen, self.handler);
        if !matches!(step, Step::Signal(_)) {
            self.handler = matches!(step, Step::Trap(_));
        }
        if let Some(lane) = lane {
            self.order += 1;
            self.retired.push(lane);
            // Not all lanes retire in every cycle.
            let most = 1 + self.order as usize * 7 % self.lanes;
            if self.retired.len() >= most {
                self.tick();
            }
        }
    }

    fn finish(&mut self) {
        for _ in 0..3 {
            self.tick();
        }
        let written = match &mut self.out {
            Out::Vcd(text, file) => file.write_all(text.as_bytes()),
            Out::Fst(sections, file, _) => sections.write(file),
        };
        self.failed = self.failed.take().or(written.err().map(|e| e.to_string()));
    }
}

fn vcd_header(signals: &[(String, u32)], lanes: usize) -> String {
    let mut text = String::from("$timescale 1ns $end\n$scope module tb $end\n");
    text += "$var wire 1 ! clk $end\n";
    for (at, (name, width)) in signals.iter().enumerate() {
        let width = width * lanes as u32;
        let _ = writeln!(
            text,
            "$var wire {width} v{at} {name} [{}:0] $end",
            width - 1
        );
    }
    text + "$upscope $end\n$enddefinitions $end\n"
}

/// What must be the same on both sides, as a hash; `None` for signals.
fn fact(step: &Step, effects: &Effects) -> Option<u64> {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |values: &[u64]| {
        for value in values {
            hash = (hash ^ value)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
    };
    match step {
        Step::Insn(insn) => {
            add(&[
                insn.pc,
                insn.next,
                insn.bits.into(),
                insn.mode.code().into(),
            ]);
            for write in effects.regs.iter() {
                let number = match write.reg {
                    RegId::X(number) => number,
                    RegId::F(number) => 32 + number,
                };
                add(&[number.into(), write.value]);
            }
            for access in effects.accesses.iter().filter(|a| !a.kind.is_failure()) {
                add(&[access.addr, access.size.into(), access.data.unwrap_or(0)]);
            }
            for write in effects.csrs.iter() {
                if CSRS.iter().any(|csr| csr.1 == write.csr) {
                    add(&[write.csr.into(), write.value]);
                }
            }
        }
        Step::Trap(TrapStep { trap, mode, .. }) => {
            let (kind, code) = match trap.cause {
                Cause::Exception(code) => (1, code),
                Cause::Interrupt(_) => (2, None),
                Cause::Unknown => (3, None),
            };
            let (epc, handler) = (trap.epc.unwrap_or(0), trap.handler.unwrap_or(0));
            add(&[
                kind,
                code.unwrap_or(0).into(),
                epc,
                handler,
                mode.code().into(),
            ]);
        }
        Step::Signal(_) => return None,
    }
    Some(hash)
}

/// The facts of what was read.
#[derive(Default)]
struct Facts(Vec<u64>);

impl Observer for Facts {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.0.extend(fact(step, effects));
    }
}

/// Counts steps, with or without effects.
#[derive(Default)]
struct Count<const EFFECTS: bool>(u64);

impl<const EFFECTS: bool> Observer for Count<EFFECTS> {
    const WANTS: Wants = if EFFECTS { Wants::ALL } else { Wants::STEPS };

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {
        self.0 += 1;
    }
}

/// Reads a waveform; the seconds that it took.
fn read<O: Observer>(path: &Path, isa: Isa, out: &mut O) -> Result<f64, String> {
    let begin = Instant::now();
    let mut input = Input::open(path).map_err(|e| e.to_string())?;
    let kind = Kind::Wave(None);
    let head = head(kind, &mut input).map_err(|e| e.to_string())?;
    let options = LogOptions {
        isa: Some(isa),
        wave: plan_of(kind, head, &Config::default()),
        ..LogOptions::default()
    };
    let mut reader = LogReader::new(kind, &options).map_err(|e| e.to_string())?;
    let mut damage = Damage::default();
    input
        .chunks(|chunk| {
            reader.feed(chunk, out, &mut |error| damage.add(error));
            Ok::<(), hartrace_capture::input::InputError>(())
        })
        .map_err(|e| e.to_string())?;
    reader.finish(out, &mut |error| damage.add(error));
    match damage.first.first() {
        Some(error) => Err(format!("{}: {error}", path.display())),
        None => Ok(begin.elapsed().as_secs_f64()),
    }
}

/// Writes a run of a program and reads it back: how many instructions and traps are the
/// same.
///
/// # Errors
///
/// A step that differs.
pub fn round(program: &Recorded, path: &Path, insns: u64, lanes: usize) -> Result<u64, String> {
    let mut port = Port::create(path, program.isa.xlen(), lanes)?;
    program.run(insns, &mut port, |port| port.failed.is_some())?;
    port.finish();
    if let Some(error) = port.failed {
        return Err(error);
    }
    let mut facts = Facts::default();
    read(path, program.isa, &mut facts)?;
    // What a hart does last shows only with what comes next.
    let (mut made, mut seen) = (port.facts, facts.0);
    made.pop();
    seen.truncate(made.len());
    let same = made.iter().zip(&seen).take_while(|(a, b)| a == b).count();
    match same == made.len() {
        true => Ok(same as u64),
        false => Err(format!(
            "{}: step {same} of {} differs, {lanes} lanes",
            path.display(),
            made.len()
        )),
    }
}

/// `waves [INSNS [LANES [DIR [PROGRAM]]]]`.
///
/// # Errors
///
/// A step that differs.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |at: usize, default: u64| match args.get(at) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
        None => Ok(default),
    };
    let (insns, lanes) = (number(0, 2_000_000)?, number(1, 1)? as usize);
    if !(1..=WORDS).contains(&lanes) {
        return Err("1 to 4 lanes".into());
    }
    let folder = args.get(2).map_or_else(std::env::temp_dir, PathBuf::from);
    let name = args.get(3).map_or("bench-sort-rv64gc", String::as_str);
    let program = Recorded::named(name)?;
    for format in [WaveFormat::Fst, WaveFormat::Vcd] {
        let path = folder.join(format!(
            "hartrace-waves-{}.{}",
            std::process::id(),
            format.word()
        ));
        let same = round(&program, &path, insns, lanes)?;
        let size = fs::metadata(&path).map_or(0, |m| m.len());
        let (mut steps, mut effects) = (Count::<false>::default(), Count::<true>::default());
        let plain = read(&path, program.isa, &mut steps)?;
        let full = read(&path, program.isa, &mut effects)?;
        let _ = fs::remove_file(&path);
        let speed = |seconds: f64| steps.0 as f64 / seconds / 1e6;
        println!(
            "{}: {same} steps the same, {} lanes, {:.1} MB; {:.2} M retirements/s, {:.2} M/s with effects",
            format.name(),
            lanes,
            size as f64 / 1e6,
            speed(plain),
            speed(full),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traps, interrupts, modes, floating point and atomics of both widths.
    #[test]
    fn what_is_read_back_is_what_the_hart_did() {
        let folder = std::env::temp_dir();
        for (name, lanes) in [
            ("exceptions-rv64gc", 1),
            ("modes-rv32gc", 2),
            ("timer-rv64gc", 4),
            ("float-rv64gc", 1),
            ("semihost-rv32gc", 3),
        ] {
            let program = Recorded::named(name).unwrap();
            for format in ["fst", "vcd"] {
                let path = folder.join(format!("hartrace-{}-{name}.{format}", std::process::id()));
                let same = round(&program, &path, 3000, lanes);
                let _ = fs::remove_file(&path);
                assert!(
                    same.as_ref().is_ok_and(|same| *same > 500),
                    "{name}: {same:?}"
                );
            }
        }
    }
}
