//! Blocks that no hart shows, at the ends of what the settings allow.

use super::*;
use crate::{Decoder, MAX_STACK, MIN_QUEUE};
use core::ops::ControlFlow;
use hartrace_flow::{Consumer, Event, Image, SpaceId};
use hartrace_isa::Isa;
use hartrace_testkit::Random;

struct NoObserver;

impl Consumer for NoObserver {
    fn event(&mut self, _: HartId, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn any_config(random: &mut Random) -> Config {
    let version = pick(random, &[Version::Rc7, Version::V1_0]);
    let is_htm = random.below(2) == 0;
    let mut flag = || random.below(2) == 0;
    let mut config = Config {
        mode: if is_htm {
            TraceMode::Htm
        } else {
            TraceMode::Btm
        },
        short_indirect: flag(),
        context: flag(),
        hcontext: flag(),
        extend_addr_msb: flag(),
        sequential_jump: flag(),
        markers_keep_stack: flag() && version == Version::Rc7,
        repeat_branch: flag() && !is_htm,
        all_jumps: flag(),
        triggers: flag(),
        starts_disabled: flag(),
        ..htm(version)
    };
    config.xlen = pick(random, &[Xlen::Rv32, Xlen::Rv64]);
    config.src_bits = pick(random, &[0, 1, 12]);
    config.src_id = ((1u32 << config.src_bits) - 1) as u16;
    config.icnt_bits = pick(random, &[0, 2, 3, 22]);
    config.hist_bits = pick(random, &[2, 3, 31, 32]);
    config.hrepeat_bits = pick(random, &[0, 1, 2, 63]);
    config.bcnt_bits = pick(random, &[0, 1, 2, 63]);
    config.stack_depth = pick(random, &[1, 2, MAX_STACK]);
    config.stack_kind = pick(random, &[StackKind::Plain, StackKind::ReferenceRing]);
    config.periodic.max = pick(random, &[0, 15]);
    config.periodic.delayed = random.below(2) == 0;
    config.periodic.unit = pick(
        random,
        &[
            SyncUnit::Off,
            SyncUnit::Messages,
            SyncUnit::Cycles,
            SyncUnit::Halfwords,
        ],
    );
    config.trap_types = pick(random, &[TrapTypes::None, TrapTypes::One, TrapTypes::Two]);
    config.ending = pick(random, &[Ending::Correlation, Ending::Reference]);
    config.implicit_return = pick(
        random,
        &[
            ImplicitReturn::Off,
            ImplicitReturn::Count,
            ImplicitReturn::Partial(1),
            ImplicitReturn::Partial(63),
            ImplicitReturn::Full,
        ],
    );
    if is_htm {
        let kinds = [
            RepeatedHistory::Off,
            RepeatedHistory::On,
            RepeatedHistory::Reference,
        ];
        config.repeated_history = pick(random, &kinds);
    }
    if version == Version::Rc7 || !is_htm {
        config.icnt_full = pick(random, &[IcntFull::ResourceFull, IcntFull::Sync]);
    }
    if random.below(2) == 0 {
        config.timestamps = Some(Timestamps {
            width: pick(random, &[1, 63, 64]),
            prescale: pick(random, &[0, 3]),
            sync_only: random.below(2) == 0,
        });
    }
    if random.below(2) == 0 {
        config.queue = Some(Queue {
            bytes: pick(random, &[MIN_QUEUE, u32::MAX]),
            drain: pick(random, &[1, 1000, u32::MAX]),
            stall: random.below(2) == 0,
        });
    }
    config.external = core::array::from_fn(|_| {
        use TriggerAction::{None, Notify, Off, On};
        pick(random, &[None, On, Off, Notify])
    });
    config
}

fn any_block(random: &mut Random) -> Ingress {
    let mut seldom = || random.below(16) == 0;
    let mut block = Ingress {
        halted: seldom(),
        reset: seldom(),
        power_down: seldom(),
        lost: seldom(),
        trigger: Trigger {
            on: seldom(),
            off: seldom(),
            notify: seldom(),
        },
        ..Ingress::default()
    };
    block.sijump = random.below(2) == 0;
    block.itype = Itype::from_code(random.below(16) as u8).unwrap();
    block.iretire = pick(random, &[0, 1, 2, 3, 1 << 21, u32::MAX]);
    block.ilastsize = pick(random, &[0, 1, u8::MAX]);
    block.iaddr = pick(random, &[0, 0x100, 0x102, 0x7fff_fffe, u64::MAX]);
    block.time = pick(random, &[0, 1, 1 << 40, u64::MAX - 1, u64::MAX]);
    block.mode = pick(random, &[Mode::M, Mode::U, Mode::D]);
    block.context = pick(random, &[Context(0), Context(u64::MAX)]);
    block.external = pick(random, &[0, 0, 0, 1, 0xff]);
    block.cause = pick(random, &[0, u32::MAX]);
    block.tval = u64::MAX;
    block
}

/// Whatever the blocks and the settings, there are messages that can be read
/// and decoded to the end.
#[test]
fn any_blocks_and_settings() {
    let code = [0x05, 0x05, 0x7d, 0xfd, 0x82, 0x80];
    let mut random = Random::new(0x1d_872b_41f5);
    for round in 0..600 {
        let config = any_config(&mut random);
        assert_eq!(config.validate(), Ok(()), "{round}");
        let mut encoder = encoder(&config);
        for _ in 0..120 {
            let hart = HartId(pick(&mut random, &[0, 0, 0, 1, u32::MAX]));
            encoder.ingress(hart, &any_block(&mut random));
            if random.below(60) == 0 {
                encoder.finish();
                encoder.finish();
            }
        }
        encoder.finish();
        let layout = config.layout();
        let mut image = Image::new();
        image.add_raw(SpaceId::FIRST, 0x100, &code, Isa::RV64GC);
        let mut decoder = Decoder::new(config, &image).unwrap();
        for message in &encoder.sink().0 {
            let read = Message::read(message, &layout);
            assert!(read.is_ok(), "{read:?} {message:02x?} {round}");
            decoder.feed(message, &mut NoObserver);
        }
        decoder.finish(&mut NoObserver);
    }
}
