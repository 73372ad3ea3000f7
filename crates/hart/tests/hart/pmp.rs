//! Physical memory protection (privileged manual, 3.7).

use hartrace_flow::{Mode, Step};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, DATA, WIDTHS, csr, status};

const R: u64 = 1;
const W: u64 = 2;
const X: u64 = 4;
const TOR: u64 = 1 << 3;
const NA4: u64 = 2 << 3;
const NAPOT: u64 = 3 << 3;
const L: u64 = 1 << 7;

/// A bench whose protection has these entries, and behind them one that opens
/// the code.
fn protected(xlen: Xlen, entries: &[(u64, u64)]) -> Bench {
    let mut b = Bench::of(xlen);
    let open = (napot(BASE, 0x8000), NAPOT | R | X);
    b.set_csr(csr::PMPCFG0, 0);
    let mut config = 0;
    for (i, (addr, cfg)) in entries.iter().chain([&open]).enumerate() {
        b.set_csr(csr::PMPADDR0 + i as u16, *addr);
        config |= cfg << (8 * i);
    }
    b.set_csr(csr::PMPCFG0, config);
    if xlen == Xlen::Rv32 {
        b.set_csr(csr::PMPCFG0 + 1, config >> 32);
    }
    b
}

/// The register of a naturally aligned power of two.
fn napot(base: u64, size: u64) -> u64 {
    (base | (size / 2 - 1)) >> 2
}

/// The exception of one instruction with an address in a1.
fn access(b: &mut Bench, addr: u64, word: u32) -> Option<u32> {
    let mode = b.mode();
    b.set_x(A1, addr);
    b.code(BASE, &[word]);
    b.set_pc(BASE);
    match b.steps(1)[0].0 {
        Step::Trap(step) => {
            b.set_mode(mode);
            assert_eq!(step.trap.epc, Some(BASE));
            assert_eq!(step.trap.tval, Some(addr));
            match step.trap.cause {
                hartrace_flow::Cause::Exception(code) => code,
                other => panic!("{other:?}"),
            }
        }
        _ => None,
    }
}

fn load(b: &mut Bench, addr: u64) -> Option<u32> {
    access(b, addr, lbu(A0, 0, A1))
}

fn store(b: &mut Bench, addr: u64) -> Option<u32> {
    access(b, addr, sb(A0, 0, A1))
}

#[test]
fn without_a_match_only_machine_mode_may() {
    // 3.7.1.3.
    for xlen in WIDTHS {
        let mut b = protected(xlen, &[]);
        assert_eq!((load(&mut b, DATA), store(&mut b, DATA)), (None, None));
        for mode in [Mode::S, Mode::U] {
            b.set_mode(mode);
            assert_eq!(
                (load(&mut b, DATA), store(&mut b, DATA)),
                (Some(5), Some(7))
            );
        }
    }
}

#[test]
fn the_reset_state_is_open() {
    // 3.7: the reset values are the platform's; software that knows nothing of
    // protection runs in every mode.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mode(Mode::U);
        assert_eq!((load(&mut b, DATA), store(&mut b, DATA)), (None, None));
    }
}

/// Which bytes of a range a user may read.
fn readable(b: &mut Bench, from: u64, len: u64) -> Vec<u64> {
    b.set_mode(Mode::U);
    (from..from + len)
        .filter(|&at| load(b, at).is_none())
        .collect()
}

#[test]
fn na4_is_four_bytes() {
    // 3.7.1.1.
    for xlen in WIDTHS {
        let mut b = protected(xlen, &[((DATA + 8) >> 2, NA4 | R)]);
        let expected: Vec<u64> = (DATA + 8..DATA + 12).collect();
        assert_eq!(readable(&mut b, DATA, 24), expected);
    }
}

#[test]
fn napot_sizes_are_in_the_low_bits() {
    // 3.7.1.1, table 3.11.
    for xlen in WIDTHS {
        for size in [8, 16, 32] {
            let base = DATA + 32;
            let mut b = protected(xlen, &[(napot(base, size), NAPOT | R)]);
            let expected: Vec<u64> = (base..base + size).collect();
            assert_eq!(readable(&mut b, DATA, 96), expected);
        }
        let mut b = protected(xlen, &[(napot(DATA, 0x2000), NAPOT | R)]);
        b.set_mode(Mode::S);
        assert_eq!(load(&mut b, DATA + 0x1fff), None);
        assert_eq!(load(&mut b, DATA + 0x2000), Some(5));
        assert_eq!(load(&mut b, DATA - 1), None, "the code's entry");
    }
}

