//! Ports in waveforms that are written here.

use super::*;
use crate::config::Config;
use crate::detect::{Kind, detect};
use crate::log::{Damage, LogOptions, LogReader, plan_of};
use hartrace_flow::{
    Cause, Effects, HartId, Image, Ingress, Observer, RegId, Signal, SpaceId, Step, Wants,
};
use hartrace_isa::{Isa, Itype, Xlen};
use hartrace_logs::LineErrorKind;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// A VCD file that is written cycle by cycle: a clock with a period of 10 ns in `tb`, and
/// signals that change after its edges.
#[derive(Default)]
struct Vcd {
    vars: Vec<(String, String, u32)>,
    body: String,
    cycles: u64,
}

impl Vcd {
    /// Variables by scope, name and width.
    fn new(vars: &[(&str, &str, u32)]) -> Vcd {
        let own = |var: &(&str, &str, u32)| (var.0.to_owned(), var.1.to_owned(), var.2);
        Vcd {
            vars: vars.iter().map(own).collect(),
            ..Vcd::default()
        }
    }

    /// The values of signals for the next edge, by name.
    fn cycle(&mut self, values: &[(&str, &str)]) {
        let at = self.cycles * 10;
        write!(self.body, "#{at} 0clk ").unwrap();
        for (name, value) in values {
            let matches = |var: &(String, String, u32)| var.1 == *name;
            let number = self.vars.iter().position(matches).unwrap();
            write!(self.body, "b{value} v{number} ").unwrap();
        }
        writeln!(self.body, "#{} 1clk", at + 5).unwrap();
        self.cycles += 1;
    }

    fn text(&self) -> Vec<u8> {
        let mut text = String::from("$timescale 1ns $end\n$scope module tb $end\n");
        text += "$var wire 1 clk clk $end $upscope $end\n";
        for (number, (scope, name, width)) in self.vars.iter().enumerate() {
            for part in scope.split('.') {
                write!(text, "$scope module {part} $end ").unwrap();
            }
            writeln!(text, "$var wire {width} v{number} {name} $end").unwrap();
            text += &"$upscope $end ".repeat(scope.split('.').count());
        }
        format!("{text}\n$enddefinitions $end\n{}", self.body).into_bytes()
    }
}

/// Binary digits.
fn bits(value: u64) -> String {
    format!("{value:b}")
}

