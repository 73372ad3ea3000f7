//! Random programs that run on a simulator: every instruction with operands
//! that are likely to expose a bug, every kind of trap, every privilege mode.
//!
//! A program always terminates: instructions that trap are skipped, and the
//! numbers of loop iterations and traps are bounded. Its result proves nothing.
//! Two simulators that claim to be the same machine run it, and
//! [`crate::lockstep`] compares their logs.
//!
//! The same seed gives the same program on every machine.

mod code;
mod compute;
mod coverage;
mod csrs;
mod extensions;
mod flow;
mod handler;
mod layout;
mod memory;
mod menu;
mod paging;
mod program;
mod traps;
mod values;

pub use coverage::command as coverage;
pub use program::{Spec, Topic, make};

/// How to call it.
const USAGE: &str = "torture [--seed N] [--isa NAME] [--length N] [--only TOPIC,...]
    [--count N] -o FILE
  --seed N      which program (0)
  --isa NAME    the instruction set (all that is known, 64 bits); `small` is one with
                Zcmp and Zcmt
  --length N    atoms, an instruction or a few (4000)
  --only ...    int, float, memory, atomic, flow, csr, trap, small, cache in any mode;
                mode, interrupt, paging, pmp (all)
  --count N     so many seeds from the first on; `{}` in FILE is the seed
  -o FILE       the ELF file";

/// Everything that programs are made of.
pub const FULL_ISA: &str = "rv64gc_zicntr_zihpm_zihintpause_zihintntl_zicond_zicbom_zicbop\
    _zicboz_zimop_zawrs_zacas_zabha_zfh_zfa_zba_zbb_zbc_zbs_zcb_zcmop_sstc_svinval_svnapot_svpbmt";

/// The same with Zcmp and Zcmt, and so without compressed double-precision loads and
/// stores.
pub const SMALL_ISA: &str = "rv64imafc_zicntr_zihpm_zicond_zicboz_zacas_zba_zbb_zbs_zcb_zcmop\
    _zcmp_zcmt_sstc_svinval_svnapot";

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn topics(text: &str) -> Result<u32, String> {
    text.split(',').try_fold(0, |set, name| {
        let found = Topic::ALL.iter().find(|(known, _)| *known == name);
        let (_, topic) = found.ok_or(format!("no topic `{name}`\n{USAGE}"))?;
        Ok(set | topic.bit())
    })
}

/// `hartrace-proof torture`.
///
/// # Errors
///
/// Arguments that make no sense, and files that cannot be written.
pub fn command(args: &[String]) -> Result<(), String> {
    let mut spec = Spec {
        seed: 0,
        isa: FULL_ISA.to_owned(),
        length: 4000,
        topics: 0,
    };
    let (mut count, mut file) = (1, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--seed" => spec.seed = number(value()?)?,
            "--isa" => {
                spec.isa.clone_from(value()?);
                if spec.isa == "small" {
                    SMALL_ISA.clone_into(&mut spec.isa);
                }
            }
            "--length" => spec.length = number(value()?)? as u32,
            "--only" => spec.topics = topics(value()?)?,
            "--count" => count = number(value()?)?,
            "-o" => file = Some(value()?.clone()),
            _ => return Err(format!("what is `{arg}`?\n{USAGE}")),
        }
    }
    let file = file.ok_or(USAGE)?;
    for _ in 0..count {
        let name = file.replace("{}", &spec.seed.to_string());
        std::fs::write(&name, make(&spec)?).map_err(|e| format!("{name}: {e}"))?;
        spec.seed += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
