//! The line forms of Spike's log, and of the logs that cores write after its example.
//!
//! | line | written with |
//! |---|---|
//! | `core   0: 3 0xPC (0xINSN) x5  0xV c768_mstatus 0xV mem 0xA 0xV` | `--log-commits` |
//! | `core   0: 0xPC (0xINSN) disassembly` | `-l` |
//! | `core   0: exception NAME, epc 0xPC` | `-l` |
//! | `core   0:           tval 0xV` | `-l`, after some exceptions |
//! | `core   0: >>>>  SYMBOL` | `-l` |
//! | `core   0: Executed N times` | `-l`, for a line that was repeated |
//! | `core   0: trigger action N` | `-l` |
//! | `core   0: debugger halted x10 0xV`, `resumed`, `wrote mem 0xA 0xV` | hartrace: what a debugger did |
//! | `3 0xPC (0xINSN) x 5 0xV mem 0xA 0xV` | CVA6, Rocket, BOOM: a commit of hart 0 |
//! | `core   INTERRUPT 0: 0xPC (0xINSN) DASM(...)` | CVA6, before the commit of the first instruction of a handler |
//! | `NAME exception @ 0xPC (0xINSN)` | CVA6 |
//! | `3 0xPC (0xINSN) x5 p5 0xXXXX`, later `x5 p5 0xV` | Rocket: a register that is written late |
//! | `0 3 0xPC (0xINSN) x 5 0xV`, `... exception 8, tval V` | Dromajo: hart 0 in mode 3 |

use crate::text::{HighHalf, decimal, hex, hex8};
use crate::{LineErrorKind, LineErrorKind as Kind};
use hartrace_flow::{Cause, Mode, RegId, Signal};

/// What follows `debugger` in a line.
pub(super) const DEBUGGER_HALTED: &[u8] = b"halted";
pub(super) const DEBUGGER_RESUMED: &[u8] = b"resumed";
pub(super) const DEBUGGER_WROTE: &[u8] = b"wrote";

/// What a line says that is no commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An instruction is about to execute; `narrow`: XLEN is 32.
    Listed { pc: u64, bits: u32, narrow: bool },
    /// The same, and it is the first of a handler.
    Interrupted { pc: u64 },
    /// An instruction trapped.
    Trapped { pc: u64, bits: u32, cause: Cause },
    /// A register that an earlier instruction has written.
    Late(RegId, u64),
    /// A trap was taken; the mode where the name gives it.
    Trap {
        epc: u64,
        cause: Cause,
        mode: Option<Mode>,
    },
    /// The value of the trap before.
    Tval(u64),
    /// The instruction listed before executed so many times in all.
    Executed(u64),
    /// A debugger halted the hart, changed something, or let it run on; what it
    /// changed is the rest of the line.
    Debugger(Signal),
    /// Nothing about the hart.
    Remark,
}

