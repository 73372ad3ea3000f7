use super::super::tests::{Folder, Ram, Typed, host};
use super::super::{Files, Host, Note};
use super::*;
use std::collections::VecDeque;

const TOHOST: u64 = 0x8000_0000;
const FROMHOST: u64 = 0x8000_0040;
const CALL: u64 = 0x8000_0080;
const DATA: u64 = 0x8000_0100;

fn ram() -> Ram {
    Ram::new(TOHOST, 0x4000)
}

/// Stores a request and looks once.
fn ask(htif: &mut Htif, host: &mut Host, ram: &mut Ram, request: u64) -> Option<u64> {
    ram.put_words(TOHOST, &[request]);
    let exit = htif.poll(host, ram, TOHOST, FROMHOST);
    assert_eq!(ram.word(TOHOST), 0, "taken");
    exit
}

/// Makes a system call, takes the answer and gives the result.
fn call(host: &mut Host, ram: &mut Ram, words: [u64; 8]) -> i64 {
    let mut htif = Htif::new();
    ram.put_words(FROMHOST, &[0]);
    ram.put_words(CALL, &words);
    assert_eq!(ask(&mut htif, host, ram, CALL), None);
    assert_eq!(ram.word(FROMHOST), 1);
    assert_eq!(
        (1..8).map(|i| ram.word(CALL + 8 * i)).collect::<Vec<_>>(),
        words[1..],
        "arguments stay"
    );
    ram.word(CALL) as i64
}

fn quiet_call(words: [u64; 8]) -> i64 {
    call(&mut Host::silent(), &mut ram(), words)
}

#[test]
fn exit_codes() {
    for (request, code) in [
        (1, 0),
        (3, 1),
        (0x2b, 21),
        (1337 << 1 | 1, 1337),
        // Kept in 32 bits, signed.
        (0xffff_ffff, u64::MAX),
        (0x1_0000_0001, 0),
        (0x7fff_ffff, 0x3fff_ffff),
    ] {
        let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
        let exit = ask(&mut htif, &mut host, &mut ram, request);
        assert_eq!(exit, Some(code), "{request:#x}");
        assert_eq!(ram.word(FROMHOST), 0, "no answer to the end");
        ram.put_words(TOHOST, &[5]);
        let again = htif.poll(&mut host, &mut ram, TOHOST, FROMHOST);
        assert_eq!(again, Some(code), "it has ended");
        assert_eq!(ram.word(TOHOST), 5, "nobody looks any more");
    }
}

#[test]
fn exit_by_system_call_is_answered() {
    for (code, expected) in [(0, 0), (7, 7), (u64::MAX, u64::MAX), (0x8000_0000, 0)] {
        let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
        ram.put_words(CALL, &[93, code]);
        let exit = ask(&mut htif, &mut host, &mut ram, CALL);
        assert_eq!(exit, Some(expected), "{code:#x}");
        assert_eq!(ram.word(FROMHOST), 1);
        assert_eq!(ram.word(CALL), 0);
    }
}

#[test]
fn nothing_asked_or_no_interface() {
    let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
    assert_eq!(htif.poll(&mut host, &mut ram, TOHOST, FROMHOST), None);
    assert_eq!(htif.poll(&mut host, &mut ram, 0, 0), None);
    assert_eq!(host.take_notes(), []);
    assert_eq!(htif.poll(&mut host, &mut ram, 0x10, FROMHOST), None);
    let notes = host.take_notes();
    assert_eq!(notes[0].to_string(), "no memory at 0x10, given as tohost");
}

#[test]
fn characters_out_have_no_answer() {
    let (mut host, out, err) = host(b"");
    let (mut htif, mut ram) = (Htif::new(), ram());
    for byte in b"hi\n" {
        let request = 1 << 56 | 1 << 48 | u64::from(*byte);
        assert_eq!(ask(&mut htif, &mut host, &mut ram, request), None);
        assert_eq!(ram.word(FROMHOST), 0);
    }
    // Of a payload only the low byte counts.
    ask(
        &mut htif,
        &mut host,
        &mut ram,
        1 << 56 | 1 << 48 | 0xabcd_ef21,
    );
    assert!(host.finish().is_ok());
    assert_eq!(out.text(), "hi\n!");
    assert_eq!(err.text(), "");
}

