//! What packets are called.

use core::fmt;

/// What a packet of instruction trace or data trace is: its format and, where that decides
/// what it says, its content. Ordered by format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // `as_str` has their names
pub enum PacketName {
    BranchCount,
    BranchCountAddress,
    JumpTarget,
    JumpTargetBranches,
    Branches,
    BranchesAddress,
    Address,
    Start,
    Trap,
    Context,
    Support,
    Load,
    LoadRequest,
    LoadUnaligned,
    LoadRequestUnaligned,
    Store,
    StoreUnaligned,
    LoadResponse,
    Csr,
    Atomic,
    AtomicRequest,
    SwapFailure,
    AtomicResponse,
}

impl PacketName {
    /// With format and subformat: `0.0 branch count, address`, `data 2 store`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            PacketName::BranchCount => "0.0 branch count",
            PacketName::BranchCountAddress => "0.0 branch count, address",
            PacketName::JumpTarget => "0.1 jump target",
            PacketName::JumpTargetBranches => "0.1 jump target, branches",
            PacketName::Branches => "1 branches",
            PacketName::BranchesAddress => "1 branches, address",
            PacketName::Address => "2 address",
            PacketName::Start => "3.0 start",
            PacketName::Trap => "3.1 trap",
            PacketName::Context => "3.2 context",
            PacketName::Support => "3.3 support",
            PacketName::Load => "data 0 load",
            PacketName::LoadRequest => "data 0 load request",
            PacketName::LoadUnaligned => "data 1 load, unaligned",
            PacketName::LoadRequestUnaligned => "data 1 load request, unaligned",
            PacketName::Store => "data 2 store",
            PacketName::StoreUnaligned => "data 3 store, unaligned",
            PacketName::LoadResponse => "data 4 load response",
            PacketName::Csr => "data 5 CSR",
            PacketName::Atomic => "data 6 atomic",
            PacketName::AtomicRequest => "data 6 atomic request",
            PacketName::SwapFailure => "data 6 failed compare-and-swap",
            PacketName::AtomicResponse => "data 7 atomic response",
        }
    }

    /// The name of a load or store of this `format`, 0 to 3.
    pub(crate) const fn of_transfer(format: u8) -> PacketName {
        match format {
            0 => PacketName::Load,
            1 => PacketName::LoadUnaligned,
            2 => PacketName::Store,
            _ => PacketName::StoreUnaligned,
        }
    }
}

impl fmt::Display for PacketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
