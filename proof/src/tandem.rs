//! Checks the tandem-verification trace protocol against itself and against the
//! hart: traces are encoded, decoded and verified; complete, faulty and
//! damaged.

pub mod corruption;
pub mod faults;
pub mod identity;
mod setting;
pub mod speed;
mod subject;

pub use setting::Setting;
pub use subject::{Heard, Subject, Told, Watch};

/// The argument in this place as a number, or the default.
fn number(args: &[String], at: usize, default: u64) -> Result<u64, String> {
    args.get(at).map_or(Ok(default), |text| {
        let parsed = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        parsed.map_err(|_| format!("not a number: {text}"))
    })
}
