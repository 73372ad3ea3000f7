//! The manual of diagnostics: its sections by code, and as plain text, which is
//! Markdown without its markers, wrapped for a terminal.

mod sections;

pub use sections::{Section, find, sections};

use std::fmt::Write as _;

/// The longest line, in characters.
const WIDTH: usize = 80;

/// Plain text for a section written in Markdown. Paragraphs and list items are
/// wrapped again; code blocks and tables keep their lines.
///
/// ```
/// use hartrace_print::manual::plain;
///
/// let text = plain("**Cause.** Two\nlines; see [ctr.md](ctr.md).\n");
/// assert_eq!(text, "Cause: Two lines; see docs/ctr.md.\n");
/// ```
#[must_use]
pub fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut block = Vec::new();
    let mut code = false;
    for line in markdown.lines() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if fence || code || line.starts_with('|') {
            flush(&mut block, &mut text);
            if !fence {
                // Writing to memory does not fail.
                let _ = writeln!(text, "{}{line}", if code { "    " } else { "" });
            }
            continue;
        }
        if line.trim().is_empty() {
            flush(&mut block, &mut text);
            if !text.is_empty() && !text.ends_with("\n\n") {
                text.push('\n');
            }
            continue;
        }
        if item(line).is_some() {
            flush(&mut block, &mut text);
        }
        block.push(line);
    }
    flush(&mut block, &mut text);
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The text of a list item.
fn item(line: &str) -> Option<&str> {
    line.strip_prefix("* ").or_else(|| line.strip_prefix("- "))
}

/// Writes the lines of a paragraph or list item, wrapped.
fn flush(block: &mut Vec<&str>, text: &mut String) {
    let joined = block.join(" ");
    block.clear();
    let (first, indent, body) = match item(&joined) {
        Some(body) => ("* ", "  ", body),
        None => ("", "", joined.as_str()),
    };
    let body = inline(body);
    let mut column = 0;
    for word in body.split_whitespace() {
        let length = word.chars().count();
        if column == 0 {
            text.push_str(first);
            column = first.len() + length;
        } else if column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(indent);
            column = indent.len() + length;
        } else {
            text.push(' ');
            column += 1 + length;
        }
        text.push_str(word);
    }
    if column > 0 {
        text.push('\n');
    }
}

/// A paragraph without bold markers and links: `**Cause.**` becomes `Cause:`, and
/// a link to another page becomes the name of that page.
fn inline(paragraph: &str) -> String {
    let mut text = String::new();
    let mut rest = paragraph;
    while let Some(at) = rest.find(['*', '[', '`', '\\']) {
        let (before, marked) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(before);
        rest = bold(marked, &mut text)
            .or_else(|| link(marked, &mut text))
            .or_else(|| quoted(marked, &mut text))
            .unwrap_or_else(|| {
                let mut chars = marked.chars();
                text.extend(chars.next().filter(|&c| c != '\\'));
                chars.as_str()
            });
    }
    text.push_str(rest);
    text
}

/// Writes the bold text that `marked` starts with; what follows it.
fn bold<'a>(marked: &'a str, text: &mut String) -> Option<&'a str> {
    let (words, rest) = marked.strip_prefix("**")?.split_once("**")?;
    match words.strip_suffix('.') {
        Some(label) if text.is_empty() => {
            text.push_str(label);
            text.push(':');
        }
        _ => text.push_str(words),
    }
    Some(rest)
}

/// Writes the link that `marked` starts with; what follows it.
fn link<'a>(marked: &'a str, text: &mut String) -> Option<&'a str> {
    let (label, rest) = marked.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    let page = target.split('#').next().unwrap_or_default();
    if label.contains(']') {
        return None;
    }
    // Writing to memory does not fail.
    let _ = match page {
        "" => write!(text, "{label}"),
        _ if page == label => write!(text, "docs/{page}"),
        _ => write!(text, "{label} (docs/{page})"),
    };
    Some(rest)
}

/// Writes the code that `marked` starts with, in its quotes; what follows it.
fn quoted<'a>(marked: &'a str, text: &mut String) -> Option<&'a str> {
    let (code, rest) = marked.strip_prefix('`')?.split_once('`')?;
    text.push('`');
    text.push_str(code);
    text.push('`');
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_labels_have_colons() {
        let text = plain("Exit code 1.\n\n\n**Remedy.** Set `[ntrace]` or\n**all** of it.\n");
        assert_eq!(
            text,
            "Exit code 1.\n\nRemedy: Set `[ntrace]` or all of it.\n"
        );
        let long = plain(&"word ".repeat(40));
        assert_eq!(long.lines().map(str::len).max(), Some(79));
        assert_eq!(long.split_whitespace().count(), 40);
    }

    #[test]
    fn links_name_their_page() {
        assert_eq!(plain("[a.md](a.md)"), "docs/a.md\n");
        assert_eq!(plain("[the list](a.md#b)."), "the list (docs/a.md).\n");
        assert_eq!(plain("[above](#ht0001)"), "above\n");
        assert_eq!(
            plain("section [ctr], bits [3:0]"),
            "section [ctr], bits [3:0]\n"
        );
    }

    #[test]
    fn code_tables_and_lists_keep_their_lines() {
        let text =
            plain("Try:\n\n```\na  b\n```\n\n* one\n  more\n* two\n\n| a | b |\n|---|---|\n");
        let expected = "Try:\n\n    a  b\n\n* one more\n* two\n\n| a | b |\n|---|---|\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn stars_and_backticks_that_are_not_closed_stay() {
        assert_eq!(plain("a * b ** c ` d"), "a * b ** c ` d\n");
        assert_eq!(plain("2 \\| 3"), "2 | 3\n");
        assert_eq!(plain(""), "\n");
    }
}
