//! The words of lines, and text that is safe to print.

#[doc(inline)]
pub use hartrace_lines::words::*;

/// Text from a file or an argument, made safe for a terminal as [`clean`] does it, but with
/// its layout: lines and tabs stay.
#[must_use]
pub fn printable(text: &str) -> String {
    annotate_snippets::normalize_untrusted_str(text)
}
