//! The XML of Cobertura (`coverage-04.dtd`), which build servers read.

use super::Covered;
use hartrace_analyze::{Coverage, LineCoverage, Share};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// One class per source file, with its functions and lines. The time of the report
/// is always 0, so that the same input gives the same bytes.
///
/// # Errors
///
/// A failing write.
pub fn cobertura(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    let all = covered.coverage.shares();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">"
    )?;
    writeln!(
        out,
        "<coverage line-rate=\"{}\" branch-rate=\"{}\" lines-covered=\"{}\" lines-valid=\"{}\" \
         branches-covered=\"{}\" branches-valid=\"{}\" complexity=\"0\" version=\"hartrace {}\" \
         timestamp=\"0\">",
        rate(all.lines),
        rate(all.branches),
        all.lines.hit,
        all.lines.all,
        all.branches.hit,
        all.branches.all,
        env!("CARGO_PKG_VERSION")
    )?;
    writeln!(out, "  <sources><source>.</source></sources>\n  <packages>")?;
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in covered.coverage.files.keys() {
        let folder = file.rsplit_once('/').map_or(".", |(folder, _)| folder);
        packages.entry(folder).or_default().push(file);
    }
    for (folder, files) in packages {
        package(covered, folder, &files, out)?;
    }
    writeln!(out, "  </packages>\n</coverage>")
}

fn package(
    covered: &Covered<'_>,
    folder: &str,
    files: &[&str],
    out: &mut impl Write,
) -> io::Result<()> {
    let (mut lines, mut branches) = (Share::default(), Share::default());
    for file in files
        .iter()
        .filter_map(|file| covered.coverage.files.get(*file))
    {
        let shares = Coverage::shares_of(file);
        lines += shares.lines;
        branches += shares.branches;
    }
    writeln!(
        out,
        "    <package name=\"{}\" line-rate=\"{}\" branch-rate=\"{}\" complexity=\"0\">\n      <classes>",
        escape(folder),
        rate(lines),
        rate(branches)
    )?;
    for file in files {
        class(covered, file, out)?;
    }
    writeln!(out, "      </classes>\n    </package>")
}

fn class(covered: &Covered<'_>, file: &str, out: &mut impl Write) -> io::Result<()> {
    let Some(lines) = covered.coverage.files.get(file) else {
        return Ok(());
    };
    let shares = Coverage::shares_of(lines);
    let name = file.rsplit('/').next().unwrap_or(file);
    writeln!(
        out,
        "        <class name=\"{}\" filename=\"{}\" line-rate=\"{}\" branch-rate=\"{}\" \
         complexity=\"0\">\n          <methods>",
        escape(name),
        escape(file),
        rate(shares.lines),
        rate(shares.branches)
    )?;
    for (first, function) in covered.functions_of(file) {
        writeln!(
            out,
            "            <method name=\"{}\" signature=\"()\" line-rate=\"{}\" \
             branch-rate=\"{}\" complexity=\"0\"><lines><line number=\"{first}\" hits=\"{}\"/>\
             </lines></method>",
            escape(covered.name(function)),
            rate(function.insns),
            rate(function.branches),
            function.count
        )?;
    }
    writeln!(out, "          </methods>\n          <lines>")?;
    for (number, line) in lines {
        writeln!(out, "            {}", line_element(*number, line))?;
    }
    writeln!(out, "          </lines>\n        </class>")
}

fn line_element(number: u32, line: &LineCoverage) -> String {
    let mut share = Share::default();
    for (_, branch) in &line.branches {
        share += branch.share();
    }
    if share.all == 0 {
        return format!(
            "<line number=\"{number}\" hits=\"{}\" branch=\"false\"/>",
            line.count
        );
    }
    let percent = share.hit * 100 / share.all;
    format!(
        "<line number=\"{number}\" hits=\"{}\" branch=\"true\" condition-coverage=\"{percent}% \
         ({}/{})\"/>",
        line.count, share.hit, share.all
    )
}

/// A share from 0 to 1.
fn rate(share: Share) -> String {
    format!("{:.4}", share.percent() / 100.0)
}

/// Text inside an attribute. Characters that XML does not allow become U+FFFD.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing to memory does not fail.
        let _ = match c {
            '&' => escaped.write_str("&amp;"),
            '<' => escaped.write_str("&lt;"),
            '>' => escaped.write_str("&gt;"),
            '"' => escaped.write_str("&quot;"),
            c if c.is_control() => escaped.write_char('\u{fffd}'),
            c => escaped.write_char(c),
        };
    }
    escaped
}
