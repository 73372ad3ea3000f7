//! How long a unit of time is.

/// The length of a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timescale {
    femtoseconds: u64,
}

/// Femtoseconds in a second.
const SECOND: u64 = 1_000_000_000_000_000;

impl Timescale {
    /// A length such as `10ns` or `2.5us`, or a frequency such as `100MHz`. A length is
    /// a whole number of femtoseconds: those of frequencies are rounded to one.
    ///
    /// ```
    /// use hartrace_analyze::Timescale;
    ///
    /// assert_eq!(Timescale::parse("100MHz"), Timescale::parse("10ns"));
    /// assert_eq!(Timescale::parse("32768Hz").unwrap().nanoseconds(2), 61035);
    /// assert_eq!(Timescale::parse("ten"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Timescale> {
        let number = text.find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, unit) = text.split_at_checked(number?)?;
        let lower = unit.trim_start().to_ascii_lowercase();
        if let Some(prefix) = lower.strip_suffix("hz") {
            let scale = match prefix {
                "" => 1,
                "k" => 1_000,
                "m" => 1_000_000,
                "g" => 1_000_000_000,
                _ => return None,
            };
            // Of a frequency in thousandths of a hertz.
            let frequency = decimal(number, scale * 1000)?;
            let rounded = u128::from(SECOND) * 1000 + frequency / 2;
            let femtoseconds = rounded.checked_div(frequency)?;
            return Timescale::of(femtoseconds);
        }
        let unit = match lower.as_str() {
            "s" => SECOND,
            "ms" => SECOND / 1_000,
            "us" => SECOND / 1_000_000,
            "ns" => SECOND / 1_000_000_000,
            "ps" => 1_000,
            "fs" => 1,
            _ => return None,
        };
        Timescale::of(decimal(number, unit)?)
    }

    fn of(femtoseconds: u128) -> Option<Timescale> {
        let femtoseconds = u64::try_from(femtoseconds).ok().filter(|f| *f > 0)?;
        Some(Timescale { femtoseconds })
    }

    /// So many units in nanoseconds, rounded down.
    #[must_use]
    pub fn nanoseconds(self, units: u64) -> u64 {
        self.scaled(units, 1_000_000)
    }

    /// How many units a microsecond has.
    #[must_use]
    pub fn per_microsecond(self) -> f64 {
        1e9 / self.femtoseconds as f64
    }

    /// So many units in multiples of so many femtoseconds.
    fn scaled(self, units: u64, femtoseconds: u64) -> u64 {
        let all = u128::from(units) * u128::from(self.femtoseconds);
        u64::try_from(all / u128::from(femtoseconds.max(1))).unwrap_or(u64::MAX)
    }

    /// It as a number of times a power of ten of a second: the number and the exponent.
    #[must_use]
    pub const fn decimal(self) -> (u64, i8) {
        let (mut times, mut exponent) = (self.femtoseconds, -15);
        while times.is_multiple_of(10) {
            (times, exponent) = (times / 10, exponent + 1);
        }
        (times, exponent)
    }

    /// The units of a clock: its frequency in hertz and how many of its ticks are so many
    /// units. A frequency that is no whole number is that of picoseconds.
    #[must_use]
    pub fn ticks(self, units: u64) -> (u64, u64) {
        match SECOND.is_multiple_of(self.femtoseconds) {
            true => (SECOND / self.femtoseconds, units),
            false => (SECOND / 1000, self.scaled(units, 1000)),
        }
    }
}

/// A decimal number times `scale`; `None` if that is no whole number.
fn decimal(text: &str, scale: u64) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = u32::try_from(fraction.len()).ok()?;
    let places = 10u128.checked_pow(digits)?;
    let whole: u128 = match whole {
        "" if !fraction.is_empty() => 0,
        whole => whole.parse().ok()?,
    };
    let fraction: u128 = match fraction {
        "" => 0,
        fraction => fraction.parse().ok()?,
    };
    let number = whole.checked_mul(places)?.checked_add(fraction)?;
    let scaled = number.checked_mul(scale.into())?;
    scaled.is_multiple_of(places).then(|| scaled / places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<u64> {
        Timescale::parse(text).map(|scale| scale.femtoseconds)
    }

    #[test]
    fn lengths_and_frequencies() {
        let all = [
            ("1fs", 1),
            ("1ps", 1000),
            ("2.5ns", 2_500_000),
            (".5 us", 500_000_000),
            ("10ms", SECOND / 100),
            ("1s", SECOND),
            ("1GHz", 1_000_000),
            ("33MHz", 30_303_030),
            ("32.768kHz", 30_517_578_125),
        ];
        for (text, femtoseconds) in all {
            assert_eq!(parsed(text), Some(femtoseconds), "{text}");
        }
        let wrong = [
            "",
            "10",
            "ns",
            "0ns",
            "0Hz",
            "1.5fs",
            "1e3ns",
            "-1ns",
            "1 hour",
            ".ns",
            "1..2ns",
            "99999999999s",
            "1THz",
            "9999999GHz",
        ];
        for text in wrong {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn scaled_for_files() {
        let of = |text| Timescale::parse(text).unwrap();
        assert_eq!(of("10ns").decimal(), (1, -8));
        assert_eq!(of("250MHz").decimal(), (4, -9));
        assert_eq!(of("1s").decimal(), (1, 0));
        assert_eq!(of("10ns").ticks(7), (100_000_000, 7));
        assert_eq!(of("3ns").ticks(7), (1_000_000_000_000, 21_000));
        assert_eq!(of("1s").nanoseconds(u64::MAX), u64::MAX);
    }
}
