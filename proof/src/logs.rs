//! How fast logs are read: `logs [MILLIONS]` on made-up logs, `logs FILE` on a
//! log of Spike, `logs --steps FILE [ELF]` to print the steps of any log.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

use hartrace_flow::{Effects, HartId, Image, Ingress, Observer, SpaceId, Step, Wants};
use hartrace_isa::{Flow, Isa, ItypeTable, Link, Xlen};
use hartrace_logs::{
    BlockSteps, IngressColumns, IngressReader, IngressRow, IngressWriter, Iretire, LineError,
    PcReader, PcWriter, SpikeCsvReader, SpikeOptions, SpikeReader,
};
use hartrace_testkit::{Random, asm};

/// The command.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => synthetic(20),
        [count] if count.parse::<u64>().is_ok() => synthetic(count.parse().unwrap_or(20)),
        [flag, path] if flag == "--steps" => print_steps(path, None),
        [flag, path, elf] if flag == "--steps" => print_steps(path, Some(elf)),
        [path] => time_file(path),
        _ => Err("usage: logs [MILLIONS | FILE | --steps FILE [ELF]]".into()),
    }
}

/// Size of the chunks readers are fed with.
const CHUNK: usize = 1 << 20;

/// Counts steps, with or without effects.
#[derive(Default)]
struct Count<const EFFECTS: bool> {
    steps: u64,
    effects: u64,
}

impl<const EFFECTS: bool> Observer for Count<EFFECTS> {
    const WANTS: Wants = if EFFECTS { Wants::ALL } else { Wants::STEPS };

    fn step(&mut self, _: HartId, _: &Step, fx: &Effects) {
        self.steps += 1;
        if EFFECTS {
            self.effects += (fx.regs.len() + fx.csrs.len() + fx.accesses.len()) as u64;
        }
    }
}

/// One reader of each kind behind one face.
trait Source {
    fn feed<O: Observer>(&mut self, chunk: &[u8], out: &mut O, bad: &mut impl FnMut(LineError));
    fn finish<O: Observer>(&mut self, out: &mut O, bad: &mut impl FnMut(LineError));
}

macro_rules! source {
    ($($reader:ident $(<$life:lifetime>)?)+) => {$(
        impl Source for $reader $(<$life>)? {
            fn feed<O: Observer>(&mut self, chunk: &[u8], out: &mut O, bad: &mut impl FnMut(LineError)) {
                $reader::feed(self, chunk, out, bad);
            }
            fn finish<O: Observer>(&mut self, out: &mut O, bad: &mut impl FnMut(LineError)) {
                $reader::finish(self, out, bad);
            }
        }
    )+};
}
source!(PcReader<'_> SpikeReader<'_> SpikeCsvReader);

/// Rows of the ingress port, to steps.
struct Rows<'a>(IngressReader, BlockSteps<'a>);

impl Source for Rows<'_> {
    fn feed<O: Observer>(&mut self, chunk: &[u8], out: &mut O, bad: &mut impl FnMut(LineError)) {
        self.0.feed_steps(chunk, &mut self.1, out, bad);
    }
    fn finish<O: Observer>(&mut self, out: &mut O, bad: &mut impl FnMut(LineError)) {
        self.0.finish_steps(&mut self.1, out, bad);
    }
}

/// Reads `text` `times` times over and prints how fast that was: on the whole,
/// and in the fastest lap (the machine may have other work) against counting
/// the lines alone.
fn measure<const EFFECTS: bool>(
    name: &str,
    text: &[u8],
    times: u64,
    source: &mut impl Source,
) -> Result<(), String> {
    let mut lines = 0;
    let mut plain = f64::INFINITY;
    for _ in 0..times {
        let start = Instant::now();
        lines = 0;
        for chunk in text.chunks(CHUNK) {
            lines += memchr::memchr_iter(b'\n', chunk).count();
        }
        plain = plain.min(start.elapsed().as_secs_f64());
    }
    let mut count = Count::<EFFECTS>::default();
    let mut bad = 0u64;
    let mut first = None;
    let mut damaged = |error: LineError| {
        bad += 1;
        first.get_or_insert(error);
    };
    let (mut all, mut best) = (0.0, f64::INFINITY);
    for _ in 0..times {
        let start = Instant::now();
        for chunk in text.chunks(CHUNK) {
            source.feed(chunk, &mut count, &mut damaged);
        }
        let lap = start.elapsed().as_secs_f64();
        (all, best) = (all + lap, lap.min(best));
    }
    source.finish(&mut count, &mut damaged);
    let lines = lines as f64;
    println!(
        "{name:<26} {:6.1} M lines/s (best lap {:6.1})  {:6.1} M steps/s  {:5.0} MB/s  {:5.1} x memchr  {} steps",
        lines * times as f64 / all / 1e6,
        lines / best / 1e6,
        count.steps as f64 / all / 1e6,
        text.len() as f64 * times as f64 / all / 1e6,
        best / plain,
        count.steps,
    );
    match first {
        None => Ok(()),
        Some(error) => Err(format!("{name}: {bad} damaged lines, the first: {error}")),
    }
}

