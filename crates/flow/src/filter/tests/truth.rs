//! Truth tables: what each code of the registers says, written down as the
//! texts have it.

use super::*;

/// Table 2.6 and trTeCompPFunction, codes 0 to 5 and 7, for an input below the
/// match value, at it and above: its *place*, 0 to 2.
const COMPARES: [[bool; 3]; 8] = [
    [false, true, false],
    [true, false, true],
    [true, false, false],
    [true, true, false],
    [false, false, true],
    [false, true, true],
    [false, false, false], // code 6, see below
    [true, true, true],
];

/// Code 6 of the primary function.
fn primary(text: FilterText, code: usize, place: usize) -> bool {
    match (code, text) {
        (6, FilterText::ControlInterface) => false,
        (6, FilterText::ETrace111) => true,
        _ => COMPARES[code][place],
    }
}

/// Codes 6 and 7 of the secondary function.
fn secondary(code: usize, place: usize) -> bool {
    code >= 6 || COMPARES[code][place]
}

const MODES: [MatchMode; 4] = [
    MatchMode::Primary,
    MatchMode::Both,
    MatchMode::NotBoth,
    MatchMode::Latch,
];

const TEXTS: [FilterText; 2] = [FilterText::ControlInterface, FilterText::ETrace111];

/// The match values are 0x1000 and 0x20; the masks that secondary function 6
/// makes of the latter leave the primary comparison nothing to see but bit 5,
/// which no input here has.
const PRIMARY: u64 = 0x1000;
const SECONDARY: u64 = 0x20;

fn block_at([p, s]: [usize; 2]) -> Ingress {
    Ingress {
        context: Context(SECONDARY - 1 + s as u64),
        ..at(PRIMARY - 4 + 4 * p as u64)
    }
}

/// P and S of a block, by the tables alone.
fn results(text: FilterText, codes: [usize; 2], [p, s]: [usize; 2]) -> [bool; 2] {
    // Under the mask 0x20: 0xffc has the bit, 0x1000 and 0x1004 have not, nor
    // has the match value.
    let p = match codes[1] {
        6 => [2, 1, 1][p],
        _ => p,
    };
    [primary(text, codes[0], p), secondary(codes[1], s)]
}

fn comparator(codes: [usize; 2], mode: MatchMode) -> Comparator {
    Comparator {
        primary: Comparison {
            input: Input::Iaddr,
            ..compared(FUNCTIONS[codes[0]], PRIMARY)
        },
        secondary: Comparison {
            input: Input::Context,
            ..compared(FUNCTIONS[codes[1]], SECONDARY)
        },
        mode,
    }
}

fn pairs(most: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..most).flat_map(move |a| (0..most).map(move |b| [a, b]))
}

/// Both halves, every function, every mode, every place of both inputs, in the
/// block and in the one before it.
#[test]
fn all_functions_in_all_modes() {
    let mut asked = 0;
    for text in TEXTS {
        for (codes, mode) in pairs(8).flat_map(|c| MODES.map(|m| (c, m))) {
            let config = FilterConfig {
                text,
                ..one(comparator(codes, mode))
            };
            for (first, second) in pairs(3).flat_map(|a| pairs(3).map(move |b| (a, b))) {
                let primed = codes[0] == 6 && text == FilterText::ControlInterface;
                let mut latch = primed;
                let want = [first, second].map(|places| {
                    let [p, s] = results(text, codes, places);
                    match mode {
                        MatchMode::Primary => p,
                        MatchMode::Both => p && s,
                        MatchMode::NotBoth => !(p && s),
                        MatchMode::Latch => {
                            latch |= p;
                            let on = latch;
                            latch &= !s;
                            on
                        }
                    }
                });
                let got = traced(&config, &[first, second].map(block_at));
                assert_eq!(
                    got, want,
                    "{text:?} {codes:?} {mode:?} {first:?} {second:?}"
                );
                asked += 2;
            }
        }
    }
    assert_eq!(asked, 2 * 64 * 4 * 81 * 2);
}

