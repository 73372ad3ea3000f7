//! Hostile input: arbitrary bytes for every reader.
//!
//! A [`Property`] takes bytes and reports what was violated, or nothing. The
//! fuzz targets of `proof/fuzz` run the same properties under a coverage-guided
//! fuzzer. The command here needs only a stock toolchain: it starts from the
//! seeds of each property and mutates them at random, with limits on the time
//! of a case and on memory.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::etrace::ETrace;
use crate::generate::Random;
use crate::ntrace::NTrace;

mod code;
mod ctr;
mod elf;
mod etrace;
mod ffi;
mod hart;
mod input;
mod isa;
mod large;
mod logs;
mod mutate;
mod ntrace;
mod port;
mod tandem;
mod text;
mod trace;
mod transport;
mod verify;
mod walk;
mod waves;

pub use input::Input;

/// What a case may not take longer than. Unoptimized code gets more.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5000 } else { 1000 });

/// What the whole process may not take more of, in KiB.
const MEMORY: u64 = 1 << 20;

/// Something that must hold for all bytes.
#[derive(Clone, Copy)]
pub struct Property {
    /// The name of the fuzz target, too.
    pub name: &'static str,
    /// Whether it holds for these bytes, and if not, why.
    ///
    /// # Errors
    ///
    /// What was broken.
    pub holds: fn(&[u8]) -> Result<(), String>,
    /// Where mutation starts.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const PROPERTIES: &[Property] = &[
    Property {
        name: "isa_decode",
        holds: isa::decode,
        seeds: isa::decode_seeds,
    },
    Property {
        name: "isa_string",
        holds: isa::string,
        seeds: isa::string_seeds,
    },
    Property {
        name: "attributes",
        holds: isa::attributes,
        seeds: isa::attributes_seeds,
    },
    Property {
        name: "elf_image",
        holds: elf::image,
        seeds: elf::seeds,
    },
    Property {
        name: "elf_listing",
        holds: elf::listing,
        seeds: elf::seeds,
    },
    Property {
        name: "elf_info",
        holds: elf::info,
        seeds: elf::seeds,
    },
    Property {
        name: "walk_flow",
        holds: walk::flow,
        seeds: walk::seeds,
    },
    Property {
        name: "log_pc",
        holds: logs::pc,
        seeds: logs::pc_seeds,
    },
    Property {
        name: "log_spike",
        holds: logs::spike,
        seeds: logs::spike_seeds,
    },
    Property {
        name: "log_format",
        holds: logs::format,
        seeds: logs::format_seeds,
    },
    Property {
        name: "log_csv",
        holds: logs::csv,
        seeds: logs::csv_seeds,
    },
    Property {
        name: "wave_ports",
        holds: waves::ports,
        seeds: waves::ports_seeds,
    },
    Property {
        name: "ffi_check",
        holds: ffi::check,
        seeds: ffi::check_seeds,
    },
    Property {
        name: "ffi_encode",
        holds: ffi::encode,
        seeds: ffi::encode_seeds,
    },
    Property {
        name: "port_check",
        holds: port::check,
        seeds: port::seeds,
    },
    Property {
        name: "config_toml",
        holds: text::config,
        seeds: text::config_seeds,
    },
    Property {
        name: "config_discovery",
        holds: text::discovery,
        seeds: text::discovery_seeds,
    },
    Property {
        name: "code_file",
        holds: code::file,
        seeds: code::file_seeds,
    },
    Property {
        name: "code_patches",
        holds: code::patches,
        seeds: code::patches_seeds,
    },
    Property {
        name: "code_perf",
        holds: code::perf,
        seeds: code::perf_seeds,
    },
    Property {
        name: "ntrace_flow",
        holds: trace::flow::<NTrace>,
        seeds: || trace::flow_seeds(&ntrace::TRACE),
    },
    Property {
        name: "ntrace_roundtrip",
        holds: trace::round_trip::<NTrace>,
        seeds: trace::round_trip_seeds,
    },
    Property {
        name: "etrace_packet",
        holds: etrace::packet,
        seeds: etrace::packet_seeds,
    },
    Property {
        name: "etrace_transport",
        holds: transport::open,
        seeds: transport::seeds,
    },
    Property {
        name: "etrace_data",
        holds: etrace::data,
        seeds: etrace::data_seeds,
    },
    Property {
        name: "etrace_row",
        holds: etrace::row,
        seeds: etrace::row_seeds,
    },
    Property {
        name: "etrace_flow",
        holds: trace::flow::<ETrace>,
        seeds: etrace::flow_seeds,
    },
    Property {
        name: "etrace_roundtrip",
        holds: trace::round_trip::<ETrace>,
        seeds: trace::round_trip_seeds,
    },
    Property {
        name: "tandem_item",
        holds: tandem::item,
        seeds: tandem::seeds,
    },
    Property {
        name: "tandem_stream",
        holds: tandem::stream,
        seeds: tandem::seeds,
    },
    Property {
        name: "tandem_container",
        holds: tandem::frames,
        seeds: tandem::container_seeds,
    },
    Property {
        name: "tandem_verify",
        holds: verify::verify,
        seeds: verify::seeds,
    },
    Property {
        name: "ctr_csr",
        holds: ctr::csr,
        seeds: crate::ctr::scripts,
    },
    Property {
        name: "hart_run",
        holds: hart::run,
        seeds: hart::seeds,
    },
    Property {
        name: "hart_program",
        holds: hart::program,
        seeds: hart::program_seeds,
    },
    Property {
        name: "hart_calls",
        holds: hart::calls,
        seeds: hart::calls_seeds,
    },
    Property {
        name: "ntrace_message",
        holds: ntrace::message,
        seeds: ntrace::message_seeds,
    },
];

