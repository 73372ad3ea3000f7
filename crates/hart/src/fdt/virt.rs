//! The device tree of our own machine: what QEMU's `virt` machine says of itself,
//! as far as we have it.

use hartrace_isa::{Ext, Isa, Xlen};

use super::{
    CLINT, FINISHER, MACHINE_EXTERNAL, MACHINE_SOFTWARE, MACHINE_TIMER, SUPERVISOR_EXTERNAL, Tree,
    UART, controller, isa_text, region,
};
use crate::devices::{
    Equipment, LAST_SOURCE, PLIC, RTC, RTC_SOURCE, UART_SOURCE, slot_region, slot_source,
};
use crate::memory::Region;

/// Ticks of `time` in a second.
const TIMEBASE: u32 = 10_000_000;

/// The frequency that divisors of the UART divide.
const UART_CLOCK: u32 = 3_686_400;

/// What the firmware and the kernel are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen<'a> {
    /// The command line.
    pub(crate) bootargs: Option<&'a str>,
    /// Where an initial file system lies: its first address, and the first one past it.
    pub(crate) initrd: Option<(u64, u64)>,
    /// What a kernel starts its random numbers with.
    pub(crate) seed: Option<[u8; 32]>,
}

impl Chosen<'_> {
    /// Whether nothing is told.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Chosen::default()
    }

    /// The properties of the node.
    pub(super) fn write(&self, tree: &mut Tree) {
        if let Some(bootargs) = self.bootargs {
            tree.string("bootargs", bootargs);
        }
        if let Some((start, end)) = self.initrd {
            tree.u64("linux,initrd-start", start);
            tree.u64("linux,initrd-end", end);
        }
        if let Some(seed) = self.seed {
            tree.property("rng-seed", &seed);
        }
    }

    /// Whether a property of another tree gives way to one of these.
    pub(super) fn replaces(&self, name: &[u8]) -> bool {
        match name {
            b"bootargs" => self.bootargs.is_some(),
            b"linux,initrd-start" | b"linux,initrd-end" => self.initrd.is_some(),
            b"rng-seed" => self.seed.is_some(),
            _ => false,
        }
    }
}

/// Our own machine.
#[derive(Debug)]
pub(crate) struct Virt<'a> {
    pub(crate) harts: u32,
    /// What they execute, as configured and as understood.
    pub(crate) isa_name: &'a str,
    pub(crate) isa: Isa,
    /// Bytes of a cache block.
    pub(crate) cache_block: u64,
    pub(crate) memory: &'a [Region],
    pub(crate) equipment: Equipment<'a>,
    pub(crate) chosen: Chosen<'a>,
    /// Whether programs talk to the host through `tohost`.
    pub(crate) htif: bool,
}

