//! 3.1: everything that changed on either side is compared, at the end of each
//! group.

use super::*;

/// "For an implementation with full trace information, the shadow state would
/// be identical to the state in the core."
#[test]
fn a_right_trace_has_no_mismatch() {
    let mut bench = Bench::new(&[addi(5, 0, 7), addi(6, 5, -8), NOP]);
    bench.insn(addi(5, 0, 7), &[x(5, 7)]);
    bench.insn(addi(6, 5, -8), &[x(6, u64::MAX)]);
    bench.insn(NOP, &[]);
    let counters = bench.agrees().counters;
    assert_eq!((counters.groups, counters.retired), (3, 3));
    assert_eq!(counters.compared[Kind::Integer as usize], 2);
    assert_eq!(counters.compared[Kind::Pc as usize], 3);
    assert_eq!(counters.compared[Kind::Insn as usize], 3);
}

#[test]
fn a_wrong_value() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.insn(addi(5, 0, 7), &[x(5, 8)]);
    assert_eq!(bench.mismatches(), ["0: t0 7/8"]);
}

/// "All architectural side effects must always be included."
#[test]
fn a_missing_change() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.insn(addi(5, 0, 7), &[]);
    assert_eq!(bench.mismatches(), ["0: t0 7/-"]);
}

/// "The comparison must include erroneous state changes, and must not be
/// limited to comparing the state elements that are expected to change."
#[test]
fn spurious_changes() {
    let mut bench = Bench::new(&[NOP, NOP, NOP]);
    bench.insn(NOP, &[x(5, 8)]);
    bench.insn(NOP, &[f(3, 1)]);
    bench.insn(NOP, &[csr("mscratch", 9)]);
    assert_eq!(
        bench.mismatches(),
        ["0: t0 -/8", "1: ft3 -/1", "2: mscratch -/9"]
    );
}

#[test]
fn a_value_in_the_wrong_register() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.insn(addi(5, 0, 7), &[x(6, 7)]);
    assert_eq!(bench.mismatches(), ["0: t0 7/-, t1 -/7"]);
}

#[test]
fn wrong_floats_and_csrs() {
    let mut bench = Bench::new(&[fmv_w_x(1, 5), csrrw(0, 0x340, 5)]);
    bench.toy.x[5] = 0x11;
    bench.insn(
        fmv_w_x(1, 5),
        &[f(1, 0xffff_ffff_0000_0010), csr("fflags", 1)],
    );
    bench.insn(csrrw(0, 0x340, 5), &[csr("mscratch", 0x10)]);
    assert_eq!(
        bench.mismatches(),
        [
            "0: ft1 ffffffff00000011/ffffffff00000010",
            "1: mscratch 11/10"
        ]
    );
}

/// A floating-point register of 32 bits is compared by those.
#[test]
fn short_floats() {
    let config = Config {
        flen: crate::Flen::F32,
        ..Config::default()
    };
    let mut bench = Bench::with(config, &[fmv_w_x(1, 5), fmv_w_x(2, 5)]);
    bench.toy.x[5] = 0x11;
    bench.insn(fmv_w_x(1, 5), &[f(1, 0x11), csr("fflags", 1)]);
    bench.insn(fmv_w_x(2, 5), &[f(2, 0x12), csr("fflags", 1)]);
    assert_eq!(bench.mismatches(), ["1: ft2 11/12"]);
}

#[test]
fn a_branch_the_wrong_way() {
    let mut bench = Bench::new(&[beq(0, 0, 8), NOP, NOP]);
    bench.insn(beq(0, 0, 8), &[]);
    assert_eq!(bench.mismatches(), ["0: pc 80000008/80000004"]);
    let mut bench = Bench::new(&[beq(0, 5, 8), NOP, NOP]);
    bench.toy.x[5] = 1;
    bench.jump(beq(0, 5, 8), BASE + 8, &[]);
    assert_eq!(bench.mismatches(), ["0: pc 80000004/80000008"]);
}

/// The pc is state: one that changed and is not told is missing.
#[test]
fn a_pc_that_is_not_told() {
    let mut bench = Bench::new(&[NOP]);
    bench.group(&[Item::Insn32(NOP)]);
    assert_eq!(bench.mismatches(), ["0: pc 80000004/-"]);
}

#[test]
fn another_instruction() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.insn(addi(5, 0, 6), &[x(5, 7)]);
    assert_eq!(bench.mismatches(), ["0: instruction 700293/600293"]);
}

#[test]
fn another_privilege_mode() {
    let mut bench = Bench::new(&[NOP]);
    bench.insn(NOP, &[Item::Mode(0)]);
    assert_eq!(bench.mismatches(), ["0: privilege mode 3/0"]);
}

