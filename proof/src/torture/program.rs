//! A program: what it is made of, section by section.

use hartrace_isa::{Ext, Isa, Xlen};

use super::code::{Code, GP, SP, TP};
use super::handler::{self, M_VECTORS, S_VECTORS, csr};
use super::layout;
use super::menu::{Class, Menu};
use super::values;
use crate::elf::{self, Segment};
use crate::generate::Random;
use crate::generate::asm::{ECALL, MRET};

/// What sections and the atoms in them are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Topic {
    Int,
    Float,
    Memory,
    Atomic,
    Flow,
    Csr,
    Trap,
    Mode,
    Interrupt,
    Paging,
    Pmp,
    Small,
    Cache,
}

impl Topic {
    /// All, with the name the command line has for each.
    pub const ALL: &[(&str, Topic)] = &[
        ("int", Topic::Int),
        ("float", Topic::Float),
        ("memory", Topic::Memory),
        ("atomic", Topic::Atomic),
        ("flow", Topic::Flow),
        ("csr", Topic::Csr),
        ("trap", Topic::Trap),
        ("mode", Topic::Mode),
        ("interrupt", Topic::Interrupt),
        ("paging", Topic::Paging),
        ("pmp", Topic::Pmp),
        ("small", Topic::Small),
        ("cache", Topic::Cache),
    ];

    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The privilege mode a piece of code is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Machine,
    Supervisor,
    User,
}

/// What program to make.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Which one.
    pub seed: u64,
    /// The instruction set, as a simulator wants it named.
    pub isa: String,
    /// Atoms: an instruction, or a few that belong together.
    pub length: u32,
    /// Topics, as a set of their bits; 0 is all.
    pub topics: u32,
}

/// A program being written.
pub(super) struct Torture {
    pub(super) code: Code,
    pub(super) random: Random,
    pub(super) menu: Menu,
    pub(super) isa: Isa,
    topics: u32,
    /// Registers that nothing may write now.
    pub(super) kept: u32,
    pub(super) mode: Mode,
    /// Whether translation is on for the mode.
    pub(super) paged: bool,
    /// Whether a loop runs, which needs tp.
    pub(super) looping: bool,
    /// Whether `wfi` traps in the mode; elsewhere it may wait for ever.
    pub(super) wait_traps: bool,
    /// Values to be stored at fixed places before the program starts.
    pub(super) image: Vec<Segment>,
}

impl Torture {
    fn new(spec: &Spec) -> Result<Torture, String> {
        let isa = Isa::parse(&spec.isa).map_err(|e| e.to_string())?;
        let all = Topic::ALL.iter().fold(0, |set, (_, t)| set | t.bit());
        let topics = if spec.topics == 0 { all } else { spec.topics };
        Ok(Torture {
            code: Code::new(layout::CODE, isa.xlen()),
            random: Random::new(spec.seed),
            menu: Menu::new(isa),
            isa,
            topics,
            kept: 1 << SP | 1 << GP | 1 << TP,
            mode: Mode::Machine,
            paged: false,
            looping: false,
            wait_traps: false,
            image: Vec::new(),
        })
    }

    pub(super) fn wants(&self, topic: Topic) -> bool {
        self.topics & topic.bit() != 0
    }

    pub(super) fn wide(&self) -> bool {
        self.isa.xlen() == Xlen::Rv64
    }

    pub(super) fn has(&self, ext: Ext) -> bool {
        self.isa.has(ext)
    }

    /// Whether an integer register may be written.
    pub(super) fn free(&self, reg: u32) -> bool {
        self.kept >> reg & 1 == 0
    }

    /// A register that may be written, not x0.
    pub(super) fn reg(&mut self) -> u32 {
        loop {
            let reg = self.random.between(1, 31);
            if self.free(reg) {
                return reg;
            }
        }
    }

    /// Another one than this.
    pub(super) fn reg_but(&mut self, other: u32) -> u32 {
        loop {
            let reg = self.reg();
            if reg != other {
                return reg;
            }
        }
    }

    /// Known state at the start of a section, in machine mode.
    fn settle(&mut self) {
        let code = &mut self.code;
        code.csr(7, 0, csr::MSTATUS, 8);
        // MPRV, SUM, MXR, TVM, TW, TSR.
        code.li(5, 0x007e_0000);
        code.csr(3, 0, csr::MSTATUS, 5);
        if self.isa.has(Ext::F) {
            code.li(5, 0x6000);
            code.csr(2, 0, csr::MSTATUS, 5);
        }
        for csr in [csr::SATP, csr::MIE, csr::MEDELEG, csr::MIDELEG] {
            code.csr(1, 0, csr, 0);
        }
        for (csr, at) in [(csr::MTVEC, M_VECTORS), (csr::STVEC, S_VECTORS)] {
            let vectored = self.random.below(2);
            self.code.la(5, at + vectored);
            self.code.csr(1, 0, csr, 5);
        }
        if self.isa.has(Ext::F) && self.random.chance(500) {
            self.code.csr(5, 0, 2, 0);
        }
    }

    /// Sets MPP and leaves machine mode for what follows.
    pub(super) fn enter(&mut self, mode: Mode) {
        let code = &mut self.code;
        code.li(5, 0x1800);
        code.csr(3, 0, csr::MSTATUS, 5);
        if mode == Mode::Supervisor {
            code.li(5, 0x800);
            code.csr(2, 0, csr::MSTATUS, 5);
        }
        // auipc and addi, then csrrw, then mret: 16 bytes.
        let target = code.pc() + 16;
        code.la(5, target);
        code.csr(1, 0, csr::MEPC, 5);
        code.put(MRET);
        self.mode = mode;
        // Users never wait; but one that a supervisor returns to may still be
        // the supervisor, when that return traps.
        self.wait_traps |= mode == Mode::User;
    }

