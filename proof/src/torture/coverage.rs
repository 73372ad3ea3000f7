//! Which instructions a commit log contains.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use hartrace_isa::{Isa, Op, Short, decode, encodings};

/// What never commits: it traps, or a plain hart does not have it.
const TRAPS: &[Op] = &[
    Op::Ecall,
    Op::Ebreak,
    Op::Unimp,
    Op::Uret,
    Op::Dret,
    Op::Mnret,
];

/// The instruction of a line of a commit log: the word in parentheses.
fn bits(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("(0x")?;
    let (digits, _) = rest.split_once(')')?;
    u32::from_str_radix(digits, 16).ok()
}

/// `hartrace-proof coverage ISA LOG...`: what the logs together lack.
///
/// # Errors
///
/// Files that cannot be read, and instructions that no log contains.
pub fn command(args: &[String]) -> Result<(), String> {
    let Some((name, logs)) = args.split_first() else {
        return Err("usage: coverage ISA LOG...; a log `-` is the standard input".into());
    };
    let isa = Isa::parse(name).map_err(|e| e.to_string())?;
    let mut seen: BTreeMap<(Op, Option<Short>), u64> = encodings(isa)
        .filter(|e| !TRAPS.contains(&e.op))
        .map(|e| ((e.op, e.short), 0))
        .collect();
    let mut total = 0u64;
    for log in logs {
        let reader: Box<dyn BufRead> = if log == "-" {
            Box::new(std::io::stdin().lock())
        } else {
            let file = std::fs::File::open(log).map_err(|e| format!("{log}: {e}"))?;
            Box::new(BufReader::new(file))
        };
        for line in reader.lines() {
            let line = line.map_err(|e| format!("{log}: {e}"))?;
            let Some(bits) = bits(&line) else { continue };
            let inst = decode(bits, isa);
            total += 1;
            if let Some(count) = seen.get_mut(&(inst.op, inst.short)) {
                *count += 1;
            }
        }
    }
    let missing: Vec<&str> = seen
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|((op, short), _)| short.map_or(op.name(), Short::name))
        .collect();
    let rarest = seen
        .iter()
        .filter(|(_, n)| **n > 0)
        .min_by_key(|(_, n)| **n);
    println!(
        "{total} instructions, {} of {} encodings",
        seen.len() - missing.len(),
        seen.len()
    );
    if let Some(((op, short), count)) = rarest {
        println!("rarest: {} {count}", short.map_or(op.name(), Short::name));
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("never executed: {}", missing.join(" ")))
    }
}
