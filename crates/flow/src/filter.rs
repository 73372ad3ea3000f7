//! Which blocks and data accesses are traced: the filters and comparators of
//! the RISC-V Trace Control Interface ("Trace Encoder Filter Registers"), which
//! N-Trace and E-Trace encoders share. E-Trace has the same in its chapter on
//! filtering and, as a draft, in tables 2.3 to 2.6.
//!
//! [`FilterConfig`] is what the registers hold, [`Filter`] what an encoder asks
//! for each block and each access.

use core::fmt;
use core::ops::RangeInclusive;

use hartrace_isa::Xlen;

use crate::Mode;

mod compare;
mod pair;
mod qualify;
mod registers;

pub use qualify::{Filter, Qualified, QualifiedData};

/// Filters of an encoder, at most.
pub const FILTERS: usize = 16;

/// Comparator units of an encoder, at most.
pub const COMPARATORS: usize = 8;

/// The filters and comparators of one encoder. The default traces everything.
///
/// ```
/// use hartrace_flow::filter::{Filter, FilterConfig, Match};
/// use hartrace_flow::{Ingress, Mode};
///
/// let mut config = FilterConfig::address(0x8000_0000..=0x8000_0fff);
/// config.add(&Match::modes(&[Mode::U])).unwrap();
/// let mut filter = Filter::new(&config);
/// let block = Ingress { iaddr: 0x8000_0ffe, iretire: 1, ..Ingress::default() };
/// assert!(filter.qualifies(&block).traced);
/// let block = Ingress { iaddr: 0x9000_0000, ..block };
/// assert!(!filter.qualifies(&block).traced);
/// assert!(filter.qualifies(&Ingress { mode: Mode::U, ..block }).traced);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterConfig {
    /// `trTeInstFilters`: bit `n` selects filter `n` for instruction trace. An
    /// instruction is traced when any filter that is selected and enabled
    /// matches, and always where there is none such.
    pub selected: u16,
    /// `trTeDataFilters`: the same for data trace.
    pub data_selected: u16,
    /// `trTeFilter_i`.
    pub filters: [FilterUnit; FILTERS],
    /// `trTeComp_j`.
    pub comparators: [Comparator; COMPARATORS],
    /// Width of addresses: on RV32 the high words of match values are ignored.
    pub xlen: Xlen,
    /// What [`Function::Special`] means.
    pub text: FilterText,
}

/// Whose table gives the functions of comparators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilterText {
    /// The Trace Control Interface, ratified.
    #[default]
    ControlInterface,
    /// E-Trace 1.1.1-draft, table 2.6: primary function 6 is reserved and
    /// always matches.
    ETrace111,
}

/// One filter. All its conditions must hold; what is `None` is no condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterUnit {
    /// `trTeFilterEnable`.
    pub enabled: bool,
    /// `trTeFilterMatchChoicePrivilege`: bit `n` for the mode of `priv` code
    /// `n`.
    pub modes: Option<u8>,
    /// `trTeFilterMatchChoiceEcause`: bit `n` for cause `n`. Matches from such
    /// a trap to the return from its handler, nested traps included.
    pub causes: Option<u64>,
    /// `trTeFilterMatchValueInterrupt`: as `causes`, for the kind of trap. With
    /// both, one trap must be of the kind and the cause.
    pub trap: Option<TrapKind>,
    /// `trTeFilterComp1` to `3`: numbers of comparators, 0 to 7. With `causes`
    /// or `trap` those that look at `tval` choose among the traps, and hold in
    /// the handlers.
    pub comparators: [Option<u8>; 3],
    /// `trTeFilterMatchValueImpdef` and its mask.
    pub impdef: Option<Impdef>,
    /// `trTeFilterMatchChoiceDtype`: bit `n` for data accesses of type `n`. No
    /// condition for instructions.
    pub dtypes: Option<u16>,
    /// `trTeFilterMatchChoiceDsize`: bit `n` for data accesses of 2^n bytes. No
    /// condition for instructions.
    pub dsizes: Option<u8>,
}

/// Which traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapKind {
    /// `itype` 1.
    Exception,
    /// `itype` 2.
    Interrupt,
}

/// A value of the `impdef` signal, as far as the mask says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Impdef {
    /// The value.
    pub value: u32,
    /// The bits that count.
    pub mask: u32,
}

/// A pair of comparisons and how they are combined. Comparisons are unsigned.
///
/// Of the addresses of a block with several instructions any may match, one
/// for each comparator: the block is traced as a whole (E-Trace 4.3). What lies
/// between its first and its last instruction counts as an instruction. A data
/// access has the address of its own instruction. `tval` is there in blocks
/// that trap only, and `daddr` with data accesses only; a comparison with what
/// is not there fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparator {
    /// P.
    pub primary: Comparison,
    /// S.
    pub secondary: Comparison,
    /// `trTeCompMatchMode`.
    pub mode: MatchMode,
}

