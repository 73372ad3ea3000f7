//! The parameters that a standard support packet reports (2.05).

use super::Config;

/// They stand between the options and `denable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SupportParameters {
    /// In units of 16 bits, minus one. A packet does not say whether there is a
    /// time at all.
    pub(crate) time_width: u8,
    pub(crate) f0s_width: u8,
    pub(crate) return_stack_size: u8,
    pub(crate) call_counter_size: u8,
    pub(crate) bpred_size: u8,
    pub(crate) cache_size: u8,
}

impl SupportParameters {
    /// Names and widths of the fields, in order.
    pub(crate) const FIELDS: [(&'static str, u8); 6] = [
        ("time_width", 2),
        ("f0s_width", 2),
        ("return_stack_size", 3),
        ("call_counter_size", 4),
        ("bpred_size", 3),
        ("cache_size", 3),
    ];

    /// Of all of them.
    pub(crate) const WIDTH: u8 = 17;

    pub(super) const fn of(config: &Config) -> SupportParameters {
        SupportParameters {
            time_width: (config.time_width / 16).saturating_sub(1),
            f0s_width: config.f0s_width,
            return_stack_size: config.return_stack_size,
            call_counter_size: config.call_counter_size,
            bpred_size: config.bpred_size,
            cache_size: config.cache_size,
        }
    }

    /// Width of `irdepth`, or of `irets` (6.6, 2.05).
    pub(crate) const fn irdepth_width(&self, iret_ext: bool) -> u8 {
        if iret_ext {
            return 8;
        }
        let stack = self.return_stack_size;
        self.call_counter_size + stack + (stack > 0) as u8
    }

    /// Width of `time`, where there is one.
    pub(crate) const fn time_bits(&self) -> u8 {
        16 * (self.time_width + 1)
    }

    fn values(self) -> [u8; 6] {
        [
            self.time_width,
            self.f0s_width,
            self.return_stack_size,
            self.call_counter_size,
            self.bpred_size,
            self.cache_size,
        ]
    }

    /// The bits of all fields.
    pub(super) fn field(self) -> u32 {
        let fields = self.values().into_iter().zip(SupportParameters::FIELDS);
        let placed = fields.scan(0, |at, (value, (_, width))| {
            let field = (u32::from(value) & ((1 << width) - 1)) << *at;
            *at += width;
            Some(field)
        });
        placed.fold(0, |all, field| all | field)
    }

    /// From the bits of all fields.
    pub(crate) fn from_field(field: u32) -> SupportParameters {
        let mut at = 0;
        let [
            time_width,
            f0s_width,
            return_stack_size,
            call_counter_size,
            bpred_size,
            cache_size,
        ] = SupportParameters::FIELDS.map(|(_, width)| {
            let value = (field >> at & ((1 << width) - 1)) as u8;
            at += width;
            value
        });
        SupportParameters {
            time_width,
            f0s_width,
            return_stack_size,
            call_counter_size,
            bpred_size,
            cache_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table "Standard Support Packet format": widths in order, lowest first.
    #[test]
    fn fields_are_packed_in_order() {
        let parameters = SupportParameters {
            time_width: 2,
            f0s_width: 1,
            return_stack_size: 5,
            call_counter_size: 9,
            bpred_size: 7,
            cache_size: 3,
        };
        let field = parameters.field();
        assert_eq!(field, 0b0_1111_1100_1101_0110);
        assert_eq!(SupportParameters::from_field(field), parameters);
        let widths = SupportParameters::FIELDS.iter().map(|(_, width)| width);
        assert_eq!(widths.sum::<u8>(), SupportParameters::WIDTH);
        assert_eq!(parameters.time_bits(), 48);
        assert_eq!(parameters.irdepth_width(true), 8);
        assert_eq!(parameters.irdepth_width(false), 15);
    }
}
