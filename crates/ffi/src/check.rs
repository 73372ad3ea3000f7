//! The handle of a checker, in safe Rust.

use crate::handle::Handle;
use crate::types::{self, *};
use crate::{describe, settings};
use hartrace_capture::program::Elf;
use hartrace_cosim::{CheckOptions, Checker, Finding};
use hartrace_flow::{Cause, RegId};
use hartrace_isa::{Xlen, csr};
use hartrace_logs::{Entry, EntryTrap, Rvfi, RvfiMemory};
use hartrace_tandem::verify::Field;
use std::path::Path;

/// Registers that one retirement can write at most: what an entry has room for.
const MOST_WRITES: usize = 32;

/// A core being checked.
pub struct Check {
    /// The checker, or why there is none.
    pub handle: Handle<Checker>,
    /// Filled anew by each retirement.
    entry: Entry,
    /// The number of the last retirement.
    order: Option<u64>,
}

/// What a checker is made of, with its pointers read.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckSetup<'a> {
    /// As in the header.
    pub hart: u32,
    /// As in the header.
    pub reports: u32,
    /// Settings.
    pub config: Option<&'a str>,
    /// A file with settings.
    pub config_file: Option<&'a str>,
    /// A program.
    pub elf_file: Option<&'a str>,
    /// A program in memory.
    pub elf: Option<&'a [u8]>,
}

impl CheckSetup<'_> {
    fn build(&self) -> Result<Checker, String> {
        let config = settings(self.config_file, self.config)?;
        let mut elf = Vec::new();
        if let Some(bytes) = self.elf {
            elf.push(Elf::from_bytes(Path::new("program"), bytes.to_vec()).map_err(describe)?);
        }
        if let Some(file) = self.elf_file {
            let file = hartrace_capture::program::ElfFile {
                file: file.into(),
                base: None,
                identity: None,
            };
            elf.push(Elf::read(&file).map_err(describe)?);
        }
        let reports = match self.reports {
            0 => HARTRACE_RVFI,
            reports => reports,
        };
        let has = |bit| reports & bit != 0;
        let options = CheckOptions {
            hart: self.hart,
            registers: has(HARTRACE_HAS_RD),
            floats: has(HARTRACE_HAS_FLOATS),
            csrs: has(HARTRACE_HAS_CSRS),
            memory: has(HARTRACE_HAS_MEM),
            modes: has(HARTRACE_HAS_MODE),
            interrupts: has(HARTRACE_HAS_INTR),
        };
        // What the instruction set is assumed to be is in the guide.
        Checker::new(config, elf, options, &mut |_| {}).map_err(describe)
    }
}

impl Check {
    /// A checker, or one that only knows why it cannot check anything.
    #[must_use]
    pub fn new(setup: &CheckSetup<'_>) -> Check {
        Check::of(Handle::new(setup.build()))
    }

    /// A handle that is used no more, because of a fault in the library.
    #[must_use]
    pub fn poisoned() -> Check {
        Check::of(Handle::poisoned())
    }

    fn of(handle: Handle<Checker>) -> Check {
        Check {
            handle,
            entry: Entry::default(),
            order: None,
        }
    }

