//! Devices of our own machine besides the CLINT: a UART with the registers of a
//! 16550, and the test finisher.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use hartrace_flow::{Effects, Mode, Model, Place, Step};
use hartrace_hart::host::{Host, Note};
use hartrace_hart::{Config, Platform, Region, Stop};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, Bench, WIDTHS, csr, small, traps, virt};

const UART: u64 = 0x1000_0000;
const FINISHER: u64 = 0x10_0000;

/// An output that can be looked at.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<u8>>>);

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A bench with the UART in a1 and the finisher in a2, and what it puts out.
fn listening(config: Config) -> (Bench, Seen) {
    let seen = Seen::default();
    let host = Host::new(
        Box::new(io::empty()),
        Box::new(seen.clone()),
        Box::new(io::sink()),
    );
    let mut b = Bench::with_host(config, host);
    b.set_x(A1, UART);
    b.set_x(A2, FINISHER);
    (b, seen)
}

fn heard(b: &mut Bench, seen: &Seen) -> String {
    b.m.host().finish().unwrap();
    String::from_utf8(seen.0.borrow().clone()).unwrap()
}

/// `li a0, value; store`, a value of one lui and one addi.
fn store(value: u32, store: u32) -> [u32; 3] {
    let [high, low] = li32(A0, value);
    [high, low, store]
}

#[test]
fn what_is_sent_goes_to_the_console_in_order() {
    for xlen in WIDTHS {
        let (mut b, seen) = listening(virt(xlen));
        let mut code = Vec::new();
        for byte in b"hello\n" {
            // Until the transmitter is free, as every driver does.
            code.extend([lbu(A3, 5, A1), andi(A3, A3, 0x20), beq(A3, ZERO, -8)]);
            code.extend([addi(A0, ZERO, i32::from(*byte)), sb(A0, 0, A1)]);
        }
        let steps = b.exec(&code);
        assert_eq!(steps.len(), code.len());
        // What somebody sees of it is the store.
        let access = steps[4].1.accesses[0];
        assert_eq!((access.addr, access.data), (UART, Some(u64::from(b'h'))));
        assert_eq!(heard(&mut b, &seen), "hello\n");
    }
}

#[test]
fn other_modes_reach_it_as_protection_lets_them() {
    // Privileged 3.7: an entry without rights over everything below RAM.
    let (mut b, seen) = listening(virt(Xlen::Rv64));
    b.set_x(A0, u64::from(b'u'));
    b.set_mode(Mode::U);
    b.one(sb(A0, 0, A1));
    b.set_csr(csr::PMPADDR0 + 1, u64::MAX);
    b.set_csr(csr::PMPADDR0, BASE >> 2);
    b.set_csr(csr::PMPCFG0, 0x0f_08);
    assert_eq!(b.fault(&[sb(A0, 0, A1)]).0, 7);
    assert_eq!(heard(&mut b, &seen), "u");
}

#[test]
fn registers_hold_what_is_written() {
    // 16550: which bits there are, and the divisor behind DLAB.
    let (mut b, seen) = listening(virt(Xlen::Rv64));
    let load = |b: &mut Bench, offset| {
        b.one(lbu(A3, offset, A1));
        b.x(A3)
    };
    let write = |b: &mut Bench, offset, value| {
        b.set_x(A0, value);
        b.one(sb(A0, offset, A1));
    };
    // After reset: nothing received, no interrupt, ready to send, connected.
    let first: Vec<u64> = (0..8).map(|offset| load(&mut b, offset)).collect();
    assert_eq!(first, [0, 0, 0x01, 0, 0, 0x60, 0xb0, 0]);
    for offset in [1, 3, 4, 7] {
        write(&mut b, offset, 0x7f);
    }
    let all: Vec<u64> = (0..8).map(|offset| load(&mut b, offset)).collect();
    // The transmitter is empty; the modem lines are looped back.
    assert_eq!(all, [0, 0x0f, 0x02, 0x7f, 0x1f, 0x60, 0xf0, 0x7f]);
    write(&mut b, 4, 0);
    write(&mut b, 2, 7);
    assert_eq!(load(&mut b, 2), 0xc1, "FIFOs");
    write(&mut b, 2, 0);
    assert_eq!(load(&mut b, 2), 0x01);
    // Status is read-only.
    write(&mut b, 5, 0);
    write(&mut b, 6, 0);
    assert_eq!((load(&mut b, 5), load(&mut b, 6)), (0x60, 0xb0));
    // A divisor is not sent.
    write(&mut b, 3, 0x83);
    write(&mut b, 0, 0x41);
    write(&mut b, 1, 0x42);
    assert_eq!((load(&mut b, 0), load(&mut b, 1)), (0x41, 0x42));
    write(&mut b, 3, 0x03);
    assert_eq!((load(&mut b, 0), load(&mut b, 1)), (0, 0x0f));
    assert_eq!(heard(&mut b, &seen), "");
    write(&mut b, 0, 0x43);
    assert_eq!(heard(&mut b, &seen), "C");
}

