use hartrace_isa::Isa;

use super::*;
use crate::devices::{Equipment, Virtio};
use crate::memory::Region;

/// A node as read back, by rules of its own: offsets from the header, tokens
/// from the structure, names from the strings.
#[derive(Debug, Default, PartialEq)]
struct Node {
    name: String,
    properties: Vec<(String, Vec<u8>)>,
    children: Vec<Node>,
}

impl Node {
    fn child(&self, name: &str) -> &Node {
        let mut found = self.children.iter().filter(|c| c.name == name);
        let child = found.next().unwrap_or_else(|| panic!("no node {name}"));
        assert!(found.next().is_none(), "two nodes {name}");
        child
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.properties.iter().filter(|p| p.0 == name);
        let value = found.next().map(|p| p.1.as_slice());
        assert!(found.next().is_none(), "two properties {name}");
        value
    }

    fn text(&self, name: &str) -> &str {
        let value = self.get(name).expect("a property");
        let (last, text) = value.split_last().expect("a NUL");
        assert_eq!(*last, 0);
        std::str::from_utf8(text).expect("text")
    }

    fn cells(&self, name: &str) -> Vec<u32> {
        let value = self.get(name).expect("a property");
        assert_eq!(value.len() % 4, 0);
        value.chunks(4).map(|c| word(c, 0)).collect()
    }

    fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        visit(self);
        for child in &self.children {
            child.walk(visit);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).expect("a NUL");
    String::from_utf8(bytes[..end].to_vec()).expect("text")
}

fn parse(blob: &[u8]) -> Node {
    let header: Vec<usize> = (0..10).map(|i| word(blob, i * 4) as usize).collect();
    assert_eq!(header[0], 0xd00d_feed);
    assert_eq!(header[1], blob.len());
    assert_eq!((header[5], header[6], header[7]), (17, 16, 0));
    assert_eq!(header[4] % 8, 0, "reserved regions are doublewords");
    assert_eq!(blob[header[4]..header[4] + 16], [0; 16]);
    assert_eq!(header[2] % 4, 0);
    let structure = &blob[header[2]..header[2] + header[9]];
    let strings = &blob[header[3]..header[3] + header[8]];
    let mut open = vec![Node::default()];
    let mut at = 0;
    loop {
        let token = word(structure, at);
        at += 4;
        match token {
            1 => {
                let name = until_nul(&structure[at..]);
                at += (name.len() + 1).next_multiple_of(4);
                open.push(Node {
                    name,
                    ..Node::default()
                });
            }
            2 => {
                let node = open.pop().expect("begun");
                open.last_mut().expect("a parent").children.push(node);
            }
            3 => {
                let length = word(structure, at) as usize;
                let name = until_nul(&strings[word(structure, at + 4) as usize..]);
                let value = structure[at + 8..at + 8 + length].to_vec();
                let node = open.last_mut().expect("in a node");
                assert!(node.children.is_empty(), "properties first");
                node.properties.push((name, value));
                at += (8 + length).next_multiple_of(4);
            }
            9 => break,
            other => panic!("token {other}"),
        }
    }
    assert_eq!(at, structure.len());
    assert_eq!(open.len(), 1, "all ended");
    let mut top = open.pop().expect("the top").children;
    assert_eq!(top.len(), 1, "one root");
    top.remove(0)
}

#[test]
fn every_kind_of_property_comes_back() {
    let mut tree = Tree::new();
    tree.begin("");
    tree.u32("one", 0x0102_0304);
    tree.u64("two", 0x0102_0304_0506_0708);
    tree.cells("cells", &[1, 2, 3]);
    tree.cells("none", &[]);
    tree.string("text", "abc");
    tree.strings("texts", &["a", "", "bcd"]);
    tree.empty("empty");
    tree.property("bytes", &[9, 8, 7, 6, 5]);
    tree.begin("child@1");
    tree.phandle(7);
    tree.begin("grandchild");
    let root = parse(&tree.finish());
    assert_eq!(root.name, "");
    assert_eq!(root.get("one"), Some([1, 2, 3, 4].as_slice()));
    assert_eq!(root.get("two"), Some([1, 2, 3, 4, 5, 6, 7, 8].as_slice()));
    assert_eq!(root.cells("cells"), [1, 2, 3]);
    assert_eq!(root.get("none"), Some([].as_slice()));
    assert_eq!(root.text("text"), "abc");
    assert_eq!(root.get("texts"), Some(b"a\0\0bcd\0".as_slice()));
    assert_eq!(root.get("empty"), Some([].as_slice()));
    assert_eq!(root.get("bytes"), Some([9, 8, 7, 6, 5].as_slice()));
    assert_eq!(root.child("child@1").cells("phandle"), [7]);
    let grandchild = root.child("child@1").child("grandchild");
    assert_eq!(grandchild.children, []);
}

