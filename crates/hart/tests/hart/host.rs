//! The world outside: the host-target interface and semihosting (RISC-V
//! Semihosting 1.0), as programs reach them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use hartrace_hart::host::Host;
use hartrace_hart::{Machine, Platform, Program, Segment, Stop};
use hartrace_isa::Xlen;

use crate::asm::*;
use crate::bench::{BASE, NoObserver, WIDTHS, program, small};

const TOHOST: u64 = BASE + 0x1000;
const FROMHOST: u64 = BASE + 0x1040;
const BUFFER: u64 = BASE + 0x2000;

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

/// A program with the interface: a5 is tohost, a4 fromhost, a3 the buffer.
fn talking(xlen: Xlen, code: &[u32]) -> Program {
    let mut all = Vec::new();
    for (register, address) in [(A5, TOHOST), (A4, FROMHOST), (A3, BUFFER)] {
        all.push(auipc(register, ((address - BASE) >> 12) as u32));
        let back = 4 * (all.len() as i32 - 1);
        all.push(addi(register, register, (address & 0xfff) as i32 - back));
    }
    all.extend(code);
    let mut talking = program(xlen, &all);
    talking.tohost = Some(TOHOST);
    talking.fromhost = Some(FROMHOST);
    talking
}

/// Runs a program to its end: why it stopped and what it put out.
fn run(platform: Platform, program: Program, input: &'static [u8]) -> (Stop, String) {
    let out = Seen::default();
    let host = Host::new(Box::new(input), Box::new(out.clone()), Box::new(io::sink()));
    let mut config = small(platform, program.xlen);
    config.semihosting = true;
    let mut machine = Machine::new(config, host).unwrap();
    machine.load(program, None).unwrap();
    let stop = machine.run(1_000_000, &mut NoObserver);
    machine.host().finish().unwrap();
    let text = String::from_utf8(out.0.borrow().clone()).unwrap();
    (stop, text)
}

#[test]
fn an_odd_word_in_tohost_ends_the_program() {
    for platform in Platform::ALL {
        for code in [0, 1, 42, 1023] {
            let program = talking(
                Xlen::Rv64,
                &[
                    addi(A0, ZERO, code),
                    slli(A0, A0, 1),
                    ori(A0, A0, 1),
                    sd(A0, 0, A5),
                    SPIN,
                ],
            );
            assert_eq!(run(platform, program, b"").0, Stop::Exit(code as u64));
        }
    }
}

#[test]
fn our_machine_ends_with_the_store_that_asks() {
    let program = talking(Xlen::Rv64, &[addi(A0, ZERO, 1), sd(A0, 0, A5), SPIN]);
    let mut machine = Machine::new(small(Platform::Virt, Xlen::Rv64), Host::silent()).unwrap();
    machine.load(program, None).unwrap();
    assert_eq!(machine.run(1000, &mut NoObserver), Stop::Exit(0));
    assert_eq!(machine.instructions(), 8);
    assert_eq!(
        machine.run(1000, &mut NoObserver),
        Stop::Exit(0),
        "and stays ended"
    );
}

#[test]
fn rv32_writes_tohost_in_two_halves() {
    // Either half first: the host waits for the other.
    for platform in Platform::ALL {
        for halves in [
            [sw(ZERO, 4, A5), sw(A0, 0, A5)],
            [sw(A0, 0, A5), sw(ZERO, 4, A5)],
        ] {
            let mut code = vec![addi(A0, ZERO, 7 << 1 | 1)];
            code.extend(halves);
            code.push(SPIN);
            assert_eq!(
                run(platform, talking(Xlen::Rv32, &code), b"").0,
                Stop::Exit(7)
            );
        }
    }
}

