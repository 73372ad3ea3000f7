//! The trace of the Sail model:
//!
//! ```text
//! [12] [M]: 0x0000000080000000 (0x00000297) auipc t0, 0x0
//! x5 <- 0x0000000080000000
//! CSR mstatus (0x300) <- 0x0000000A00001800
//! mem[R,0x0000000080001000] -> 0x12345678
//! handling exc#m-call at priv M with tval 0x0000000000000000
//! ```
//!
//! What follows an instruction belongs to it, up to the next one. A trap is recorded by
//! the line `handling` and by the CSRs that it writes; either is enough. Everything else
//! is passed over.

use super::{Entries, Grammar};
use crate::LineErrorKind as Kind;
use crate::entry::{EntryAccess, EntryTrap};
use crate::scan::{Fault, Name, Scan, cause_of, mode_named, register};
use crate::text::prefixed_hex;
use hartrace_flow::Cause;
use hartrace_isa::{MRET, SRET, Xlen, csr};

#[derive(Default)]
pub(super) struct Sail {
    /// There is an instruction that has not been given.
    open: bool,
    narrow: bool,
    trap: Option<EntryTrap>,
    /// Where the trap was taken, as its CSR says.
    epc: Option<u64>,
    /// The next instruction is the first of the handler of this trap.
    handler: Option<Cause>,
}

pub(super) fn is_line(line: &[u8]) -> bool {
    instruction(&mut Scan::new(line)).is_ok()
}

struct Instruction<'a> {
    mode: &'a [u8],
    pc: u64,
    bits: u64,
    narrow: bool,
}

fn instruction<'a>(scan: &mut Scan<'a>) -> Result<Instruction<'a>, Fault> {
    const STEP: &str = "a step number as `[12]`";
    const MODE: &str = "a mode as `[M]:`";
    scan.need(b"[", STEP)?;
    scan.count(STEP)?;
    scan.need(b"] [", MODE)?;
    let mode = scan.until(|b| b == b']');
    scan.need(b"]: 0x", "a pc in hexadecimal")?;
    let digits = scan.rest.iter().take_while(|b| b.is_ascii_hexdigit());
    let narrow = digits.count() <= 8;
    let pc = scan.digits("a pc in hexadecimal")?;
    scan.need(b" (0x", "an instruction as `(0x...)`")?;
    let bits = scan.digits("an instruction as `(0x...)`")?;
    scan.need(b")", "an instruction as `(0x...)`")?;
    Ok(Instruction {
        mode,
        pc,
        bits,
        narrow,
    })
}

