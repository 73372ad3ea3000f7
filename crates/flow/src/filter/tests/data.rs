//! Data accesses.

use super::*;
use crate::DataIngress;

fn load(daddr: u64) -> DataIngress {
    DataIngress {
        dretire: true,
        dsize: 2,
        daddr,
        iaddr_lsbs: 0x100,
        ..DataIngress::default()
    }
}

/// A filter for data trace, the last one, with comparator 6.
fn data(unit: FilterUnit, comparator: Comparator) -> FilterConfig {
    let mut config = FilterConfig {
        data_selected: 1 << 15,
        ..FilterConfig::default()
    };
    config.filters[15] = FilterUnit {
        enabled: true,
        ..unit
    };
    config.comparators[6] = comparator;
    config
}

fn compares(comparator: Comparator) -> FilterConfig {
    let unit = FilterUnit {
        comparators: [None, None, Some(6)],
        ..FilterUnit::default()
    };
    data(unit, comparator)
}

/// One block and its accesses.
fn accesses(config: &FilterConfig, block: &Ingress, all: &[DataIngress]) -> Vec<bool> {
    let mut filter = Filter::new(config);
    assert!(
        filter.qualifies(block).traced,
        "instructions are not filtered"
    );
    let asked = all
        .iter()
        .map(|access| filter.qualifies_data(access).traced);
    asked.collect()
}

#[test]
fn nothing_selected_traces_every_access() {
    let mut filter = Filter::new(&FilterConfig::default());
    let all = QualifiedData {
        traced: true,
        response: false,
    };
    assert_eq!(filter.qualifies_data(&load(0)), all);
    let response = DataIngress {
        lresp: 2,
        ..DataIngress::default()
    };
    let answered = QualifiedData {
        traced: false,
        response: true,
    };
    assert_eq!(filter.qualifies_data(&response), answered);
    // Filters for instructions are none for data.
    let mut filter = Filter::new(&FilterConfig::modes(&[]));
    assert!(!filter.qualifies(&at(0)).traced);
    assert_eq!(filter.qualifies_data(&load(0)), all);
    assert_eq!(filter.qualifies_data(&response), answered);
    // And the other way round; a filter that is not enabled is none.
    let mut config = data(
        FilterUnit {
            modes: Some(0),
            ..FilterUnit::default()
        },
        Comparator::default(),
    );
    assert_eq!(accesses(&config, &at(0), &[load(0)]), [false]);
    config.filters[15].enabled = false;
    assert!(Filter::new(&config).is_empty());
}

#[test]
fn every_type_and_size() {
    for n in 0..16u8 {
        let access = DataIngress {
            dtype: n,
            dsize: n & 7,
            ..load(0)
        };
        let of = |unit| accesses(&data(unit, Comparator::default()), &at(0), &[access])[0];
        for choice in 0..=u16::MAX {
            let types = FilterUnit {
                dtypes: Some(choice),
                ..FilterUnit::default()
            };
            // All single bits and some others.
            if choice.count_ones() < 2 || choice % 97 == 0 {
                let plain = access.plain_dtype().0;
                assert_eq!(of(types), (choice >> n | choice >> plain) & 1 != 0);
            }
        }
        for choice in 0..=255u8 {
            let sizes = FilterUnit {
                dsizes: Some(choice),
                ..FilterUnit::default()
            };
            assert_eq!(of(sizes), choice >> (n & 7) & 1 != 0);
        }
    }
    // Codes that no bit stands for.
    let odd = DataIngress {
        dtype: 16,
        dsize: 8,
        ..load(0)
    };
    let all = FilterUnit {
        dtypes: Some(u16::MAX),
        ..FilterUnit::default()
    };
    assert_eq!(
        accesses(&data(all, Comparator::default()), &at(0), &[odd]),
        [false]
    );
    // No condition for instructions.
    let unit = FilterUnit {
        dtypes: Some(0),
        dsizes: Some(0),
        ..FilterUnit::default()
    };
    let config = FilterConfig {
        selected: 1 << 15,
        data_selected: 0,
        ..data(unit, Comparator::default())
    };
    assert_eq!(traced(&config, &[at(0)]), [true]);
}

