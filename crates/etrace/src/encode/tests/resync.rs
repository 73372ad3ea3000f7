//! Periodic synchronisation.

use super::*;

const A: u64 = 0x1000;

fn resync(unit: ResyncUnit, rule: ResyncRule) -> Config {
    Config {
        resync: Resync { unit, max: 0, rule },
        ..v2()
    }
}

/// Times 10 apart.
fn timed(blocks: &mut [Ingress]) {
    for (n, block) in (0..).zip(blocks) {
        block.time = 10 * n;
    }
}

/// Where synchronisations come, and the packet before each.
fn syncs(config: &Config, blocks: &[Ingress]) -> Vec<(u64, Packet)> {
    let all = packets(config, blocks);
    let pairs = all.windows(2).filter_map(|pair| match pair[1] {
        Packet::Start(start) => Some((start.address << 1, pair[0])),
        _ => None,
    });
    pairs.skip(1).collect()
}

/// Where the last of these goes.
fn ping(count: u64) -> u64 {
    A + 0x100 * (count % 2)
}

/// Jumps back and forth, each the target of the one before: a packet each, but
/// for the first, which nothing jumped to.
fn pings(count: u64) -> Vec<Ingress> {
    let jumps = (0..count).map(|n| jalr(ping(n)));
    [i(A - 4)].into_iter().chain(jumps).collect()
}

/// Draft 8.2: a packet when the limit is reached, the synchronisation at the
/// very next instruction.
#[test]
fn packets_exceeded() {
    let config = resync(ResyncUnit::Packets, ResyncRule::Exceeded);
    let blocks = pings(60);
    let all = packets(&config, &blocks);
    // The first start leaves 0; 17 addresses go over 16.
    let at: Vec<usize> = (0..all.len())
        .filter(|&n| matches!(all[n], Packet::Start(_)))
        .collect();
    assert_eq!(at, [1, 19, 37, 55]);
    for n in [18, 36, 54] {
        let Packet::Address(report) = all[n] else {
            panic!("no address before the synchronisation")
        };
        assert!(report.updiscon);
    }
    // The jump's target is told by the start itself.
    assert!(matches!(all[20], Packet::Address(r) if !r.updiscon));
}

/// The branches before it are told at once.
#[test]
fn branches_are_told_before_it() {
    let config = resync(ResyncUnit::Packets, ResyncRule::Exceeded);
    let mut blocks = pings(16);
    // 15 packets so far; the target of the last jump is the sixteenth.
    let last = ping(16);
    blocks.extend([i(last), i(last + 4), taken(last + 8), i(0x3000), i(0x3004)]);
    let told = syncs(&config, &blocks);
    let packet = branches(map(1, 0), delta(last, last + 8));
    assert_eq!(told, [(0x3000, packet)]);
}

/// One synchronisation needs one settled place; the branches first.
#[test]
fn packets_settled() {
    let config = resync(ResyncUnit::Packets, ResyncRule::Settled);
    let mut blocks = pings(16);
    let last = ping(16);
    // Sixteen packets. Straight code waits, a branch does not.
    blocks.extend([i(last), i(last + 4), i(last + 8), taken(last + 12)]);
    blocks.extend([i(0x3000), i(0x3004)]);
    let packet = branches(map(1, 0), delta(last, last + 12));
    assert_eq!(syncs(&config, &blocks), [(0x3000, packet)]);
    // A jump is told itself, and its target by the start.
    let mut blocks = pings(16);
    blocks.extend([i(last), i(last + 4), jalr(last + 8), i(0x3000)]);
    let packet = address(last, last + 8);
    assert_eq!(syncs(&config, &blocks), [(0x3000, packet)]);
    // A jump that is a target.
    let mut blocks = pings(16);
    blocks.extend([jalr(last), jalr(0x3000), i(0x4000)]);
    let packet = Packet::Address(updiscon(delta(last, 0x3000)));
    assert_eq!(syncs(&config, &blocks), [(0x4000, packet)]);
}

/// A direct jump is a place, too: its address is told, as the last packet told
/// a jump's target, which may be on the way.
#[test]
fn a_direct_jump_is_settled() {
    let config = resync(ResyncUnit::Packets, ResyncRule::Settled);
    let mut blocks = pings(16);
    let last = ping(16);
    blocks.extend([i(last), i(last + 4), i(0x3000), i(0x3004)]);
    let told = address(last, last + 4);
    assert_eq!(syncs(&config, &blocks), [(0x3000, told)]);
    // Behind a full map nothing is open.
    let mut blocks = pings(15);
    let last = ping(15);
    blocks.push(i(last));
    blocks.extend((1..=31).map(|n| not_taken(last + 4 * n)));
    blocks.extend([i(last + 128), i(0x3000)]);
    let told = syncs(&config, &blocks);
    let [(0x3000, Packet::Branches { map, address: None })] = told[..] else {
        panic!("{told:x?}")
    };
    assert_eq!(map.count, 31);
}