fn synthetic(millions: u64) -> Result<(), String> {
    let program = Program::new();
    // What is read over and over; memory does not grow with the count.
    let lap = 250_000;
    let times = millions.max(1) * 4;
    let image = &program.image;

    let mut pcs = Vec::new();
    let mut writer = PcWriter::new(Xlen::Rv64, |bytes: &[u8]| {
        if pcs.len() < lap * 17 {
            pcs.extend_from_slice(bytes);
        }
    });
    let steps: Vec<(u64, u32)> = program.walk(lap).collect();
    let effects = Effects::default();
    let start = Instant::now();
    for _ in 0..times {
        for &(pc, bits) in &steps {
            let insn = hartrace_flow::Insn {
                pc,
                bits,
                ..hartrace_flow::Insn::default()
            };
            writer.step(HartId(0), &Step::Insn(insn), &effects);
        }
    }
    writer.finish();
    drop(writer);
    let written = start.elapsed().as_secs_f64();
    println!(
        "{:<28} {:7.1} M lines/s",
        "pc list, written",
        times as f64 * lap as f64 / written / 1e6
    );
    pcs.truncate(lap * 17);
    measure::<false>("pc list", &pcs, times, &mut PcReader::new(image))?;
    let short: String = steps.iter().map(|s| format!("{:x}\n", s.0)).collect();
    measure::<false>(
        "pc list, 8 digits",
        short.as_bytes(),
        times,
        &mut PcReader::new(image),
    )?;
    measure::<false>(
        "pc list, code not cached",
        &cold_list(),
        1,
        &mut PcReader::new(&cold()),
    )?;

    let spike = |listing| spike_log(&steps, listing);
    let reader = || SpikeReader::new(SpikeOptions::default(), None);
    let text = spike(false);
    measure::<true>("spike commits, effects", &text, times, &mut reader())?;
    measure::<false>("spike commits, steps", &text, times, &mut reader())?;
    let text = spike(true);
    measure::<true>("spike -l commits, effects", &text, times, &mut reader())?;
    measure::<false>("spike -l commits, steps", &text, times, &mut reader())?;
    tables(image, &steps, times)?;
    print_memory();
    Ok(())
}

/// The tables of the E-Trace reference flow.
fn tables(image: &Image, steps: &[(u64, u32)], times: u64) -> Result<(), String> {
    // A table has one header: what follows the first lap is rows only.
    let (header, rows) = ingress_table(steps).map_err(|e| e.to_string())?;
    let blocks = BlockSteps::new(image, SpaceId::FIRST, HartId(0));
    let mut reader = Rows(IngressReader::new(Iretire::Instructions), blocks);
    let mut ignored = Count::<false>::default();
    reader.feed(header.as_bytes(), &mut ignored, &mut |_| {});
    measure::<false>("ingress CSV to steps", rows.as_bytes(), times, &mut reader)?;

    let mut rows = String::new();
    for (pc, bits) in steps {
        rows += &format!("1,{pc:016x},{bits:08x},3,0,0,0,0\n");
    }
    let mut reader = SpikeCsvReader::new(Isa::RV64GC, HartId(0));
    let header = b"VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n";
    Source::feed(&mut reader, header, &mut ignored, &mut |_| {});
    measure::<false>("spike_pc_trace CSV", rows.as_bytes(), times, &mut reader)
}

/// The steps as rows of a single-retirement port; the last one traps, so that
/// the rows can be repeated.
fn ingress_table(steps: &[(u64, u32)]) -> Result<(String, String), Box<dyn std::error::Error>> {
    let (mut header, mut rows) = (String::new(), String::new());
    let writer = IngressWriter::new(IngressColumns::default(), Iretire::Instructions);
    writer.write_header(&mut header)?;
    let nexts = steps.iter().skip(1).map(|s| s.0).chain([0]);
    for (&(pc, bits), next) in steps.iter().zip(nexts) {
        let insn = hartrace_flow::Insn {
            pc,
            bits,
            ..hartrace_flow::Insn::default()
        };
        let taken = next != insn.end();
        let row = Ingress {
            itype: Flow::of(bits, Isa::RV64GC).itype4(bits, taken, ItypeTable::ETrace20),
            iaddr: pc,
            iretire: u32::from(insn.len()) / 2,
            ilastsize: insn.len() / 4,
            ..Ingress::default()
        };
        writer.write_row(&mut rows, &[row])?;
    }
    let trap = Ingress {
        itype: hartrace_isa::Itype::Interrupt,
        cause: 7,
        ..Ingress::default()
    };
    writer.write_row(&mut rows, &[trap])?;
    Ok((header, rows))
}

