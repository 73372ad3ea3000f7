//! Chapter 3: the entry registers, through each window.

use hartrace_ctr::{Config, Denied, Predictor, Version, Window};
use hartrace_flow::Transfer;
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

/// The selects, and the window's registers 1 to 6, which leave out one number.
const MACHINE: [u16; 7] = [0x350, 0x351, 0x352, 0x353, 0x355, 0x356, 0x357];
const SUPERVISOR: [u16; 7] = [0x150, 0x151, 0x152, 0x153, 0x155, 0x156, 0x157];
const GUEST: [u16; 7] = [0x250, 0x251, 0x252, 0x253, 0x255, 0x256, 0x257];

/// Who reads entries through which window: 0.1.4 through all three, 1.0 not
/// through the machine's.
fn windows(version: Version) -> Vec<(hartrace_flow::Mode, [u16; 7])> {
    let mut all = vec![
        (M, SUPERVISOR),
        (M, GUEST),
        (S, SUPERVISOR),
        (S, GUEST),
        (VS, SUPERVISOR),
    ];
    if version == V0_1_4 {
        all.push((M, MACHINE));
    }
    all
}

/// 3: *ireg is ctrsource, *ireg2 ctrtarget, *ireg3 ctrdata, *ireg4 to *ireg6
/// are read-only 0, for each value of *iselect from 0x200; every window shows
/// the same entries.
#[test]
fn windows_show_the_same() {
    for config in everything() {
        let mut s = Software::new(config);
        s.depth(256);
        for entry in 0..256 {
            let n = u64::from(entry);
            s.set_entry(entry, (0x1000 + n, 0x2000 + 2 * n, 1 + n % 15));
        }
        for (mode, [select, numbers @ ..]) in windows(config.version) {
            for entry in 0..256u64 {
                s.mode = mode;
                s.write(select, 0x200 + entry);
                assert_eq!(s.read(select), 0x200 + entry);
                let shown = numbers.map(|number| s.read(number));
                let expected = [0x1000 + entry, 0x2000 + 2 * entry, 1 + entry % 15, 0, 0, 0];
                assert_eq!(shown, expected, "{config:?} {mode:?} {select:#x}");
            }
        }
    }
}

/// The same for writing; registers 4 to 6 take nothing.
#[test]
fn windows_write_the_same() {
    for config in everything() {
        for (mode, [select, numbers @ ..]) in windows(config.version) {
            let mut s = Software::new(config);
            s.mode = mode;
            s.write(select, 0x203);
            for (number, value) in numbers.into_iter().zip([5, 6, 7, 8, 9, 10]) {
                s.write(number, value);
            }
            assert_eq!(s.entry(3), (5, 6, 7), "{config:?} {mode:?}");
            let last = numbers.map(|number| s.read(number));
            assert_eq!(last, [5, 6, 7, 0, 0, 0]);
            assert_eq!(s.entry(2), (0, 0, 0));
            assert_eq!(s.entry(4), (0, 0, 0));
        }
    }
}

/// 1.0, 3 (and 2.6, note): miselect does not lead to entries.
#[test]
fn the_machine_window_of_1_0() {
    let mut s = Software::new(full(V1_0));
    for select in [0x200, 0x201, 0x2ff] {
        s.write(0x350, select);
        for number in MACHINE.into_iter().skip(1) {
            assert_eq!(s.try_read(number), Err(Denied::Illegal));
            assert_eq!(s.try_write(number, 1), Err(Denied::Illegal));
        }
    }
}

/// The selects of a host and its guest are two registers: with V = 1 siselect
/// is vsiselect.
#[test]
fn selects_of_guests() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        s.set_entry(1, (0x1000, 0, 0));
        s.set_entry(2, (0x2000, 0, 0));
        s.mode = S;
        s.write(0x150, 0x201);
        s.mode = VS;
        s.write(0x150, 0x202);
        assert_eq!(s.read(0x151), 0x2000);
        s.mode = S;
        assert_eq!(s.read(0x151), 0x1000);
        assert_eq!(s.read(0x251), 0x2000);
    }
}

/// 3: *iselect from 0x200 to 0x2ff, and no other.
#[test]
fn selects_of_entries() {
    for select in 0..0x1000u64 {
        let expected = (0x200..0x300).contains(&select).then(|| select - 0x200);
        assert_eq!(Window::entry(select).map(u64::from), expected);
    }
    for select in [0x1_0000_0200, u64::MAX, 1 << 63 | 0x200] {
        assert_eq!(Window::entry(select), None);
    }
    // The numbers between: 0x354 is another register's high half.
    for number in 0..0x1000 {
        let known = [MACHINE, SUPERVISOR, GUEST].concat().contains(&number);
        assert_eq!(Window::from_number(number).is_some(), known, "{number:#x}");
    }
}

