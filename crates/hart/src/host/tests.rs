//! What the tests of the host share, and tests of streams and files.

use super::files::{Errno, Kind, Mode};
use super::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

/// Memory from an address on; nothing anywhere else.
pub(super) struct Ram {
    pub(super) base: u64,
    pub(super) bytes: Vec<u8>,
}

impl Ram {
    pub(super) fn new(base: u64, size: usize) -> Ram {
        Ram {
            base,
            bytes: vec![0; size],
        }
    }

    fn range(&self, address: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let from = usize::try_from(address.checked_sub(self.base)?).ok()?;
        let to = from.checked_add(length)?;
        (to <= self.bytes.len()).then_some(from..to)
    }

    pub(super) fn put(&mut self, address: u64, bytes: &[u8]) {
        assert!(self.write(address, bytes), "in memory");
    }

    pub(super) fn put_words(&mut self, address: u64, words: &[u64]) {
        for (i, word) in words.iter().enumerate() {
            self.put(address + 8 * i as u64, &word.to_le_bytes());
        }
    }

    pub(super) fn word(&mut self, address: u64) -> u64 {
        read_u64(self, address).expect("in memory")
    }

    pub(super) fn get(&mut self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(self.read(address, &mut bytes), "in memory");
        bytes
    }
}

impl GuestMemory for Ram {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let Some(range) = self.range(address, buffer.len()) else {
            return false;
        };
        buffer.copy_from_slice(&self.bytes[range]);
        true
    }

    fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let Some(range) = self.range(address, data.len()) else {
            return false;
        };
        self.bytes[range].copy_from_slice(data);
        true
    }
}

/// An output that can be looked at.
#[derive(Clone, Default)]
pub(super) struct Seen(Rc<RefCell<Vec<u8>>>);

impl Seen {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An input that is not always there: each `None` is a "not yet".
pub(super) struct Typed(pub(super) VecDeque<Option<u8>>);

impl Read for Typed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.pop_front() {
            None => Ok(0),
            Some(None) => Err(io::ErrorKind::WouldBlock.into()),
            Some(Some(byte)) => {
                buffer[0] = byte;
                Ok(1)
            }
        }
    }
}

/// A host with input, and what it puts out.
pub(super) fn host(input: &'static [u8]) -> (Host, Seen, Seen) {
    let (out, err) = (Seen::default(), Seen::default());
    let host = Host::new(
        Box::new(input),
        Box::new(out.clone()),
        Box::new(err.clone()),
    );
    (host, out, err)
}

/// A folder that is removed in the end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        let name = format!("hartrace-host-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const READ: Mode = Mode {
    read: true,
    write: false,
    append: false,
    create: false,
    exclusive: false,
    truncate: false,
};

const WRITE: Mode = Mode {
    write: true,
    create: true,
    truncate: true,
    ..READ
};

#[test]
fn output_waits_until_the_end_or_until_input_is_read() {
    let (mut host, out, err) = host(b"in");
    assert!(host.output(false, b"name? ").is_ok());
    assert!(host.output(true, b"hm").is_ok());
    assert_eq!(out.text(), "");
    let mut byte = [0];
    assert_eq!(host.input(&mut byte).ok(), Some(1));
    assert_eq!((out.text().as_str(), err.text().as_str()), ("name? ", "hm"));
    assert!(host.output(false, b"bye").is_ok());
    assert!(host.finish().is_ok());
    assert_eq!(out.text(), "name? bye");
}

#[test]
fn a_failing_output_is_reported_once_at_the_end() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut host = Host::new(Box::new(io::empty()), Box::new(Full), Box::new(io::sink()));
    assert!(host.output(false, b"x").is_ok(), "buffered");
    let error = host.finish().expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn no_files_unless_allowed() {
    let mut host = Host::silent();
    assert_eq!(host.open(b"Cargo.toml", READ, 3), Err(Errno::ACCES));
    assert_eq!(
        host.take_notes(),
        [Note::FileRefused("Cargo.toml".to_owned())]
    );
    assert_eq!(host.take_notes(), []);
    assert_eq!(host.remove(b"Cargo.toml"), Err(Errno::ACCES));
    assert_eq!(host.rename(b"a", b"b"), Err(Errno::ACCES));
    assert_eq!(host.kind_of_path(b"."), Err(Errno::ACCES));
}

