//! Random programs through the port, the encoder and the decoder.

use core::ops::ControlFlow;

use hartrace_flow::{
    Cause, Check, Consumer, Effects, Event, Image, Insn, Observer, Port, PortConfig, Replay,
    Retirement, Signal, SpaceId, Step, Trap, TrapStep,
};
use hartrace_isa::{Isa, ItypeTable};

use super::*;
use crate::Decoder;
use hartrace_testkit::Random;
use hartrace_testkit::asm::{A0, A1, MRET, RA, RET, T0, ZERO, beq, jal, jalr, lui};

const BASE: u64 = 0x1000;
const SLOTS: u64 = 64;

const LUI_A0: u32 = lui(A0, 1);
const JR_A0: u32 = jalr(ZERO, A0, 0);
/// ret, jr a0, jalr a0, a co-routine swap, mret.
const INDIRECT: [u32; 5] = [RET, JR_A0, jalr(RA, A0, 0), jalr(RA, T0, 0), MRET];

fn slot(r: &mut Random) -> u64 {
    BASE + 4 * r.below(SLOTS)
}

/// Four bytes each, the last a jump so that none falls off.
fn program(r: &mut Random) -> Vec<u32> {
    let mut code = Vec::new();
    for n in 0..SLOTS - 1 {
        let mut to = slot(r).wrapping_sub(BASE + 4 * n) as i64;
        if to == 4 {
            // Taken or not, it would go to the same place.
            to = 0;
        }
        code.push(match r.below(12) {
            0..4 => 0x13,
            // Two c.nop.
            4 => 0x0001_0001,
            5..8 => beq(A0, A1, to),
            8 => jal(1, to),
            9 => jal(0, to),
            10 => LUI_A0,
            _ => INDIRECT[r.below(5) as usize],
        });
    }
    code.push(jal(0, -4));
    code
}

/// A way through the program, with traps and signals.
fn walk(r: &mut Random, code: &[u32], noise: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut pc = BASE;
    let mut before = 0;
    let mut known = 0;
    for time in 0..3000 {
        if r.below(40) == 0 {
            let handler = slot(r);
            let cause = if r.below(2) == 0 {
                Cause::Exception(None)
            } else {
                Cause::Interrupt(None)
            };
            steps.push(Step::Trap(TrapStep {
                trap: Trap {
                    epc: Some(pc),
                    handler: Some(handler),
                    cause,
                    tval: None,
                    pending: None,
                },
                bits: None,
                mode: Mode::M,
                context: Context(0),
                time: time * 5,
            }));
            (pc, before) = (handler, 0);
        }
        let word = code[((pc - BASE) / 4) as usize];
        let (bits, len) = match word & 3 {
            3 => (word, 4),
            _ => (word & 0xffff, 2),
        };
        let off = ((bits as i32) >> 31) as i64;
        let (b, j) = (
            off << 12
                | i64::from((bits >> 7 & 1) << 11 | (bits >> 25 & 63) << 5 | (bits >> 8 & 15) << 1),
            off << 20
                | i64::from(bits & 0xff000 | (bits >> 20 & 1) << 11 | (bits >> 21 & 0x3ff) << 1),
        );
        let next = match bits & 0x7f {
            0x63 if r.below(3) > 0 => pc.wrapping_add_signed(b),
            0x6f => pc.wrapping_add_signed(j),
            0x67 if before == LUI_A0 && bits >> 15 & 31 == 10 => BASE,
            0x67 => slot(r),
            0x73 => slot(r),
            _ => pc + len,
        };
        steps.push(Step::Insn(Insn {
            pc,
            next,
            bits,
            time: time * 5,
            ..Insn::default()
        }));
        let linear = bits & 0x7f == 0x13 || len == 2;
        if linear {
            known = steps.len();
        }
        if noise && linear && r.below(20) == 0 {
            // Where a jump went is not told when the hart stops behind it.
            let signals: &[Signal] = match r.below(5) {
                0 => &[Signal::Halted, Signal::Resumed],
                1 => &[Signal::PowerDown, Signal::PowerUp],
                2 => &[Signal::Reset],
                3 => &[Signal::Notify],
                _ => &[Signal::External(3)],
            };
            steps.extend(signals.iter().map(|&s| Step::Signal(s)));
        }
        (pc, before) = (next, bits);
    }
    steps.truncate(known);
    steps
}

