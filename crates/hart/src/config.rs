//! The configuration of a machine.

use core::fmt;

use hartrace_ctr::{Control, Ctr, PredictorKind, Version};
use hartrace_isa::{Ext, Isa, IsaError, Xlen};

use crate::clint::CLINT;
use crate::cost::Costs;
use crate::devices::{SLOTS, Virtio};
use crate::fdt::{self, BOOT_ROM, SPIKE_MEMORY};
use crate::memory::{MemoryError, PAGE, Region};
use crate::triggers::MOST as MOST_TRIGGERS;
use crate::variant::Variant;

/// Which machine a hart stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Our own: starts at the program's entry, takes interrupts and serves the
    /// host as soon as they are due, does misaligned accesses, counts cycles by
    /// the cost table, and has a UART and a test finisher where RAM leaves room
    /// for them.
    #[default]
    Virt,
    /// Spike, as far as its log shows: starts in the boot ROM, traps
    /// misaligned accesses, takes one cycle for each instruction, and looks at
    /// time and host every 5000 instructions.
    Spike,
}

impl Platform {
    /// Both, in the order of their names' length of service.
    pub const ALL: [Platform; 2] = [Platform::Virt, Platform::Spike];

    /// `virt` or `spike`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Virt => "virt",
            Platform::Spike => "spike",
        }
    }
}

/// What a hart's trace port reports as the software context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextSource {
    /// The context CSRs of Sdtrig: `scontext`, and `mcontext` in the high half.
    #[default]
    Scontext,
    /// The address space: `satp.ASID`. The hart has no hypervisor extension, so there is
    /// no VMID, and the high half is 0.
    Asid,
    /// The root page table: `satp.PPN`. It tells processes apart for a kernel that does
    /// not use ASIDs.
    Root,
}

/// A machine, in full. [`Config::new`] has the usual values of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The platform.
    pub platform: Platform,
    /// The instruction set, as [`Isa::parse`] reads it.
    pub isa: String,
    /// RAM.
    pub memory: Vec<Region>,
    /// Cycles per instruction.
    pub costs: Costs,
    /// Harts, all alike, numbered from 0; Spike's platform has one.
    pub harts: u32,
    /// Cycles that one of several harts goes on before it is the next one's turn.
    pub quantum: u64,
    /// Varies how long turns are, so that the same program is interleaved in another
    /// way; 0 makes all turns alike.
    pub seed: u64,
    /// Cycles of the hart for one tick of `time`; Spike's 100 is fixed.
    pub cycles_per_tick: u64,
    /// Misaligned loads and stores are done; otherwise they trap, unless the
    /// ISA string names Zicclsm.
    pub misaligned: bool,
    /// The page-table walker sets the A and D bits; otherwise it faults
    /// (Svade), unless the ISA string names Svadu and the program asks for it.
    pub update_ad: bool,
    /// Bytes of a cache block, for Zicbom and Zicboz: a power of two from 16 to 128.
    pub cache_block: u64,
    /// Semihosting calls are served.
    pub semihosting: bool,
    /// Debug triggers of a hart, 0 to 32.
    pub triggers: u32,
    /// What traces report as the context.
    pub context: ContextSource,
    /// How the harts differ from the whole one.
    pub variant: Variant,
    /// What is in the slots for virtio devices, of our own machine: at most
    /// [`SLOTS`].
    pub virtio: Vec<Virtio>,
    /// The time of day when the machine starts, in seconds since 1970.
    pub epoch: u64,
    /// A system that asks for a reset starts again; otherwise its run ends, as that of a
    /// program always does.
    pub reboot: bool,
    /// The control transfer records, if the ISA string names Smctr or Ssctr;
    /// their width is the hart's.
    pub ctr: hartrace_ctr::Config,
    /// The branch predictor whose mispredictions they record.
    pub predictor: PredictorKind,
}

/// Sizes of cache blocks. What `cbo.zero` stores is reported in pieces of 8 bytes, for at
/// most 16 of which there is room.
const CACHE_BLOCKS: core::ops::RangeInclusive<u64> = 16..=128;

/// Harts that a machine can have.
const MOST_HARTS: u32 = 64;

/// The instruction set of Spike without `--isa`.
const SPIKE_ISA: &str = "rv64imafdc_zicntr_zihpm";

/// Everything the hart can do, without the width; but not Zcmp and Zcmt, whose encodings
/// are those of compressed double-precision loads and stores.
const WHOLE_ISA: &str = "imafdcb_zicsr_zifencei_zicntr_zihpm_zihintpause_zihintntl_zicond\
    _zicbom_zicbop_zicboz_zimop_zawrs_zacas_zabha_zfh_zfa_zcb_zcmop_zbc_sstc_svinval";

