//! Items: an opcode and its payload, as bytes and as a plain value
//! (chapter 2).

use alloc::vec::Vec;

use crate::config::{Config, Mlen, Nibbles, PcForm};
use crate::fault::Fault;
use crate::register::Register;

/// The longest item: a memory request with a 64-bit address and data.
pub const MAX_ITEM: usize = 18;

/// What a memory request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum Operation {
    Load = 0,
    Store = 1,
    LoadReserved = 2,
    StoreConditional = 3,
    AmoSwap = 4,
    AmoAdd = 5,
    AmoXor = 6,
    AmoAnd = 7,
    AmoOr = 8,
    AmoMin = 9,
    AmoMax = 10,
    AmoMinu = 11,
    AmoMaxu = 12,
    InstructionFetch = 13,
}

impl Operation {
    /// The operation with this code; 14 and 15 are reserved.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Operation> {
        Some(match code {
            0 => Operation::Load,
            1 => Operation::Store,
            2 => Operation::LoadReserved,
            3 => Operation::StoreConditional,
            4 => Operation::AmoSwap,
            5 => Operation::AmoAdd,
            6 => Operation::AmoXor,
            7 => Operation::AmoAnd,
            8 => Operation::AmoOr,
            9 => Operation::AmoMin,
            10 => Operation::AmoMax,
            11 => Operation::AmoMinu,
            12 => Operation::AmoMaxu,
            13 => Operation::InstructionFetch,
            _ => return None,
        })
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether it reads only: no data in the request.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Operation::Load | Operation::LoadReserved | Operation::InstructionFetch
        )
    }

    /// Whether it writes only: no data in the response. A store-conditional
    /// does, whatever its result (the specification is silent).
    #[must_use]
    pub const fn only_writes(self) -> bool {
        matches!(self, Operation::Store | Operation::StoreConditional)
    }
}

/// A memory request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Physical address.
    pub addr: u64,
    /// What it asks for.
    pub op: Operation,
    /// log2 of its size in bytes, 0 to 3.
    pub size: u8,
    /// What is stored, or the operand; 0 for an operation that only reads.
    pub data: u64,
}

/// A memory response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// What it answers.
    pub op: Operation,
    /// log2 of its size in bytes, 0 to 3.
    pub size: u8,
    /// Whether it failed.
    pub failure: bool,
    /// What was read; 0 for an operation that only writes.
    pub data: u64,
}

/// One item of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// 1: a group begins; the one before it ends.
    BeginGroup,
    /// 2: the group ends.
    EndGroup,
    /// 3: the pc grows by the length of the group's instruction.
    IncrementPc,
    /// 4: a register has a new value.
    Full(Register, u64),
    /// 5: a register has grown by this much.
    Offset(Register, i8),
    /// 6: these bits of a register were set.
    Mask(Register, u8),
    /// 7, 1: the privilege mode, by its code.
    Mode(u8),
    /// 7, 2: a physical address.
    PhysicalAddress(u64),
    /// 7, 3: an effective address.
    EffectiveAddress(u64),
    /// 7, 4 to 7: the data of a store; log2 of its size in bytes, and the data.
    StoreData(u8, u64),
    /// 7, 8: mtime.
    Mtime(u64),
    /// 7, 9: the physical address of the pc.
    PcPhysical(u64),
    /// 7, 10: the new pc.
    Pc(u64),
    /// 7, 10 in the two-pc form: the pc of the instruction and the new one.
    TwoPcs(u64, u64),
    /// 8: a memory request.
    Request(Request),
    /// 9: a memory response.
    Response(Response),
    /// 10: the hart was reset.
    Reset,
    /// 11: the group records state that was set from outside.
    StateInit,
    /// 16: a 16-bit instruction.
    Insn16(u16),
    /// 17: a 32-bit instruction.
    Insn32(u32),
}

/// What reading an item comes to.
pub(crate) type Read = Result<Option<(Item, usize)>, (Fault, u64)>;

/// The bytes an item may have, and zeros where the trace ends before.
type Window = [u8; MAX_ITEM];

