//! Appendices C and D.

use super::*;
use crate::config::Addresses;

/// As the tables of Appendix C are: physical addresses and differences.
fn tables() -> Config {
    Config {
        style: Style {
            addresses: Addresses::Physical,
            incremental: true,
            start: false,
            ..Style::default()
        },
        ..Config::default()
    }
}

/// The bytes of the last of several steps.
fn last_group(config: &Config, steps: &[Did]) -> Vec<u8> {
    let (_, before) = steps.split_last().unwrap();
    encode(config, steps).split_off(encode(config, before).len())
}

#[test]
fn c1_add() {
    let bytes = encode_insn(&tables(), 0x0062_81b3, x(3, 0x1234));
    assert_eq!(
        bytes,
        [
            0x01, 0x03, 0x11, 0xb3, 0x81, 0x62, 0x00, 0x04, 0x03, 0x10, 0x34, 0x12, 0, 0, 0, 0, 0,
            0, 0x02
        ]
    );
}

/// The identifier of the pc is 10, not 0x10.
#[test]
fn c2_jr() {
    let jump = Insn {
        next: 0x0c00_0100,
        ..insn(0x1001_0067)
    };
    let bytes = encode(&tables(), &[(Step::Insn(jump), none())]);
    assert_eq!(
        bytes,
        [
            0x01, 0x07, 0x0a, 0x00, 0x01, 0x00, 0x0c, 0, 0, 0, 0, 0x11, 0x67, 0x00, 0x01, 0x10,
            0x02
        ]
    );
}

/// fcsr was told before, so that the flag can be told as a bit that is set.
#[test]
fn c3_fadd() {
    let clear = Step::Insn(Insn {
        pc: 0xffc,
        next: 0x1000,
        ..insn(0x0030_1073)
    });
    let add = Step::Insn(insn(0x0116_f3d3));
    let effects = f(7, 0xffff_ffff_66fe_f4f9).csr(0x003, 1);
    let steps = [(clear, none().csr(0x003, 0)), (add, effects)];
    assert_eq!(
        last_group(&tables(), &steps),
        [
            0x01, 0x03, 0x11, 0xd3, 0xf3, 0x16, 0x01, 0x04, 0x27, 0x10, 0xf9, 0xf4, 0xfe, 0x66,
            0xff, 0xff, 0xff, 0xff, 0x06, 0x03, 0x00, 0x01, 0x02
        ]
    );
}

/// a0 is 0x100a, not 0x1010.
#[test]
fn c4_c_sub() {
    let bytes = encode_insn(&tables(), 0x8d0d, x(10, 0xffff_ffff_1234_5678));
    assert_eq!(
        bytes,
        [
            0x01, 0x03, 0x10, 0x0d, 0x8d, 0x04, 0x0a, 0x10, 0x78, 0x56, 0x34, 0x12, 0xff, 0xff,
            0xff, 0xff, 0x02
        ]
    );
}

/// A 32-bit instruction has opcode 0x11, and lw extends the sign.
#[test]
fn c5_lw() {
    let access = Access {
        paddr: Some(0x0100_0008),
        ..load(2, 0x4000_0008, 0x55aa_55aa)
    };
    let bytes = encode_insn(&tables(), 0x0082_a203, x(4, 0x55aa_55aa).access(access));
    assert_eq!(
        bytes,
        [
            0x01, 0x03, 0x11, 0x03, 0xa2, 0x82, 0x00, 0x04, 0x04, 0x10, 0xaa, 0x55, 0xaa, 0x55, 0,
            0, 0, 0, 0x07, 0x02, 0x08, 0x00, 0x00, 0x01, 0, 0, 0, 0, 0x02
        ]
    );
}

#[test]
fn c6_csrrc() {
    let effects = x(9, 0x0888).csr(0x304, 0x0880);
    let bytes = encode_insn(&tables(), 0x3045_b4f3, effects);
    assert_eq!(
        bytes,
        [
            0x01, 0x03, 0x11, 0xf3, 0xb4, 0x45, 0x30, 0x04, 0x09, 0x10, 0x88, 0x08, 0, 0, 0, 0, 0,
            0, 0x04, 0x04, 0x03, 0x80, 0x08, 0, 0, 0, 0, 0, 0, 0x02
        ]
    );
}

/// The group of an exception or interrupt with the CSRs of tables C.7 and C.8.
fn trap_group(insn: &[u8], epc: u8, cause: [u8; 8]) -> Vec<u8> {
    [
        &[0x01, 0x07, 0x0a, 0x00, 0x00, 0x01, 0, 0, 0, 0, 0][..],
        insn,
        &[0x04, 0x41, 0x03, epc, 0x12, 0x08, 0, 0, 0, 0, 0],
        &[0x04, 0x42, 0x03],
        &cause,
        &[0x04, 0x00, 0x03, 0xb0, 0x18, 0, 0, 0x0a, 0, 0, 0],
        &[0x04, 0x43, 0x03, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x07, 0x01, 0x03, 0x02],
    ]
    .concat()
}