#[test]
fn tor_goes_from_the_entry_before_to_this_one() {
    // 3.7.1.1: address matching, top of range.
    for xlen in WIDTHS {
        let entries = [((DATA + 8) >> 2, 0), ((DATA + 20) >> 2, TOR | R)];
        let mut b = protected(xlen, &entries);
        let expected: Vec<u64> = (DATA + 8..DATA + 20).collect();
        assert_eq!(readable(&mut b, DATA, 32), expected);
        // The first entry starts at 0; an empty range matches nothing.
        let mut b = protected(xlen, &[(0x1_0000 >> 2, TOR | R)]);
        b.set_mode(Mode::U);
        assert_eq!(load(&mut b, 0x1000), None, "the ROM");
        let entries = [((DATA + 20) >> 2, 0), ((DATA + 8) >> 2, TOR | R)];
        assert!(readable(&mut protected(xlen, &entries), DATA, 32).is_empty());
    }
}

#[test]
fn rights_are_of_the_entry() {
    // 3.7.1: R, W and X; fetches need X.
    for xlen in WIDTHS {
        for cfg in [0, R, R | W, X, R | X, R | W | X] {
            let mut b = protected(xlen, &[(napot(DATA, 0x1000), NAPOT | cfg)]);
            b.code(DATA, &[NOP]);
            for mode in [Mode::U, Mode::S] {
                b.set_mode(mode);
                assert_eq!(load(&mut b, DATA + 8).is_none(), cfg & R != 0);
                assert_eq!(store(&mut b, DATA + 8).is_none(), cfg & W != 0);
                b.set_x(A1, DATA);
                b.code(BASE, &[jalr(ZERO, A1, 0)]);
                b.set_pc(BASE);
                let steps = b.steps(2);
                assert_eq!(matches!(steps[1].0, Step::Insn(_)), cfg & X != 0);
                if let Step::Trap(step) = steps[1].0 {
                    let cause = hartrace_flow::Cause::Exception(Some(1));
                    assert_eq!((step.trap.cause, step.trap.epc), (cause, Some(DATA)));
                }
            }
        }
    }
}

#[test]
fn the_first_match_decides() {
    // 3.7.1.3: "the lowest-numbered PMP entry that matches any byte".
    let mut b = protected(
        Xlen::Rv64,
        &[
            (napot(DATA, 16), NAPOT | R),
            (napot(DATA, 64), NAPOT | R | W),
        ],
    );
    b.set_mode(Mode::U);
    assert_eq!(store(&mut b, DATA + 15), Some(7));
    assert_eq!(store(&mut b, DATA + 16), None);
}

#[test]
fn an_access_must_fit_into_one_entry() {
    // 3.7.1.3: the entry must match all bytes, "irrespective of the L, R, W,
    // and X bits"; for machine mode too.
    let two = [(DATA >> 2, NA4 | R | W), ((DATA + 4) >> 2, NA4 | R | W)];
    let mut b = protected(Xlen::Rv64, &two);
    for mode in [Mode::U, Mode::S, Mode::M] {
        b.set_mode(mode);
        assert_eq!(access(&mut b, DATA, lw(A0, 0, A1)), None);
        assert_eq!(access(&mut b, DATA + 4, lw(A0, 0, A1)), None);
        assert_eq!(access(&mut b, DATA, ld(A0, 0, A1)), Some(5), "{mode:?}");
        assert_eq!(access(&mut b, DATA, sd(A0, 0, A1)), Some(7), "{mode:?}");
    }
    let locked = [(DATA >> 2, NA4 | R | W | L)];
    let mut b = protected(Xlen::Rv64, &locked);
    assert_eq!(access(&mut b, DATA, ld(A0, 0, A1)), Some(5));
    assert_eq!(access(&mut b, DATA, sd(A0, 0, A1)), Some(7));
}

#[test]
fn locked_entries_bind_machine_mode() {
    // 3.7.1.2.
    for xlen in WIDTHS {
        let mut b = protected(xlen, &[(napot(DATA, 64), NAPOT | R)]);
        assert_eq!(store(&mut b, DATA), None);
        let mut b = protected(xlen, &[(napot(DATA, 64), NAPOT | R | L)]);
        assert_eq!(store(&mut b, DATA), Some(7));
        assert_eq!(load(&mut b, DATA), None);
        assert_eq!(store(&mut b, DATA + 64), None);
    }
}