#[test]
fn characters_in_one_per_request_when_fromhost_is_free() {
    let (mut host, _, _) = host(b"ab");
    let (mut htif, mut ram) = (Htif::new(), ram());
    let getc = 1 << 56;
    ask(&mut htif, &mut host, &mut ram, getc);
    assert_eq!(ram.word(FROMHOST), getc | 0x100 | u64::from(b'a'));
    // The first answer is not taken yet: the second one waits.
    ask(&mut htif, &mut host, &mut ram, getc);
    assert_eq!(ram.word(FROMHOST), getc | 0x100 | u64::from(b'a'));
    ram.put_words(FROMHOST, &[0]);
    htif.poll(&mut host, &mut ram, TOHOST, FROMHOST);
    assert_eq!(ram.word(FROMHOST), getc | 0x100 | u64::from(b'b'));
    // At the end of the input a request is never answered.
    ram.put_words(FROMHOST, &[0]);
    ask(&mut htif, &mut host, &mut ram, getc);
    htif.poll(&mut host, &mut ram, TOHOST, FROMHOST);
    assert_eq!(ram.word(FROMHOST), 0);
    assert_eq!(host.take_notes(), []);
}

#[test]
fn a_character_that_comes_later_is_given_later() {
    let typed = VecDeque::from([None, None, Some(b'x')]);
    let mut host = Host::new(
        Box::new(Typed(typed)),
        Box::new(io::sink()),
        Box::new(io::sink()),
    );
    let (mut htif, mut ram) = (Htif::new(), ram());
    ask(&mut htif, &mut host, &mut ram, 1 << 56);
    assert_eq!(ram.word(FROMHOST), 0);
    htif.poll(&mut host, &mut ram, TOHOST, FROMHOST);
    assert_eq!(ram.word(FROMHOST), 0);
    htif.poll(&mut host, &mut ram, TOHOST, FROMHOST);
    assert_eq!(ram.word(FROMHOST), 1 << 56 | 0x178);
}

#[test]
fn names_of_devices_and_commands() {
    for (device, what, name) in [
        (0, 0, "syscall"),
        (0, 1, ""),
        (0, 255, "syscall_proxy"),
        (1, 0, "read"),
        (1, 1, "write"),
        (1, 255, "bcd"),
        (2, 255, ""),
        (255, 0, ""),
    ] {
        let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
        ram.put(DATA, &[0xaa; 80]);
        let request = device << 56 | 255 << 48 | DATA << 8 | what;
        assert_eq!(ask(&mut htif, &mut host, &mut ram, request), None);
        assert_eq!(ram.word(FROMHOST), device << 56 | 255 << 48 | 1);
        let mut expected = name.as_bytes().to_vec();
        expected.resize(64, 0);
        expected.extend([0xaa; 16]);
        assert_eq!(ram.get(DATA, 80), expected, "{device} {what}");
    }
}

#[test]
fn other_requests_are_taken_and_ignored() {
    for request in [1 << 48, 1 << 56 | 2 << 48, 2 << 56 | 1, 0xfe << 56 | 3] {
        let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
        assert_eq!(ask(&mut htif, &mut host, &mut ram, request), None);
        assert_eq!(ram.word(FROMHOST), 0);
        assert_eq!(host.take_notes(), []);
    }
}

#[test]
fn write_and_read() {
    let (mut host, out, err) = host(b"typed");
    let mut ram = ram();
    ram.put(DATA, b"to the world");
    let write = |fd, address, length| [64, fd, address, length, 0, 0, 0, 0];
    assert_eq!(call(&mut host, &mut ram, write(1, DATA, 12)), 12);
    assert_eq!(call(&mut host, &mut ram, write(2, DATA, 2)), 2);
    assert_eq!(call(&mut host, &mut ram, write(1, DATA, 0)), 0);
    assert_eq!(call(&mut host, &mut ram, write(0, DATA, 2)), -9);
    assert_eq!(call(&mut host, &mut ram, write(3, DATA, 2)), -9);
    assert_eq!(call(&mut host, &mut ram, write(u64::MAX, DATA, 2)), -9);
    let read = |address, length| [63, 0, address, length, 0, 0, 0, 0];
    assert_eq!(out.text(), "", "still buffered");
    assert_eq!(call(&mut host, &mut ram, read(DATA, 3)), 3);
    assert_eq!(
        (out.text().as_str(), err.text().as_str()),
        ("to the world", "to")
    );
    assert_eq!(call(&mut host, &mut ram, read(DATA + 3, 100)), 2);
    assert_eq!(ram.get(DATA, 6), b"typede");
    assert_eq!(call(&mut host, &mut ram, read(DATA, 100)), 0);
}

