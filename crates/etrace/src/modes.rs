//! The optional modes (3.2.3, 3.2.5 to 3.2.7): what encoder and decoder keep
//! alike, so that one can leave out what the other works out.

mod effects;
pub(crate) mod predictor;
pub(crate) mod returns;
mod state;
pub(crate) mod targets;
pub(crate) mod vectors;

pub(crate) use predictor::{Predictor, Shared};
pub(crate) use targets::Targets;
pub(crate) use vectors::Vectors;

/// The lowest bit of an address that tables are indexed by: bit 1, or bit 2
/// where there are no compressed instructions (3.2.6, 3.2.7).
const fn first_bit(iaddress_lsb: u8) -> u32 {
    if iaddress_lsb > 1 { 2 } else { 1 }
}
