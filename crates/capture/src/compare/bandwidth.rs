//! The bandwidth of a trace output, as an architect writes it.

use std::fmt;

/// Parts of a bit per cycle that are counted: what is written has six decimals.
const MILLION: u64 = 1_000_000;

/// Bytes per 1024 cycles in one bit per cycle.
const DRAIN_OF_BIT: u64 = 1024 / 8;

/// Pins that trace ports have (trPibMode of the trace control interface).
pub const PINS: [u64; 5] = [1, 2, 4, 8, 16];

/// What an output carries: `0.5bits` or `0.25bytes` per cycle, `4pins` of one bit per
/// cycle each, `4pins@0.2` with pins at a fifth of the hart's clock.
///
/// ```
/// use hartrace_capture::compare::Bandwidth;
///
/// let bandwidth: Bandwidth = "4pins@0.25".parse().unwrap();
/// assert_eq!(bandwidth, "1bit".parse().unwrap());
/// assert_eq!(bandwidth.drain(), 128);
/// assert_eq!(bandwidth.to_string(), "1 bit per cycle");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bandwidth {
    /// Millionths of a bit per cycle.
    total: u64,
    /// The same of one pin.
    pin: u64,
}

impl Bandwidth {
    /// One pin that carries one bit per cycle.
    pub const PIN: Bandwidth = Bandwidth {
        total: MILLION,
        pin: MILLION,
    };

    /// Bytes per 1024 cycles, as an encoder's queue counts; rounded down.
    #[must_use]
    pub fn drain(&self) -> u32 {
        drain(self.total) as u32
    }

    /// Bits per cycle.
    #[must_use]
    pub fn bits(&self) -> f64 {
        self.total as f64 / MILLION as f64
    }

    /// Bits per cycle of one pin.
    #[must_use]
    pub fn pin_bits(&self) -> f64 {
        self.pin as f64 / MILLION as f64
    }

    /// The fewest of [`PINS`], of the kind given, that carry so many bytes per 1024
    /// cycles; `None` if all are too few.
    #[must_use]
    pub fn pins_for(&self, bytes: u64) -> Option<u64> {
        PINS.into_iter().find(|n| drain(n * self.pin) >= bytes)
    }
}

/// Equal if they carry the same.
impl PartialEq for Bandwidth {
    fn eq(&self, other: &Bandwidth) -> bool {
        self.total == other.total
    }
}

impl Eq for Bandwidth {}

/// Bytes per 1024 cycles.
const fn drain(millionths: u64) -> u64 {
    millionths * DRAIN_OF_BIT / MILLION
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.total == MILLION { "bit" } else { "bits" };
        write!(f, "{} {unit} per cycle", self.bits())
    }
}

/// What is not a bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandwidthError {
    /// Not a number with a unit.
    Form,
    /// Less than an encoder's queue can count, or more than any output carries.
    Range,
}

impl fmt::Display for BandwidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BandwidthError::Form => {
                "write bits or bytes per cycle, or pins: 0.5bits, 0.25bytes, 4pins, 4pins@0.2"
            }
            BandwidthError::Range => "the bandwidth must be from 0.007813 to 100000 bits per cycle",
        })
    }
}

impl std::error::Error for BandwidthError {}

impl std::str::FromStr for Bandwidth {
    type Err = BandwidthError;

    fn from_str(text: &str) -> Result<Bandwidth, BandwidthError> {
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(unit.ok_or(BandwidthError::Form)?);
        let (unit, rate) = unit.split_once('@').unwrap_or((unit, "1"));
        let number = millionths(number).ok_or(BandwidthError::Form)?;
        let rate_of_pin = millionths(rate).ok_or(BandwidthError::Form)?;
        let (total, pin) = match unit {
            "bit" | "bits" if !text.contains('@') => (number, MILLION),
            "byte" | "bytes" if !text.contains('@') => (number * 8, MILLION),
            "pin" | "pins" if number % u128::from(MILLION) == 0 => {
                let pins = number / u128::from(MILLION);
                let pin = u64::try_from(rate_of_pin).map_err(|_| BandwidthError::Range)?;
                (pins * u128::from(pin), pin)
            }
            _ => return Err(BandwidthError::Form),
        };
        let total = u64::try_from(total).map_err(|_| BandwidthError::Range)?;
        let most = 100_000 * MILLION;
        if drain(total.min(most)) == 0 || total > most || pin > most {
            return Err(BandwidthError::Range);
        }
        Ok(Bandwidth { total, pin })
    }
}

/// A decimal number, in millionths.
fn millionths(text: &str) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let scale = 10u128.pow(6 - part.len() as u32);
    let part = u128::from(part.parse::<u64>().ok()?) * scale;
    Some(u128::from(whole.parse::<u64>().ok()?) * u128::from(MILLION) + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain_of(text: &str) -> Result<u32, BandwidthError> {
        text.parse().map(|b: Bandwidth| b.drain())
    }

    #[test]
    fn units_of_an_architect() {
        assert_eq!(drain_of("1bit"), Ok(128));
        assert_eq!(drain_of("0.5bits"), Ok(64));
        assert_eq!(drain_of("0.25bytes"), Ok(256));
        assert_eq!(drain_of("1byte"), Ok(1024));
        assert_eq!(drain_of("16pins"), Ok(2048));
        assert_eq!(drain_of("4pins@0.2"), Ok(102));
    }

    #[test]
    fn what_is_not_a_bandwidth() {
        let form = [
            "",
            "4",
            "pins",
            "-1bit",
            "1.2.3bits",
            "1bit@2",
            "1.5pins",
            "4pins@",
            ".5bits",
            "0.0000001bits",
            "4 pins",
            "4pinsx",
            "4pins@fast",
        ];
        for text in form {
            assert_eq!(drain_of(text), Err(BandwidthError::Form), "{text}");
        }
        for text in [
            "0bits",
            "0pins",
            "0.007812bits",
            "100001bits",
            "99999999999999bytes",
            "99999999999999pins",
        ] {
            assert_eq!(drain_of(text), Err(BandwidthError::Range), "{text}");
        }
        assert_eq!(drain_of("0.007813bits"), Ok(1));
    }

    #[test]
    fn pins_that_carry_enough() {
        let slow: Bandwidth = "1pin@0.5".parse().unwrap();
        assert_eq!(slow.pins_for(64), Some(1));
        assert_eq!(slow.pins_for(65), Some(2));
        assert_eq!(slow.pins_for(1024), Some(16));
        assert_eq!(slow.pins_for(1025), None);
        assert_eq!(Bandwidth::PIN.pins_for(1), Some(1));
    }
}
