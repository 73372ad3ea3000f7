//! Traps and changes of mode.

use super::*;

const A: u64 = 0x1000;
const H: u64 = 0x8000;

fn u(block: Ingress) -> Ingress {
    in_mode(Mode::U, block)
}

/// A block that retires an instruction and traps behind it.
fn with_exception(block: Ingress, cause: u32, tval: u64) -> Ingress {
    Ingress {
        itype: Itype::Exception,
        cause,
        tval,
        ..block
    }
}

fn both(blocks: &[Ingress], inner: &[Packet], ended: QualStatus) {
    for version in VERSIONS {
        check(&config(version), blocks, inner, ended);
    }
}

#[test]
fn an_exception_of_its_own_and_one_with_an_instruction_are_the_same() {
    let inner = [
        start(A),
        address(A, A + 4),
        handler(5, H, 0x99),
        address(H, H + 4),
    ];
    let alone = [i(A), i(A + 4), exception(A + 8, 5, 0x99), i(H), i(H + 4)];
    both(&alone, &inner, QualStatus::EndedRep);
    let joined = [i(A), with_exception(i(A + 4), 5, 0x99), i(H), i(H + 4)];
    both(&joined, &inner, QualStatus::EndedRep);
    let block = Ingress {
        iretire: 4,
        ..with_exception(i(A), 5, 0x99)
    };
    both(&[block, i(H), i(H + 4)], &inner, QualStatus::EndedRep);
}

#[test]
fn ecall_may_count_as_retired() {
    let mut inner = [start(A), address(A, A + 4), handler(11, H, 0)];
    let not = [i(A), i(A + 4), exception(A + 8, 11, 0), i(H)];
    both(&not, &inner, QualStatus::EndedNtr);
    let retired = [i(A), i(A + 4), with_exception(i(A + 8), 11, 0), i(H)];
    inner[1] = address(A, A + 8);
    both(&retired, &inner, QualStatus::EndedNtr);
}

/// A jump, its target, and an ecall that retires: the ecall gets a packet of its
/// own before the format 3. The reference encoder looks at its next row only.
#[test]
fn updiscon_before_an_ecall_that_retires() {
    let to = 0x2000;
    let blocks = [jalr(A), i(to), with_exception(i(to + 4), 11, 0), i(H)];
    let mut inner = [
        start(A),
        address(A, to),
        address(to, to + 4),
        handler(11, H, 0),
    ];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
    let rows = Config {
        updiscon: UpdisconRule::NextRow,
        ..v2()
    };
    inner[1] = Packet::Address(updiscon(delta(A, to)));
    check(&rows, &blocks, &inner, QualStatus::EndedNtr);

    // The ecall is the target: the row behind it is the handler's.
    let blocks = [jalr(A), with_exception(i(to), 11, 0), i(H)];
    let closed = Packet::Address(updiscon(delta(A, to)));
    let inner = [start(A), closed, handler(11, H, 0)];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
    let inner = [start(A), address(A, to), handler(11, H, 0)];
    check(&rows, &blocks, &inner, QualStatus::EndedNtr);
}

/// 2.0 leaves `tval` out; the draft has it always.
#[test]
fn interrupts() {
    let blocks = [i(A), interrupt(A + 4, 7), i(H)];
    let packet = |tval| {
        Packet::Trap(Trap {
            interrupt: true,
            tval,
            ..trap_fields(7, H)
        })
    };
    // The first instruction was told as the start.
    let inner = [start(A), packet(None)];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
    let inner = [start(A), packet(Some(0))];
    check(
        &config(Version::V1_1_1),
        &blocks,
        &inner,
        QualStatus::EndedNtr,
    );
}

/// 6.3.1: `tvalepc` is where the illegal instruction is.
#[test]
fn illegal_instructions_in_the_draft() {
    let draft = config(Version::V1_1_1);
    let alone = [i(A), exception(A + 4, 2, 0xbad), i(H)];
    let joined = [with_exception(i(A), 2, 0xbad), i(H)];
    for blocks in [&alone[..], &joined[..]] {
        let inner = [start(A), handler(2, H, A + 4)];
        check(&draft, blocks, &inner, QualStatus::EndedNtr);
        let inner = [start(A), handler(2, H, 0xbad)];
        check(&v2(), blocks, &inner, QualStatus::EndedNtr);
    }
}

#[test]
fn branches_before_a_trap_are_told() {
    let blocks = [
        i(A),
        not_taken(A + 4),
        taken(A + 8),
        exception(A + 0x40, 1, A + 0x40),
        taken(H),
        i(H + 8),
    ];
    let inner = [
        start(A),
        branches(map(2, 0b01), delta(A, A + 8)),
        Packet::Trap(Trap {
            branch: false,
            tval: Some(A + 0x40),
            ..trap_fields(1, H)
        }),
        address(H, H + 8),
    ];
    both(&blocks, &inner, QualStatus::EndedRep);
}

#[test]
fn the_jump_before_may_be_a_target_itself() {
    let blocks = [
        i(A),
        jalr(A + 4),
        jalr(A + 0x100),
        exception(0x9000, 12, 0x9000),
        i(H),
    ];
    let inner = [
        start(A),
        Packet::Address(updiscon(delta(A, A + 0x100))),
        trap_only(12, 0x9000, 0x9000),
        start(H),
    ];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
}