#[test]
fn hostile_pointers_and_lengths() {
    let (mut host, out, _) = host(b"x");
    let mut ram = ram();
    let end = TOHOST + 0x4000;
    ram.put(end - 4, b"last");
    for (address, length, expected) in [
        (0, 1, -14),
        (u64::MAX, 2, -14),
        (end, u64::MAX, -14),
        // What there is of it goes out: up to the end of a page.
        (end - 0x1000, u64::MAX, 0x1000),
        (end - 0x800, u64::MAX, 0x800),
        (end - 4, 4, 4),
        (end - 4, 5, 4),
    ] {
        let words = [64, 1, address, length, 0, 0, 0, 0];
        assert_eq!(call(&mut host, &mut ram, words), expected, "{address:#x}");
    }
    assert!(host.finish().is_ok());
    assert_eq!(out.text().len(), 0x1808);
    let words = [63, 0, 0x10, u64::MAX, 0, 0, 0, 0];
    assert_eq!(call(&mut host, &mut ram, words), -14);
    let words = [56, -100i64 as u64, DATA, u64::MAX, 0, 0, 0, 0];
    assert_eq!(call(&mut host, &mut ram, words), -36);
    let words = [56, -100i64 as u64, 0x10, 8, 0, 0, 0, 0];
    assert_eq!(call(&mut host, &mut ram, words), -14);
    assert!(!host.take_notes().is_empty());
}

#[test]
fn a_call_where_there_is_no_memory() {
    for address in [0x10, 0xffff_ffff_fffe, TOHOST + 0x4000 - 32] {
        let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
        assert_eq!(ask(&mut htif, &mut host, &mut ram, address), None);
        assert_eq!(ram.word(FROMHOST), 1, "the program does not wait forever");
        let purpose = "a system call";
        assert_eq!(host.take_notes(), [Note::BadAddress { purpose, address }]);
    }
}

