//! The data half of the port: from effects to the signals of table 4.9.

use super::kinds::Kind;
use super::port::Hart;
use super::{DataIngress, DataPort, IngressSink, PortConfig};
use crate::{Access, AccessKind, Effects, HartId, Insn};

/// Data accesses of a block, at most: the groups of signals that a port has (4.4).
const MOST: usize = 8;

/// `lresp` of a load that succeeded.
const OKAY: u8 = 2;

impl Hart {
    /// An instruction and its accesses.
    pub(super) fn with_data(
        &mut self,
        config: &PortConfig,
        kind: Kind,
        id: HartId,
        (insn, effects): (&Insn, &Effects),
        sink: &mut impl IngressSink,
    ) {
        let accesses = effects.accesses.iter().chain(&effects.csr_access);
        self.with_accesses(config, kind, id, (insn, accesses), sink);
    }

    /// The same of accesses in this order.
    pub(super) fn with_accesses<'e>(
        &mut self,
        config: &PortConfig,
        kind: Kind,
        id: HartId,
        (insn, accesses): (&Insn, impl Iterator<Item = &'e Access>),
        sink: &mut impl IngressSink,
    ) {
        self.loads.insns += 1;
        self.respond(id, self.loads.insns, sink);
        let mut accesses = accesses.peekable();
        if accesses.peek().is_none() {
            self.insn(config, kind, id, insn, sink);
        }
        let mut several = false;
        while let Some(access) = accesses.next() {
            several |= accesses.peek().is_some();
            match accesses.peek() {
                Some(_) => self.repeat(config, kind, id, insn, sink),
                None => self.insn(config, kind, id, insn, sink),
            }
            self.access(config, id, insn.pc, access, several, sink);
        }
    }

    /// Shows the responses that are due after so many instructions.
    pub(super) fn respond(&mut self, id: HartId, insns: u64, sink: &mut impl IngressSink) {
        while let Some(&(due, response)) = self.loads.responses.front()
            && due < insns
        {
            self.loads.responses.pop_front();
            self.show_data(id, &response, sink);
        }
    }

    /// Shows a cycle of the data interface, after the block it belongs to.
    fn show_data(&mut self, id: HartId, data: &DataIngress, sink: &mut impl IngressSink) {
        if self.open.is_none() {
            return sink.data(id, data);
        }
        self.accesses.push(*data);
        if self.accesses.len() >= MOST {
            self.close(id, sink);
        }
    }

    #[inline]
    pub(super) fn access(
        &mut self,
        config: &PortConfig,
        id: HartId,
        pc: u64,
        access: &Access,
        several: bool,
        sink: &mut impl IngressSink,
    ) {
        let failed = access.failed_swap().filter(|_| config.multiple);
        let access = failed.as_ref().unwrap_or(access);
        let mut request = DataIngress::unified(access, pc);
        if several && config.multiple && matches!(access.kind, AccessKind::Load | AccessKind::Store)
        {
            request.dtype |= DataIngress::MULTIPLE;
        }
        match config.data {
            DataPort::Split { ids, latency } => {
                self.split(id, access, request, (ids, latency), sink);
            }
            DataPort::Unified | DataPort::None => self.show_data(id, &request, sink),
        }
    }

    /// An access in its split form; `request` is its unified one.
    fn split(
        &mut self,
        id: HartId,
        access: &Access,
        request: DataIngress,
        (ids, latency): (u16, u8),
        sink: &mut impl IngressSink,
    ) {
        let value = access.data.unwrap_or(0);
        let read = match access.kind {
            AccessKind::Load => value,
            _ => access.operand.unwrap_or(0),
        };
        let stores = access.kind != AccessKind::Load;
        let reads =
            access.kind != AccessKind::Store && !access.kind.is_failure() && !access.kind.is_csr();
        let mut lrid = 0;
        if reads {
            // An id must not be in use twice.
            if self.loads.responses.len() >= usize::from(ids.max(1)) {
                let oldest = self.loads.responses.front().map_or(0, |(due, _)| *due);
                self.respond(id, oldest + 1, sink);
            }
            lrid = self.loads.next;
            self.loads.next = (lrid + 1) % ids.max(1);
            let response = DataIngress {
                lresp: OKAY,
                lid: lrid,
                ldata: read,
                ..DataIngress::default()
            };
            let due = self.loads.insns + u64::from(latency);
            self.loads.responses.push_back((due, response));
        }
        let request = DataIngress {
            // CSRs are shown as a whole.
            data: if access.kind.is_csr() {
                request.data
            } else {
                0
            },
            sdata: if stores { value } else { 0 },
            lrid,
            ..request
        };
        self.show_data(id, &request, sink);
    }
}