#[test]
fn wide_accesses_reach_one_register() {
    let (mut b, seen) = listening(virt(Xlen::Rv64));
    b.set_x(A0, 0x4847_4645_4443_4241);
    b.exec(&[
        sw(A0, 0, A1),
        sh(A0, 0, A1),
        sd(A0, 0, A1),
        lw(A3, 4, A1),
        lbu(A4, 5, A1),
    ]);
    assert_eq!((b.x(A3), b.x(A4)), (0, 0x60));
    assert_eq!(heard(&mut b, &seen), "AAA");
}

#[test]
fn nothing_is_behind_the_registers() {
    let (mut b, _) = listening(virt(Xlen::Rv64));
    for offset in [8, 0x14, 0xff, 0x100] {
        assert_eq!(
            b.fault(&[lbu(A0, offset, A1)]),
            (5, BASE, UART + offset as u64)
        );
        assert_eq!(
            b.fault(&[sb(A0, offset, A1)]),
            (7, BASE, UART + offset as u64)
        );
    }
    assert_eq!(b.fault(&[sb(A0, -1, A1)]).0, 7);
    // Nor is there code in it.
    b.set_pc(UART);
    let steps = b.steps(1);
    assert_eq!(traps(&steps)[0].tval, Some(UART));
}

#[test]
fn a_word_ends_the_run() {
    for xlen in WIDTHS {
        for (word, code) in [
            (0x5555, 0),
            (0x0001_3333, 1),
            (0x002a_3333, 42),
            (0xffff_3333, 0xffff),
            (0x0000_3333, 1),
            (0x0007_5555, 0),
        ] {
            let (mut b, _) = listening(virt(xlen));
            b.code(BASE, &store(word, sw(A0, 0, A2)));
            assert_eq!(b.run(1000), Stop::Exit(code), "{word:#x}");
            assert_eq!(b.m.instructions(), 3, "on the very instruction");
            assert_eq!(b.run(1000), Stop::Exit(code), "for good");
            assert!(b.m.host().take_notes().is_empty());
        }
        // A halfword is enough where there is no code to be told.
        let (mut b, _) = listening(virt(xlen));
        b.code(BASE, &store(0x5555, sh(A0, 0, A2)));
        assert_eq!(b.run(1000), Stop::Exit(0));
    }
}

#[test]
fn a_reset_ends_the_run_with_a_note() {
    let (mut b, _) = listening(virt(Xlen::Rv64));
    b.code(BASE, &store(0x7777, sw(A0, 0, A2)));
    assert_eq!(b.run(1000), Stop::Exit(0));
    assert_eq!(b.m.host().take_notes(), [Note::Reset]);
}

#[test]
fn other_words_and_places_end_nothing() {
    let (mut b, _) = listening(virt(Xlen::Rv64));
    for code in [
        store(0x1234, sw(A0, 0, A2)),
        store(0, sw(A0, 0, A2)),
        store(0x5555, sw(A0, 4, A2)),
        [lw(A0, 0, A2), NOP, lhu(A3, 2, A2)],
    ] {
        assert_eq!(b.exec(&code).len(), 3);
        b.code(BASE, &[NOP, NOP, NOP]);
        assert_eq!(b.run(1), Stop::Limit);
    }
    assert_eq!((b.x(A0), b.x(A3)), (0, 0));
    // It has no bytes and no doublewords.
    b.set_x(A0, 0x5555);
    for word in [sb(A0, 0, A2), sd(A0, 0, A2)] {
        assert_eq!(b.fault(&[word]).0, 7);
    }
    for word in [lbu(A0, 0, A2), ld(A0, 0, A2)] {
        assert_eq!(b.fault(&[word]).0, 5);
    }
    assert_eq!(b.fault(&[sw(A0, -4, A2)]).0, 7);
}

