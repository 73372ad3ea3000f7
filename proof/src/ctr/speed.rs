//! The cost of recording: the same program with recording off, and with common
//! settings.

use std::time::Instant;

use hartrace_ctr::{Control, Version};
use hartrace_flow::{Effects, HartId, Model as _, Observer, Place, Step, Wants};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program};

/// Instructions of a run.
const INSNS: u64 = 50_000_000;

/// Rounds by default.
const ROUNDS: u32 = 7;

/// The programs of the table.
const PROGRAMS: [(&str, &[u8]); 4] = [
    (
        "bench-crc",
        include_bytes!("../../../programs/bench/bench-crc-rv64gc.elf"),
    ),
    (
        "bench-sort",
        include_bytes!("../../../programs/bench/bench-sort-rv64gc.elf"),
    ),
    (
        "bench-interp",
        include_bytes!("../../../programs/bench/bench-interp-rv64gc.elf"),
    ),
    (
        "bench-float",
        include_bytes!("../../../programs/bench/bench-float-rv64gc.elf"),
    ),
];

/// Ways to record: a name, the control register, the depth.
fn ways() -> [(&'static str, Control, u16); 6] {
    let all = Control::MODES;
    let calls = all
        .with(Control::TKBRINH)
        .with(Control::INDJMPINH)
        .with(Control::DIRJMPINH);
    [
        ("off", Control::NONE, 32),
        ("all 32", all, 32),
        ("all 256", all, 256),
        ("branches", all.with(Control::NTBREN), 32),
        ("calls", calls, 32),
        ("stack", all.with(Control::RASEMU), 32),
    ]
}

struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, _: &Step, _: &Effects) {}
}

/// A machine at the start of a program, with its records set.
fn load(elf: &[u8], control: Control, depth: u16) -> Result<Machine, String> {
    let program = Program::from_elf(elf).map_err(|e| e.to_string())?;
    let mut config = Config::new(Platform::Virt, program.xlen);
    config.isa += "_smctr_ssctr";
    let mut machine = Machine::new(config, Host::silent()).map_err(|e| e.to_string())?;
    machine.load(program, None).map_err(|e| e.to_string())?;
    let code = u64::from(depth.trailing_zeros() - 4);
    let bits = control.to_bits(Version::V1_0);
    for (csr, value) in [(0x15f, code), (0x34e, bits)] {
        machine
            .write(Place::Csr(csr), value)
            .map_err(|absent| format!("{absent:?}"))?;
    }
    Ok(machine)
}

/// Seconds of a run, and what it has recorded.
fn time(elf: &[u8], control: Control, depth: u16, insns: u64) -> Result<(f64, usize), String> {
    let mut machine = load(elf, control, depth)?;
    let start = Instant::now();
    let _ = machine.run(insns, &mut NoObserver);
    let seconds = start.elapsed().as_secs_f64();
    let snapshot = machine.ctr().map(|ctr| ctr.snapshot(HartId(0)));
    let records = snapshot.map_or(0, |snapshot| snapshot.records().count());
    Ok((seconds, records))
}

/// `ctr-speed [ROUNDS]`: best times in turns, against the records off.
///
/// # Errors
///
/// Programs that cannot be run.
pub fn command(args: &[String]) -> Result<(), String> {
    let rounds = match args.first() {
        None => ROUNDS,
        Some(text) => text.parse().map_err(|_| format!("not a number: {text}"))?,
    };
    print!("{:<14}", "");
    for (name, ..) in ways() {
        print!(" {name:>10}");
    }
    println!();
    for (name, elf) in PROGRAMS {
        let mut best = [f64::INFINITY; 6];
        for _ in 0..rounds.max(1) {
            for (seconds, (_, control, depth)) in best.iter_mut().zip(ways()) {
                *seconds = seconds.min(time(elf, control, depth, INSNS)?.0);
            }
        }
        let [off, ..] = best;
        print!("{name:<14} {:>6.0} M/s", INSNS as f64 / off / 1e6);
        for seconds in best.iter().skip(1) {
            print!(" {:>8.1} %", (seconds / off - 1.0) * 100.0);
        }
        println!();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is measured does record.
    #[test]
    fn every_way_but_off_records() {
        let (_, elf) = PROGRAMS[1];
        for (name, control, depth) in ways() {
            let (_, records) = time(elf, control, depth, 100_000).unwrap();
            assert_eq!(records > 0, name != "off", "{name}");
        }
    }
}
