//! What kind of program and what kind of execution.

use hartrace_flow::Mode;
use hartrace_isa::{Isa, Xlen};

use super::Random;

/// Where code lies. The places are those where address arithmetic breaks:
/// both ends of the address space and the borders of 31, 32 and 39 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// From address 0, so that `jalr` through x0 reaches it.
    Zero,
    /// 0x1_0000, where `c.lui` reaches.
    #[default]
    Low,
    /// 0x8000_0000.
    Ram,
    /// Across 0x8000_0000, the border of positive 32-bit numbers.
    Across31,
    /// RV64: across 2^32. RV32: 0xc000_0000.
    Across32,
    /// RV64: 0xffff_ffff_8000_0000. RV32: 0xf000_0000.
    High,
    /// RV64: 0xffff_ffc0_0000_0000, where an Sv39 kernel lives. RV32:
    /// 0xc000_0000.
    Sv39,
    /// Up to the very last byte of the address space.
    Top,
}

impl Base {
    /// Every place.
    pub const ALL: [Base; 8] = [
        Base::Zero,
        Base::Low,
        Base::Ram,
        Base::Across31,
        Base::Across32,
        Base::High,
        Base::Sv39,
        Base::Top,
    ];

    /// First address of code of this size. `Top` wraps to the end.
    pub(super) fn start(self, size: u64, xlen: Xlen) -> u64 {
        let wide = xlen == Xlen::Rv64;
        match self {
            Base::Zero => 0,
            Base::Low => 0x1_0000,
            Base::Ram => 0x8000_0000,
            Base::Across31 => 0x8000_0000 - ((size / 2) & !63),
            Base::Across32 if wide => 0x1_0000_0000 - ((size / 2) & !63),
            Base::High if wide => 0xffff_ffff_8000_0000,
            Base::High => 0xf000_0000,
            Base::Sv39 if wide => 0xffff_ffc0_0000_0000,
            Base::Across32 | Base::Sv39 => 0xc000_0000,
            Base::Top => xlen.wrap(0u64.wrapping_sub(size)),
        }
    }

    /// Whether `lui` and a 12-bit offset reach code here.
    pub(super) const fn has_lui(self, xlen: Xlen) -> bool {
        matches!(xlen, Xlen::Rv32)
            || matches!(self, Base::Zero | Base::Low | Base::High | Base::Top)
    }

    /// Whether `auipc` at one place reaches code at the other.
    pub(super) fn near(self, other: Base, xlen: Xlen) -> bool {
        self == other || xlen == Xlen::Rv32
    }
}

/// The privilege modes a hart has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Modes {
    /// Machine mode only.
    #[default]
    Machine,
    /// M and U.
    User,
    /// M, S and U.
    Supervisor,
    /// M, S, U, VS and VU.
    Hypervisor,
}

impl Modes {
    /// The modes themselves.
    #[must_use]
    pub const fn all(self) -> &'static [Mode] {
        match self {
            Modes::Machine => &[Mode::M],
            Modes::User => &[Mode::M, Mode::U],
            Modes::Supervisor => &[Mode::M, Mode::S, Mode::U],
            Modes::Hypervisor => &[Mode::M, Mode::S, Mode::U, Mode::VS, Mode::VU],
        }
    }
}

/// How often a body holds each construct, relative to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each is the name of a construct
pub struct Weights {
    pub straight: u32,
    pub branch: u32,
    pub nested_loop: u32,
    pub call: u32,
    pub indirect_call: u32,
    pub switch: u32,
    pub hop: u32,
    pub early_return: u32,
    pub recursion: u32,
    pub pair: u32,
    pub absolute: u32,
    pub table: u32,
    pub other_link: u32,
    pub swap: u32,
    pub environment: u32,
    pub spin: u32,
    pub long: u32,
    pub tail_call: u32,
    /// Pairs whose jump is also a return or a swap.
    pub odd_pair: u32,
}

impl Weights {
    /// Something of everything, in proportions that resemble compiled code.
    pub const USUAL: Weights = Weights {
        straight: 30,
        branch: 30,
        nested_loop: 10,
        call: 14,
        indirect_call: 5,
        switch: 4,
        hop: 4,
        early_return: 4,
        recursion: 2,
        pair: 5,
        absolute: 3,
        table: 6,
        other_link: 3,
        swap: 2,
        environment: 2,
        spin: 1,
        long: 2,
        tail_call: 3,
        odd_pair: 0,
    };
}