fn stores(items: &[Item]) -> Vec<String> {
    let mut bench = Bench::new(&[sw(5, 0, 10)]);
    pointers(&mut bench);
    bench.toy.x[5] = 0x1234_5678;
    bench.insn(sw(5, 0, 10), items);
    bench.mismatches()
}

#[test]
fn stores_are_compared() {
    let (there, addr) = (BASE + 0x800, Item::EffectiveAddress(BASE + 0x800));
    let data = Item::StoreData(2, 0x1234_5678);
    let none = [""; 0];
    assert_eq!(stores(&[addr, data]), none);
    assert_eq!(stores(&[Item::PhysicalAddress(there), data]), none);
    assert_eq!(stores(&[data]), none, "an address may be left out");
    let wrong = Item::StoreData(2, 0x1234_5679);
    assert_eq!(stores(&[addr, wrong]), ["0: store data 12345678/12345679"]);
    let wrong = Item::EffectiveAddress(there + 4);
    assert_eq!(
        stores(&[wrong, data]),
        ["0: store address 80000800/80000804"]
    );
    let wrong = Item::PhysicalAddress(there + 4);
    assert_eq!(
        stores(&[wrong, data]),
        ["0: store address 80000800/80000804"]
    );
    let wrong = Item::StoreData(1, 0x5678);
    assert_eq!(stores(&[addr, wrong]), ["0: store size 4/2"]);
    assert_eq!(stores(&[]), ["0: store address 80000800/-"]);
    let two = [addr, data, Item::EffectiveAddress(there + 8), data];
    assert_eq!(stores(&two), ["0: store address -/80000808"]);
}

#[test]
fn a_store_out_of_nowhere() {
    let mut bench = Bench::new(&[NOP]);
    let addr = Item::EffectiveAddress(BASE + 0x800);
    bench.insn(NOP, &[addr, Item::StoreData(0, 1)]);
    assert_eq!(bench.mismatches(), ["0: store address -/80000800"]);
}

#[test]
fn addresses_of_loads_are_compared() {
    let mut bench = Bench::new(&[lw(5, 0, 10), lw(5, 0, 10), NOP]);
    pointers(&mut bench);
    bench.insn(
        lw(5, 0, 10),
        &[x(5, 0), Item::EffectiveAddress(BASE + 0x800)],
    );
    bench.insn(
        lw(5, 0, 10),
        &[x(5, 0), Item::EffectiveAddress(BASE + 0x804)],
    );
    bench.insn(NOP, &[Item::EffectiveAddress(BASE)]);
    assert_eq!(
        bench.mismatches(),
        [
            "1: load address 80000800/80000804",
            "2: load address -/80000000"
        ]
    );
}

/// "Comparison of state should be done at the end of each group": however its
/// items are ordered.
#[test]
fn the_order_of_items_does_not_matter() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.group(&[x(5, 7), Item::Insn32(addi(5, 0, 7)), Item::IncrementPc]);
    bench.agrees();
}

/// "End group is implied by a begin group."
#[test]
fn ends_may_be_left_out() {
    let mut bench = Bench::new(&[addi(5, 0, 7), addi(5, 5, 1)]);
    let first = [
        Item::BeginGroup,
        Item::IncrementPc,
        Item::Insn32(addi(5, 0, 7)),
    ];
    bench.outside(&first).outside(&[x(5, 7)]);
    bench.insn(addi(5, 5, 1), &[x(5, 8)]);
    assert_eq!(bench.agrees().counters.groups, 2);
}

/// Opcodes 5 and 6 are relative to the value before the group.
#[test]
fn increments_are_compared_by_what_they_come_to() {
    let mut bench = Bench::new(&[addi(5, 5, -3), addi(5, 5, 1), fmv_w_x(1, 0)]);
    bench.toy.x[5] = 100;
    bench.insn(addi(5, 5, -3), &[Item::Offset(Register::x(5), -3)]);
    bench.insn(addi(5, 5, 1), &[Item::Offset(Register::x(5), 2)]);
    let flags = Item::Mask(Register::csr(3), 1);
    bench.insn(fmv_w_x(1, 0), &[f(1, 0xffff_ffff_0000_0000), flags]);
    assert_eq!(bench.mismatches(), ["1: t0 62/63"]);
}

#[test]
fn all_that_differs_is_one_mismatch() {
    let mut bench = Bench::new(&[addi(5, 0, 7)]);
    bench.jump(NOP, BASE + 0x40, &[x(6, 1), Item::Mode(1)]);
    assert_eq!(
        bench.mismatches(),
        ["0: instruction 700293/13, t0 7/-, t1 -/1, pc 80000004/80000040, privilege mode 3/1"]
    );
}