/// A block of several instructions matches if one of them does: every pair of
/// functions against one address after the other.
#[test]
fn all_functions_over_blocks() {
    let spans = [(8, 1), (8, 2), (8, 3), (10, 1), (6, 4)];
    let values = [4, 8, 10, 12, 14];
    for (codes, mode) in pairs(8).flat_map(|c| MODES.map(|m| (c, m))) {
        // The mask is tested elsewhere.
        if codes[1] == 6 {
            continue;
        }
        for (start, insns) in spans {
            for [p, s] in pairs(5).map(|v| v.map(|n| values[n])) {
                let config = one(Comparator {
                    primary: compared(FUNCTIONS[codes[0]], p),
                    secondary: compared(FUNCTIONS[codes[1]], s),
                    mode,
                });
                let block = Ingress {
                    iretire: insns,
                    ilastsize: 0,
                    ..at(start)
                };
                let place =
                    |x: u64, value: u64| 1 + usize::from(x > value) - usize::from(x < value);
                let holds = |x: u64| {
                    let p = primary(FilterText::ControlInterface, codes[0], place(x, p));
                    [p, secondary(codes[1], place(x, s))]
                };
                let last = start + 2 * u64::from(insns) - 2;
                let all: Vec<[bool; 2]> = (start..=last).map(holds).collect();
                let mut latch = codes[0] == 6;
                let want = match mode {
                    MatchMode::Primary => all.iter().any(|r| r[0]),
                    MatchMode::Both => all.iter().any(|r| r[0] && r[1]),
                    MatchMode::NotBoth => all.iter().any(|r| !(r[0] && r[1])),
                    MatchMode::Latch => all.iter().fold(false, |any, r| {
                        latch |= r[0];
                        let on = latch;
                        latch &= !r[1];
                        any || on
                    }),
                };
                // What is left in the latch shows in a block that has neither.
                let mut filter = Filter::new(&config);
                let got = filter.qualifies(&block).traced;
                assert_eq!(got, want, "{codes:?} {mode:?} {start} {insns} {p} {s}");
                let next = at(0x100);
                let [np, ns] = holds(0x100);
                if mode == MatchMode::Latch {
                    let on = latch || np;
                    assert_eq!(
                        filter.qualifies(&next).traced,
                        on,
                        "{codes:?} {start} {insns} {p} {s} {ns}"
                    );
                }
            }
        }
    }
}

/// Each filter with each comparator in each of its three places, and nothing
/// but those.
#[test]
fn sixteen_filters_and_eight_comparators() {
    for number in 0..FILTERS {
        for comparator in 0..COMPARATORS {
            for slot in 0..3 {
                let mut config = FilterConfig {
                    selected: 1 << number,
                    ..FilterConfig::default()
                };
                // All others want something else.
                for (n, other) in config.comparators.iter_mut().enumerate() {
                    other.primary.value = 0x1000 + 4 * n as u64;
                }
                for unit in &mut config.filters {
                    unit.enabled = true;
                    unit.comparators = [Some(0), Some(1), None];
                }
                let mut chosen = [None; 3];
                chosen[slot] = Some(comparator as u8);
                config.filters[number].comparators = chosen;
                let all: Vec<u64> = (0..8).map(|n| 0x1000 + 4 * n).collect();
                let want = [0x1000 + 4 * comparator as u64];
                assert_eq!(addresses(&config, &all), want);
                let read = FilterConfig::from_registers(&config.to_registers());
                assert_eq!(addresses(&read, &all), want);
            }
        }
    }
    // All sixteen at once: any will do.
    let mut config = FilterConfig::default();
    for n in 0..16 {
        config.selected |= 1 << n;
        config.filters[n] = FilterUnit {
            enabled: true,
            impdef: Some(Impdef {
                value: n as u32,
                mask: u32::MAX,
            }),
            ..FilterUnit::default()
        };
    }
    let with = |impdef| Ingress { impdef, ..at(0) };
    let got = traced(
        &config,
        &core::array::from_fn::<_, 17, _>(|n| with(n as u32)),
    );
    assert_eq!(got.iter().filter(|t| **t).count(), 16);
    assert!(!got[16]);
}

/// Three comparators: all of those that are asked.
#[test]
fn every_choice_of_three_comparators() {
    for asked in 0..8u32 {
        for high in 0..8u32 {
            let mut config = FilterConfig {
                selected: 1,
                ..FilterConfig::default()
            };
            config.filters[0].enabled = true;
            for n in 0..3 {
                let function = match high >> n & 1 {
                    0 => Function::Special,
                    _ => Function::Always,
                };
                config.comparators[n] = Comparator {
                    primary: compared(function, 0),
                    ..Comparator::default()
                };
                if asked >> n & 1 != 0 {
                    config.filters[0].comparators[n] = Some(n as u8);
                }
            }
            let want = asked & !high == 0;
            assert_eq!(traced(&config, &[at(0)]), [want], "{asked:b} {high:b}");
        }
    }
}

#[test]
fn every_choice_of_privilege() {
    let modes = (0..8).filter_map(Mode::from_code);
    for mode in modes {
        for choice in 0..=255u8 {
            let config = FilterConfig::only(&Match {
                modes: Some(choice),
                ..Match::default()
            });
            let want = choice >> mode.code() & 1 != 0;
            assert_eq!(traced(&config, &[Ingress { mode, ..at(0) }]), [want]);
        }
    }
}

#[test]
fn every_mask_of_impdef() {
    for (value, mask, impdef) in
        (0..8).flat_map(|v| (0..8).flat_map(move |m| (0..8).map(move |i| (v, m, i))))
    {
        let config = FilterConfig::only(&Match {
            impdef: Some(Impdef { value, mask }),
            ..Match::default()
        });
        let block = Ingress { impdef, ..at(0) };
        assert_eq!(traced(&config, &[block]), [impdef & mask == value & mask]);
    }
}

