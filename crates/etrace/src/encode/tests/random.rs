//! Random programs: single- and multi-instruction ports show the same, and what
//! is encoded is decoded.

use core::ops::ControlFlow;

use hartrace_flow::{
    Cause, Check, Consumer, Ctype, Effects, Event, Image, Insn, ItypeWidth, Observer, Port,
    PortConfig, Retirement, Retires, Signal, SpaceId, Step, Trap as TrapTaken, TrapStep,
};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_testkit::Random;
use hartrace_testkit::asm::{A0, A1, ECALL, MRET, NOP, RA, RET, T0, ZERO, beq, jal, jalr, lui};

use super::*;
use crate::Decoder;

const BASE: u64 = 0x1000;
const SLOTS: u64 = 64;

const LUI_A0: u32 = lui(A0, 1);
const JR_A0: u32 = jalr(ZERO, A0, 0);
/// ret, jr a0, jalr a0, a co-routine swap.
const INDIRECT: [u32; 4] = [RET, JR_A0, jalr(RA, A0, 0), jalr(RA, T0, 0)];

fn slot(r: &mut Random) -> u64 {
    BASE + 4 * r.below(SLOTS)
}

/// Four bytes each. Direct jumps go forward, inferred ones to the branch at the
/// start: each way leads past something the trace tells. The last jumps.
fn program(r: &mut Random) -> Vec<u32> {
    let mut code = vec![beq(A0, A1, 8)];
    for n in 1..SLOTS - 1 {
        let back = slot(r).wrapping_sub(BASE + 4 * n) as i64;
        let ahead = 4 * (1 + r.below(SLOTS - 1 - n)) as i64;
        // A branch to what is behind it goes there whether taken or not.
        let branch = if back == 4 { 0 } else { back };
        code.push(match r.below(14) {
            0..5 => NOP,
            // Two c.nop.
            5 => 0x0001_0001,
            6..9 => beq(A0, A1, branch),
            9 => jal(1, ahead),
            10 => jal(0, ahead),
            11 => LUI_A0,
            12 => r.one_of([MRET, ECALL]),
            _ => r.one_of(INDIRECT),
        });
    }
    code.push(JR_A0);
    code
}

/// A hart that goes its way through the program.
struct Hart {
    pc: u64,
    /// The bits before.
    before: u32,
    mode: Mode,
    context: Owner,
    time: u64,
    /// Return addresses of calls.
    calls: Vec<u64>,
    /// Handlers differ from trap to trap.
    any_handler: bool,
}

impl Hart {
    fn trap(&mut self, r: &mut Random, bits: Option<u32>) -> Step {
        let handler = match self.any_handler {
            true => slot(r),
            false => BASE + 4 * r.one_of([4, 8]),
        };
        let code = Some(r.below(16) as u32);
        let cause = match bits {
            Some(_) => Cause::Exception(Some(11)),
            None if r.flip() => Cause::Interrupt(code),
            None => Cause::Exception(code),
        };
        let trap = TrapStep {
            trap: TrapTaken {
                epc: Some(self.pc),
                handler: Some(handler),
                cause,
                tval: match cause {
                    // Positive in any width of addresses.
                    Cause::Exception(_) => Some(r.draw() >> (25 + r.below(39))),
                    _ => None,
                },
                pending: None,
            },
            bits,
            mode: self.mode,
            context: self.context,
            time: self.time,
        };
        (self.pc, self.before, self.mode) = (handler, 0, Mode::M);
        Step::Trap(trap)
    }

    fn insn(&mut self, r: &mut Random, bits: u32, len: u64) -> Step {
        let off = ((bits as i32) >> 31) as i64;
        let (b, j) = (
            off << 12
                | i64::from((bits >> 7 & 1) << 11 | (bits >> 25 & 63) << 5 | (bits >> 8 & 15) << 1),
            off << 20
                | i64::from(bits & 0xff000 | (bits >> 20 & 1) << 11 | (bits >> 21 & 0x3ff) << 1),
        );
        let pc = self.pc;
        let next = match bits & 0x7f {
            0x63 if r.below(3) > 0 => pc.wrapping_add_signed(b),
            0x6f => pc.wrapping_add_signed(j),
            0x67 if self.before == LUI_A0 && bits >> 15 & 31 == 10 => BASE,
            // Most return where they were called from.
            0x67 if bits == RET && !self.calls.is_empty() && r.below(8) > 0 => {
                self.calls.pop().unwrap()
            }
            0x67 | 0x73 => slot(r),
            _ => pc + len,
        };
        let insn = Insn {
            pc,
            next,
            bits,
            time: self.time,
            mode: self.mode,
            context: self.context,
        };
        if matches!(bits & 0x7f, 0x67 | 0x6f) && bits >> 7 & 31 == 1 {
            self.calls.push(pc + 4);
        }
        if bits == MRET {
            self.mode = r.one_of([Mode::U, Mode::M]);
        }
        (self.pc, self.before) = (next, bits);
        Step::Insn(insn)
    }
}