#[test]
fn characters_come_out_in_order() {
    // Device 1, command 1; the program waits until tohost is free again.
    for platform in Platform::ALL {
        let mut code = vec![addi(A1, ZERO, 0x101), slli(A1, A1, 48)];
        for c in b"hi\n" {
            code.extend([
                addi(A0, A1, i32::from(*c)),
                sd(A0, 0, A5),
                ld(A2, 0, A5),
                bne(A2, ZERO, -4),
            ]);
        }
        code.extend([addi(A0, ZERO, 1), sd(A0, 0, A5), SPIN]);
        let (stop, text) = run(platform, talking(Xlen::Rv64, &code), b"");
        assert_eq!(
            (stop, text.as_str()),
            (Stop::Exit(0), "hi\n"),
            "{platform:?}"
        );
    }
}

#[test]
fn rv32_characters_come_out_as_well() {
    // The command is in the upper half: the character first, then the command.
    for platform in Platform::ALL {
        let mut code = li32(A1, 0x0101_0000).to_vec();
        for c in b"ok" {
            code.extend([
                addi(A0, ZERO, i32::from(*c)),
                sw(A0, 0, A5),
                sw(A1, 4, A5),
                lw(A2, 4, A5),
                bne(A2, ZERO, -4),
            ]);
        }
        code.extend([addi(A0, ZERO, 1), sw(ZERO, 4, A5), sw(A0, 0, A5), SPIN]);
        let (stop, text) = run(platform, talking(Xlen::Rv32, &code), b"");
        assert_eq!((stop, text.as_str()), (Stop::Exit(0), "ok"), "{platform:?}");
    }
}

/// Stores the arguments of a proxied system call in the buffer and makes it.
fn syscall(number: i32, arguments: [u32; 3]) -> Vec<u32> {
    let mut code = vec![addi(A0, ZERO, number), sd(A0, 0, A3)];
    for (i, argument) in (1..).zip(arguments) {
        code.extend(li32(A0, argument));
        code.extend([slli(A0, A0, 32), srli(A0, A0, 32), sd(A0, 8 * i, A3)]);
    }
    code.extend([
        sd(A3, 0, A5),
        ld(A2, 0, A4),
        beq(A2, ZERO, -4),
        sd(ZERO, 0, A4),
    ]);
    code
}

#[test]
fn system_calls_are_answered() {
    // 64 is write; the text is in the program.
    for platform in Platform::ALL {
        let mut code = syscall(64, [1, (BUFFER + 0x100) as u32, 6]);
        code.extend([addi(A0, ZERO, 1), sd(A0, 0, A5), SPIN]);
        let mut program = talking(Xlen::Rv64, &code);
        program.segments.push(Segment {
            addr: BUFFER + 0x100,
            size: 6,
            data: b"hello\n".to_vec(),
        });
        let (stop, text) = run(platform, program, b"");
        assert_eq!((stop, text.as_str()), (Stop::Exit(0), "hello\n"));
    }
}

#[test]
fn code_the_host_writes_is_executed() {
    // 63 is read: over code that has run before. `addi a1, zero, 5`.
    const INPUT: &[u8] = &[0x93, 0x05, 0x50, 0x00];
    assert_eq!(INPUT, addi(A1, ZERO, 5).to_le_bytes());
    for platform in Platform::ALL {
        let patch = BUFFER + 0x200;
        let call = li32(T0, patch as u32);
        let zero_extended = [slli(T0, T0, 32), srli(T0, T0, 32)];
        let mut code = [&call[..], &zero_extended, &[jalr(RA, T0, 0)]].concat();
        code.extend(syscall(63, [0, patch as u32, 4]));
        code.extend(&call);
        code.extend(zero_extended);
        code.extend([
            jalr(RA, T0, 0),
            slli(A1, A1, 1),
            ori(A1, A1, 1),
            sd(A1, 0, A5),
            SPIN,
        ]);
        let mut program = talking(Xlen::Rv64, &code);
        let old = [addi(A1, ZERO, 3), jalr(ZERO, RA, 0)];
        program.segments.push(Segment {
            addr: patch,
            size: 8,
            data: old.iter().flat_map(|word| word.to_le_bytes()).collect(),
        });
        assert_eq!(
            run(platform, program, INPUT).0,
            Stop::Exit(5),
            "{platform:?}"
        );
    }
}

