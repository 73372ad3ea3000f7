//! Which data accesses an instruction makes, as far as its encoding shows.

use hartrace_isa::{Inst, Isa, Op, Xlen, decode};

use crate::{Access, AccessKind};

/// What an instruction does to memory or to a CSR when it retires.
///
/// ```
/// use hartrace_flow::{AccessKind, Touch};
/// use hartrace_isa::Isa;
///
/// // sd a0, 0(a1)
/// let touch = Touch::of(0x00a5_b023, Isa::RV64GC);
/// assert_eq!(touch, Touch::Accesses { kind: AccessKind::Store, size: 3, count: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Nothing, or nothing that is known.
    Nothing,
    /// Accesses of one kind and size: one, for `cm.push` and its family one for each
    /// register, for `cbo.zero` one for each doubleword of a block, which is taken to have
    /// 64 bytes.
    Accesses {
        /// Their kind.
        kind: AccessKind,
        /// log2 of their size in bytes.
        size: u8,
        /// How many.
        count: u8,
    },
    /// A store-conditional: a [`AccessKind::Store`] or a
    /// [`AccessKind::ConditionalStoreFailure`].
    Conditional {
        /// log2 of its size in bytes.
        size: u8,
    },
    /// Vector loads or stores. How many they are depends on `vl`, the mask and how
    /// the hart groups elements.
    Vector {
        /// [`AccessKind::Load`] or [`AccessKind::Store`].
        kind: AccessKind,
    },
    /// A compare-and-swap (`amocas`): [`AccessKind::AtomicSwap`] if it stores, otherwise
    /// [`AccessKind::Load`]. All its accesses are of one kind.
    Swap {
        /// log2 of their size in bytes.
        size: u8,
        /// One, or two for the 16 bytes of `amocas.q`.
        count: u8,
    },
}

impl Touch {
    /// How many accesses it is; for those of vectors, of which the number is not known, 1.
    #[must_use]
    pub const fn count(self) -> u8 {
        match self {
            Touch::Nothing => 0,
            Touch::Accesses { count, .. } | Touch::Swap { count, .. } => count,
            Touch::Conditional { .. } | Touch::Vector { .. } => 1,
        }
    }

    /// Of an instruction.
    #[must_use]
    pub fn of(bits: u32, isa: Isa) -> Touch {
        let inst = decode(bits, isa);
        let one = |kind, size| Touch::Accesses {
            kind,
            size,
            count: 1,
        };
        match inst.op {
            Op::Lb | Op::Lbu | Op::HlvB | Op::HlvBu => one(AccessKind::Load, 0),
            Op::Lh | Op::Lhu | Op::Flh | Op::HlvH | Op::HlvHu | Op::HlvxHu => {
                one(AccessKind::Load, 1)
            }
            Op::Lw | Op::Lwu | Op::Flw | Op::LrW | Op::HlvW | Op::HlvWu | Op::HlvxWu => {
                one(AccessKind::Load, 2)
            }
            Op::Ld | Op::Fld | Op::LrD | Op::HlvD => one(AccessKind::Load, 3),
            Op::Sb | Op::HsvB => one(AccessKind::Store, 0),
            Op::Sh | Op::Fsh | Op::HsvH => one(AccessKind::Store, 1),
            Op::Sw | Op::Fsw | Op::HsvW => one(AccessKind::Store, 2),
            Op::Sd | Op::Fsd | Op::HsvD => one(AccessKind::Store, 3),
            Op::ScW => Touch::Conditional { size: 2 },
            Op::ScD => Touch::Conditional { size: 3 },
            Op::Csrrw | Op::Csrrwi => one(AccessKind::CsrReadWrite, register(isa)),
            Op::Csrrs | Op::Csrrsi => one(AccessKind::CsrReadSet, register(isa)),
            Op::Csrrc | Op::Csrrci => one(AccessKind::CsrReadClear, register(isa)),
            Op::AmocasB => Touch::Swap { size: 0, count: 1 },
            Op::AmocasH => Touch::Swap { size: 1, count: 1 },
            Op::AmocasW => Touch::Swap { size: 2, count: 1 },
            Op::AmocasD => Touch::Swap { size: 3, count: 1 },
            Op::AmocasQ => Touch::Swap { size: 3, count: 2 },
            Op::CboZero => Touch::Accesses {
                kind: AccessKind::Store,
                size: 3,
                count: 8,
            },
            Op::CmPush => several(AccessKind::Store, inst, isa),
            Op::CmPop | Op::CmPopret | Op::CmPopretz => several(AccessKind::Load, inst, isa),
            op if op.is_vector_memory() => Touch::Vector {
                // LOAD-FP or STORE-FP.
                kind: match bits & 0x20 {
                    0 => AccessKind::Load,
                    _ => AccessKind::Store,
                },
            },
            op => match atomic(op) {
                Some((kind, size)) => one(kind, size),
                None => Touch::Nothing,
            },
        }
    }
}

