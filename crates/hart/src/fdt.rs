//! Flattened device trees, and the boot ROM one lies in.
//!
//! A program that wants to know the machine it runs on finds a description of
//! it at the address in `a1`: a tree of nodes with properties, flattened into
//! a blob (Devicetree Specification 0.4, chapter 5). [`Description`] knows what
//! Spike's machine consists of, `virt` our own; `read` puts a command line into the
//! tree of somebody else.
//!
//! ```
//! use hartrace_hart::fdt::{BOOT_ROM, Description, boot_rom};
//! use hartrace_isa::Xlen;
//!
//! let tree = Description::spike("rv64gc", &[(0x8000_0000, 2 << 30)]).blob();
//! let rom = boot_rom(Xlen::Rv64, 0x8000_0000, &tree);
//! assert_eq!(rom.len() % 4096, 0);
//! assert_eq!(rom.get(32..36), Some([0xd0, 0x0d, 0xfe, 0xed].as_slice()));
//! assert_eq!(BOOT_ROM, 0x1000);
//! ```

mod read;
mod tree;
mod virt;

use hartrace_flow::boot;
use hartrace_isa::Xlen;

pub use read::TreeError;
pub(crate) use read::with_chosen;
pub(crate) use tree::tree;
pub(crate) use virt::{Chosen, Virt};

/// Where the boot ROM lies, and where harts start.
pub const BOOT_ROM: u64 = boot::ROM;

/// Spike's default memory: base and size in bytes.
pub(crate) const SPIKE_MEMORY: (u64, u64) = (0x8000_0000, 2 << 30);

/// Address and size of the CLINT: software interrupts and timers.
pub const CLINT: (u64, u64) = (0x0200_0000, 0xc_0000);

/// Address and size of Spike's PLIC: interrupts from devices.
const PLIC: (u64, u64) = (0x0c00_0000, 0x100_0000);

/// Address and size of the UART, an ns16550.
pub const UART: (u64, u64) = (0x1000_0000, 0x100);

/// Address and size of the device that ends a run.
pub(crate) const FINISHER: (u64, u64) = (0x10_0000, 0x1000);

/// Interrupt sources of Spike's PLIC, and the highest priority one can have.
const PLIC_SOURCES: u32 = 31;
const PLIC_PRIORITY: u32 = 15;

/// The source Spike's UART is wired to.
const UART_SOURCE: u32 = 1;

/// Numbers of interrupts at a hart (Privileged Architecture, `mip`).
const SUPERVISOR_EXTERNAL: u32 = 9;
const MACHINE_SOFTWARE: u32 = 3;
const MACHINE_TIMER: u32 = 7;
const MACHINE_EXTERNAL: u32 = 11;

const MAGIC: u32 = 0xd00d_feed;
const VERSION: u32 = 17;
/// The oldest version a reader may know and still understand the blob.
const COMPATIBLE_VERSION: u32 = 16;
const HEADER_SIZE: u32 = 40;
/// The list of reserved regions: no more than its end, two zero doublewords.
const RESERVED: [u8; 16] = [0; 16];

const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const END: u32 = 9;

/// Writes a tree node by node. The root is begun and ended like any other
/// node, with an empty name; the properties of a node come before its children.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    structure: Vec<u8>,
    strings: Vec<u8>,
    /// Reserved regions with the end of their list; empty for none.
    reserved: Vec<u8>,
    /// Nodes begun and not ended.
    depth: usize,
}

impl Tree {
    /// No nodes yet.
    #[must_use]
    pub(crate) fn new() -> Tree {
        Tree::default()
    }

    /// Begins a node: a name without NUL, with the unit address if it has one.
    pub(crate) fn begin(&mut self, name: &str) {
        self.begin_bytes(name.as_bytes());
    }

    fn begin_bytes(&mut self, name: &[u8]) {
        self.token(BEGIN_NODE);
        self.structure.extend(name);
        self.structure.push(0);
        self.align();
        self.depth += 1;
    }

