//! An object store for tests: a folder, read by the requests of S3 that reading needs.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

/// Serves the files of a folder as those of any bucket, and returns the address.
pub(crate) fn serve(folder: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let folder = folder.clone();
            thread::spawn(move || while answer(&stream, &folder).is_some() {});
        }
    });
    format!("http://{address}")
}

/// Answers a request; `None` at the end of the connection.
fn answer(mut stream: &TcpStream, folder: &Path) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let range = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let value = value.strip_prefix("bytes=")?.to_owned();
            name.eq_ignore_ascii_case("range").then_some(value)
        })
        .last();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // The first part of the path is the bucket.
    let key = path.trim_start_matches('/').split_once('/');
    let key = decoded(key.map_or("", |(_, key)| key));
    if query.contains("list-type=2") {
        let body = list(folder, query);
        return send(stream, "200 OK", "", body.as_bytes(), true);
    }
    let Ok(bytes) = fs::read(folder.join(&key)) else {
        return send(stream, "404 Not Found", "", b"", true);
    };
    let tag = tag(&bytes);
    let about = format!("ETag: \"{tag}\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n");
    let is_get = method == "GET";
    let Some(range) = range else {
        return send(stream, "200 OK", &about, &bytes, is_get);
    };
    let (begin, end) = range.split_once('-')?;
    let size = bytes.len();
    let (begin, end) = match (begin.parse::<usize>(), end.parse::<usize>()) {
        (Ok(begin), Ok(end)) => (begin, size.min(end + 1)),
        (Ok(begin), Err(_)) => (begin, size),
        (Err(_), Ok(last)) => (size.saturating_sub(last), size),
        _ => return None,
    };
    let last = end - 1;
    let about = format!("{about}Content-Range: bytes {begin}-{last}/{size}\r\n");
    let part = bytes.get(begin..end)?;
    send(&mut stream, "206 Partial Content", &about, part, is_get)
}

/// Changes with the content.
fn tag(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

fn send(
    mut stream: impl std::io::Write,
    status: &str,
    about: &str,
    body: &[u8],
    with_body: bool,
) -> Option<()> {
    let size = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{about}Content-Length: {size}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    if with_body {
        stream.write_all(body).ok()?;
    }
    stream.flush().ok()
}

/// The files whose names begin with the prefix of a query.
fn list(folder: &Path, query: &str) -> String {
    let mut parts = query.split('&');
    let prefix = parts.find_map(|part| part.strip_prefix("prefix="));
    let prefix = decoded(prefix.unwrap_or_default());
    let mut all = Vec::new();
    walk(folder, &mut all);
    let mut text = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
    for path in all {
        let key = path.strip_prefix(folder).unwrap().display().to_string();
        if key.starts_with(&prefix) {
            let bytes = fs::read(&path).unwrap();
            let (size, tag) = (bytes.len(), tag(&bytes));
            write!(
                text,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"{tag}\"</ETag>\
                    <LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            )
            .unwrap();
        }
    }
    text + "</ListBucketResult>"
}

fn walk(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, all),
            false => all.push(path),
        }
    }
    all.sort();
}

/// A text with `%3D` and the like replaced.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| str::from_utf8(hex).ok());
        let hex = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        rest = after;
        match hex.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).unwrap()
}
