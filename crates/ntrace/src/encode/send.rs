//! The messages of one hart: branches, syncs, Ownership, the end.

use hartrace_flow::Ingress;

use super::Sink;
use super::hart::{Hart, Pending, State};
use super::out::{Branch, is_short};
use crate::{Body, Btype, Config, Evcode, Owner, Process, Sync, TraceMode, Version};

impl Hart {
    /// Reports the jump or branch before the block at this address, with sync
    /// where one is due. Whether a sync message went out.
    pub(super) fn resolve(
        &mut self,
        config: &Config,
        addr: u64,
        sync: Option<Sync>,
        sink: &mut impl Sink,
    ) -> bool {
        let pending = core::mem::replace(&mut self.pending, Pending::Nothing);
        let btype = match pending {
            Pending::Nothing => return false,
            Pending::Direct => None,
            Pending::Jump => Some(Btype::Indirect),
            Pending::Return(swap) => {
                let implied = self.stack.returns(addr);
                if let Some(link) = swap {
                    self.stack.push(link);
                }
                if implied {
                    // No message took the count along.
                    self.report_icnt(config, self.pending_time, sink);
                    return false;
                }
                Some(Btype::Indirect)
            }
            Pending::TrapReturn => {
                self.owner_trap = config.version == Version::Rc7;
                Some(Btype::Indirect)
            }
            Pending::Trap(btype) => {
                self.owner_trap = config.version == Version::Rc7;
                Some(btype)
            }
        };
        self.branch(config, btype, addr, sync, sink);
        sync.is_some()
    }

    /// A branch message.
    #[inline(never)]
    pub(super) fn branch(
        &mut self,
        config: &Config,
        btype: Option<Btype>,
        addr: u64,
        sync: Option<Sync>,
        sink: &mut impl Sink,
    ) {
        let time = self.pending_time;
        let hist = self.take_hist(time, sink);
        let icnt = self.take_icnt();
        if let Some(sync) = sync {
            let body = sync_body(config, btype, sync, icnt, addr, hist);
            self.out.send(body, time, sink);
            self.synced(config, sync, addr, time, sink);
            return;
        }
        let branch = config.repeat_branch.then_some(Branch {
            btype,
            icnt,
            target: addr,
        });
        if branch.is_some_and(|branch| self.out.is_again(branch, time, sink)) {
            self.after_message(config);
            return;
        }
        let uaddr = (self.reference ^ addr) >> 1;
        let out = &mut self.out;
        match btype {
            None => out.send_branch(Body::DirectBranch { icnt }, branch, time, sink),
            Some(btype) => {
                out.send_jump(config, (btype, icnt, uaddr), hist, branch, time, sink);
                self.reference = addr;
            }
        }
        self.after_message(config);
    }

    /// A sync message before the block at this address.
    pub(super) fn sync_here(
        &mut self,
        config: &Config,
        sync: Sync,
        addr: u64,
        time: u64,
        sink: &mut impl Sink,
    ) {
        let hist = self.take_hist(time, sink);
        let icnt = self.take_icnt();
        let faddr = addr >> 1;
        let body = if hist > 1 {
            // With B-TYPE = 0 it need not mean a jump.
            Body::IndirectBranchHistSync {
                sync,
                btype: Btype::Indirect,
                icnt,
                faddr,
                hist,
            }
        } else {
            Body::ProgTraceSync { sync, icnt, faddr }
        };
        self.out.send(body, time, sink);
        self.synced(config, sync, addr, time, sink);
    }

    /// After a sync message, unless the queue had no room for it.
    fn synced(&mut self, config: &Config, sync: Sync, addr: u64, time: u64, sink: &mut impl Sink) {
        if !self.out.is_dropping() {
            sink.synchronised(self.id, addr, self.earlier + self.halfwords);
        }
        self.reference = addr;
        self.owner_sync = config.context;
        let keeps = config.version == Version::Rc7 && config.markers_keep_stack;
        if !(keeps && sync.is_marker()) {
            self.stack.clear();
        }
        self.restart_period(time);
    }

    #[inline]
    fn take_hist(&mut self, time: u64, sink: &mut impl Sink) -> u64 {
        let out = &mut self.out;
        self.hist.take(&mut |body| out.send(body, time, sink))
    }

