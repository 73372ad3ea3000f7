//! What is left out, and what is told by differences.

use super::*;
use crate::config::PcStyle;
use crate::{Change, How};

fn absent(text: &str) -> Config {
    Config {
        absent: text.parse().unwrap(),
        ..bare()
    }
}

#[test]
fn absent_elements() {
    let effects = x(3, 1)
        .reg(RegId::F(4), 2)
        .csr(0x300, 3)
        .access(store(2, 0x8000, 4))
        .mode(Mode::S);
    let group = |text: &str| {
        let config = absent(text);
        groups(&config, &encode_insn(&config, 0x13, effects)).remove(0)
    };
    let full = group("");
    assert_eq!((full.items, full.changes.len()), (8, 3));
    let no_pc = group("pc");
    assert_eq!((no_pc.pc, no_pc.items), (None, 7));
    // An increment needs the instruction.
    let no_insn = group("insn");
    assert_eq!((no_insn.insn, no_insn.items), (None, 7));
    assert_eq!(no_insn.pc, Some(crate::NewPc::To(0x1004)));
    assert_eq!(group("priv").mode, None);
    assert_eq!(group("store").data[0].store, None);
    assert_eq!(group("gp").changes.len(), 2);
    assert_eq!(group("gpr,fpr,csr").changes.len(), 0);
    // Only traps leave it out.
    assert_eq!(group("trap.mstatus"), full);
    let nothing = group("pc,priv,insn,store,gpr,fpr,csr");
    assert_eq!(nothing.items, 1);
}

#[test]
fn absent_in_traps() {
    let effects = none().csr(0x341, 0x1000).csr(0x342, 2).csr(0x300, 8);
    let step = Step::Trap(trap(Cause::Exception(Some(2)), Some(0x1f)));
    let config = absent("trap.mstatus");
    let group = groups(&config, &encode(&config, &[(step, effects)])).remove(0);
    let told: Vec<_> = group.changes.iter().map(|c| c.register.number()).collect();
    assert_eq!(told, [0x341, 0x342]);
}

/// What a trap has left out has changed all the same: the next time it is told
/// in full.
#[test]
fn absent_in_traps_and_differences() {
    let mut config = absent("trap.mepc");
    config.style.incremental = true;
    let write = |value| (Step::Insn(insn(0x3412_9073)), none().csr(0x341, value));
    let step = Step::Trap(trap(Cause::Exception(Some(2)), Some(0x1f)));
    let trapped = (step, none().csr(0x341, 0x1000).csr(0x342, 2));
    let bytes = encode(&config, &[write(0x80), write(0x84), trapped, write(0x88)]);
    let told: Vec<How> = groups(&config, &bytes)
        .iter()
        .flat_map(|g| &g.changes)
        .filter(|c| c.register.number() == 0x341)
        .map(|c| c.how)
        .collect();
    assert_eq!(told, [How::Full(0x80), How::Offset(4), How::Full(0x88)]);
}

/// x0 never changes, and of two writes the last one counts.
#[test]
fn a_register_is_told_once() {
    let effects = x(0, 9)
        .reg(RegId::X(3), 1)
        .reg(RegId::X(4), 2)
        .reg(RegId::X(3), 3)
        .csr(0x300, 4)
        .csr(0x300, 5);
    let group = groups(&bare(), &encode_insn(&bare(), 0x13, effects)).remove(0);
    let full = |number, value| Change {
        register: Register::new(number).unwrap(),
        how: How::Full(value),
    };
    let want = [full(0x1004, 2), full(0x1003, 3), full(0x300, 5)];
    assert_eq!(group.changes, want);
}

/// How a CSR or register is told, write after write.
fn told(config: &Config, writes: &[(u16, u64)]) -> Vec<How> {
    let steps: Vec<_> = writes
        .iter()
        .map(|&(number, value)| {
            let register = Register::new(number).unwrap();
            let effects = match register.as_reg() {
                Some(reg) => none().reg(reg, value),
                None => none().csr(number, value),
            };
            let here = Insn {
                next: 0x1000,
                ..insn(0x13)
            };
            (Step::Insn(here), effects)
        })
        .collect();
    let groups = groups(config, &encode(config, &steps));
    groups.iter().map(|g| g.changes[0].how).collect()
}

