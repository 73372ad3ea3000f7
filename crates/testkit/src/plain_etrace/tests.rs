//! Packets written by hand, bit by bit.

use super::*;
use crate::assemble;

/// Those of the reference models: a context of 32 bits, causes of five.
fn settings() -> Settings {
    Settings {
        version: Version::V2_0,
        rv32: false,
        iaddress_width: 64,
        iaddress_lsb: 1,
        privilege_width: 2,
        context_width: 0,
        time_width: 0,
        ecause_width: 5,
        f0s_width: 0,
        bpred_size: 0,
        cache_size: 0,
        call_counter_size: 0,
        return_stack_size: 0,
        encoder_mode_width: 1,
        ioptions: vec![
            Mode::ImplicitReturn,
            Mode::ImplicitException,
            Mode::FullAddress,
            Mode::JumpTargetCache,
            Mode::BranchPrediction,
        ],
        modes: Vec::new(),
        doptions_width: Some(4),
        sijump_returns: false,
        repeats_irdepth: true,
        vectors: [None; 3],
        zcmp: false,
        jump_table: Vec::new(),
    }
}

/// A packet of fields, each a value and a width, with its header.
fn packet(fields: &[(u64, u32)]) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    for &(value, width) in fields {
        bits.extend((0..width).map(|i| value >> i & 1 == 1));
    }
    // Sign-based compression, then sign extension to a byte.
    while bits.len() > 1 && bits[bits.len() - 1] == bits[bits.len() - 2] {
        bits.pop();
    }
    let sign = bits[bits.len() - 1];
    bits.resize(bits.len().div_ceil(8) * 8, sign);
    let byte = |eight: &[bool]| (0..8).map(|i| u8::from(eight[i]) << i).sum::<u8>();
    let payload: Vec<u8> = bits.chunks(8).map(byte).collect();
    let mut bytes = vec![0x40 | payload.len() as u8];
    bytes.extend(payload);
    bytes
}

fn support(qual_status: u64) -> Vec<u8> {
    packet(&[(3, 2), (3, 2), (1, 1), (0, 1), (qual_status, 2), (0, 11)])
}

fn start(address: u64) -> Vec<u8> {
    packet(&[(3, 2), (0, 2), (1, 1), (3, 2), (address >> 1, 63)])
}

/// Format 2 with a difference; both flags say whether they are set.
fn address(difference: i64, notify: bool, updiscon: bool) -> Vec<u8> {
    let difference = (difference >> 1) as u64;
    let msb = difference >> 62 & 1;
    let notify = msb ^ u64::from(notify);
    let updiscon = notify ^ u64::from(updiscon);
    packet(&[
        (2, 2),
        (difference, 63),
        (notify, 1),
        (updiscon, 1),
        (updiscon, 1),
    ])
}

fn exception(handler: u64) -> Vec<u8> {
    let head = [(3, 2), (1, 2), (1, 1), (3, 2), (5, 5), (0, 1), (1, 1)];
    let mut fields = head.to_vec();
    fields.extend([(handler >> 1, 63), (0x77, 64)]);
    packet(&fields)
}

#[test]
fn packets_of_the_reference_encoder_are_read() {
    let mut settings = settings();
    settings.context_width = 32;
    let bytes = [
        0x41, 0x1f, 0x47, 0x73, 0, 0, 0, 0, 0, 4, 0x41, 0x4f, 0x41, 0xf2,
    ];
    let packets = packets(&bytes, &settings).unwrap();
    let kinds: Vec<_> = packets.iter().map(|p| (p.format, p.subformat)).collect();
    assert_eq!(kinds, [(3, Some(3)), (3, Some(0)), (3, Some(3)), (2, None)]);
    assert_eq!(packets[0].get("ienable"), 1);
    assert_eq!(packets[1].get("privilege"), 3);
    assert_eq!(packets[1].get("address") << 1, 0x1000);
    assert_eq!(packets[2].get("qual_status"), 1);
    assert_eq!(packets[3].get("address"), (-8i64) as u64 >> 1);
    assert!(!packets[3].notify && !packets[3].updiscon && !packets[3].irreport);
}

/// The four cases of 6.6.2: the address of a loop's first instruction, which is
/// reached from above and by an indirect jump.
#[test]
fn a_loop_label_is_found_in_all_four_cases() {
    let text = "nop\n label: nop\n nop\n jr a0";
    let code = [
        (0x1000, assemble(0x1000, text).unwrap().bytes),
        (0x2000, assemble(0x2000, "nop").unwrap().bytes),
    ];
    let run = |tail: &[Vec<u8>]| {
        let mut bytes = [support(0), start(0x1000)].concat();
        bytes.extend(tail.concat());
        decode(&bytes, &settings(), &code).unwrap().1
    };
    let pcs = |items: &[Item]| {
        let pc = |item: &Item| match item {
            Item::Insn(pc) => Some(*pc),
            _ => None,
        };
        items.iter().filter_map(pc).collect::<Vec<u64>>()
    };
    let round = [0x1000, 0x1004, 0x1008, 0x100c, 0x1004];
    let one = run(&[
        address(4, false, false),
        address(0, false, false),
        support(3),
    ]);
    assert_eq!(pcs(&one)[..5], round);
    assert_eq!(pcs(&one)[5..], round[2..]);
    let two = run(&[address(4, false, true), exception(0x2000)]);
    assert_eq!(pcs(&two), [&round[..], &[0x2000]].concat());
    let trap = Trap {
        interrupt: false,
        cause: 5,
        tval: Some(0x77),
        epc: Some(0x1008),
        handler: Some(0x2000),
    };
    assert_eq!(two[6], Item::Trap(trap));
    let three = run(&[address(4, false, false), exception(0x2000)]);
    assert_eq!(pcs(&three), [0x1000, 0x1004, 0x2000]);
    let four = run(&[
        address(4, true, false),
        address(0, false, false),
        support(3),
    ]);
    assert_eq!(pcs(&four), round);
    assert_eq!(four[0], Item::Start);
}

#[test]
fn contradictions_are_errors() {
    let code = [(0x1000, assemble(0x1000, "a: nop\n j a").unwrap().bytes)];
    let fails = |tail: Vec<u8>| {
        let bytes = [support(0), start(0x1000), tail].concat();
        decode(&bytes, &settings(), &code).unwrap_err()
    };
    assert_eq!(fails(address(0x40, false, false)).packet, 2);
    assert_eq!(fails(address(4, true, true)).packet, 2);
    assert_eq!(fails(vec![0x45, 1]).packet, 2);
    assert_eq!(fails(start(0x1800)).what, "there is no code at 0x1800");
    let both = [address(4, false, true), address(0, false, false)].concat();
    assert!(fails(both).what.starts_with("updiscon is set"));
}
