//! Sockets to a running simulation, which connects or is connected to.

use super::{Input, InputError, InputProblem};
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// A place on the network or the machine where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Connect to `HOST:PORT`.
    Tcp(String),
    /// Wait for one connection at `HOST:PORT`.
    TcpListen(String),
    /// Connect to a Unix socket.
    Unix(PathBuf),
    /// Make a Unix socket and wait for one connection.
    UnixListen(PathBuf),
}

impl Address {
    /// What a name means: `tcp:HOST:PORT`, `tcp-listen:[HOST:]PORT`,
    /// `unix:PATH` or `unix-listen:PATH`; `None` for the name of a file. Without
    /// a host only this machine can connect.
    #[must_use]
    pub fn parse(name: &Path) -> Option<Address> {
        let (kind, rest) = name.to_str()?.split_once(':')?;
        Some(match kind {
            "tcp" => Address::Tcp(rest.to_owned()),
            "tcp-listen" if rest.contains(':') => Address::TcpListen(rest.to_owned()),
            "tcp-listen" => Address::TcpListen(format!("127.0.0.1:{rest}")),
            "unix" => Address::Unix(rest.into()),
            "unix-listen" => Address::UnixListen(rest.into()),
            _ => return None,
        })
    }

    /// Whether it can be a place at all: a host and a port, or a path.
    #[must_use]
    pub fn is_place(&self) -> bool {
        match self {
            Address::Tcp(at) | Address::TcpListen(at) => at
                .rsplit_once(':')
                .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()),
            Address::Unix(path) | Address::UnixListen(path) => !path.as_os_str().is_empty(),
        }
    }

    fn open(&self) -> io::Result<Socket> {
        match self {
            Address::Tcp(at) => Ok(Socket::connected(TcpStream::connect(at)?)),
            Address::TcpListen(at) => {
                let listener = TcpListener::bind(at)?;
                let place = format!("tcp:{}", listener.local_addr()?);
                let accept = move || Ok(listener.accept()?.0);
                Ok(Socket::waiting(accept, place, None))
            }
            Address::Unix(path) => unix::connect(path),
            Address::UnixListen(path) => unix::listen(path),
        }
    }
}

/// A socket on its way to be an input.
struct Socket {
    reader: Box<dyn Read + Send>,
    /// Where it waits for a connection.
    place: Option<String>,
    /// A file that is to go at the end.
    file: Option<Removed>,
}

impl Socket {
    fn connected(stream: impl Read + Send + 'static) -> Socket {
        Socket {
            reader: Box::new(stream),
            place: None,
            file: None,
        }
    }

    fn waiting<S: Read + Send + 'static>(
        accept: impl FnOnce() -> io::Result<S> + Send + 'static,
        place: String,
        file: Option<Removed>,
    ) -> Socket {
        Socket {
            reader: Box::new(Late {
                accept: Some(accept),
                stream: None,
            }),
            place: Some(place),
            file,
        }
    }
}

/// A stream that exists once a peer has connected.
struct Late<F, S> {
    accept: Option<F>,
    stream: Option<S>,
}

impl<F: FnOnce() -> io::Result<S>, S: Read> Read for Late<F, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(accept) = self.accept.take() {
            self.stream = Some(accept()?);
        }
        match &mut self.stream {
            Some(stream) => stream.read(buffer),
            None => Ok(0),
        }
    }
}

/// The file of a socket, gone with this.
pub(super) struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(unix)]
mod unix {
    use super::{Removed, Socket};
    use std::io;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::path::Path;

    pub(super) fn connect(path: &Path) -> io::Result<Socket> {
        Ok(Socket::connected(UnixStream::connect(path)?))
    }

    pub(super) fn listen(path: &Path) -> io::Result<Socket> {
        let listener = match UnixListener::bind(path) {
            // A stale socket without a listener blocks the name.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            listener => listener?,
        };
        let place = format!("unix:{}", path.display());
        let accept = move || Ok(listener.accept()?.0);
        let file = Some(Removed(path.to_path_buf()));
        Ok(Socket::waiting(accept, place, file))
    }

    fn is_left_over(path: &Path) -> bool {
        use std::os::unix::fs::FileTypeExt as _;
        let socket = std::fs::metadata(path).is_ok_and(|m| m.file_type().is_socket());
        let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
        // A listener does not notice a connection of another type, and does
        // not take it for the one it waits for.
        let probe = UnixDatagram::unbound().and_then(|probe| probe.connect(path));
        socket && probe.err().is_some_and(refused)
    }
}

