//! Random layouts and packets for the tests.

use hartrace_testkit::Random;

use crate::packet::bits::mask;
use crate::{
    BranchMap, Context, DataSupport, Encapsulation, Form, Layout, MAX_PAYLOAD, NotifyBit, Packet,
    Padding, QualStatus, Report, Shortening, Start, Support, Trap, Version,
};

/// What the format needs random.
pub(crate) trait RandomPackets {
    /// A value of a field of so many bits: often small, as often negative.
    fn value(&mut self, width: u8) -> u64;
    /// A layout that packets of 31 bytes have room for.
    fn layout(&mut self) -> Layout;
    fn map(&mut self, least: u64) -> BranchMap;
    fn report(&mut self, layout: &Layout) -> Report;
    fn context(&mut self, layout: &Layout) -> Context;
    /// A packet such as the layout allows.
    fn packet(&mut self, layout: &Layout) -> Packet;
    fn trap(&mut self, layout: &Layout) -> Trap;
    fn support(&mut self, layout: &Layout) -> Support;
}

impl RandomPackets for Random {
    fn value(&mut self, width: u8) -> u64 {
        let random = self.draw() >> self.below(64);
        let sign = if self.flip() { u64::MAX } else { 0 };
        (random ^ sign) & mask(width.into())
    }

    fn layout(&mut self) -> Layout {
        loop {
            let version = self.one_of([Version::V1_1_1, Version::V2_0, Version::V2_05]);
            let (draft, standard) = (version.is_draft(), version.is_standard());
            let mut width = |least: u64, most: u64| (least + self.below(most - least + 1)) as u8;
            let (bpred_size, cache_size) = (width(0, 15), width(0, 15));
            let both = bpred_size > 0 && cache_size > 0;
            let layout = Layout {
                version,
                iaddress_width: width(8, 64),
                iaddress_lsb: width(0, 2),
                privilege_width: width(1, 4),
                context_width: width(0, 64),
                time_width: if draft { 0 } else { width(0, 64) },
                ecause_width: width(1, 16),
                f0s_width: width(both.into(), 2),
                bpred_size,
                cache_size,
                irdepth_width: width(0, 16),
                iret_ext: false,
                encoder_mode_width: width(0, 8),
                ioptions_width: width(0, 16),
                doptions_width: match width(0, 1) {
                    0 => None,
                    _ => Some(width(0, 16)),
                },
                implicit_exception: width(0, 1) == 0,
                exception_bit: None,
                shortening: Shortening::Packet,
                padding: Padding::Sign,
                notify_bit: NotifyBit::Address,
                interrupt_tval: !draft && width(0, 1) == 1,
            };
            let layout = match standard {
                true => Layout {
                    encoder_mode_width: 2,
                    ioptions_width: 25,
                    doptions_width: Some(5),
                    irdepth_width: 8,
                    iret_ext: true,
                    ..layout
                },
                false => layout,
            };
            if layout.longest() <= MAX_PAYLOAD * 8 {
                return layout;
            }
        }
    }

    fn map(&mut self, least: u64) -> BranchMap {
        let count = (least + self.below(32 - least)) as u8;
        let bits = self.value(count) as u32;
        BranchMap { bits, count }
    }

    fn report(&mut self, layout: &Layout) -> Report {
        Report {
            address: self.value(layout.address_width()),
            notify: self.below(4) == 0,
            updiscon: self.below(4) == 0,
            irreport: self.below(4) == 0,
            irdepth: self.value(layout.irdepth_width) as u16,
        }
    }

    fn context(&mut self, layout: &Layout) -> Context {
        Context {
            privilege: self.value(layout.privilege_width) as u8,
            time: self.value(layout.time_width()),
            context: self.value(layout.context_width),
        }
    }

    fn packet(&mut self, layout: &Layout) -> Packet {
        let Context {
            privilege,
            time,
            context,
        } = self.context(layout);
        match self.below(9) {
            0 if layout.bpred_size > 0 => Packet::BranchCount {
                branch_count: self.value(32) as u32,
                address: match self.flip() {
                    true => Some((self.flip(), self.report(layout))),
                    false => None,
                },
            },
            1 if layout.cache_size > 0 => Packet::JumpTarget {
                index: self.value(layout.cache_size) as u16,
                map: self.map(0),
                irreport: self.flip(),
                irdepth: self.value(layout.irdepth_width) as u16,
            },
            2 => Packet::Branches {
                map: BranchMap {
                    bits: self.value(31) as u32,
                    count: 31,
                },
                address: None,
            },
            3 | 4 => Packet::Branches {
                map: self.map(1),
                address: Some(self.report(layout)),
            },
            5 => Packet::Start(Start {
                branch: self.flip(),
                privilege,
                time,
                context,
                address: self.value(layout.address_width()),
            }),
            6 => Packet::Trap(self.trap(layout)),
            7 => Packet::Context(self.context(layout)),
            8 => Packet::Support(self.support(layout)),
            _ => Packet::Address(self.report(layout)),
        }
    }

    fn trap(&mut self, layout: &Layout) -> Trap {
        let draft = layout.version.is_draft();
        let Context {
            privilege,
            time,
            context,
        } = self.context(layout);
        let interrupt = self.flip();
        let thaddr = draft || self.flip();
        let address = self.value(layout.address_width());
        let tval = self.value(layout.iaddress_width);
        Trap {
            branch: self.flip(),
            privilege,
            time,
            context,
            ecause: self.value(layout.ecause_width) as u32,
            interrupt,
            thaddr,
            address: (!layout.implicit_exception || !thaddr).then_some(address),
            tval: layout.has_tval(interrupt).then_some(tval),
        }
    }

    fn support(&mut self, layout: &Layout) -> Support {
        Support {
            ienable: self.flip(),
            encoder_mode: self.value(layout.encoder_mode_width) as u8,
            qual_status: [
                QualStatus::NoChange,
                QualStatus::EndedRep,
                QualStatus::TraceLost,
                QualStatus::EndedNtr,
            ][self.below(4) as usize],
            ioptions: self.value(layout.ioptions_width) as u32,
            data: layout.doptions_width.map(|width| DataSupport {
                denable: self.flip(),
                dloss: self.flip(),
                doptions: self.value(width) as u16,
            }),
        }
    }
}

/// What the framing needs random.
pub(crate) trait RandomForms {
    /// An encapsulation whose packets start with their length and have no number.
    fn encapsulation(&mut self) -> Encapsulation;
}

impl RandomForms for Random {
    fn encapsulation(&mut self) -> Encapsulation {
        let form = self.one_of([Form::Reference, Form::Riscv, Form::Smi, Form::Atb]);
        let riscv = form == Form::Riscv;
        let mut any = |most: u64| self.below(most + 1) as u8;
        Encapsulation {
            src_bits: match form {
                Form::Riscv | Form::Smi => any(16),
                _ => 0,
            },
            time_bytes: match form {
                Form::Riscv => any(8),
                Form::Smi | Form::Atb => 2 * any(1),
                _ => 0,
            },
            type_bits: match form {
                Form::Riscv => any(8),
                Form::Atb => any(1),
                _ => 0,
            },
            src_id: any(3).into(),
            marks: riscv && any(3) == 0,
            ..Encapsulation::new(form)
        }
    }
}
