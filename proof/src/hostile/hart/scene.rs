//! Machines in arbitrary states: memory at odd addresses, random code, page
//! tables, protection and registers.

use hartrace_flow::{Model, Place, RegId};
use hartrace_hart::host::Host;
use hartrace_hart::{Config, Costs, Machine, Platform, Program, Region, Segment};
use hartrace_isa::{Isa, Xlen};

use super::code;
use super::dice::Dice;

/// Pages of the first region that hold page tables.
const TABLES: u64 = 3;

/// The size of the region with code and page tables.
const SIZE: u64 = 0x1_0000;

const PAGE: u64 = 4096;

/// Where handlers are in the code that go on after what has trapped.
const HANDLERS: u64 = 0x300;

/// `csrr x31, mepc; addi x31, x31, 4; csrw mepc, x31; mret`, and the same for
/// the supervisor.
const MACHINE: [u32; 4] = [0x3410_2ff3, 0x004f_8f93, 0x341f_9073, 0x3020_0073];
const SUPERVISOR: [u32; 4] = [0x1410_2ff3, 0x004f_8f93, 0x141f_9073, 0x1020_0073];

/// Where RAM may be. The first region has the code.
const RV64_RAM: [&[(u64, u64)]; 7] = [
    &[(0x8000_0000, SIZE)],
    &[(0x8000_0000, SIZE)],
    &[
        (0x8000_0000, SIZE),
        (0x8001_0000, 0x2000),
        (0x8001_3000, PAGE),
    ],
    &[(0xffff_ffff_ffff_0000, SIZE)],
    &[(0x00ff_ffff_ffff_0000, SIZE), (0, PAGE)],
    &[(0x3000, SIZE), (0xffff_ffff_ffff_f000, PAGE)],
    &[(0xffff_0000, 0x2_0000), (0xffff_ffff_8000_0000, SIZE)],
];

const RV32_RAM: [&[(u64, u64)]; 6] = [
    &[(0x8000_0000, SIZE)],
    &[(0x8000_0000, SIZE)],
    &[
        (0x8000_0000, SIZE),
        (0x8001_0000, 0x2000),
        (0x8001_3000, PAGE),
    ],
    &[(0xffff_0000, SIZE), (0, PAGE)],
    &[(0xffff_0000, 0x2_0000)],
    &[(0x3000, SIZE), (0x3_0000_0000, PAGE)],
];

const EXTENSIONS: [&str; 9] = [
    "imafdcb_zicsr_zifencei_zicntr_zihpm_zicond_zicbom_zicbop_zicboz_zimop_zawrs_zacas_zabha_zfh\
     _zfa_zcb_zcmop_zbc_sstc_svinval_svnapot_svpbmt",
    "imac_zicbom_zicboz_zacas_zabha_zcb_zcmp_zcmt_zcmop_sstc_svinval_svadu_svnapot_smstateen",
    "imafdcb_zicsr_zifencei_zicntr_zihpm_zicond_zfh_zcb_zbc",
    "imafdc_zicntr_zihpm",
    "imafd_zicntr_svadu",
    "imac_zicclsm",
    "i",
    "imfc_zfhmin",
    "iac_zba_svadu",
];

/// Everything a machine is made of, so that the same one can be made again.
pub(super) struct Scene {
    pub(super) config: Config,
    pub(super) isa: Isa,
    program: Program,
    state: Vec<(Place, u64)>,
    /// Instructions to run.
    pub(super) limit: u64,
    /// First address and size of the page tables.
    pub(super) tables: (u64, u64),
    levels: u64,
    /// Page-table entries may point to anything.
    pub(super) wild: bool,
}

