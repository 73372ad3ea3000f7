//! Loads and stores (unprivileged manual, 2.6 and 4.3; privileged manual, 3.6
//! and the exception codes of 3.1.15).

use hartrace_hart::{Platform, Region};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, CLINT, DATA, SIZE, WIDTHS, small, virt};

const LOAD_MISALIGNED: u32 = 4;
const LOAD_ACCESS: u32 = 5;
const STORE_MISALIGNED: u32 = 6;
const STORE_ACCESS: u32 = 7;

/// The bytes 0x80, 0x81, ... as a little-endian number.
fn pattern(len: u64) -> u64 {
    (0..len).map(|i| (0x80 + i) << (8 * i)).sum()
}

fn fill(bench: &mut Bench, addr: u64, len: u64) {
    for i in 0..len {
        bench.set_mem(addr + i, 1, 0x80 + i);
    }
}

/// A load of every kind, its size and whether it extends the sign.
fn loads(xlen: Xlen) -> Vec<(u32, u64, bool)> {
    let mut all = vec![
        (lb(A0, 0, A1), 1, true),
        (lbu(A0, 0, A1), 1, false),
        (lh(A0, 0, A1), 2, true),
        (lhu(A0, 0, A1), 2, false),
        (lw(A0, 0, A1), 4, true),
    ];
    if xlen == Xlen::Rv64 {
        all.extend([(lwu(A0, 0, A1), 4, false), (ld(A0, 0, A1), 8, true)]);
    }
    all
}

fn stores(xlen: Xlen) -> Vec<(u32, u64)> {
    let mut all = vec![(sb(A0, 0, A1), 1), (sh(A0, 0, A1), 2), (sw(A0, 0, A1), 4)];
    if xlen == Xlen::Rv64 {
        all.push((sd(A0, 0, A1), 8));
    }
    all
}

fn extended(value: u64, len: u64, signed: bool, xlen: Xlen) -> u64 {
    let above = 64 - 8 * len as u32;
    let value = value << above;
    xlen.wrap(if signed {
        ((value as i64) >> above) as u64
    } else {
        value >> above
    })
}

#[test]
fn loads_are_little_endian_and_extend() {
    // 2.6, 4.3.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        fill(&mut b, DATA, 8);
        b.set_x(A1, DATA);
        for (word, len, signed) in loads(xlen) {
            b.one(word);
            assert_eq!(
                b.x(A0),
                extended(pattern(len), len, signed, xlen),
                "{word:08x}"
            );
        }
        // Positive values stay as they are.
        b.set_mem(DATA, 8, 0x7f7f_7f7f_7f7f_7f7f);
        for (word, len, _) in loads(xlen) {
            b.one(word);
            assert_eq!(b.x(A0), 0x7f7f_7f7f_7f7f_7f7f & u64::MAX >> (64 - 8 * len));
        }
    }
}

#[test]
fn stores_write_the_low_bytes_and_no_others() {
    // 2.6, 4.3.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_x(A0, 0x8877_6655_4433_2211);
        b.set_x(A1, DATA);
        for (word, len) in stores(xlen) {
            b.set_mem(DATA, 8, u64::MAX);
            b.one(word);
            let mask = u64::MAX.checked_shl(8 * len as u32).unwrap_or(0);
            assert_eq!(
                b.mem(DATA, 8),
                mask | 0x8877_6655_4433_2211 & !mask,
                "{word:08x}"
            );
        }
    }
}

#[test]
fn offsets_are_sign_extended() {
    // 2.6.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        b.set_mem(DATA, 4, 42);
        b.set_x(A1, DATA + 2048);
        b.one(lw(A0, -2048, A1));
        assert_eq!(b.x(A0), 42);
        b.set_x(A1, DATA - 2047);
        b.one(sb(A0, 2047, A1));
        assert_eq!(b.mem(DATA, 1), 42);
    }
}

#[test]
fn misaligned_accesses_are_done_where_the_machine_does_them() {
    // 2.6: "the EEI may guarantee that misaligned loads and stores are fully
    // supported"; across a page as well.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        for at in [
            DATA + 1,
            DATA + 3,
            DATA + 0xfff,
            DATA + 0xffb,
            DATA + 0x1ffd,
        ] {
            fill(&mut b, at, 8);
            b.set_x(A1, at);
            for (word, len, signed) in loads(xlen) {
                b.one(word);
                assert_eq!(
                    b.x(A0),
                    extended(pattern(len), len, signed, xlen),
                    "{at:#x}"
                );
            }
            b.set_x(A0, pattern(8));
            for (word, len) in stores(xlen) {
                (0..8).for_each(|i| b.set_mem(at + i, 1, 0));
                b.one(word);
                assert!((0..8).all(|i| b.mem(at + i, 1) == if i < len { 0x80 + i } else { 0 }));
            }
        }
    }
}

