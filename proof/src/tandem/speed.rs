//! The speed of reading, decoding, encoding and verifying traces, on one core.

use hartrace_flow::HartId;
use hartrace_tandem::{Config, Decoder, Encoder, Next, Reader, Sink, Style, Verifier};

use super::{Heard, Subject};
use crate::bench::Bench;
use crate::trace::speed::Count;

/// Instructions of a trace.
const INSNS: u64 = 4_000_000;
/// Steps with all their effects that are kept, and encoded over and over: what
/// caches hold.
const STEPS: u64 = 2000;

const HART: HartId = HartId(0);

/// Counts bytes.
struct Bytes(u64);

impl Sink for Bytes {
    #[inline]
    fn group(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// A program in one style: reading, decoding, encoding, verifying.
fn measure(subject: &Subject, style: (&str, Style)) -> Result<(), String> {
    let mut config = Config::new(subject.isa()?, true);
    config.style = style.1;
    let bytes = subject.trace(&config, INSNS)?;
    let groups = count(&config, &bytes);
    println!(
        "\n{}, {}: {groups} groups, {:.2} bytes each",
        subject.name,
        style.0,
        bytes.len() as f64 / groups.max(1) as f64
    );
    let mut kept = Vec::new();
    subject.run(STEPS, &mut |step, effects| kept.push((*step, *effects)))?;
    let mut bench = Bench::new("groups");
    let (config, bytes) = (&config, &bytes);
    bench.measure("read", groups, move || count(config, bytes));
    bench.measure("decode", groups, move || {
        let mut decoder = Decoder::new(config.clone(), HART).ok()?;
        let mut out = Count(0);
        decoder.feed(bytes, &mut out);
        decoder.finish(&mut out);
        Some(out.0)
    });
    let steps = &kept;
    let rounds = groups / steps.len().max(1) as u64;
    bench.measure("encode", rounds * steps.len() as u64, move || {
        let mut out = Bytes(0);
        for _ in 0..rounds {
            let mut encoder = Encoder::new(config.clone()).ok()?;
            for (step, effects) in steps {
                encoder.step(step, effects, &mut out);
            }
            encoder.finish(&mut out);
        }
        Some(out.0)
    });
    let options = subject.options()?;
    bench.measure("verify", groups, move || {
        let mut verifier = Verifier::new(config.clone(), options.clone(), subject.machine().ok()?);
        let mut heard = Heard::new(1);
        let _ = verifier.feed(bytes, &mut heard);
        let _ = verifier.finish(&mut heard);
        Some(heard.mismatches.len())
    });
    print!("{}", bench.run(5));
    let heard = subject.verify(config, bytes, 1)?;
    match heard.mismatches.first() {
        None => Ok(()),
        Some(mismatch) => Err(format!("{}: {mismatch:x?}", subject.name)),
    }
}

/// The groups of a trace.
fn count(config: &Config, bytes: &[u8]) -> u64 {
    let mut reader = Reader::new(config.clone());
    let mut rest = bytes;
    let mut groups = 0;
    while reader.next(&mut rest) == Next::Group {
        groups += 1;
    }
    groups
}

/// `tandem-speed [PROGRAM...]`: programs in the styles full and compact; the
/// bench programs where none is named.
///
/// # Errors
///
/// Programs that cannot be run, or do not verify.
pub fn command(args: &[String]) -> Result<(), String> {
    let subjects = match args.is_empty() {
        false => args.iter().map(|name| Subject::named(name)).collect(),
        true => Subject::programs().map(|all| {
            let bench = |s: &Subject| s.name.starts_with("bench-");
            all.into_iter().filter(bench).collect::<Vec<_>>()
        }),
    }?;
    for subject in &subjects {
        measure(subject, ("full", Style::default()))?;
        measure(subject, ("compact", Style::compact()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted() {
        let subject = Subject::named("sieve-rv64gc").unwrap();
        let config = Config::new(subject.isa().unwrap(), true);
        let bytes = subject.trace(&config, 1000).unwrap();
        // One more says where the trace starts.
        assert_eq!(count(&config, &bytes), 1001);
    }
}