impl Scene {
    /// `None` where a machine cannot be built, which no scene here should be.
    pub(super) fn new(dice: &mut Dice<'_>) -> Option<Scene> {
        let config = config(dice);
        let isa = config.validate().ok()?;
        let ram = *config.memory.first()?;
        let limit = [40, 200, 600, 1500].get(dice.below(4) as usize).copied()?;
        let wild = dice.one_in(4);
        let levels = match isa.xlen() {
            Xlen::Rv32 => 2,
            Xlen::Rv64 => 3 + dice.below(3),
        };
        let tohost = match dice.below(8) {
            0 => Some(dice.integer()),
            1 => Some(0xffff_ffff_ffff_fffc),
            2..6 => None,
            _ => Some(ram.base.wrapping_add(0x7ff8 - 4 * dice.below(2))),
        };
        let tables = (ram.base, TABLES * PAGE);
        let mut scene = Scene {
            isa,
            limit,
            tables,
            levels,
            wild,
            program: Program {
                xlen: isa.xlen(),
                entry: ram.base.wrapping_add(TABLES * PAGE),
                segments: Vec::new(),
                tohost,
                fromhost: tohost.map(|addr| addr.wrapping_add(64)),
            },
            state: Vec::new(),
            config,
        };
        scene.fill_memory(dice);
        scene.set_registers(dice);
        scene.set_csrs(dice);
        // Where the same memory is everywhere, a call to the host moves much.
        let paged = |&(place, _): &(Place, u64)| place == Place::Csr(0x180);
        if scene.config.semihosting && scene.state.iter().any(paged) {
            scene.limit = 40;
        }
        Some(scene)
    }

    /// The machine, with what its host is to give it.
    pub(super) fn machine(&self) -> Option<Machine> {
        let input: &[u8] = b"typed in advance";
        let sink = || Box::new(std::io::sink());
        let host = Host::new(Box::new(input), sink(), sink()).with_arguments(["a", "bc"]);
        let mut machine = Machine::new(self.config.clone(), host).ok()?;
        machine.load(self.program.clone(), None).ok()?;
        for &(place, value) in &self.state {
            // What a machine does not have stays away from all of them.
            let _ = machine.write(place, value);
        }
        Some(machine)
    }

    /// The word through which the program calls the host.
    pub(super) fn tohost(&self) -> Option<u64> {
        self.program.tohost
    }

    fn fill_memory(&mut self, dice: &mut Dice<'_>) {
        let Some(&ram) = self.config.memory.first() else {
            return;
        };
        let xlen = self.isa.xlen();
        let mut table = page_tables(dice, &self.config.memory, xlen, self.wild);
        if !dice.one_in(4) {
            map_code(dice, &mut table, ram.base, xlen, self.levels);
        }
        let room = (SIZE - TABLES * PAGE) as usize;
        let mut code = code::random(dice, self.isa, room);
        for (at, handler) in [(HANDLERS, MACHINE), (HANDLERS + 32, SUPERVISOR)] {
            let bytes = handler.iter().flat_map(|word| word.to_le_bytes());
            let place = code.iter_mut().skip(at as usize);
            place.zip(bytes).for_each(|(to, from)| *to = from);
        }
        let mut add = |addr: u64, data: Vec<u8>| {
            let size = data.len() as u64;
            self.program.segments.push(Segment { addr, size, data });
        };
        add(ram.base, table);
        add(ram.base.wrapping_add(TABLES * PAGE), code);
        for other in self.config.memory.iter().skip(1) {
            add(other.base, code::random(dice, self.isa, PAGE as usize));
        }
    }

    /// An address worth a visit.
    fn address(&self, dice: &mut Dice<'_>) -> u64 {
        let count = self.config.memory.len() as u64;
        let region = self.config.memory.get(dice.below(count) as usize);
        let ram = region.map_or((0, PAGE), |r| (r.base, r.size));
        let near = dice.below(32).wrapping_sub(8);
        match dice.below(10) {
            // Anywhere, near the ends, near a page's end, in code and tables.
            0..3 => ram.0.wrapping_add(dice.draw() % ram.1),
            3 => self.program.entry.wrapping_add(dice.below(256)),
            4 => ram.0.wrapping_add(ram.1).wrapping_add(near),
            5 => ram.0.wrapping_add(PAGE * dice.below(16)).wrapping_add(near),
            6 => self.program.tohost.unwrap_or(0),
            7 => [0x200_0000, 0x200_4000, 0x200_bff8, 0x1000]
                .get(dice.below(4) as usize)
                .map_or(0, |base| near.wrapping_add(*base)),
            8 => near,
            _ => dice.integer(),
        }
    }