#[cfg(not(unix))]
mod unix {
    use super::Socket;
    use std::io;
    use std::path::Path;

    pub(super) fn connect(_: &Path) -> io::Result<Socket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn listen(_: &Path) -> io::Result<Socket> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Input {
    /// Connects, or gets ready to be connected to: the first read waits for
    /// that.
    ///
    /// # Errors
    ///
    /// No listener to connect to, or an address in use.
    pub fn connect(name: &Path, address: &Address) -> Result<Input, InputError> {
        let socket = address.open().map_err(|error| InputError {
            path: name.to_path_buf(),
            problem: InputProblem::Open(error),
        })?;
        Ok(Input {
            path: name.to_path_buf(),
            size: None,
            head: Vec::new(),
            reader: socket.reader,
            file: None,
            place: socket.place,
            removed: socket.file,
            merged: false,
        })
    }

    /// Where a simulation is to connect to.
    #[must_use]
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Arrival;
    use std::io::Write as _;
    use std::thread;
    use std::time::Duration;

    fn address(name: &str) -> Option<Address> {
        Address::parse(Path::new(name))
    }

    #[test]
    fn names() {
        let tcp = |at: &str| Some(Address::Tcp(at.to_owned()));
        let listen = |at: &str| Some(Address::TcpListen(at.to_owned()));
        assert_eq!(address("tcp:host:7"), tcp("host:7"));
        assert_eq!(address("tcp-listen:7"), listen("127.0.0.1:7"));
        assert_eq!(address("tcp-listen:0.0.0.0:7"), listen("0.0.0.0:7"));
        assert_eq!(address("unix:/a:b"), Some(Address::Unix("/a:b".into())));
        assert_eq!(
            address("unix-listen:s"),
            Some(Address::UnixListen("s".into()))
        );
        for file in ["trace", "-", "a:b", "./tcp:1"] {
            assert_eq!(address(file), None, "{file}");
        }
    }

    #[test]
    fn places() {
        for name in ["tcp:host:7", "tcp:[::1]:7", "tcp-listen:0", "unix:a"] {
            assert!(address(name).unwrap().is_place(), "{name}");
        }
        for name in [
            "tcp:abc",
            "tcp:",
            "tcp::7",
            "tcp:host:",
            "tcp:host:http",
            "tcp-listen:99999",
            "tcp-listen:",
            "tcp-listen:-1",
            "unix:",
            "unix-listen:",
        ] {
            assert!(!address(name).unwrap().is_place(), "{name}");
        }
    }

    fn all(input: Input) -> Vec<u8> {
        let mut live = input.live();
        let mut seen = Vec::new();
        loop {
            match live.next(Duration::from_millis(10)).unwrap() {
                Arrival::Bytes(bytes) => seen.extend_from_slice(bytes),
                Arrival::Nothing => {}
                Arrival::End => return seen,
            }
        }
    }

    #[test]
    fn both_ways_over_tcp() {
        let name = Path::new("tcp-listen:0");
        let input = Input::connect(name, &Address::parse(name).unwrap()).unwrap();
        let place = input.place().unwrap().to_owned();
        let writer = thread::spawn(move || {
            let mut stream = TcpStream::connect(place.strip_prefix("tcp:").unwrap()).unwrap();
            for part in [&b"ab"[..], b"", b"cde"] {
                stream.write_all(part).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        });
        assert_eq!(all(input), b"abcde");
        writer.join().unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let name = format!("tcp:{}", listener.local_addr().unwrap());
        let writer = thread::spawn(move || listener.accept().unwrap().0.write_all(b"xyz"));
        let name = Path::new(&name);
        let mut input = Input::connect(name, &Address::parse(name).unwrap()).unwrap();
        assert_eq!(input.peek(2).unwrap(), b"xy");
        assert_eq!(all(input), b"xyz");
        writer.join().unwrap().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn both_ways_over_unix_sockets() {
        use std::os::unix::net::{UnixListener, UnixStream};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        // Left over from another run.
        drop(UnixListener::bind(&path).unwrap());
        let address = Address::UnixListen(path.clone());
        let input = Input::connect(Path::new("u"), &address).unwrap();
        assert!(Input::connect(Path::new("u"), &address).is_err());
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"hart").unwrap();
        drop(stream);
        assert_eq!(all(input), b"hart");
        assert!(!path.exists());
        assert!(Input::connect(Path::new("u"), &Address::Unix(path)).is_err());
    }
}
