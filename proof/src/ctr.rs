//! Checks Control Transfer Records against a second, simple and slow model:
//! after each random access or transfer, registers, entries and exceptions must
//! be the same.

use crate::generate::Random;

mod naive;
mod plan;
mod script;
pub mod speed;

pub use script::agree;

/// `ctr-model [STEPS] [SEED]`: so many steps, in runs of some hundred.
///
/// # Errors
///
/// The first difference, with the seed of its run.
pub fn model(args: &[String]) -> Result<(), String> {
    let number = |at: usize, default: u64| -> Result<u64, String> {
        args.get(at).map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("not a number: {text}"))
        })
    };
    let (wanted, seed) = (number(0, 5_000_000)?, number(1, 1)?);
    let mut random = Random::new(seed);
    let mut done = script::Done::default();
    while done.steps < wanted {
        let run = random.draw();
        let found = script::agree(&bytes_of(run));
        done += found.map_err(|what| format!("run {run:#x}: {what}"))?;
    }
    println!("{done}");
    Ok(())
}

/// A script at random.
fn bytes_of(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = 200 + random.below(400);
    (0..words)
        .flat_map(|_| random.draw().to_le_bytes())
        .collect()
}

/// Scripts for a fuzzer to start from.
#[must_use]
pub fn scripts() -> Vec<Vec<u8>> {
    (1..=8).map(bytes_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some thousand steps; the command does millions.
    #[test]
    fn both_models_agree() {
        model(&["30000".to_owned(), "7".to_owned()]).unwrap();
    }

    /// Scripts of all lengths, down to none.
    #[test]
    fn short_scripts() {
        let script = bytes_of(3);
        for len in 0..400 {
            agree(&script[..len]).unwrap();
        }
    }
}