/// Checks a property, for a fuzz target: a broken one is a panic.
///
/// # Panics
///
/// When the property does not hold, or there is none of this name.
#[allow(clippy::panic)] // that is how a fuzzer is reported
pub fn target(name: &str, bytes: &[u8]) {
    let Some(property) = PROPERTIES.iter().find(|p| p.name == name) else {
        panic!("no property `{name}`");
    };
    if let Err(what) = (property.holds)(bytes) {
        panic!("{name}: {what}");
    }
}

/// `Err` with what the closure says unless the condition holds.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// What a run over one property found out.
struct Tally {
    executions: u64,
    slowest: Duration,
    slowest_len: usize,
}

/// Runs one property for some time.
fn run(property: &Property, time: Duration, seed: u64) -> Result<Tally, String> {
    let seeds = (property.seeds)();
    let mut random = Random::new(seed);
    let mut tally = Tally {
        executions: 0,
        slowest: Duration::ZERO,
        slowest_len: 0,
    };
    let start = Instant::now();
    while start.elapsed() < time || tally.executions < seeds.len() as u64 {
        // The seeds as they are, then changed.
        let case = match seeds.get(tally.executions as usize) {
            Some(seed) => seed.clone(),
            None => mutate::mutate(&seeds, &mut random),
        };
        let before = Instant::now();
        let holds = catch_unwind(AssertUnwindSafe(|| (property.holds)(&case)));
        let took = before.elapsed();
        let blame = |what: &str| {
            let hex: String = case.iter().map(|b| format!("{b:02x}")).collect();
            format!("{}, seed {seed}: {what}\ncase: {hex}", property.name)
        };
        match holds {
            Ok(Ok(())) => {}
            Ok(Err(what)) => return Err(blame(&what)),
            Err(_) => return Err(blame("panicked")),
        }
        if took > PATIENCE {
            return Err(blame(&format!("took {} ms", took.as_millis())));
        }
        if took > tally.slowest {
            (tally.slowest, tally.slowest_len) = (took, case.len());
            if let Some(peak) = peak_memory().filter(|&p| p > MEMORY) {
                return Err(blame(&format!("{peak} KiB of memory in use")));
            }
        }
        tally.executions += 1;
    }
    match peak_memory().filter(|&p| p > MEMORY) {
        Some(peak) => Err(format!(
            "{}, seed {seed}: {peak} KiB of memory",
            property.name
        )),
        None => Ok(tally),
    }
}

/// The most memory the process has had, in KiB, if the system reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The large cases, each within its time.
fn large_cases() -> Result<(), String> {
    for (name, case) in large::CASES {
        let before = Instant::now();
        case().map_err(|what| format!("{name}: {what}"))?;
        let took = before.elapsed();
        println!("{name}: {} ms", took.as_millis());
        // Making the file counts too.
        ensure(took < 3 * PATIENCE, || format!("{name}: too slow"))?;
    }
    let peak = peak_memory().filter(|&p| p > MEMORY);
    peak.map_or(Ok(()), |p| Err(format!("{p} KiB of memory in use")))
}

/// `hostile [SECONDS] [SEED] [NAME]`: every property, or the one named, for so
/// many seconds each.
///
/// # Errors
///
/// The first property that does not hold, with the bytes that broke it.
pub fn command(args: &[String]) -> Result<(), String> {
    let number = |i: usize, default: u64| -> Result<u64, String> {
        args.get(i).map_or(Ok(default), |a| {
            a.parse().map_err(|_| format!("not a number: {a}"))
        })
    };
    let (seconds, seed) = (number(0, 10)?, number(1, 1)?);
    if args.len() < 3 {
        large_cases()?;
    }
    let chosen = |p: &&Property| args.get(2).is_none_or(|name| name == p.name);
    for property in PROPERTIES.iter().filter(chosen) {
        let tally = run(property, Duration::from_secs(seconds), seed)?;
        println!(
            "{:<16} {:>9} executions, slowest {:.1} ms ({} bytes)",
            property.name,
            tally.executions,
            tally.slowest.as_secs_f64() * 1e3,
            tally.slowest_len
        );
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory {} MiB", peak / 1024);
    }
    Ok(())
}

/// `seeds DIR`: writes where each property starts from to `DIR/NAME`, as a
/// corpus for the fuzz target of that name.
///
/// # Errors
///
/// A file that cannot be written.
pub fn write_seeds(args: &[String]) -> Result<(), String> {
    let [folder] = args else {
        return Err("usage: seeds DIR".into());
    };
    for property in PROPERTIES {
        let folder = Path::new(folder).join(property.name);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let seeds = (property.seeds)();
        for (i, seed) in seeds.iter().enumerate() {
            let path = folder.join(format!("seed-{i}"));
            fs::write(&path, seed).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        println!("{:<16} {} seeds", property.name, seeds.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_holds_for_a_while() {
        for property in PROPERTIES {
            let tally = run(property, Duration::from_millis(120), 7).unwrap();
            assert!(tally.executions > 0, "{}", property.name);
        }
    }

    #[test]
    fn large_cases_take_no_time() {
        large_cases().unwrap();
    }

    #[test]
    fn every_property_is_a_fuzz_target() {
        let targets = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/targets");
        for property in PROPERTIES {
            let path = format!("{targets}/{}.rs", property.name);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(property.name), "{path}");
        }
    }
}