/// The fields of RVFI that most tests have, in one scope.
fn rvfi(xlen: u32, lanes: u32) -> Vec<(&'static str, &'static str, u32)> {
    let fields: [(&'static str, u32); 12] = [
        ("rvfi_valid", 1),
        ("rvfi_order", 64),
        ("rvfi_insn", 32),
        ("rvfi_trap", 1),
        ("rvfi_intr", 1),
        ("rvfi_mode", 2),
        ("rvfi_pc_rdata", xlen),
        ("rvfi_pc_wdata", xlen),
        ("rvfi_rd_addr", 5),
        ("rvfi_rd_wdata", xlen),
        ("rvfi_mem_addr", xlen),
        ("rvfi_mem_wmask", xlen / 8),
    ];
    let mut fields = fields.to_vec();
    fields.extend([
        ("rvfi_mem_wdata", xlen),
        ("rvfi_mem_rmask", xlen / 8),
        ("rvfi_csr_mscratch_wmask", xlen),
        ("rvfi_csr_mscratch_wdata", xlen),
    ]);
    let one = |(name, width): (&'static str, u32)| ("tb.core", name, width * lanes);
    fields.into_iter().map(one).collect()
}

/// An instruction that retires: its number, address, bits, next address, register.
#[derive(Clone, Copy, Default)]
struct Retired {
    order: u64,
    pc: u64,
    bits: u32,
    next: u64,
    rd: u8,
    value: u64,
    trap: bool,
    intr: bool,
}

/// Values of a cycle in which these lanes retire something.
fn values(xlen: u32, lanes: &[Option<Retired>]) -> Vec<(&'static str, String)> {
    let field = |width: usize, value: &dyn Fn(&Retired) -> u64| {
        let lanes = lanes.iter().rev();
        let text = lanes.map(|lane| match lane {
            Some(lane) => format!("{:0width$b}", value(lane)),
            // Nothing may be looked at there.
            None => "x".repeat(width),
        });
        text.collect::<String>()
    };
    let x = xlen as usize;
    let valid = lanes.iter().rev();
    let valid: String = valid
        .map(|lane| if lane.is_some() { '1' } else { '0' })
        .collect();
    vec![
        ("rvfi_valid", valid),
        ("rvfi_order", field(64, &|r| r.order)),
        ("rvfi_insn", field(32, &|r| r.bits.into())),
        ("rvfi_trap", field(1, &|r| r.trap.into())),
        ("rvfi_intr", field(1, &|r| r.intr.into())),
        ("rvfi_mode", field(2, &|_| 3)),
        ("rvfi_pc_rdata", field(x, &|r| r.pc)),
        ("rvfi_pc_wdata", field(x, &|r| r.next)),
        ("rvfi_rd_addr", field(5, &|r| r.rd.into())),
        ("rvfi_rd_wdata", field(x, &|r| r.value)),
        ("rvfi_mem_addr", field(x, &|_| 0)),
        ("rvfi_mem_wmask", field(x / 8, &|_| 0)),
        ("rvfi_mem_wdata", field(x, &|_| 0)),
        ("rvfi_mem_rmask", field(x / 8, &|_| 0)),
        ("rvfi_csr_mscratch_wmask", field(x, &|_| 0)),
        ("rvfi_csr_mscratch_wdata", field(x, &|_| 0)),
    ]
}

fn put(vcd: &mut Vcd, values: &[(&'static str, String)]) {
    let values: Vec<(&str, &str)> = values.iter().map(|(n, v)| (*n, v.as_str())).collect();
    vcd.cycle(&values);
}

/// `addi a0, zero, n` at consecutive addresses.
fn counting(n: u64) -> Retired {
    Retired {
        order: n,
        pc: 0x1000 + 4 * n,
        bits: 0x0000_0513 | (n as u32) << 20,
        next: 0x1004 + 4 * n,
        rd: 10,
        value: n,
        ..Retired::default()
    }
}

/// What a reader gives.
#[derive(Default)]
struct Seen {
    steps: Vec<Step>,
    effects: Vec<Effects>,
}

impl Observer for Seen {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.steps.push(*step);
        self.effects.push(*effects);
    }
}

fn config(text: &str) -> Config {
    Config::parse(text, Path::new("a.toml")).unwrap()
}

fn plan(file: &[u8], settings: &str) -> Result<Arc<Plan>, MapError> {
    assert_eq!(detect(file), Kind::Wave(None));
    plan_of(Kind::Wave(None), file, &config(settings)).unwrap()
}

fn read(file: &[u8], settings: &str, image: Option<&Image>, chunk: usize) -> (Seen, Damage) {
    let options = LogOptions {
        image,
        wave: Some(plan(file, settings)),
        ..LogOptions::default()
    };
    let mut reader = LogReader::new(Kind::Wave(None), &options).unwrap();
    let (mut seen, mut damage) = (Seen::default(), Damage::default());
    for chunk in file.chunks(chunk) {
        reader.feed(chunk, &mut seen, &mut |error| damage.add(error));
    }
    reader.finish(&mut seen, &mut |error| damage.add(error));
    (seen, damage)
}

/// Addresses of instructions, and 0 for a loss.
fn pcs(seen: &Seen) -> Vec<u64> {
    let pc = |step: &Step| match step {
        Step::Insn(insn) => Some(insn.pc),
        Step::Signal(Signal::Lost) => Some(0),
        _ => None,
    };
    seen.steps.iter().filter_map(pc).collect()
}

#[test]
fn lanes_of_every_width_and_number() {
    for (xlen, lanes) in [(32, 1), (64, 1), (32, 2), (64, 2), (64, 4)] {
        let mut vcd = Vcd::new(&rvfi(xlen, lanes));
        let mut next = 0;
        for cycle in 0..20u64 {
            // Some lanes retire, in their order.
            let retires = |lane: u32| (cycle * 7 + u64::from(lane)) % 3 != 0;
            let row: Vec<Option<Retired>> = (0..lanes)
                .map(|lane| {
                    retires(lane).then(|| {
                        next += 1;
                        counting(next - 1)
                    })
                })
                .collect();
            put(&mut vcd, &values(xlen, &row));
        }
        for chunk in [13, 1 << 20] {
            let (seen, damage) = read(&vcd.text(), "", None, chunk);
            assert_eq!(damage, Damage::default(), "{xlen} {lanes}");
            let expected: Vec<u64> = (0..next).map(|n| 0x1000 + 4 * n).collect();
            assert_eq!(pcs(&seen), expected);
            for (n, effects) in seen.effects.iter().enumerate() {
                let write = effects.regs.first().unwrap();
                assert_eq!((write.reg, write.value), (RegId::X(10), n as u64));
            }
            let plan = plan(&vcd.text(), "").unwrap();
            let expected = if xlen == 32 { Xlen::Rv32 } else { Xlen::Rv64 };
            assert_eq!((plan.xlen, plan.lanes()), (expected, lanes as usize));
        }
    }
}

/// Lanes may retire in another order than that of their numbers.
#[test]
fn lanes_are_sorted_by_their_order() {
    let mut vcd = Vcd::new(&rvfi(64, 2));
    put(
        &mut vcd,
        &values(64, &[Some(counting(1)), Some(counting(0))]),
    );
    put(
        &mut vcd,
        &values(64, &[Some(counting(2)), Some(counting(3))]),
    );
    let (seen, damage) = read(&vcd.text(), "", None, 100);
    assert_eq!(pcs(&seen), [0x1000, 0x1004, 0x1008, 0x100c]);
    assert_eq!(damage.lines, 0);
}

#[test]
fn missing_and_repeated_retirements_are_named_by_their_time() {
    let mut vcd = Vcd::new(&rvfi(64, 1));
    for n in [0, 1, 3, 3, 4] {
        put(&mut vcd, &values(64, &[Some(counting(n))]));
    }
    let (seen, damage) = read(&vcd.text(), "", None, 100);
    assert_eq!(pcs(&seen), [0x1000, 0x1004, 0, 0x100c, 0, 0x100c, 0x1010]);
    let texts: Vec<String> = damage.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "at 25 ns: retirements are missing: order is 3, not 2 in `tb.core.rvfi_order`",
            "at 35 ns: retirements repeat: order is 3, not 4 in `tb.core.rvfi_order`",
        ]
    );
    // Without the signal, nothing is known about it.
    let (seen, damage) = read(&vcd.text(), "[wave.signals]\norder = \"none\"\n", None, 100);
    assert_eq!((pcs(&seen).len(), damage.lines), (5, 0));
}

/// A signal that is unknown matters where it is looked at.
#[test]
fn unknown_bits_are_reported_where_they_matter() {
    let good = values(64, &[Some(counting(0))]);
    let with = |name: &str, text: &str| {
        let mut vcd = Vcd::new(&rvfi(64, 1));
        put(&mut vcd, &good);
        let mut bad = values(64, &[Some(counting(1))]);
        bad.iter_mut().find(|v| v.0 == name).unwrap().1 = text.to_owned();
        put(&mut vcd, &bad);
        put(&mut vcd, &values(64, &[Some(counting(2))]));
        let (seen, damage) = read(&vcd.text(), "", None, 1000);
        let lost = pcs(&seen).contains(&0);
        let first = damage.first.first().map(ToString::to_string);
        (first.unwrap_or_default(), lost)
    };
    let x64 = "x".repeat(64);
    for (name, text) in [
        ("rvfi_valid", "x"),
        ("rvfi_insn", "z"),
        ("rvfi_pc_rdata", &*x64),
        ("rvfi_trap", "x"),
        ("rvfi_rd_addr", "0z010"),
        ("rvfi_mem_wmask", "x"),
    ] {
        let message =
            format!("at 15 ns: bits that are neither 0 nor 1 (x or z) in `tb.core.{name}`");
        assert_eq!(with(name, text), (message, true), "{name}");
    }
    // The instruction has retired, whatever it wrote.
    let message = "at 15 ns: bits that are neither 0 nor 1 (x or z) in `tb.core.rvfi_rd_wdata`";
    assert_eq!(with("rvfi_rd_wdata", "x"), (message.to_owned(), false));
    // Nothing is stored.
    assert_eq!(with("rvfi_mem_wdata", "x"), (String::new(), false));
    let (kind, found) = ("rvfi_mode", "10");
    let message = "at 15 ns: not a value of this signal: 0x2 in `tb.core.rvfi_mode`";
    assert_eq!(with(kind, found), (message.to_owned(), true));
}

/// Before reset ends, or before a signal is known for the first time, nothing counts.
#[test]
fn nothing_counts_before_a_hart_runs() {
    let mut vars = rvfi(32, 1);
    vars.push(("tb", "rst_n", 1));
    for reset in [true, false] {
        let mut vcd = Vcd::new(if reset {
            &vars
        } else {
            &vars[..vars.len() - 1]
        });
        for level in ["x", "0", "1"] {
            let mut unknown = vec![("rvfi_valid", "x")];
            if reset {
                unknown.push(("rst_n", level));
            }
            vcd.cycle(&unknown);
        }
        for n in 0..3 {
            put(&mut vcd, &values(32, &[Some(counting(n))]));
        }
        if reset {
            vcd.cycle(&[("rst_n", "0"), ("rvfi_valid", "x")]);
            vcd.cycle(&[("rst_n", "1"), ("rvfi_valid", "0")]);
            put(&mut vcd, &values(32, &[Some(counting(0))]));
        }
        let plan = plan(&vcd.text(), "").unwrap();
        let expected = reset.then(|| ("tb.rst_n".to_owned(), false));
        assert_eq!(plan.reset, expected);
        let (seen, damage) = read(&vcd.text(), "", None, 1000);
        assert_eq!(damage, Damage::default());
        // A second reset is a break, after which numbers start again.
        let again: &[u64] = if reset { &[0, 0x1000] } else { &[] };
        let expected = [&[0x1000, 0x1004, 0x1008], again].concat();
        assert_eq!(pcs(&seen), expected);
    }
}

#[test]
fn traps_interrupts_stores_and_csrs() {
    let mut vcd = Vcd::new(&rvfi(64, 1));
    put(&mut vcd, &values(64, &[Some(counting(0))]));
    // A load that faults, then its handler.
    let faulting = Retired {
        trap: true,
        bits: 0x0005_3503,
        ..counting(1)
    };
    put(&mut vcd, &values(64, &[Some(faulting)]));
    let handler = Retired {
        order: 2,
        pc: 0x2000,
        next: 0x2004,
        intr: true,
        ..counting(2)
    };
    put(&mut vcd, &values(64, &[Some(handler)]));
    // An interrupt after it, whose handler stores a byte and writes a CSR.
    let mut store = values(
        64,
        &[Some(Retired {
            order: 3,
            pc: 0x3000,
            bits: 0x00b5_0123,
            next: 0x3004,
            intr: true,
            ..Retired::default()
        })],
    );
    for (name, value) in &mut store {
        match *name {
            "rvfi_mem_addr" => *value = bits(0x8000),
            "rvfi_mem_wmask" => *value = bits(0b100),
            "rvfi_mem_wdata" => *value = format!("{}{}", bits(0xab), "x".repeat(16)),
            "rvfi_csr_mscratch_wmask" => *value = bits(0xff),
            "rvfi_csr_mscratch_wdata" => *value = bits(0x77),
            _ => {}
        }
    }
    put(&mut vcd, &store);
    let (seen, damage) = read(&vcd.text(), "", None, 1000);
    assert_eq!(damage, Damage::default());
    let traps: Vec<_> = seen
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Trap(trap) => Some((trap.trap.epc, trap.trap.handler, trap.trap.cause)),
            _ => None,
        })
        .collect();
    assert_eq!(
        traps,
        [
            (Some(0x1004), Some(0x2000), Cause::Exception(None)),
            (Some(0x2004), Some(0x3000), Cause::Interrupt(None)),
        ]
    );
    let last = seen.effects.last().unwrap();
    let access = last.accesses.first().unwrap();
    assert_eq!(
        (access.addr, access.size, access.data),
        (0x8002, 0, Some(0xab))
    );
    let csr = last.csrs.first().unwrap();
    assert_eq!((csr.csr, csr.value), (hartrace_isa::csr::MSCRATCH, 0x77));
}