/// Every cause, and both kinds of trap.
#[test]
fn every_cause() {
    for cause in 0..64 {
        for itype in [Itype::Exception, Itype::Interrupt] {
            let interrupt = itype == Itype::Interrupt;
            for causes in [None, Some(1u64 << cause), Some(!(1u64 << cause))] {
                for kind in [None, Some(TrapKind::Exception), Some(TrapKind::Interrupt)] {
                    if causes.is_none() && kind.is_none() {
                        continue;
                    }
                    let config = FilterConfig::only(&Match {
                        causes,
                        trap: kind,
                        ..Match::default()
                    });
                    let want = causes.is_none_or(|c| c == 1 << cause)
                        && kind.is_none_or(|k| (k == TrapKind::Interrupt) == interrupt);
                    let way = [trap(itype, cause), at(0), with(0, Itype::TrapReturn), at(4)];
                    assert_eq!(traced(&config, &way), [want, want, want, false]);
                }
            }
        }
    }
}

/// Against a stack: every sequence of seven steps in and out of handlers.
#[test]
fn every_nesting_of_traps() {
    let steps = [
        at(0x100),
        trap(Itype::Exception, 2),
        trap(Itype::Interrupt, 2),
        trap(Itype::Exception, 3),
        with(0x200, Itype::TrapReturn),
    ];
    let config = FilterConfig::only(&Match {
        causes: Some(1 << 2),
        trap: Some(TrapKind::Exception),
        ..Match::default()
    });
    for sequence in 0..5usize.pow(7) {
        let mut filter = Filter::new(&config);
        // Whether the outermost handlers from the one that matched are left.
        let mut stack = 0u32;
        let mut rest = sequence;
        for _ in 0..7 {
            let step = rest % 5;
            rest /= 5;
            if (1..4).contains(&step) && (stack > 0 || step == 1) {
                stack += 1;
            }
            let want = stack > 0;
            if step == 4 {
                stack = stack.saturating_sub(1);
            }
            assert_eq!(filter.qualifies(&steps[step]).traced, want, "{sequence}");
        }
    }
}

/// Chapter 5: "handlers for specified exception causes or with particular tval
/// values". By itself a trap value is there with the trap only.
#[test]
fn a_trap_value_chooses_the_handler() {
    let fault = |tval| Ingress {
        tval,
        ..trap(Itype::Exception, 13)
    };
    let way = [
        fault(0x2000),
        at(0x800),
        with(0x804, Itype::TrapReturn),
        fault(0x1000),
        at(0x800),
        // Nested, of another value.
        fault(0x9000),
        with(0x804, Itype::TrapReturn),
        with(0x808, Itype::TrapReturn),
        at(0x100),
    ];
    let what = Match {
        tval: Some(0x1000..=0x1fff),
        ..Match::default()
    };
    let got = traced(&FilterConfig::only(&what), &way);
    let only: Vec<usize> = (0..9).filter(|n| got[*n]).collect();
    assert_eq!(only, [3]);
    let handlers = [
        Match {
            causes: Some(1 << 13),
            ..what.clone()
        },
        Match {
            trap: Some(TrapKind::Exception),
            ..what.clone()
        },
        Match {
            causes: Some(1 << 13),
            trap: Some(TrapKind::Exception),
            ..what.clone()
        },
    ];
    for what in handlers {
        let got = traced(&FilterConfig::only(&what), &way);
        let inside: Vec<usize> = (0..9).filter(|n| got[*n]).collect();
        assert_eq!(inside, [3, 4, 5, 6, 7]);
    }
    // The other conditions hold block by block all the same.
    let narrow = Match {
        causes: Some(1 << 13),
        address: Some(0x804..=0x900),
        ..what
    };
    let got = traced(&FilterConfig::only(&narrow), &way);
    let inside: Vec<usize> = (0..9).filter(|n| got[*n]).collect();
    assert_eq!(inside, [6, 7]);
}

/// Both halves of a comparator, either input of four, with and without the
/// notify bit.
#[test]
fn every_notify_bit() {
    let inputs = [Input::Iaddr, Input::Context, Input::Tval, Input::Daddr];
    for (p, s) in inputs.iter().flat_map(|p| inputs.map(|s| (*p, s))) {
        for bits in 0..4 {
            let half = |input, notify| Comparison {
                input,
                notify,
                ..compared(Function::Always, 0)
            };
            let mut config = FilterConfig::default();
            config.comparators[5] = Comparator {
                primary: half(p, bits & 1 != 0),
                secondary: half(s, bits & 2 != 0),
                mode: MatchMode::Primary,
            };
            let want = (bits & 1 != 0 && p == Input::Iaddr) || (bits & 2 != 0 && s == Input::Iaddr);
            let mut filter = Filter::new(&config);
            assert_eq!(filter.qualifies(&at(0)).notify, want);
            assert_eq!(filter.is_empty(), !want);
        }
    }
}