/// What happens to a program from outside, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surprises {
    /// Mean number of steps between two of them; 0 for none ever.
    pub every: u32,
    /// Weight of interrupts.
    pub interrupt: u32,
    /// Weight of exceptions, on whatever instruction comes next.
    pub exception: u32,
    /// Weight of signals.
    pub signal: u32,
    /// Weight of a new context between two instructions.
    pub context: u32,
    /// Weight of a leap in time.
    pub leap: u32,
    /// Of a thousand traps, how many are followed by another one before the
    /// handler retires anything.
    pub back_to_back: u32,
    /// Of a thousand returns from a trap, how many resume another task.
    pub switch_task: u32,
    /// Of a thousand returns, how many skip frames, as longjmp does.
    pub longjmp: u32,
    /// Of a thousand returns, how many go to a place no call left.
    pub stray: u32,
    /// Trap handlers that may be interrupted inside each other.
    pub nesting: u32,
    /// A trap comes before the first instruction.
    pub first: bool,
}

/// A program and an execution of it, up to the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Register width.
    pub xlen: Xlen,
    /// 16-bit instructions.
    pub compressed: bool,
    /// Zcmp, with `compressed` only; excludes D.
    pub zcmp: bool,
    /// Zcmt, with `compressed` only; excludes D.
    pub zcmt: bool,
    /// Where functions lie.
    pub base: Base,
    /// Where trap handlers lie, if apart from the functions.
    pub handlers: Option<Base>,
    /// Number of functions, at least 1.
    pub functions: u32,
    /// Constructs in the longest function, at least 1.
    pub blocks: u32,
    /// Straight instructions in the longest stretch, at least 1.
    pub stretch: u32,
    /// What bodies are made of.
    pub weights: Weights,
    /// Privilege modes.
    pub modes: Modes,
    /// Traps may happen: ecall and ebreak are generated, and handlers.
    pub traps: bool,
    /// What comes from outside.
    pub surprises: Surprises,
    /// Number of software contexts; with 1 it never changes.
    pub contexts: u32,
    /// Steps carry a time.
    pub timed: bool,
    /// Segments are cut in places that may lie inside an instruction.
    pub cut: bool,
}

impl Spec {
    /// The named shapes, for the command line and for tests.
    pub const NAMES: [&'static str; 8] = [
        "plain",
        "tiny",
        "full",
        "rv32",
        "word",
        "code-size",
        "hyper",
        "flat-out",
    ];

    /// Functions, branches and loops on RV64GC, nothing from outside.
    #[must_use]
    pub const fn plain() -> Spec {
        Spec {
            xlen: Xlen::Rv64,
            compressed: true,
            zcmp: false,
            zcmt: false,
            base: Base::Ram,
            handlers: None,
            functions: 24,
            blocks: 12,
            stretch: 8,
            weights: Weights::USUAL,
            modes: Modes::Machine,
            traps: false,
            surprises: Surprises {
                every: 0,
                interrupt: 0,
                exception: 0,
                signal: 0,
                context: 0,
                leap: 0,
                back_to_back: 0,
                switch_task: 0,
                longjmp: 5,
                stray: 0,
                nesting: 0,
                first: false,
            },
            contexts: 1,
            timed: true,
            cut: false,
        }
    }

    /// Everything at once on RV64GC.
    #[must_use]
    pub const fn full() -> Spec {
        Spec {
            modes: Modes::Supervisor,
            traps: true,
            surprises: Surprises {
                every: 60,
                interrupt: 40,
                exception: 40,
                signal: 10,
                context: 5,
                leap: 10,
                back_to_back: 100,
                switch_task: 100,
                longjmp: 20,
                stray: 10,
                nesting: 3,
                first: false,
            },
            contexts: 5,
            cut: true,
            ..Spec::plain()
        }
    }

    /// A shape by its name in [`Spec::NAMES`].
    #[must_use]
    pub fn named(name: &str) -> Option<Spec> {
        let (plain, full) = (Spec::plain(), Spec::full());
        Some(match name {
            "plain" => plain,
            "full" => full,
            "tiny" => Spec {
                functions: 1,
                blocks: 2,
                stretch: 2,
                ..plain
            },
            "rv32" => Spec {
                xlen: Xlen::Rv32,
                base: Base::Top,
                handlers: Some(Base::Zero),
                ..full
            },
            "word" => Spec {
                compressed: false,
                base: Base::Zero,
                ..full
            },
            "code-size" => Spec {
                xlen: Xlen::Rv32,
                zcmp: true,
                zcmt: true,
                base: Base::Low,
                ..full
            },
            "hyper" => Spec {
                modes: Modes::Hypervisor,
                base: Base::Low,
                handlers: Some(Base::Sv39),
                ..full
            },
            // Long runs: much code, few surprises.
            "flat-out" => Spec {
                functions: 200,
                blocks: 20,
                surprises: Surprises {
                    every: 5000,
                    ..full.surprises
                },
                ..full
            },
            _ => return None,
        })
    }