#[test]
fn read_only_is_read_only() {
    let folder = Folder::new("read-only");
    fs::write(folder.0.join("here"), "content").expect("written");
    let mut host = Host::silent()
        .with_files(Files::ReadOnly(folder.0.clone()))
        .expect("a folder");
    assert_eq!(host.open(b"here", READ, 3), Ok(3));
    assert_eq!(host.open(b"./here", READ, 3), Ok(4));
    assert_eq!(host.open(b"here", WRITE, 3), Err(Errno::ROFS));
    assert_eq!(host.open(b"new", WRITE, 3), Err(Errno::ROFS));
    assert_eq!(host.remove(b"here"), Err(Errno::ROFS));
    assert_eq!(host.rename(b"here", b"there"), Err(Errno::ROFS));
    assert_eq!(host.open(b"missing", READ, 3), Err(Errno::NOENT));
    assert_eq!(host.open(b".", READ, 3), Err(Errno::ISDIR));
    assert_eq!(host.kind_of_path(b"here"), Ok(Kind::Regular { size: 7 }));
    let mut ram = Ram::new(0, 16);
    assert_eq!(host.write_from(3, &mut ram, 0, 4), Err(Errno::BADF));
    assert_eq!(host.set_length(3, 0), Err(Errno::INVAL));
    assert_eq!(fs::read(folder.0.join("here")).expect("there"), b"content");
}

#[test]
fn no_way_out_of_the_folder() {
    let folder = Folder::new("escape");
    let inside = folder.0.join("inside");
    fs::create_dir_all(inside.join("deeper")).expect("folders");
    fs::write(folder.0.join("secret"), "s").expect("written");
    let mut host = Host::silent()
        .with_files(Files::ReadWrite(inside.clone()))
        .expect("a folder");
    let absolute = folder.0.join("secret");
    let absolute = absolute.to_str().expect("text").as_bytes();
    for name in [
        b"../secret".as_slice(),
        b"deeper/../../secret",
        b"deeper/../x",
        b"..",
        b"/etc/passwd",
        absolute,
        b"a\0b",
    ] {
        for mode in [READ, WRITE] {
            assert_eq!(host.open(name, mode, 3), Err(Errno::ACCES), "{name:?}");
        }
        assert_eq!(host.remove(name), Err(Errno::ACCES));
        assert_eq!(host.rename(name, b"x"), Err(Errno::ACCES));
        assert_eq!(host.rename(b"x", name), Err(Errno::ACCES));
        assert_eq!(host.kind_of_path(name), Err(Errno::ACCES));
    }
    assert_eq!(host.open(b"", READ, 3), Err(Errno::NOENT));
    assert_eq!(host.open(&[0xff, 0xfe], READ, 3), Err(Errno::NOENT));
    assert!(host.open(b"deeper/new", WRITE, 3).is_ok());
    assert!(inside.join("deeper/new").exists());
}

#[cfg(unix)]
#[test]
fn links_are_refused_wherever_they_point() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("links");
    fs::write(folder.0.join("real"), "r").expect("written");
    symlink("real", folder.0.join("near")).expect("a link");
    symlink("/etc/passwd", folder.0.join("far")).expect("a link");
    symlink("/", folder.0.join("root")).expect("a link");
    symlink("gone", folder.0.join("dangling")).expect("a link");
    let mut host = Host::silent()
        .with_files(Files::ReadWrite(folder.0.clone()))
        .expect("a folder");
    for name in [
        b"near".as_slice(),
        b"far",
        b"root/etc/passwd",
        b"root/tmp/x",
        b"dangling",
    ] {
        for mode in [READ, WRITE] {
            assert_eq!(host.open(name, mode, 3), Err(Errno::ACCES), "{name:?}");
        }
        assert_eq!(host.remove(name), Err(Errno::ACCES), "{name:?}");
    }
    assert!(!folder.0.join("gone").exists());
}

#[test]
fn descriptors_run_out() {
    let folder = Folder::new("many");
    fs::write(folder.0.join("f"), "").expect("written");
    let mut host = Host::silent()
        .with_files(Files::ReadOnly(folder.0.clone()))
        .expect("a folder");
    for expected in 3..256 {
        assert_eq!(host.open(b"f", READ, 0), Ok(expected));
    }
    assert_eq!(host.open(b"f", READ, 0), Err(Errno::MFILE));
    assert_eq!(host.close(7), Ok(()));
    assert_eq!(host.close(7), Err(Errno::BADF));
    assert_eq!(host.open(b"f", READ, 0), Ok(7));
    assert_eq!(host.close(u64::MAX), Err(Errno::BADF));
}

#[test]
fn notes_are_bounded_and_not_repeated() {
    let mut host = Host::silent();
    for number in 0..1000 {
        host.note(Note::UnknownSyscall(number));
        host.note(Note::UnknownSyscall(number));
    }
    let notes = host.take_notes();
    assert_eq!(notes.len(), NOTES_MAX);
    assert_eq!(notes[1], Note::UnknownSyscall(1));
    for note in notes {
        assert!(note.to_string().contains("ENOSYS"));
    }
}

/// As much memory as there are addresses, as page tables can make of a page.
struct Endless;

impl GuestMemory for Endless {
    fn read(&mut self, _: u64, _: &mut [u8]) -> bool {
        true
    }

    fn write(&mut self, _: u64, _: &[u8]) -> bool {
        true
    }
}

#[test]
fn one_call_copies_no_more_than_linux_does() {
    let mut host = Host::silent();
    let copied = host.write_from(1, &mut Endless, 0, u64::MAX);
    assert_eq!(copied, Ok(0x7fff_f000));
}