/// What only RV64 has of it.
const WHOLE_ISA_OF_RV64: &str = "_svnapot_svpbmt";

impl Config {
    /// The usual machine of a platform, for programs of this width.
    #[must_use]
    pub fn new(platform: Platform, xlen: Xlen) -> Config {
        let spike = platform == Platform::Spike;
        let isa = match (spike, xlen) {
            (true, Xlen::Rv64) => SPIKE_ISA.to_owned(),
            (true, Xlen::Rv32) => SPIKE_ISA.replace("rv64", "rv32"),
            (false, Xlen::Rv32) => format!("rv32{WHOLE_ISA}"),
            (false, Xlen::Rv64) => format!("rv64{WHOLE_ISA}{WHOLE_ISA_OF_RV64}"),
        };
        let (base, size) = if spike {
            SPIKE_MEMORY
        } else {
            (0x8000_0000, 256 << 20)
        };
        Config {
            platform,
            isa,
            memory: vec![Region { base, size }],
            costs: if spike { Costs::UNIT } else { Costs::default() },
            harts: 1,
            quantum: 5000,
            seed: 0,
            cycles_per_tick: 100,
            misaligned: !spike,
            update_ad: false,
            cache_block: 64,
            semihosting: !spike,
            triggers: 4,
            context: ContextSource::default(),
            variant: Variant::default(),
            virtio: Vec::new(),
            epoch: 0,
            reboot: true,
            ctr: hartrace_ctr::Config::new(Version::default(), xlen),
            predictor: PredictorKind::None,
        }
    }

    /// Whether the ISA string names an extension that adds nothing to decode.
    pub(crate) fn names(&self, extension: &str) -> bool {
        let mut parts = self.isa.split('_').skip(1);
        parts.any(|part| part.eq_ignore_ascii_case(extension))
    }

    /// Whether misaligned loads and stores are done.
    pub(crate) fn does_misaligned(&self) -> bool {
        self.misaligned || self.names("zicclsm")
    }

    /// Whether programs can let the page-table walker set A and D.
    pub(crate) fn has_svadu(&self) -> bool {
        self.names("svadu")
    }

    /// The instruction set, if the hart can do all of it.
    pub(crate) fn checked_isa(&self) -> Result<Isa, ConfigError> {
        let isa = match Isa::parse(&self.isa) {
            Ok(isa) => isa,
            Err(why) => return Err(ConfigError::Isa(describe(&self.isa, &why))),
        };
        // There is no machine mode without CSRs, and code always follows
        // memory.
        let isa = with_ground_of_ctr(isa.with(Ext::Zicsr).with(Ext::Zifencei));
        let known = isa.extensions().filter(|ext| !is_supported(*ext));
        let known = known.map(|ext| ext.name().to_owned());
        // Vendors' extensions can be anything.
        let vendor = self.isa.split('_').skip(1).map(str::to_ascii_lowercase);
        let missing: Vec<String> = known.chain(vendor.filter(|n| n.starts_with('x'))).collect();
        if missing.is_empty() {
            Ok(isa)
        } else {
            Err(ConfigError::Unsupported(missing))
        }
    }

    /// The instruction set as given in the device tree: as configured,
    /// with what control transfer records bring.
    pub(crate) fn reported_isa(&self, isa: Isa) -> String {
        let mut told = self.isa.clone();
        let asked = Isa::parse(&self.isa).unwrap_or(isa);
        for ext in GROUND_OF_CTR {
            if isa.has(ext) && !asked.has(ext) {
                told.push('_');
                told.push_str(ext.name());
            }
        }
        told
    }

    /// The control transfer records of a hart with this instruction set.
    pub(crate) fn records(&self, isa: Isa) -> Result<Option<Ctr>, ConfigError> {
        if !isa.has(Ext::Smctr) && !isa.has(Ext::Ssctr) {
            return Ok(None);
        }
        let mut fields = self.ctr.fields;
        // Where counters overflow, 1.0 wants the freeze (2.1).
        if self.ctr.version == Version::V1_0 && isa.has(Ext::Sscofpmf) {
            fields = fields.with(Control::LCOFIFRZ);
        }
        let config = hartrace_ctr::Config {
            xlen: isa.xlen(),
            // What the hart has of modes.
            supervisor: true,
            hypervisor: false,
            fields,
            ..self.ctr
        };
        let ctr = Ctr::new(config).map_err(ConfigError::Records)?;
        Ok(Some(ctr.with_predictor(self.predictor.build())))
    }