fn trap_step(epc: u64, cause: Cause, bits: Option<u32>) -> Step {
    let mut step = trap(cause, bits);
    step.trap.epc = Some(epc);
    step.trap.handler = Some(0x1_0000);
    step.trap.tval = Some(0);
    Step::Trap(step)
}

fn trap_effects(epc: u64, cause: u64) -> Effects {
    none()
        .csr(0x341, epc)
        .csr(0x342, cause)
        .csr(0x300, 0x0a_0000_18b0)
        .csr(0x343, 0)
}

/// By its lowest bits the instruction of table C.7 has 16 bits.
#[test]
fn c7_illegal_instruction() {
    let step = trap_step(0x8_1234, Cause::Exception(Some(2)), Some(0));
    let bytes = encode(&tables(), &[(step, trap_effects(0x8_1234, 2))]);
    let want = trap_group(&[0x10, 0, 0], 0x34, [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, want);
}

#[test]
fn c8_interrupt() {
    let step = trap_step(0x8_1256, Cause::Interrupt(Some(3)), None);
    let effects = trap_effects(0x8_1256, 1 << 63 | 3);
    let bytes = encode(&tables(), &[(step, effects)]);
    assert_eq!(bytes, trap_group(&[], 0x56, [3, 0, 0, 0, 0, 0, 0, 0x80]));
}

/// Sizes of Appendix D: those of the tables with four bytes more for minstret
/// in every group of an instruction. The branch row (27) has a slip, as the
/// row of jumps with a link shows: 21. The exception row (68) counts minstret,
/// though nothing retires.
#[test]
fn sizes_of_appendix_d() {
    let config = |virtual_addresses: bool| Config {
        style: Style {
            minstret: true,
            addresses: match virtual_addresses {
                true => Addresses::Both,
                false => Addresses::Translated,
            },
            ..tables().style
        },
        ..Config::default()
    };
    let (flat, both) = (config(false), config(true));
    let at = |access: Access| Access {
        paddr: Some(access.addr),
        ..access
    };
    let read = at(load(3, 0x8000_0000, 1));
    let written = at(store(3, 0x8000_0000, 1));
    let swapped = Access {
        kind: AccessKind::AtomicSwap,
        operand: Some(7),
        ..written
    };
    let far = Insn {
        next: 0x8000,
        ..insn(0x6f)
    };
    let size = |config: &Config, bits: u32, effects: Effects| {
        // Flags that were told before accrue.
        let first = Step::Insn(Insn {
            pc: 0xffc,
            next: 0x1000,
            ..insn(0x0030_1073)
        });
        let step = Step::Insn(insn(bits));
        last_group(config, &[(first, none().csr(0x001, 0)), (step, effects)]).len()
    };
    let big = 0x1234_5678_9abc_def0;
    for (row, size, want) in [
        (
            "integer computation",
            size(&flat, 0x0062_81b3, x(3, big)),
            23,
        ),
        ("nop", size(&flat, 0x13, none()), 12),
        ("load", size(&flat, 0x3, x(3, big).access(read)), 33),
        (
            "load (virtual)",
            size(&both, 0x3, x(3, big).access(read)),
            43,
        ),
        ("store", size(&flat, 0x23, none().access(written)), 32),
        (
            "store (virtual)",
            size(&both, 0x23, none().access(written)),
            42,
        ),
        (
            "sc, amo",
            size(&both, 0x0820_b1af, x(3, big).access(swapped)),
            53,
        ),
        (
            "csr read-write",
            size(&flat, 0x3045_b4f3, x(9, big).csr(0x304, 8)),
            34,
        ),
        ("csr read only", size(&flat, 0x3040_24f3, x(9, big)), 23),
        (
            "csr write only",
            size(&flat, 0x3045_9073, none().csr(0x304, 8)),
            23,
        ),
        (
            "fp computation",
            size(&flat, 0x0116_f3d3, f(7, big).csr(1, 1)),
            27,
        ),
        ("fp move", size(&flat, 0xe200_0553, x(10, big)), 23),
        (
            "fp conversion",
            size(&flat, 0xc200_0553, x(10, big).csr(1, 1)),
            27,
        ),
        ("fp load", size(&both, 0x3007, f(7, big).access(read)), 43),
        ("fp store", size(&both, 0x3027, none().access(written)), 42),
        (
            "branch, jump",
            encode(&flat, &[(Step::Insn(far), none())]).len(),
            21,
        ),
        (
            "jump and link",
            encode(&flat, &[(Step::Insn(far), x(1, big))]).len(),
            32,
        ),
    ] {
        assert_eq!(size, want, "{row}");
    }
    let interrupt = trap_step(0x8_1256, Cause::Interrupt(Some(3)), None);
    let effects = trap_effects(0x8_1256, 1 << 63 | 3);
    assert_eq!(encode(&flat, &[(interrupt, effects)]).len(), 59);
    // ecall has 32 bits.
    let exception = trap_step(0x8_1234, Cause::Exception(Some(11)), Some(0x73));
    let effects = trap_effects(0x8_1234, 11);
    assert_eq!(encode(&flat, &[(exception, effects)]).len(), 68 - 4);
}
