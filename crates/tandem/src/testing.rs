//! Random items and traces for tests.

use alloc::vec::Vec;

use hartrace_isa::Xlen;
use hartrace_testkit::Random;

use crate::config::{Config, EaddrWidth, Flen, Mlen, Nibbles, PcForm, PcStyle};
use crate::item::{Item, Operation, Request, Response};
use crate::register::Register;

/// Any of the settings below.
pub(crate) fn any_config(random: &mut Random) -> Config {
    let all = configs();
    all[random.index(all.len())].clone()
}

/// Every set of parameters and dialects that the bytes depend on.
pub(crate) fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for (xlen, mlen) in [
        (Xlen::Rv64, Mlen::M64),
        (Xlen::Rv32, Mlen::M32),
        (Xlen::Rv32, Mlen::M34),
    ] {
        for code in 0..24 {
            let mut config = Config {
                xlen,
                mlen,
                flen: [Flen::None, Flen::F32, Flen::F64][code % 3],
                eaddr: [EaddrWidth::Mlen, EaddrWidth::Xlen][code / 3 % 2],
                nibbles: [Nibbles::Low, Nibbles::High][code / 6 % 2],
                pc: [PcForm::New, PcForm::Both][code / 12],
                ..Config::default()
            };
            if config.pc == PcForm::Both {
                config.style.pc = PcStyle::Full;
            }
            all.push(config);
        }
    }
    all
}

/// An item of every kind; responses too, which follow a load of four
/// bytes.
pub(crate) fn items(config: &Config) -> Vec<Item> {
    let bits = |n: u32| u64::MAX >> (64 - n);
    let xlen = bits(config.xlen.bits());
    let mlen = bits(config.mlen.bytes() as u32 * 8);
    let odd = 0xfedc_ba98_7654_3210;
    let request = |op, data| {
        Item::Request(Request {
            addr: odd & mlen,
            op,
            size: 2,
            data,
        })
    };
    let mut all = Vec::from([
        Item::BeginGroup,
        Item::EndGroup,
        Item::IncrementPc,
        Item::Full(Register::csr(0x300), odd & xlen),
        Item::Full(Register::x(10), !odd & xlen),
        Item::Offset(Register::x(11), -8),
        Item::Mask(Register::csr(3), 0x11),
        Item::Mode(1),
        Item::PhysicalAddress(odd & mlen),
        Item::EffectiveAddress(odd & bits(config.eaddr_bytes() as u32 * 8)),
        Item::StoreData(1, 0x1234),
        Item::StoreData(3, odd),
        Item::Mtime(odd),
        Item::PcPhysical(odd & mlen),
        match config.pc {
            PcForm::New => Item::Pc(odd & xlen),
            PcForm::Both => Item::TwoPcs(odd & xlen, 0x1234),
        },
        request(Operation::AmoAdd, 0x1234_5678),
        request(Operation::Store, 0x1234_5678),
        Item::Reset,
        Item::StateInit,
        Item::Insn16(0x8d0d),
        Item::Insn32(0x0062_81b3),
        request(Operation::Load, 0),
        Item::Response(Response {
            op: Operation::Load,
            size: 2,
            failure: true,
            data: 0x89ab_cdef,
        }),
    ]);
    if config.flen != Flen::None {
        let value = odd & bits(config.flen.bits());
        all.push(Item::Full(Register::f(7), value));
    }
    all
}

/// Groups of all sorts, right and wrong.
pub(crate) fn mixture(config: &Config, random: &mut Random) -> Vec<u8> {
    let all = items(config);
    let mut bytes = Vec::new();
    for _ in 0..30 {
        Item::BeginGroup.write(config, &mut bytes);
        if random.below(2) == 0 {
            Item::Insn16(1).write(config, &mut bytes);
        }
        for _ in 0..random.below(4) {
            all[random.index(all.len())].write(config, &mut bytes);
        }
        if random.below(2) == 0 {
            Item::EndGroup.write(config, &mut bytes);
        }
    }
    bytes
}
