//! Programs of this repository that use control transfer records: they say what
//! was recorded, and it is what stands beside them. What those of 1.0 say is
//! what QEMU's records make them say, too.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hartrace_ctr::{Config as Records, Version};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Costs, Machine, Platform, Program, Stop};

use crate::bench::NoObserver;

/// An output that can be looked at.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs/ctr")
}

/// What a program prints, with one cycle for each instruction, so that the
/// counts of its records can be checked by hand.
fn output(elf: &Path, version: Version) -> String {
    let program = Program::from_elf(&fs::read(elf).unwrap()).unwrap();
    let mut config = Config::new(Platform::Virt, program.xlen);
    config.isa += "_smctr_ssctr";
    config.ctr = Records::new(version, program.xlen);
    config.costs = Costs::UNIT;
    let seen = Seen::default();
    let (stdout, nothing) = (Box::new(seen.clone()), Box::new(io::sink()));
    let host = Host::new(Box::new(io::empty()), stdout, nothing);
    let mut machine = Machine::new(config, host).unwrap();
    machine.load(program, None).unwrap();
    let stop = machine.run(20_000_000, &mut NoObserver);
    machine.host().finish().unwrap();
    let text = String::from_utf8(seen.0.borrow().clone()).unwrap();
    assert_eq!(stop, Stop::Exit(0), "{}: {text}", elf.display());
    text
}

/// The lines that may differ from hart to hart begin with `#`: cycle counts,
/// and where an overflow stopped. For our hart they are in a file of their own.
#[test]
fn programs_say_what_was_recorded() {
    let mut seen = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let elf = entry.unwrap().path();
        if elf.extension().is_none_or(|e| e != "elf") {
            continue;
        }
        let name = elf.file_stem().unwrap().to_str().unwrap();
        let program = name.rsplit_once("-rv").unwrap().0;
        let version = match program {
            "ctr-draft" => Version::V0_1_4,
            _ => Version::V1_0,
        };
        let text = output(&elf, version);
        for (kind, hidden) in [("expected", false), ("cycles", true)] {
            let beside = folder().join(format!("{program}.{kind}"));
            let wanted = fs::read_to_string(&beside).unwrap();
            let lines = text.split_inclusive('\n');
            let said = lines.filter(|line| line.starts_with('#') == hidden);
            assert_eq!(said.collect::<String>(), wanted, "{}", beside.display());
        }
        seen += 1;
    }
    assert_eq!(seen, 9);
}
