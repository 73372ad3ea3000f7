//! Logs of cores that write commits as Spike does.

use super::{access, good, log, reg};
use alloc::vec;
use hartrace_flow::{AccessKind, Cause, HartId, Mode, RegId, Signal, Step};

#[test]
fn cva6() {
    let keep = good(
        "core   0: 0x0000000080000000 (0x00a00293) DASM(00a00293)\n\
         3 0x0000000080000000 (0x00a00293) x 5 0x000000000000000a\n\
         core   0: 0x0000000080000004 (0x00c53503) DASM(00c53503)\n\
         3 0x0000000080000004 (0x00c53503) x10 0x1122334455667788 mem 0x0000000080001000\n\
         core   0: 0x0000000080000008 (0x00a58023) DASM(00a58023)\n\
         3 0x0000000080000008 (0x00a58023) mem 0x0000000080001008 0x1122334455667788\n\
         ENV_CALL_MMODE exception @ 0x000000008000000c (0x00000073)\n\
         core   0: 0x0000000080000100 (0x00000001) DASM(00000001)\n\
         3 0x0000000080000100 (0x0001)\n\
         core   INTERRUPT 0: 0x0000000080000200 (0x00000001) DASM(00000001)\n\
         3 0x0000000080000200 (0x0001)\n",
    );
    assert_eq!(keep.insns().len(), 5);
    let fx = keep.steps[1].2;
    let load = access(
        AccessKind::Load,
        3,
        0x8000_1000,
        Some(0x1122_3344_5566_7788),
        None,
    );
    assert_eq!(&*fx.accesses, [load]);
    // The value is that of the register; the instruction stores a byte.
    let fx = keep.steps[2].2;
    let store = access(AccessKind::Store, 0, 0x8000_1008, Some(0x88), None);
    assert_eq!(&*fx.accesses, [store]);
    let traps = keep.traps();
    let traps: vec::Vec<_> = traps
        .iter()
        .map(|t| (t.trap.epc, t.trap.handler, t.trap.cause, t.bits))
        .collect();
    assert_eq!(
        traps,
        [
            (
                Some(0x8000_000c),
                Some(0x8000_0100),
                Cause::Exception(Some(11)),
                Some(0x73)
            ),
            (
                Some(0x8000_0102),
                Some(0x8000_0200),
                Cause::Interrupt(None),
                None
            ),
        ]
    );
}

/// An atomic of CVA6 has the operand where Spike has the result.
#[test]
fn what_an_atomic_of_cva6_stores_is_unknown() {
    let keep = good(
        "3 0x0000000080000000 (0x00c5a52f) x10 0x0000000000000007 mem 0x0000000080001000 \
         mem 0x0000000080001000 0x0000000000000001\n",
    );
    let add = access(AccessKind::AtomicAdd, 2, 0x8000_1000, None, Some(7));
    assert_eq!(&*keep.steps[0].2.accesses, [add]);
}

#[test]
fn rocket_writes_some_registers_late() {
    let keep = good(
        "3 0x0000000080000000 (0x02b54533) x10 p10 0xXXXXXXXXXXXXXXXX\n\
         x10 p10 0x0000000000000003\n\
         3 0x0000000080000004 (0x02b54633) x12 p12 0xXXXXXXXXXXXXXXXX\n\
         3 0x0000000080000008 (0x00100693) x13 0x0000000000000001\n\
         x12 p12 0x0000000000000004\n\
         1 0x000000008000000c (0x00000013)\n",
    );
    assert_eq!(&*keep.steps[0].2.regs, [reg(RegId::X(10), 3)]);
    assert!(!keep.steps[0].2.incomplete);
    // Another instruction came first: its value is not known.
    assert_eq!(&*keep.steps[1].2.regs, []);
    assert!(keep.steps[1].2.incomplete);
    assert_eq!(&*keep.steps[2].2.regs, [reg(RegId::X(13), 1)]);
    assert_eq!(keep.insns()[3].mode, Mode::S);
}

#[test]
fn boom() {
    let keep = good(
        "3 0x0000000080000000 (0x0001)\n\
         3 0x0000000080000002 (0x30200073)\n\
         0 0x0000000000000806 (0xf2000053) f 0 0x0000000000000000\n\
         7 0x000000000000080a (0x00000013)\n",
    );
    let modes: vec::Vec<_> = keep.insns().iter().map(|i| i.mode).collect();
    assert_eq!(modes, [Mode::M, Mode::M, Mode::U, Mode::D]);
    assert_eq!(&*keep.steps[2].2.regs, [reg(RegId::F(0), 0)]);
}

#[test]
fn dromajo() {
    let keep = good(
        "0 3 0x0000000080000000 (0x00000517) x10 0x0000000080000000\n\
         1 3 0x0000000080000000 (0x00000517) x10 0x0000000080000000\n\
         0 0 0x0000000080000004 (0x00000073) exception 8, tval 0000000000000000\n\
         0 3 0x0000000080000200 (0x00000001)\n\
         0 3 0x0000000080000202 (0x00000013) exception -2147483641, tval 0000000000000000\n\
         0 3 0x0000000080000300 (0x00000013)\n",
    );
    let hart0: vec::Vec<_> = keep.steps.iter().filter(|s| s.0 == HartId(0)).collect();
    assert_eq!((hart0.len(), keep.steps.len()), (5, 6));
    let traps = keep.traps();
    assert_eq!(traps[0].trap.cause, Cause::Exception(Some(8)));
    assert_eq!((traps[0].mode, traps[0].trap.tval), (Mode::U, Some(0)));
    assert_eq!(traps[1].trap.cause, Cause::Interrupt(Some(7)));
    assert_eq!(traps[1].trap.epc, Some(0x8000_0202));
    assert_eq!(traps[1].trap.handler, Some(0x8000_0300));
}

/// Other lines of a core's output are reported, by their number.
#[test]
fn lines_of_no_form() {
    for (line, column) in [
        ("WEIRD exception @ 0x80000000 (0x00000073)", 1),
        ("3 0x80000000 (0x00000013) y5 0x0", 26),
        ("x5 p5 0xXX", 7),
        ("0 3 0x80000000 (0x13) exception x, tval 0", 33),
        ("12 exception", 1),
    ] {
        let (keep, bad) = log(line);
        assert_eq!(bad.len(), 1, "{line}");
        assert_eq!(bad[0].column, column, "{line}");
        assert!(keep.steps.iter().all(|s| s.1 == Step::Signal(Signal::Lost)));
    }
}
