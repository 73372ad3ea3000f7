//! Compares the commit logs of two simulators on the same programs, line by
//! line while they run.
//!
//! Neither log is ever complete in memory or in a file: each simulator writes
//! its log to its standard error, which is a pipe, and waits when the other one
//! is slower. Lines that are not part of a log, such as warnings, are kept and
//! shown when a difference is found.

mod driver;

use std::collections::VecDeque;

use driver::Side;
use hartrace_isa::{Isa, Style, decode};

/// How to call it.
const USAGE: &str = "lockstep --spike PATH (--hart PATH | --against TEMPLATE) [--isa NAME]
    [--reference TEMPLATE] [--patience SECONDS] [--limit LINES] [--exact-end]
    [--keep-going] [--quiet] ELF...
  --spike PATH          the reference
  --hart PATH           our command, called as
                        `PATH run --machine spike --isa {isa} --log spike={log} {elf}`
  --against TEMPLATE    another command; {isa}, {log} and {elf} are filled in
  --reference TEMPLATE  how to call the reference, if not
                        `PATH --isa={isa} --log-commits --log={log} {elf}`
  --isa NAME            for all files (by each file's width, with all that
                        `torture` uses)
  --patience SECONDS    how long a simulator may be silent (20)
  --limit LINES         enough for one program (no limit)
  --exact-end           one may not spin longer than the other at the end
  --keep-going          the other programs even after a difference
  --quiet               one line per difference and the sum
Exits with 4 if there was a difference.";

/// Lines shown before a difference.
const BEFORE: usize = 10;
/// A loop that waits for the end has so few different lines.
const SPIN: usize = 4;
/// A loop that goes on for so many lines waits for nothing.
const MOST_SPIN: u64 = 100_000;

/// What the command line asks for.
struct Options {
    reference: String,
    against: String,
    isa: Option<String>,
    patience: u64,
    limit: u64,
    exact_end: bool,
    keep_going: bool,
    quiet: bool,
    files: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        reference: String::new(),
        against: String::new(),
        isa: None,
        patience: 20,
        limit: u64::MAX,
        exact_end: false,
        keep_going: false,
        quiet: false,
        files: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
        match arg.as_str() {
            "--spike" => {
                let path = value()?;
                options.reference =
                    format!("{path} --isa={{isa}} --log-commits --log={{log}} {{elf}}");
            }
            "--reference" => options.reference.clone_from(value()?),
            "--hart" => {
                let path = value()?;
                options.against =
                    format!("{path} run --machine spike --isa {{isa}} --log spike={{log}} {{elf}}");
            }
            "--against" => options.against.clone_from(value()?),
            "--isa" => options.isa = Some(value()?.clone()),
            "--patience" => options.patience = number(value()?)?,
            "--limit" => options.limit = number(value()?)?,
            "--exact-end" => options.exact_end = true,
            "--keep-going" => options.keep_going = true,
            "--quiet" => options.quiet = true,
            other if other.starts_with('-') => return Err(format!("what is `{arg}`?\n{USAGE}")),
            _ => options.files.push(arg.clone()),
        }
    }
    if options.reference.is_empty() || options.against.is_empty() || options.files.is_empty() {
        return Err(format!("usage: {USAGE}"));
    }
    Ok(options)
}