#[test]
fn unknown_calls_are_told_to_program_and_user() {
    let (mut host, _, _) = host(b"");
    for number in [0, 1024, 2047, 2048, u64::MAX] {
        let words = [number, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(call(&mut host, &mut ram(), words), -38);
        assert_eq!(host.take_notes(), [Note::UnknownSyscall(number)]);
    }
}

#[test]
fn a_request_stored_by_the_host_does_not_keep_it_forever() {
    // The call lies over `tohost` itself: its result is the next request.
    let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
    ram.put_words(TOHOST, &[TOHOST]);
    assert_eq!(htif.poll(&mut host, &mut ram, TOHOST, FROMHOST), None);
    // A file that holds a request to read this file to `tohost`.
    let folder = Folder::new("forever");
    std::fs::write(folder.0.join("f"), CALL.to_le_bytes()).expect("written");
    let mut host = Host::silent()
        .with_files(Files::ReadOnly(folder.0.clone()))
        .expect("a folder");
    ram.put(DATA, b"f\0");
    let open = [56, -100i64 as u64, DATA, 2, 0, 0, 0, 0];
    assert_eq!(call(&mut host, &mut ram, open), 3);
    ram.put_words(CALL, &[67, 3, TOHOST, 8, 0, 0, 0, 0]);
    ram.put_words(TOHOST, &[CALL]);
    assert_eq!(htif.poll(&mut host, &mut ram, TOHOST, FROMHOST), None);
}

#[test]
fn answers_nobody_takes_do_not_pile_up() {
    let (mut htif, mut host, mut ram) = (Htif::new(), Host::silent(), ram());
    ram.put_words(FROMHOST, &[1]);
    for _ in 0..=QUEUE_MAX {
        ram.put_words(CALL, &[57, 99]);
        ask(&mut htif, &mut host, &mut ram, CALL);
        ask(&mut htif, &mut host, &mut ram, 1 << 56);
    }
    assert_eq!(htif.answers.len(), QUEUE_MAX);
    assert_eq!(htif.wanted.len(), QUEUE_MAX);
    assert_eq!(host.take_notes(), [Note::QueueFull]);
}

#[test]
fn fstat_of_streams() {
    let mut ram = ram();
    let words = [80, 1, DATA, 0, 0, 0, 0, 0];
    for (terminal, mode) in [(false, 0o010_600), (true, 0o020_620)] {
        let mut host = Host::silent().with_terminal(terminal);
        ram.put(DATA, &[0xaa; 136]);
        assert_eq!(call(&mut host, &mut ram, words), 0);
        assert_eq!(ram.word(DATA + 16), 1 << 32 | mode);
        assert_eq!(ram.word(DATA + 48), 0);
        assert_eq!(ram.word(DATA + 120), 0);
        assert_eq!(ram.word(DATA + 128), 0xaaaa_aaaa_aaaa_aaaa, "128 bytes");
    }
    assert_eq!(quiet_call([80, 5, DATA, 0, 0, 0, 0, 0]), -9);
    assert_eq!(quiet_call([80, 1, 0, 0, 0, 0, 0, 0]), -14);
    assert_eq!(quiet_call([62, 1, 0, 0, 0, 0, 0, 0]), -29);
    assert_eq!(quiet_call([17, DATA, 1, 0, 0, 0, 0, 0]), -34);
    assert_eq!(quiet_call([17, DATA, 2, 0, 0, 0, 0, 0]), 2);
}

#[test]
fn files_by_system_call() {
    let folder = Folder::new("calls");
    let mut host = Host::silent()
        .with_files(Files::ReadWrite(folder.0.clone()))
        .expect("a folder");
    let mut ram = ram();
    let cwd = -100i64 as u64;
    ram.put(DATA, b"data\0other\0");
    ram.put(DATA + 0x40, b"0123456789");
    let mut go = |words: [u64; 8]| call(&mut host, &mut ram, words);
    let (name, content, stat) = (DATA, DATA + 0x40, DATA + 0x80);
    assert_eq!(go([56, cwd, name, 5, 0, 0, 0, 0]), -2);
    assert_eq!(go([48, cwd, name, 5, 0, 0, 0, 0]), -2);
    // O_RDWR | O_CREAT | O_EXCL, twice.
    assert_eq!(go([56, cwd, name, 5, 0xc2, 0o644, 0, 0]), 3);
    assert_eq!(go([56, cwd, name, 5, 0xc2, 0o644, 0, 0]), -17);
    assert_eq!(go([56, 5, name, 5, 0, 0, 0, 0]), -9);
    assert_eq!(go([56, cwd, name, 5, 3, 0, 0, 0]), -22);
    assert_eq!(go([64, 3, content, 10, 0, 0, 0, 0]), 10);
    assert_eq!(go([62, 3, -4i64 as u64, 2, 0, 0, 0, 0]), 6);
    assert_eq!(go([63, 3, content, 100, 0, 0, 0, 0]), 4);
    assert_eq!(go([62, 3, -1i64 as u64, 0, 0, 0, 0, 0]), -22);
    assert_eq!(go([62, 3, 0, 3, 0, 0, 0, 0]), -22);
    assert_eq!(go([67, 3, content, 2, 1, 0, 0, 0]), 2);
    assert_eq!(go([68, 3, content, 2, 0, 0, 0, 0]), 2);
    assert_eq!(go([67, 3, content, 2, u64::MAX, 0, 0, 0]), -22);
    assert_eq!(go([62, 3, 0, 1, 0, 0, 0, 0]), 10, "position kept");
    assert_eq!(go([80, 3, stat, 0, 0, 0, 0, 0]), 0);
    assert_eq!(go([79, cwd, name, 5, stat, 0, 0, 0]), 0);
    assert_eq!(go([1039, name, 5, stat, 0, 0, 0, 0]), 0);
    assert_eq!(go([48, cwd, name, 5, 6, 0, 0, 0]), 0);
    assert_eq!(go([48, cwd, name, 5, 1, 0, 0, 0]), -13);
    assert_eq!(go([46, 3, 5, 0, 0, 0, 0, 0]), 0);
    assert_eq!(go([57, 3, 0, 0, 0, 0, 0, 0]), 0);
    assert_eq!(go([57, 3, 0, 0, 0, 0, 0, 0]), -9);
    // O_WRONLY | O_APPEND.
    assert_eq!(go([56, cwd, name, 5, 0x401, 0, 0, 0]), 3);
    assert_eq!(go([64, 3, content, 1, 0, 0, 0, 0]), 1);
    assert_eq!(go([38, cwd, name, 5, cwd, name + 5, 6, 0]), 0);
    let text = std::fs::read(folder.0.join("other")).expect("renamed");
    assert_eq!(
        text,
        b"12234".iter().chain(b"1").copied().collect::<Vec<_>>()
    );
    assert_eq!(go([35, cwd, name + 5, 6, 0, 0, 0, 0]), 0);
    assert_eq!(go([35, cwd, name + 5, 6, 0, 0, 0, 0]), -2);
    // O_RDONLY | O_CREAT.
    assert_eq!(go([56, cwd, name, 5, 0x40, 0o644, 0, 0]), 4);
    assert_eq!(go([63, 4, content, 1, 0, 0, 0, 0]), 0);
    assert_eq!(go([64, 4, content, 1, 0, 0, 0, 0]), -9);
    assert_eq!(ram.word(stat + 48), 10);
    assert_eq!(ram.word(stat + 16) as u32, 0o100_644);
}

#[test]
fn the_command_line() {
    let mut host = Host::silent().with_arguments(["prog", "", "x y"]);
    let mut ram = ram();
    // Six doublewords and 5 + 1 + 4 bytes.
    assert_eq!(
        call(&mut host, &mut ram, [2011, DATA, 57, 0, 0, 0, 0, 0]),
        -12
    );
    assert_eq!(
        call(&mut host, &mut ram, [2011, DATA, 58, 0, 0, 0, 0, 0]),
        0
    );
    let words: Vec<_> = (0..6).map(|i| ram.word(DATA + 8 * i)).collect();
    assert_eq!(words, [3, DATA + 48, DATA + 53, DATA + 54, 0, 0]);
    assert_eq!(ram.get(DATA + 48, 10), b"prog\0\0x y\0");
    assert_eq!(
        call(&mut host, &mut ram, [2011, 8, 1000, 0, 0, 0, 0, 0]),
        -14
    );
}
