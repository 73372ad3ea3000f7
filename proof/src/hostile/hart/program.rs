//! ELF files to load and run.

use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Region};

use super::super::elf::{SIEVES, random_of};
use super::super::ensure;
use super::record::Nothing;

const PROGRAMS: [&[u8]; 4] = [
    include_bytes!("../../../../programs/modes/modes-rv64gc.elf"),
    include_bytes!("../../../../programs/modes/modes-rv32gc.elf"),
    include_bytes!("../../../../programs/timer/timer-rv64gc.elf"),
    include_bytes!("../../../../programs/semihost/semihost-rv32gc.elf"),
];

/// Any file is a program or is refused; a program fits into the machine or is
/// refused; what fits runs.
pub(in super::super) fn program(bytes: &[u8]) -> Result<(), String> {
    let program = match Program::from_elf(bytes) {
        Ok(program) => program,
        Err(error) => {
            let _ = error.to_string();
            return Ok(());
        }
    };
    let data: usize = program.segments.iter().map(|s| s.data.len()).sum();
    ensure(data <= 4 * bytes.len(), || {
        format!("{data} bytes of a file of {}", bytes.len())
    })?;
    let random = random_of(bytes).draw();
    let platform = if random & 1 == 0 {
        Platform::Virt
    } else {
        Platform::Spike
    };
    let mut config = Config::new(platform, program.xlen);
    config.memory = vec![Region {
        base: 0x8000_0000,
        size: 4 << 20,
    }];
    let mut machine = Machine::new(config, Host::silent()).map_err(|e| e.to_string())?;
    // A program is loaded, or the machine stays as it is; twice is as once.
    for _ in 0..=(random >> 1 & 1) {
        if let Err(error) = machine.load(program.clone(), None) {
            let _ = error.to_string();
            return ensure(machine.instructions() == 0, || "it ran".into());
        }
        let _ = machine.run(random >> 2 & 0x3ff, &mut Nothing);
    }
    Ok(())
}

pub(in super::super) fn seeds() -> Vec<Vec<u8>> {
    let all = PROGRAMS.iter().chain(&SIEVES);
    all.map(|elf| elf.to_vec()).collect()
}
