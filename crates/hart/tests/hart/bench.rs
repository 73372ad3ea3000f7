//! A machine on the bench: small memory, a program put together by the test,
//! all state within reach.

use hartrace_flow::{
    Cause, Effects, HartId, Insn, Mode, Model, Observer, Place, RegId, Step, Trap, TrapStep, Wants,
};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Machine, Platform, Program, Region, Segment, Stop};
use hartrace_isa::Xlen;

use crate::asm::NOP;

pub(crate) const BASE: u64 = 0x8000_0000;
/// Where traps to machine mode go: nothing but `nop` there.
pub(crate) const HANDLER: u64 = BASE + 0x1000;
/// Where traps to supervisor mode go.
pub(crate) const S_HANDLER: u64 = BASE + 0x2000;
/// Free memory.
pub(crate) const DATA: u64 = BASE + 0x8000;
/// Bytes of RAM.
pub(crate) const SIZE: u64 = 1 << 20;
pub(crate) const CLINT: u64 = 0x0200_0000;
pub(crate) const MTIMECMP: u64 = CLINT + 0x4000;
pub(crate) const MTIME: u64 = CLINT + 0xbff8;

/// Numbers of CSRs.
pub(crate) mod csr {
    pub(crate) const FFLAGS: u16 = 0x001;
    pub(crate) const FRM: u16 = 0x002;
    pub(crate) const FCSR: u16 = 0x003;
    pub(crate) const SSTATUS: u16 = 0x100;
    pub(crate) const SIE: u16 = 0x104;
    pub(crate) const STVEC: u16 = 0x105;
    pub(crate) const SCOUNTEREN: u16 = 0x106;
    pub(crate) const SSCRATCH: u16 = 0x140;
    pub(crate) const SEPC: u16 = 0x141;
    pub(crate) const SCAUSE: u16 = 0x142;
    pub(crate) const STVAL: u16 = 0x143;
    pub(crate) const SIP: u16 = 0x144;
    pub(crate) const SATP: u16 = 0x180;
    pub(crate) const MSTATUS: u16 = 0x300;
    pub(crate) const MISA: u16 = 0x301;
    pub(crate) const MEDELEG: u16 = 0x302;
    pub(crate) const MIDELEG: u16 = 0x303;
    pub(crate) const MIE: u16 = 0x304;
    pub(crate) const MTVEC: u16 = 0x305;
    pub(crate) const MCOUNTEREN: u16 = 0x306;
    pub(crate) const MENVCFG: u16 = 0x30a;
    pub(crate) const MENVCFGH: u16 = 0x31a;
    pub(crate) const MCOUNTINHIBIT: u16 = 0x320;
    pub(crate) const MSCRATCH: u16 = 0x340;
    pub(crate) const MEPC: u16 = 0x341;
    pub(crate) const MCAUSE: u16 = 0x342;
    pub(crate) const MTVAL: u16 = 0x343;
    pub(crate) const MIP: u16 = 0x344;
    pub(crate) const PMPCFG0: u16 = 0x3a0;
    pub(crate) const PMPADDR0: u16 = 0x3b0;
    pub(crate) const MCYCLE: u16 = 0xb00;
    pub(crate) const MINSTRET: u16 = 0xb02;
    pub(crate) const CYCLE: u16 = 0xc00;
    pub(crate) const TIME: u16 = 0xc01;
    pub(crate) const INSTRET: u16 = 0xc02;
}

/// Fields of mstatus.
pub(crate) mod status {
    pub(crate) const SIE: u64 = 1 << 1;
    pub(crate) const MIE: u64 = 1 << 3;
    pub(crate) const SPIE: u64 = 1 << 5;
    pub(crate) const MPIE: u64 = 1 << 7;
    pub(crate) const SPP: u64 = 1 << 8;
    pub(crate) const MPP: u64 = 3 << 11;
    pub(crate) const MPP_S: u64 = 1 << 11;
    pub(crate) const FS: u64 = 3 << 13;
    pub(crate) const FS_INITIAL: u64 = 1 << 13;
    pub(crate) const MPRV: u64 = 1 << 17;
    pub(crate) const SUM: u64 = 1 << 18;
    pub(crate) const MXR: u64 = 1 << 19;
    pub(crate) const TVM: u64 = 1 << 20;
    pub(crate) const TW: u64 = 1 << 21;
    pub(crate) const TSR: u64 = 1 << 22;
}