#[test]
fn ends_without_beginnings_are_ignored() {
    let mut tree = Tree::new();
    tree.end();
    tree.begin("");
    tree.end();
    tree.end();
    assert_eq!(parse(&tree.finish()), Node::default());
}

#[test]
fn names_share_their_ends() {
    let mut tree = Tree::new();
    tree.begin("");
    for name in ["clock-frequency", "frequency", "clock", "frequency"] {
        tree.empty(name);
    }
    assert_eq!(tree.strings, b"clock-frequency\0clock\0");
    assert_eq!(parse(&tree.finish()).properties.len(), 4);
}

/// FNV-1a, to hold whole blobs in one number.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Lengths and hashes of what `dtc` makes of the output of
/// `spike --dump-dts -p<harts> --isa=<isa> -m<memory>`.
#[test]
fn byte_for_byte_the_tree_of_spike() {
    let small = [(0x8000_0000, 0x1000_0000), (1 << 32, 2 << 32)];
    let odd = [(0x1_0000, 0x8000), (0x8000_0000, 0x1000)];
    type Spike<'a> = (u32, &'a str, &'a [(u64, u64)], usize, u64);
    let spikes: [Spike<'_>; 4] = [
        (1, "rv64gc", &[SPIKE_MEMORY], 1642, 0xdbf7_e1aa_8efa_2b7a),
        (1, "rv32imac", &[SPIKE_MEMORY], 1642, 0x165a_f5ad_4583_c344),
        (
            4,
            "rv64imafdc_zba_zbb_zbs",
            &small,
            2774,
            0xe51a_32ec_71c9_6db5,
        ),
        (12, "RV64GCV_Zba", &odd, 5458, 0xa318_2702_f33a_59a9),
    ];
    for (harts, isa, memory, length, expected) in spikes {
        let description = Description {
            harts,
            ..Description::spike(isa, memory)
        };
        let blob = description.blob();
        assert_eq!((blob.len(), hash(&blob)), (length, expected), "{isa}");
    }
}

#[test]
fn isa_texts_as_spike_writes_them() {
    for (given, written) in [
        ("rv64gc", "rv64imafdc"),
        ("rv64imafdc_zba_zbb_zbs", "rv64imafdc_zba_zbb_zbs"),
        ("rv32imac", "rv32imac"),
        ("RV64GCV_Zba", "rv64imafdcv_zba"),
        ("rv64g_svnapot", "rv64imafd_svnapot"),
        ("rv3", "rv3"),
        ("", ""),
        ("äöü", "äöü"),
    ] {
        assert_eq!(isa_text(given), written);
    }
}

/// Our own machine with a disk.
fn virt<'a>(harts: u32, isa: &'a str, memory: &'a [Region], chosen: Chosen<'a>) -> Virt<'a> {
    const DISK: &[Virtio] = &[Virtio::Disk {
        disk: 0,
        sectors: 1,
        read_only: false,
    }];
    Virt {
        harts,
        cache_block: 64,
        isa_name: isa,
        isa: Isa::parse(isa).expect("an instruction set"),
        memory,
        equipment: Equipment::beside(memory, DISK),
        chosen,
        htif: false,
    }
}

#[test]
fn references_lead_somewhere() {
    for harts in [0, 1, 5] {
        let memory = [SPIKE_MEMORY];
        let spike = Description {
            harts,
            ..Description::spike("rv64gc", &memory)
        };
        let ram = [MEMORY];
        let own = virt(harts, "rv32imac", &ram, Chosen::default());
        for blob in [spike.blob(), own.blob()] {
            let root = parse(&blob);
            let mut phandles = Vec::new();
            let mut wanted = Vec::new();
            root.walk(&mut |node| {
                if node.get("phandle").is_some() {
                    phandles.extend(node.cells("phandle"));
                }
                if node.get("interrupts-extended").is_some() {
                    let cells = node.cells("interrupts-extended");
                    assert_eq!(cells.len(), harts as usize * 4);
                    wanted.extend(cells.into_iter().step_by(2));
                }
                for name in ["interrupt-parent", "regmap"] {
                    if node.get(name).is_some() {
                        wanted.extend(node.cells(name));
                    }
                }
            });
            let count = phandles.len();
            phandles.sort_unstable();
            phandles.dedup();
            assert_eq!(phandles.len(), count, "no two alike");
            assert!(wanted.iter().all(|p| phandles.contains(p)));
        }
    }
}

const MEMORY: Region = Region {
    base: 0x8000_0000,
    size: 0x1000_0000,
};