/// A write that changes nothing may be left out, unless this trace tells such
/// writes.
#[test]
fn writes_that_change_nothing() {
    let mut bench = Bench::new(&[addi(5, 0, 0); 20]);
    bench.insn(addi(5, 0, 0), &[]);
    bench.agrees();
    for _ in 0..8 {
        bench.insn(addi(5, 0, 0), &[x(5, 0)]);
    }
    bench.agrees();
    bench.insn(addi(5, 0, 0), &[]);
    assert_eq!(bench.mismatches(), ["9: t0 0/-"]);
    let mut bench = Bench::new(&[[addi(5, 0, 0); 8], [NOP; 8]].concat());
    for _ in 0..8 {
        bench.insn(addi(5, 0, 0), &[x(5, 0)]);
    }
    bench.insn(NOP, &[x(6, 0)]);
    assert_eq!(bench.mismatches(), ["8: t1 -/0"]);
}

/// The widths of RV32: values wrap, addresses have four or five bytes.
#[test]
fn rv32() {
    for mlen in [Mlen::M32, Mlen::M34] {
        let config = Config {
            xlen: Xlen::Rv32,
            mlen,
            ..Config::default()
        };
        let mut bench = Bench::with(config, &[addi(5, 0, -1), sw(5, 0, 10), addi(5, 5, 1)]);
        pointers(&mut bench);
        bench.insn(addi(5, 0, -1), &[x(5, 0xffff_ffff)]);
        let addr = Item::EffectiveAddress(BASE + 0x800);
        bench.insn(sw(5, 0, 10), &[addr, Item::StoreData(2, 0xffff_ffff)]);
        bench.insn(addi(5, 5, 1), &[Item::Offset(Register::x(5), 1)]);
        bench.agrees();
    }
}

/// Notes 25 and 26: a register goes by several names.
#[test]
fn views() {
    let trap = |status: Item| {
        let mut bench = Bench::new(&[ECALL]);
        let csrs = [
            csr("mepc", BASE),
            csr("mcause", 11),
            csr("mtval", 0),
            status,
        ];
        bench.jump(ECALL, HANDLER, &csrs);
        bench.mismatches()
    };
    let right = 0xa_0000_1800;
    assert_eq!(trap(csr("mstatus", right)), [""; 0]);
    // The bits that sstatus shows, in what may be all of mstatus: MPP is none
    // of them, and is missing then.
    assert_eq!(
        trap(csr("sstatus", right)),
        ["0: mstatus a00001800/a00000000"]
    );
    let mut bench = Bench::new(&[NOP, fmv_w_x(1, 0), fmv_w_x(1, 0), fmv_w_x(1, 0)]);
    // No bit of what sstatus shows has changed.
    bench.insn(NOP, &[csr("sstatus", 0xa_0000_1800)]);
    let boxed = f(1, 0xffff_ffff_0000_0000);
    bench.insn(fmv_w_x(1, 0), &[boxed, Item::Mask(Register::csr(3), 1)]);
    bench.insn(fmv_w_x(1, 0), &[boxed, csr("fcsr", 1)]);
    bench.insn(fmv_w_x(1, 0), &[boxed, csr("fcsr", 0x21)]);
    assert_eq!(bench.mismatches(), ["3: frm -/1"]);
}

/// What is reported besides: which instruction it was, and what came before.
#[test]
fn a_report_says_where() {
    struct Where(Vec<(u64, u64, Option<u32>, Vec<Past>)>);
    impl Reporter for Where {
        fn mismatch(&mut self, m: &Mismatch<'_>) -> ControlFlow<()> {
            self.0.push((m.insn, m.pc, m.bits, m.past.to_vec()));
            ControlFlow::Continue(())
        }
        fn problem(&mut self, problem: &Problem) -> ControlFlow<()> {
            panic!("{problem:?}");
        }
    }
    let mut bench = Bench::new(&[NOP; 30]);
    for _ in 0..20 {
        bench.insn(NOP, &[]);
    }
    bench.insn(NOP, &[x(5, 1)]);
    let mut verifier = Verifier::new(bench.config.clone(), Options::default(), bench.toy.clone());
    let mut told = Where(Vec::new());
    let _ = verifier.feed(&bench.trace, &mut told);
    let [(insn, pc, bits, past)] = &told.0[..] else {
        panic!()
    };
    assert_eq!((*insn, *pc, *bits), (20, BASE + 80, Some(NOP)));
    assert_eq!(past.len(), PAST);
    let last = past[PAST - 1];
    assert_eq!((last.group, last.pc, last.bits), (19, BASE + 76, NOP));
    assert_eq!(past[0].group, 4);
}
