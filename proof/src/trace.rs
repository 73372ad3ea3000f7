//! Checks trace formats against themselves: the decoded trace must equal the
//! run, for every setting, complete and damaged. [`Format`] holds what differs
//! between formats.

pub mod corruption;
mod counted;
mod format;
pub mod identity;
mod pipe;
pub(crate) mod recorded;
pub mod speed;
mod splits;
pub mod straight;
mod truth;

pub(crate) use counted::counted;
pub use format::{Counters, Events, Format, Out, Point, Setting, Subjects, points};
pub use pipe::Pipe;
pub use recorded::{Recorded, programs};
pub(crate) use splits::same;
pub use truth::{
    Behind, Hart, Heard, Item, Judge, Meeting, Pulse, Rules, Told, Truth, What, flag, is_start,
    is_stop,
};
