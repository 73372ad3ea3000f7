//! Numbers with digit separators and units: `1_000_000`, `10M`, `256K`,
//! `0x8000`.

use crate::program::parse_address;

/// A count: decimal or `0x`, `_` between digits, and `K`, `M`, `G` or `T` for
/// thousands, millions and so on.
///
/// ```
/// use hartrace_files::quantity::parse_count;
///
/// assert_eq!(parse_count("10M"), Some(10_000_000));
/// assert_eq!(parse_count("0x10"), Some(16));
/// assert_eq!(parse_count("ten"), None);
/// ```
#[must_use]
pub fn parse_count(text: &str) -> Option<u64> {
    scaled(text, 1000)
}

/// A size in bytes: as [`parse_count`], with units of 1024. `KiB` and the like
/// are understood too.
///
/// ```
/// use hartrace_files::quantity::parse_size;
///
/// assert_eq!(parse_size("256M"), Some(256 << 20));
/// assert_eq!(parse_size("4KiB"), Some(4096));
/// assert_eq!(parse_size("0x1000"), Some(4096));
/// ```
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let bare = lower.strip_suffix("ib").filter(|rest| unit(rest).is_some());
    scaled(bare.unwrap_or(&lower), 1024)
}

/// The size as [`parse_size`] reads it, in the largest unit that divides it.
#[must_use]
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let fits = |unit: &(u64, &str)| bytes > 0 && bytes.is_multiple_of(unit.0);
    match units.into_iter().find(fits) {
        Some((unit, letter)) => format!("{}{letter}", bytes / unit),
        None => format!("{bytes:#x}"),
    }
}

/// The number before the unit, and how often the unit is multiplied.
fn unit(text: &str) -> Option<(&str, u32)> {
    let (last, _) = text.char_indices().next_back()?;
    let (number, letter) = text.split_at_checked(last)?;
    let power = match letter {
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    Some((number, power))
}

fn scaled(text: &str, base: u64) -> Option<u64> {
    let (number, power) = unit(text).unwrap_or((text, 0));
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    parse_address(number)?.checked_mul(base.checked_pow(power)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, number) in [
            ("0", 0),
            ("1_000_000", 1_000_000),
            ("10M", 10_000_000),
            ("10m", 10_000_000),
            ("1G", 1_000_000_000),
            ("2k", 2_000),
            ("3T", 3_000_000_000_000),
            ("0xff", 255),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Some(number), "{text}");
        }
        for text in [
            "",
            "M",
            "-1",
            "1.5M",
            "x",
            "10MM",
            "1 M",
            "_",
            "20000000T",
            "é",
            "1é",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in [
            ("4096", 4096),
            ("4K", 4096),
            ("4kib", 4096),
            ("256M", 256 << 20),
            ("2G", 2 << 30),
            ("0x1000", 4096),
        ] {
            assert_eq!(parse_size(text), Some(size), "{text}");
        }
        for text in ["", "ib", "4ib", "4KB", "KiB", "17179869184G"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        for size in [
            0,
            1,
            1000,
            4096,
            5 << 20,
            3 << 30,
            u64::MAX,
            (1 << 30) + 1024,
        ] {
            assert_eq!(parse_size(&show_size(size)), Some(size), "{size}");
        }
        assert_eq!(show_size(256 << 20), "256M");
    }
}