/// log2 of the bytes of an integer register.
const fn register(isa: Isa) -> u8 {
    match isa.xlen() {
        Xlen::Rv32 => 2,
        Xlen::Rv64 => 3,
    }
}

/// The registers of a list, each with an access of its own.
fn several(kind: AccessKind, inst: Inst, isa: Isa) -> Touch {
    Touch::Accesses {
        kind,
        size: register(isa),
        count: match inst.rlist() {
            15 => 13,
            list => list.saturating_sub(3),
        },
    }
}

/// The kind and size of an atomic memory operation.
fn atomic(op: Op) -> Option<(AccessKind, u8)> {
    use AccessKind as Kind;
    Some(match op {
        Op::AmoswapB => (Kind::AtomicSwap, 0),
        Op::AmoswapH => (Kind::AtomicSwap, 1),
        Op::AmoswapW => (Kind::AtomicSwap, 2),
        Op::AmoswapD => (Kind::AtomicSwap, 3),
        Op::AmoaddB => (Kind::AtomicAdd, 0),
        Op::AmoaddH => (Kind::AtomicAdd, 1),
        Op::AmoaddW => (Kind::AtomicAdd, 2),
        Op::AmoaddD => (Kind::AtomicAdd, 3),
        Op::AmoandB => (Kind::AtomicAnd, 0),
        Op::AmoandH => (Kind::AtomicAnd, 1),
        Op::AmoandW => (Kind::AtomicAnd, 2),
        Op::AmoandD => (Kind::AtomicAnd, 3),
        Op::AmoorB => (Kind::AtomicOr, 0),
        Op::AmoorH => (Kind::AtomicOr, 1),
        Op::AmoorW => (Kind::AtomicOr, 2),
        Op::AmoorD => (Kind::AtomicOr, 3),
        Op::AmoxorB => (Kind::AtomicXor, 0),
        Op::AmoxorH => (Kind::AtomicXor, 1),
        Op::AmoxorW => (Kind::AtomicXor, 2),
        Op::AmoxorD => (Kind::AtomicXor, 3),
        Op::AmomaxB | Op::AmomaxuB => (Kind::AtomicMax, 0),
        Op::AmomaxH | Op::AmomaxuH => (Kind::AtomicMax, 1),
        Op::AmomaxW | Op::AmomaxuW => (Kind::AtomicMax, 2),
        Op::AmomaxD | Op::AmomaxuD => (Kind::AtomicMax, 3),
        Op::AmominB | Op::AmominuB => (Kind::AtomicMin, 0),
        Op::AmominH | Op::AmominuH => (Kind::AtomicMin, 1),
        Op::AmominW | Op::AmominuW => (Kind::AtomicMin, 2),
        Op::AmominD | Op::AmominuD => (Kind::AtomicMin, 3),
        _ => return None,
    })
}

/// What a trace reports of data accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// By `dtype` code: bit `n` for accesses of 2^n bytes.
    pub kinds: [u8; 16],
    /// Addresses are reported. Numbers of CSRs always are.
    pub addresses: bool,
    /// Values are reported.
    pub values: bool,
    /// Bits of an address that are reported; the upper ones repeat the highest.
    pub address_width: u8,
    /// Width of addresses in the program.
    pub xlen: Xlen,
    /// A store-conditional that fails is reported.
    pub failures: bool,
    /// A compare-and-swap that fails is reported as such
    /// ([`AccessKind::CompareSwapFailure`]), not as a load.
    pub failed_swaps: bool,
    /// Each of these accesses is reported, so that they can be assigned to
    /// instructions by their order.
    pub each: bool,
}

impl Reported {
    /// Whether accesses of this kind and size are reported.
    #[must_use]
    #[inline]
    pub fn has(&self, kind: AccessKind, size: u8) -> bool {
        let sizes = self.kinds.get(usize::from(kind.code()));
        sizes.is_some_and(|sizes| size < 8 && sizes >> size & 1 != 0)
    }

