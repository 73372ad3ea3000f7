//! What the host's floating point can do in a format.

/// A result that raises no flag but, perhaps, inexact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    pub(super) bits: u64,
    pub(super) inexact: bool,
}

/// What the host can do in a format; by default nothing.
pub(super) trait Host: Copy {
    #[inline]
    fn host_add(_a: u64, _b: u64) -> Option<Exact> {
        None
    }

    #[inline]
    fn host_mul(_a: u64, _b: u64) -> Option<Exact> {
        None
    }

    #[inline]
    fn host_div(_a: u64, _b: u64) -> Option<Exact> {
        None
    }

    #[inline]
    fn host_sqrt(_a: u64) -> Option<Exact> {
        None
    }

    #[inline]
    fn host_mul_add(_a: u64, _b: u64, _c: u64) -> Option<Exact> {
        None
    }

    /// Rounds to the format.
    #[inline]
    fn host_from(_value: f64) -> Option<Exact> {
        None
    }

    /// The number itself; a NaN is one here, too.
    #[inline]
    fn host_value(_a: u64) -> Option<f64> {
        None
    }
}