/// Straight code much larger than any cache of the readers.
fn cold() -> Image {
    let mut image = Image::new();
    image.add_raw(
        SpaceId::FIRST,
        0x1000_0000,
        &[1, 0].repeat(1 << 20),
        Isa::RV64GC,
    );
    image
}

fn cold_list() -> Vec<u8> {
    (0..1u64 << 20)
        .flat_map(|n| format!("{:016x}\n", 0x1000_0000 + n * 2).into_bytes())
        .collect()
}

/// The peak resident size, if the system reports it.
fn print_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|l| l.starts_with("VmHWM")) {
        println!("{line}");
    }
}

fn time_file(path: &str) -> Result<(), String> {
    let text = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let reader = || SpikeReader::new(SpikeOptions::default(), None);
    measure::<true>("effects", &text, 5, &mut reader())?;
    measure::<false>("steps", &text, 5, &mut reader())
}

/// Prints steps, one per line, for comparison with another reading.
struct Print<W>(W);

impl<W: Write> Observer for Print<W> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, fx: &Effects) {
        let out = &mut self.0;
        let _ = match step {
            Step::Insn(i) => write!(
                out,
                "{} insn {:x} {:x} {:x} {}",
                hart.0,
                i.pc,
                i.bits,
                i.next,
                i.mode.code()
            ),
            Step::Trap(t) => write!(
                out,
                "{} trap {:x} {:x} {:?} {:x?} {:x?} {}",
                hart.0,
                t.trap.epc.unwrap_or(0),
                t.trap.handler.unwrap_or(0),
                t.trap.cause,
                t.trap.tval,
                t.bits,
                t.mode.code()
            ),
            Step::Signal(s) => write!(out, "{} {s:?}", hart.0),
        };
        for reg in &*fx.regs {
            let _ = write!(out, " {:?}={:x}", reg.reg, reg.value);
        }
        for csr in &*fx.csrs {
            let _ = write!(out, " c{}={:x}", csr.csr, csr.value);
        }
        for a in &*fx.accesses {
            let (kind, size, addr) = (a.kind, a.size, a.addr);
            let _ = write!(out, " {kind:?}.{size}@{addr:x}");
            if let Some(data) = a.data {
                let _ = write!(out, "={data:x}");
            }
            if let Some(operand) = a.operand {
                let _ = write!(out, "/{operand:x}");
            }
        }
        let _ = writeln!(out);
    }
}

/// Prints the steps of a file; its name tells what it is, and some need the
/// program.
fn print_steps(path: &str, elf: Option<&String>) -> Result<(), String> {
    let mut image = Image::new();
    if let Some(elf) = elf {
        let bytes = std::fs::read(elf).map_err(|e| format!("{elf}: {e}"))?;
        image = Image::from_elf(&bytes).map_err(|e| format!("{elf}: {e}"))?;
    }
    let isa = image.isa().unwrap_or(Isa::RV64GC);
    let hart = HartId(0);
    if path.ends_with(".encoder_input") {
        let blocks = BlockSteps::new(&image, SpaceId::FIRST, hart);
        print_from(
            path,
            Rows(IngressReader::new(Iretire::Instructions), blocks),
        )?;
        written_back(path)
    } else if path.ends_with(".spike_pc_trace") {
        print_from(path, SpikeCsvReader::new(isa, hart))
    } else if path.ends_with(".pcs") {
        print_from(path, PcReader::new(&image))
    } else {
        print_from(path, SpikeReader::new(SpikeOptions::default(), None))
    }
}

fn print_from(path: &str, mut reader: impl Source) -> Result<(), String> {
    let mut file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let mut out = Print(std::io::BufWriter::new(std::io::stdout().lock()));
    let mut damaged = |error: LineError| eprintln!("{path}: {error}");
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => reader.feed(chunk.get(..n).unwrap_or_default(), &mut out, &mut damaged),
            Err(e) => return Err(format!("{path}: {e}")),
        }
    }
    reader.finish(&mut out, &mut damaged);
    Ok(())
}