/// An interrupt right after `mret`, of a core that shows the address after it as its next one:
/// the return led where the last trap was.
#[test]
fn an_interrupt_right_after_a_return() {
    let mut vcd = Vcd::new(&rvfi(64, 1));
    let jump = |order: u64, pc: u64, bits: u32, intr: bool| Retired {
        order,
        pc,
        bits,
        next: pc + 4,
        intr,
        ..counting(order)
    };
    for retired in [
        counting(0),
        jump(1, 0x2000, 0x13, true),
        jump(2, 0x2004, 0x3020_0073, false),
        jump(3, 0x2000, 0x13, true),
    ] {
        put(&mut vcd, &values(64, &[Some(retired)]));
    }
    let (seen, damage) = read(&vcd.text(), "", None, 1000);
    assert_eq!(damage, Damage::default());
    let traps = seen.steps.iter().filter_map(|step| match step {
        Step::Trap(trap) => Some((trap.trap.epc, trap.trap.handler)),
        _ => None,
    });
    let expected = (Some(0x1004), Some(0x2000));
    assert_eq!(traps.collect::<Vec<_>>(), [expected, expected]);
}

/// Lanes as signals of their own, in every form of name.
#[test]
fn lanes_by_name() {
    for form in [
        "rvfi_FIELD_N",
        "rvfi_FIELD[N]",
        "rvfi_N_FIELD",
        "tb.rvfi[N].FIELD",
    ] {
        let mut text =
            String::from("$timescale 1ps $end $scope module tb $end $var wire 1 c clk $end\n");
        let fields = [("valid", 1), ("insn", 32), ("pc_rdata", 32), ("order", 8)];
        for (number, (field, width)) in fields.iter().enumerate() {
            for lane in 0..2 {
                let name = form.replace("FIELD", field).replace('N', &lane.to_string());
                let (scope, name) = match name.strip_prefix("tb.") {
                    Some(rest) => {
                        let (scope, name) = rest.split_once('.').unwrap();
                        (Some(scope.to_owned()), name.to_owned())
                    }
                    None => (None, name),
                };
                if let Some(scope) = &scope {
                    write!(text, "$scope module {scope} $end ").unwrap();
                }
                writeln!(text, "$var reg {width} {number}{lane} {name} $end").unwrap();
                if scope.is_some() {
                    text += "$upscope $end ";
                }
            }
        }
        text += "$upscope $end $enddefinitions $end\n";
        for cycle in 0..4u64 {
            write!(text, "#{} 0c ", 10 * cycle).unwrap();
            for lane in 0..2u64 {
                let n = 2 * cycle + lane;
                write!(text, "10{lane} b{:b} 1{lane} ", 0x13).unwrap();
                write!(text, "b{:b} 2{lane} b{n:b} 3{lane} ", 0x1000 + 4 * n).unwrap();
            }
            writeln!(text, "#{} 1c", 10 * cycle + 5).unwrap();
        }
        let (seen, damage) = read(text.as_bytes(), "", None, 1000);
        assert_eq!(damage, Damage::default(), "{form}");
        let expected: Vec<u64> = (0..8).map(|n| 0x1000 + 4 * n).collect();
        assert_eq!(pcs(&seen), expected, "{form}");
    }
}