    /// Ownership messages before a block, where it changed or must be
    /// reported (7.1).
    pub(super) fn own(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let sync = core::mem::take(&mut self.owner_sync);
        let trap = core::mem::take(&mut self.owner_trap);
        let was = core::mem::replace(&mut self.context, b.context);
        let mode = core::mem::replace(&mut self.mode, b.mode);
        if !config.context {
            return;
        }
        let hypervisor = config.hcontext && (sync || was.hcontext() != b.context.hcontext());
        // 1.0: scontext follows hcontext whenever that is reported.
        let follows = hypervisor && config.version == Version::V1_0;
        let supervisor = sync || follows || was.scontext() != b.context.scontext();
        if hypervisor {
            self.send_owner(config, b, Owner::Hcontext(b.context.hcontext()), sink);
        }
        if supervisor {
            self.send_owner(config, b, Owner::Scontext(b.context.scontext()), sink);
        }
        if !(hypervisor || supervisor) && (trap || mode != b.mode) {
            self.send_owner(config, b, Owner::Mode, sink);
        }
    }

    fn send_owner(&mut self, config: &Config, b: &Ingress, owner: Owner, sink: &mut impl Sink) {
        let process = Process {
            mode: b.mode,
            owner,
        };
        let process = process.field();
        self.out.send(Body::Ownership { process }, b.time, sink);
        self.after_message(config);
    }

    /// ProgTraceCorrelation: the trace stops.
    pub(super) fn correlate(
        &mut self,
        config: &Config,
        evcode: Evcode,
        time: u64,
        sink: &mut impl Sink,
    ) {
        self.abandon(sink);
        let hist = self.take_hist(time, sink);
        let icnt = self.take_icnt();
        let hist = (config.mode == TraceMode::Htm).then_some(hist);
        let body = Body::ProgTraceCorrelation { evcode, icnt, hist };
        self.out.send(body, time, sink);
        self.due = None;
        self.owner_sync = false;
        self.owner_trap = false;
    }

    /// The next block will not come. A jump is reported by the count alone; a
    /// taken branch needs no address.
    pub(super) fn abandon(&mut self, sink: &mut impl Sink) {
        if self.pending == Pending::Direct {
            let icnt = self.take_icnt();
            let time = self.pending_time;
            self.out.send(Body::DirectBranch { icnt }, time, sink);
        }
        self.pending = Pending::Nothing;
    }

    /// The end as the reference encoder has it. A message that waits comes
    /// with the address of the last instruction.
    pub(super) fn end_as_reference(&mut self, config: &Config, sink: &mut impl Sink) {
        let evcode = config.last_event;
        let time = self.time;
        let waiting = self.pending != Pending::Nothing;
        // A register that the last instruction filled waits for the next one.
        let full = self.hist.just_filled() && self.branch_icnt == Some(self.icnt);
        self.resolve(config, self.pending_addr, None, sink);
        let told = waiting && self.icnt == 0;
        if !(told || full) && (self.icnt > 0 || !self.hist.is_empty()) {
            let hist = self.take_hist(time, sink);
            let icnt = self.take_icnt();
            let hist = (hist > 1).then_some(hist);
            let body = Body::ProgTraceCorrelation { evcode, icnt, hist };
            self.out.send(body, time, sink);
        }
        self.out.flush(sink);
        self.state = State::Stopped;
    }

    /// The first message of a stretch, and Error before it where trace was
    /// lost.
    pub(super) fn start(&mut self, config: &Config, b: &Ingress, sink: &mut impl Sink) {
        let lost = self.out.report_loss(sink);
        self.forget();
        let sync = if lost { Sync::OVERRUN } else { self.why };
        self.state = State::Running;
        self.sync_here(config, sync, b.iaddr, b.time, sink);
    }

    /// Forgets what has not been reported.
    pub(super) fn forget(&mut self) {
        self.earlier += core::mem::take(&mut self.icnt);
        self.hist.clear();
        self.pending = Pending::Nothing;
        self.due = None;
        self.stack.clear();
    }
}

/// A branch message with a full address.
fn sync_body(
    config: &Config,
    btype: Option<Btype>,
    sync: Sync,
    icnt: u64,
    addr: u64,
    hist: u64,
) -> Body<'static> {
    let faddr = addr >> 1;
    match btype {
        None => Body::DirectBranchSync { sync, icnt, faddr },
        Some(btype) if is_short(config, hist) => Body::IndirectBranchSync {
            sync,
            btype,
            icnt,
            faddr,
        },
        Some(btype) => Body::IndirectBranchHistSync {
            sync,
            btype,
            icnt,
            faddr,
            hist,
        },
    }
}