    /// Some shape or other, for property tests: one in four is a handful of
    /// instructions, and each option is off in a good part of the rest.
    #[must_use]
    pub fn arbitrary(seed: u64) -> Spec {
        let mut r = Random::new(seed ^ 0x5bec);
        let tiny = r.chance(250);
        let traps = r.chance(700);
        let compressed = r.chance(750);
        let code_size = compressed && r.chance(300);
        let (zcmp, zcmt) = (code_size && r.chance(700), code_size && r.chance(700));
        let mut spec = Spec {
            xlen: if r.chance(400) {
                Xlen::Rv32
            } else {
                Xlen::Rv64
            },
            compressed,
            zcmp,
            zcmt,
            base: r.pick(&Base::ALL),
            handlers: None,
            functions: if tiny { 1 } else { r.between(2, 30) },
            blocks: if tiny {
                r.between(1, 3)
            } else {
                r.between(3, 14)
            },
            stretch: if tiny { 2 } else { r.between(1, 12) },
            weights: Spec::arbitrary_weights(&mut r),
            modes: r.pick(&[
                Modes::Machine,
                Modes::User,
                Modes::Supervisor,
                Modes::Hypervisor,
            ]),
            traps,
            surprises: Spec::arbitrary_surprises(&mut r, traps),
            contexts: r.pick(&[1, 1, 3, 9]),
            timed: r.chance(700),
            cut: r.chance(500),
        };
        let handlers = r.pick(&Base::ALL);
        // Two places may overlap on RV32, where several names mean the same.
        if r.chance(300) && handlers.start(0, spec.xlen) != spec.base.start(0, spec.xlen) {
            spec.handlers = Some(handlers);
        }
        spec
    }

    fn arbitrary_weights(r: &mut Random) -> Weights {
        let mut w = Weights::USUAL;
        for weight in [
            &mut w.straight,
            &mut w.branch,
            &mut w.nested_loop,
            &mut w.call,
            &mut w.indirect_call,
            &mut w.switch,
            &mut w.hop,
            &mut w.early_return,
            &mut w.recursion,
            &mut w.pair,
            &mut w.absolute,
            &mut w.table,
            &mut w.other_link,
            &mut w.swap,
            &mut w.environment,
            &mut w.spin,
            &mut w.long,
            &mut w.tail_call,
        ] {
            *weight *= r.pick(&[0, 1, 1, 1, 2, 8]);
        }
        w.odd_pair = r.pick(&[0, 0, 0, 3]);
        w
    }

    fn arbitrary_surprises(r: &mut Random, traps: bool) -> Surprises {
        let trap_weight = if traps { 40 } else { 0 };
        Surprises {
            every: r.pick(&[0, 2, 10, 60, 400]),
            interrupt: trap_weight * r.pick(&[0, 1, 1]),
            exception: trap_weight * r.pick(&[0, 1, 1]),
            signal: r.pick(&[0, 0, 10]),
            context: r.pick(&[0, 5]),
            leap: 5,
            back_to_back: r.pick(&[0, 50, 400]),
            switch_task: r.pick(&[0, 100]),
            longjmp: r.pick(&[0, 20]),
            stray: r.pick(&[0, 20]),
            nesting: r.between(1, 4),
            first: traps && r.chance(200),
        }
    }

    /// The instruction set of the program.
    #[must_use]
    pub fn isa(&self) -> Isa {
        let bits = self.xlen.bits();
        let text = match (self.compressed, self.zcmp, self.zcmt) {
            (false, ..) => format!("rv{bits}g"),
            (true, false, false) => format!("rv{bits}gc"),
            (true, true, false) => format!("rv{bits}imac_zicsr_zifencei_zcmp"),
            (true, false, true) => format!("rv{bits}imac_zicsr_zifencei_zcmt"),
            (true, true, true) => format!("rv{bits}imac_zicsr_zifencei_zcmp_zcmt"),
        };
        Isa::parse(&text).unwrap_or(Isa::RV64GC)
    }
}