pub(crate) const WIDTHS: [Xlen; 2] = [Xlen::Rv32, Xlen::Rv64];

/// Keeps every step with its effects.
#[derive(Default)]
pub(crate) struct Recorder(pub(crate) Vec<(Step, Effects)>);

impl Observer for Recorder {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, _: HartId, step: &Step, effects: &Effects) {
        self.0.push((*step, *effects));
    }
}

/// Wants nothing.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    const WANTS: Wants = Wants::NOTHING;

    fn step(&mut self, _: HartId, step: &Step, _: &Effects) {
        panic!("told of {step:?} without asking");
    }
}

/// The usual machine with little memory.
pub(crate) fn small(platform: Platform, xlen: Xlen) -> Config {
    let mut config = Config::new(platform, xlen);
    config.memory = vec![Region {
        base: BASE,
        size: SIZE,
    }];
    config
}

pub(crate) fn virt(xlen: Xlen) -> Config {
    small(Platform::Virt, xlen)
}

/// Code as a program that starts with it.
pub(crate) fn program(xlen: Xlen, code: &[u32]) -> Program {
    let data: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    Program {
        xlen,
        entry: BASE,
        segments: vec![Segment {
            addr: BASE,
            size: data.len() as u64,
            data,
        }],
        tohost: None,
        fromhost: None,
    }
}

pub(crate) struct Bench {
    pub(crate) m: Machine,
}

impl Bench {
    pub(crate) fn rv64() -> Bench {
        Bench::new(virt(Xlen::Rv64))
    }

    pub(crate) fn rv32() -> Bench {
        Bench::new(virt(Xlen::Rv32))
    }

    pub(crate) fn of(xlen: Xlen) -> Bench {
        Bench::new(virt(xlen))
    }

    /// A machine of this instruction set.
    pub(crate) fn isa(isa: &str) -> Bench {
        let xlen = if isa.starts_with("rv32") {
            Xlen::Rv32
        } else {
            Xlen::Rv64
        };
        let mut config = virt(xlen);
        config.isa = isa.to_owned();
        Bench::new(config)
    }

    /// The machine, handlers set up, at the start of a program of `nop`.
    pub(crate) fn new(config: Config) -> Bench {
        Bench::with_host(config, Host::silent())
    }

    pub(crate) fn with_host(config: Config, host: Host) -> Bench {
        let xlen = if config.isa.starts_with("rv32") {
            Xlen::Rv32
        } else {
            Xlen::Rv64
        };
        let mut m = Machine::new(config, host).unwrap();
        m.load(program(xlen, &[NOP; 0xc00]), None).unwrap();
        let mut bench = Bench { m };
        bench.set_pc(BASE);
        bench.set_csr(csr::MTVEC, HANDLER);
        bench.set_csr(csr::STVEC, S_HANDLER);
        bench
    }

    pub(crate) fn x(&self, number: u32) -> u64 {
        self.m.x(number as u8)
    }

    pub(crate) fn set_x(&mut self, number: u32, value: u64) {
        self.m
            .write(Place::Reg(RegId::X(number as u8)), value)
            .unwrap();
    }

    pub(crate) fn f(&self, number: u32) -> u64 {
        self.m.read(Place::Reg(RegId::F(number as u8))).unwrap()
    }

    pub(crate) fn set_f(&mut self, number: u32, value: u64) {
        self.m
            .write(Place::Reg(RegId::F(number as u8)), value)
            .unwrap();
    }

    pub(crate) fn csr(&self, number: u16) -> u64 {
        self.m.read(Place::Csr(number)).unwrap()
    }

    pub(crate) fn set_csr(&mut self, number: u16, value: u64) {
        self.m.write(Place::Csr(number), value).unwrap();
    }

    /// Sets bits of mstatus.
    pub(crate) fn status(&mut self, bits: u64) {
        let now = self.csr(csr::MSTATUS);
        self.set_csr(csr::MSTATUS, now | bits);
    }

    pub(crate) fn mem(&self, addr: u64, size: u8) -> u64 {
        self.m.read(Place::Memory { addr, size }).unwrap()
    }