    /// Ends the node begun last and not ended yet; without one, nothing.
    pub(crate) fn end(&mut self) {
        if self.depth > 0 {
            self.depth -= 1;
            self.token(END_NODE);
        }
    }

    /// A property with any bytes for a value.
    pub(crate) fn property(&mut self, name: &str, value: &[u8]) {
        let name = self.string_offset(name);
        self.property_at(name, value);
    }

    /// A property whose name is at an offset into the strings.
    fn property_at(&mut self, name: u32, value: &[u8]) {
        self.token(PROPERTY);
        self.token(value.len() as u32);
        self.token(name);
        self.structure.extend(value);
        self.align();
    }

    /// A property whose presence is all it says.
    pub(crate) fn empty(&mut self, name: &str) {
        self.property(name, &[]);
    }

    /// A property of one cell.
    pub(crate) fn u32(&mut self, name: &str, value: u32) {
        self.cells(name, &[value]);
    }

    /// A property of two cells, the high one first.
    pub(crate) fn u64(&mut self, name: &str, value: u64) {
        self.property(name, &value.to_be_bytes());
    }

    /// A property of 32-bit cells.
    pub(crate) fn cells(&mut self, name: &str, cells: &[u32]) {
        let value: Vec<u8> = cells.iter().flat_map(|c| c.to_be_bytes()).collect();
        self.property(name, &value);
    }

    /// A property that is a text without NUL.
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        self.strings(name, &[value]);
    }

    /// A property that is a list of texts.
    pub(crate) fn strings(&mut self, name: &str, values: &[&str]) {
        let value: Vec<u8> = values
            .iter()
            .flat_map(|text| text.bytes().chain([0]))
            .collect();
        self.property(name, &value);
    }

    /// The number other nodes refer to this one by; not 0, and no two alike.
    pub(crate) fn phandle(&mut self, phandle: u32) {
        self.u32("phandle", phandle);
    }

    /// The blob, with nodes ended that were left open. Header, reserved
    /// regions, structure and names follow each other without gaps, as the
    /// usual compiler lays them out; hart 0 is the one that boots.
    #[must_use]
    pub(crate) fn finish(mut self) -> Vec<u8> {
        while self.depth > 0 {
            self.end();
        }
        self.token(END);
        if self.reserved.is_empty() {
            self.reserved.extend(RESERVED);
        }
        let structure = HEADER_SIZE + self.reserved.len() as u32;
        let structure_size = self.structure.len() as u32;
        let strings_size = self.strings.len() as u32;
        let strings = structure + structure_size;
        let header = [
            MAGIC,
            strings + strings_size,
            structure,
            strings,
            HEADER_SIZE,
            VERSION,
            COMPATIBLE_VERSION,
            0,
            strings_size,
            structure_size,
        ];
        let mut blob: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        blob.extend(self.reserved);
        blob.extend(self.structure);
        blob.extend(self.strings);
        blob
    }

    fn token(&mut self, word: u32) {
        self.structure.extend(word.to_be_bytes());
    }

    fn align(&mut self) {
        let size = self.structure.len().next_multiple_of(4);
        self.structure.resize(size, 0);
    }

    /// Where the name of a property is among the strings, added when it is
    /// not there. The end of a longer name is as good as a name of its own.
    fn string_offset(&mut self, name: &str) -> u32 {
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        let found = self
            .strings
            .windows(text.len())
            .position(|place| place == text);
        let at = found.unwrap_or_else(|| {
            let end = self.strings.len();
            self.strings.extend(text);
            end
        });
        at as u32
    }
}

