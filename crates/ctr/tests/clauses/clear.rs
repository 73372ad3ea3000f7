//! CLR of 0.1.4 (2.1, 2.3) and SCTRCLR of 1.0 (4.1).

use hartrace_ctr::Config;
use hartrace_isa::{Itype, Xlen};

use crate::common::*;

/// Every entry written, at depth 256, then this depth, and a status.
fn filled(config: Config, depth: u16, status: u64) -> Software {
    let mut s = Software::new(config);
    s.depth(256);
    for entry in 0..256 {
        s.set_entry(entry, (0x1001, 0x2001, 0x1234_8009));
    }
    s.depth(depth);
    for entry in 0..depth {
        s.set_entry(entry, (0x1001, 0x2001, 0x1234_8009));
    }
    s.set_status(status);
    s
}

/// No entry holds anything, at any depth.
fn assert_empty(s: &mut Software, what: &str) {
    let depth = s.ctr.depth();
    for entry in 0..256 {
        assert_eq!(s.entry(entry), (0, 0, 0), "{what}");
    }
    for other in [16, 32, 64, 128, 256] {
        s.depth(other);
        for entry in 0..256 {
            assert_eq!(s.entry(entry), (0, 0, 0), "{what} at {other}");
        }
    }
    s.depth(depth);
}

/// 0.1.4: written to 1, CLR zeroes all entries, whatever the depth, and the
/// status; through mctrcontrol and sctrcontrol, and as a guest's sctrcontrol.
#[test]
fn clr() {
    for xlen in [Xlen::Rv64, Xlen::Rv32] {
        let config = Config::new(V0_1_4, xlen).with_hypervisor();
        for depth in [16, 64, 256] {
            for (mode, number) in [(M, 0x381), (M, 0x181), (S, 0x181), (VS, 0x181)] {
                let mut s = filled(config, depth, 0xc005);
                s.mode = mode;
                let code = (u64::from(depth >> 4) - 1) << 16;
                s.write(number, code | CLR);
                assert_eq!(s.status(), 0);
                assert_eq!(s.ctr.depth(), depth);
                assert_empty(&mut s, &format!("{mode:?} {number:#x}"));
            }
        }
    }
}

/// 0.1.4, 2.3, note: vsctrcontrol.CLR written with V = 0 clears nothing.
#[test]
fn clr_of_a_guest_that_does_not_run() {
    for mode in [M, S] {
        let mut s = filled(full(V0_1_4), 16, 0xc005);
        s.mode = mode;
        s.write(0x281, CLR);
        assert_eq!(s.status(), 0xc005, "{mode:?}");
        assert_eq!(s.entry(0), (0x1001, 0x2001, 0x1234_8009));
        assert_eq!(s.read(0x281) & CLR, 0);
    }
}

/// 0.1.4: written to 0 it does nothing; the fields written with it hold.
#[test]
fn clr_and_other_fields() {
    let mut s = filled(full(V0_1_4), 16, 0xc005);
    s.write(0x381, bits(V0_1_4, "M U"));
    assert_eq!(s.status(), 0xc005);
    assert_eq!(s.sources().len(), 16);
    s.write(0x381, bits(V0_1_4, "M U BPFRZ") | CLR | 3 << 16);
    assert_eq!(s.read(0x381), bits(V0_1_4, "M U BPFRZ") | 3 << 16);
    assert_eq!(s.ctr.depth(), 64);
    assert_eq!(s.status(), 0);
    // It records at once: FROZEN is clear, too.
    s.jump(Itype::DirectJump, 0x3000, 0x4000);
    assert_eq!(s.sources(), [0x3000]);
}

/// 1.0: all entries for all depths; the status is left alone.
#[test]
fn sctrclr() {
    for xlen in [Xlen::Rv64, Xlen::Rv32] {
        let config = Config::new(V1_0, xlen).with_hypervisor();
        for mode in [M, S, VS, D] {
            for (depth, status) in [(16, 0x8000_0005), (64, 7), (256, 0x8000_00ff)] {
                let mut s = filled(config, depth, status);
                s.mode = mode;
                s.try_clear().unwrap();
                assert_eq!(s.status(), status, "{mode:?}");
                s.mode = M;
                assert_empty(&mut s, &format!("{mode:?} {depth}"));
            }
        }
    }
}

/// 1.0: it leaves the control registers alone, and recording goes on.
#[test]
fn sctrclr_and_recording() {
    let mut s = Software::new(full(V1_0));
    s.record_in(&[M, VS], "EXCINH");
    let before = (s.read(0x34e), s.read(0x24e));
    s.jump(Itype::DirectJump, 0x1000, 0x2000);
    s.try_clear().unwrap();
    assert_eq!((s.read(0x34e), s.read(0x24e)), before);
    assert_eq!(s.wrptr(), 1);
    s.jump(Itype::DirectJump, 0x3000, 0x4000);
    assert_eq!(s.sources(), [0x3000]);
    assert_eq!(s.wrptr(), 2);
}

/// 1.0, 4.1; 0.1.4, 5.3: the next record has no valid count.
#[test]
fn no_count_behind_a_clear() {
    for version in [V0_1_4, V1_0] {
        let mut s = Software::new(full(version));
        s.record_in(&[M], "");
        s.now = 10;
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
        s.now = 20;
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
        assert_eq!(s.entry(0).2 >> 15, 10 << 1 | 1);
        s.now = 25;
        match version {
            V0_1_4 => s.write(0x381, bits(version, "M") | CLR),
            V1_0 => s.try_clear().unwrap(),
        }
        s.now = 30;
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
        assert_eq!(s.entry(0).2 >> 15 & 1, 0, "{version}");
        s.now = 41;
        s.jump(Itype::DirectJump, 0x1000, 0x2000);
        assert_eq!(s.entry(0).2 >> 15, 11 << 1 | 1, "{version}");
    }
}
