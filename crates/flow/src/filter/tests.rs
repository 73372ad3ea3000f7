//! Every function, mode and condition, and the registers.

use alloc::vec::Vec;
use alloc::{format, vec};

use hartrace_isa::{Itype, Xlen};
use hartrace_testkit::Random;

use super::compare::Span;
use super::*;
use crate::{Context, DataIngress, Ingress};

mod data;
mod truth;

const FUNCTIONS: [Function; 8] = [
    Function::Equal,
    Function::NotEqual,
    Function::Less,
    Function::LessOrEqual,
    Function::Greater,
    Function::GreaterOrEqual,
    Function::Special,
    Function::Always,
];

/// One instruction of four bytes.
fn at(iaddr: u64) -> Ingress {
    Ingress {
        iaddr,
        iretire: 2,
        ilastsize: 1,
        ..Ingress::default()
    }
}

fn trap(itype: Itype, cause: u32) -> Ingress {
    Ingress {
        itype,
        cause,
        ..at(0x100)
    }
}

fn with(iaddr: u64, itype: Itype) -> Ingress {
    Ingress { itype, ..at(iaddr) }
}

fn compared(function: Function, value: u64) -> Comparison {
    Comparison {
        function,
        value,
        ..Comparison::default()
    }
}

fn one(comparator: Comparator) -> FilterConfig {
    let mut config = FilterConfig {
        selected: 1,
        ..FilterConfig::default()
    };
    config.comparators[3] = comparator;
    config.filters[0] = FilterUnit {
        enabled: true,
        comparators: [None, Some(3), None],
        ..FilterUnit::default()
    };
    config
}

fn traced(config: &FilterConfig, blocks: &[Ingress]) -> Vec<bool> {
    let mut filter = Filter::new(config);
    let asked = blocks.iter().map(|block| filter.qualifies(block).traced);
    asked.collect()
}

fn addresses(config: &FilterConfig, at_: &[u64]) -> Vec<u64> {
    let blocks: Vec<_> = at_.iter().copied().map(at).collect();
    let kept = at_.iter().zip(traced(config, &blocks));
    kept.filter(|(_, t)| *t).map(|(a, _)| *a).collect()
}

#[test]
fn nothing_configured_traces_everything() {
    let mut filter = Filter::new(&FilterConfig::default());
    assert!(filter.is_empty());
    let all = Qualified {
        traced: true,
        notify: false,
    };
    assert_eq!(filter.qualifies(&at(4)), all);
    assert_eq!(filter.qualifies(&Ingress::default()), all);
    // Enabled but not selected, and selected but not enabled.
    let mut config = FilterConfig::modes(&[]);
    assert!(!Filter::new(&config).is_empty());
    assert_eq!(traced(&config, &[at(0)]), [false]);
    config.selected = 2;
    assert!(Filter::new(&config).is_empty());
    config.selected = 1;
    config.filters[0].enabled = false;
    assert!(Filter::new(&config).is_empty());
    // A filter without conditions.
    config.filters[0] = FilterUnit {
        enabled: true,
        ..FilterUnit::default()
    };
    assert_eq!(traced(&config, &[at(0)]), [true]);
}

#[test]
fn every_function_of_the_primary_comparator() {
    // The last is less than the others only if it were signed.
    let inputs = [0, 8, 0x10, 0x18, u64::MAX - 3];
    let top = u64::MAX - 3;
    for (function, want) in FUNCTIONS.into_iter().zip([
        vec![0x10],
        vec![0, 8, 0x18, top],
        vec![0, 8],
        vec![0, 8, 0x10],
        vec![0x18, top],
        vec![0x10, 0x18, top],
        vec![],
        inputs.to_vec(),
    ]) {
        let comparator = Comparator {
            primary: compared(function, 0x10),
            ..Comparator::default()
        };
        assert_eq!(addresses(&one(comparator), &inputs), want, "{function:?}");
    }
}