/// A vector may be there bit by bit.
#[test]
fn vectors_as_single_bits() {
    let mut text =
        String::from("$timescale 1ns $end $scope module tb $end $var wire 1 c clk $end\n");
    text += "$var wire 1 v rvfi_valid $end $var wire 32 i rvfi_insn [31:0] $end\n";
    for bit in 0..32 {
        writeln!(text, "$var wire 1 p{bit} rvfi_pc_rdata [{bit}] $end").unwrap();
    }
    text += "$upscope $end $enddefinitions $end #0 0c 1v b10011 i\n";
    for bit in 0..32 {
        write!(text, "{}p{bit} ", 0x8000_1234u32 >> bit & 1).unwrap();
    }
    text += "#5 1c";
    let (seen, damage) = read(text.as_bytes(), "", None, 1000);
    assert_eq!((pcs(&seen), damage.lines), (vec![0x8000_1234], 0));
}

#[test]
fn several_ports_are_listed_and_chosen() {
    let mut vars = rvfi(64, 1);
    let other: Vec<_> = vars.iter().map(|v| ("tb.other", v.1, v.2)).collect();
    vars.extend(other);
    let mut vcd = Vcd::new(&vars);
    put(&mut vcd, &values(64, &[Some(counting(0))]));
    let error = plan(&vcd.text(), "").unwrap_err();
    let names = ["tb.core.rvfi_*", "tb.other.rvfi_*"];
    let names = names.map(|name| (WavePort::Rvfi, name.to_owned()));
    assert_eq!(error, MapError::Several(names.to_vec()));
    let chosen = plan(&vcd.text(), "[wave]\nscope = \"tb.other\"\n").unwrap();
    assert_eq!(chosen.group, "tb.other.rvfi_*");
    let (seen, _) = read(&vcd.text(), "[wave]\nscope = \"tb.core\"\n", None, 99);
    assert_eq!(pcs(&seen), [0x1000]);
    assert_eq!(
        plan(&vcd.text(), "[wave]\nscope = \"tb.none\"\n").unwrap_err(),
        MapError::NoPort(None)
    );
}