impl Virt<'_> {
    /// The tree, flattened.
    pub(crate) fn blob(&self) -> Vec<u8> {
        let mut tree = Tree::new();
        tree.begin("");
        tree.u32("#address-cells", 2);
        tree.u32("#size-cells", 2);
        tree.strings("compatible", &["hartrace,virt", "riscv-virtio"]);
        tree.string("model", "hartrace,virt");
        tree.begin("chosen");
        if self.equipment.uart {
            let path = format!("/soc/serial@{:x}", UART.0);
            tree.string("stdout-path", &path);
        }
        self.chosen.write(&mut tree);
        tree.end();
        self.cpus(&mut tree);
        for memory in self.memory {
            tree.begin(&format!("memory@{:x}", memory.base));
            tree.string("device_type", "memory");
            region(&mut tree, (memory.base, memory.size));
            tree.end();
        }
        self.soc(&mut tree);
        if self.equipment.finisher {
            self.power(&mut tree, "poweroff", 0x5555);
            self.power(&mut tree, "reboot", 0x7777);
        }
        if self.htif {
            tree.begin("htif");
            tree.string("compatible", "ucb,htif0");
            tree.end();
        }
        tree.finish()
    }

    fn cpus(&self, tree: &mut Tree) {
        let isa = isa_text(self.isa_name);
        let (mmu, base) = match self.isa.xlen() {
            Xlen::Rv32 => ("riscv,sv32", "rv32i"),
            Xlen::Rv64 => ("riscv,sv57", "rv64i"),
        };
        let extensions = self.extensions(&isa);
        let blocks = [
            ("riscv,cbom-block-size", Ext::Zicbom),
            ("riscv,cbop-block-size", Ext::Zicbop),
            ("riscv,cboz-block-size", Ext::Zicboz),
        ];
        tree.begin("cpus");
        tree.u32("#address-cells", 1);
        tree.u32("#size-cells", 0);
        tree.u32("timebase-frequency", TIMEBASE);
        for hart in 0..self.harts {
            tree.begin(&format!("cpu@{hart}"));
            tree.string("device_type", "cpu");
            tree.u32("reg", hart);
            tree.string("status", "okay");
            tree.string("compatible", "riscv");
            tree.string("riscv,isa", &isa);
            tree.string("riscv,isa-base", base);
            tree.strings("riscv,isa-extensions", &extensions);
            for (name, _) in blocks.iter().filter(|(_, ext)| self.isa.has(*ext)) {
                tree.u32(name, self.cache_block as u32);
            }
            tree.string("mmu-type", mmu);
            tree.u32("riscv,pmpregions", 16);
            tree.u32("riscv,pmpgranularity", 4);
            tree.begin("interrupt-controller");
            tree.u32("#address-cells", 0);
            tree.u32("#interrupt-cells", 1);
            tree.empty("interrupt-controller");
            tree.string("compatible", "riscv,cpu-intc");
            tree.phandle(controller(hart));
            tree.end();
            tree.end();
        }
        tree.end();
    }

    /// The names of all extensions: those in force, and those of the ISA string that add
    /// nothing to decode.
    fn extensions<'t>(&self, isa: &'t str) -> Vec<&'t str> {
        let mut names: Vec<&str> = self.isa.extensions().map(|ext| ext.name()).collect();
        for name in isa.split('_').skip(1) {
            if Isa::names().any(|known| known == name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn soc(&self, tree: &mut Tree) {
        let equipment = &self.equipment;
        tree.begin("soc");
        tree.u32("#address-cells", 2);
        tree.u32("#size-cells", 2);
        tree.string("compatible", "simple-bus");
        tree.empty("ranges");
        tree.begin(&format!("clint@{:x}", CLINT.0));
        tree.strings("compatible", &["sifive,clint0", "riscv,clint0"]);
        self.interrupts(tree, [MACHINE_SOFTWARE, MACHINE_TIMER]);
        region(tree, CLINT);
        tree.end();
        if equipment.plic {
            self.plic(tree);
        }
        if equipment.uart {
            self.device(tree, "serial", UART, &["ns16550a"], UART_SOURCE);
            tree.u32("clock-frequency", UART_CLOCK);
            tree.end();
        }
        if equipment.rtc {
            let place = (RTC.base, RTC.size);
            self.device(tree, "rtc", place, &["google,goldfish-rtc"], RTC_SOURCE);
            tree.end();
        }
        for slot in 0..equipment.slots.len() {
            let Region { base, size } = slot_region(slot);
            let source = slot_source(slot);
            self.device(tree, "virtio_mmio", (base, size), &["virtio,mmio"], source);
            tree.end();
        }
        if equipment.finisher {
            tree.begin(&format!("test@{:x}", FINISHER.0));
            tree.strings("compatible", &["sifive,test1", "sifive,test0", "syscon"]);
            region(tree, FINISHER);
            tree.phandle(self.finisher_phandle());
            tree.end();
        }
        tree.end();
    }

    fn plic(&self, tree: &mut Tree) {
        tree.begin(&format!("plic@{:x}", PLIC.base));
        tree.strings("compatible", &["sifive,plic-1.0.0", "riscv,plic0"]);
        tree.u32("#address-cells", 0);
        tree.u32("#interrupt-cells", 1);
        tree.empty("interrupt-controller");
        self.interrupts(tree, [MACHINE_EXTERNAL, SUPERVISOR_EXTERNAL]);
        region(tree, (PLIC.base, PLIC.size));
        tree.u32("riscv,ndev", LAST_SOURCE);
        tree.phandle(self.plic_phandle());
        tree.end();
    }

    /// Begins the node of a device; without a PLIC it has no interrupt.
    fn device(
        &self,
        tree: &mut Tree,
        name: &str,
        place: (u64, u64),
        compatible: &[&str],
        source: u32,
    ) {
        tree.begin(&format!("{name}@{:x}", place.0));
        tree.strings("compatible", compatible);
        region(tree, place);
        if self.equipment.plic {
            tree.u32("interrupt-parent", self.plic_phandle());
            tree.u32("interrupts", source);
        }
    }

    /// A way to end or restart: a word for the test finisher.
    fn power(&self, tree: &mut Tree, name: &str, word: u32) {
        tree.begin(name);
        tree.string("compatible", &format!("syscon-{name}"));
        tree.u32("regmap", self.finisher_phandle());
        tree.u32("offset", 0);
        tree.u32("value", word);
        tree.end();
    }

    /// Two interrupts of a device that go to each hart.
    fn interrupts(&self, tree: &mut Tree, [first, second]: [u32; 2]) {
        let cells: Vec<u32> = (0..self.harts)
            .map(controller)
            .flat_map(|hart| [hart, first, hart, second])
            .collect();
        tree.cells("interrupts-extended", &cells);
    }

    fn plic_phandle(&self) -> u32 {
        controller(self.harts)
    }

    fn finisher_phandle(&self) -> u32 {
        controller(self.harts) + 1
    }
}