#[test]
fn cycles() {
    let mut blocks: Vec<_> = (0..8).map(|n| i(A + 4 * n)).collect();
    timed(&mut blocks);
    // 16 cycles: at 20 it is over.
    let config = resync(ResyncUnit::Cycles, ResyncRule::Exceeded);
    let at: Vec<u64> = syncs(&config, &blocks).iter().map(|s| s.0).collect();
    assert_eq!(at, [A + 8, A + 16, A + 24]);
    // No place in straight code.
    let config = resync(ResyncUnit::Cycles, ResyncRule::Settled);
    assert_eq!(syncs(&config, &blocks), []);
    blocks[1] = taken(A + 4);
    blocks[4] = taken(A + 16);
    timed(&mut blocks);
    let told = branches(map(2, 0), delta(A, A + 16));
    assert_eq!(syncs(&config, &blocks), [(A + 20, told)]);
}

#[test]
fn halfwords() {
    let blocks: Vec<_> = (0..20).map(|n| i(A + 4 * n)).collect();
    let config = resync(ResyncUnit::Halfwords, ResyncRule::Exceeded);
    let at: Vec<u64> = syncs(&config, &blocks).iter().map(|s| s.0).collect();
    // 18 halfwords before it.
    assert_eq!(at, [A + 36, A + 72]);
    let mut blocks = blocks;
    blocks[6] = taken(A + 24);
    blocks[7] = taken(A + 28);
    let config = resync(ResyncUnit::Halfwords, ResyncRule::Settled);
    let told = branches(map(2, 0), delta(A, A + 28));
    assert_eq!(syncs(&config, &blocks), [(A + 32, told)]);
}

/// In other units than packets the counter passes its limit anywhere: not
/// before what a decoder needs was told.
#[test]
fn exceeded_waits_for_what_is_open() {
    let config = resync(ResyncUnit::Cycles, ResyncRule::Exceeded);
    // A jump's target, then straight code.
    let mut blocks = vec![jalr(A), i(0x2000), i(0x2004), i(0x2008), i(0x200c)];
    blocks.extend([jalr(0x2010), i(0x3000), i(0x3004)]);
    timed(&mut blocks);
    blocks[1].time = 5;
    blocks[2].time = 6;
    let told = Packet::Address(updiscon(delta(0x2000, 0x3000)));
    assert_eq!(syncs(&config, &blocks), [(0x3004, told)]);
    // Branches: a packet as soon as it is full.
    let mut blocks = vec![i(A), taken(A + 4), i(A + 8), i(A + 12), i(A + 16)];
    timed(&mut blocks);
    let told = branches(map(1, 0), delta(A, A + 8));
    assert_eq!(syncs(&config, &blocks), [(A + 12, told)]);
}

/// A flush and the end: the address was not a jump's target.
#[test]
fn the_trace_ends_with_a_flush() {
    let config = resync(ResyncUnit::Cycles, ResyncRule::Exceeded);
    let mut blocks = [i(A), taken(A + 4), i(A + 8)];
    timed(&mut blocks);
    let inner = [start(A), branches(map(1, 0), delta(A, A + 8))];
    check(&config, &blocks, &inner, QualStatus::EndedRep);
}

/// Traps synchronise as well: the counter starts again.
#[test]
fn traps_start_the_counter_again() {
    for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
        let config = resync(ResyncUnit::Packets, rule);
        let mut blocks = pings(14);
        blocks.extend([i(ping(14)), exception(A + 4, 5, 0), i(0x8000)]);
        blocks.extend(pings(13));
        assert_eq!(syncs(&config, &blocks), []);
        blocks.extend(pings(13));
        assert_eq!(syncs(&config, &blocks).len(), 1);
    }
}

/// A time that goes back is no reason for anything.
#[test]
fn time_may_jump_about() {
    for rule in [ResyncRule::Settled, ResyncRule::Exceeded] {
        let config = resync(ResyncUnit::Cycles, rule);
        let mut blocks: Vec<_> = (0..100).map(|n| taken(A + 4 * (n % 5))).collect();
        for (n, block) in (0..).zip(&mut blocks) {
            block.time = [u64::MAX, 0, 1 << 60][n % 3];
        }
        let all = packets(&config, &blocks);
        assert!(all.len() > 3);
    }
}
