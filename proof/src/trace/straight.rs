//! Straight-line code at once, and instruction by instruction: the same trace.

use std::fmt::Debug;

use hartrace_flow::{Effects, HartId, Observer, Port, Step, Straights, Wants};

use super::{Format, Recorded, programs};

/// Two ports with the same encoder: one is given straight-line code at once, the
/// other each instruction.
struct Twins<F: Format> {
    number: u64,
    whole: Port<F::Encoder<Vec<u8>>>,
    single: Port<F::Encoder<Vec<u8>>>,
}

struct All<F: Format>(Vec<Twins<F>>);

impl<F: Format> Observer for All<F> {
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        for twins in &mut self.0 {
            twins.whole.step(hart, step, effects);
            twins.single.step(hart, step, effects);
        }
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        for twins in &mut self.0 {
            twins.whole.straights(hart, code);
            for insn in code.iter() {
                twins.single.step(hart, &Step::Insn(insn), &Effects::NONE);
            }
        }
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Instructions run, each with every setting.
    pub insns: u64,
    /// Bytes of all traces.
    pub bytes: u64,
    /// Traces.
    pub traces: u64,
}

/// Runs a program with so many settings, from the one with this number on.
///
/// # Errors
///
/// The first trace that differs.
pub fn compare<F: Format>(
    program: &Recorded,
    insns: u64,
    first: u64,
    settings: u64,
) -> Result<Compared, String> {
    let twins = (first..first + settings).map(|number| {
        let setting = F::setting(number, program.isa);
        let port = || {
            Ok::<_, String>(Port::new(
                setting.port,
                F::encoder(&setting.config, Vec::new())?,
            ))
        };
        Ok::<_, String>(Twins {
            number,
            whole: port()?,
            single: port()?,
        })
    });
    let mut all = All::<F>(twins.collect::<Result<_, _>>()?);
    let mut compared = Compared {
        insns: program.run(insns, &mut all, |_| false)?,
        ..Compared::default()
    };
    for mut twins in all.0 {
        twins.whole.finish();
        twins.single.finish();
        let [whole, single] = [twins.whole, twins.single].map(|p| F::into_out(p.into_sink()));
        if whole != single {
            let at = whole
                .iter()
                .zip(&single)
                .take_while(|(a, b)| a == b)
                .count();
            let (name, number) = (&program.name, twins.number);
            return Err(format!(
                "{name}: setting {number} differs from byte {at:#x} on"
            ));
        }
        compared.bytes += whole.len() as u64;
        compared.traces += 1;
    }
    Ok(compared)
}

/// `NAME-straight [INSTRUCTIONS] [SETTINGS] [FIRST]`: every program of the
/// repository.
///
/// # Errors
///
/// The first difference.
pub fn command<F: Format>(args: &[String]) -> Result<(), String> {
    let number = |index: usize, default: u64| match args.get(index) {
        Some(text) => text.parse().map_err(|_| format!("no number: {text}")),
        None => Ok(default),
    };
    let (insns, settings, first) = (number(0, 1_000_000)?, number(1, 32)?, number(2, 0)?);
    let mut sum = Compared::default();
    for path in programs()? {
        let one = compare::<F>(&Recorded::read(&path)?, insns, first, settings)?;
        sum.insns += one.insns;
        sum.bytes += one.bytes;
        sum.traces += one.traces;
    }
    let Compared {
        insns,
        bytes,
        traces,
    } = sum;
    println!(
        "{traces} traces of {insns} instructions, {bytes} bytes: the same at once and one by one"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etrace::ETrace;
    use crate::ntrace::NTrace;

    /// Programs with interrupts, modes, indirect jumps and calls of all kinds.
    const PROGRAMS: [&str; 6] = [
        "timer-rv64gc",
        "timer-rv32gc",
        "modes-rv64gc",
        "callbacks-rv64gc",
        "interpreter-rv64gc",
        "longjmp-rv64gc",
    ];

    fn all_the_same<F: Format>() {
        for (index, name) in (0..).zip(PROGRAMS) {
            let program = Recorded::named(name).unwrap();
            let compared = compare::<F>(&program, 60_000, index * 12, 12).unwrap();
            assert!(compared.bytes > 0, "{name}");
        }
    }

    #[test]
    fn ntrace_is_the_same_from_straight_line_code_and_from_single_instructions() {
        all_the_same::<NTrace>();
    }

    #[test]
    fn etrace_is_the_same_from_straight_line_code_and_from_single_instructions() {
        all_the_same::<ETrace>();
    }
}
