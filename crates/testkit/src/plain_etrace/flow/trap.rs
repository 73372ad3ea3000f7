//! Traps: packets of format 3, subformat 1.

use super::walk::Left;
use super::{At, Decoder, Item, Packet, Trap, Version};

impl Decoder<'_> {
    /// 6.3: format 3, subformat 1.
    pub(super) fn trap(&mut self, packet: &Packet) -> Result<(), String> {
        let draft = self.settings.version == Version::Draft;
        let interrupt = packet.get("interrupt") == 1;
        let cause = packet.get("ecause");
        let privilege = packet.get("privilege");
        let thaddr = draft || packet.get("thaddr") == 1;
        let start = matches!(self.at, At::Nowhere | At::Trap { start: true, .. });
        if self.at == At::Nowhere {
            self.items.push(Item::Start);
        }
        let mut epc = self.trap_address(packet, interrupt, thaddr)?;
        let mut tval = packet.fields.get("tval").map(|&tval| self.canonical(tval));
        if draft {
            let tvalepc = packet.get("tvalepc");
            match cause == 2 && !interrupt {
                true => epc = Some(self.canonical(tvalepc)),
                false => tval = Some(self.canonical(tvalepc)),
            }
        }
        let mut trap = Trap {
            interrupt,
            cause,
            tval,
            epc,
            handler: None,
        };
        if !thaddr {
            self.items.push(Item::Trap(trap));
            return Ok(());
        }
        if matches!(
            self.at,
            At::Trap {
                after_jump: true,
                ..
            }
        ) {
            return Err("thaddr is 1 where a packet of subformat 0 has the handler".to_owned());
        }
        let key = (privilege, interrupt, cause);
        let handler = match packet.has("address") {
            true => self.full_address(packet),
            false => self.implicit_handler(key)?,
        };
        self.handlers.insert(key, handler);
        trap.handler = Some(handler);
        self.items.push(Item::Trap(trap));
        let branch = self.insn(handler)?.is_branch();
        let taken = packet.get("branch") == 0;
        if taken && !branch {
            return Err("`branch` is 0, and the handler starts with no branch".to_owned());
        }
        self.enter(handler, branch, taken);
        // A difference is one to "the instruction reported in the previous packet that
        // contained an address" (3.2.1). That is this instruction even where the
        // packet leaves its address out: the pseudo code sets `address` here.
        self.synchronized(handler, privilege, start);
        Ok(())
    }

    /// Where a trap was taken, as far as it is known. Leaves the instruction
    /// before it.
    fn trap_address(
        &mut self,
        packet: &Packet,
        interrupt: bool,
        thaddr: bool,
    ) -> Result<Option<u64>, String> {
        let address = (!thaddr && !interrupt).then(|| self.full_address(packet));
        let start = matches!(self.at, At::Nowhere | At::Trap { start: true, .. });
        let (epc, after_jump) = match self.at {
            // "An exception occuring on the 1st traced instruction is treated in
            // the same way", as one at the target of a jump.
            At::Nowhere => (address, !interrupt),
            // The field is undefined for a trap right after another one, though the
            // pseudo code of 2.05 reads it (`poss_next_epc`).
            At::Trap { after_jump, .. } => (None, after_jump),
            At::Instruction => match self.leave(None)? {
                Left::To(pc) => (Some(pc), false),
                Left::Stays => (Some(self.pc), false),
                Left::Unknown
                    if thaddr && !interrupt && self.settings.version != Version::Draft =>
                {
                    return Err("an exception at the target of a jump has no address".to_owned());
                }
                Left::Unknown | Left::Jumped(_) => (address, !interrupt),
            },
        };
        if !thaddr {
            self.at = At::Trap { after_jump, start };
        }
        Ok(epc)
    }

    /// 3.2.3: the handler of a trap whose packet has no address.
    fn implicit_handler(&self, key: (u64, bool, u64)) -> Result<u64, String> {
        let (privilege, interrupt, cause) = key;
        let [mtvec, stvec, vstvec] = self.settings.vectors;
        let vector = match privilege {
            3 => mtvec,
            1 => stvec,
            6 => vstvec,
            _ => None,
        };
        let vectored = |tvec: u64| {
            let base = tvec & !3;
            match tvec & 3 == 1 && interrupt {
                true => self.wrap(base.wrapping_add(4 * cause)),
                false => base,
            }
        };
        let known = vector.map(vectored);
        let known = known.or_else(|| self.handlers.get(&key).copied());
        known.ok_or_else(|| format!("the handler of cause {cause} is not known"))
    }
}