    fn set_registers(&mut self, dice: &mut Dice<'_>) {
        for number in 1..32 {
            let value = if (8..16).contains(&number) {
                self.address(dice) & if dice.one_in(3) { !0 } else { !7 }
            } else {
                dice.integer()
            };
            self.state.push((Place::Reg(RegId::X(number)), value));
            let float = match dice.below(4) {
                0 => dice.integer() | 0xffff_ffff_0000_0000,
                1 => dice.integer() | 0xffff_ffff_ffff_0000,
                _ => dice.integer(),
            };
            self.state.push((Place::Reg(RegId::F(number)), float));
        }
        let code = self.program.entry.wrapping_add(2 * dice.below(256));
        let pc = if dice.one_in(16) {
            self.address(dice)
        } else {
            code
        };
        self.state.push((Place::Pc, pc & !1));
    }

    /// Mostly a machine that gets somewhere: too much at once and it only
    /// traps.
    fn set_csrs(&mut self, dice: &mut Dice<'_>) {
        let mut csrs: Vec<(u16, u64)> = Vec::new();
        // Protection first: entries may be locked.
        if dice.one_in(4) {
            for entry in 0..dice.below(5) as u16 {
                let addr = self.address(dice) >> 2;
                let size = (1u64 << dice.below(16)).wrapping_sub(1);
                csrs.push((0x3b0 + entry, addr & !size | size >> 1));
            }
            let locks = if dice.one_in(4) {
                !0
            } else {
                !0x8080_8080_8080_8080
            };
            let cfg = dice.draw() & 0x9f9f_9f9f_9f9f_9f9f | 0x1f00_0000;
            csrs.push((0x3a0, cfg & locks));
        }
        for (tvec, at) in [(0x305, HANDLERS), (0x105, HANDLERS + 32)] {
            let base = match dice.below(16) {
                0 => dice.integer(),
                1 => self.program.entry.wrapping_add(4 * (dice.draw() % 256)),
                _ => self.program.entry.wrapping_add(at),
            };
            csrs.push((tvec, base | u64::from(dice.one_in(4))));
        }
        for csr in [0x302, 0x303, 0x304, 0x344, 0x306, 0x106, 0x30a, 0x320] {
            if dice.one_in(4) {
                csrs.push((csr, dice.draw()));
            }
        }
        for csr in [0x341, 0x141] {
            let back = self.program.entry.wrapping_add(2 * (dice.draw() % 512));
            csrs.push((
                csr,
                if dice.one_in(4) {
                    self.address(dice)
                } else {
                    back
                },
            ));
        }
        if dice.one_in(3) {
            csrs.push((
                0x180,
                satp(dice, self.isa.xlen(), self.tables.0, self.levels),
            ));
        }
        csrs.push((0x300, mstatus(dice, self.isa.xlen())));
        csrs.push((0x003, dice.draw()));
        if dice.one_in(6) {
            let csr = code::CSRS.get(dice.below(40) as usize);
            csrs.push((csr.copied().unwrap_or(0), dice.draw()));
        }
        let csrs = csrs.into_iter();
        self.state
            .extend(csrs.map(|(csr, value)| (Place::Csr(csr), value)));
        let mode = dice.pick(&[3, 3, 3, 1, 0]);
        self.state.push((Place::Mode, mode));
    }
}