/// A place in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    len: usize,
    /// It is the line of a handler's first instruction.
    interrupt: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a [u8]) -> Cursor<'a> {
        Cursor {
            rest: line,
            len: line.len(),
            interrupt: false,
        }
    }

    /// Bytes passed so far.
    pub(super) fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Skips `text` if it is next.
    #[inline]
    pub(super) fn eat(&mut self, text: &[u8]) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return false;
        };
        self.rest = rest;
        true
    }

    #[inline]
    pub(super) fn spaces(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// `0x` and hexadecimal digits: the value of the last sixteen, and how
    /// many there are.
    #[inline]
    pub(super) fn hex(&mut self) -> Option<(u64, usize)> {
        let text = self.rest.strip_prefix(b"0x")?;
        let ends = |rest: &[u8]| !rest.first().is_some_and(u8::is_ascii_hexdigit);
        if let Some((digits, rest)) = text.split_first_chunk::<8>()
            && let Some(high) = hex8(*digits)
        {
            if ends(rest) {
                self.rest = rest;
                return Some((u64::from(high), 8));
            }
            if let Some((digits, rest)) = rest.split_first_chunk::<8>()
                && let Some(low) = hex8(*digits)
                && ends(rest)
            {
                self.rest = rest;
                return Some((u64::from(high) << 32 | u64::from(low), 16));
            }
        }
        let len = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let (digits, rest) = text.split_at_checked(len)?;
        let value = hex(digits.get(len.saturating_sub(16)..)?)?;
        self.rest = rest;
        Some((value, len))
    }

    /// Decimal digits, at most nine.
    #[inline]
    pub(super) fn small(&mut self) -> Option<u32> {
        let mut value = 0;
        let mut rest = self.rest;
        let mut digits = 0;
        while let [digit @ b'0'..=b'9', behind @ ..] = rest {
            digits += 1;
            if digits > 9 {
                return None;
            }
            value = value * 10 + u32::from(digit - b'0');
            rest = behind;
        }
        if digits == 0 {
            return None;
        }
        self.rest = rest;
        Some(value)
    }

    /// Whose line it is: `core`, the hart's number and `: `. Without `core`
    /// (`true`) it is a commit of another tool, with or without the number.
    #[inline]
    pub(super) fn core(&mut self) -> Result<(u32, bool), LineErrorKind> {
        // One hart up to 9 is the usual case.
        if let Some((&[b'c', b'o', b'r', b'e', b' ', b' ', b' ', digit, b':', b' '], rest)) =
            self.rest.split_first_chunk::<10>()
            && digit.is_ascii_digit()
        {
            self.rest = rest;
            return Ok((u32::from(digit - b'0'), false));
        }
        if self.is_bare() {
            return Ok((0, true));
        }
        self.other_core()
    }

    /// A mode and a pc.
    #[inline]
    const fn is_bare(&self) -> bool {
        matches!(self.rest, [b'0'..=b'7', b' ', b'0', b'x', ..])
    }

    #[cold]
    fn other_core(&mut self) -> Result<(u32, bool), LineErrorKind> {
        if self.eat(b"core") {
            self.spaces();
            self.interrupt = self.eat(b"INTERRUPT ");
            let id = self.small().ok_or(Kind::Core)?;
            return match self.eat(b": ") {
                true => Ok((id, false)),
                false => Err(Kind::Core),
            };
        }
        let mut ahead = *self;
        ahead.spaces();
        if let Some(id) = ahead.small()
            && ahead.eat(b" ")
            && ahead.is_bare()
        {
            *self = ahead;
            return Ok((id, true));
        }
        let late = matches!(self.rest, [b'x' | b'f', b' ' | b'0'..=b'9', ..]);
        match late || contains(self.rest, EXCEPTION_AT) {
            true => Ok((0, true)),
            false => Err(Kind::Core),
        }
    }

    /// The mode that the line of a commit has after the hart's number: an instruction
    /// retired. Its code is next ([`Cursor::code`]), and then its effects.
    #[inline(always)]
    pub(super) fn committed(&mut self, bare: bool) -> Result<Option<Mode>, LineErrorKind> {
        let [digit, b' ', b'0', ..] = *self.rest else {
            return Ok(None);
        };
        let mode = match digit {
            b'0' => Mode::U,
            b'1' => Mode::S,
            b'3' => Mode::M,
            b'4'..=b'7' if bare => Mode::D,
            _ => return Err(Kind::Privilege),
        };
        self.rest = self.rest.get(2..).unwrap_or_default();
        Ok(Some(mode))
    }

    /// What any other line says after the hart's number.
    #[inline]
    pub(super) fn form(&mut self, bare: bool) -> Result<Form, LineErrorKind> {
        match *self.rest {
            [b'0', b'x', ..] => {
                let (pc, bits, narrow) = self.listed_code()?;
                Ok(match self.interrupt {
                    true => Form::Interrupted { pc },
                    false => Form::Listed { pc, bits, narrow },
                })
            }
            _ if bare => self.bare_form(),
            _ => self.rare_form(),
        }
    }

    /// `0xPC (0xINSN)`; and whether XLEN is 32. `high` is of the line before. Inlined, since a
    /// result of this size would go through memory, where it is read before it has arrived.
    #[inline(always)]
    pub(super) fn code(&mut self, high: &mut HighHalf) -> Result<(u64, u32, bool), LineErrorKind> {
        let (pc, narrow) = if let Some((&[b'0', b'x', digits @ .., b' ', b'('], rest)) =
            self.rest.split_first_chunk::<20>()
            && let Some(pc) = high.hex16(&digits)
        {
            self.rest = rest;
            (pc, false)
        } else {
            let (pc, digits) = self.hex().ok_or(Kind::Hex)?;
            let narrow = match digits {
                8 => true,
                16 => false,
                _ => return Err(Kind::Hex),
            };
            if !self.eat(b" (") {
                return Err(Kind::Instruction);
            }
            (pc, narrow)
        };
        let bits = match *self.rest {
            // Compressed instructions have four digits.
            [b'0', b'x', a, b, c, d, b')', ref rest @ ..] => {
                let bits = hex8([b'0', b'0', b'0', b'0', a, b, c, d]);
                let bits = bits.ok_or(Kind::Instruction)?;
                self.rest = rest;
                u64::from(bits)
            }
            _ => self.wide_bits().ok_or(Kind::Instruction)?,
        };
        // The length is in the low bits, whatever number of digits; of a long
        // instruction the first 32 bits count.
        let bits = if bits & 3 == 3 {
            bits as u32
        } else {
            bits as u32 & 0xffff
        };
        Ok((pc, bits, narrow))
    }

    /// The bits of an instruction that is not compressed, and what closes them.
    #[inline(always)]
    fn wide_bits(&mut self) -> Option<u64> {
        if let Some((&[b'0', b'x', digits @ .., b')'], rest)) = self.rest.split_first_chunk::<11>()
            && let Some(bits) = hex8(digits)
        {
            self.rest = rest;
            return Some(bits.into());
        }
        let (bits, _) = self.hex()?;
        self.eat(b")").then_some(bits)
    }

    /// The same in a line that is no commit.
    #[inline(never)]
    fn listed_code(&mut self) -> Result<(u64, u32, bool), LineErrorKind> {
        self.code(&mut HighHalf::default())
    }

    /// What only cores write.
    #[cold]
    fn bare_form(&mut self) -> Result<Form, LineErrorKind> {
        if let [kind @ (b'x' | b'f'), rest @ ..] = self.rest {
            self.rest = rest;
            let (reg, _) = self.register(*kind == b'x').ok_or(Kind::Effect)?;
            let (value, _) = self.hex().ok_or(Kind::Effect)?;
            return self.ended(Form::Late(reg, value));
        }
        let len = self.rest.iter().take_while(|&&b| b != b' ').count();
        let (name, rest) = self.rest.split_at_checked(len).ok_or(Kind::SpikeForm)?;
        let cause = CVA6_TRAPS.iter().find(|trap| trap.0 == name);
        let &(_, code) = cause.ok_or(Kind::TrapName)?;
        self.rest = rest;
        if !self.eat(EXCEPTION_AT) {
            return Err(Kind::SpikeForm);
        }
        let (pc, bits, _) = self.listed_code()?;
        let cause = Cause::Exception(Some(code));
        self.ended(Form::Trapped { pc, bits, cause })
    }

    /// The number of a register after its letter; whether its value comes later
    /// (`p` and the number again).
    #[inline]
    pub(super) fn register(&mut self, integer: bool) -> Option<(RegId, bool)> {
        self.spaces();
        let number = self.small().filter(|&n| n < 32)? as u8;
        self.spaces();
        let late = self.eat(b"p");
        if late {
            self.spaces();
            self.small()?;
            self.spaces();
        }
        let reg = if integer {
            RegId::X(number)
        } else {
            RegId::F(number)
        };
        Some((reg, late))
    }

    #[cold]
    fn rare_form(&mut self) -> Result<Form, LineErrorKind> {
        if self.eat(b"exception ") {
            return self.trap();
        }
        if self.rest.starts_with(b">>>>") || self.rest.starts_with(b"trigger action ") {
            return Ok(Form::Remark);
        }
        if self.eat(b"debugger ") {
            return self.debugger().map(Form::Debugger).ok_or(Kind::SpikeForm);
        }
        if self.eat(b"Executed ") {
            let count = self.rest.strip_suffix(b" times").and_then(decimal);
            return count.map(Form::Executed).ok_or(Kind::Decimal);
        }
        self.spaces();
        if self.eat(b"tval ") {
            let (value, _) = self.hex().ok_or(Kind::Hex)?;
            return self.ended(Form::Tval(value));
        }
        Err(Kind::SpikeForm)
    }

    fn debugger(&mut self) -> Option<Signal> {
        let signals = [
            (DEBUGGER_HALTED, Signal::Halted),
            (DEBUGGER_RESUMED, Signal::Resumed),
            (DEBUGGER_WROTE, Signal::Update),
        ];
        let found = signals
            .iter()
            .find(|(word, _)| self.rest.starts_with(word))?;
        self.eat(found.0);
        Some(found.1)
    }

    fn trap(&mut self) -> Result<Form, LineErrorKind> {
        let len = self.rest.iter().take_while(|&&b| b != b',').count();
        let (name, rest) = self.rest.split_at_checked(len).ok_or(Kind::TrapName)?;
        let (cause, mode) = trap_named(name).ok_or(Kind::TrapName)?;
        self.rest = rest;
        if !self.eat(b", epc ") {
            return Err(Kind::Hex);
        }
        let (epc, _) = self.hex().ok_or(Kind::Hex)?;
        self.ended(Form::Trap { epc, cause, mode })
    }

    fn ended(&self, form: Form) -> Result<Form, LineErrorKind> {
        if self.rest.is_empty() {
            Ok(form)
        } else {
            Err(Kind::TrailingText)
        }
    }
}