#[test]
fn misaligned_accesses_trap_where_the_machine_does_not_do_them() {
    // Priv. 3.1.15, codes 4 and 6; xtval is the address (3.1.16).
    for xlen in WIDTHS {
        for platform in Platform::ALL {
            let mut config = small(platform, xlen);
            config.misaligned = false;
            let mut b = Bench::new(config);
            b.set_x(A1, DATA + 1);
            for (word, len, _) in loads(xlen) {
                if len > 1 {
                    b.set_x(A0, 77);
                    assert_eq!(b.fault(&[word]), (LOAD_MISALIGNED, BASE, DATA + 1));
                    assert_eq!(b.x(A0), 77, "nothing is written");
                }
            }
            for (word, len) in stores(xlen) {
                if len > 1 {
                    assert_eq!(b.fault(&[word]), (STORE_MISALIGNED, BASE, DATA + 1));
                    assert_eq!(b.mem(DATA, 8), 0, "nothing is written");
                }
            }
        }
    }
}

#[test]
fn zicclsm_does_misaligned_accesses() {
    // Profiles: Zicclsm, misaligned accesses to cacheable main memory.
    let mut config = virt(Xlen::Rv64);
    config.misaligned = false;
    config.isa = "rv64imac_zicclsm".to_owned();
    let mut b = Bench::new(config);
    fill(&mut b, DATA + 5, 8);
    b.set_x(A1, DATA + 5);
    b.one(ld(A0, 0, A1));
    assert_eq!(b.x(A0), pattern(8));
}

#[test]
fn nothing_outside_memory_answers() {
    // Priv. 3.6.1, codes 5 and 7: vacant addresses raise access faults.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let top = xlen.wrap(0xffff_ffff_ffff_fff8);
        for at in [
            0,
            0x500,
            BASE - 8,
            BASE + SIZE,
            CLINT - 8,
            CLINT + 0xc_0000,
            top,
        ] {
            b.set_x(A1, at);
            for (word, ..) in loads(xlen) {
                b.set_x(A0, 77);
                assert_eq!(b.fault(&[word]), (LOAD_ACCESS, BASE, at));
                assert_eq!(b.x(A0), 77);
            }
            for (word, _) in stores(xlen) {
                assert_eq!(b.fault(&[word]), (STORE_ACCESS, BASE, at));
            }
        }
    }
}

#[test]
fn the_last_bytes_of_memory_are_there_and_no_more() {
    // Priv. 3.6.1; a misaligned access names the part that fails (3.1.16).
    let mut b = Bench::rv64();
    let end = BASE + SIZE;
    b.set_x(A1, end - 8);
    b.set_x(A0, pattern(8));
    b.one(sd(A0, 0, A1));
    b.one(ld(A2, 0, A1));
    assert_eq!(b.x(A2), pattern(8));
    assert_eq!(b.fault(&[ld(A2, 4, A1)]), (LOAD_ACCESS, BASE, end));
    assert_eq!(b.fault(&[sd(A2, 4, A1)]).0, STORE_ACCESS);
    assert_eq!(b.fault(&[ld(A2, -0x100, ZERO)]).0, LOAD_ACCESS);
}

#[test]
fn rom_can_be_read_and_not_written() {
    // Priv. 3.6.1: writes to a read-only region are access faults.
    for xlen in WIDTHS {
        let mut b = Bench::of(xlen);
        let rom = hartrace_hart::fdt::BOOT_ROM;
        b.set_x(A1, rom);
        b.one(lw(A0, 0, A1));
        assert_eq!(b.x(A0), 0x297, "auipc t0, 0");
        for (word, _) in stores(xlen) {
            assert_eq!(b.fault(&[word]), (STORE_ACCESS, BASE, rom));
        }
        assert_eq!(b.fault(&[sw(A0, 2, A1)]), (STORE_ACCESS, BASE, rom + 2));
        b.set_x(A1, rom);
        b.one(lw(A0, 0, A1));
        assert_eq!(b.x(A0), 0x297);
    }
}

#[test]
fn rv32_addresses_wrap() {
    // 2.6 and 1.4: address arithmetic is modulo 2^XLEN; the highest address is
    // next to the lowest.
    let mut config = virt(Xlen::Rv32);
    config.memory.push(Region {
        base: 0,
        size: 0x1000,
    });
    config.memory.push(Region {
        base: 0xffff_f000,
        size: 0x1000,
    });
    let mut b = Bench::new(config);
    b.set_mem(0xffff_fffc, 4, 0x4433_2211);
    b.set_mem(0, 4, 0x8877_6655);
    b.set_x(A1, 0xffff_fffe);
    b.one(lw(A0, 0, A1));
    assert_eq!(b.x(A0), 0x6655_4433);
    b.one(lw(A0, 2, A1));
    assert_eq!(b.x(A0), 0x8877_6655);
    b.one(lhu(A0, 6, A1));
    assert_eq!(b.x(A0), 0, "0x4");
    b.set_x(A0, 0xaabb_ccdd);
    b.one(sw(A0, 0, A1));
    assert_eq!(
        (b.mem(0xffff_fffc, 4), b.mem(0, 4)),
        (0xccdd_2211, 0x8877_aabb)
    );
    b.set_x(A1, 0);
    b.one(lw(A0, -4, A1));
    assert_eq!(b.x(A0), 0xccdd_2211);
}