    /// Gives the machine memory in this range where it has nothing: neither RAM
    /// nor the CLINT nor the boot ROM.
    pub fn add_memory(&mut self, start: u64, size: u64) {
        let rom = (self.boot_rom(), PAGE);
        let ram = self.memory.iter().map(|region| (region.base, region.size));
        let mut taken: Vec<(u64, u64)> = ram.chain([fdt::CLINT, rom]).collect();
        taken.sort_unstable();
        let mut at = start / PAGE * PAGE;
        let Some(last) = size.checked_sub(1) else {
            return;
        };
        let last = start.saturating_add(last) / PAGE * PAGE;
        let mut gaps = Vec::new();
        for (base, size) in taken {
            let end = base.saturating_add(size);
            if base > at && at <= last {
                let to = base.min(last.saturating_add(PAGE));
                gaps.push(Region {
                    base: at,
                    size: to.saturating_sub(at) / PAGE * PAGE,
                });
            }
            at = at.max(end.div_ceil(PAGE).saturating_mul(PAGE));
        }
        if at <= last {
            gaps.push(Region {
                base: at,
                size: last.saturating_add(PAGE).saturating_sub(at) / PAGE * PAGE,
            });
        }
        self.memory
            .extend(gaps.into_iter().filter(|gap| gap.size > 0));
    }

    /// Where the boot ROM is: where Spike has it, or on our own machine, if RAM
    /// is there, at the first of a few other places where it is not.
    #[must_use]
    pub fn boot_rom(&self) -> u64 {
        // No device is at any of them.
        let others = [0x2000_0000, 0x4000_0000, 0x6000_0000, 0xffff_0000];
        let free = |base: &u64| {
            let rom = Region {
                base: *base,
                size: 16 * PAGE,
            };
            !self.memory.iter().any(|region| region.overlaps(&rom))
        };
        let first = Region {
            base: BOOT_ROM,
            size: PAGE,
        };
        match self.platform {
            Platform::Virt if self.memory.iter().any(|region| region.overlaps(&first)) => {
                others.into_iter().find(free).unwrap_or(BOOT_ROM)
            }
            _ => BOOT_ROM,
        }
    }

    /// Checks what does not depend on a program.
    ///
    /// # Errors
    ///
    /// An instruction set the hart does not have, memory in impossible places,
    /// a clock that does not run.
    pub fn validate(&self) -> Result<Isa, ConfigError> {
        let isa = self.checked_isa()?;
        self.records(isa)?;
        let rom = Region {
            base: self.boot_rom(),
            size: PAGE,
        };
        for region in &self.memory {
            for taken in [CLINT, rom] {
                if region.overlaps(&taken) {
                    return Err(ConfigError::Memory(MemoryError::Overlap(*region, taken)));
                }
            }
        }
        let most = match self.platform {
            Platform::Virt => MOST_HARTS,
            Platform::Spike => 1,
        };
        if !(1..=most).contains(&self.harts) {
            return Err(ConfigError::Harts { most });
        }
        if self.quantum == 0 {
            return Err(ConfigError::Quantum);
        }
        if self.cycles_per_tick == 0 {
            return Err(ConfigError::Clock);
        }
        if !self.cache_block.is_power_of_two() || !CACHE_BLOCKS.contains(&self.cache_block) {
            return Err(ConfigError::CacheBlock);
        }
        if self.triggers > MOST_TRIGGERS {
            return Err(ConfigError::Triggers);
        }
        if self.virtio.len() > SLOTS {
            return Err(ConfigError::Slots);
        }
        if self
            .costs
            .entries()
            .iter()
            .take(13)
            .any(|&(_, cost)| cost == 0)
        {
            return Err(ConfigError::Cost);
        }
        Ok(isa)
    }
}

fn describe(text: &str, why: &IsaError<'_>) -> String {
    format!("{text}: {why}")
}

/// What comes with control transfer records.
const GROUND_OF_CTR: [Ext; 3] = [Ext::Smcsrind, Ext::Smstateen, Ext::Sscofpmf];

/// Control transfer records come with all they can make use of: access through
/// the select registers of both levels, state enables, and counters whose
/// overflow can freeze them.
fn with_ground_of_ctr(isa: Isa) -> Isa {
    if !isa.has(Ext::Smctr) && !isa.has(Ext::Ssctr) {
        return isa;
    }
    GROUND_OF_CTR.into_iter().fold(isa, Isa::with)
}