    /// Whether it can be used, and stands at no difference.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.handle.get() {
            Ok(checker) if checker.finding().is_some() => HARTRACE_DIFFERENCE,
            _ => self.handle.status(),
        }
    }

    /// An instruction of the core.
    #[inline]
    pub fn retire(&mut self, retired: &Retired, writes: &[Write]) -> Status {
        let checker = match self.handle.get_mut() {
            Ok(checker) => checker,
            Err(status) => return status,
        };
        let has = |bit: u32| retired.valid & bit != 0;
        if has(HARTRACE_HAS_ORDER) {
            let last = self.order.replace(retired.order);
            if let Some(last) = last.filter(|last| last.wrapping_add(1) != retired.order) {
                self.order = Some(last);
                return self.out_of_order(last, retired.order);
            }
        }
        let xlen = checker.isa().xlen();
        if writes.is_empty() && checker.agrees(self.entry.hart, &rvfi(retired, xlen)) {
            return HARTRACE_OK;
        }
        fill(&mut self.entry, retired, xlen);
        if !writes.is_empty() && !add(&mut self.entry, writes) {
            return self.handle.say(HARTRACE_ARGUMENT, WRONG_WRITE);
        }
        if self.entry.trap.is_some() && !writes.is_empty() {
            add_trap_csrs(&mut self.entry, checker.isa().xlen());
        }
        match checker.retire(&mut self.entry) {
            Ok(None) => HARTRACE_OK,
            Ok(Some(finding)) => {
                let text = finding.text.clone();
                self.handle.say(HARTRACE_DIFFERENCE, &text)
            }
            Err(error) => self.handle.say(HARTRACE_ARGUMENT, &error.to_string()),
        }
    }

    /// How many of these instructions agree in the simplest way, before the first that does
    /// not: that one has to be given to [`Check::retire`] next.
    pub fn pass(&mut self, retired: &[Retired]) -> usize {
        let Ok(checker) = self.handle.get_mut() else {
            return 0;
        };
        let (xlen, mut last) = (checker.isa().xlen(), self.order);
        let row = retired.iter().map_while(|retired| {
            let ordered = retired.valid & HARTRACE_HAS_ORDER != 0;
            let follows = last.is_none_or(|last| last.wrapping_add(1) == retired.order);
            if ordered && follows {
                last = Some(retired.order);
            }
            (retired.write_count == 0 && (!ordered || follows)).then(|| rvfi(retired, xlen))
        });
        let passed = checker.agree(self.entry.hart, row);
        let orders = retired.get(..passed).unwrap_or_default().iter().rev();
        let ordered = |retired: &&Retired| retired.valid & HARTRACE_HAS_ORDER != 0;
        if let Some(retired) = { orders }.find(ordered) {
            self.order = Some(retired.order);
        }
        passed
    }

    #[cold]
    fn out_of_order(&mut self, last: u64, order: u64) -> Status {
        let why = format!("the retirement with order {order} follows the one with order {last}");
        self.handle.say(HARTRACE_ORDER, &why)
    }

    /// The core was reset.
    pub fn reset(&mut self) -> Status {
        self.order = None;
        self.with(|checker| checker.reset().map(|finding| finding.text.clone()))
    }

    /// Nothing follows.
    pub fn finish(&mut self) -> Status {
        self.with(|checker| checker.finish().map(|finding| finding.text.clone()))
    }

    /// Goes on after a difference.
    pub fn go_on(&mut self) -> Status {
        self.handle.say(HARTRACE_OK, "");
        self.with(|checker| {
            checker.go_on();
            None
        })
    }

    fn with(&mut self, work: impl FnOnce(&mut Checker) -> Option<String>) -> Status {
        match self.handle.get_mut().map(work) {
            Ok(None) => HARTRACE_OK,
            Ok(Some(text)) => self.handle.say(HARTRACE_DIFFERENCE, &text),
            Err(status) => status,
        }
    }

    /// One of the values that differ.
    #[must_use]
    pub fn difference(&self, index: usize) -> Option<Difference> {
        difference(self.handle.get().ok()?.finding()?, index)
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            size: size_of::<Counts>() as u32,
            ..Counts::default()
        };
        if let Ok(checker) = self.handle.get() {
            let counters = checker.counters();
            counts.retired = counters.retired;
            counts.exceptions = counters.exceptions;
            counts.interrupts = counters.interrupts;
            counts.compared = counters.compared.iter().sum();
        }
        counts
    }
}

const WRONG_WRITE: &str = "a write of a register that does not exist, or too many";

/// The signals that a retirement has.
#[inline(always)]
fn rvfi(retired: &Retired, xlen: Xlen) -> Rvfi {
    let has = |bit: u32| retired.valid & bit != 0;
    Rvfi {
        insn: retired.insn,
        trap: retired.trap != 0,
        intr: retired.intr != 0 && has(HARTRACE_HAS_INTR),
        mode: has(HARTRACE_HAS_MODE).then_some(retired.mode),
        // Another width than the hart's would be a width of user mode, which it has not.
        ixl: None,
        pc_rdata: xlen.wrap(retired.pc_rdata),
        pc_wdata: has(HARTRACE_HAS_PC_WDATA).then_some(xlen.wrap(retired.pc_wdata)),
        rd: has(HARTRACE_HAS_RD).then_some((retired.rd_addr, xlen.wrap(retired.rd_wdata))),
        memory: has(HARTRACE_HAS_MEM).then_some(RvfiMemory {
            addr: xlen.wrap(retired.mem_addr),
            rmask: retired.mem_rmask,
            wmask: retired.mem_wmask,
            rdata: retired.mem_rdata,
            wdata: retired.mem_wdata,
        }),
    }
}

