//! Coverage as text.

use super::Covered;
use hartrace_analyze::{Coverage, LineCoverage, Share};
use hartrace_flow::order;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A summary, then files with the lines that never ran, then functions, the least
/// covered first, and branches that went only one way.
///
/// # Errors
///
/// A failing write.
pub fn text(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    if let Some(group) = &covered.group {
        writeln!(out, "{}", group.label())?;
    }
    let all = covered.coverage.shares();
    for (name, share) in [
        ("instructions", all.insns),
        ("branches", all.branches),
        ("lines", all.lines),
        ("functions", all.functions),
    ] {
        if share.all > 0 {
            writeln!(
                out,
                "{name:<13} {:>6.2} %  {:>8} of {}",
                share.percent(),
                share.hit,
                share.all
            )?;
        }
    }
    files(covered, out)?;
    functions(covered, out)?;
    branches(covered, out)
}

/// `12 %`, or nothing if there is nothing.
fn cell(share: Share) -> String {
    match share.all {
        0 => "-".to_owned(),
        _ => format!("{:.2}", share.percent()),
    }
}

fn files(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    if covered.coverage.files.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>8} {:>10}  file, and lines that never ran",
        "lines %", "branches %"
    )?;
    for (file, lines) in &covered.coverage.files {
        let shares = Coverage::shares_of(lines);
        let (own, branches) = (cell(shares.lines), cell(shares.branches));
        write!(out, "{own:>8} {branches:>10}  {file}")?;
        match missed(lines).as_str() {
            "" => writeln!(out)?,
            missed => writeln!(out, "  {missed}")?,
        }
    }
    Ok(())
}

/// Lines that never ran: `3, 7-9`. Lines without code do not interrupt a range.
fn missed(lines: &BTreeMap<u32, LineCoverage>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let mut before_ran = true;
    for (&number, line) in lines {
        let ran = line.count > 0;
        match ranges.last_mut().filter(|_| !before_ran) {
            Some(last) if !ran => last.1 = number,
            _ if !ran => ranges.push((number, number)),
            _ => {}
        }
        before_ran = ran;
    }
    let words = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn functions(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    if covered.coverage.functions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>8} {:>10} {:>12}  function",
        "code %", "branches %", "entries"
    )?;
    let mut list: Vec<_> = covered.coverage.functions.iter().collect();
    order::sort_by(&mut list, |a, b| {
        let order = a.insns.percent().total_cmp(&b.insns.percent());
        order.then(a.function.cmp(&b.function))
    });
    for function in list {
        writeln!(
            out,
            "{:>8} {:>10} {:>12}  {}",
            cell(function.insns),
            cell(function.branches),
            function.count,
            covered.name(function)
        )?;
    }
    Ok(())
}

fn branches(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    let one_way = covered.coverage.branches.iter();
    let one_way: Vec<_> = one_way
        .filter(|(_, branch)| branch.share().hit == 1)
        .collect();
    if one_way.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>12}  branches that went only one way",
        "executions"
    )?;
    for (pc, branch) in one_way {
        let way = if branch.taken > 0 {
            "always taken"
        } else {
            "never taken"
        };
        writeln!(
            out,
            "{:>12}  {way:<12}  {}",
            branch.all(),
            covered.places.at(*pc)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines() {
        let line = |count| LineCoverage {
            count,
            ..LineCoverage::default()
        };
        let lines = [(1, 5), (3, 0), (4, 0), (7, 0), (9, 1), (12, 0)];
        let lines = lines
            .into_iter()
            .map(|(number, count)| (number, line(count)));
        assert_eq!(missed(&lines.collect()), "3-7, 12");
        assert_eq!(missed(&BTreeMap::new()), "");
    }
}