/// A table that was read and written again is the same table.
fn written_back(path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let mut reader = IngressReader::new(Iretire::Instructions);
    let mut rows: Vec<Vec<Ingress>> = Vec::new();
    let mut out = |_, row: IngressRow<'_>| {
        if let IngressRow::Blocks(blocks) = row {
            rows.push(blocks.to_vec());
        }
    };
    reader.feed(text.as_bytes(), &mut out, &mut |_| {});
    let columns = reader.columns().ok_or("the header was refused")?;
    reader.finish(&mut out, &mut |_| {});
    let writer = IngressWriter::new(columns, Iretire::Instructions);
    let mut again = String::new();
    writer.write_header(&mut again).map_err(|e| e.to_string())?;
    for row in &rows {
        writer
            .write_row(&mut again, row)
            .map_err(|e| e.to_string())?;
    }
    if again == text {
        Ok(())
    } else {
        Err(format!("{path}: not written as it was read"))
    }
}

/// A made-up program: functions with loops, branches and calls.
struct Program {
    image: Image,
    entry: u64,
}

const BASE: u64 = 0x8000_0000;

impl Program {
    /// 64 functions; each calls only later ones, so every call returns. The
    /// last piece of code calls the first function for ever.
    fn new() -> Program {
        let mut code: Vec<u8> = Vec::new();
        let mut rng = Random::new(7);
        let mut starts: Vec<u64> = Vec::new();
        for level in 0..64 {
            starts.push(BASE + code.len() as u64);
            let mut calls = 0;
            for _ in 0..12 {
                for _ in 0..rng.below(5) {
                    match rng.below(6) {
                        0 => code.extend(0x0001u16.to_le_bytes()),
                        1 => code.extend(0x0005_3583u32.to_le_bytes()),
                        2 => code.extend(0x00b5_3023u32.to_le_bytes()),
                        _ => code.extend(0x0015_0513u32.to_le_bytes()),
                    }
                }
                // beq a0, a1 over the next instruction, or a call downwards.
                if level > 0 && calls < 2 && rng.below(4) == 0 {
                    let callee = starts.get(rng.below(level) as usize).copied();
                    let here = BASE + code.len() as u64;
                    code.extend(jal(1, callee.unwrap_or(BASE), here).to_le_bytes());
                    calls += 1;
                } else {
                    code.extend(0x00b5_0463u32.to_le_bytes());
                    code.extend(0x0015_0513u32.to_le_bytes());
                }
            }
            code.extend(0x8082u16.to_le_bytes());
        }
        let entry = BASE + code.len() as u64;
        for &start in starts.iter().rev().take(8) {
            let here = BASE + code.len() as u64;
            code.extend(jal(1, start, here).to_le_bytes());
        }
        let here = BASE + code.len() as u64;
        code.extend(jal(0, entry, here).to_le_bytes());
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, BASE, &code, Isa::RV64GC);
        Program { image, entry }
    }

    /// The first `count` instructions that execute, and their bits.
    fn walk(&self, count: usize) -> impl Iterator<Item = (u64, u32)> {
        let mut pc = self.entry;
        let mut stack = Vec::new();
        let mut rng = Random::new(11);
        (0..count).map_while(move |_| {
            let at = pc;
            let code = self.image.fetch(SpaceId::FIRST, at)?;
            let end = at + u64::from(code.len);
            let flow = Flow::of(code.bits, code.isa);
            pc = match flow {
                Flow::Branch { .. } if rng.below(2) == 0 => end,
                Flow::Branch { .. } | Flow::Jump { .. } => flow.target(at, Xlen::Rv64)?,
                Flow::Indirect { .. } => stack.pop()?,
                _ => end,
            };
            if flow.link() == Some(Link::Call) {
                stack.push(end);
            }
            Some((at, code.bits))
        })
    }
}

/// `jal rd, to` at `at`.
fn jal(rd: u32, to: u64, at: u64) -> u32 {
    asm::jal(rd, to.wrapping_sub(at) as i64)
}

/// What Spike would write for these instructions.
fn spike_log(steps: &[(u64, u32)], listing: bool) -> Vec<u8> {
    let mut text = String::new();
    for (n, &(pc, bits)) in steps.iter().enumerate() {
        let value = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ n as u64;
        if listing {
            text += &format!("core   0: {pc:#018x} ({bits:#010x}) addi    a0, a0, 1\n");
        }
        let digits = if bits & 3 == 3 { 10 } else { 6 };
        text += &format!("core   0: 3 {pc:#018x} ({bits:#0digits$x})");
        text += &match bits & 0x7f {
            0x13 => format!(" x10 {value:#018x}"),
            0x6f if bits >> 7 & 31 == 1 => format!(" x1  {:#018x}", pc + 4),
            0x03 => format!(" x11 {value:#018x} mem {:#018x}", value & !7),
            0x23 => format!(" mem {:#018x} {value:#018x}", value & !7),
            _ => String::new(),
        };
        text.push('\n');
    }
    text.into_bytes()
}