/// What besides instructions.
#[derive(Clone, Copy)]
struct Besides {
    /// Traps anywhere, also where the draft cannot tell them.
    any_traps: bool,
    signals: bool,
    contexts: bool,
    any_handler: bool,
}

/// A way through the program.
fn walk(r: &mut Random, code: &[u32], besides: Besides) -> Vec<Step> {
    let mut steps = Vec::new();
    // Behind the last instruction whose successor the code tells.
    let mut known = 0;
    let mut hart = Hart {
        pc: BASE,
        before: 0,
        mode: Mode::M,
        context: Owner(1),
        time: 0,
        calls: Vec::new(),
        any_handler: besides.any_handler,
    };
    for _ in 0..2000 {
        hart.time += r.below(8);
        if besides.contexts && r.below(50) == 0 {
            hart.context = Owner(1 + r.below(5));
        }
        let settled = known == steps.len() && known > 0;
        if r.below(60) == 0 && (settled || besides.any_traps) {
            steps.push(hart.trap(r, None));
            continue;
        }
        if besides.signals && r.below(60) == 0 {
            steps.push(Step::Signal(Signal::Notify));
        } else if besides.signals && settled && r.below(60) == 0 {
            // Where a jump went is not told when the hart stops behind it.
            let signals: &[Signal] = match r.below(2) {
                0 => &[Signal::Halted, Signal::Resumed],
                _ => &[Signal::Reset],
            };
            steps.extend(signals.iter().map(|&s| Step::Signal(s)));
        }
        let word = code[((hart.pc - BASE) / 4) as usize];
        let (bits, len) = match word & 3 {
            3 => (word, 4),
            _ => (word & 0xffff, 2),
        };
        if bits == ECALL && !(settled || besides.any_traps) {
            // NoObserver could tell.
            break;
        }
        steps.push(match bits {
            ECALL => hart.trap(r, Some(bits)),
            bits => hart.insn(r, bits, len),
        });
        if !matches!(bits & 0x7f, 0x67 | 0x73) {
            known = steps.len();
        }
    }
    steps.truncate(known);
    steps
}

fn any_config(r: &mut Random) -> Config {
    let version = r.one_of(ALL_VERSIONS);
    let mut config = Config {
        triggers: true,
        full_address: r.flip(),
        sijump: r.flip(),
        iaddress_lsb: r.below(2) as u8,
        iaddress_width: r.one_of([40, 48, 64]),
        context_width: r.one_of([0, 3, 32]),
        ..config(version)
    };
    config.resync = Resync {
        unit: r.one_of([
            ResyncUnit::Off,
            ResyncUnit::Packets,
            ResyncUnit::Cycles,
            ResyncUnit::Halfwords,
        ]),
        max: r.below(4) as u8,
        rule: r.one_of([ResyncRule::Settled, ResyncRule::Exceeded]),
    };
    config.idle_irdepth = r.one_of([IdleIrdepth::Ones, IdleIrdepth::Repeated]);
    if version != Version::V1_1_1 && r.flip() {
        config.time_width = 32;
    }
    if version != Version::V2_05 && r.flip() {
        config.ioptions = Ioptions::new(&[
            Some(Ioption::SequentialJump),
            Some(Ioption::FullAddress),
            Some(Ioption::ImplicitException),
            Some(Ioption::ImplicitReturn),
        ])
        .unwrap();
    }
    if r.below(3) > 0 {
        any_modes(r, &mut config);
    }
    config
}

