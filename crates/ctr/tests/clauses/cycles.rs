//! 5.3 (1.0: 6.3): cycle counts.

use hartrace_ctr::{Config, ConfigError, CycleCount, Version};
use hartrace_flow::Transfer;
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

/// The table "Cycle Counter Size Options": bits of CCE, bits of the counter,
/// the largest value.
const SIZES: [(u8, u32, u64); 5] = [
    (0, 12, 4095),
    (1, 13, 8191),
    (2, 15, 32_764),
    (3, 19, 524_224),
    (4, 27, 134_201_344),
];

/// CCE and CCM by the sentences of 1.0, bit by bit.
fn encode(cycles: u64) -> (u32, u64) {
    if cycles < 4096 {
        return (0, cycles);
    }
    let highest = (0..64).rev().find(|bit| cycles >> bit & 1 != 0).unwrap();
    let cce = highest - 11;
    // Bits CCE+10:CCE-1 of the counter.
    let ccm = (0..12).fold(0, |ccm, bit| ccm | (cycles >> (cce - 1 + bit) & 1) << bit);
    (cce, ccm)
}

/// Software's formula.
fn decode(cce: u32, ccm: u64) -> u64 {
    if cce == 0 {
        ccm
    } else {
        (4096 + ccm) << (cce - 1)
    }
}

/// The CC field that a width gives.
fn field(cycles: u64, (bits, _, most): (u8, u32, u64)) -> u64 {
    if cycles >= most {
        return (1 << (12 + bits)) - 1;
    }
    let (cce, ccm) = encode(cycles);
    u64::from(cce) << 12 | ccm
}

/// Around every power of two, every step of every exponent, and far away.
fn edges() -> Vec<u64> {
    let mut all: Vec<u64> = (0..70_000).collect();
    for bit in 12..64 {
        let power = 1u64 << bit;
        let step = power >> 12;
        let near = [0, 1, 2, step - 1, step, step + 1, 2 * step];
        for near in near {
            all.extend([power.saturating_sub(near), power.saturating_add(near)]);
            all.push((power - 1).wrapping_mul(2).saturating_sub(near));
        }
    }
    for (_, bits, most) in SIZES {
        all.extend([most - 1, most, most + 1, (1 << bits) - 1, 1 << bits]);
    }
    all.push(u64::MAX);
    all
}

/// Every count that can be held is decoded by the formula, and encoded again is
/// itself; the cycles between two counts belong to the lower.
#[test]
fn every_count() {
    let size = SIZES[4];
    for cc in 0..=u16::MAX {
        let cycles = decode(u32::from(cc >> 12), u64::from(cc & 0xfff));
        assert_eq!(CycleCount(cc).cycles(), cycles);
        assert_eq!(CycleCount::new(cycles, 4), CycleCount(cc));
        if cc < u16::MAX {
            let next = decode(u32::from((cc + 1) >> 12), u64::from((cc + 1) & 0xfff));
            assert!(next > cycles);
            assert_eq!(CycleCount::new(next - 1, 4), CycleCount(cc));
        }
        assert_eq!(field(cycles, size), u64::from(cc));
    }
}

/// Every width, at the edges and for all small counts.
#[test]
fn every_width() {
    for size in SIZES {
        for cycles in edges() {
            let count = CycleCount::new(cycles, size.0);
            assert_eq!(u64::from(count.0), field(cycles, size), "{size:?} {cycles}");
        }
    }
}

/// The largest value of each width, and that it needs these bits of a counter.
#[test]
fn saturation() {
    for (bits, counter, most) in SIZES {
        let all_ones = CycleCount::most(bits);
        assert_eq!(u64::from(all_ones.0), (1 << (12 + bits)) - 1);
        assert_eq!(all_ones.cycles(), most);
        assert!(most < 1 << counter && most >= 1 << (counter - 1));
        for cycles in [most, most + 1, 1 << counter, u64::MAX] {
            assert_eq!(CycleCount::new(cycles, bits), all_ones, "{bits} {cycles}");
        }
        assert!(CycleCount::new(most - 1, bits).0 < all_ones.0);
    }
    let five = Config {
        cycles: Some(5),
        ..full(V1_0)
    };
    assert_eq!(five.validate(), Err(ConfigError::Exponent));
}

