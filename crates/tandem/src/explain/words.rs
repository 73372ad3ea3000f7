//! Items as short text and as named values.

use alloc::borrow::ToOwned as _;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use hartrace_flow::Mode;

use crate::item::{Item, Operation, Request, Response};
use crate::register::Register;

/// A value of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Bits, which are written as a hexadecimal number.
    Bits(u64),
    /// A number.
    Number(i64),
    /// A name.
    Word(String),
    /// Whether something is the case.
    Flag(bool),
}

impl Item {
    /// The instruction, if it is one, and its bytes.
    #[must_use]
    pub const fn insn(&self) -> Option<(u32, u8)> {
        match *self {
            Item::Insn16(bits) => Some((bits as u32, 2)),
            Item::Insn32(bits) => Some((bits, 4)),
            _ => None,
        }
    }

    /// Whether it only begins or ends a group.
    #[must_use]
    pub const fn is_frame(&self) -> bool {
        matches!(self, Item::BeginGroup | Item::EndGroup)
    }

    /// Writes it in a few words: `a0=0x10`, `paddr=0x80001000`. Of an instruction
    /// these are its bits.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_brief(&self, out: &mut impl fmt::Write) -> fmt::Result {
        match *self {
            Item::BeginGroup => out.write_str("begin"),
            Item::EndGroup => out.write_str("end"),
            Item::IncrementPc => out.write_str("pc+"),
            Item::Full(register, value) => write!(out, "{register}={value:#x}"),
            Item::Offset(register, offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, "{register}{sign}={:#x}", offset.unsigned_abs())
            }
            Item::Mask(register, mask) => write!(out, "{register}|={mask:#x}"),
            Item::Mode(code) => write!(out, "priv={}", mode(code)),
            Item::PhysicalAddress(addr) => write!(out, "paddr={addr:#x}"),
            Item::EffectiveAddress(addr) => write!(out, "eaddr={addr:#x}"),
            Item::StoreData(size, data) => write!(out, "store{}={data:#x}", 8u32 << size.min(3)),
            Item::Mtime(time) => write!(out, "mtime={time:#x}"),
            Item::PcPhysical(addr) => write!(out, "pc_paddr={addr:#x}"),
            Item::Pc(pc) => write!(out, "pc={pc:#x}"),
            Item::TwoPcs(old, new) => write!(out, "pc={old:#x}->{new:#x}"),
            Item::Request(request) => {
                let Request {
                    addr,
                    op,
                    size,
                    data,
                } = request;
                write!(out, "{}{} [{addr:#x}]", op.word(), 8u32 << size.min(3))?;
                match op.only_reads() {
                    true => Ok(()),
                    false => write!(out, "={data:#x}"),
                }
            }
            Item::Response(response) => {
                let Response {
                    op, failure, data, ..
                } = response;
                out.write_str(if failure { "failure" } else { "success" })?;
                match op.only_writes() {
                    true => Ok(()),
                    false => write!(out, " {data:#x}"),
                }
            }
            Item::Reset => out.write_str("reset"),
            Item::StateInit => out.write_str("init"),
            Item::Insn16(bits) => write!(out, "{bits:04x}"),
            Item::Insn32(bits) => write!(out, "{bits:08x}"),
        }
    }

    /// A word for it, for programs that read it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Item::BeginGroup => "begin",
            Item::EndGroup => "end",
            Item::IncrementPc => "increment_pc",
            Item::Full(..) | Item::Offset(..) | Item::Mask(..) => "register",
            Item::Mode(_) => "priv",
            Item::PhysicalAddress(_) => "paddr",
            Item::EffectiveAddress(_) => "eaddr",
            Item::StoreData(..) => "store",
            Item::Mtime(_) => "mtime",
            Item::PcPhysical(_) => "pc_paddr",
            Item::Pc(_) | Item::TwoPcs(..) => "pc",
            Item::Request(_) => "request",
            Item::Response(_) => "response",
            Item::Reset => "reset",
            Item::StateInit => "init",
            Item::Insn16(_) | Item::Insn32(_) => "insn",
        }
    }

    /// Its values by name, for programs that read it.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        use Value::{Bits, Flag, Number, Word};
        let register = |register: Register| ("register", Word(register.to_string()));
        let size = |size: u8| ("size", Number(1 << size.min(3)));
        let op = |op: Operation| ("op", Word(op.word().to_owned()));
        let values: &[(&'static str, Value)] = match *self {
            Item::BeginGroup
            | Item::EndGroup
            | Item::IncrementPc
            | Item::Reset
            | Item::StateInit => &[],
            Item::Full(r, value) => &[register(r), ("value", Bits(value))],
            Item::Offset(r, offset) => &[register(r), ("offset", Number(offset.into()))],
            Item::Mask(r, mask) => &[register(r), ("mask", Bits(mask.into()))],
            Item::Mode(code) => &[("mode", Word(mode(code)))],
            Item::PhysicalAddress(value)
            | Item::EffectiveAddress(value)
            | Item::Mtime(value)
            | Item::PcPhysical(value)
            | Item::Pc(value) => &[("value", Bits(value))],
            Item::StoreData(bytes, data) => &[size(bytes), ("value", Bits(data))],
            Item::TwoPcs(old, new) => &[("old", Bits(old)), ("value", Bits(new))],
            Item::Request(request) => {
                let mut values = alloc::vec![
                    op(request.op),
                    size(request.size),
                    ("address", Bits(request.addr)),
                ];
                if !request.op.only_reads() {
                    values.push(("value", Bits(request.data)));
                }
                return values;
            }
            Item::Response(response) => {
                let mut values = alloc::vec![op(response.op), size(response.size)];
                if !response.op.only_writes() {
                    values.push(("value", Bits(response.data)));
                }
                values.push(("failure", Flag(response.failure)));
                return values;
            }
            Item::Insn16(bits) => &[("size", Number(2)), ("value", Bits(bits.into()))],
            Item::Insn32(bits) => &[("size", Number(4)), ("value", Bits(bits.into()))],
        };
        values.to_vec()
    }
}

fn mode(code: u8) -> String {
    match Mode::from_code(code) {
        Some(mode) => mode.name().to_owned(),
        None => code.to_string(),
    }
}

impl Operation {
    /// A word for it, as in the names of instructions.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::LoadReserved => "lr",
            Operation::StoreConditional => "sc",
            Operation::AmoSwap => "amoswap",
            Operation::AmoAdd => "amoadd",
            Operation::AmoXor => "amoxor",
            Operation::AmoAnd => "amoand",
            Operation::AmoOr => "amoor",
            Operation::AmoMin => "amomin",
            Operation::AmoMax => "amomax",
            Operation::AmoMinu => "amominu",
            Operation::AmoMaxu => "amomaxu",
            Operation::InstructionFetch => "fetch",
        }
    }
}
