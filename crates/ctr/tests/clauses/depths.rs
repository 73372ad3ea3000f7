//! DEPTH: 0.1.4, 2.1 and chapter 6; 1.0, 2.4.

use hartrace_ctr::{Config, ConfigError, Depths, Version};
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

/// 0.1.4, 2.1: a thermometer; 1.0, 2.4: a number.
const CODES: [(u16, u64, u64); 5] = [
    (16, 0b0000, 0b000),
    (32, 0b0001, 0b001),
    (64, 0b0011, 0b010),
    (128, 0b0111, 0b011),
    (256, 0b1111, 0b100),
];

fn set_of(depths: &[u16]) -> Depths {
    let none = Depths::NONE;
    depths.iter().fold(none, |set, d| set.with(*d).unwrap())
}

/// All sets of at least one depth.
fn sets() -> impl Iterator<Item = Vec<u16>> {
    let all = [16, 32, 64, 128, 256];
    (1u32..32).map(move |set| {
        let there = all
            .iter()
            .enumerate()
            .filter(move |(i, _)| set >> i & 1 != 0);
        there.map(|(_, depth)| *depth).collect()
    })
}

fn consecutive(depths: &[u16]) -> bool {
    depths.windows(2).all(|pair| pair[1] == 2 * pair[0])
}

/// Writes a code and gives that which is read back.
fn choose(s: &mut Software, code: u64) -> u64 {
    match s.version {
        V0_1_4 => s.try_out(0x381, code << 16) >> 16 & 0xf,
        V1_0 => s.try_out(0x15f, code),
    }
}

fn code_of(version: Version, depth: u16) -> u64 {
    let row = CODES.iter().find(|row| row.0 == depth).unwrap();
    match version {
        V0_1_4 => row.1,
        V1_0 => row.2,
    }
}

/// Every encoding, and that so many entries are used then.
#[test]
fn encodings() {
    for config in everything() {
        for (depth, _, _) in CODES {
            let mut s = Software::new(config);
            let code = code_of(config.version, depth);
            assert_eq!(choose(&mut s, code), code, "{config:?} {depth}");
            assert_eq!(s.ctr.depth(), depth);
            s.record_in(&[M], "");
            for n in 0..300 {
                s.jump(Itype::DirectJump, 0x1000 + 4 * n, 0);
            }
            // Entries 0 to N - 1 are the last N; all behind are 0.
            for entry in 0..256 {
                let (source, target, data) = s.entry(entry);
                if entry < depth {
                    assert_eq!(source, (0x1000 + 4 * (299 - u64::from(entry))) | 1);
                } else {
                    assert_eq!((source, target, data), (0, 0, 0));
                }
            }
        }
    }
}

/// Any set of depths that an implementation may have: what is supported can be
/// chosen, and whatever is written gives one that is.
#[test]
fn supported_depths() {
    for version in Version::ALL {
        for depths in sets() {
            let config = Config {
                depths: set_of(&depths),
                ..full(version)
            };
            if version == V0_1_4 && !consecutive(&depths) {
                assert_eq!(config.validate(), Err(ConfigError::ScatteredDepths));
                continue;
            }
            let codes: Vec<u64> = depths.iter().map(|d| code_of(version, *d)).collect();
            let mut s = Software::new(config);
            for code in &codes {
                assert_eq!(choose(&mut s, *code), *code, "{version} {depths:?}");
            }
            for code in 0..16 {
                let got = choose(&mut s, code);
                assert!(codes.contains(&got), "{version} {depths:?} {code}: {got}");
                assert!(depths.contains(&s.ctr.depth()));
            }
            let after_reset = Software::new(config).ctr.depth();
            assert!(depths.contains(&after_reset), "{version} {depths:?}");
        }
        let none = Config {
            depths: Depths::NONE,
            ..full(version)
        };
        assert_eq!(none.validate(), Err(ConfigError::NoDepth));
    }
    for depth in [0, 1, 8, 15, 17, 48, 255, 257, 512] {
        assert_eq!(Depths::ALL.with(depth), None);
        assert!(!Depths::ALL.contains(depth));
    }
}