/// 2.1, DEPTH (1.0: 2.4): entries from the depth on are read-only 0.
#[test]
fn entries_behind_the_depth() {
    for config in everything() {
        for depth in [16, 32, 64, 128, 256] {
            let mut s = Software::new(config);
            s.depth(depth);
            for entry in 0..256 {
                s.set_entry(entry, (0x4001, 0x5000, 9));
                let expected = if entry < depth {
                    (0x4001, 0x5000, 9)
                } else {
                    (0, 0, 0)
                };
                assert_eq!(s.entry(entry), expected, "{config:?} {depth} {entry}");
            }
        }
    }
}

/// 3.1 to 3.3, chapter 6: all ones and all zeros to an entry, with each option.
#[test]
fn every_bit_of_an_entry() {
    for base in everything() {
        let address = base.xlen.wrap(u64::MAX);
        for mispredicts in [false, true] {
            for types in [false, true] {
                for cycles in [None, Some(0), Some(1), Some(2), Some(3), Some(4)] {
                    let config = Config {
                        types,
                        mispredicts,
                        cycles,
                        ..base
                    };
                    let mut s = Software::new(config);
                    s.set_entry(0, (u64::MAX, u64::MAX, u64::MAX));
                    let target = address & !u64::from(!mispredicts);
                    // CCM is whole; CCE has its lowest bits.
                    let count = match cycles {
                        None => 0,
                        Some(0) => 0x0fff_8000,
                        Some(1) => 0x1fff_8000,
                        Some(2) => 0x3fff_8000,
                        Some(3) => 0x7fff_8000,
                        _ => 0xffff_8000,
                    };
                    let data = if types { 0xf } else { 0 } | count;
                    assert_eq!(s.entry(0), (address, target, data), "{config:?}");
                    s.set_entry(0, (0, 0, 0));
                    assert_eq!(s.entry(0), (0, 0, 0));
                }
            }
        }
    }
}

/// 3.3: TYPE holds what is written, reserved codes too.
#[test]
fn type_holds_every_code() {
    for config in everything() {
        let mut s = Software::new(config);
        for code in 0..16 {
            s.set_entry(0, (1, 0, code));
            assert_eq!(s.entry(0), (1, 0, code), "{config:?}");
        }
    }
}

/// 3.1, 3.2: every valid address can be held: a one at any bit, high halves
/// and low halves.
#[test]
fn addresses() {
    for config in everything() {
        let mut s = Software::new(config);
        s.record_in(&[M], "");
        let width = config.xlen.bits();
        let single = (1..width).map(|bit| 1u64 << bit);
        let more = [2, 0xffff_ffff_ffff_fffe, 0xffff_ffc0_0000_0000, 0x8000_0000];
        for pc in single.chain(more.map(|pc| config.xlen.wrap(pc))) {
            s.set_entry(0, (pc | 1, pc, 0));
            assert_eq!(s.entry(0), (pc | 1, pc, 0));
            s.jump(Itype::DirectJump, pc, pc);
            let (source, target, _) = s.entry(0);
            assert_eq!((source, target), (pc | 1, pc), "{config:?}");
        }
    }
}

/// 3.1, 3.2: the registers have MXLEN bits, PC[MXLEN-1:1] with V or MISP below,
/// whatever a transfer says.
#[test]
fn implicit_writes_have_mxlen_bits() {
    for version in Version::ALL {
        let mut s = Software::new(Config::new(version, Xlen::Rv32));
        s.record_in(&[M], "");
        s.jump(
            Itype::DirectJump,
            0xffff_ffff_8000_0011,
            0xffff_ffff_8000_0023,
        );
        let record = s.ctr.entry(0);
        assert_eq!(record.ctrsource, 0x8000_0011);
        assert_eq!(record.ctrtarget, 0x8000_0022);
    }
}

