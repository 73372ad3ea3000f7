//! Where the text says two things or nothing: what we read it as. The numbers
//! are those of docs/tandem-clauses.md.

use hartrace_tandem::{Config, Fault, Item, Register};

use crate::common::{decode, faults, group, hex, write};

/// Groups with these items at 0x1000.
fn events(groups: &[&[Item]]) -> Vec<String> {
    let config = Config::default();
    let start = [
        Item::BeginGroup,
        Item::StateInit,
        Item::Pc(0x1000),
        Item::EndGroup,
    ];
    let mut bytes = write(&config, &start);
    for items in groups {
        let items = [&[Item::BeginGroup], *items, &[Item::EndGroup]].concat();
        bytes.extend(write(&config, &items));
    }
    decode(&config, &bytes)
}

/// All zeros are a 16-bit instruction; C.7 tells them as a 32-bit one. Both
/// are read.
#[test]
fn reading_05_zero_parcels() {
    for insn in [Item::Insn16(0), Item::Insn32(0)] {
        let mcause = Item::Full(Register::csr(0x342), 2);
        assert_eq!(
            events(&[&[Item::Pc(0x100), insn, mcause]]),
            ["trap Some(1000) to Some(100) Exception(Some(2)) None"]
        );
    }
    // Where it does not trap, the opcode in the trace tells the length.
    assert_eq!(
        events(&[&[Item::IncrementPc, Item::Insn32(0)]]),
        ["run 1000-1004 1 Stop 1004"]
    );
}

/// Increments and masks are for integers.
#[test]
fn reading_24_increments_of_floats() {
    let config = Config::default();
    for text in ["01 05 21 10 01 02", "01 06 21 10 01 02"] {
        assert_eq!(faults(&config, &hex(text)), [Fault::FloatIncrement]);
    }
}

/// x0 may be told, and says nothing.
#[test]
fn reading_32_x0() {
    let config = Config::default();
    let told = group(&config, &hex("01 04 00 10 01 00 00 00 00 00 00 00 02"));
    assert!(told.changes[0].register.is_zero());
    // lw zero, 0(a0)
    let load = [
        Item::IncrementPc,
        Item::Insn32(0x0005_2003),
        Item::Full(Register::x(0), 5),
        Item::EffectiveAddress(8),
    ];
    assert_eq!(events(&[&load])[1], "0 Load 2 8 None None None");
}

/// Groups of a time, of pending interrupts, of state from outside and of a
/// reset are no steps of the hart.
#[test]
fn reading_35_groups_that_are_no_steps() {
    let nop = [Item::IncrementPc, Item::Insn16(1)];
    let mip = Item::Full(Register::csr(0x344), 0x80);
    assert_eq!(
        events(&[
            &nop,
            &[Item::StateInit, mip],
            &[mip],
            &[],
            &[Item::PcPhysical(0x1002)],
            &nop,
        ]),
        ["run 1000-1004 2 Stop 1004"]
    );
}

/// The size of an access is its instruction's, whatever the identifier of the
/// data says: the Bluespec cores leave it undefined for floating point.
#[test]
fn reading_39_sizes_of_stores() {
    // fsd fa1, 8(a0)
    let store = [
        Item::IncrementPc,
        Item::Insn32(0x00b5_3427),
        Item::EffectiveAddress(8),
        Item::StoreData(0, 0x5a),
    ];
    assert_eq!(events(&[&store])[1], "0 Store 3 8 None Some(5a) None");
}

/// Privilege modes: 0, 1 and 3, and nothing else.
#[test]
fn reading_41_privilege_modes() {
    let config = Config::default();
    for code in 0..=255u8 {
        let bytes = [1, 7, 1, code, 2];
        match code {
            0 | 1 | 3 => assert_eq!(group(&config, &bytes).mode.map(|m| m.code()), Some(code)),
            _ => assert_eq!(faults(&config, &bytes), [Fault::UnknownMode]),
        }
    }
}

/// A longer instruction has no opcode of its own: its first 32 bits go for
/// all of it, and the whole pc tells the rest.
#[test]
fn reading_43_long_instructions() {
    let config = Config::default();
    let told = group(
        &config,
        &hex("01 11 1f 00 00 00 07 0a 06 10 00 00 00 00 00 00 02"),
    );
    assert_eq!(told.insn.map(|insn| insn.len), Some(4));
}