#[test]
fn every_function_of_the_secondary_comparator() {
    let inputs = [0, 8, 0x10, 0x18];
    for (function, want) in FUNCTIONS.into_iter().zip([
        vec![0x10],
        vec![0, 8, 0x18],
        vec![0, 8],
        vec![0, 8, 0x10],
        vec![0x18],
        vec![0x10, 0x18],
        inputs.to_vec(),
        inputs.to_vec(),
    ]) {
        let comparator = Comparator {
            primary: compared(Function::Always, 0),
            secondary: compared(function, 0x10),
            mode: MatchMode::Both,
        };
        assert_eq!(addresses(&one(comparator), &inputs), want, "{function:?}");
    }
}

#[test]
fn every_match_mode() {
    let comparator = |mode| Comparator {
        primary: compared(Function::GreaterOrEqual, 8),
        secondary: compared(Function::Less, 0x10),
        mode,
    };
    let inputs = [0, 4, 8, 0xc, 0x10, 0x14];
    for (mode, want) in [
        (MatchMode::Primary, vec![8, 0xc, 0x10, 0x14]),
        (MatchMode::Both, vec![8, 0xc]),
        (MatchMode::NotBoth, vec![0, 4, 0x10, 0x14]),
    ] {
        assert_eq!(addresses(&one(comparator(mode)), &inputs), want, "{mode:?}");
    }
}

#[test]
fn the_latch_holds_from_p_to_s() {
    let config = one(Comparator::between(0x10, 0x20));
    let way = [0x20, 0x14, 0x10, 0x80, 0x10, 0x20, 0x24, 0x10, 0x24].map(at);
    let want = [false, false, true, true, true, true, false, true, true];
    assert_eq!(traced(&config, &way), want);
    // Both in one instruction: it alone.
    let config = one(Comparator::between(0x10, 0x10));
    assert_eq!(traced(&config, &way[1..4]), [false, true, false]);
    // Primed: from the start.
    let config = one(Comparator {
        primary: compared(Function::Special, 0),
        ..Comparator::between(0, 0x10)
    });
    assert_eq!(
        traced(&config, &way[..5]),
        [true, true, true, false, false],
        "{config:?}"
    );
    // Priming means nothing to the other modes.
    let config = one(Comparator {
        mode: MatchMode::Primary,
        ..config.comparators[3]
    });
    assert_eq!(traced(&config, &way[..3]), [false; 3]);
}

#[test]
fn the_secondary_value_may_be_a_mask() {
    let config = one(Comparator {
        primary: compared(Function::Equal, 0x1230),
        secondary: compared(Function::Special, 0xff00),
        mode: MatchMode::Primary,
    });
    let inputs = [0x1100, 0x1200, 0x12fc, 0x1300, 0x51200];
    assert_eq!(addresses(&config, &inputs), [0x1200, 0x12fc, 0x51200]);
}

#[test]
fn a_block_matches_if_any_of_its_instructions_does() {
    let long = Ingress {
        iretire: 16,
        ..at(0x100)
    };
    // Its last instruction is at 0x11c.
    assert_eq!(long.last_addr(), 0x11c);
    for (range, want) in [
        (0..=0xfe, false),
        (0..=0x100, true),
        (0x108..=0x10a, true),
        (0x11c..=0x200, true),
        (0x11e..=0x200, false),
        (0..=u64::MAX, true),
    ] {
        let inside = Comparator::within(Input::Iaddr, &range);
        assert_eq!(traced(&one(inside), &[long]), [want], "{range:x?}");
        // Outside: any instruction that is not in the range.
        let outside = Comparator {
            mode: MatchMode::NotBoth,
            ..inside
        };
        let whole = *range.start() <= 0x100 && *range.end() >= 0x11c;
        assert_eq!(traced(&one(outside), &[long]), [!whole], "{range:x?}");
    }
    // Over the end of the address space.
    let top = Ingress {
        iretire: 4,
        ..at(u64::MAX - 3)
    };
    let config = FilterConfig::address(u64::MAX - 1..=u64::MAX);
    assert_eq!(traced(&config, &[top]), [true]);
}

