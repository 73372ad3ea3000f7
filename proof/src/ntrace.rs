//! N-Trace against itself: what was encoded and decoded again is what was
//! done, for every setting, whole and damaged.

pub mod corruption;
pub mod identity;
mod pipe;
mod setting;
pub mod speed;
mod splits;
mod truth;

pub use pipe::Pipe;
pub use setting::Setting;
pub use truth::{Told, Truth};
