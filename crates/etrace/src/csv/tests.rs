//! Rows and packets.

use super::*;
use crate::Version;
use crate::testing::RandomPackets as _;
use crate::{Config, Layout};
use alloc::string::ToString;
use alloc::vec::Vec;
use hartrace_isa::Xlen;
use hartrace_testkit::Random;

fn reference() -> Layout {
    Config {
        context_width: 32,
        ecause_width: 5,
        ..Config::new(Version::V2_0, Xlen::Rv64)
    }
    .layout()
}

#[test]
fn the_header_names_the_columns() {
    assert_eq!(HEADER, NAMES.join(","));
    assert_eq!(COLUMNS, 26);
    assert_eq!(NAMES[Column::Tval as usize], "tval");
    assert_eq!(NAMES[Column::Doptions as usize], "doptions");
}

/// Rows of the reference encoder for the packets that its bytes give.
#[test]
fn rows_of_the_reference_encoder() {
    let rows: &[(&[u8], &str)] = &[
        (
            &[0x1f],
            "3,3,_,_,_,_,_,_,_,_,1,0,_,_,_,_,0,_,0,_,_,_,_,_,_,_",
        ),
        (
            &[0x73, 0, 0, 0, 0, 0, 0x04],
            "3,0,800,1,_,_,_,_,0,_,_,_,_,_,_,_,_,3,_,_,_,_,_,_,_,_",
        ),
        (
            &[0x02, 0xe0, 0xff, 0xff, 0],
            "2,_,3ffff800,_,_,_,_,_,_,_,_,_,_,0,_,0,_,_,_,_,_,_,0,_,_,_",
        ),
        (
            &[0x85, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0xff],
            "1,_,2d,_,1,1,_,_,_,_,_,_,_,1,_,0,_,_,_,_,_,_,1,_,_,_",
        ),
        (
            &[0x77, 0, 0, 0, 0, 0x21, 0x07, 0, 0, 0x10],
            "3,1,4000001c,1,_,_,_,_,0,2,_,_,0,_,_,_,_,3,_,_,1,0,_,_,_,_",
        ),
        (
            &[0x81, 0x01],
            "1,_,_,_,0,3,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_,_",
        ),
        (
            &[0x4f],
            "3,3,_,_,_,_,_,_,_,_,0,0,_,_,_,_,0,_,1,_,_,_,_,_,_,_",
        ),
    ];
    let layout = reference();
    for &(bytes, text) in rows {
        let packet = Packet::read(bytes, &layout).unwrap();
        let mut written = String::new();
        row(&packet, &layout, &mut written);
        assert_eq!(written, text);
        written.push_str(LINE_END);
        assert_eq!(parse_row(&written, &layout), Ok(packet));
    }
}

#[test]
fn any_packet_comes_back() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let layout = random.layout();
        for _ in 0..50 {
            let packet = random.packet(&layout);
            let mut written = String::new();
            row(&packet, &layout, &mut written);
            assert_eq!(parse_row(&written, &layout), Ok(packet), "{written}");
        }
    }
}

/// A trace unit whose interrupts have `tval` too: their rows were refused.
#[test]
fn an_interrupt_with_tval() {
    let layout = Layout {
        interrupt_tval: true,
        ..reference()
    };
    let text = "3,1,4000001c,1,_,_,_,_,0,2,_,_,1,_,_,_,_,3,_,_,1,7c,_,_,_,_";
    let packet = parse_row(text, &layout).unwrap();
    assert!(matches!(packet, Packet::Trap(trap) if trap.interrupt && trap.tval == Some(0x7c)));
    let refused = parse_row(text, &reference()).unwrap_err();
    assert_eq!(refused.reason, CsvReason::Unexpected);
}

#[test]
fn errors_name_the_column() {
    let fails = |line: &str, column, name, reason| {
        let found = parse_row(line, &reference()).unwrap_err();
        assert_eq!(
            (found.column, found.name, found.reason),
            (column, name, reason),
            "{line}"
        );
        found.to_string()
    };
    use CsvReason::*;
    let good = "2,_,7c,_,_,_,_,_,_,_,_,_,_,0,_,0,_,_,_,_,_,_,0,_,_,_";
    assert!(parse_row(good, &reference()).is_ok());
    fails("", 1, "format", NotANumber);
    fails("2", 2, "subformat", TooFew);
    fails(HEADER, 1, "format", NotANumber);
    let text = fails(&(good.to_string() + ",_"), 27, "", TooMany);
    assert_eq!(text, "column 27: the row has too many columns");
    let change = |column: usize, value: &str| {
        let mut cells: Vec<_> = good.split(',').collect();
        cells[column - 1] = value;
        cells.join(",")
    };
    fails(&change(1, "4"), 1, "format", TooLarge);
    fails(&change(1, "+2"), 1, "format", NotANumber);
    fails(&change(1, "0"), 2, "subformat", Reserved);
    let text = fails(&change(3, "_"), 3, "address", Missing);
    assert_eq!(text, "column 3 (address): the packet needs a value here");
    fails(&change(3, "8000000000000000"), 3, "address", TooLarge);
    fails(&change(3, "12345678123456781"), 3, "address", TooLarge);
    fails(&change(3, "xy"), 3, "address", NotANumber);
    fails(&change(16, "2"), 16, "notify", TooLarge);
    fails(&change(16, "a"), 16, "notify", NotANumber);
    fails(&change(26, "1"), 26, "doptions", Unexpected);
    fails(&change(15, "1"), 15, "irdepth", Unexpected);
}