fn is_supported(ext: Ext) -> bool {
    use Ext::*;
    let base = matches!(
        ext,
        I | M | A | F | D | C | B | Zicsr | Zifencei | Zicntr | Zihpm
    );
    let parts = matches!(ext, Zmmul | Zaamo | Zalrsc | Zca | Zcf | Zcd);
    let more = matches!(
        ext,
        Zicond | Zfh | Zfhmin | Zfa | Zba | Zbb | Zbc | Zbs | Zcb
    );
    let atomic = matches!(ext, Zawrs | Zacas | Zabha);
    // Hints, and an ordering that a hart that does one thing at a time keeps.
    let blocks = matches!(ext, Zicbom | Zicboz);
    let small = matches!(ext, Zcmp | Zcmt | Zce);
    let supervisor = matches!(ext, Sstc | Svinval);
    let silent = matches!(ext, Zihintpause | Zihintntl | Zicbop | Ztso);
    let may_be = matches!(ext, Zimop | Zcmop);
    let state = matches!(ext, Smcsrind | Sscsrind | Smstateen | Sscofpmf);
    let records = matches!(ext, Smctr | Ssctr);
    base || parts
        || more
        || atomic
        || silent
        || may_be
        || blocks
        || small
        || supervisor
        || state
        || records
}

/// Why a machine cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The ISA string cannot be read.
    Isa(String),
    /// Extensions the hart does not have.
    Unsupported(Vec<String>),
    /// Memory cannot be laid out like this.
    Memory(MemoryError),
    /// None, or more than the platform can have.
    Harts {
        /// As many as it can have.
        most: u32,
    },
    /// `quantum` is 0.
    Quantum,
    /// `cycles_per_tick` is 0.
    Clock,
    /// A cache block of an impossible size.
    CacheBlock,
    /// An instruction that takes no time.
    Cost,
    /// More debug triggers than a hart can have.
    Triggers,
    /// More virtio devices than there are slots for them.
    Slots,
    /// Control transfer records that cannot be.
    Records(hartrace_ctr::ConfigError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Isa(why) => f.write_str(why),
            ConfigError::Unsupported(names) => {
                write!(f, "the built-in hart does not execute {}", names.join(", "))
            }
            ConfigError::Memory(why) => why.fmt(f),
            ConfigError::Records(why) => why.fmt(f),
            ConfigError::Triggers => {
                write!(f, "a hart has at most {MOST_TRIGGERS} debug triggers")
            }
            ConfigError::Slots => write!(f, "the machine has {SLOTS} slots for virtio devices"),
            ConfigError::Harts { most: 1 } => {
                f.write_str("the platform \"spike\" has exactly one hart; \"virt\" can have more")
            }
            ConfigError::Harts { most } => write!(f, "harts must be between 1 and {most}"),
            ConfigError::Quantum => f.write_str("quantum must be at least 1 cycle"),
            ConfigError::Clock => f.write_str("cycles_per_tick must be at least 1"),
            ConfigError::CacheBlock => {
                f.write_str("cache_block must be a power of two from 16 to 128")
            }
            ConfigError::Cost => f.write_str(
                "every instruction takes at least 1 cycle; only taken and trap can be 0",
            ),
        }
    }
}

impl core::error::Error for ConfigError {}

impl From<MemoryError> for ConfigError {
    fn from(why: MemoryError) -> ConfigError {
        ConfigError::Memory(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_become_memory_where_there_is_none() {
        let added = |base, size| {
            let mut hart = Config::new(Platform::Virt, Xlen::Rv64);
            let before = hart.memory.len();
            hart.add_memory(base, size);
            assert!(hart.validate().is_ok(), "{base:#x}");
            let added = hart.memory.split_off(before);
            added.iter().map(|r| (r.base, r.size)).collect::<Vec<_>>()
        };
        assert_eq!(added(0x1000_0000, 0x100), [(0x1000_0000, 0x1000)]);
        assert_eq!(added(0x1000_0ff8, 16), [(0x1000_0000, 0x2000)]);
        assert_eq!(added(0x8000_0000, 0x1000), []);
        assert_eq!(added(0x0200_0000, 0x1_0000), []);
        // Around the CLINT, and up to RAM.
        assert_eq!(
            added(0x01ff_f000, 0xd_0000),
            [(0x01ff_f000, 0x1000), (0x020c_0000, 0xf000)]
        );
        assert_eq!(added(0x7fff_f000, 0x2000), [(0x7fff_f000, 0x1000)]);
        assert_eq!(added(u64::MAX, 1), []);
    }
}
