//! The RISC-V Formal Interface: an entry for each instruction that retires.

use super::edge::{At, Fault, Show, Shown};
use super::fields::Rvfi;
use super::find::{Bits, Lane, Plan};
use hartrace_flow::{Cause, Mode, RegId};
use hartrace_isa::{MRET, SRET, Xlen, csr};
use hartrace_logs::{Entry, EntryAccess, EntryTrap, LineErrorKind, access_size};
use hartrace_wave::WaveError;

/// The state of the port between edges.
pub(super) struct RvfiPort {
    entry: Entry,
    /// The number that the next retirement has, if one has come.
    order: Option<u64>,
    /// `valid` was 0 or 1 at some edge: before, a simulation has only begun.
    known: bool,
    /// Whether the port shows everything that instructions change.
    complete: bool,
    /// The lanes that retire at an edge, by their order.
    retired: Vec<(u64, usize)>,
    /// By lane: where no CSR is written, as a part of the file and the last number in it.
    idle: Vec<(u64, u64)>,
}

impl RvfiPort {
    pub(super) fn new(plan: &Plan) -> RvfiPort {
        let all = [Rvfi::RdAddr, Rvfi::RdWdata, Rvfi::MemWmask, Rvfi::MemWdata];
        RvfiPort {
            entry: Entry::default(),
            order: None,
            known: false,
            complete: all.into_iter().all(|field| plan.has(field as usize)),
            retired: Vec::new(),
            idle: vec![(u64::MAX, 0); plan.lanes.len()],
        }
    }

    /// The hart starts again.
    pub(super) fn restart(&mut self) {
        self.order = None;
    }

    pub(super) fn edge(
        &mut self,
        at: &mut At<'_, '_>,
        show: &mut Show<'_>,
    ) -> Result<(), WaveError> {
        self.retired.clear();
        let plan = at.plan;
        for (number, lane) in plan.lanes.iter().enumerate() {
            match self.valid(at, lane) {
                Ok(None) => {}
                Ok(Some(order)) => self.retired.push((order, number)),
                Err(Fault::Wave(error)) => return Err(error),
                Err(Fault::Line(_)) if !self.known => return Ok(()),
                Err(Fault::Line(error)) => {
                    show(Shown::Damaged(error));
                    show(Shown::Lost);
                }
            }
        }
        self.known = true;
        if self.retired.len() > 1 && plan.has(Rvfi::Order as usize) {
            self.retired.sort_unstable();
        }
        for at_lane in 0..self.retired.len() {
            let Some((order, number)) = self.retired.get(at_lane).copied() else {
                continue;
            };
            let Some(lane) = plan.lanes.get(number) else {
                continue;
            };
            self.follow(at, lane, order, show);
            match self.fill(at, (lane, number), show) {
                Ok(()) => show(Shown::Entry(&self.entry)),
                Err(Fault::Wave(error)) => return Err(error),
                Err(Fault::Line(error)) => {
                    show(Shown::Damaged(error));
                    show(Shown::Lost);
                }
            }
        }
        Ok(())
    }

    /// The order of the instruction that a lane retires; `None` if there is none.
    #[inline]
    fn valid(&self, at: &mut At<'_, '_>, lane: &Lane) -> Result<Option<u64>, Fault> {
        if at.get(lane.field(Rvfi::Valid))? == Some(0) {
            return Ok(None);
        }
        Ok(Some(at.get(lane.field(Rvfi::Order))?.unwrap_or(0)))
    }

    /// The numbers of retirements follow each other.
    #[inline]
    fn follow(&mut self, at: &At<'_, '_>, lane: &Lane, found: u64, show: &mut Show<'_>) {
        let Some(bits) = lane.field(Rvfi::Order) else {
            return;
        };
        let expected = self.order.replace(found.wrapping_add(1));
        if let Some(expected) = expected.filter(|expected| *expected != found)
            && let Fault::Line(error) = at.fault(bits, LineErrorKind::Order { expected, found })
        {
            show(Shown::Damaged(error));
            show(Shown::Lost);
        }
    }