/// Against all values one by one.
#[test]
fn spans_under_masks() {
    for mask in 0..32u64 {
        for low in 0..24u64 {
            for high in low..24 {
                for value in 0..24u64 {
                    for function in FUNCTIONS {
                        let holds = |x: u64| {
                            let (x, value) = (x & mask, value & mask);
                            match function {
                                Function::Equal => x == value,
                                Function::NotEqual => x != value,
                                Function::Less => x < value,
                                Function::LessOrEqual => x <= value,
                                Function::Greater => x > value,
                                Function::GreaterOrEqual => x >= value,
                                Function::Special => false,
                                Function::Always => true,
                            }
                        };
                        let span = Span { low, high };
                        let got = (
                            function.any(span, value, mask),
                            function.all(span, value, mask),
                        );
                        let want = ((low..=high).any(holds), (low..=high).all(holds));
                        assert_eq!(got, want, "{function:?} {span:?} {value} {mask}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_input() {
    let comparator = |input| Comparator::within(input, &(5..=7));
    let context = |c| Ingress {
        context: Context(c),
        ..at(0x100)
    };
    let config = one(comparator(Input::Context));
    assert_eq!(
        traced(&config, &[4, 5, 7, 8].map(context)),
        [false, true, true, false]
    );
    let value = |itype, tval| Ingress {
        tval,
        ..trap(itype, 2)
    };
    let blocks = [
        value(Itype::Exception, 5),
        value(Itype::Interrupt, 7),
        value(Itype::Exception, 8),
        // Not a trap: there is no tval.
        value(Itype::None, 5),
    ];
    let config = one(comparator(Input::Tval));
    assert_eq!(traced(&config, &blocks), [true, true, false, false]);
    let config = one(comparator(Input::Daddr));
    assert_eq!(traced(&config, &[at(5)]), [false]);
    // Two inputs in one comparator.
    let config = one(Comparator {
        secondary: compared(Function::Equal, 0x100),
        ..comparator(Input::Context)
    });
    let elsewhere = Ingress {
        iaddr: 0x104,
        ..context(6)
    };
    assert_eq!(traced(&config, &[context(6), elsewhere]), [true, false]);
}

#[test]
fn all_conditions_of_a_filter_and_any_of_the_filters() {
    let what = Match {
        modes: Some(mode_bits(&[Mode::U, Mode::VS])),
        address: Some(0x100..=0x1ff),
        context: Some(9..=9),
        impdef: Some(Impdef {
            value: 0xff,
            mask: 0xf0,
        }),
        ..Match::default()
    };
    let mut config = FilterConfig::default();
    config.add(&what).unwrap();
    let good = Ingress {
        mode: Mode::VS,
        context: Context(9),
        impdef: 0xf3,
        ..at(0x100)
    };
    let bad = [
        Ingress {
            mode: Mode::M,
            ..good
        },
        Ingress {
            iaddr: 0x200,
            ..good
        },
        Ingress {
            context: Context(8),
            ..good
        },
        Ingress {
            impdef: 0x73,
            ..good
        },
    ];
    assert_eq!(traced(&config, &[good]), [true]);
    assert_eq!(traced(&config, &bad), [false; 4]);
    config.add(&Match::modes(&[Mode::M])).unwrap();
    assert_eq!(traced(&config, &bad), [true, false, false, false]);
    config.add(&Match::address(0x200..=0x200)).unwrap();
    assert_eq!(traced(&config, &bad), [true, true, false, false]);
}

#[test]
fn traps_match_from_the_trap_to_its_return() {
    use Itype::{Exception, Interrupt, TrapReturn};
    let way = [
        at(0x100),
        trap(Exception, 2),
        at(0x200),
        // A nested trap, of whatever cause.
        trap(Interrupt, 7),
        at(0x300),
        with(0x304, TrapReturn),
        at(0x204),
        with(0x208, TrapReturn),
        at(0x104),
        trap(Interrupt, 2),
        at(0x300),
        with(0x304, TrapReturn),
        at(0x108),
    ];
    let first = [
        false, true, true, true, true, true, true, true, false, false, false, false, false,
    ];
    let second = [
        false, false, false, false, false, false, false, false, false, true, true, true, false,
    ];
    let inner = [
        false, false, false, true, true, true, false, false, false, false, false, false, false,
    ];
    let both: Vec<bool> = first.iter().zip(second).map(|(a, b)| *a || b).collect();
    let config = |causes, trap| {
        FilterConfig::only(&Match {
            causes,
            trap,
            ..Match::default()
        })
    };
    let (exception, interrupt) = (Some(TrapKind::Exception), Some(TrapKind::Interrupt));
    assert_eq!(traced(&config(Some(1 << 2), None), &way), both);
    assert_eq!(traced(&config(Some(1 << 7), None), &way), inner);
    assert_eq!(traced(&config(None, exception), &way), first);
    assert_eq!(traced(&config(Some(1 << 2), exception), &way), first);
    assert_eq!(traced(&config(Some(1 << 2), interrupt), &way), second);
    assert_eq!(traced(&config(Some(1 << 3), None), &way), [false; 13]);
    // Causes that no bit stands for.
    let odd = [trap(Exception, 64), trap(Exception, u32::MAX)];
    assert_eq!(traced(&config(Some(u64::MAX), None), &odd), [false; 2]);
    // A reset leaves the handler.
    let reset = Ingress {
        reset: true,
        ..Ingress::default()
    };
    let way = [trap(Exception, 2), at(0x200), reset, at(0)];
    let got = traced(&config(None, exception), &way);
    assert_eq!((got[0], got[1], got[3]), (true, true, false));
}

#[test]
fn an_idle_block_is_as_the_one_before() {
    let config = FilterConfig::address(0..=0x100);
    let idle = Ingress::default();
    let way = [idle, at(0x100), idle, at(0x200), idle, at(0)];
    let want = [false, true, true, false, false, true];
    assert_eq!(traced(&config, &way), want);
}

#[test]
fn notify_reports_what_is_traced() {
    let watched = |value| Comparison {
        notify: true,
        ..compared(Function::Equal, value)
    };
    let mut config = FilterConfig::default();
    config.comparators[7] = Comparator {
        primary: watched(0x10),
        secondary: watched(0x20),
        mode: MatchMode::Both,
    };
    let notified = |config: &FilterConfig| {
        let mut filter = Filter::new(config);
        [0, 0x10, 0x20, 0x24].map(|pc| filter.qualifies(&at(pc)).notify)
    };
    assert_eq!(notified(&config), [false, true, true, false]);
    assert_eq!(traced(&config, &[at(0), at(0x10)]), [true, true]);
    config.add(&Match::address(0x20..=0x30)).unwrap();
    assert_eq!(notified(&config), [false, false, true, false]);
    // Only addresses are reported.
    let mut config = FilterConfig::default();
    config.comparators[0].primary = Comparison {
        input: Input::Context,
        function: Function::Always,
        notify: true,
        value: 0,
    };
    assert!(Filter::new(&config).is_empty());
}

#[test]
fn high_words_mean_nothing_on_rv32() {
    let mut config = one(Comparator {
        primary: compared(Function::Equal, 0xffff_ffff_8000_0000),
        ..Comparator::default()
    });
    assert_eq!(traced(&config, &[at(0x8000_0000)]), [false]);
    config.xlen = Xlen::Rv32;
    assert_eq!(traced(&config, &[at(0x8000_0000)]), [true]);
}

#[test]
fn room_for_sixteen_filters_and_eight_comparators() {
    let mut config = FilterConfig::default();
    for n in 0..8u64 {
        config.add(&Match::address(n..=n)).unwrap();
    }
    let full = config;
    let error = config.add(&Match::address(9..=9)).unwrap_err();
    assert_eq!((error, config), (FilterFull::Comparators, full));
    // Comparators that are there already are shared.
    for n in 0..8u64 {
        config.add(&Match::address(n..=n)).unwrap();
    }
    let error = config.add(&Match::modes(&[Mode::M])).unwrap_err();
    assert_eq!(error, FilterFull::Filters);
    assert_eq!(format!("{error}"), "more than 16 filters");
    // Four comparators for one filter.
    let all = Match {
        address: Some(0..=1),
        context: Some(0..=1),
        tval: Some(0..=1),
        between: Some((0, 1)),
        ..Match::default()
    };
    let mut config = FilterConfig::default();
    assert_eq!(config.add(&all), Err(FilterFull::Comparators));
    assert_eq!(config, FilterConfig::default());
    // A comparator in use is nobody else's, even as the default has it.
    let mut config = one(Comparator::default());
    config.filters[0].comparators = [Some(0), Some(2), None];
    config.add(&Match::address(9..=9)).unwrap();
    assert_eq!(config.filters[1].comparators[0], Some(1));
}

#[test]
fn registers_bit_by_bit() {
    let mut config = FilterConfig {
        selected: 0x8001,
        data_selected: 0x4002,
        ..FilterConfig::default()
    };
    config.filters[0] = FilterUnit {
        enabled: true,
        modes: Some(0x0b),
        causes: Some(0x8000_0000_0000_0004),
        trap: Some(TrapKind::Interrupt),
        comparators: [Some(1), Some(7), Some(5)],
        impdef: Some(Impdef {
            value: 0x12,
            mask: 0xff,
        }),
        dtypes: Some(3),
        dsizes: Some(8),
    };
    config.filters[15].trap = Some(TrapKind::Exception);
    config.comparators[7] = Comparator {
        primary: Comparison {
            input: Input::Tval,
            function: Function::GreaterOrEqual,
            value: 0x1_0000_0002,
            notify: true,
        },
        secondary: Comparison {
            input: Input::Daddr,
            function: Function::Special,
            value: 0x3_0000_0004,
            notify: true,
        },
        mode: MatchMode::Latch,
    };
    let registers = [
        (0x00c, 0x8001),
        (0x01c, 0x4002),
        (0x400, 0x0301_0000 | 0b1011_1111_0011_1111),
        (0x404, 0x10b),
        (0x408, 4),
        (0x40c, 0x8000_0000),
        (0x410, 0x12),
        (0x414, 0xff),
        (0x418, 0x0008_0003),
        (0x5e0, 8),
        (0x6e0, 0xc000 | 3 << 12 | 6 << 8 | 5 << 4 | 3 << 2 | 2),
        (0x6f0, 2),
        (0x6f4, 1),
        (0x6f8, 4),
        (0x6fc, 3),
    ];
    assert_eq!(config.to_registers(), registers);
    assert_eq!(FilterConfig::from_registers(&registers), config);
    // A dump has other registers, reserved bits and values twice.
    let mut dump = vec![(0x000, u32::MAX), (0x00c, 7)];
    dump.extend(registers);
    dump.extend([(0x41c, 5), (0x604, 9), (0x700, 9), (0xffff_fffc, 1)]);
    assert_eq!(FilterConfig::from_registers(&dump), config);
    assert!(FilterConfig::default().to_registers().is_empty());
    assert_eq!(FilterConfig::from_registers(&[]), FilterConfig::default());
}

#[test]
fn any_registers_are_a_configuration() {
    let mut random = Random::new(1);
    let mut random = || random.draw() as u32;
    for _ in 0..200 {
        let offsets = (0..0x800).step_by(4);
        let dump: Vec<(u32, u32)> = offsets.map(|offset| (offset, random())).collect();
        let config = FilterConfig::from_registers(&dump);
        let again = FilterConfig::from_registers(&config.to_registers());
        assert_eq!(again, config);
        let mut filter = Filter::new(&config);
        for _ in 0..50 {
            let block = Ingress {
                iaddr: u64::from(random()) << (random() & 32) | u64::from(random()),
                iretire: random() >> (random() & 31),
                itype: Itype::from_code(random() as u8 & 15).unwrap(),
                cause: random() & 127,
                tval: random().into(),
                ..Ingress::default()
            };
            let said = filter.qualifies(&block);
            assert!(said.traced || !said.notify);
            let access = DataIngress {
                dretire: random() & 3 != 0,
                dtype: random() as u8,
                dsize: random() as u8,
                daddr: random().into(),
                iaddr_lsbs: random().into(),
                lrid: random() as u16 & 7,
                lid: random() as u16 & 7,
                lresp: random() as u8 & 3,
                ..DataIngress::default()
            };
            let said = filter.qualifies_data(&access);
            assert!(access.dretire || !said.traced);
            assert!(access.lresp != 0 || !said.response);
        }
    }
}