fn incremental() -> Config {
    let mut config = bare();
    config.style.incremental = true;
    config
}

#[test]
fn differences() {
    use How::{Full, Mask, Offset};
    let config = incremental();
    let a0 = 0x100a;
    let writes = [
        (a0, 5),
        (a0, 5),
        (a0, 132),
        (a0, 4),
        (a0, u64::MAX - 123),
        (a0, u64::MAX - 252),
        // Neither is near, but only bits were set.
        (a0, 0x100),
        (a0, 0x1ff),
        (a0, 0x2ff),
    ];
    let want = [
        Full(5),
        Offset(0),
        Offset(127),
        Offset(-128),
        Offset(-128),
        Full(u64::MAX - 252),
        Full(0x100),
        Mask(0xff),
        Full(0x2ff),
    ];
    assert_eq!(told(&config, &writes), want);
    // Floating-point registers are always whole.
    assert_eq!(
        told(&config, &[(0x1021, 1), (0x1021, 2)]),
        [Full(1), Full(2)]
    );
    // In 32 bits the way from 0 to the top is short.
    let mut narrow = incremental();
    (narrow.xlen, narrow.mlen) = (hartrace_isa::Xlen::Rv32, crate::Mlen::M32);
    let top = 0xffff_ffff;
    assert_eq!(told(&narrow, &[(a0, 0), (a0, top)]), [Full(0), Offset(-1)]);
}

/// CSRs that show the same bits, and those that change by themselves.
#[test]
fn differences_of_csrs() {
    use How::{Full, Mask, Offset};
    let config = incremental();
    let (fflags, frm, fcsr) = (1, 2, 3);
    let writes = [
        (fcsr, 0x20),
        (fflags, 1),
        (fcsr, 0x23),
        (frm, 0),
        (fcsr, 0),
        (fflags, 0x10),
    ];
    let want = [
        Full(0x20),
        Mask(1),
        Mask(2),
        Offset(-1),
        Offset(-3),
        Mask(0x10),
    ];
    assert_eq!(told(&config, &writes), want);
    // Not before fcsr was told.
    assert_eq!(told(&config, &[(fflags, 1), (fcsr, 3)]), [Full(1), Full(3)]);
    for (one, other) in [(0x300, 0x100), (0x100, 0x300), (0x304, 0x104)] {
        let writes = [(one, 8), (one, 10), (other, 2), (one, 2)];
        assert_eq!(
            told(&config, &writes),
            [Full(8), Offset(2), Full(2), Full(2)]
        );
    }
    for volatile in [0x344, 0x144, 0xb00, 0xb02, 0xc01] {
        assert_eq!(
            told(&config, &[(volatile, 1), (volatile, 2)]),
            [Full(1), Full(2)]
        );
    }
}

/// minstret grows with what retires, unless it is stopped or written.
#[test]
fn minstret() {
    let mut config = bare();
    config.style.minstret = true;
    config.style.pc = PcStyle::Full;
    let bytes = encode_insn(&config, 0x13, none());
    assert_eq!(bytes[bytes.len() - 5..], [5, 2, 0xb, 1, 2]);
    let count = |steps: &[Did]| {
        let groups = groups(&config, &encode(&config, steps));
        let grown = |g: &Group| g.changes.iter().any(|c| c.how == How::Offset(1));
        groups.iter().map(grown).collect::<Vec<_>>()
    };
    let here = |effects| {
        let stay = Insn {
            next: 0x1000,
            ..insn(0x13)
        };
        (Step::Insn(stay), effects)
    };
    let steps = [
        here(none()),
        here(none().csr(0xb02, 5)),
        here(none().csr(0xb82, 5)),
        here(none().csr(0x320, 5)),
        here(none()),
        here(none().csr(0x320, 0)),
        here(none()),
    ];
    assert_eq!(
        count(&steps),
        [true, false, false, false, false, true, true]
    );
    let step = Step::Trap(trap(Cause::Interrupt(Some(7)), None));
    assert_eq!(count(&[(step, none().csr(0x342, 7))]), [false]);
    config.absent = "minstret".parse().unwrap();
    assert_eq!(encode_insn(&config, 0x13, none()).len(), bytes.len() - 4);
}
