//! A small HTTP/1.1 server for one user on this machine.
//!
//! It answers `GET` and `HEAD` requests below a secret path and nothing else. It listens
//! on the loopback address only, has a bounded number of threads, and reads a bounded
//! number of bytes of each request. `Host` must be the address it listens on, so that a
//! name that is made to point here (DNS rebinding) reaches nothing, and `Origin`, where a
//! browser sends one, must be the page itself.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a request with its headers at most.
const MAX_REQUEST: usize = 8 << 10;

/// Connections at the same time.
const MAX_CONNECTIONS: usize = 16;

/// How long a client may take to send a whole request.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take to receive a whole answer, in multiples of that.
const RECEIVES: u32 = 12;

/// How often the server looks whether it is over.
const OFTEN: Duration = Duration::from_millis(50);

/// Bytes of randomness in the secret part of the address.
const SECRET: usize = 16;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, such as 200.
    pub status: u16,
    /// The content type.
    pub kind: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Another header that the status asks for: its name and value.
    extra: Option<(&'static str, String)>,
}

impl Answer {
    /// JSON.
    #[must_use]
    pub const fn json(body: Vec<u8>) -> Answer {
        Answer {
            status: 200,
            kind: "application/json",
            body,
            extra: None,
        }
    }

    /// A page.
    #[must_use]
    pub fn page(text: String) -> Answer {
        Answer {
            status: 200,
            kind: "text/html; charset=utf-8",
            body: text.into_bytes(),
            extra: None,
        }
    }

    /// Nothing but a status.
    #[must_use]
    pub fn status(status: u16) -> Answer {
        Answer {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{status} {}\n", reason(status)).into_bytes(),
            extra: None,
        }
    }

    /// The status line and the headers.
    fn head(&self) -> String {
        let Answer {
            status,
            kind,
            body,
            extra,
        } = self;
        let extra = extra.as_ref();
        let extra = extra.map_or(String::new(), |(name, value)| {
            format!("{name}: {value}\r\n")
        });
        format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n{extra}\r\n",
            reason(*status),
            body.len()
        )
    }

    /// That only `GET` and `HEAD` are answered.
    fn only_get() -> Answer {
        Answer {
            extra: Some(("Allow", "GET, HEAD".to_owned())),
            ..Answer::status(405)
        }
    }

    /// That the page is elsewhere.
    fn moved(to: String) -> Answer {
        Answer {
            extra: Some(("Location", to)),
            ..Answer::status(308)
        }
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

/// What is asked for: the path below the secret one, and the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// The path, without a slash at its start; nothing in it is decoded.
    pub path: &'r str,
    /// What comes after `?`.
    pub query: &'r str,
}

impl<'r> Request<'r> {
    /// The value of a field of the query.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'r str> {
        let mut fields = self
            .query
            .split('&')
            .filter_map(|field| field.split_once('='));
        fields.find(|field| field.0 == name).map(|field| field.1)
    }

    /// The same as a number. A fraction is cut off, as a page may compute one.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        let text = self.field(name)?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
        whole.parse().ok().filter(|_| digits)
    }
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    secret: String,
    patience: Duration,
}