    /// An access as such a trace reports it, and whether with its address; `None` if
    /// it does not.
    #[must_use]
    pub fn view(&self, access: &Access) -> Option<(Access, bool)> {
        let failed = access.failed_swap().filter(|_| self.failed_swaps);
        let access = failed.as_ref().unwrap_or(access);
        if !self.has(access.kind, access.size) {
            return None;
        }
        let csr = access.kind.is_csr();
        let unused = 64 - u32::from(self.address_width.clamp(1, 64));
        let extended = ((access.addr << unused) as i64 >> unused) as u64;
        let has_address = self.addresses || csr;
        let read_only = csr && access.addr >> 10 & 3 == 3;
        let paired = access.kind.code() >= 4 && !access.kind.is_failure() && !read_only;
        let shown = Access {
            addr: match (csr, has_address) {
                (true, _) => access.addr,
                (false, true) => self.xlen.wrap(extended),
                (false, false) => 0,
            },
            paddr: None,
            data: access.data.filter(|_| self.values),
            operand: access.operand.filter(|_| self.values && paired),
            ..*access
        };
        Some((shown, has_address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_isa::Ext;

    fn loads(size: u8) -> Touch {
        Touch::Accesses {
            kind: AccessKind::Load,
            size,
            count: 1,
        }
    }

    #[test]
    fn compressed_instructions_are_what_they_stand_for() {
        // c.lw a0, 0(a1); c.ld, c.fld, c.ldsp.
        assert_eq!(Touch::of(0x4188, Isa::RV64GC), loads(2));
        assert_eq!(Touch::of(0x6188, Isa::RV64GC), loads(3));
        assert_eq!(Touch::of(0x2188, Isa::RV64GC), loads(3));
        assert_eq!(Touch::of(0x6502, Isa::RV64GC), loads(3));
        assert_eq!(Touch::of(0x0001, Isa::RV64GC), Touch::Nothing);
    }

    #[test]
    fn push_and_pop_have_an_access_for_each_register() {
        let isa = Isa::parse("rv32ima_zca_zcmp").unwrap();
        let touch = |kind, count| Touch::Accesses {
            kind,
            size: 2,
            count,
        };
        // cm.push {ra}, -16; cm.push {ra, s0-s11}, -64; cm.popret {ra, s0}, 16
        assert_eq!(Touch::of(0xb842, isa), touch(AccessKind::Store, 1));
        assert_eq!(Touch::of(0xb8f2, isa), touch(AccessKind::Store, 13));
        assert_eq!(Touch::of(0xbe52, isa), touch(AccessKind::Load, 2));
    }

    #[test]
    fn vector_loads_and_stores_are_not_counted() {
        let isa = Isa::parse("rv64gcv").unwrap();
        let touch = |kind| Touch::Vector { kind };
        // vle32.v v8,(a1); vlse64.v v8,(a1),a2; vl8r.v v8,(a1); vsoxei8.v v8,(a1),v2.
        for load in [0x0205_e407, 0x0ac5_f407, 0xe285_8407] {
            assert_eq!(Touch::of(load, isa), touch(AccessKind::Load));
        }
        assert_eq!(Touch::of(0x0e25_8427, isa), touch(AccessKind::Store));
        // fld fa0,0(a1); vadd.vv v1,v2,v3; and where there are no vectors.
        assert_eq!(Touch::of(0x0005_b507, isa), loads(3));
        assert_eq!(Touch::of(0x0221_80d7, isa), Touch::Nothing);
        assert_eq!(Touch::of(0x0205_e407, Isa::RV64GC), Touch::Nothing);
    }

    #[test]
    fn compare_and_swap_is_one_access_and_amocas_q_two() {
        let isa = Isa::RV64GC.with(Ext::Zacas).with(Ext::Zabha);
        // amocas.b, .w, .d and .q a0, a2, (a1).
        for (funct3, size, count) in [(0, 0, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2)] {
            let touch = Touch::of(0x28c5_852f & !0x7000 | funct3 << 12, isa);
            assert_eq!(touch, Touch::Swap { size, count });
            assert_eq!(touch.count(), count);
        }
    }

    #[test]
    fn cbo_zero_stores_a_block_in_doublewords() {
        let isa = Isa::RV64GC.with(Ext::Zicboz);
        let stores = Touch::Accesses {
            kind: AccessKind::Store,
            size: 3,
            count: 8,
        };
        assert_eq!(Touch::of(0x0045_a00f, isa), stores);
        assert_eq!(Touch::of(0x0045_a00f, Isa::RV64GC), Touch::Nothing);
    }

    #[test]
    fn atomics_and_csrs() {
        // amoadd.w a0, a1, (a2); sc.d a0, a1, (a2); lr.w a0, (a1); csrrw a0, mscratch, a1.
        let add = Touch::Accesses {
            kind: AccessKind::AtomicAdd,
            size: 2,
            count: 1,
        };
        assert_eq!(Touch::of(0x00b6_252f, Isa::RV64GC), add);
        let conditional = Touch::Conditional { size: 3 };
        assert_eq!(Touch::of(0x18b6_352f, Isa::RV64GC), conditional);
        assert_eq!(Touch::of(0x1005_a52f, Isa::RV64GC), loads(2));
        let csr = Touch::Accesses {
            kind: AccessKind::CsrReadWrite,
            size: 3,
            count: 1,
        };
        assert_eq!(Touch::of(0x3405_9573, Isa::RV64GC), csr);
    }
}