    /// Fills the entry with what a lane shows.
    fn fill(
        &mut self,
        at: &mut At<'_, '_>,
        (lane, number): (&Lane, usize),
        show: &mut Show<'_>,
    ) -> Result<(), Fault> {
        let RvfiPort {
            entry,
            complete,
            idle,
            ..
        } = self;
        entry.clear();
        entry.time = at.sample.time();
        entry.pc = at.get(lane.field(Rvfi::PcRdata))?.unwrap_or(0);
        entry.bits = at.get(lane.field(Rvfi::Insn))?.map(|bits| bits as u32);
        entry.xlen = Some(match at.get(lane.field(Rvfi::Ixl))? {
            Some(1) => Xlen::Rv32,
            Some(2) => Xlen::Rv64,
            _ => at.plan.xlen,
        });
        if let Some(bits) = lane.field(Rvfi::Mode) {
            let code = at.get(Some(bits))?.unwrap_or(0);
            let mode = u8::try_from(code).ok().and_then(Mode::from_code);
            entry.mode =
                Some(mode.ok_or_else(|| at.fault(bits, LineErrorKind::SignalValue(code)))?);
        }
        // Wider ones say more in their other bits.
        let trapped = at
            .get(lane.field(Rvfi::Trap))?
            .is_some_and(|trap| trap & 1 == 1);
        let handler = at
            .get(lane.field(Rvfi::Intr))?
            .is_some_and(|intr| intr & 1 == 1);
        if trapped {
            entry.trap = Some(EntryTrap {
                cause: Cause::Exception(cause(at, lane)?),
                tval: None,
            });
            return Ok(());
        }
        entry.next = at.get(lane.field(Rvfi::PcWdata))?;
        // Some cores show the address after a return from a trap, wherever that leads.
        let is_return = matches!(entry.bits, Some(MRET | SRET));
        entry.next = entry
            .next
            .filter(|next| !is_return || *next != entry.pc.wrapping_add(4));
        if handler {
            entry.handler = Some(Cause::Interrupt(None));
        }
        registers(entry, at, lane, show)?;
        memory(entry, at, lane, show)?;
        let (part, now) = at.sample.position();
        if let Some(idle) = idle.get_mut(number)
            && (idle.0 != part || idle.1 < now)
        {
            let until = csrs(entry, at, lane, show)?;
            *idle = until.map_or((u64::MAX, 0), |until| (part, until));
        }
        // Writes of other CSRs are not shown.
        let system = entry.bits.is_some_and(|bits| bits & 0x7f == 0x73);
        entry.incomplete |= !*complete || system;
        Ok(())
    }
}

/// The cause of an exception, where the port shows it: as a signal of its own, or as what
/// is written to `mcause`.
fn cause(at: &mut At<'_, '_>, lane: &Lane) -> Result<Option<u32>, Fault> {
    if let Some(cause) = at.get(lane.field(Rvfi::Cause))? {
        return Ok(u32::try_from(cause).ok());
    }
    for csr in &lane.csrs {
        let [_, wmask, _, wdata] = csr.parts;
        if matches!(csr.number, csr::MCAUSE | csr::SCAUSE) && wdata.is_some() {
            let mask = at.get(wmask)?.unwrap_or(0);
            if mask != 0 {
                return Ok(at
                    .masked(wdata, mask)?
                    .and_then(|cause| u32::try_from(cause).ok()));
            }
        }
    }
    Ok(None)
}

/// The bits under a mask of a value that an instruction writes. The instruction has retired,
/// whatever it writes: bits that are unknown are reported, and count as 0, which is what
/// registers of the built-in hart start with.
fn written(
    at: &mut At<'_, '_>,
    bits: Option<Bits>,
    mask: u64,
    show: &mut Show<'_>,
) -> Result<Option<u64>, Fault> {
    match at.masked(bits, mask) {
        Err(Fault::Line(error)) => {
            show(Shown::Damaged(error));
            at.known(bits, mask)
        }
        value => value,
    }
}