    /// Back to machine mode, from any.
    pub(super) fn leave(&mut self) {
        if self.mode != Mode::Machine {
            self.code.put(ECALL);
            self.code.word(handler::MARKER);
        }
        self.mode = Mode::Machine;
        self.paged = false;
        self.wait_traps = false;
    }

    /// All sections.
    fn body(&mut self, length: u32) {
        let sections: Vec<(u32, Option<Topic>)> = [
            (12, None),
            (5, Some(Topic::Mode)),
            (1, Some(Topic::Interrupt)),
            (3, Some(Topic::Paging)),
            (1, Some(Topic::Pmp)),
        ]
        .into_iter()
        .filter(|(_, topic)| topic.is_none_or(|t| self.wants(t)))
        .collect();
        let mut left = length;
        while left > 0 && self.code.pc() < layout::CODE_END - 0x8000 {
            let atoms = self.random.between(10, 60).min(left);
            left -= atoms;
            self.settle();
            match self.random.weighted(&sections) {
                Some(Topic::Mode) => self.mode_section(atoms),
                Some(Topic::Interrupt) => self.interrupt_section(atoms / 8 + 1),
                Some(Topic::Paging) => self.paging_section(atoms / 2 + 1),
                Some(Topic::Pmp) => self.pmp_section(atoms / 2 + 1),
                _ => self.atoms(atoms),
            }
            self.leave();
        }
        self.settle();
        handler::write_success(&mut self.code);
    }

    /// So many atoms of the topics that any mode knows.
    pub(super) fn atoms(&mut self, count: u32) {
        for _ in 0..count {
            self.atom();
        }
    }

    /// One of them.
    pub(super) fn atom(&mut self) {
        let float = u32::from(self.has(Ext::F));
        let atomic = u32::from(self.has(Ext::Zaamo));
        let small = u32::from(self.has(Ext::Zcmp) || self.has(Ext::Zcmt));
        let cache = u32::from(self.menu.has(Class::Cache));
        let choice = [
            (30, Topic::Int),
            (30 * float, Topic::Float),
            (14, Topic::Memory),
            (8 * atomic, Topic::Atomic),
            (8, Topic::Flow),
            (8, Topic::Csr),
            (3, Topic::Trap),
            (3 * small, Topic::Small),
            (2 * cache, Topic::Cache),
        ]
        .map(|(weight, topic)| (weight * u32::from(self.wants(topic)), Some(topic)));
        match self.random.weighted(&choice) {
            Some(Topic::Float) => self.float_atom(),
            Some(Topic::Memory) => self.memory_atom(),
            Some(Topic::Atomic) => self.atomic_atom(),
            Some(Topic::Flow) => self.flow_atom(),
            Some(Topic::Csr) => self.csr_atom(),
            Some(Topic::Trap) => self.trap_atom(),
            Some(Topic::Small) => self.small_atom(),
            Some(Topic::Cache) => self.cache_atom(),
            _ => self.int_atom(),
        }
    }

    /// The bytes of the constants and of the data.
    fn fill_data(&mut self) {
        let pool = (0..layout::POOL_SIZE)
            .flat_map(|at| values::constant(&mut self.random, at).to_le_bytes())
            .collect();
        let data = (0..1024)
            .flat_map(|at| values::constant(&mut self.random, at % layout::POOL_SIZE).to_le_bytes())
            .collect();
        self.image.push(Segment {
            base: layout::POOL,
            bytes: pool,
        });
        self.image.push(Segment {
            base: layout::DATA,
            bytes: data,
        });
        self.image.push(Segment {
            base: layout::TOHOST,
            bytes: vec![0; 128],
        });
        // jalr x0, 0(ra), all over.
        let count = layout::RETURN_COUNT as usize * 1024;
        let returns = std::iter::repeat_n(0x0000_8067u32.to_le_bytes(), count);
        self.image.push(Segment {
            base: layout::RETURNS,
            bytes: returns.flatten().collect(),
        });
    }
}

/// The program as an ELF file.
///
/// # Errors
///
/// An instruction set that is not known.
pub fn make(spec: &Spec) -> Result<Vec<u8>, String> {
    let mut torture = Torture::new(spec)?;
    let traps = 10_000 + 20 * u64::from(spec.length);
    let float = torture.has(Ext::F);
    handler::write(&mut torture.code, traps, float, layout::BODY);
    torture.code.align(0x1000);
    while torture.code.pc() < layout::BODY {
        torture.code.put(0x13);
    }
    torture.fill_data();
    if torture.wants(Topic::Paging) {
        torture.fill_tables();
    }
    torture.body(spec.length);
    let mut segments = vec![Segment {
        base: layout::CODE,
        bytes: torture.code.bytes().to_vec(),
    }];
    segments.append(&mut torture.image);
    let symbols = [
        ("_start", layout::CODE),
        ("body", layout::BODY),
        ("m_vectors", M_VECTORS),
        ("s_vectors", S_VECTORS),
        ("constants", layout::POOL),
        ("data", layout::DATA),
        ("tohost", layout::TOHOST),
        ("fromhost", layout::FROMHOST),
    ];
    let isa = torture.isa;
    Ok(elf::executable(isa, layout::CODE, &segments, &symbols))
}