fn any_config(r: &mut Random) -> Config {
    let version = VERSIONS[r.below(2) as usize];
    let mut flip = || r.below(2) == 0;
    let mut config = if flip() { btm(version) } else { htm(version) };
    let is_btm = config.mode == TraceMode::Btm;
    config.short_indirect = flip();
    config.context = flip();
    config.hcontext = flip();
    config.extend_addr_msb = flip();
    config.sequential_jump = flip();
    config.all_jumps = flip();
    config.triggers = flip();
    config.repeat_branch = is_btm && flip();
    config.markers_keep_stack = version == Version::Rc7 && flip();
    if (is_btm || version == Version::Rc7) && flip() {
        config.icnt_full = IcntFull::Sync;
    }
    config.external[3] = TriggerAction::Notify;
    config.periodic = Periodic {
        delayed: flip(),
        unit: [
            SyncUnit::Off,
            SyncUnit::Messages,
            SyncUnit::Cycles,
            SyncUnit::Halfwords,
        ][r.below(4) as usize],
        max: r.below(4) as u8,
    };
    config.implicit_return = [
        ImplicitReturn::Off,
        ImplicitReturn::Partial(12),
        ImplicitReturn::Full,
    ][r.below(3) as usize];
    if !is_btm {
        config.repeated_history = [
            RepeatedHistory::Off,
            RepeatedHistory::On,
            RepeatedHistory::Reference,
        ][r.below(3) as usize];
    }
    config.stack_depth = 1 + r.below(32) as u8;
    config.icnt_bits = [0, 2, 3, 4, 6, 10, 22][r.below(7) as usize];
    config.hist_bits = 2 + r.below(31) as u8;
    config.hrepeat_bits = r.below(19) as u8;
    config.bcnt_bits = r.below(4) as u8;
    config.src_bits = r.below(13) as u8;
    config
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
    for seed in 1..400u64 {
        let mut r = Random::new(seed);
        let config = any_config(&mut r);
        let code = program(&mut r);
        let noise = r.below(2) == 0;
        let steps = walk(&mut r, &code, noise);
        let mut image = Image::new();
        let bytes: Vec<u8> = code.iter().flat_map(|w| w.to_le_bytes()).collect();
        image.add_raw(SpaceId::FIRST, BASE, &bytes, Isa::RV64GC);
        let port = PortConfig {
            table: match config.version {
                Version::Rc7 => ItypeTable::NTraceRc7,
                Version::V1_0 => ItypeTable::NTrace10,
            },
            retirement: match r.below(2) {
                0 => Retirement::Single,
                _ => Retirement::Block(1 + r.below(20) as u32),
            },
            ..PortConfig::new(Isa::RV64GC)
        };
        let encoder = || Encoder::new(config.clone(), Vec::new()).unwrap();
        let mut first = Port::new(port, encoder());
        for step in &steps {
            first.step(HartId(0), step, &Effects::default());
        }
        first.finish();
        let trace = first.into_sink().into_sink();
        assert_decodes(&trace, &config, &image, &steps, seed);
        // What was decoded is as good a source as the hart was.
        let mut port = Port::new(port, encoder());
        let mut replay = Replay::new(&image, &mut port);
        let mut decoder = Decoder::new(config.clone(), &image).unwrap();
        decoder.feed(&trace, &mut replay);
        decoder.finish(&mut replay);
        replay.finish();
        let again = port.into_sink().into_sink();
        assert_decodes(&again, &config, &image, &steps, seed);
    }
}

fn assert_decodes(trace: &[u8], config: &Config, image: &Image, steps: &[Step], seed: u64) {
    let mut check = Check::new();
    for step in steps {
        check.step(HartId(0), step, &Effects::default());
    }
    let mut decoded = Decoded(&mut check, Vec::new());
    let mut decoder = Decoder::new(config.clone(), image).unwrap();
    decoder.feed(trace, &mut decoded);
    decoder.finish(&mut decoded);
    let Decoded(_, gaps) = decoded;
    let result = check.result();
    assert!(
        result.is_ok() && gaps.is_empty(),
        "seed {seed}: {result:?} {gaps:?} {config:?}"
    );
}

/// A block that no hart would show.
fn any_block(r: &mut Random) -> Ingress {
    let rare = |r: &mut Random| r.below(16) == 0;
    Ingress {
        itype: Itype::from_code(r.below(16) as u8).unwrap(),
        iretire: r.bits(32) as u32,
        ilastsize: r.below(256) as u8,
        iaddr: r.bits(64),
        mode: Mode::from_code(r.below(2) as u8).unwrap(),
        context: Context(r.below(3) << 31),
        sijump: r.below(2) == 0,
        time: r.bits(64),
        trigger: Trigger::from_bits(if rare(r) { r.below(8) as u8 } else { 0 }),
        halted: rare(r),
        reset: rare(r),
        power_down: rare(r),
        lost: rare(r),
        untraced: rare(r),
        external: if rare(r) { r.below(256) as u8 } else { 0 },
        ..Ingress::default()
    }
}

/// Whatever the port shows, there are well-formed messages, and the first one
/// after each stop or loss is a sync.
#[test]
fn any_blocks_do() {
    for seed in 1..300u64 {
        let mut r = Random::new(seed);
        let mut config = any_config(&mut r);
        config.starts_disabled = r.below(2) == 0;
        config.external = [
            TriggerAction::On,
            TriggerAction::Off,
            TriggerAction::Notify,
            TriggerAction::None,
        ]
        .repeat(2)
        .try_into()
        .unwrap();
        config.queue = Some(Queue {
            bytes: 76 + r.below(100) as u32,
            drain: 1 + r.bits(32) as u32 / 2,
            stall: r.below(2) == 0,
        });
        config.timestamps = Some(Timestamps {
            width: 1 + r.below(64) as u8,
            prescale: r.below(4) as u8,
            sync_only: r.below(2) == 0,
        });
        config.implicit_return = ImplicitReturn::Count;
        if r.below(2) == 0 {
            config.stack_kind = StackKind::ReferenceRing;
            config.ending = Ending::Reference;
        }
        let mut encoder = encoder(&config);
        for _ in 0..500 {
            let block = any_block(&mut r);
            encoder.ingress(HartId(r.bits(32) as u32 & 1), &block);
        }
        encoder.finish();
        for hart in [0, 1u16] {
            let mut synced = false;
            let src = hart & ((1 << config.src_bits) - 1);
            if config.src_bits == 0 {
                break;
            }
            for message in read(&encoder).iter().filter(|m| m.src == src) {
                match message.body {
                    Body::Error { .. } => synced = false,
                    Body::ProgTraceCorrelation { .. } => synced = false,
                    body if body.sync().is_some() => synced = true,
                    body => assert!(synced, "seed {seed}: {body:?}"),
                }
            }
        }
    }
}