const EXCEPTION_AT: &[u8] = b" exception @ ";

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// CVA6's names of the exceptions.
const CVA6_TRAPS: [(&[u8], u32); 14] = [
    (b"INSTR_ADDR_MISALIGNED", 0),
    (b"INSTR_ACCESS_FAULT", 1),
    (b"ILLEGAL_INSTR", 2),
    (b"BREAKPOINT", 3),
    (b"LD_ADDR_MISALIGNED", 4),
    (b"LD_ACCESS_FAULT", 5),
    (b"ST_ADDR_MISALIGNED", 6),
    (b"ST_ACCESS_FAULT", 7),
    (b"ENV_CALL_UMODE", 8),
    (b"ENV_CALL_SMODE", 9),
    (b"ENV_CALL_MMODE", 11),
    (b"INSTR_PAGE_FAULT", 12),
    (b"LOAD_PAGE_FAULT", 13),
    (b"STORE_PAGE_FAULT", 15),
];

/// Spike's names of the exceptions and their codes in xcause.
pub(super) const TRAPS: [(&[u8], u32); 24] = [
    (b"instruction_address_misaligned", 0),
    (b"instruction_access_fault", 1),
    (b"illegal_instruction", 2),
    (b"breakpoint", 3),
    (b"load_address_misaligned", 4),
    (b"load_access_fault", 5),
    (b"store_address_misaligned", 6),
    (b"store_access_fault", 7),
    (b"user_ecall", 8),
    (b"supervisor_ecall", 9),
    (b"virtual_supervisor_ecall", 10),
    (b"machine_ecall", 11),
    (b"instruction_page_fault", 12),
    (b"load_page_fault", 13),
    (b"store_page_fault", 15),
    (b"double_trap", 16),
    (b"software_check", 18),
    (b"instruction_guest_page_fault", 20),
    (b"load_guest_page_fault", 21),
    (b"virtual_instruction", 22),
    (b"store_guest_page_fault", 23),
    // Names of older and newer versions.
    (b"hypervisor_ecall", 9),
    (b"software_check_fault", 18),
    (b"hardware_error", 19),
];

/// The cause of a trap's name, and the mode it was taken in if the name
/// shows it. `interrupt #N` and `trap #N` are traps without a name.
fn trap_named(name: &[u8]) -> Option<(Cause, Option<Mode>)> {
    let code = |digits: &[u8]| decimal(digits).and_then(|n| u32::try_from(n).ok());
    if let Some(number) = name.strip_prefix(b"interrupt #") {
        return Some((Cause::Interrupt(Some(code(number)?)), None));
    }
    if let Some(number) = name.strip_prefix(b"trap #") {
        return Some((Cause::Exception(Some(code(number)?)), None));
    }
    let name = name.strip_prefix(b"trap_")?;
    let &(_, code) = TRAPS.iter().find(|t| t.0 == name)?;
    let mode = match code {
        8 => Some(Mode::U),
        9 => Some(Mode::S),
        10 => Some(Mode::VS),
        11 => Some(Mode::M),
        _ => None,
    };
    Some((Cause::Exception(Some(code)), mode))
}