fn registers(
    entry: &mut Entry,
    at: &mut At<'_, '_>,
    lane: &Lane,
    show: &mut Show<'_>,
) -> Result<(), Fault> {
    let number = at.get(lane.field(Rvfi::RdAddr))?.unwrap_or(0);
    if number != 0 {
        let value = lane.field(Rvfi::RdWdata);
        if let Some(value) = written(at, value, u64::MAX, show)? {
            entry.reg(RegId::X(number as u8 & 31), value);
        }
    }
    let is_written = match lane.field(Rvfi::FrdWvalid) {
        Some(bits) => at.get(Some(bits))? != Some(0),
        // f0 is a register like any other, so a number alone says nothing.
        None => false,
    };
    if is_written && let Some(number) = at.get(lane.field(Rvfi::FrdAddr))? {
        let value = lane.field(Rvfi::FrdWdata);
        if let Some(value) = written(at, value, u64::MAX, show)? {
            entry.reg(RegId::F(number as u8 & 31), value);
        }
    }
    Ok(())
}

/// Accesses: a mask has a bit for each byte, counted from the address.
fn memory(
    entry: &mut Entry,
    at: &mut At<'_, '_>,
    lane: &Lane,
    show: &mut Show<'_>,
) -> Result<(), Fault> {
    let address = lane.field(Rvfi::MemAddr);
    let narrow = entry.xlen == Some(Xlen::Rv32);
    let size = entry.bits.map(|bits| access_size(bits, narrow));
    // Some cores read whole words, whatever the instruction takes of them. Then its address
    // is not known; what it loaded is in its register.
    if let Some(mask) = at.get(lane.field(Rvfi::MemRmask))?
        && mask != 0
        && size.is_none_or(|size| mask.count_ones() == 1u32.checked_shl(size.into()).unwrap_or(0))
        && let Some(addr) = at.get(address)?
    {
        entry.access(EntryAccess {
            store: false,
            addr: addr.wrapping_add(mask.trailing_zeros().into()),
            ..EntryAccess::default()
        });
    }
    if let Some(mask) = at.get(lane.field(Rvfi::MemWmask))?
        && mask != 0
        && let Some(addr) = at.get(address)?
    {
        let offset = mask.trailing_zeros();
        let bits = (0..8).fold(0, |bits, byte| {
            bits | ((mask >> byte & 1) * (0xff << (8 * byte)))
        });
        let data = written(at, lane.field(Rvfi::MemWdata), bits, show)?;
        entry.access(EntryAccess {
            store: true,
            addr: addr.wrapping_add(offset.into()),
            paddr: None,
            size: Some(mask.count_ones().next_power_of_two().ilog2() as u8),
            data: data.map(|data| data.checked_shr(8 * offset).unwrap_or(0)),
        });
    }
    Ok(())
}

/// CSRs that are written: the bits under the mask, and the others as they were read. If there is
/// none: until where that is so.
fn csrs(
    entry: &mut Entry,
    at: &mut At<'_, '_>,
    lane: &Lane,
    show: &mut Show<'_>,
) -> Result<Option<u64>, Fault> {
    let mut until = Some(u64::MAX);
    for csr in &lane.csrs {
        let [_, wmask, rdata, wdata] = csr.parts;
        let mask = at.get(wmask)?.unwrap_or(0);
        if mask == 0 {
            let keeps = wmask.map_or(Some(u64::MAX), |bits| at.sample.keeps_until(bits.watched));
            until = until.zip(keeps).map(|(until, keeps)| until.min(keeps));
            continue;
        }
        until = None;
        let Some(value) = written(at, wdata, mask, show)? else {
            continue;
        };
        // The others need not be known.
        let kept = at.known(rdata, !mask)?.unwrap_or(0);
        entry.csr(csr.number, value | kept);
    }
    Ok(until)
}

impl Lane {
    /// The bits of a field of RVFI.
    #[inline]
    pub(super) fn field(&self, field: Rvfi) -> Option<Bits> {
        self.fields.get(field as usize).copied().flatten()
    }
}