/// Each trap is told once, with the mode before it.
#[test]
fn traps_in_a_row() {
    let handler_mode = |block| in_mode(Mode::S, block);
    let blocks = [
        u(i(A)),
        u(exception(A + 4, 13, 0x10)),
        handler_mode(exception(H, 12, H)),
        exception(H + 0x100, 1, 0x30),
        i(H + 0x200),
    ];
    let at_mode = |mode: Mode, packet| match packet {
        Packet::Trap(trap) => Packet::Trap(Trap {
            privilege: mode.code(),
            ..trap
        }),
        packet => packet,
    };
    let inner = [
        start_in(Mode::U, A),
        at_mode(Mode::U, trap_only(13, H, 0x10)),
        at_mode(Mode::S, trap_only(12, H + 0x100, H)),
        handler(1, H + 0x200, 0x30),
    ];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
    // The draft can only tell the last.
    let inner = [start_in(Mode::U, A), handler(1, H + 0x200, 0x30)];
    check(
        &config(Version::V1_1_1),
        &blocks,
        &inner,
        QualStatus::EndedNtr,
    );
}

#[test]
fn traps_in_a_row_behind_a_jump() {
    let blocks = [
        jalr(A),
        exception(0x9000, 12, 0x9000),
        exception(H, 1, H),
        exception(H + 0x100, 5, 0),
        i(H + 0x200),
    ];
    let inner = [
        start(A),
        trap_only(12, 0x9000, 0x9000),
        trap_only(1, H, H),
        trap_only(5, H + 0x100, 0),
        start(H + 0x200),
    ];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
}

/// A trap that nothing follows, or nothing that is traced.
#[test]
fn a_trap_at_the_end() {
    let blocks = [i(A), i(A + 4), exception(A + 8, 5, 0x99)];
    let inner = [start(A), address(A, A + 4), trap_only(5, A + 8, 0x99)];
    check(&v2(), &blocks, &inner, QualStatus::EndedRep);
    let draft = config(Version::V1_1_1);
    check(&draft, &blocks, &inner[..2], QualStatus::EndedRep);
    // At a jump's target it was told already.
    let blocks = [jalr(A), exception(0x9000, 12, 0)];
    let inner = [start(A), trap_only(12, 0x9000, 0)];
    check(&v2(), &blocks, &inner, QualStatus::EndedRep);
}

fn mret(iaddr: u64) -> Ingress {
    at(iaddr, 2, Itype::TrapReturn)
}

#[test]
fn a_return_from_a_trap_changes_the_mode() {
    let plain = [i(A), mret(A + 4), u(i(0x400)), u(i(0x404))];
    let inner = [start(A), start_in(Mode::U, 0x400), address(0x400, 0x404)];
    both(&plain, &inner, QualStatus::EndedRep);
    // Branches are told before.
    let after = [taken(A), not_taken(A + 8), mret(A + 12), u(taken(0x400))];
    let first = Packet::Start(Start {
        branch: false,
        ..start_fields(A)
    });
    let last = Packet::Start(Start {
        branch: false,
        privilege: 0,
        ..start_fields(0x400)
    });
    let inner = [first, branches(map(1, 1), delta(A, A + 12)), last];
    both(&after, &inner, QualStatus::EndedNtr);
}

/// Where the mode stays the same the target is told as any jump's.
#[test]
fn a_return_from_a_trap_to_the_same_mode() {
    let blocks = [i(A), mret(A + 4), i(0x400), i(0x404)];
    let inner = [start(A), address(A, 0x400), address(0x400, 0x404)];
    both(&blocks, &inner, QualStatus::EndedRep);
}

/// The same return twice, to its own mode and then to another: without the
/// address before the second, a decoder would take the first for it.
#[test]
fn a_return_from_a_trap_that_comes_by_again() {
    let blocks = [
        i(A),
        i(A + 4),
        mret(A + 8),
        i(A + 4),
        mret(A + 8),
        u(i(0x400)),
    ];
    let inner = [
        start(A),
        address(A, A + 4),
        address(A + 4, A + 8),
        start_in(Mode::U, 0x400),
    ];
    both(&blocks, &inner, QualStatus::EndedNtr);
    // Another jump would be passed, and told, on the way to the return.
    let blocks = [i(A), jalr(A + 4), i(0x2000), mret(0x2004), u(i(0x400))];
    let inner = [start(A), address(A, 0x2000), start_in(Mode::U, 0x400)];
    both(&blocks, &inner, QualStatus::EndedNtr);
}

/// The mode before the trap is that of the target, where nothing retired.
#[test]
fn a_return_from_a_trap_to_what_faults() {
    let blocks = [i(A), mret(A + 4), u(exception(0x400, 12, 0x400)), i(H)];
    let fault = Packet::Trap(Trap {
        privilege: 0,
        thaddr: false,
        tval: Some(0x400),
        ..trap_fields(12, 0x400)
    });
    let inner = [start(A), address(A, A + 4), fault, start(H)];
    check(&v2(), &blocks, &inner, QualStatus::EndedNtr);
}