/// Every function in every mode over data addresses: one half `daddr`, the
/// other the context.
#[test]
fn every_function_of_data_addresses() {
    let holds = |function: Function, x: u64, value: u64| match function {
        Function::Equal => x == value,
        Function::NotEqual => x != value,
        Function::Less => x < value,
        Function::LessOrEqual => x <= value,
        Function::Greater => x > value,
        Function::GreaterOrEqual => x >= value,
        Function::Special => false,
        Function::Always => true,
    };
    for (p, s) in FUNCTIONS.iter().flat_map(|p| FUNCTIONS.map(|s| (*p, s))) {
        for mode in [MatchMode::Primary, MatchMode::Both, MatchMode::NotBoth] {
            for (daddr, context) in (0..3).flat_map(|d| (0..3).map(move |c| (7 + d, 7 + c))) {
                let half = |input, function| Comparison {
                    input,
                    ..compared(function, 8)
                };
                let config = compares(Comparator {
                    primary: half(Input::Daddr, p),
                    secondary: half(Input::Context, s),
                    mode,
                });
                let block = Ingress {
                    context: Context(context),
                    ..at(0x100)
                };
                let mask = if s == Function::Special { 8 } else { u64::MAX };
                let p_holds = holds(p, daddr & mask, 8);
                let s_holds = s == Function::Special || holds(s, context, 8);
                let want = match mode {
                    MatchMode::Primary => p_holds,
                    MatchMode::Both => p_holds && s_holds,
                    _ => !(p_holds && s_holds),
                };
                let got = accesses(&config, &block, &[load(daddr)]);
                assert_eq!(got, [want], "{p:?} {s:?} {mode:?} {daddr} {context}");
            }
        }
    }
}

/// E-Trace 4.3: an access has the address of its own instruction, whatever
/// block it is in.
#[test]
fn an_access_has_the_address_of_its_instruction() {
    let config = compares(Comparator::within(Input::Iaddr, &(0x1104..=0x1105)));
    let block = Ingress {
        iretire: 6,
        ..at(0x1100)
    };
    assert_eq!(block.last_addr(), 0x1108);
    for width in [5, 8, 13, 64] {
        let low = |pc: u64| pc & (u64::MAX >> (64 - width));
        let by = |pc| DataIngress {
            iaddr_lsbs: low(pc),
            ..load(0)
        };
        let all = [0x1100, 0x1104, 0x1108].map(by);
        assert_eq!(accesses(&config, &block, &all), [false, true, false]);
        // Blocks start on any halfword.
        let odd = Ingress {
            iaddr: 0x10fe,
            ..block
        };
        assert_eq!(accesses(&config, &odd, &[by(0x1104)]), [true]);
    }
    // A port of single instructions need not tell.
    let single = DataIngress {
        iaddr_lsbs: 0,
        ..load(0)
    };
    for (iaddr, want) in [(0x1102, false), (0x1104, true), (0x1106, false)] {
        assert_eq!(accesses(&config, &at(iaddr), &[single]), [want]);
    }
}

#[test]
fn conditions_of_the_block_hold_for_its_accesses() {
    let unit = FilterUnit {
        modes: Some(mode_bits(&[Mode::U])),
        impdef: Some(Impdef { value: 1, mask: 1 }),
        causes: Some(1 << 8),
        ..FilterUnit::default()
    };
    let config = data(unit, Comparator::default());
    let good = Ingress {
        mode: Mode::U,
        impdef: 3,
        ..at(0x100)
    };
    let call = trap(Itype::Exception, 8);
    let other = Ingress {
        mode: Mode::M,
        ..good
    };
    let back = Ingress {
        itype: Itype::TrapReturn,
        ..good
    };
    let mut filter = Filter::new(&config);
    let mut ask = |block: &Ingress| {
        filter.qualifies(block);
        filter.qualifies_data(&load(0)).traced
    };
    assert!(!ask(&good), "no trap yet");
    assert!(!ask(&call), "the mode before the trap");
    assert!(ask(&good));
    assert!(!ask(&other));
    assert!(!ask(&Ingress { impdef: 2, ..good }));
    assert!(ask(&back));
    assert!(!ask(&good));
}