/// One half of a comparator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// `trTeCompPInput`.
    pub input: Input,
    /// `trTeCompPFunction`.
    pub function: Function,
    /// `trTeCompPMatch`.
    pub value: u64,
    /// `trTeCompPNotify`: a match is reported, with the address of the block's
    /// last instruction. For [`Input::Iaddr`] only.
    pub notify: bool,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Input {
    /// Instruction address.
    #[default]
    Iaddr,
    /// Software context.
    Context,
    /// Trap value.
    Tval,
    /// Data address.
    Daddr,
}

/// How the input is compared with the match value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Function {
    /// `==`
    #[default]
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// Code 6. As primary function never true, but [`MatchMode::Latch`] starts
    /// with its latch set (the draft: always true). As secondary function
    /// always true, and the secondary value masks both sides of the primary
    /// comparison.
    Special,
    /// Always true.
    Always,
}

/// How primary and secondary result make the output of a comparator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// P.
    #[default]
    Primary,
    /// P && S.
    Both,
    /// !(P && S).
    NotBoth,
    /// From a block with P to the next one with S, both included. Data accesses
    /// set and clear it if P or S is about their addresses.
    Latch,
}

/// There are more conditions than filters or comparators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterFull {
    /// More than 16 filters.
    Filters,
    /// More than 8 comparators.
    Comparators,
}

impl fmt::Display for FilterFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterFull::Filters => write!(f, "more than {FILTERS} filters"),
            FilterFull::Comparators => write!(f, "more than {COMPARATORS} comparators"),
        }
    }
}

impl core::error::Error for FilterFull {}

impl Default for FilterConfig {
    fn default() -> Self {
        FilterConfig {
            selected: 0,
            data_selected: 0,
            filters: [FilterUnit::default(); FILTERS],
            comparators: [Comparator::default(); COMPARATORS],
            xlen: Xlen::Rv64,
            text: FilterText::default(),
        }
    }
}

/// What a filter is to match, in the words of people: all of what is said.
/// [`FilterConfig::add`] finds it a filter and comparators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Modes, by `priv` code as in [`FilterUnit::modes`].
    pub modes: Option<u8>,
    /// Instruction addresses.
    pub address: Option<RangeInclusive<u64>>,
    /// From a block with the first address to one with the second. Not together
    /// with `address`, `context` and `tval`: a filter has three comparators.
    pub between: Option<(u64, u64)>,
    /// Software contexts.
    pub context: Option<RangeInclusive<u64>>,
    /// Trap values.
    pub tval: Option<RangeInclusive<u64>>,
    /// Causes of traps, as in [`FilterUnit::causes`].
    pub causes: Option<u64>,
    /// Kind of traps.
    pub trap: Option<TrapKind>,
    /// Sideband.
    pub impdef: Option<Impdef>,
}

/// What a filter for data accesses is to match: all of what is said.
/// [`FilterConfig::add_data`] finds it a filter and comparators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataMatch {
    /// Kinds, as in [`FilterUnit::dtypes`].
    pub dtypes: Option<u16>,
    /// Sizes, as in [`FilterUnit::dsizes`].
    pub dsizes: Option<u8>,
    /// Addresses of the accesses.
    pub daddr: Option<RangeInclusive<u64>>,
    /// Addresses of their instructions.
    pub address: Option<RangeInclusive<u64>>,
    /// Modes, by `priv` code.
    pub modes: Option<u8>,
}

impl Match {
    /// Instructions at these addresses.
    #[must_use]
    pub fn address(range: RangeInclusive<u64>) -> Match {
        Match {
            address: Some(range),
            ..Match::default()
        }
    }

    /// Instructions in these modes.
    #[must_use]
    pub fn modes(modes: &[Mode]) -> Match {
        Match {
            modes: Some(mode_bits(modes)),
            ..Match::default()
        }
    }
}

/// The set of modes as in [`FilterUnit::modes`].
#[must_use]
pub fn mode_bits(modes: &[Mode]) -> u8 {
    modes.iter().fold(0, |bits, mode| bits | 1 << mode.code())
}

impl FilterConfig {
    /// Only instructions at these addresses.
    #[must_use]
    pub fn address(range: RangeInclusive<u64>) -> FilterConfig {
        FilterConfig::only(&Match::address(range))
    }