impl Grammar for Sail {
    fn line(&mut self, line: &[u8], to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let mut scan = Scan::new(line);
        if matches!(line, [b'[', b'0'..=b'9', ..]) {
            let read = instruction(&mut scan)?;
            let Some(mode) = mode_named(read.mode) else {
                return Err((Kind::Expected("a mode: M, S, U, VS or VU"), 0));
            };
            self.give(to)?;
            self.narrow = read.narrow;
            let entry = to.begin(read.pc, Some(read.bits as u32));
            entry.mode = Some(mode);
            entry.xlen = Some(if read.narrow { Xlen::Rv32 } else { Xlen::Rv64 });
            entry.handler = self.handler.take();
            self.open = true;
            return Ok(());
        }
        if scan.eat(b"mem[") {
            return self.memory(&mut scan, to);
        }
        if scan.eat(b"CSR ") {
            return self.csr(&mut scan, to);
        }
        if scan.eat(b"handling ") {
            return self.handling(&mut scan);
        }
        let name = scan.word();
        scan.spaces();
        match register(name) {
            Some(name) if scan.eat(b"<- ") && self.open => {
                scan.need(b"0x", "a value in hexadecimal")?;
                let wide = scan.rest.len() > 16;
                let value = scan.digits("a value in hexadecimal")?;
                match name {
                    Name::Reg(reg) if !wide => to.entry.reg(reg, value),
                    _ => to.entry.incomplete = true,
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        self.give(to)
    }
}

impl Sail {
    /// `R,0x...] -> 0x...`, `W,0x...] <- 0x...`; without the letter as earlier versions
    /// wrote it.
    fn memory(&self, scan: &mut Scan<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let kind = match scan.rest.starts_with(b"0x") {
            true => &b""[..],
            false => scan.until(|b| b == b','),
        };
        scan.eat(b",");
        scan.need(b"0x", "an address as `mem[R,0x...]`")?;
        let addr = scan.digits("an address as `mem[R,0x...]`")?;
        scan.need(b"] ", "`] ->` or `] <-`")?;
        let store = scan.eat(b"<- 0x");
        if !store {
            scan.need(b"-> 0x", "`->` or `<-` and a value")?;
        }
        let digits = scan.rest.len();
        let data = scan.digits("a value in hexadecimal")?;
        // Fetches, and the walks of page tables, are not accesses of the instruction.
        if !self.open || kind.contains(&b'X') || kind.contains(&b'P') {
            return Ok(());
        }
        let size = digits.next_power_of_two().ilog2().saturating_sub(1) as u8;
        to.entry.access(EntryAccess {
            store,
            addr,
            paddr: Some(addr),
            size: Some(size),
            data: Some(data).filter(|_| digits <= 16),
        });
        Ok(())
    }

    fn csr(&mut self, scan: &mut Scan<'_>, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let at = scan.at();
        let name = scan.word();
        scan.spaces();
        let number = match scan.eat(b"(0x") {
            true => {
                let number = scan.digits("a CSR number as `(0x300)`")?;
                scan.need(b") ", "`<-` and a value")?;
                Some(number as u16 & 0xfff)
            }
            false => core::str::from_utf8(name).ok().and_then(csr::number),
        };
        if scan.eat(b"-> ") {
            return Ok(());
        }
        scan.need(b"<- 0x", "`<-` and a value")?;
        let value = scan.digits("a value in hexadecimal")?;
        let Some(number) = number else {
            return Err((Kind::Expected("the name of a CSR"), at));
        };
        let instruction = to.entry.bits.unwrap_or_default();
        let csr = instruction & 0x7f == 0x73 && instruction >> 12 & 3 != 0;
        let writes = csr && instruction >> 20 == u32::from(number);
        match number {
            // Not written by an instruction: a trap is taken.
            csr::MCAUSE | csr::SCAUSE if !writes => {
                let cause = cause_of(value, self.narrow);
                let tval = self.trap.and_then(|trap| trap.tval);
                self.trap = Some(EntryTrap { cause, tval });
            }
            csr::MTVAL | csr::STVAL if !writes => {
                if let Some(trap) = &mut self.trap {
                    trap.tval = Some(value);
                }
            }
            csr::MEPC | csr::SEPC if !writes => self.epc = Some(value),
            _ if self.open && self.trap.is_none() => to.entry.csr(number, value),
            _ => {}
        }
        Ok(())
    }

    /// `exc#m-call at priv M with tval 0x...`, `int#machine-timer-interrupt at ...`
    fn handling(&mut self, scan: &mut Scan<'_>) -> Result<(), Fault> {
        let interrupt = scan.eat(b"int#");
        if !interrupt {
            scan.need(b"exc#", "`exc#` or `int#` and a name")?;
        }
        let end = b" at priv ";
        let len = scan.rest.windows(end.len()).position(|w| w == end);
        let Some(len) = len else {
            return scan.expected("`at priv` after the name of the trap");
        };
        let name = scan.rest.get(..len).unwrap_or_default();
        let names = if interrupt {
            &INTERRUPTS[..]
        } else {
            &EXCEPTIONS
        };
        let code = names.iter().find(|named| named.0 == name);
        let code = code.map(|named| named.1);
        let cause = match interrupt {
            true => Cause::Interrupt(code),
            false => Cause::Exception(code),
        };
        let tval = scan.rest.rsplit(|&b| b == b' ').next();
        let tval = tval.and_then(prefixed_hex);
        // The CSRs say the same, and know every cause.
        self.trap.get_or_insert(EntryTrap { cause, tval });
        Ok(())
    }

    /// Gives the instruction whose lines have been read, and its trap.
    fn give(&mut self, to: &mut Entries<'_, '_, '_, '_>) -> Result<(), Fault> {
        let (trap, epc) = (self.trap.take(), self.epc.take());
        let open = core::mem::take(&mut self.open);
        let Some(trap) = trap else {
            return if open { to.give() } else { Ok(()) };
        };
        let fetch = matches!(
            trap.cause,
            Cause::Interrupt(_) | Cause::Exception(Some(1 | 12 | 20))
        );
        let own = open && !fetch && epc.unwrap_or(to.entry.pc) == to.entry.pc;
        if own {
            to.entry.trap = Some(trap);
            return to.give();
        }
        if open {
            to.give()?;
        }
        match epc {
            Some(epc) => {
                let (mode, xlen) = (to.entry.mode, to.entry.xlen);
                let follows = to.entry.bits.is_some_and(|bits| !is_return(bits));
                let entry = to.begin(epc, None);
                // A return may have changed it.
                (entry.mode, entry.xlen) = (mode.filter(|_| follows), xlen);
                entry.trap = Some(trap);
                to.give()
            }
            None => {
                self.handler = Some(trap.cause);
                Ok(())
            }
        }
    }
}

/// mret and sret.
const fn is_return(bits: u32) -> bool {
    matches!(bits, MRET | SRET)
}

const EXCEPTIONS: [(&[u8], u32); 22] = [
    (b"misaligned-fetch", 0),
    (b"fetch-access-fault", 1),
    (b"illegal-instruction", 2),
    (b"software-breakpoint", 3),
    (b"hardware-breakpoint", 3),
    (b"breakpoint", 3),
    (b"misaligned-load", 4),
    (b"load-access-fault", 5),
    (b"misaligned-store/amo", 6),
    (b"store/amo-access-fault", 7),
    (b"u-call", 8),
    (b"s-call", 9),
    (b"vs-call", 10),
    (b"m-call", 11),
    (b"fetch-page-fault", 12),
    (b"load-page-fault", 13),
    (b"store/amo-page-fault", 15),
    (b"software-check-fault", 18),
    (b"fetch-guest-page-fault", 20),
    (b"load-guest-page-fault", 21),
    (b"virtual-instruction", 22),
    (b"store/amo-guest-page-fault", 23),
];

const INTERRUPTS: [(&[u8], u32); 9] = [
    (b"supervisor-software-interrupt", 1),
    (b"virtual-supervisor-software-interrupt", 2),
    (b"machine-software-interrupt", 3),
    (b"supervisor-timer-interrupt", 5),
    (b"virtual-supervisor-timer-interrupt", 6),
    (b"machine-timer-interrupt", 7),
    (b"supervisor-external-interrupt", 9),
    (b"virtual-supervisor-external-interrupt", 10),
    (b"machine-external-interrupt", 11),
];