#[test]
fn harts_name_their_extensions_and_cache_blocks() {
    let memory = [MEMORY];
    let isa = "rv64imac_zicbom_zicboz_sstc_svinval_svnapot_svpbmt_xvendor";
    let root = parse(&virt(2, isa, &memory, Chosen::default()).blob());
    for cpu in ["cpu@0", "cpu@1"] {
        let cpu = root.child("cpus").child(cpu);
        let text = cpu.text("riscv,isa-extensions");
        let names: Vec<&str> = text.split('\0').collect();
        for name in ["zicbom", "sstc", "svinval", "svnapot", "svpbmt"] {
            let count = names.iter().filter(|known| **known == name).count();
            assert_eq!(count, 1, "{name}: {text}");
        }
        assert!(!names.contains(&"xvendor"));
        assert_eq!(cpu.cells("riscv,cbom-block-size"), [64]);
        assert_eq!(cpu.cells("riscv,cboz-block-size"), [64]);
        assert_eq!(cpu.get("riscv,cbop-block-size"), None);
    }
}

#[test]
fn our_own_machine_has_what_it_has() {
    let memory = [MEMORY];
    let root = parse(&virt(1, "rv32imac", &memory, Chosen::default()).blob());
    assert_eq!(root.text("compatible"), "hartrace,virt\0riscv-virtio");
    let chosen = root.child("chosen");
    assert_eq!(chosen.text("stdout-path"), "/soc/serial@10000000");
    assert_eq!(chosen.get("bootargs"), None);
    let cpu = root.child("cpus").child("cpu@0");
    assert_eq!(cpu.text("mmu-type"), "riscv,sv32");
    assert_eq!(cpu.text("riscv,isa"), "rv32imac");
    assert_eq!(cpu.text("riscv,isa-base"), "rv32i");
    let extensions = cpu.text("riscv,isa-extensions");
    for extension in ["i", "m", "a", "c"] {
        assert!(
            extensions.split('\0').any(|e| e == extension),
            "{extension}"
        );
    }
    assert_eq!(root.child("cpus").cells("timebase-frequency"), [10_000_000]);
    let memory = root.child("memory@80000000");
    assert_eq!(memory.cells("reg"), [0, 0x8000_0000, 0, 0x1000_0000]);
    let soc = root.child("soc");
    assert_eq!(soc.children.len(), 6);
    // Addresses and interrupts are those of QEMU's machine.
    for (name, size, interrupt) in [
        ("serial@10000000", 0x100, 10),
        ("rtc@101000", 0x1000, 11),
        ("virtio_mmio@10001000", 0x1000, 1),
    ] {
        let device = soc.child(name);
        let address = name.split('@').nth(1).expect("an address");
        let address = u32::from_str_radix(address, 16).expect("a number");
        assert_eq!(device.cells("reg"), [0, address, 0, size]);
        assert_eq!(device.cells("interrupts"), [interrupt]);
    }
    let plic = soc.child("plic@c000000");
    assert_eq!(plic.cells("reg"), [0, 0x0c00_0000, 0, 0x60_0000]);
    assert_eq!(plic.cells("riscv,ndev"), [95]);
    assert_eq!(plic.cells("interrupts-extended"), [1, 11, 1, 9]);
    let finisher = soc.child("test@100000");
    assert_eq!(finisher.cells("reg"), [0, 0x10_0000, 0, 0x1000]);
    assert_eq!(
        finisher.text("compatible"),
        "sifive,test1\0sifive,test0\0syscon"
    );
    for (name, value) in [("poweroff", 0x5555), ("reboot", 0x7777)] {
        assert_eq!(root.child(name).cells("regmap"), finisher.cells("phandle"));
        assert_eq!(root.child(name).cells("value"), [value]);
    }
    let clint = soc.child("clint@2000000");
    assert_eq!(clint.cells("interrupts-extended"), [1, 3, 1, 7]);
}

#[test]
fn devices_give_way_to_memory() {
    let page = |base| Region { base, size: 0x1000 };
    let all = [
        page(0x1000_0000),
        page(0x10_0000),
        page(0x10_1000),
        page(0x1000_1000),
        page(0x0c00_1000),
        MEMORY,
    ];
    let root = parse(&virt(1, "rv64gc", &all, Chosen::default()).blob());
    assert_eq!(root.child("soc").children.len(), 1, "the CLINT");
    assert_eq!(root.child("chosen").get("stdout-path"), None);
    assert!(root.children.iter().all(|c| c.name != "poweroff"));
    // Without a PLIC devices have no interrupts.
    let root = parse(&virt(1, "rv64gc", &all[4..], Chosen::default()).blob());
    assert_eq!(root.child("soc").children.len(), 5);
    let uart = root.child("soc").child("serial@10000000");
    assert_eq!(uart.get("interrupts"), None);
}

fn told() -> Chosen<'static> {
    Chosen {
        bootargs: Some("quiet root=/dev/vda"),
        initrd: Some((0x8400_0000, 0x1_8500_0000)),
        seed: None,
    }
}