    /// Only instructions in these modes.
    #[must_use]
    pub fn modes(modes: &[Mode]) -> FilterConfig {
        FilterConfig::only(&Match::modes(modes))
    }

    fn only(what: &Match) -> FilterConfig {
        let mut config = FilterConfig::default();
        // The first filter always fits.
        let _ = config.add(what);
        config
    }

    /// Traces instructions that match, too. Takes the first filter that is not
    /// selected, and comparators that compare the same, or that are as the default has
    /// them and in no filter.
    ///
    /// # Errors
    ///
    /// When there is no room; nothing is changed then.
    pub fn add(&mut self, what: &Match) -> Result<(), FilterFull> {
        let mut next = *self;
        let mut unit = FilterUnit {
            enabled: true,
            modes: what.modes,
            causes: what.causes,
            trap: what.trap,
            impdef: what.impdef,
            ..FilterUnit::default()
        };
        let within = |input, range: &Option<RangeInclusive<u64>>| {
            range.as_ref().map(|range| Comparator::within(input, range))
        };
        let wanted = [
            what.between.map(|(from, to)| Comparator::between(from, to)),
            within(Input::Iaddr, &what.address),
            within(Input::Context, &what.context),
            within(Input::Tval, &what.tval),
        ];
        let mut slots = unit.comparators.iter_mut();
        for comparator in wanted.into_iter().flatten() {
            let slot = slots.next().ok_or(FilterFull::Comparators)?;
            *slot = Some(next.comparator(comparator)?);
        }
        let taken = next.selected | next.data_selected;
        let free = (0..FILTERS).find(|n| taken >> n & 1 == 0);
        let free = free.ok_or(FilterFull::Filters)?;
        if let Some(place) = next.filters.get_mut(free) {
            *place = unit;
        }
        next.selected |= 1 << free;
        *self = next;
        Ok(())
    }

    /// Traces data accesses that match, too; as [`FilterConfig::add`].
    ///
    /// # Errors
    ///
    /// When there is no room; nothing is changed then.
    pub fn add_data(&mut self, what: &DataMatch) -> Result<(), FilterFull> {
        let mut next = *self;
        let mut unit = FilterUnit {
            enabled: true,
            modes: what.modes,
            dtypes: what.dtypes,
            dsizes: what.dsizes,
            ..FilterUnit::default()
        };
        let wanted = [(Input::Iaddr, &what.address), (Input::Daddr, &what.daddr)];
        let mut slots = unit.comparators.iter_mut();
        for (input, range) in wanted {
            let Some(range) = range else { continue };
            let slot = slots.next().ok_or(FilterFull::Comparators)?;
            *slot = Some(next.comparator(Comparator::within(input, range))?);
        }
        let taken = next.selected | next.data_selected;
        let free = (0..FILTERS).find(|n| taken >> n & 1 == 0);
        let free = free.ok_or(FilterFull::Filters)?;
        if let Some(place) = next.filters.get_mut(free) {
            *place = unit;
        }
        next.data_selected |= 1 << free;
        *self = next;
        Ok(())
    }

    /// The number of a comparator that is like this one.
    fn comparator(&mut self, wanted: Comparator) -> Result<u8, FilterFull> {
        let used = |n: usize| {
            let mut numbers = self.filters.iter().flat_map(|unit| unit.comparators);
            numbers.any(|number| number.is_some_and(|m| usize::from(m & 7) == n))
        };
        let all = || self.comparators.iter().enumerate();
        let free = |(n, c): (usize, &Comparator)| *c == Comparator::default() && !used(n);
        let at = (self.comparators.iter().position(|c| *c == wanted))
            .or_else(|| all().position(free))
            .ok_or(FilterFull::Comparators)?;
        if let Some(place) = self.comparators.get_mut(at) {
            *place = wanted;
        }
        Ok(at as u8)
    }
}

impl Comparator {
    /// True for values of the range.
    #[must_use]
    pub fn within(input: Input, range: &RangeInclusive<u64>) -> Comparator {
        let compared = |function, value| Comparison {
            input,
            function,
            value,
            notify: false,
        };
        Comparator {
            primary: compared(Function::GreaterOrEqual, *range.start()),
            secondary: compared(Function::LessOrEqual, *range.end()),
            mode: MatchMode::Both,
        }
    }

    /// True from an instruction at `from` to one at `to`.
    #[must_use]
    pub fn between(from: u64, to: u64) -> Comparator {
        let at = |value| Comparison {
            value,
            ..Comparison::default()
        };
        Comparator {
            primary: at(from),
            secondary: at(to),
            mode: MatchMode::Latch,
        }
    }
}

#[cfg(test)]
mod tests;
