//! The encoder's action for each `itype` (tables 3 and 4).

use hartrace_flow::Role;
use hartrace_isa::Itype;

use crate::{Btype, Config, ImplicitReturn, TraceMode, TrapTypes};

/// What a block's end asks of the encoder, beside counting its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing.
    Count,
    /// A branch for the history, not taken.
    NotTaken,
    /// A branch for the history, taken.
    Taken,
    /// The same, and a call.
    TakenCall,
    /// A DirectBranch message.
    Direct,
    /// The same, and a call.
    DirectCall,
    /// A call whose target the code determines.
    Call,
    /// A jump whose target the code does not determine.
    Jump,
    /// The same, and a call.
    JumpCall,
    /// A return, to be compared with the stack.
    Return,
    /// The same, and a call.
    Swap,
    /// A return from a trap handler.
    TrapReturn,
    /// A trap.
    Trap(Btype),
}

impl Action {
    /// A message with `I-CNT` and the address of the next block follows,
    /// but perhaps for returns.
    pub(super) const fn waits(self) -> bool {
        !matches!(
            self,
            Action::Count | Action::NotTaken | Action::Taken | Action::TakenCall | Action::Call
        )
    }

    /// An outcome for the history.
    #[inline]
    pub(super) const fn is_branch(self) -> bool {
        matches!(self, Action::NotTaken | Action::Taken | Action::TakenCall)
    }

    /// An indirect jump: with the constant that was loaded just before it, the
    /// code determines where it goes.
    pub(super) const fn is_jump(self) -> bool {
        matches!(
            self,
            Action::Jump | Action::JumpCall | Action::Return | Action::Swap
        )
    }
}

/// The action for each `itype`.
#[derive(Clone, Debug)]
pub(super) struct Actions {
    all: [Action; 16],
    /// What runs may end with that are counted only, but for their branches, which
    /// go into the history.
    most_counted: Role,
}

impl Actions {
    pub(super) fn new(config: &Config) -> Actions {
        let mut all = [Action::Count; 16];
        for (code, action) in (0u8..).zip(&mut all) {
            if let Some(itype) = Itype::from_code(code) {
                *action = action_of(itype, config);
            }
        }
        let mut actions = Actions {
            all,
            most_counted: Role::Branch,
        };
        let direct = [
            Itype::None,
            Itype::Reserved,
            Itype::DirectJump,
            Itype::OtherDirect,
            Itype::DirectCall,
        ];
        if direct.map(|itype| actions.of(itype)) == [Action::Count; 5] {
            actions.most_counted = Role::Direct;
        }
        actions
    }

    /// The most that runs may end with which are counted only, where branches go into
    /// the history.
    #[inline]
    pub(super) const fn most_counted(&self) -> Role {
        self.most_counted
    }

    #[inline]
    pub(super) fn of(&self, itype: Itype) -> Action {
        // Never outside: there are 16 codes.
        self.all
            .get(usize::from(itype.code() & 15))
            .copied()
            .unwrap_or(Action::Count)
    }
}

fn action_of(itype: Itype, config: &Config) -> Action {
    let stack = config.implicit_return != ImplicitReturn::Off;
    let taken = match config.mode {
        TraceMode::Btm => Action::Direct,
        TraceMode::Htm => Action::Taken,
    };
    // A direct jump, where those count as branches (trTeInstEnAllJumps).
    let direct = if config.all_jumps {
        taken
    } else {
        Action::Count
    };
    match itype {
        Itype::None => Action::Count,
        Itype::Exception => Action::Trap(btype(config, Btype::Exception)),
        Itype::Interrupt => Action::Trap(btype(config, Btype::Interrupt)),
        Itype::TrapReturn => Action::TrapReturn,
        Itype::NotTaken if config.mode == TraceMode::Htm => Action::NotTaken,
        Itype::NotTaken => Action::Count,
        Itype::Taken => taken,
        Itype::Reserved | Itype::DirectJump | Itype::OtherDirect => direct,
        Itype::DirectCall if stack => match direct {
            Action::Direct => Action::DirectCall,
            Action::Taken => Action::TakenCall,
            _ => Action::Call,
        },
        Itype::DirectCall => direct,
        Itype::IndirectCall if stack => Action::JumpCall,
        Itype::Swap if stack => Action::Swap,
        Itype::Return if stack => Action::Return,
        Itype::Uninferable
        | Itype::IndirectCall
        | Itype::IndirectJump
        | Itype::Swap
        | Itype::Return
        | Itype::OtherIndirect => Action::Jump,
    }
}

fn btype(config: &Config, exact: Btype) -> Btype {
    match config.trap_types {
        TrapTypes::One => Btype::Trap,
        TrapTypes::Two => exact,
        TrapTypes::None => Btype::Indirect,
    }
}