#[test]
fn what_is_chosen_is_in_the_tree() {
    let memory = [MEMORY];
    let seed = Some([7; 32]);
    let root = parse(&virt(1, "rv64gc", &memory, Chosen { seed, ..told() }).blob());
    let chosen = root.child("chosen");
    assert_eq!(chosen.text("bootargs"), "quiet root=/dev/vda");
    assert_eq!(chosen.cells("linux,initrd-start"), [0, 0x8400_0000]);
    assert_eq!(chosen.cells("linux,initrd-end"), [1, 0x8500_0000]);
    assert_eq!(chosen.get("rng-seed"), Some([7; 32].as_slice()));
}

#[test]
fn trees_of_others_get_what_is_chosen() {
    let memory = [MEMORY];
    let plain = virt(2, "rv64gc", &memory, Chosen::default()).blob();
    // Nothing to be told leaves the tree as it is.
    assert_eq!(with_chosen(&plain, &Chosen::default()), Ok(plain.clone()));
    let with = with_chosen(&plain, &told()).expect("a tree");
    let (before, after) = (parse(&plain), parse(&with));
    let chosen = after.child("chosen");
    assert_eq!(chosen.text("bootargs"), "quiet root=/dev/vda");
    assert_eq!(chosen.text("stdout-path"), "/soc/serial@10000000");
    assert_eq!(before.children.len(), after.children.len());
    assert_eq!(before.child("soc"), after.child("soc"));
    // What was told before is replaced.
    let again = Chosen {
        bootargs: Some("single"),
        ..Chosen::default()
    };
    let again = parse(&with_chosen(&with, &again).expect("a tree"));
    let chosen = again.child("chosen");
    assert_eq!(chosen.text("bootargs"), "single");
    assert_eq!(chosen.cells("linux,initrd-start"), [0, 0x8400_0000]);
    // A tree without the node gets one.
    let mut bare = Tree::new();
    bare.begin("");
    bare.begin("cpus");
    bare.end();
    bare.end();
    let bare = parse(&with_chosen(&bare.finish(), &told()).expect("a tree"));
    assert_eq!(bare.child("chosen").text("bootargs"), "quiet root=/dev/vda");
}

#[test]
fn bytes_that_are_no_tree_are_refused() {
    let memory = [MEMORY];
    let good = virt(1, "rv64gc", &memory, Chosen::default()).blob();
    let refused = |bytes: &[u8]| with_chosen(bytes, &told()).expect_err("no tree");
    assert_eq!(refused(b""), TreeError::NotTree);
    assert_eq!(refused(b"/dts-v1/;"), TreeError::NotTree);
    let mut old = good.clone();
    old[23] = 16;
    assert_eq!(refused(&old), TreeError::Version(16));
    for len in (4..good.len()).step_by(7) {
        assert_eq!(refused(&good[..len]), TreeError::Truncated, "{len}");
    }
    let mut bad = good.clone();
    bad[59] = 7;
    assert_eq!(refused(&bad), TreeError::Damaged(56));
}

#[test]
fn hostile_trees_end() {
    let memory = [MEMORY];
    let good = virt(1, "rv64gc", &memory, Chosen::default()).blob();
    let mut random = hartrace_testkit::Random::new(7);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.index(4) {
            let at = random.index(bytes.len());
            bytes[at] = random.draw() as u8;
        }
        if let Ok(tree) = with_chosen(&bytes, &told()) {
            assert!(tree.len() < 2 * bytes.len());
        }
    }
    // Deep, and long.
    let mut deep = Tree::new();
    (0..100_000).for_each(|_| deep.begin(""));
    assert!(with_chosen(&deep.finish(), &told()).is_err());
    let mut long = Tree::new();
    long.begin("");
    (0..100_000).for_each(|_| long.empty("x"));
    assert!(with_chosen(&long.finish(), &told()).is_ok());
}

#[test]
fn the_rom_jumps_to_the_entry() {
    for (xlen, load) in [(Xlen::Rv32, 0x0182_a283u32), (Xlen::Rv64, 0x0182_b283)] {
        let rom = boot_rom(xlen, 0x1_8000_0040, &[0xaa; 4064]);
        assert_eq!(rom.len(), 4096);
        assert_eq!(rom[12..16], load.to_le_bytes());
        assert_eq!(rom[24..32], 0x1_8000_0040u64.to_le_bytes());
        assert_eq!(rom[32..], [0xaa; 4064]);
        let rom = boot_rom(xlen, 0, &[0xaa; 4065]);
        assert_eq!(rom.len(), 8192);
        assert_eq!(rom[4097..], [0; 4095]);
        assert_eq!(boot_rom(xlen, 0, &[]).len(), 4096);
    }
}