/// How a comparison ended.
enum Verdict {
    /// Both logs ended, or the limit was reached.
    Same,
    /// They ended together but for a last loop: lines more, and whose.
    Spin(u64, &'static str),
    /// The two lines, `None` for a log that ended.
    Differs(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// The last lines that were the same.
#[derive(Default)]
struct Last(VecDeque<Vec<u8>>);

impl Last {
    /// Adds a line, whose place is taken by an old one to be written over.
    fn push(&mut self, line: &mut Vec<u8>) {
        let mut old = if self.0.len() < BEFORE {
            Vec::new()
        } else {
            self.0.pop_front().unwrap_or_default()
        };
        std::mem::swap(&mut old, line);
        self.0.push_back(old);
    }
}

/// The program counter of a line: mode and counter are its third and fourth
/// word.
fn counter(line: &[u8]) -> &[u8] {
    let words = line.split(|b| *b == b' ').filter(|w| !w.is_empty());
    words
        .clone()
        .find(|w| w.starts_with(b"0x"))
        .unwrap_or_default()
}

/// Whether the rest of a log is a program waiting for its end: a few
/// instructions again and again, already there in the last common lines.
fn spins(side: &mut Side, first: &[u8], last: &Last) -> Option<u64> {
    let mut known: Vec<Vec<u8>> = Vec::new();
    for line in last.0.iter().rev().take(SPIN) {
        known.push(counter(line).to_vec());
    }
    let mut seen: Vec<Vec<u8>> = vec![counter(first).to_vec()];
    let mut lines = 1;
    let mut line = Vec::new();
    while side.line(&mut line) {
        lines += 1;
        let pc = counter(&line);
        if !seen.iter().any(|s| s == pc) {
            seen.push(pc.to_vec());
        }
        if seen.len() > SPIN || lines > MOST_SPIN {
            return None;
        }
    }
    seen.iter().any(|s| known.contains(s)).then_some(lines)
}

/// Compares until something ends.
fn compare(
    reference: &mut Side,
    ours: &mut Side,
    options: &Options,
    last: &mut Last,
    compared: &mut u64,
) -> Verdict {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    while *compared < options.limit {
        match (reference.line(&mut a), ours.line(&mut b)) {
            (true, true) if a == b => {
                *compared += 1;
                last.push(&mut a);
            }
            (true, true) => return Verdict::Differs(Some(a), Some(b)),
            (false, false) => return Verdict::Same,
            (longer, _) => {
                let (side, first, name) = if longer {
                    (reference, &a, "the reference")
                } else {
                    (ours, &b, "ours")
                };
                let spin = spins(side, first, last).filter(|_| !options.exact_end);
                return match spin {
                    Some(lines) => Verdict::Spin(lines, name),
                    None => Verdict::Differs(longer.then_some(a), (!longer).then_some(b)),
                };
            }
        }
    }
    Verdict::Same
}

/// A line of a log as text, or that there is none.
fn shown(line: Option<&Vec<u8>>) -> String {
    line.map_or("(ended)".to_owned(), |line| {
        String::from_utf8_lossy(line).trim_end().to_owned()
    })
}

/// The instruction of a line, in words.
fn disassembly(line: &str, isa: Isa) -> Option<String> {
    let (before, rest) = line.split_once(" (0x")?;
    let (bits, _) = rest.split_once(')')?;
    let pc = before.rsplit_once("0x")?.1;
    let pc = u64::from_str_radix(pc, 16).ok()?;
    let bits = u32::from_str_radix(bits, 16).ok()?;
    let text = decode(bits, isa).text(pc, &Style::new(isa)).to_string();
    Some(text.replace('\t', " "))
}

/// Prints a difference.
fn explain(
    file: &str,
    isa: &str,
    number: u64,
    last: &Last,
    lines: (Option<Vec<u8>>, Option<Vec<u8>>),
    quiet: bool,
) {
    let (a, b) = (shown(lines.0.as_ref()), shown(lines.1.as_ref()));
    println!("{file}: line {number} differs");
    let parsed = Isa::parse(isa).unwrap_or(Isa::RV64GC);
    if !quiet {
        for line in &last.0 {
            println!("           {}", shown(Some(line)));
        }
    }
    println!("reference: {a}");
    println!("     ours: {b}");
    let (x, y) = (disassembly(&a, parsed), disassembly(&b, parsed));
    match (x, y) {
        (Some(x), Some(y)) if x != y => println!("  instruction: `{x}`, ours `{y}`"),
        (Some(x), _) | (None, Some(x)) => println!("  instruction: `{x}`"),
        (None, None) => {}
    }
    // What trapped leaves no line, so the one before may be the culprit.
    let before = last.0.back().map(|line| shown(Some(line)));
    if let Some(text) = before.and_then(|line| disassembly(&line, parsed)) {
        println!("  after: `{text}`");
    }
}

/// The instruction set for a file: what was asked for, or by its class.
fn isa_of(file: &str, options: &Options) -> Result<String, String> {
    if let Some(isa) = &options.isa {
        return Ok(isa.clone());
    }
    let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    let narrow = bytes.get(4) == Some(&1);
    let full = crate::torture::FULL_ISA;
    Ok(if narrow {
        full.replacen("rv64", "rv32", 1)
    } else {
        full.to_owned()
    })
}

/// Compares one program; whether the logs are the same.
fn program(file: &str, options: &Options, total: &mut u64) -> Result<bool, String> {
    let isa = isa_of(file, options)?;
    let mut reference = Side::start(&options.reference, &isa, file, options.patience)?;
    let mut ours = Side::start(&options.against, &isa, file, options.patience)?;
    let mut last = Last::default();
    let mut compared = 0;
    let verdict = compare(&mut reference, &mut ours, options, &mut last, &mut compared);
    *total += compared;
    let ended = (reference.end(), ours.end());
    let same = !matches!(verdict, Verdict::Differs(..));
    match verdict {
        Verdict::Differs(a, b) => {
            explain(file, &isa, compared + 1, &last, (a, b), options.quiet);
        }
        Verdict::Spin(lines, whose) if !options.quiet => {
            println!("{file}: {compared} the same; {whose} spins {lines} lines longer");
        }
        _ if !options.quiet => println!("{file}: {compared} the same"),
        _ => {}
    }
    let exits = ended.0.status == ended.1.status;
    if !same || !exits && !options.quiet {
        println!("  ended: {}, ours {}", ended.0.status, ended.1.status);
        for (name, notes) in [("reference", &ended.0.notes), ("ours", &ended.1.notes)] {
            for note in notes {
                println!("  {name} says: {note}");
            }
        }
    }
    Ok(same)
}

/// `hartrace-proof lockstep`. Leaves with exit code 4 on a difference.
///
/// # Errors
///
/// Arguments that make no sense, and simulators that do not start.
pub fn command(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let (mut total, mut different, mut ran) = (0, 0, 0);
    let start = std::time::Instant::now();
    for file in &options.files {
        ran += 1;
        if !program(file, &options, &mut total)? {
            different += 1;
            if !options.keep_going {
                break;
            }
        }
    }
    let speed = total as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!(
        "{ran} of {} programs, {total} instructions the same ({speed:.1} M/s), {different} differ",
        options.files.len()
    );
    if different > 0 {
        // The other errors leave with 1; scripts tell the two apart.
        std::process::exit(4);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