#[test]
fn the_first_word_counts() {
    let (mut b, _) = listening(virt(Xlen::Rv64));
    b.m.write(Place::Pc, BASE).unwrap();
    let code = [
        store(0x0005_3333, sw(A0, 0, A2)),
        store(0x5555, sw(A0, 0, A2)),
    ];
    b.code(BASE, &code.concat());
    // A model goes on behind it: whether a run has ended is not its business.
    let mut effects = Effects::default();
    for _ in 0..6 {
        assert!(matches!(b.m.step(&mut effects), Step::Insn(_)));
    }
    assert_eq!(b.run(10), Stop::Exit(5));
    b.m.reset();
    b.code(BASE, &[NOP; 20]);
    assert_eq!(b.run(10), Stop::Limit);
}

#[test]
fn ram_is_stronger_than_devices() {
    let mut config = virt(Xlen::Rv64);
    let page = |base| Region { base, size: 0x1000 };
    config.memory.extend([page(UART), page(FINISHER)]);
    assert!(config.validate().is_ok());
    let (mut b, seen) = listening(config);
    b.set_x(A0, 0x5555);
    let steps = b.exec(&[
        sw(A0, 0, A1),
        lw(A3, 0, A1),
        lbu(A4, 5, A1),
        sw(A0, 0, A2),
        lw(A5, 0, A2),
    ]);
    assert_eq!(steps.len(), 5);
    assert_eq!((b.x(A3), b.x(A4), b.x(A5)), (0x5555, 0, 0x5555));
    assert_eq!(b.run(1), Stop::Limit);
    assert_eq!(heard(&mut b, &seen), "");
}

#[test]
fn the_boot_rom_does_not_hide_devices() {
    // RAM from 0 on, where the ROM usually is.
    let mut config = virt(Xlen::Rv64);
    for (size, finisher) in [(0x10_0000, true), (0x100_0000, false)] {
        config.memory = vec![
            Region { base: 0, size },
            Region {
                base: BASE,
                size: 1 << 20,
            },
        ];
        assert!(config.validate().is_ok());
        let rom = config.boot_rom();
        assert!(rom != UART && rom != FINISHER);
        let (mut b, seen) = listening(config.clone());
        b.set_x(A0, u64::from(b'!'));
        b.one(sb(A0, 0, A1));
        assert_eq!(heard(&mut b, &seen), "!");
        b.code(BASE, &store(0x5555, sw(A0, 0, A2)));
        b.code(BASE + 12, &[NOP; 8]);
        b.set_pc(BASE);
        let stop = if finisher { Stop::Exit(0) } else { Stop::Limit };
        assert_eq!(b.run(5), stop);
    }
}

#[test]
fn spike_has_none_of_them() {
    let (mut b, _) = listening(small(Platform::Spike, Xlen::Rv64));
    for word in [sb(A0, 0, A1), sw(A0, 0, A2)] {
        assert_eq!(b.fault(&[word]).0, 7);
    }
    for word in [lbu(A0, 5, A1), lw(A0, 0, A2)] {
        assert_eq!(b.fault(&[word]).0, 5);
    }
}

#[test]
fn a_store_over_two_pages_may_end_in_a_device() {
    let mut config = virt(Xlen::Rv64);
    let base = UART - 0x1000;
    config.memory.push(Region { base, size: 0x1000 });
    let (mut b, seen) = listening(config);
    b.set_x(A0, 0x4443_4241);
    b.one(sw(A0, -2, A1));
    assert_eq!(b.mem(UART - 2, 2), 0x4241);
    // The part in the device is a halfword, for one register.
    assert_eq!(heard(&mut b, &seen), "C");
    b.one(lbu(A3, 1, A1));
    assert_eq!(b.x(A3), 0);
}