/// Makes an entry of a retirement.
#[cold]
fn fill(entry: &mut Entry, retired: &Retired, xlen: Xlen) {
    let has = |bit: u32| retired.valid & bit != 0;
    let rvfi = rvfi(retired, xlen);
    rvfi.fill(entry);
    if has(HARTRACE_HAS_CAUSE | HARTRACE_HAS_TVAL) && (rvfi.trap || rvfi.intr) {
        let cause = has(HARTRACE_HAS_CAUSE).then_some(retired.cause);
        let tval = has(HARTRACE_HAS_TVAL).then_some(retired.tval);
        add_cause(entry, (cause, tval), xlen);
    }
}

/// What a core reports about a trap: xcause and xtval.
#[cold]
fn add_cause(entry: &mut Entry, (cause, tval): (Option<u64>, Option<u64>), xlen: Xlen) {
    let top = xlen.bits() - 1;
    let interrupt = cause.is_some_and(|cause| cause >> top & 1 != 0);
    let code = cause.map(|cause| (cause & !(1 << top)) as u32);
    if let Some(trap) = &mut entry.trap {
        *trap = EntryTrap {
            cause: match interrupt {
                true => Cause::Interrupt(code),
                false => Cause::Exception(code),
            },
            tval: tval.map(|tval| xlen.wrap(tval)),
        };
    }
    if entry.handler.is_some() && interrupt {
        entry.handler = Some(Cause::Interrupt(code));
    }
}

/// The CSRs that a trap has written say what it was.
#[cold]
fn add_trap_csrs(entry: &mut Entry, xlen: Xlen) {
    let csr = |numbers: [u16; 2]| {
        let mut writes = entry.csrs.iter();
        writes.find_map(|write| numbers.contains(&write.csr).then_some(write.value))
    };
    let cause = csr([csr::MCAUSE, csr::SCAUSE]);
    let tval = csr([csr::MTVAL, csr::STVAL]);
    if cause.is_some() {
        add_cause(entry, (cause, tval), xlen);
    }
}

/// Adds further writes; not if one of them cannot be.
#[inline(never)]
fn add(entry: &mut Entry, writes: &[Write]) -> bool {
    if writes.len() > MOST_WRITES {
        return false;
    }
    for write in writes {
        let number = write.number;
        match write.kind {
            HARTRACE_X if number < 32 => entry.reg(RegId::X(number as u8), write.value),
            HARTRACE_F if number < 32 => entry.reg(RegId::F(number as u8), write.value),
            HARTRACE_CSR if number < 0x1000 => entry.csr(number as u16, write.value),
            _ => return false,
        }
    }
    !entry.incomplete
}

/// One of the values that differ, by its number.
fn difference(finding: &Finding, index: usize) -> Option<types::Difference> {
    let found = finding.differences.get(index)?;
    let (field, number) = match found.field {
        Field::Insn => (HARTRACE_FIELD_INSN, 0),
        Field::Pc => (HARTRACE_FIELD_PC, 0),
        Field::Mode => (HARTRACE_FIELD_MODE, 0),
        Field::Register(register) => match (register.as_reg(), register.as_csr()) {
            (Some(RegId::X(number)), _) => (HARTRACE_FIELD_X, number.into()),
            (Some(RegId::F(number)), _) => (HARTRACE_FIELD_F, number.into()),
            (None, csr) => (HARTRACE_FIELD_CSR, csr.unwrap_or(0).into()),
        },
        Field::LoadAddress => (HARTRACE_FIELD_LOAD_ADDRESS, 0),
        Field::StoreAddress => (HARTRACE_FIELD_STORE_ADDRESS, 0),
        Field::StoreSize => (HARTRACE_FIELD_STORE_SIZE, 0),
        Field::StoreData => (HARTRACE_FIELD_STORE_DATA, 0),
        Field::Interrupt => (HARTRACE_FIELD_INTERRUPT, 0),
        Field::Handler => (HARTRACE_FIELD_HANDLER, 0),
    };
    Some(types::Difference {
        size: size_of::<types::Difference>() as u32,
        field,
        number,
        has_expected: found.expected.is_some().into(),
        has_actual: found.actual.is_some().into(),
        has_insn: finding.bits.is_some().into(),
        reserved: 0,
        expected: found.expected.unwrap_or(0),
        actual: found.actual.unwrap_or(0),
        index: finding.insn,
        pc: finding.pc,
        insn: finding.bits.unwrap_or(0),
        count: finding.differences.len() as u32,
    })
}