#[test]
fn locked_entries_cannot_be_written() {
    // 3.7.1.2: until reset; a locked TOR entry also locks the address below.
    let mut b = protected(Xlen::Rv64, &[(100, 0), (200, TOR | R | L), (300, NA4 | L)]);
    let before = b.csr(csr::PMPCFG0);
    b.set_x(A1, 5);
    let words = [0, 1, 2].map(|i| csrw(csr::PMPADDR0 + i, A1));
    b.exec(&words);
    let addrs = [0, 1, 2].map(|i| b.csr(csr::PMPADDR0 + i));
    assert_eq!(addrs, [100, 200, 300]);
    b.exec(&[csrw(csr::PMPCFG0, ZERO)]);
    assert_eq!(b.csr(csr::PMPCFG0), before & 0xff_ff00, "the others can");
    b.m.reset();
    assert_eq!(b.csr(csr::PMPCFG0), NAPOT | R | W | X);
}

#[test]
fn write_without_read_is_reserved() {
    // 3.7.1: "The combination R=0 and W=1 is reserved"; bits 6:5 are zero.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_x(A1, W | X | NA4);
        b.exec(&[csrw(csr::PMPCFG0, A1), csrr(A0, csr::PMPCFG0)]);
        assert_eq!(b.x(A0), X | NA4);
        b.set_x(A1, 0x7f);
        b.exec(&[csrw(csr::PMPCFG0, A1), csrr(A0, csr::PMPCFG0)]);
        assert_eq!(b.x(A0), 0x1f);
    }
}

#[test]
fn registers_pack_four_or_eight_entries() {
    // 3.7.1, figures 3.30 and 3.31: sixteen entries exist.
    let mut b = Bench::rv64();
    b.set_x(A1, 0x0706_0504_0101_0107);
    b.exec(&[
        csrw(0x3a2, A1),
        csrr(A0, 0x3a2),
        csrw(0x3a4, A1),
        csrr(A2, 0x3a4),
    ]);
    assert_eq!((b.x(A0), b.x(A2)), (0x0704_0504_0101_0107, 0));
    let mut b = Bench::rv32();
    b.set_x(A1, 0x0701_0507);
    b.exec(&[
        csrw(0x3a3, A1),
        csrr(A0, 0x3a3),
        csrr(A2, 0x3a2),
        csrw(0x3a4, A1),
    ]);
    assert_eq!((b.x(A0), b.x(A2), b.csr(0x3a4)), (0x0701_0507, 0, 0));
}

#[test]
fn page_tables_are_read_as_supervisor() {
    // 3.7.2: implicit accesses are checked with S rights; the exception is of
    // the original access.
    let root = BASE + 0x4_0000;
    let mut b = protected(Xlen::Rv64, &[(napot(DATA, 0x1000), NAPOT | R | W)]);
    b.set_csr(csr::SATP, 8 << 60 | root >> 12);
    b.set_mem(root + 16, 8, BASE >> 2 | 0xcf);
    b.set_x(A1, DATA);
    // Loads and stores as supervisor; a trap takes that back.
    let lend = |b: &mut Bench| b.set_csr(csr::MSTATUS, status::MPRV | status::MPP_S);
    lend(&mut b);
    assert_eq!(access(&mut b, DATA, lw(A0, 0, A1)), Some(5));
    lend(&mut b);
    assert_eq!(access(&mut b, DATA, sw(A0, 0, A1)), Some(7));
    lend(&mut b);
    b.set_csr(csr::PMPADDR0 + 2, napot(root, 0x1000));
    b.set_csr(csr::PMPCFG0, b.csr(csr::PMPCFG0) | (NAPOT | R) << 16);
    assert_eq!(access(&mut b, DATA, lw(A0, 0, A1)), None);
    assert_eq!(
        access(&mut b, DATA + 0x1000, lw(A0, 0, A1)),
        Some(5),
        "the page itself"
    );
}

#[test]
fn changes_hold_from_the_next_instruction_on() {
    // 3.7.2: here without a fence.
    let mut b = Bench::rv64();
    b.set_x(A1, DATA);
    b.set_x(A2, (NAPOT | L) << 8);
    b.set_csr(csr::PMPCFG0, 0);
    b.set_csr(csr::PMPADDR0 + 1, napot(DATA, 64));
    let code = [lw(A0, 0, A1), csrrs(ZERO, csr::PMPCFG0, A2), lw(A0, 0, A1)];
    assert_eq!(b.fault(&code), (5, BASE + 8, DATA));
}
