//! The page around a document.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// The page, made from `page/src`. Its styles and its script are inside it, and their
/// hashes in its content security policy, so that it runs nothing else.
const PAGE: &str = include_str!("../page/dist/report.html");

/// Documents up to this size stay readable in the page; larger ones are compressed.
const READABLE: usize = 1 << 20;

/// A page with a document, which is JSON.
#[must_use]
pub fn html(json: &[u8]) -> String {
    let data = match json.len() <= READABLE {
        true => readable(json),
        false => compressed(json),
    };
    assemble("'none'", &data)
}

/// A page that gets its document from the server it came from.
#[must_use]
pub fn live_html() -> String {
    assemble("'self'", &readable(br#"{"live":true}"#))
}

/// Fills the places in the page that are left free.
fn assemble(connect: &str, data: &str) -> String {
    let mut page = String::with_capacity(PAGE.len() + data.len());
    let mut rest = PAGE;
    // One pass: what is filled in is not searched again.
    while let Some((before, marker)) = next_marker(rest) {
        page.push_str(before);
        page.push_str(match marker {
            CONNECT => connect,
            _ => data,
        });
        let used = before.len() + marker.len();
        rest = rest.get(used..).unwrap_or_default();
    }
    page.push_str(rest);
    page
}

const CONNECT: &str = "{{connect}}";
const DATA: &str = "{{data}}";

fn next_marker(text: &str) -> Option<(&str, &'static str)> {
    let found = [CONNECT, DATA].map(|marker| Some((text.find(marker)?, marker)));
    let (at, marker) = found.into_iter().flatten().min()?;
    Some((text.get(..at)?, marker))
}

/// JSON in an element that the browser does not execute. Without `<`, nothing in a string
/// ends the element.
fn readable(json: &[u8]) -> String {
    let json = String::from_utf8_lossy(json).replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"data\">{json}</script>")
}

fn compressed(json: &[u8]) -> String {
    let mut zip = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = zip.write_all(json);
    let bytes = zip.finish().unwrap_or_default();
    let text = base64(&bytes);
    format!("<script type=\"application/octet-stream+base64\" id=\"data\">{text}</script>")
}

/// Base 64 of RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 63;
            match digit <= group.len() {
                true => text.extend(DIGITS.get(index as usize).map(|d| char::from(*d))),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, expected) in cases {
            assert_eq!(base64(plain.as_bytes()), expected);
        }
    }

    /// The page has both places, and neither data nor markers in data open others.
    #[test]
    fn nothing_in_the_data_leaves_it() {
        let hostile = r#"{"a":"</script><script>alert(1)</script>{{connect}}{{data}}<!--"}"#;
        let page = html(hostile.as_bytes());
        assert!(!page.contains("<script>alert(1)"), "{page}");
        assert_eq!(page.matches("id=\"data\"").count(), 1);
        assert!(page.contains("connect-src 'none'"));
        assert!(page.contains(r"\u003c/script>\u003cscript>alert(1)"));
        assert!(page.contains(r"{{connect}}{{data}}\u003c!--"));
        assert!(live_html().contains("connect-src 'self'"));
    }

    #[test]
    fn large_documents_are_compressed() {
        let json = format!("[{}0]", "1234567,".repeat(READABLE / 4));
        let page = html(json.as_bytes());
        assert!(page.len() < READABLE);
        assert!(page.contains("application/octet-stream+base64"));
    }
}
