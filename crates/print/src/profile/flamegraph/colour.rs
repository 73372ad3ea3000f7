//! The colours of frames, as `#rrggbb`.

use super::frames::Costs;

/// What is no function, and a function whose own cost has not changed.
const NEUTRAL: [u8; 3] = [0xe4, 0xe5, 0xe8];
const MORE: [u8; 3] = [0xe2, 0x48, 0x3d];
const LESS: [u8; 3] = [0x4a, 0x84, 0xe0];

/// The colour of a function: always the same for the same name, and the one that it has
/// on the page of `report`.
pub(super) fn of_name(name: &str) -> String {
    // `[machine timer interrupt]`, `[hart 0]`.
    if name.starts_with('[') {
        return hex(NEUTRAL);
    }
    let name = name.strip_suffix('?').unwrap_or(name);
    // FNV-1a over UTF-16.
    let value = name.encode_utf16().fold(0x811c_9dc5_u32, |value, unit| {
        (value ^ u32::from(unit)).wrapping_mul(0x0100_0193)
    });
    let hue = f64::from(value % 29) * 360.0 / 29.0;
    let shade = f64::from((value >> 8) % 3);
    let (saturation, lightness) = (0.40 + 0.05 * shade, 0.85 - 0.03 * shade);
    hex(from_hsl(hue.round(), saturation, lightness))
}

/// Red if the own cost has grown, blue if it has shrunk, stronger the nearer the change
/// is to `most`. The smallest change can be seen.
pub(super) fn of_change(own: Costs, most: u64) -> String {
    let change = own.now.abs_diff(own.before);
    if change == 0 {
        return hex(NEUTRAL);
    }
    let full = if own.now > own.before { MORE } else { LESS };
    let strength = 0.2 + 0.8 * (change as f64 / most.max(1) as f64).min(1.0);
    let mut mixed = NEUTRAL;
    for (part, full) in mixed.iter_mut().zip(full) {
        let from = f64::from(*part);
        *part = (from + (f64::from(full) - from) * strength).round() as u8;
    }
    hex(mixed)
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// CSS Color 4, 7: hue in degrees, the others from 0 to 1.
fn from_hsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let spread = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|offset| {
        let k = (offset + hue / 30.0) % 12.0;
        let part = lightness - spread * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (part * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues() {
        assert_eq!(from_hsl(0.0, 1.0, 0.5), [255, 0, 0]);
        assert_eq!(from_hsl(120.0, 1.0, 0.5), [0, 255, 0]);
        assert_eq!(from_hsl(240.0, 1.0, 0.25), [0, 0, 128]);
        assert_eq!(from_hsl(77.0, 0.0, 1.0), [255, 255, 255]);
    }

    /// A function whose caller was inferred has the colour of the function.
    #[test]
    fn one_name_has_one_colour() {
        // hsl(298 45% 82%), as the page has it.
        assert_eq!(of_name("main"), "#e4bce6");
        assert_eq!(of_name("main"), of_name("main?"));
        assert_ne!(of_name("main"), of_name("printf"));
        assert_eq!(of_name("[hart 0]"), of_name("[breakpoint]"));
    }

    #[test]
    fn changes() {
        let colour = |before, now| of_change(Costs { before, now }, 100);
        assert_eq!(colour(7, 7), hex(NEUTRAL));
        assert_eq!(colour(0, 100), hex(MORE));
        assert_eq!(colour(100, 0), hex(LESS));
        assert_ne!(colour(100, 101), hex(NEUTRAL));
        assert_ne!(colour(0, 50), hex(MORE));
        assert_eq!(
            of_change(
                Costs {
                    before: 0,
                    now: u64::MAX
                },
                1
            ),
            hex(MORE)
        );
    }
}