impl Server {
    /// Listens on a port of the loopback address; on any free one for 0.
    ///
    /// # Errors
    ///
    /// The port is in use, or the system has no random numbers.
    pub fn new(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let mut bytes = [0; SECRET];
        random(&mut bytes)?;
        let secret = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Server {
            listener,
            address,
            secret,
            patience: PATIENCE,
        })
    }

    /// Where the page is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.secret)
    }

    /// Answers requests, on several threads, until `is_over` is true.
    pub fn run(
        &self,
        answer: &(dyn Fn(&Request<'_>) -> Answer + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) {
        let active = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over() {
                    std::thread::sleep(OFTEN);
                }
                // Wakes the loop below.
                let _ = TcpStream::connect(self.address);
            });
            for stream in self.listener.incoming() {
                if is_over() {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if active.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                    active.fetch_sub(1, Ordering::SeqCst);
                    let _ = self.send(stream, &Answer::status(503), false);
                    continue;
                }
                let active = &active;
                scope.spawn(move || {
                    // A client that goes away needs no answer.
                    let _ = self.serve(stream, answer);
                    active.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }

    fn serve(
        &self,
        mut stream: TcpStream,
        answer: &(dyn Fn(&Request<'_>) -> Answer + Sync),
    ) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let Some(head) = self.read_head(&mut stream)? else {
            return self.send(stream, &Answer::status(431), false);
        };
        let (found, is_head) = self.judge(&head, answer);
        self.send(stream, &found, is_head)
    }

    /// The request line and the headers; `None` if they are too long or no text.
    fn read_head(&self, stream: &mut TcpStream) -> io::Result<Option<String>> {
        let since = Instant::now();
        let mut head = Vec::new();
        let mut buffer = [0; 1024];
        loop {
            stream.set_read_timeout(Some(left(self.patience, since)?))?;
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            head.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                head.truncate(end);
                return Ok(String::from_utf8(head).ok());
            }
            if head.len() > MAX_REQUEST {
                return Ok(None);
            }
        }
    }

    fn send(&self, mut stream: TcpStream, answer: &Answer, is_head: bool) -> io::Result<()> {
        let since = Instant::now();
        let head = answer.head();
        let body = if is_head { &[] } else { answer.body.as_slice() };
        for mut rest in [head.as_bytes(), body] {
            while !rest.is_empty() {
                let patience = left(self.patience * RECEIVES, since)?;
                stream.set_write_timeout(Some(patience))?;
                let sent = stream.write(rest)?;
                if sent == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                rest = rest.get(sent..).unwrap_or_default();
            }
        }
        stream.shutdown(std::net::Shutdown::Write)
    }

    /// The answer to a request, and whether only its head is wanted.
    fn judge(
        &self,
        head: &str,
        answer: &(dyn Fn(&Request<'_>) -> Answer + Sync),
    ) -> (Answer, bool) {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target)) = (method, target) else {
            return (Answer::status(400), false);
        };
        let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
        if !is_http || words.next().is_some() {
            return (Answer::status(400), false);
        }
        let is_head = method == "HEAD";
        if method != "GET" && !is_head {
            return (Answer::only_get(), false);
        }
        if !self.is_trusted(lines) {
            return (Answer::status(403), is_head);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').unwrap_or_default();
        let (secret, below) = match path.split_once('/') {
            Some((secret, below)) => (secret, Some(below)),
            None => (path, None),
        };
        let found = match below {
            _ if !is_same(secret, &self.secret) => Answer::status(404),
            Some(path) => answer(&Request { path, query }),
            // What the page asks for is below its address.
            None => Answer::moved(format!("/{}/", self.secret)),
        };
        (found, is_head)
    }

    /// Whether a request is for this server, and not from another page.
    fn is_trusted<'l>(&self, headers: impl Iterator<Item = &'l str>) -> bool {
        let here = self.address.to_string();
        let local = format!("localhost:{}", self.address.port());
        let is_here = |host: &str| host == here || host == local;
        let mut hosts = 0;
        for line in headers.take_while(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(':') else {
                return false;
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("host") {
                hosts += 1;
                if !is_here(value) {
                    return false;
                }
            }
            if name.eq_ignore_ascii_case("origin") {
                let origin = value.strip_prefix("http://");
                if !origin.is_some_and(is_here) {
                    return false;
                }
            }
            // A browser says when another site wants something.
            if name.eq_ignore_ascii_case("sec-fetch-site")
                && !matches!(value, "same-origin" | "none")
            {
                return false;
            }
        }
        hosts == 1
    }
}

/// Compares without telling by the time it takes how much is the same.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let differs = pairs.fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differs == 0
}

/// What is left of a time; an error if it is over.
fn left(patience: Duration, since: Instant) -> io::Result<Duration> {
    let left = patience.saturating_sub(since.elapsed());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// Random bytes from the system.
#[cfg(unix)]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    std::fs::File::open("/dev/urandom")?.read_exact(bytes)
}

/// Random bytes: the standard library takes the keys of its hash tables from the system.
#[cfg(not(unix))]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    use std::hash::{BuildHasher as _, RandomState};
    for chunk in bytes.chunks_mut(8) {
        let number = RandomState::new().hash_one(0u8);
        chunk.copy_from_slice(number.to_le_bytes().get(..chunk.len()).unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