/// What a machine such as Spike's consists of. The fields say what differs between
/// machines; every one has a CLINT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description<'a> {
    /// `compatible` of the machine.
    pub compatible: &'a str,
    /// `model` of the machine.
    pub model: &'a str,
    /// `compatible` of the bus, from the particular to the general.
    pub bus: &'a [&'a str],
    /// Harts, numbered from 0.
    pub harts: u32,
    /// What they execute; the tree has it in lower case and without `g`.
    pub isa: &'a str,
    /// Address translation they have at most: `sv32`, `sv39`, `sv48`, `sv57`.
    pub mmu: Option<&'a str>,
    /// Entries of physical memory protection.
    pub pmp_regions: u32,
    /// Least size of such an entry in bytes.
    pub pmp_granularity: u32,
    /// Cycles in a second.
    pub clock: u32,
    /// Ticks of `time` in a second.
    pub timebase: u32,
    /// Base and size of each memory in bytes, none of them overlapping.
    pub memory: &'a [(u64, u64)],
    /// Where an initial file system lies: its first address, and the first
    /// one past it.
    pub initrd: Option<(u64, u64)>,
    /// The command line for an operating system, without NUL.
    pub bootargs: Option<&'a str>,
    /// Whether there is a PLIC.
    pub plic: bool,
    /// Whether there is a UART. Without a PLIC it has no interrupt.
    pub uart: bool,
    /// Whether there is a host-target interface.
    pub htif: bool,
}

impl<'a> Description<'a> {
    /// Spike with one hart, as its command line sets it up by
    /// default.
    #[must_use]
    pub fn spike(isa: &'a str, memory: &'a [(u64, u64)]) -> Description<'a> {
        let narrow = isa.get(..4).is_some_and(|s| s.eq_ignore_ascii_case("rv32"));
        Description {
            compatible: "ucbbar,spike-bare-dev",
            model: "ucbbar,spike-bare",
            bus: &["ucbbar,spike-bare-soc", "simple-bus"],
            harts: 1,
            isa,
            mmu: Some(if narrow { "sv32" } else { "sv57" }),
            pmp_regions: 16,
            pmp_granularity: 4,
            clock: 1_000_000_000,
            timebase: 10_000_000,
            memory,
            initrd: None,
            bootargs: Some("console=ttyS0 earlycon"),
            plic: true,
            uart: true,
            htif: true,
        }
    }

    /// The tree that says so, flattened.
    #[must_use]
    pub fn blob(&self) -> Vec<u8> {
        let mut tree = Tree::new();
        tree.begin("");
        tree.u32("#address-cells", 2);
        tree.u32("#size-cells", 2);
        tree.string("compatible", self.compatible);
        tree.string("model", self.model);
        self.chosen(&mut tree);
        self.cpus(&mut tree);
        for &(base, size) in self.memory {
            tree.begin(&format!("memory@{base:x}"));
            tree.string("device_type", "memory");
            region(&mut tree, (base, size));
            tree.end();
        }
        tree.begin("soc");
        tree.u32("#address-cells", 2);
        tree.u32("#size-cells", 2);
        tree.strings("compatible", self.bus);
        tree.empty("ranges");
        self.clint(&mut tree);
        if self.plic {
            self.plic(&mut tree);
        }
        if self.uart {
            self.uart(&mut tree);
        }
        tree.end();
        if self.htif {
            tree.begin("htif");
            tree.string("compatible", "ucb,htif0");
            tree.end();
        }
        tree.end();
        tree.finish()
    }

    fn chosen(&self, tree: &mut Tree) {
        tree.begin("chosen");
        if self.uart {
            let path = format!("/soc/ns16550@{:x}", UART.0);
            tree.string("stdout-path", &path);
        }
        if let Some((start, end)) = self.initrd {
            tree.u64("linux,initrd-start", start);
            tree.u64("linux,initrd-end", end);
        }
        if let Some(bootargs) = self.bootargs {
            tree.string("bootargs", bootargs);
        }
        tree.end();
    }

    fn cpus(&self, tree: &mut Tree) {
        let isa = isa_text(self.isa);
        tree.begin("cpus");
        tree.u32("#address-cells", 1);
        tree.u32("#size-cells", 0);
        tree.u32("timebase-frequency", self.timebase);
        for hart in 0..self.harts {
            tree.begin(&format!("cpu@{hart}"));
            tree.string("device_type", "cpu");
            tree.u32("reg", hart);
            tree.string("status", "okay");
            tree.string("compatible", "riscv");
            tree.string("riscv,isa", &isa);
            if let Some(mmu) = self.mmu {
                tree.string("mmu-type", &format!("riscv,{mmu}"));
            }
            tree.u32("riscv,pmpregions", self.pmp_regions);
            tree.u32("riscv,pmpgranularity", self.pmp_granularity);
            tree.u32("clock-frequency", self.clock);
            tree.begin("interrupt-controller");
            tree.u32("#address-cells", 2);
            tree.u32("#interrupt-cells", 1);
            tree.empty("interrupt-controller");
            tree.string("compatible", "riscv,cpu-intc");
            tree.phandle(controller(hart));
            tree.end();
            tree.end();
        }
        tree.end();
    }

    fn clint(&self, tree: &mut Tree) {
        tree.begin(&format!("clint@{:x}", CLINT.0));
        tree.string("compatible", "riscv,clint0");
        self.interrupts(tree, [MACHINE_SOFTWARE, MACHINE_TIMER]);
        region(tree, CLINT);
        tree.end();
    }

    fn plic(&self, tree: &mut Tree) {
        tree.begin(&format!("plic@{:x}", PLIC.0));
        tree.string("compatible", "riscv,plic0");
        tree.u32("#address-cells", 2);
        self.interrupts(tree, [MACHINE_EXTERNAL, SUPERVISOR_EXTERNAL]);
        region(tree, PLIC);
        tree.u32("riscv,ndev", PLIC_SOURCES);
        tree.u32("riscv,max-priority", PLIC_PRIORITY);
        tree.u32("#interrupt-cells", 1);
        tree.empty("interrupt-controller");
        if self.uart {
            tree.phandle(self.plic_phandle());
        }
        tree.end();
    }

    fn uart(&self, tree: &mut Tree) {
        tree.begin(&format!("ns16550@{:x}", UART.0));
        tree.string("compatible", "ns16550a");
        tree.u32("clock-frequency", self.timebase);
        if self.plic {
            tree.u32("interrupt-parent", self.plic_phandle());
            tree.u32("interrupts", UART_SOURCE);
        }
        region(tree, UART);
        tree.u32("reg-shift", 0);
        tree.u32("reg-io-width", 1);
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
}

