//! The tracefile of lcov, which genhtml reads.

use super::Covered;
use std::io::{self, Write};

/// One record per source file: functions (`FN`, `FNDA`), branches (`BRDA`: 0 is not
/// taken, 1 is taken) and lines (`DA`).
///
/// # Errors
///
/// A failing write.
pub fn lcov(covered: &Covered<'_>, out: &mut impl Write) -> io::Result<()> {
    let test = covered.group.map_or_else(String::new, |g| g.label());
    // Names of tests have letters, digits and underscores.
    let test = test.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    for (file, lines) in &covered.coverage.files {
        writeln!(out, "TN:{test}\nSF:{file}")?;
        let functions = covered.functions_of(file);
        for (line, function) in &functions {
            writeln!(out, "FN:{line},{}", plain(covered.name(function)))?;
        }
        for (_, function) in &functions {
            writeln!(
                out,
                "FNDA:{},{}",
                function.count,
                plain(covered.name(function))
            )?;
        }
        let hit = functions.iter().filter(|(_, f)| f.count > 0).count();
        writeln!(out, "FNF:{}\nFNH:{hit}", functions.len())?;
        let (mut found, mut hit) = (0, 0);
        for (line, coverage) in lines {
            for (block, (_, branch)) in coverage.branches.iter().enumerate() {
                for (way, count) in [branch.not_taken, branch.taken].into_iter().enumerate() {
                    found += 1;
                    hit += u64::from(count > 0);
                    match branch.all() {
                        0 => writeln!(out, "BRDA:{line},{block},{way},-")?,
                        _ => writeln!(out, "BRDA:{line},{block},{way},{count}")?,
                    }
                }
            }
        }
        writeln!(out, "BRF:{found}\nBRH:{hit}")?;
        for (line, coverage) in lines {
            writeln!(out, "DA:{line},{}", coverage.count)?;
        }
        let hit = lines.values().filter(|line| line.count > 0).count();
        writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len())?;
    }
    Ok(())
}

/// A name without what ends a line. A comma may be part of a name: it is the last
/// field.
fn plain(name: &str) -> String {
    name.replace('\n', " ")
}