/// A port that is led through several scopes is one port.
#[test]
fn a_port_in_several_scopes_counts_once() {
    let mut vars = rvfi(64, 1);
    let inner: Vec<_> = vars.iter().map(|v| ("tb.core.inner", v.1, v.2)).collect();
    vars.extend(inner);
    let vcd = Vcd::new(&vars);
    assert_eq!(plan(&vcd.text(), "").unwrap().group, "tb.core.rvfi_*");
    // The same nets under other names.
    let same = b"$timescale 1ns $end $scope module a $end $var wire 1 c clk $end \
        $var wire 1 v rvfi_valid $end $var wire 32 i rvfi_insn $end $var wire 32 p rvfi_pc_rdata $end \
        $scope module b $end $var wire 1 v rvfi_valid $end $var wire 32 i rvfi_insn $end \
        $var wire 32 p rvfi_pc_rdata $end $upscope $end $scope module c $end \
        $var wire 1 v rvfi_valid $end $var wire 32 i rvfi_insn $end \
        $var wire 32 p rvfi_pc_rdata $end $upscope $end $enddefinitions $end ";
    assert_eq!(plan(same, "").unwrap().group, "a.rvfi_*");
}

#[test]
fn clocks_are_found_where_they_are_clear() {
    let vars = |more: &[(&'static str, &'static str, u32)]| {
        let mut vars = rvfi(32, 1);
        vars.extend(more);
        Vcd::new(&vars).text()
    };
    assert_eq!(plan(&vars(&[]), "").unwrap().clock, "tb.clk");
    assert_eq!(
        plan(&vars(&[("tb.core", "clk_i", 1)]), "").unwrap().clock,
        "tb.core.clk_i"
    );
    let two = vars(&[("tb.core", "clk_a", 1), ("tb.core", "clk_b", 1)]);
    let names = ["tb.core.clk_a", "tb.core.clk_b"].map(str::to_owned);
    assert_eq!(plan(&two, "").unwrap_err(), MapError::Clock(names.to_vec()));
    let chosen = plan(&two, "[wave]\nclock = \"clk_b\"\n").unwrap();
    assert_eq!(chosen.clock, "tb.core.clk_b");
    let key = "[wave] clock".to_owned();
    assert_eq!(
        plan(&two, "[wave]\nclock = \"clk_c\"\n").unwrap_err(),
        MapError::NoSignal(key, "clk_c".to_owned())
    );
    let odd = vars(&[("tb.core", "frozen", 1)]);
    assert_eq!(
        plan(&odd, "[wave]\nreset = \"frozen\"\n").unwrap_err(),
        MapError::ResetLevel("tb.core.frozen".to_owned())
    );
    assert!(
        plan(
            &odd,
            "[wave]\nreset = \"frozen\"\nreset_active = \"high\"\n"
        )
        .is_ok()
    );
    let wide = vars(&[("tb.core", "rvfi_halt", 3)]);
    assert!(plan(&wide, "").is_ok());
}