/// The number of the interrupt controller of a hart.
fn controller(hart: u32) -> u32 {
    hart.wrapping_add(1)
}

/// `reg`, address and size of two cells each.
fn region(tree: &mut Tree, (base, size): (u64, u64)) {
    let [base, size] = [base, size].map(u64::to_be_bytes);
    tree.property("reg", &[base, size].concat());
}

/// An ISA string as `riscv,isa` has it: lower case, with what `g` stands for
/// in its place but for `zicsr` and `zifencei`. Spike does no more than that.
pub(crate) fn isa_text(isa: &str) -> String {
    let isa = isa.to_ascii_lowercase();
    match isa.split_at_checked(4) {
        Some((base, rest)) => match rest.strip_prefix('g') {
            Some(rest) => format!("{base}imafd{rest}"),
            None => isa,
        },
        None => isa,
    }
}

/// The ROM at [`BOOT_ROM`]: code that jumps to `entry` with the number of the
/// hart in `a0` and the address of the tree in `a1`, the tree itself 32 bytes
/// in, zeros up to a multiple of 4096 bytes. Word for word what Spike has.
#[must_use]
pub fn boot_rom(xlen: Xlen, entry: u64, tree: &[u8]) -> Vec<u8> {
    let words = boot::code(xlen);
    let words = words
        .into_iter()
        .chain([0, entry as u32, (entry >> 32) as u32]);
    let mut rom: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    rom.extend(tree);
    rom.resize(rom.len().next_multiple_of(4096), 0);
    rom
}

#[cfg(test)]
mod tests;