/// From an access to one address to an access to another, for data and for
/// the instructions behind them.
#[test]
fn a_latch_of_data_addresses() {
    let half = |value| Comparison {
        input: Input::Daddr,
        ..compared(Function::Equal, value)
    };
    let latch = Comparator {
        primary: half(0x10),
        secondary: half(0x20),
        mode: MatchMode::Latch,
    };
    let config = FilterConfig {
        selected: 1 << 15,
        ..compares(latch)
    };
    let mut filter = Filter::new(&config);
    let mut got = Vec::new();
    for daddr in [0, 0x10, 0x30, 0x20, 0x30, 0x10] {
        let block = filter.qualifies(&at(0x100)).traced;
        got.push((block, filter.qualifies_data(&load(daddr)).traced));
    }
    let want = [
        (false, false),
        (false, true),
        (true, true),
        (true, true),
        (false, false),
        (false, true),
    ];
    assert_eq!(got, want);
}

/// What blocks latch, their accesses share, all of them.
#[test]
fn a_latch_of_instruction_addresses() {
    let config = compares(Comparator::between(0x100, 0x200));
    let mut filter = Filter::new(&config);
    let mut ask = |iaddr| {
        filter.qualifies(&at(iaddr));
        [load(0), load(4)].map(|access| filter.qualifies_data(&access).traced)
    };
    assert_eq!(
        [0x80, 0x100, 0x180].map(&mut ask),
        [[false; 2], [true; 2], [true; 2]]
    );
    assert_eq!([0x200, 0x204].map(&mut ask), [[true; 2], [false; 2]]);
}

/// Split form: an answer belongs to a request.
#[test]
fn answers_go_with_their_requests() {
    let config = compares(Comparator::within(Input::Daddr, &(0x10..=0x1f)));
    let request = |daddr, lrid| DataIngress {
        lrid,
        ..load(daddr)
    };
    let answer = |lid| DataIngress {
        lresp: 2,
        lid,
        ..DataIngress::default()
    };
    let mut filter = Filter::new(&config);
    filter.qualifies(&at(0x100));
    let mut ask = |access: &DataIngress| {
        let said = filter.qualifies_data(access);
        (said.traced, said.response)
    };
    assert_eq!(ask(&request(0x10, 1)), (true, false));
    assert_eq!(ask(&request(0x40, 2)), (false, false));
    assert_eq!(ask(&request(0x18, 3)), (true, false));
    assert_eq!(ask(&answer(2)), (false, false));
    assert_eq!(ask(&answer(3)), (false, true));
    assert_eq!(ask(&answer(3)), (false, false), "answered already");
    // Together with another request; and in its own cycle.
    let both = DataIngress {
        lresp: 3,
        lid: 1,
        ..request(0x40, 4)
    };
    assert_eq!(ask(&both), (false, true));
    let at_once = DataIngress {
        lresp: 2,
        lid: 5,
        ..request(0x10, 5)
    };
    assert_eq!(ask(&at_once), (true, true));
    // The id is used again by one that is not traced.
    assert_eq!(ask(&request(0x10, 6)), (true, false));
    assert_eq!(ask(&request(0x40, 6)), (false, false));
    assert_eq!(ask(&answer(6)), (false, false));
    // A reset answers nothing.
    assert_eq!(ask(&request(0x10, 7)), (true, false));
    filter.qualifies(&Ingress {
        reset: true,
        ..Ingress::default()
    });
    assert!(!filter.qualifies_data(&answer(7)).response);
}