#[test]
fn every_signal_by_name() {
    let file = b"$timescale 1ns $end $scope module t $end $var wire 1 k tick $end \
        $var wire 1 a done $end $var wire 32 b op $end $var wire 32 c at $end $upscope $end \
        $enddefinitions $end #0 0k 1a b10011 b b1000000000000 c #5 1k";
    let settings = "[wave]\nport = \"rvfi\"\nclock = \"t.tick\"\n[wave.signals]\nvalid = \"done\"\n\
        insn = \"t.op\"\npc_rdata = \"t.at\"\n";
    let (seen, damage) = read(file, settings, None, 10);
    assert_eq!((pcs(&seen), damage.lines), (vec![0x1000], 0));
    assert_eq!(plan(file, "").unwrap_err(), MapError::NoPort(None));
    let missing = settings.replace("insn = \"t.op\"\n", "");
    assert_eq!(
        plan(file, &missing).unwrap_err(),
        MapError::Missing("[wave.signals]".to_owned(), "insn")
    );
}

/// Signals of the ingress port, with these blocks in a cycle.
fn ingress(blocks: u32) -> Vcd {
    let names = [
        ("itype", 4 * blocks),
        ("iaddr", 64 * blocks),
        ("iretire", 6 * blocks),
        ("ilastsize", blocks),
        ("cause", 5),
        ("tval", 64),
        ("priv", 2),
        ("time", 32),
    ];
    let vars: Vec<_> = names
        .iter()
        .map(|(name, width)| ("tb.te", *name, *width))
        .collect();
    Vcd::new(&vars)
}

