//! What sync messages, and messages at the end, report besides counts.

use hartrace_flow::{Cause, Mark};

use super::end::End;
use crate::{Body, Btype, Evcode, Sync};

/// A sync message of any type.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullAddress {
    pub(super) sync: Sync,
    /// Where the hart is.
    pub(super) to: u64,
    pub(super) icnt: u64,
    pub(super) hist: Option<u64>,
    /// The trap that led there, if it was one.
    cause: Option<Cause>,
    /// The message is one of taken branches.
    taken: bool,
}

impl FullAddress {
    /// What the message says, if it is one with `SYNC`.
    pub(super) const fn of(body: &Body<'_>) -> Option<FullAddress> {
        let (sync, faddr, icnt, hist, cause) = match *body {
            Body::ProgTraceSync { sync, icnt, faddr }
            | Body::DirectBranchSync { sync, icnt, faddr } => (sync, faddr, icnt, None, None),
            Body::IndirectBranchSync {
                sync,
                btype,
                icnt,
                faddr,
            } => (sync, faddr, icnt, None, trap(btype)),
            Body::IndirectBranchHistSync {
                sync,
                btype,
                icnt,
                faddr,
                hist,
            } => (sync, faddr, icnt, Some(hist), trap(btype)),
            _ => return None,
        };
        Some(FullAddress {
            sync,
            to: faddr << 1,
            icnt,
            hist,
            cause,
            taken: matches!(body, Body::DirectBranchSync { .. }),
        })
    }

    /// How the stretch before it ended.
    pub(super) const fn end(&self) -> End {
        let elsewhere = matches!(
            self.sync,
            Sync::RESET | Sync::DEBUG_EXIT | Sync::ENABLE | Sync::POWER_UP
        );
        let FullAddress { to, taken, .. } = *self;
        match self.cause {
            Some(cause) => End::Trap(cause, to),
            None if elsewhere => End::Open,
            None => End::Here { to, taken },
        }
    }
}

/// What `B-TYPE` says of a trap.
pub(super) const fn trap(btype: Btype) -> Option<Cause> {
    match btype {
        Btype::Indirect => None,
        Btype::Trap => Some(Cause::Unknown),
        Btype::Exception => Some(Cause::Exception(None)),
        Btype::Interrupt => Some(Cause::Interrupt(None)),
    }
}

/// What a sync message reports besides the address.
pub(super) const fn start_mark(sync: Sync) -> Option<Mark> {
    match sync {
        // Which input it was is not reported.
        Sync::EXTERNAL_TRIGGER => Some(Mark::External(0)),
        Sync::RESET => Some(Mark::Reset),
        Sync::DEBUG_EXIT => Some(Mark::Resumed),
        Sync::ENABLE => Some(Mark::On),
        Sync::EVENT => Some(Mark::Notify),
        Sync::POWER_UP => Some(Mark::PowerUp),
        // Too many to be of interest (8.5).
        Sync::PERIODIC => None,
        Sync(code) => Some(Mark::Sync(code)),
    }
}

pub(super) const fn stop_mark(evcode: Evcode) -> Mark {
    match evcode {
        Evcode::DEBUG => Mark::Halted,
        Evcode::LOW_POWER => Mark::PowerDown,
        _ => Mark::Off,
    }
}