/// The note: CCE 3 leaves two bits out, so it counts by fours; the mean
/// undercount is (2^(CCE-1) - 1) / 2.
#[test]
fn undercount() {
    for cce in 1..=15u32 {
        let step = 1u64 << (cce - 1);
        let base = 4096 * step + 77 * step;
        let lost: u64 = (0..step)
            .map(|n| base + n - CycleCount::new(base + n, 4).cycles())
            .sum();
        assert_eq!(2 * lost, step * (step - 1), "{cce}");
    }
}

/// CCV and CC of the newest entry: `None` when CCV is 0.
fn count(s: &mut Software) -> Option<u64> {
    let data = s.entry(0).2;
    (data >> 15 & 1 != 0).then_some(data >> 16)
}

fn jump_at(s: &mut Software, now: u64) {
    s.now = now;
    s.jump(Itype::DirectJump, 0x1000, 0x2000);
}

/// The counts in records: the cycles since the record before, in every mode.
#[test]
fn elapsed_cycles() {
    for version in Version::ALL {
        for size in SIZES {
            for mode in MODES {
                let mut s = Software::new(Config {
                    cycles: Some(size.0),
                    ..full(version)
                });
                s.record_in(&[mode], "");
                s.mode = mode;
                let mut now = 100;
                jump_at(&mut s, now);
                assert_eq!(count(&mut s), None, "the first");
                for elapsed in [0, 1, 4095, 4096, 8191, 8192, 9001, 32_764, 1 << 40] {
                    now += elapsed;
                    jump_at(&mut s, now);
                    let expected = Some(field(elapsed, size));
                    assert_eq!(count(&mut s), expected, "{version} {size:?} {elapsed}");
                }
            }
        }
    }
}

/// Without cycle counting there is neither CCV nor CC.
#[test]
fn not_implemented() {
    for version in Version::ALL {
        let mut s = Software::new(Config {
            cycles: None,
            ..full(version)
        });
        s.record_in(&[M], "");
        for now in [10, 20, 30] {
            jump_at(&mut s, now);
            assert_eq!(s.entry(0).2, 11, "TYPE alone");
        }
    }
}

/// Filtered transfers are no records: their cycles count on.
#[test]
fn filtered_transfers() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "RETINH");
        jump_at(&mut s, 10);
        s.now = 15;
        s.jump(Itype::Return, 0x1000, 0x2000);
        s.jump(Itype::NotTaken, 0x1000, 0x2000);
        jump_at(&mut s, 25);
        assert_eq!(count(&mut s), Some(15), "{version}");
    }
}

/// Only cycles in enabled modes count (1.0: "active"; 0.1.4: "qualified").
#[test]
fn cycles_of_other_modes() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[U, VU], "");
        s.mode = U;
        jump_at(&mut s, 100);
        s.now = 110;
        s.change(Itype::Exception, 0x1000, 0x2000, S);
        s.now = 500;
        s.change(Itype::TrapReturn, 0x3000, 0x1000, U);
        jump_at(&mut s, 507);
        assert_eq!(count(&mut s), Some(17), "{version}");
        // A guest's cycles, by the guest's enables.
        s.now = 510;
        s.change(Itype::Exception, 0x1000, 0x2000, S);
        s.now = 600;
        s.change(Itype::TrapReturn, 0x3000, 0x1000, VU);
        jump_at(&mut s, 601);
        assert_eq!(count(&mut s), Some(4), "{version}");
    }
}