/// The three instructions of a call.
const CALL: [u32; 3] = [0x01f0_1013, EBREAK, 0x4070_5013];

#[test]
fn semihosting_ends_the_program() {
    // SYS_EXIT_EXTENDED (0x20): reason and code in a block.
    for platform in Platform::ALL {
        for xlen in WIDTHS {
            let wide = xlen == Xlen::Rv64;
            let (store, size) = if wide {
                (sd as fn(u32, i32, u32) -> u32, 8)
            } else {
                (sw as _, 4)
            };
            let mut code = li32(A0, 0x20026).to_vec();
            code.extend([store(A0, 0, A3), addi(A0, ZERO, 9), store(A0, size, A3)]);
            code.extend([addi(A0, ZERO, 0x20), addi(A1, A3, 0)]);
            code.extend(CALL);
            let (stop, _) = run(platform, talking(xlen, &code), b"");
            assert_eq!(stop, Stop::Exit(9), "{platform:?} {xlen:?}");
        }
    }
}

#[test]
fn semihosting_writes_and_goes_on() {
    // SYS_WRITEC (3): a1 points at the character.
    for platform in Platform::ALL {
        let mut code = vec![
            addi(A0, ZERO, 33),
            sb(A0, 0, A3),
            addi(A1, A3, 0),
            addi(A0, ZERO, 3),
        ];
        code.extend(CALL);
        code.extend([addi(A0, ZERO, 1), sd(A0, 0, A5), SPIN]);
        let (stop, text) = run(platform, talking(Xlen::Rv64, &code), b"");
        assert_eq!((stop, text.as_str()), (Stop::Exit(0), "!"));
    }
}

#[test]
fn an_ebreak_is_a_call_only_in_its_frame_and_when_served() {
    let ends = |semihosting: bool, code: &[u32], platform: Platform| {
        let mut config = small(platform, Xlen::Rv64);
        config.semihosting = semihosting;
        let mut machine = Machine::new(config, Host::silent()).unwrap();
        // SYS_EXIT (0x18) with a block that says "exit"; traps end with 7.
        let mut all = li32(A0, 0x20026).to_vec();
        all.extend([sd(A0, 0, A3), sd(ZERO, 8, A3), addi(A1, A3, 0)]);
        all.extend([addi(T1, A3, 0x400), csrw(0x305, T1), addi(A0, ZERO, 0x18)]);
        all.extend(code);
        let mut program = talking(Xlen::Rv64, &all);
        let handler = [addi(A0, ZERO, 15), sd(A0, 0, A5), SPIN];
        program.segments.push(Segment {
            addr: BUFFER + 0x400,
            size: 12,
            data: handler.iter().flat_map(|word| word.to_le_bytes()).collect(),
        });
        machine.load(program, None).unwrap();
        machine.run(100_000, &mut NoObserver)
    };
    for platform in Platform::ALL {
        assert_eq!(ends(true, &CALL, platform), Stop::Exit(0));
        assert_eq!(ends(false, &CALL, platform), Stop::Exit(7), "a trap");
        assert_eq!(ends(true, &[NOP, EBREAK, NOP], platform), Stop::Exit(7));
        assert_eq!(ends(true, &[CALL[0], EBREAK, NOP], platform), Stop::Exit(7));
        assert_eq!(ends(true, &[NOP, EBREAK, CALL[2]], platform), Stop::Exit(7));
    }
}

#[test]
fn a_program_without_the_interface_stores_where_it_likes() {
    let mut program = talking(Xlen::Rv64, &[addi(A0, ZERO, 1), sd(A0, 0, A5), SPIN]);
    program.tohost = None;
    let (stop, _) = run(Platform::Virt, program, b"");
    assert_eq!(stop, Stop::Spins { pc: BASE + 32 });
}