    pub(crate) fn set_mem(&mut self, addr: u64, size: u8, value: u64) {
        self.m.write(Place::Memory { addr, size }, value).unwrap();
    }

    pub(crate) fn set_pc(&mut self, pc: u64) {
        self.m.write(Place::Pc, pc).unwrap();
    }

    pub(crate) fn mode(&self) -> Mode {
        let code = self.m.read(Place::Mode).unwrap();
        Mode::from_code(code as u8).unwrap()
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.m.write(Place::Mode, mode.code().into()).unwrap();
    }

    /// Puts code into memory.
    pub(crate) fn code(&mut self, addr: u64, code: &[u32]) {
        for (i, &word) in code.iter().enumerate() {
            self.set_mem(addr + 4 * i as u64, 4, word.into());
        }
    }

    /// Puts halfwords into memory.
    pub(crate) fn halfwords(&mut self, addr: u64, code: &[u32]) {
        for (i, &half) in code.iter().enumerate() {
            self.set_mem(addr + 2 * i as u64, 2, u64::from(half & 0xffff));
        }
    }

    pub(crate) fn run(&mut self, limit: u64) -> Stop {
        self.m.run(limit, &mut NoObserver)
    }

    /// Runs and gives the steps.
    pub(crate) fn steps(&mut self, limit: u64) -> Vec<(Step, Effects)> {
        let mut recorder = Recorder::default();
        self.m.run(limit, &mut recorder);
        recorder.0
    }

    /// Puts code at the start, goes there and runs all of it.
    pub(crate) fn exec(&mut self, code: &[u32]) -> Vec<(Step, Effects)> {
        self.code(BASE, code);
        self.set_pc(BASE);
        self.steps(code.len() as u64)
    }

    /// Executes one instruction that must retire; its effects.
    pub(crate) fn one(&mut self, word: u32) -> Effects {
        let steps = self.exec(&[word]);
        assert_eq!(steps.len(), 1, "{word:08x} does not retire: {steps:?}");
        assert!(matches!(steps[0].0, Step::Insn(_)), "{:?}", steps[0].0);
        steps[0].1
    }

    /// Executes code until it traps: code, epc and tval.
    pub(crate) fn fault(&mut self, code: &[u32]) -> (u32, u64, u64) {
        let step = self.trap_step(code);
        let Cause::Exception(Some(cause)) = step.trap.cause else {
            panic!("{step:?}");
        };
        (cause, step.trap.epc.unwrap(), step.trap.tval.unwrap())
    }

    /// Executes code until it traps; the hart is then one `nop` into the
    /// handler.
    pub(crate) fn trap_step(&mut self, code: &[u32]) -> TrapStep {
        self.code(BASE, code);
        self.set_pc(BASE);
        for _ in 0..=code.len() {
            for (step, _) in self.steps(1) {
                if let Step::Trap(trap) = step {
                    return trap;
                }
            }
        }
        panic!("no trap");
    }

    /// Whether one instruction is illegal here.
    pub(crate) fn is_illegal(&mut self, word: u32) -> bool {
        let mode = self.mode();
        let steps = self.exec(&[word]);
        match steps[0].0 {
            Step::Trap(TrapStep { trap, .. }) => {
                assert_eq!(trap.cause, Cause::Exception(Some(2)), "{word:08x}");
                self.set_mode(mode);
                true
            }
            _ => false,
        }
    }
}

/// The instructions among steps.
pub(crate) fn insns(steps: &[(Step, Effects)]) -> Vec<Insn> {
    let insn = |step: &(Step, Effects)| match step.0 {
        Step::Insn(insn) => Some(insn),
        _ => None,
    };
    steps.iter().filter_map(insn).collect()
}

/// The traps among steps.
pub(crate) fn traps(steps: &[(Step, Effects)]) -> Vec<Trap> {
    let trap = |step: &(Step, Effects)| match step.0 {
        Step::Trap(trap) => Some(trap.trap),
        _ => None,
    };
    steps.iter().filter_map(trap).collect()
}

/// The CSR writes of a step, in order.
pub(crate) fn csr_writes(effects: &Effects) -> Vec<(u16, u64)> {
    effects.csrs.iter().map(|w| (w.csr, w.value)).collect()
}
