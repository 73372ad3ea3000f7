//! `hartrace-proof float`: floating-point results for another implementation
//! to check, line by line.

mod operands;
mod speed;

use std::io::{self, BufWriter, Write};

use hartrace_hart::float::{self, F16, F32, F64, Flags, Format, Round};

use crate::generate::Random;

/// How to call it.
const USAGE: &str = "float [--count N] [--seed S] [--bench]
  --count N  lines to print (1000000)
  --seed S   which ones (0)
  --bench    measures operations instead, those the host may do and those done
             in integers

Prints one operation on each line, `OP FORMAT ROUND A B C -> RESULT FLAGS`.
  OP      add sub mul div sqrt mul_add min max eq lt le classify; to_f16 to_f32
          to_f64 to_i32 to_u32 to_i64 to_u64, where FORMAT is that of A; and
          from_i32 from_u32 from_i64 from_u64, where it is that of the result
  FORMAT  f16 f32 f64
  ROUND   the number that frm has for the mode
  A B C   operands in hexadecimal; those that OP does not use are 0
  RESULT  in hexadecimal, 32-bit integers zero-extended
  FLAGS   those of fflags, in hexadecimal";

/// An operation on operands in one format.
type Operation = fn(Operands, Round, &mut Flags) -> u64;

/// Three operands, of which an operation uses the first ones.
#[derive(Clone, Copy, Debug)]
struct Operands {
    a: u64,
    b: u64,
    c: u64,
}

/// What the operands of an operation have to be to make it interesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    One,
    Sum,
    Product,
    Quotient,
    Root,
    Fused,
    ToInteger,
    Integer,
}

/// The operations, by name.
fn operations<F: Format>() -> [(&'static str, Kind, Operation); 23] {
    [
        ("add", Kind::Sum, |o, r, f| float::add::<F>(o.a, o.b, r, f)),
        ("sub", Kind::Sum, |o, r, f| float::sub::<F>(o.a, o.b, r, f)),
        ("mul", Kind::Product, |o, r, f| {
            float::mul::<F>(o.a, o.b, r, f)
        }),
        ("div", Kind::Quotient, |o, r, f| {
            float::div::<F>(o.a, o.b, r, f)
        }),
        ("sqrt", Kind::Root, |o, r, f| float::sqrt::<F>(o.a, r, f)),
        ("mul_add", Kind::Fused, |o, r, f| {
            float::mul_add::<F>(o.a, o.b, o.c, r, f)
        }),
        ("min", Kind::Sum, |o, _, f| float::min::<F>(o.a, o.b, f)),
        ("max", Kind::Sum, |o, _, f| float::max::<F>(o.a, o.b, f)),
        ("eq", Kind::Sum, |o, _, f| {
            float::eq::<F>(o.a, o.b, f).into()
        }),
        ("lt", Kind::Sum, |o, _, f| {
            float::lt::<F>(o.a, o.b, f).into()
        }),
        ("le", Kind::Sum, |o, _, f| {
            float::le::<F>(o.a, o.b, f).into()
        }),
        ("classify", Kind::One, |o, _, _| {
            float::classify::<F>(o.a).into()
        }),
        ("to_f16", Kind::One, |o, r, f| {
            float::convert::<F, F16>(o.a, r, f)
        }),
        ("to_f32", Kind::One, |o, r, f| {
            float::convert::<F, F32>(o.a, r, f)
        }),
        ("to_f64", Kind::One, |o, r, f| {
            float::convert::<F, F64>(o.a, r, f)
        }),
        ("to_i32", Kind::ToInteger, |o, r, f| {
            u64::from(float::to_i32::<F>(o.a, r, f) as u32)
        }),
        ("to_u32", Kind::ToInteger, |o, r, f| {
            float::to_u32::<F>(o.a, r, f).into()
        }),
        ("to_i64", Kind::ToInteger, |o, r, f| {
            float::to_i64::<F>(o.a, r, f) as u64
        }),
        ("to_u64", Kind::ToInteger, |o, r, f| {
            float::to_u64::<F>(o.a, r, f)
        }),
        ("from_i32", Kind::Integer, |o, r, f| {
            float::from_i32::<F>(o.a as i32, r, f)
        }),
        ("from_u32", Kind::Integer, |o, r, f| {
            float::from_u32::<F>(o.a as u32, r, f)
        }),
        ("from_i64", Kind::Integer, |o, r, f| {
            float::from_i64::<F>(o.a as i64, r, f)
        }),
        ("from_u64", Kind::Integer, |o, r, f| {
            float::from_u64::<F>(o.a, r, f)
        }),
    ]
}

/// Prints operations and their results, or measures them.
///
/// # Errors
///
/// Arguments that are none, and an output that cannot be written.
pub fn command(args: &[String]) -> Result<(), String> {
    let (mut count, mut seed) = (1_000_000, 0);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let target = match arg.as_str() {
            "--count" => &mut count,
            "--seed" => &mut seed,
            "--bench" => {
                print!("{}", speed::report(seed));
                return Ok(());
            }
            _ => return Err(format!("usage: {USAGE}")),
        };
        let number = args.next().and_then(|n| n.parse::<u64>().ok());
        *target = number.ok_or_else(|| format!("{arg} needs a number"))?;
    }
    match print(count, seed) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Each line takes the next format, so that all of them get the same share.
fn print(count: u64, seed: u64) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut random = Random::new(seed);
    for line in 0..count {
        match line % 3 {
            0 => print_one::<F16>("f16", &mut random, &mut out)?,
            1 => print_one::<F32>("f32", &mut random, &mut out)?,
            _ => print_one::<F64>("f64", &mut random, &mut out)?,
        }
    }
    out.flush()
}

fn print_one<F: Format>(format: &str, random: &mut Random, out: &mut impl Write) -> io::Result<()> {
    let table = operations::<F>();
    // The six that round three ways and more get half of the lines.
    let at = if random.chance(500) {
        random.below(6)
    } else {
        random.below(table.len() as u64)
    };
    let Some(&(name, kind, operation)) = table.get(at as usize) else {
        return Ok(());
    };
    let round = Round::from_code(random.below(5) as u8).unwrap_or(Round::Rne);
    let o = operands::draw::<F>(kind, name, random);
    let mut flags = Flags::default();
    let result = operation(o, round, &mut flags);
    writeln!(
        out,
        "{name} {format} {} {:x} {:x} {:x} -> {result:x} {:x}",
        round as u8, o.a, o.b, o.c, flags.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_the_help_says() {
        let mut random = Random::new(3);
        let mut out = Vec::new();
        for _ in 0..2000 {
            print_one::<F16>("f16", &mut random, &mut out).unwrap();
            print_one::<F64>("f64", &mut random, &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let [op, format, round, a, b, c, "->", result, flags] = words[..] else {
                panic!("{line}");
            };
            assert!(USAGE.contains(op) && USAGE.contains(format), "{line}");
            assert!(round.parse::<u8>().is_ok_and(|r| r < 5), "{line}");
            for word in [a, b, c, result, flags] {
                assert!(u64::from_str_radix(word, 16).is_ok(), "{line}");
            }
        }
    }
}