/// Nor do cycles while it is frozen.
#[test]
fn cycles_while_frozen() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        jump_at(&mut s, 100);
        s.now = 103;
        s.set_status(1 | 0x8000_8000);
        jump_at(&mut s, 200);
        s.now = 300;
        s.set_status(1);
        jump_at(&mut s, 304);
        assert_eq!(count(&mut s), Some(7), "{version}");
    }
}

/// Nor do cycles in debug mode.
#[test]
fn cycles_in_debug_mode() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        jump_at(&mut s, 100);
        s.ctr.enter(D, Some(105));
        s.mode = D;
        jump_at(&mut s, 150);
        s.ctr.enter(M, Some(200));
        s.mode = M;
        jump_at(&mut s, 202);
        assert_eq!(count(&mut s), Some(7), "{version}");
    }
}

/// "The next record will have CCV=0 after a write to xctrctl"; the one behind
/// has its count again.
#[test]
fn writes_of_controls() {
    for version in Version::ALL {
        let map = map(version);
        let numbers = [(M, map.mctl), (S, map.sctl), (S, map.vsctl), (VS, map.sctl)];
        for (mode, number) in numbers {
            let mut s = Software::new(full(version));
            s.record_in(&MODES, "");
            jump_at(&mut s, 10);
            jump_at(&mut s, 20);
            assert_eq!(count(&mut s), Some(10));
            s.mode = mode;
            s.now = 22;
            let same = s.read(number);
            s.write(number, same);
            s.mode = M;
            jump_at(&mut s, 30);
            assert_eq!(count(&mut s), None, "{version} {mode:?} {number:#x}");
            jump_at(&mut s, 41);
            assert_eq!(count(&mut s), Some(11), "{version} {mode:?} {number:#x}");
        }
    }
    // The halves of RV32, too.
    for number in [0x381, 0x382, 0x181, 0x182] {
        let mut s = Software::new(Config::new(V0_1_4, Xlen::Rv32));
        s.record_in(&[M], "");
        jump_at(&mut s, 10);
        jump_at(&mut s, 20);
        let same = s.read(number);
        s.write(number, same);
        jump_at(&mut s, 30);
        assert_eq!(count(&mut s), None, "{number:#x}");
    }
}

/// Other registers may be written without harm: no cycle is missed.
#[test]
fn writes_of_other_registers() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        jump_at(&mut s, 10);
        s.now = 13;
        s.set_status(1);
        s.set_entry(0, (0x3001, 0x4000, 0));
        if version == V1_0 {
            let depth = s.read(0x15f);
            s.write(0x15f, depth);
        }
        jump_at(&mut s, 20);
        assert_eq!(count(&mut s), Some(10), "{version}");
    }
}

/// A time that nobody knows makes a count that is not valid, until the next
/// record.
#[test]
fn times_that_are_not_known() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        jump_at(&mut s, 10);
        s.ctr.record(&Transfer {
            kind: Itype::DirectJump,
            ..Transfer::default()
        });
        assert_eq!(count(&mut s), None);
        jump_at(&mut s, 30);
        assert_eq!(count(&mut s), None, "since when?");
        jump_at(&mut s, 33);
        assert_eq!(count(&mut s), Some(3));
    }
}

/// Traps, trap returns and partial records have counts as others do.
#[test]
fn counts_of_traps() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.record_in(&[M, U], "");
        jump_at(&mut s, 10);
        s.now = 14;
        s.change(Itype::TrapReturn, 0x1000, 0x2000, U);
        assert_eq!(count(&mut s), Some(4));
        s.now = 20;
        s.change(Itype::Interrupt, 0x1000, 0x2000, M);
        assert_eq!(count(&mut s), Some(6));
        s.now = 21;
        s.change(Itype::TrapReturn, 0x1000, 0x2000, S);
        assert_eq!(count(&mut s), Some(1), "to a disabled mode");
        s.now = 90;
        s.change(Itype::Exception, 0x1000, 0x2000, M);
        assert_eq!(count(&mut s), Some(0), "from a disabled mode");
        assert_eq!(s.sources().len(), 5);
    }
}