fn config(dice: &mut Dice<'_>) -> Config {
    let platform = if dice.one_in(4) {
        Platform::Spike
    } else {
        Platform::Virt
    };
    let xlen = if dice.one_in(3) {
        Xlen::Rv32
    } else {
        Xlen::Rv64
    };
    let extensions = dice.pick(&EXTENSIONS);
    let ram = match xlen {
        Xlen::Rv64 => dice.pick(&RV64_RAM),
        Xlen::Rv32 => dice.pick(&RV32_RAM),
    };
    let mut config = Config::new(platform, xlen);
    config.isa = format!("rv{}{extensions}", xlen.bits());
    let regions = ram.iter().map(|&(base, size)| Region { base, size });
    config.memory = regions.collect();
    config.misaligned ^= dice.one_in(3);
    config.update_ad = dice.one_in(3);
    config.semihosting ^= dice.one_in(3);
    config.cycles_per_tick = dice.pick(&[100, 1, 7, u64::MAX]).max(1);
    if dice.one_in(4) {
        config.costs = Costs::UNIT;
    }
    config
}

/// The tables, with so many levels; now and then anything.
fn satp(dice: &mut Dice<'_>, xlen: Xlen, tables: u64, levels: u64) -> u64 {
    let root = tables >> 12;
    match xlen {
        _ if dice.one_in(16) => dice.draw(),
        Xlen::Rv32 => 1 << 31 | root & 0x3f_ffff,
        Xlen::Rv64 => (5 + levels) << 60 | root & 0xfff_ffff_ffff,
    }
}

/// Maps the code to where it is, by one entry of the root.
fn map_code(dice: &mut Dice<'_>, tables: &mut [u8], base: u64, xlen: Xlen, levels: u64) {
    let (size, index) = if xlen == Xlen::Rv32 { (4, 10) } else { (8, 9) };
    let shift = 12 + index * (levels - 1);
    let at = (base >> shift & ((1 << index) - 1)) * size;
    let page = ((base >> shift << shift) / PAGE) & 0xfff_ffff_ffff;
    let entry = page << 10 | 0xcf | dice.below(2) << 4;
    let place = tables.iter_mut().skip(at as usize).take(size as usize);
    place
        .zip(entry.to_le_bytes())
        .for_each(|(to, from)| *to = from);
}

/// Any status programs can make, with floating point mostly on.
fn mstatus(dice: &mut Dice<'_>, xlen: Xlen) -> u64 {
    let mut value = dice.draw() & 0x7e_79aa;
    if value >> 11 & 3 == 2 {
        value &= !0x1800;
    }
    if !dice.one_in(8) {
        value |= 0x2000;
    }
    match xlen {
        Xlen::Rv32 if value & 0x6000 == 0x6000 => value | 1 << 31,
        Xlen::Rv32 => value,
        Xlen::Rv64 if value & 0x6000 == 0x6000 => value | 0xa << 32 | 1 << 63,
        Xlen::Rv64 => value | 0xa << 32,
    }
}

/// Pages of entries that point to each other and to RAM, or to anything.
fn page_tables(dice: &mut Dice<'_>, ram: &[Region], xlen: Xlen, wild: bool) -> Vec<u8> {
    let size = if xlen == Xlen::Rv32 { 4 } else { 8 };
    let base = ram.first().map_or(0, |r| r.base);
    let mut bytes = Vec::new();
    for _ in 0..TABLES * PAGE / size {
        let region = ram.get(dice.below(ram.len() as u64) as usize);
        let page = region.map_or(0, |r| r.base / PAGE + dice.below(r.size / PAGE));
        let ppn = page
            & if size == 4 {
                0x3f_ffff
            } else {
                0xfff_ffff_ffff
            };
        let next = (base / PAGE + dice.below(TABLES)) & 0xfff_ffff_ffff;
        let entry = match dice.below(8) {
            0 if wild => dice.draw(),
            1 if wild => ppn << 10 | dice.below(256),
            0 | 1 => next << 10 | 1,
            // A superpage, if it is where superpages can be.
            2 => ppn >> 18 << 28 | 0xcf | dice.below(2) << 4,
            3 => ppn << 10 | 0x0f | dice.below(256),
            _ => ppn << 10 | 0xcf | dice.below(2) << 4,
        };
        bytes.extend(entry.to_le_bytes().iter().take(size as usize));
    }
    bytes
}
