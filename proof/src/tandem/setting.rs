//! Every combination of encoder settings.

use hartrace_isa::{Isa, Xlen};
use hartrace_tandem::{
    Addresses, Config, EaddrWidth, MemoryStyle, Mlen, Nibbles, PcForm, PcStyle, StoreData, Style,
};

use crate::generate::Random;

/// A configuration out of a number.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The number.
    pub number: u64,
    /// The configuration.
    pub config: Config,
}

/// What a partial trace may leave out. Whatever a trap writes is among it, but
/// for the cause of an interrupt: without that it is unknown which it was (3.2).
const ABSENT: [&str; 24] = [
    "gpr",
    "fpr",
    "a0",
    "s0",
    "ra",
    "fa0",
    "fflags",
    "mstatus",
    "mscratch",
    "mtvec",
    "satp",
    "pc",
    "priv",
    "insn",
    "store",
    "trap.mstatus",
    "trap.mepc",
    "trap.mtval",
    "trap.stval",
    "trap.sepc",
    "sscratch",
    "minstret",
    "mie",
    "csr",
];

impl Setting {
    /// The setting with this number: the three named styles first, then
    /// anything. One in four traces is a partial one.
    #[must_use]
    pub fn new(number: u64, isa: Isa) -> Setting {
        let mut config = Config::new(isa, true);
        let mut random = Random::new(number);
        config.style = match number % 8 {
            0 => Style::default(),
            1 => Style::compact(),
            2 => Style::bluespec(),
            _ => any_style(&mut random),
        };
        if number % 8 > 2 {
            any_dialect(&mut config, &mut random);
        }
        if number % 4 == 3 {
            for _ in 0..random.between(1, 4) {
                // The names are known to be right.
                let _ = config.absent.add(random.pick(&ABSENT));
            }
        }
        Setting { number, config }
    }
}

fn any_style(random: &mut Random) -> Style {
    Style {
        pc: random.one_of([PcStyle::Increment, PcStyle::Full]),
        incremental: random.chance(500),
        addresses: random.one_of([
            Addresses::None,
            Addresses::Effective,
            Addresses::Physical,
            Addresses::Both,
            Addresses::Translated,
        ]),
        minstret: random.chance(300),
        memory: random.one_of([
            MemoryStyle::None,
            MemoryStyle::Requests,
            MemoryStyle::Responses,
        ]),
        end_group: random.chance(500),
        start: random.chance(500),
    }
}

fn any_dialect(config: &mut Config, random: &mut Random) {
    config.eaddr = random.one_of([EaddrWidth::Mlen, EaddrWidth::Xlen]);
    config.nibbles = random.one_of([Nibbles::Low, Nibbles::High]);
    config.store_data = random.one_of([StoreData::Result, StoreData::Operand]);
    if config.xlen == Xlen::Rv32 {
        config.mlen = random.one_of([Mlen::M32, Mlen::M34]);
    }
    if config.style.pc == PcStyle::Full {
        config.pc = random.one_of([PcForm::New, PcForm::Both]);
    }
    config.lenient_pc_identifier = random.chance(500);
}