/// Some of the optional modes.
fn any_modes(r: &mut Random, config: &mut Config) {
    config.return_stack_size = r.below(8) as u8;
    if r.below(3) == 0 {
        config.call_counter_size = r.below(5) as u8;
    }
    config.bpred_size = r.below(8) as u8;
    config.cache_size = r.below(6) as u8;
    config.f0s_width = 1 + r.below(2) as u8;
    if config.bpred_size == 0 || config.cache_size == 0 {
        config.f0s_width = r.below(3) as u8;
    }
    config.branch_prediction = config.bpred_size > 0 && r.flip();
    config.jump_target_cache = config.cache_size > 0 && r.flip();
    config.implicit_return = config.return_stack_size + config.call_counter_size > 0 && r.flip();
    config.implicit_exception = r.flip();
    config.trap_vectors.mtvec = r.flip().then_some(BASE + 16);
}

fn port(r: &mut Random, config: &Config) -> PortConfig {
    PortConfig {
        table: match config.version {
            Version::V1_1_1 => ItypeTable::ETrace111,
            Version::V2_0 | Version::V2_05 => ItypeTable::ETrace20,
        },
        itype_width: match config.implicit_return {
            true => ItypeWidth::Four,
            false => r.one_of([ItypeWidth::Three, ItypeWidth::Four]),
        },
        retires: r.one_of([Retires::Neither, Retires::EcallAndEbreak]),
        ctype: r.one_of([Ctype::Unreported, Ctype::Imprecise, Ctype::Precise]),
        ..PortConfig::new(Isa::RV64GC)
    }
}

fn encode(config: &Config, port: PortConfig, steps: &[Step]) -> Vec<u8> {
    let encoder = Encoder::new(config.clone(), Vec::new()).unwrap();
    let mut port = Port::new(port, encoder);
    for step in steps {
        port.step(HartId(0), step, &Effects::default());
    }
    port.finish();
    port.into_sink().into_sink()
}

/// "The resultant packet sequence must be the same as if retiring one
/// instruction at a time" (chapter 8).
#[test]
fn blocks_of_any_size_give_the_same_packets() {
    for seed in 1..120 {
        let mut r = Random::new(seed);
        let mut config = any_config(&mut r);
        // Blocks have one time, and only places every port shows are settled.
        config.time_width = 0;
        config.resync.rule = ResyncRule::Settled;
        if config.resync.unit == ResyncUnit::Cycles {
            config.resync.unit = ResyncUnit::Halfwords;
        }
        let code = program(&mut r);
        let besides = Besides {
            any_traps: true,
            signals: r.flip(),
            contexts: r.flip(),
            any_handler: r.flip(),
        };
        let steps = walk(&mut r, &code, besides);
        let single = port(&mut r, &config);
        let expected = encode(&config, single, &steps);
        for room in [2, 3, 8, 1000] {
            let blocks = PortConfig {
                retirement: Retirement::Block(room),
                ..single
            };
            let bytes = encode(&config, blocks, &steps);
            assert_eq!(bytes, expected, "seed {seed} room {room}: {config:?}");
        }
        // But for returns, which only four bits show as such.
        if !config.sijump && !config.implicit_return {
            for itype_width in [ItypeWidth::Three, ItypeWidth::Four] {
                let other = PortConfig {
                    itype_width,
                    ..single
                };
                assert_eq!(encode(&config, other, &steps), expected);
            }
        }
    }
}

/// What was decoded, and whether anything was missing.
struct Decoded<'a>(&'a mut Check, Vec<Event>);

impl Consumer for Decoded<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Gap(_) = event {
            self.1.push(*event);
        }
        self.0.event(hart, event)
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    for seed in 1..400 {
        let mut r = Random::new(seed);
        let mut config = any_config(&mut r);
        let code = program(&mut r);
        let besides = Besides {
            any_traps: config.version != Version::V1_1_1,
            signals: r.flip(),
            contexts: r.flip(),
            any_handler: r.flip(),
        };
        let steps = walk(&mut r, &code, besides);
        let mut image = Image::new();
        let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
        image.add_raw(SpaceId::FIRST, BASE, &bytes, Isa::RV64GC);
        let port = port(&mut r, &config);
        config.sijump_returns = port.itype_width == ItypeWidth::Three;
        let trace = encode(&config, port, &steps);
        let mut check = Check::new();
        for step in &steps {
            check.step(HartId(0), step, &Effects::default());
        }
        let mut decoded = Decoded(&mut check, Vec::new());
        let mut decoder = Decoder::new(config.clone(), &image).unwrap();
        decoder.feed(&trace, &mut decoded);
        decoder.finish(&mut decoded);
        let Decoded(_, gaps) = decoded;
        let result = check.result();
        assert!(
            result.is_ok() && gaps.is_empty(),
            "seed {seed}: {result:?} {gaps:x?} {config:?}"
        );
    }
}