/// A block: type, address, halfwords, size of the last.
type Shape = (u8, u64, u32, u8);

fn row(vcd: &mut Vcd, blocks: &[Shape], time: u64) {
    let join = |text: &dyn Fn(&Shape) -> String| blocks.iter().rev().map(text).collect::<String>();
    let values = [
        ("itype", join(&|b| format!("{:04b}", b.0))),
        ("iaddr", join(&|b| format!("{:064b}", b.1))),
        ("iretire", join(&|b| format!("{:06b}", b.2))),
        ("ilastsize", join(&|b| format!("{:b}", b.3))),
        ("cause", bits(11)),
        ("tval", bits(0)),
        ("priv", bits(3)),
        ("time", bits(time)),
    ];
    put(vcd, &values);
}

/// The blocks that a port shows.
fn blocks(file: &[u8], settings: &str) -> (Vec<Ingress>, Damage) {
    let plan = plan(file, settings).unwrap();
    let mut reader = WaveReader::new(&plan);
    let (mut blocks, mut damage) = (Vec::new(), Damage::default());
    let mut show = |shown: Shown<'_>| match shown {
        Shown::Blocks(cycle) => blocks.extend_from_slice(cycle),
        Shown::Damaged(error) => damage.add(error),
        Shown::Lost => {}
        Shown::Entry(_) => panic!("an entry of an ingress port"),
    };
    reader.feed(file, &mut show);
    reader.finish(&mut show);
    (blocks, damage)
}

#[test]
fn blocks_of_the_ingress_port() {
    for count in [1, 2] {
        let mut vcd = ingress(count);
        let idle = (0, 0, 0, 0);
        let pad = |block| match count {
            1 => vec![block],
            _ => vec![block, idle],
        };
        row(&mut vcd, &pad((5, 0x1000, 6, 1)), 100);
        row(&mut vcd, &pad(idle), 101);
        row(&mut vcd, &pad((1, 0x2000, 3, 0)), 102);
        if count == 2 {
            row(&mut vcd, &[(0, 0x3000, 2, 1), (4, 0x3004, 1, 0)], 103);
        }
        let file = vcd.text();
        let plan = plan(&file, "").unwrap();
        assert_eq!(
            (plan.port, plan.lanes()),
            (WavePort::Ingress, count as usize)
        );
        let (seen, damage) = blocks(&file, "");
        assert_eq!(damage, Damage::default());
        let short = |b: &Ingress| (b.itype, b.iaddr, b.iretire, b.ilastsize, b.cause, b.time);
        let short: Vec<_> = seen.iter().map(short).collect();
        let mut expected = vec![
            (Itype::Taken, 0x1000, 6, 1, 0, 100),
            (Itype::Exception, 0x2000, 3, 0, 11, 102),
        ];
        if count == 2 {
            expected.push((Itype::None, 0x3000, 2, 1, 0, 103));
            expected.push((Itype::NotTaken, 0x3004, 1, 0, 0, 103));
        }
        assert_eq!(short, expected);
    }
}

/// A port that counts instructions shows 1 for each, whatever its length.
#[test]
fn instructions_or_halfwords() {
    let mut vcd = ingress(1);
    row(&mut vcd, &[(0, 0x1000, 1, 1)], 1);
    row(&mut vcd, &[(0, 0x1004, 1, 0)], 2);
    let (seen, _) = blocks(&vcd.text(), "");
    let halfwords: Vec<u32> = seen.iter().map(|block| block.iretire).collect();
    assert_eq!(halfwords, [2, 1]);
}