#[test]
fn rv32_programs_run_over_the_end_of_the_address_space() {
    // 1.4: the same for the program counter.
    let mut config = virt(Xlen::Rv32);
    config.memory.push(Region {
        base: 0,
        size: 0x1000,
    });
    config.memory.push(Region {
        base: 0xffff_f000,
        size: 0x1000,
    });
    let mut b = Bench::new(config);
    b.code(0xffff_fff8, &[addi(A0, ZERO, 1)]);
    b.halfwords(0xffff_fffc, &[C_NOP]);
    // An instruction half before and half behind the end.
    let split = addi(A1, ZERO, 2);
    b.halfwords(0xffff_fffe, &[split]);
    b.halfwords(0, &[split >> 16]);
    b.halfwords(2, &[C_NOP]);
    b.code(4, &[jal(RA, -16)]);
    b.set_pc(0xffff_fff8);
    let steps = b.steps(5);
    let pcs: Vec<u64> = crate::bench::insns(&steps).iter().map(|i| i.pc).collect();
    assert_eq!(pcs, [0xffff_fff8, 0xffff_fffc, 0xffff_fffe, 2, 4]);
    assert_eq!((b.x(A0), b.x(A1), b.x(RA)), (1, 2, 8));
    assert_eq!(b.m.pc(), 0xffff_fff4);
}

#[test]
fn several_regions_of_memory_are_as_good_as_one() {
    // Priv. 3.6: the map is the platform's; neighbours join.
    let mut config = virt(Xlen::Rv64);
    let next = BASE + SIZE;
    config.memory.push(Region {
        base: next,
        size: 0x1000,
    });
    let mut b = Bench::new(config);
    b.set_x(A1, next - 4);
    b.set_x(A0, 0x8877_6655_4433_2211);
    b.one(sd(A0, 0, A1));
    assert_eq!(
        (b.mem(next - 4, 4), b.mem(next, 4)),
        (0x4433_2211, 0x8877_6655)
    );
    b.one(ld(A2, 0, A1));
    assert_eq!(b.x(A2), 0x8877_6655_4433_2211);
    b.set_x(A1, next);
    b.one(sw(A1, 0, A1));
    b.one(lwu(A2, 0, A1));
    assert_eq!(b.x(A2), next & 0xffff_ffff);
}

#[test]
fn memory_beside_the_largest_region_holds_data_and_code() {
    // The largest region has a way of its own; the others come before and
    // behind it in every sense.
    let (low, high) = (0x1000_0000, BASE + SIZE);
    let region = |base| Region { base, size: 0x2000 };
    for xlen in WIDTHS {
        let mut config = virt(xlen);
        config.memory.insert(0, region(high));
        config.memory.push(region(low));
        let mut b = Bench::new(config);
        for base in [low, high] {
            b.set_x(A1, base + 0x1000);
            b.set_x(A0, 0x7766_5544);
            for (store, load, offset) in [
                (sb(A0, 1, A1), lbu(A2, 1, A1), 1),
                (sh(A0, 2, A1), lhu(A2, 2, A1), 2),
                (sw(A0, 4, A1), lw(A2, 4, A1), 4),
                (sw(A0, -2, A1), lw(A2, -2, A1), -2),
            ] {
                // Twice: the second time the page is known.
                for _ in 0..2 {
                    let steps = b.exec(&[store, load]);
                    let access = steps[0].1.accesses[0];
                    let addr = (base + 0x1000).wrapping_add_signed(offset);
                    assert_eq!((access.addr, access.paddr), (addr, Some(addr)));
                    assert_eq!(access.data, Some(b.x(A2)));
                    assert_eq!(b.mem(addr, 1 << access.size), b.x(A2));
                }
            }
            // Code there, which changes itself.
            b.set_x(A0, addi(A3, A3, 64).into());
            b.code(base + 0x1000, &[addi(A3, ZERO, 1), sw(A0, 8, A1), NOP]);
            b.set_pc(base + 0x1000);
            b.steps(3);
            assert_eq!(b.x(A3), 65);
            let amo = b.exec(&[lr_w(A2, A1), sc_w(A3, A0, A1), amoadd_w(A2, A0, A1)]);
            assert_eq!(amo[1].1.regs[0].value, 0);
            assert_eq!(amo[2].1.accesses[0].operand, Some(b.x(A0)));
        }
        // Nothing is before or behind.
        b.set_x(A1, low - 4);
        assert_eq!(b.fault(&[lw(A2, 0, A1)]).0, 5);
        b.set_x(A1, high + 0x2000);
        assert_eq!(b.fault(&[sw(A2, 0, A1)]).0, 7);
    }
}