/// 0.1.4, chapter 6: 0000 gives the least depth, 1111 the greatest; all between
/// are there. 1.0 with all ones: a depth that is supported.
#[test]
fn discovery() {
    for depths in sets().filter(|depths| consecutive(depths)) {
        let config = Config {
            depths: set_of(&depths),
            ..full(V0_1_4)
        };
        let (least, most) = (depths[0], depths[depths.len() - 1]);
        let mut s = Software::new(config);
        assert_eq!(choose(&mut s, 0b0000), code_of(V0_1_4, least));
        assert_eq!(s.ctr.depth(), least);
        assert_eq!(choose(&mut s, 0b1111), code_of(V0_1_4, most));
        assert_eq!(s.ctr.depth(), most);
        let between = CODES.iter().map(|row| row.0);
        for depth in between.filter(|d| (least..=most).contains(d)) {
            let code = code_of(V0_1_4, depth);
            assert_eq!(choose(&mut s, code), code);
        }
    }
    for depths in sets() {
        let config = Config {
            depths: set_of(&depths),
            ..full(V1_0)
        };
        let mut s = Software::new(config);
        let most = depths[depths.len() - 1];
        assert_eq!(s.try_out(0x15f, u64::MAX), code_of(V1_0, most));
    }
}

/// 1.0, 2.4: DEPTH is bits 2:0, the others are 0; 101 and up are no depths.
#[test]
fn bits_of_sctrdepth() {
    for xlen in [Xlen::Rv64, Xlen::Rv32] {
        let mut s = Software::new(Config::new(V1_0, xlen));
        assert_eq!(s.try_out(0x15f, !7), 0);
        for code in 0..8 {
            let got = s.try_out(0x15f, xlen.wrap(!7) | code);
            assert!(got <= 4);
            assert!(code > 4 || got == code);
        }
    }
}

/// 2.4, 2.5 of 1.0 and 2.4 of 0.1.4: whatever a change of depth leaves, it is
/// legal: WRPTR below the depth, the entries in their formats, and recording
/// goes on.
#[test]
fn changes_of_depth() {
    for version in Version::ALL {
        for (from, _, _) in CODES {
            for (to, _, _) in CODES {
                let mut s = Software::new(full(version));
                s.depth(from);
                s.record_in(&[M], "");
                for n in 0..u64::from(from) + 7 {
                    s.jump(Itype::DirectCall, 0x1000 + 4 * n, 0x2000);
                }
                s.depth(to);
                assert!(s.wrptr() < u64::from(to), "{version} {from} {to}");
                for entry in 0..256 {
                    let (source, target, data) = s.entry(entry);
                    assert!(target == 0x2000 || target == 0);
                    assert_eq!(data & !0xffff_800f, 0);
                    assert!(entry < to || (source, target, data) == (0, 0, 0));
                }
                let at = s.wrptr();
                s.jump(Itype::DirectCall, 0x5000, 0x6000);
                assert_eq!(s.entry(0).0, 0x5001);
                assert_eq!(s.entry(0).1, 0x6000);
                assert_eq!(s.wrptr(), (at + 1) % u64::from(to));
            }
        }
    }
}

/// Reading 7: the physical entries stay where they are, and those behind the
/// depth come back with it; WRPTR loses the bits that the depth has not.
#[test]
fn reading_07_the_array_stays() {
    for version in Version::ALL {
        for (from, _, _) in CODES {
            for (to, _, _) in CODES {
                let mut s = Software::new(full(version));
                s.depth(256);
                // With WRPTR 0, physical entry Y is logical entry 255 - Y.
                for y in 0..256 {
                    s.set_entry(255 - y, (0x1000 + 2 * u64::from(y), 0, 0));
                }
                s.depth(from);
                s.set_status(u64::from(from) - 3);
                s.depth(to);
                let wrptr = u64::from((from - 3) % to);
                assert_eq!(s.wrptr(), wrptr, "{version} {from} {to}");
                for x in 0..to {
                    let y = (wrptr + 256 - u64::from(x) - 1) % u64::from(to);
                    assert_eq!(s.entry(x).0, 0x1000 + 2 * y, "{version} {from} {to}");
                }
            }
        }
    }
}

/// Writing the depth that is chosen already changes nothing.
#[test]
fn the_same_depth_again() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.depth(32);
        s.record_in(&[M], "");
        for n in 0..40 {
            s.jump(Itype::DirectJump, 0x1000 + 4 * n, 0x2000);
        }
        let before: Vec<_> = (0..32).map(|e| s.entry(e)).collect();
        s.depth(32);
        assert_eq!(s.wrptr(), 8);
        assert_eq!((0..32).map(|e| s.entry(e)).collect::<Vec<_>>(), before);
    }
}

/// 0.1.4, 2.2: the supervisor chooses the depth, too. 1.0, 2.4: so it does.
#[test]
fn the_supervisor_chooses() {
    for (depth, draft, ratified) in CODES {
        let mut s = Software::new(full(V0_1_4));
        s.mode = S;
        assert_eq!(s.try_out(0x181, draft << 16), draft << 16);
        assert_eq!(s.ctr.depth(), depth);
        let mut s = Software::new(full(V1_0));
        s.mode = S;
        assert_eq!(s.try_out(0x15f, ratified), ratified);
        assert_eq!(s.ctr.depth(), depth);
    }
}