/// 3.1 to 3.3: software of 32 bits on a hart of 64 sees the lower 32 bits.
/// What it writes leaves the upper ones in 0.1.4 and zeroes them in 1.0.
#[test]
fn xlen_below_mxlen() {
    for version in Version::ALL {
        let mut s = Software::new(full(version));
        let source = 0xffff_ffc0_1234_5679;
        let target = 0x0000_003f_8765_4320;
        for (mode, select) in [(S, 0x150), (S, 0x250), (VS, 0x150)] {
            s.set_entry(0, (source, target, 0xabcd_8009));
            s.mode = mode;
            s.xlen = Xlen::Rv32;
            s.write(select, 0x200);
            assert_eq!(s.read(select + 1), 0x1234_5679);
            assert_eq!(s.read(select + 2), 0x8765_4320);
            assert_eq!(s.read(select + 3), 0xabcd_8009);
            s.write(select + 1, 0x5555_5555);
            s.write(select + 2, 0x6666_6666);
            s.write(select + 3, 0x7777_800c);
            assert_eq!(s.read(select + 1), 0x5555_5555);
            let expected = match version {
                V0_1_4 => (0xffff_ffc0_5555_5555, 0x0000_003f_6666_6666),
                V1_0 => (0x5555_5555, 0x6666_6666),
            };
            let (source, target, data) = s.entry(0);
            assert_eq!((source, target), expected, "{version} {mode:?}");
            assert_eq!(data, 0x7777_800c);
        }
        // Transfers in a mode of 32 bits leave no upper bits behind.
        s.record_in(&[U], "");
        s.set_status(1);
        s.set_entry(15, (source, source, 0));
        s.mode = U;
        s.jump(Itype::DirectJump, 0x9000_0000, 0xa000_0000);
        let (source, target, _) = s.entry(0);
        assert_eq!((source, target), (0x9000_0001, 0xa000_0000));
    }
}

/// 3.1, 3.3: V, and every implemented field, is set by a record.
#[test]
fn records_fill_their_fields() {
    for base in everything() {
        for (types, mispredicts) in [(false, false), (false, true), (true, false), (true, true)] {
            let config = Config {
                types,
                mispredicts,
                cycles: None,
                ..base
            };
            let mut s = Software::new(config);
            s.record_in(&[M], "");
            s.set_entry(15, (u64::MAX, u64::MAX, u64::MAX));
            s.ctr.record(&Transfer {
                source: 0x1000,
                target: 0x2000,
                kind: Itype::IndirectJump,
                mispredicted: true,
                ..Transfer::default()
            });
            let data = if types { 10 } else { 0 };
            let target = 0x2000 | u64::from(mispredicts);
            assert_eq!(s.entry(0), (0x1001, target, data), "{config:?}");
        }
    }
}

/// A predictor that is always wrong.
#[derive(Clone, Debug)]
struct Wrong;

impl Predictor for Wrong {
    fn mispredicts(&mut self, _: &Transfer) -> bool {
        true
    }

    fn boxed(&self) -> Box<dyn Predictor> {
        Box::new(self.clone())
    }
}

/// 3.2: MISP is about instructions: never set for traps, and by a predictor for
/// branches and jumps.
#[test]
fn misp() {
    for version in Version::ALL {
        for kind in TYPES {
            let mut s = Software::new(full(version));
            s.ctr = s.ctr.with_predictor(Some(Box::new(Wrong)));
            s.record_in(&[M], "NTBREN");
            s.transfer(kind, 0x1000, 0x2000);
            let misp = s.entry(0).1 & 1;
            let expected = u64::from(kind.code() >= 4);
            assert_eq!(misp, expected, "{version} {kind:?}");
        }
    }
}

/// 3.3: TYPE, by the codes of the table.
#[test]
fn types() {
    let codes = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    for version in Version::ALL {
        for (kind, code) in TYPES.into_iter().zip(codes) {
            let mut s = Software::new(full(version));
            s.record_in(&[M], "NTBREN");
            s.transfer(kind, 0x1000, 0x2000);
            assert_eq!(s.entry(0).2 & 0xf, code, "{version} {kind:?}");
            assert_eq!(s.ctr.entry(0).kind(), Some(kind));
        }
        // Reserved codes can be written and are no type.
        let mut s = Software::new(full(version));
        for code in [0, 6, 7] {
            s.set_entry(0, (1, 0, code));
            assert_eq!(s.ctr.entry(0).kind(), None);
        }
    }
}

/// 5 (1.0: 6): a record is pushed at entry 0, and the oldest is lost.
#[test]
fn older_entries_move_down() {
    for version in Version::ALL {
        for mode in MODES {
            let mut s = Software::new(full(version));
            s.record_in(&[mode], "");
            s.mode = mode;
            for n in 0..20 {
                s.jump(Itype::DirectJump, 0x1000 * (n + 1), 0x2000);
            }
            let expected: Vec<u64> = (5..=20).rev().map(|n| 0x1000 * n).collect();
            assert_eq!(s.sources(), expected, "{version} {mode:?}");
        }
    }
}
