//! Blocks that no hart shows, at the ends of what the settings allow.

use hartrace_flow::Ctype;
use hartrace_flow::filter::FilterConfig;

use super::*;
use crate::MIN_QUEUE;
use hartrace_testkit::Random;

/// A number of any width.
fn bits(r: &mut Random) -> u64 {
    r.draw() >> r.below(64)
}

fn any_config(r: &mut Random) -> Config {
    let version = r.one_of(VERSIONS);
    let xlen = r.one_of([Xlen::Rv32, Xlen::Rv64]);
    let mut config = Config {
        iaddress_width: r.one_of([8, 31, 32]),
        iaddress_lsb: r.below(3) as u8,
        privilege_width: 2 + r.below(3) as u8,
        context_width: r.one_of([0, 1, 32]),
        ecause_width: r.one_of([1, 16]),
        call_counter_size: r.one_of([0, 7, 15]),
        encoder_mode_width: r.below(9) as u8,
        doptions_width: r.one_of([None, Some(0), Some(16)]),
        full_address: r.flip(),
        sijump: r.flip(),
        triggers: r.flip(),
        starts_disabled: r.flip(),
        ending: r.one_of([Ending::Reported, Ending::Reference]),
        idle_irdepth: r.one_of([IdleIrdepth::Ones, IdleIrdepth::Repeated]),
        ..Config::new(version, xlen)
    };
    if version == Version::V2_0 {
        config.time_width = r.one_of([0, 1, 64]);
    }
    config.resync = Resync {
        unit: r.one_of([
            ResyncUnit::Off,
            ResyncUnit::Packets,
            ResyncUnit::Cycles,
            ResyncUnit::Halfwords,
        ]),
        max: r.one_of([0, 15]),
        rule: r.one_of([ResyncRule::Settled, ResyncRule::Exceeded]),
    };
    if r.flip() {
        config.queue = Some(Queue {
            bytes: MIN_QUEUE + r.below(100) as u32,
            drain: 1 + bits(r) as u32 / 2,
            stall: r.flip(),
        });
    }
    config
}

fn any_block(r: &mut Random) -> Ingress {
    let seldom = |r: &mut Random| r.below(32) == 0;
    Ingress {
        itype: Itype::from_code(r.below(16) as u8).unwrap(),
        iretire: r.one_of([0, 1, 2, 7, u32::MAX]),
        ilastsize: r.one_of([0, 1, 2, 255]),
        iaddr: r.one_of([0, 0x1000, u64::MAX, u64::MAX << 32]) ^ bits(r) >> 32,
        cause: bits(r) as u32,
        tval: bits(r),
        mode: Mode::from_code(r.one_of([0, 0, 0, 3, 4, 6])).unwrap(),
        context: Owner(r.one_of([0, 0, 0, 1, u64::MAX])),
        ctype: Ctype::from_code(r.below(4) as u8).unwrap(),
        sijump: r.flip(),
        time: bits(r),
        trigger: Trigger::from_bits(if seldom(r) { r.below(8) as u8 } else { 0 }),
        halted: seldom(r),
        reset: seldom(r),
        power_down: seldom(r),
        lost: seldom(r),
        ..Ingress::default()
    }
}

/// Whatever the port shows, there are packets a decoder can read: each stretch
/// begins with a synchronisation, and behind `updiscon` there is a format 3.
#[test]
fn any_blocks_do() {
    for seed in 1..400 {
        let mut r = Random::new(seed);
        let config = any_config(&mut r);
        let mut encoder = encoder(&config);
        if r.below(4) == 0 {
            encoder = encoder.with_filter(&FilterConfig::modes(&[Mode::U]));
        }
        for _ in 0..300 {
            encoder.ingress(HartId(0), &any_block(&mut r));
        }
        encoder.finish();
        let all = read(&encoder);
        assert_eq!(all.len() as u64, encoder.total().messages);
        let mut synced = false;
        for (n, packet) in all.iter().enumerate() {
            match packet {
                Packet::Support(s) if s.qual_status == QualStatus::NoChange => {}
                Packet::Support(_) => synced = false,
                Packet::Start(_) | Packet::Trap(_) => synced = true,
                packet => assert!(synced, "seed {seed} packet {n}: {packet:?}"),
            }
            if let Packet::Address(report)
            | Packet::Branches {
                address: Some(report),
                ..
            } = packet
                && report.updiscon
                && config.ending == Ending::Reported
            {
                let next = all.get(n + 1).map(Packet::format);
                assert_eq!(next, Some(3), "seed {seed} packet {n}");
            }
        }
    }
}
