//! Filters as register values (Trace Control Interface, trBaseEncoder offsets
//! 0x00C, 0x01C, 0x400 to 0x5FF and 0x600 to 0x6FF).

use alloc::vec::Vec;

use super::{
    COMPARATORS, Comparator, Comparison, FILTERS, FilterConfig, FilterUnit, Function, Impdef,
    Input, MatchMode, TrapKind,
};

const INST_FILTERS: u32 = 0x00c;
const DATA_FILTERS: u32 = 0x01c;
const FILTER: u32 = 0x400;
const COMPARATOR: u32 = 0x600;
/// Bytes from one filter or comparator to the next.
const STRIDE: u32 = 0x20;

impl FilterConfig {
    /// The filters that these registers describe: pairs of offset and value,
    /// as a dump of the encoder's registers has them. Registers of other parts
    /// and reserved bits are ignored, those that are missing are 0, and of two
    /// values for one register the last counts.
    #[must_use]
    pub fn from_registers(registers: &[(u32, u32)]) -> FilterConfig {
        let read = |offset: u32| {
            let found = registers.iter().rev().find(|r| r.0 == offset);
            found.map_or(0, |r| r.1)
        };
        let mut config = FilterConfig {
            selected: read(INST_FILTERS) as u16,
            data_selected: read(DATA_FILTERS) as u16,
            ..FilterConfig::default()
        };
        for (n, unit) in (0..).zip(&mut config.filters) {
            *unit = filter(|offset| read(FILTER + STRIDE * n + offset));
        }
        for (n, comparator) in (0..).zip(&mut config.comparators) {
            *comparator = pair(|offset| read(COMPARATOR + STRIDE * n + offset));
        }
        config
    }

    /// The registers that are not 0, by offset. A value whose condition is off
    /// is 0.
    #[must_use]
    pub fn to_registers(&self) -> Vec<(u32, u32)> {
        let mut all = Vec::with_capacity(2 + FILTERS * 7 + COMPARATORS * 5);
        all.push((INST_FILTERS, u32::from(self.selected)));
        all.push((DATA_FILTERS, u32::from(self.data_selected)));
        for (n, unit) in (0..).zip(&self.filters) {
            let base = FILTER + STRIDE * n;
            all.extend(filter_values(unit).map(|(offset, value)| (base + offset, value)));
        }
        for (n, comparator) in (0..).zip(&self.comparators) {
            let base = COMPARATOR + STRIDE * n;
            all.extend(pair_values(comparator).map(|(offset, value)| (base + offset, value)));
        }
        all.retain(|register| register.1 != 0);
        all
    }
}

fn filter(read: impl Fn(u32) -> u32) -> FilterUnit {
    let control = read(0x00);
    let on = |bit: u32| control >> bit & 1 != 0;
    let inst = read(0x04);
    let data = read(0x18);
    let number = |bit: u32| on(bit).then_some((control >> (bit + 1) & 7) as u8);
    FilterUnit {
        enabled: on(0),
        modes: on(1).then_some(inst as u8),
        causes: on(2).then(|| wide(read(0x08), read(0x0c))),
        trap: on(3).then_some(if inst >> 8 & 1 != 0 {
            TrapKind::Interrupt
        } else {
            TrapKind::Exception
        }),
        comparators: [number(4), number(8), number(12)],
        impdef: on(16).then(|| Impdef {
            value: read(0x10),
            mask: read(0x14),
        }),
        dtypes: on(24).then_some(data as u16),
        dsizes: on(25).then_some((data >> 16) as u8),
    }
}

fn filter_values(unit: &FilterUnit) -> [(u32, u32); 7] {
    let mut control = u32::from(unit.enabled)
        | u32::from(unit.modes.is_some()) << 1
        | u32::from(unit.causes.is_some()) << 2
        | u32::from(unit.trap.is_some()) << 3
        | u32::from(unit.impdef.is_some()) << 16
        | u32::from(unit.dtypes.is_some()) << 24
        | u32::from(unit.dsizes.is_some()) << 25;
    for (number, bit) in unit.comparators.into_iter().zip([4, 8, 12]) {
        control |= number.map_or(0, |n| (1 | u32::from(n & 7) << 1) << bit);
    }
    let interrupt = unit.trap == Some(TrapKind::Interrupt);
    let inst = u32::from(unit.modes.unwrap_or(0)) | u32::from(interrupt) << 8;
    let causes = unit.causes.unwrap_or(0);
    let impdef = unit.impdef.unwrap_or_default();
    let dsizes = u32::from(unit.dsizes.unwrap_or(0));
    [
        (0x00, control),
        (0x04, inst),
        (0x08, causes as u32),
        (0x0c, (causes >> 32) as u32),
        (0x10, impdef.value),
        (0x14, impdef.mask),
        (0x18, u32::from(unit.dtypes.unwrap_or(0)) | dsizes << 16),
    ]
}

fn pair(read: impl Fn(u32) -> u32) -> Comparator {
    let control = read(0x00);
    let half = |input: u32, function: u32, notify: u32, value: u32| Comparison {
        input: match control >> input & 3 {
            0 => Input::Iaddr,
            1 => Input::Context,
            2 => Input::Tval,
            _ => Input::Daddr,
        },
        function: match control >> function & 7 {
            0 => Function::Equal,
            1 => Function::NotEqual,
            2 => Function::Less,
            3 => Function::LessOrEqual,
            4 => Function::Greater,
            5 => Function::GreaterOrEqual,
            6 => Function::Special,
            _ => Function::Always,
        },
        value: wide(read(value), read(value + 4)),
        notify: control >> notify & 1 != 0,
    };
    Comparator {
        primary: half(0, 4, 14, 0x10),
        secondary: half(2, 8, 15, 0x18),
        mode: match control >> 12 & 3 {
            0 => MatchMode::Primary,
            1 => MatchMode::Both,
            2 => MatchMode::NotBoth,
            _ => MatchMode::Latch,
        },
    }
}

fn pair_values(pair: &Comparator) -> [(u32, u32); 5] {
    let (p, s) = (&pair.primary, &pair.secondary);
    let control = p.input as u32
        | (s.input as u32) << 2
        | (p.function as u32) << 4
        | (s.function as u32) << 8
        | (pair.mode as u32) << 12
        | u32::from(p.notify) << 14
        | u32::from(s.notify) << 15;
    [
        (0x00, control),
        (0x10, p.value as u32),
        (0x14, (p.value >> 32) as u32),
        (0x18, s.value as u32),
        (0x1c, (s.value >> 32) as u32),
    ]
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
