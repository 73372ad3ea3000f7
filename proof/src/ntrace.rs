//! N-Trace against itself: what was encoded and decoded again is what was
//! done, for every setting, whole and damaged.

pub mod identity;
mod pipe;
mod setting;
mod splits;
mod truth;

pub use pipe::Pipe;
pub use setting::Setting;
pub use truth::{Told, Truth};