/// Eight little-endian bytes.
#[inline(always)]
fn word<const AT: usize>(window: &Window) -> u64 {
    const { assert!(AT + 8 <= MAX_ITEM) };
    let bytes = window.get(AT..).and_then(|rest| rest.first_chunk::<8>());
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// The lower bytes of a word: 0, 1, 2, 4, 5 or 8.
#[inline(always)]
const fn low(word: u64, bytes: usize) -> u64 {
    match bytes {
        8 => word,
        bytes => word & !(u64::MAX << (8 * bytes)),
    }
}

impl Item {
    /// Reads the item at the start of `bytes`: the item and its length, or
    /// `None` when there are not enough bytes. `request` is the memory request
    /// right before it.
    ///
    /// # Errors
    ///
    /// What cannot be an item, with the offending value.
    #[inline(always)]
    pub fn read(bytes: &[u8], config: &Config, request: Option<&Request>) -> Read {
        match bytes.first_chunk::<MAX_ITEM>() {
            Some(window) => parse(window, MAX_ITEM, config, request),
            None => read_last(bytes, config, request),
        }
    }

    /// Appends the item to `out`. Values are truncated to their
    /// widths.
    pub fn write(&self, config: &Config, out: &mut Vec<u8>) {
        self.put(config, out);
    }

    /// As [`write`](Item::write), to anything that takes bytes.
    #[inline(always)]
    pub(crate) fn put(&self, config: &Config, out: &mut impl Put) {
        let xlen = config.xlen_bytes();
        match *self {
            Item::BeginGroup => out.put(1, 1),
            Item::EndGroup => out.put(1, 2),
            Item::IncrementPc => out.put(1, 3),
            Item::Full(register, value) => {
                out.put(3, 4 | u64::from(register.number()) << 8);
                match register.is_float() {
                    true => out.put(config.flen.bits() as usize / 8, value),
                    false => out.put(xlen, value),
                }
            }
            Item::Offset(register, offset) => {
                let offset = u64::from(offset.cast_unsigned());
                out.put(4, 5 | u64::from(register.number()) << 8 | offset << 24);
            }
            Item::Mask(register, mask) => {
                let mask = u64::from(mask);
                out.put(4, 6 | u64::from(register.number()) << 8 | mask << 24);
            }
            Item::Mode(mode) => out.put(3, 0x0107 | u64::from(mode) << 16),
            Item::PhysicalAddress(addr) => {
                out.put(2, 0x0207);
                out.put(config.mlen.bytes(), addr);
            }
            Item::EffectiveAddress(addr) => {
                out.put(2, 0x0307);
                out.put(config.eaddr_bytes(), addr);
            }
            Item::StoreData(size, data) => {
                let size = size.min(3);
                out.put(2, 0x0407 + (u64::from(size) << 8));
                out.put(1 << size, data);
            }
            Item::Mtime(time) => {
                out.put(2, 0x0807);
                out.put(8, time);
            }
            Item::PcPhysical(addr) => {
                out.put(2, 0x0907);
                out.put(config.mlen.bytes(), addr);
            }
            Item::Pc(pc) => {
                out.put(2, 0x0a07);
                out.put(xlen, pc);
            }
            Item::TwoPcs(old, new) => {
                out.put(2, 0x0a07);
                out.put(xlen, old);
                out.put(xlen, new);
            }
            Item::Request(request) => {
                let size = request.size.min(3);
                out.put(1, 8);
                out.put(config.mlen.bytes(), request.addr);
                out.put(1, join(config, request.op.code(), size).into());
                if !request.op.only_reads() {
                    out.put(1 << size, request.data);
                }
            }
            Item::Response(response) => {
                let size = response.size.min(3);
                out.put(1, 9);
                out.put(1, join(config, size, response.failure.into()).into());
                if !response.op.only_writes() {
                    out.put(1 << size, response.data);
                }
            }
            Item::Reset => out.put(1, 10),
            Item::StateInit => out.put(1, 11),
            Item::Insn16(bits) => out.put(3, 16 | u64::from(bits) << 8),
            Item::Insn32(bits) => out.put(5, 17 | u64::from(bits) << 8),
        }
    }
}

/// Takes the bytes of items.
pub(crate) trait Put {
    /// The lowest `width` bytes of a value, at most eight, the lowest first.
    fn put(&mut self, width: usize, value: u64);
}

impl Put for Vec<u8> {
    #[inline]
    fn put(&mut self, width: usize, value: u64) {
        self.extend(value.to_le_bytes().iter().take(width));
    }
}

/// As [`Item::read`] where there may be too few bytes.
#[cold]
fn read_last(bytes: &[u8], config: &Config, request: Option<&Request>) -> Read {
    let mut window = [0; MAX_ITEM];
    let there = bytes.len().min(MAX_ITEM);
    window.iter_mut().zip(bytes).for_each(|(w, b)| *w = *b);
    match there {
        0 => Ok(None),
        _ => Ok(parse(&window, there, config, request)?.filter(|(_, len)| *len <= there)),
    }
}

/// Reads an item of which `there` bytes are there. What is wrong is only said
/// of bytes that are: zeros are no fault but where that is asked for.
#[inline(always)]
fn parse(window: &Window, there: usize, config: &Config, request: Option<&Request>) -> Read {
    let xlen = config.xlen_bytes();
    let [opcode, ..] = *window;
    Ok(Some(match opcode {
        1 => (Item::BeginGroup, 1),
        2 => (Item::EndGroup, 1),
        3 => (Item::IncrementPc, 1),
        4 => {
            let register = register(window, config)?;
            let width = match register.is_float() {
                true => config.flen.bits() as usize / 8,
                false => xlen,
            };
            (
                Item::Full(register, low(word::<3>(window), width)),
                3 + width,
            )
        }
        5 => {
            let [_, _, _, offset, ..] = *window;
            (
                Item::Offset(register(window, config)?, offset.cast_signed()),
                4,
            )
        }
        6 => {
            let [_, _, _, mask, ..] = *window;
            (Item::Mask(register(window, config)?, mask), 4)
        }
        7 | 9 if there < 2 => return Ok(None),
        7 => return state(window, config),
        8 => return read_request(window, config),
        9 => return read_response(window, config, request),
        10 => (Item::Reset, 1),
        11 => (Item::StateInit, 1),
        16 if there < 3 => return Ok(None),
        16 => {
            let [_, a, b, ..] = *window;
            let bits = u16::from_le_bytes([a, b]);
            if bits & 3 == 3 {
                return Err((Fault::InsnLength, bits.into()));
            }
            (Item::Insn16(bits), 3)
        }
        17 => {
            let [_, a, b, c, d, ..] = *window;
            (Item::Insn32(u32::from_le_bytes([a, b, c, d])), 5)
        }
        _ => return Err((Fault::UnknownOpcode, opcode.into())),
    }))
}

/// The register of an item.
#[inline(always)]
fn register(window: &Window, config: &Config) -> Result<Register, (Fault, u64)> {
    let [_, low, high, ..] = *window;
    let number = u16::from_le_bytes([low, high]);
    let Some(register) = Register::new(number) else {
        return Err((Fault::UnknownRegister, number.into()));
    };
    if register.is_float() && config.flen.bits() == 0 {
        return Err((Fault::NoFloat, number.into()));
    }
    Ok(register)
}

/// Additional state.
#[inline(always)]
fn state(window: &Window, config: &Config) -> Read {
    let (xlen, mlen) = (config.xlen_bytes(), config.mlen.bytes());
    let [_, identifier, mode, ..] = *window;
    let identifier = match identifier {
        16 if config.lenient_pc_identifier => 10,
        identifier => identifier,
    };
    let field = word::<2>(window);
    Ok(Some(match identifier {
        1 => (Item::Mode(mode), 3),
        2 => (Item::PhysicalAddress(low(field, mlen)), 2 + mlen),
        3 => {
            let width = config.eaddr_bytes();
            (Item::EffectiveAddress(low(field, width)), 2 + width)
        }
        4..=7 => {
            let size = identifier - 4;
            let width = 1 << size;
            (Item::StoreData(size, low(field, width)), 2 + width)
        }
        8 => (Item::Mtime(field), 10),
        9 => (Item::PcPhysical(low(field, mlen)), 2 + mlen),
        10 if config.pc == PcForm::New => (Item::Pc(low(field, xlen)), 2 + xlen),
        10 => {
            let new = match xlen {
                4 => low(word::<6>(window), 4),
                _ => word::<10>(window),
            };
            (Item::TwoPcs(low(field, xlen), new), 2 + 2 * xlen)
        }
        _ => return Err((Fault::UnknownIdentifier, identifier.into())),
    }))
}

fn read_request(window: &Window, config: &Config) -> Read {
    // Operation and size, and the data, after an address of MLEN.
    let [_, _, _, _, _, at_5, at_6, _, _, at_9, ..] = *window;
    let (byte, data) = match config.mlen {
        Mlen::M32 => (at_5, word::<6>(window)),
        Mlen::M34 => (at_6, word::<7>(window)),
        Mlen::M64 => (at_9, word::<10>(window)),
    };
    let (code, size) = split(config, byte);
    if size > 3 {
        return Err((Fault::UnknownSize, size.into()));
    }
    let Some(op) = Operation::from_code(code) else {
        return Err((Fault::UnknownOperation, code.into()));
    };
    let mlen = config.mlen.bytes();
    let width = if op.only_reads() { 0 } else { 1 << size };
    let request = Request {
        addr: low(word::<1>(window), mlen),
        op,
        size,
        data: low(data, width),
    };
    Ok(Some((Item::Request(request), 2 + mlen + width)))
}

fn read_response(window: &Window, config: &Config, request: Option<&Request>) -> Read {
    let Some(request) = request else {
        return Err((Fault::LoneResponse, 9));
    };
    let [_, byte, ..] = *window;
    let (size, result) = split(config, byte);
    if size > 3 {
        return Err((Fault::UnknownSize, size.into()));
    }
    if result > 1 {
        return Err((Fault::UnknownResult, result.into()));
    }
    if size != request.size {
        return Err((Fault::ResponseSize, size.into()));
    }
    let width = match request.op.only_writes() {
        true => 0,
        false => 1 << size,
    };
    let response = Response {
        op: request.op,
        size,
        failure: result != 0,
        data: low(word::<2>(window), width),
    };
    Ok(Some((Item::Response(response), 2 + width)))
}

/// Two four-bit fields in a byte, the first in the lower half (chapter 3).
fn join(config: &Config, first: u8, second: u8) -> u8 {
    match config.nibbles {
        Nibbles::Low => second << 4 | first,
        Nibbles::High => first << 4 | second,
    }
}

fn split(config: &Config, byte: u8) -> (u8, u8) {
    match config.nibbles {
        Nibbles::Low => (byte & 15, byte >> 4),
        Nibbles::High => (byte >> 4, byte & 15),
    }
}