/// CVA6 counts the instruction that traps, and has a bit for each block.
#[test]
fn the_trace_port_of_cva6() {
    let names = [
        ("valid", 2),
        ("itype", 6),
        ("iaddr", 128),
        ("iretire", 64),
        ("ilastsize", 2),
        ("cause", 5),
        ("tval", 64),
        ("priv", 2),
        ("cycles", 64),
    ];
    let vars: Vec<_> = names
        .iter()
        .map(|(n, w)| ("tb.iti_to_encoder_o", *n, *w))
        .collect();
    let mut vcd = Vcd::new(&vars);
    let cycle = |valid: &str, itype: u64, size: &str, cycles: u64| {
        vec![
            ("valid", valid.to_owned()),
            ("itype", bits(itype)),
            (
                "iaddr",
                format!("{:064b}{:064b}", 0x8000_0004u64, 0x8000_0000u64),
            ),
            ("iretire", format!("{:032b}{:032b}", 1, 1)),
            ("ilastsize", size.to_owned()),
            ("cause", bits(2)),
            ("tval", bits(0x99)),
            ("priv", bits(1)),
            ("cycles", bits(cycles)),
        ]
    };
    put(&mut vcd, &cycle("11", 0, "01", 7));
    put(&mut vcd, &cycle("00", 0, "xx", 8));
    put(&mut vcd, &cycle("01", 1, "01", 9));
    let file = vcd.text();
    assert_eq!(plan(&file, "").unwrap().port, WavePort::Cva6);
    let (seen, damage) = blocks(&file, "");
    assert_eq!(damage, Damage::default());
    let short = |b: &Ingress| (b.itype, b.iaddr, b.iretire, b.cause, b.tval, b.time);
    let short: Vec<_> = seen.iter().map(short).collect();
    let expected = [
        (Itype::None, 0x8000_0000, 2, 0, 0, 7),
        (Itype::None, 0x8000_0004, 1, 0, 0, 7),
        (Itype::Exception, 0x8000_0000, 0, 2, 0x99, 9),
    ];
    assert_eq!(short, expected);
    let chosen = plan(&file, "[wave]\nport = \"ingress\"\n").unwrap();
    assert_eq!(chosen.port, WavePort::Ingress);
}

/// With the program, blocks are steps like those of a table.
#[test]
fn blocks_become_steps() {
    // addi; addi; c.j -8
    let code = [0x13u8, 0, 0, 0, 0x13, 0, 0, 0, 0xe5, 0xbf];
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &code, Isa::RV64GC);
    let mut vcd = ingress(1);
    row(&mut vcd, &[(15, 0x1000, 5, 0)], 1);
    row(&mut vcd, &[(15, 0x1000, 5, 0)], 2);
    row(&mut vcd, &[(15, 0x9000, 5, 0)], 3);
    let (seen, damage) = read(&vcd.text(), "", Some(&image), 1000);
    assert_eq!(pcs(&seen).iter().filter(|pc| **pc == 0x1000).count(), 2);
    assert!(damage.lines > 0);
    assert_eq!(damage.first[0].time.unwrap().ticks, 3);
    assert_eq!(damage.first[0].kind, LineErrorKind::Discontinuity(0x9000));
}

#[test]
fn a_damaged_file_ends_with_an_error() {
    let mut vcd = Vcd::new(&rvfi(64, 1));
    for n in 0..3 {
        put(&mut vcd, &values(64, &[Some(counting(n))]));
    }
    let mut file = vcd.text();
    file.extend(b"#3 1clk\n#40 0clk #45 1clk");
    let (seen, damage) = read(&file, "", None, 1000);
    // What changed last may not be complete.
    assert_eq!(pcs(&seen), [0x1000, 0x1004, 0]);
    let text = damage.first[0].to_string();
    assert_eq!(
        text,
        "at 15 ns: the waveform cannot be read any further: a time before the last one"
    );
    let cut = &vcd.text()[..100];
    assert_eq!(
        plan(cut, "").unwrap_err(),
        MapError::Wave(hartrace_wave::WaveError::Truncated)
    );
}
