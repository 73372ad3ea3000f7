//! The fast path for the simplest groups: begin, the items that an instruction
//! usually has, end. Everything else takes the general path, which reads the
//! group again from its start.

use crate::config::{Config, PcForm};
use crate::group::{Change, Data, Group, How, Insn, NewPc};
use crate::item::MAX_ITEM;
use crate::register::Register;

/// Bytes of the fields, looked up once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    pub(super) xlen: usize,
    pub(super) flen: usize,
    mlen: usize,
    pub(super) eaddr: usize,
    /// A group has a pc of the plain form.
    pub(super) new_pc: bool,
}

impl Widths {
    pub(super) fn of(config: &Config) -> Widths {
        Widths {
            xlen: config.xlen_bytes(),
            flen: config.flen.bits() as usize / 8,
            mlen: config.mlen.bytes(),
            eaddr: config.eaddr_bytes(),
            new_pc: config.pc == PcForm::New,
        }
    }
}

/// Reads the group whose begin is the first of `bytes` into `group`, which is
/// empty. Gives its length, without the begin of the next one if that is what
/// ends it. `None` where the bytes end too soon or there is anything else in
/// it than what is read here, or anything twice.
#[inline]
pub(super) fn read(bytes: &[u8], widths: &Widths, group: &mut Group) -> Option<usize> {
    let mut at = 1;
    loop {
        // An item, and the eight bytes of its field wherever that starts.
        let window = bytes.get(at..)?.first_chunk::<MAX_ITEM>()?;
        let [opcode, low, high, ..] = *window;
        at += match opcode {
            1 => return plain(group).then_some(at),
            2 => return plain(group).then_some(at + 1),
            3 => {
                let twice = group.pc.replace(NewPc::Increment).is_some();
                (!twice).then_some(1)?
            }
            4 => {
                let register = Register::new(u16::from_le_bytes([low, high]))?;
                let width = if register.is_float() {
                    widths.flen
                } else {
                    widths.xlen
                };
                let twice = group.changes.iter().any(|c| c.register == register);
                if twice || width == 0 {
                    return None;
                }
                let how = How::Full(field::<3>(window, width));
                group.changes.push(Change { register, how });
                3 + width
            }
            7 => additional(window, widths, group)?,
            16 => {
                let bits = u16::from_le_bytes([low, high]).into();
                let twice = group.insn.replace(Insn { bits, len: 2 }).is_some();
                (!twice && bits & 3 != 3).then_some(3)?
            }
            17 => {
                let bits = field::<1>(window, 4) as u32;
                let twice = group.insn.replace(Insn { bits, len: 4 }).is_some();
                (!twice).then_some(5)?
            }
            _ => return None,
        };
        group.items += 1;
    }
}

/// Additional state of loads, stores and jumps; the length of the item.
#[inline(always)]
fn additional(window: &[u8; MAX_ITEM], widths: &Widths, group: &mut Group) -> Option<usize> {
    let [_, identifier, ..] = *window;
    if identifier == 10 && widths.new_pc {
        let pc = field::<2>(window, widths.xlen);
        let twice = group.pc.replace(NewPc::To(pc)).is_some();
        return (!twice).then_some(2 + widths.xlen);
    }
    if group.data.is_empty() {
        group.data.push(Data::default());
    }
    // One access: more are not plain.
    let access = group.data.first_mut()?;
    match identifier {
        2 => {
            let paddr = field::<2>(window, widths.mlen);
            let twice = access.paddr.replace(paddr).is_some();
            (!twice).then_some(2 + widths.mlen)
        }
        3 => {
            let eaddr = field::<2>(window, widths.eaddr);
            let twice = access.eaddr.replace(eaddr).is_some();
            (!twice).then_some(2 + widths.eaddr)
        }
        4..=7 => {
            let size = identifier - 4;
            let data = field::<2>(window, 1 << size);
            let twice = access.store.replace((size, data)).is_some();
            (!twice).then_some(2 + (1 << size))
        }
        _ => None,
    }
}

/// What makes an instruction's group whole. More items than any instruction
/// has may be more than the limit.
#[inline(always)]
fn plain(group: &Group) -> bool {
    group.insn.is_some() && group.items < 64
}

/// The lowest `width` of eight little-endian bytes, 1 to 8.
#[inline(always)]
fn field<const AT: usize>(window: &[u8; MAX_ITEM], width: usize) -> u64 {
    const { assert!(AT + 8 <= MAX_ITEM) };
    let bytes = window.get(AT..).and_then(|rest| rest.first_chunk::<8>());
    let word = u64::from_le_bytes(bytes.copied().unwrap_or_default());
    word & (u64::MAX >> (64 - 8 * width as u32))
}
