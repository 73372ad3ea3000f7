//! A profile beside an earlier one.

use super::folded::paths;
use super::{Shown, percent, unit};
use crate::json;
use hartrace_analyze::Profile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What changed since an earlier profile, function by function.
///
/// # Errors
///
/// A failing write.
pub fn difference(shown: &Shown<'_>, before: &Profile, out: &mut impl Write) -> io::Result<()> {
    let list = shown.profile.changes_since(before, shown.by);
    let (old, new) = (before.total().of(shown.by), shown.whole());
    let change = i128::from(new) - i128::from(old);
    let relative = percent(new, old) - 100.0;
    writeln!(
        out,
        "{}: {old} before, {new} now, {change:+} ({relative:+.2} %)\n",
        unit(shown.by)
    )?;
    writeln!(
        out,
        "{:>15} {:>9} {:>14} {:>14} {:>10} {:>10}  function",
        "change", "%", "self before", "self now", "calls", "before"
    )?;
    for both in list.iter().take(shown.rows()) {
        let relative = match both.own.0 {
            0 => "new".to_owned(),
            old => format!("{:+.2}", percent(both.own.1, old) - 100.0),
        };
        writeln!(
            out,
            "{:>+15} {relative:>9} {:>14} {:>14} {:>10} {:>10}  {}",
            both.change(),
            both.own.0,
            both.own.1,
            both.calls.1,
            both.calls.0,
            both.name
        )?;
    }
    match list.len().saturating_sub(shown.rows()) {
        0 => Ok(()),
        more => writeln!(
            out,
            "({more} more function{})",
            if more == 1 { "" } else { "s" }
        ),
    }
}

/// Call paths with their cost before and now, as differential flame graphs are made
/// of.
///
/// # Errors
///
/// A failing write.
pub fn folded_difference(
    shown: &Shown<'_>,
    before: &Profile,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (path, own) in paths(&before.tree, &before.functions, shown.by) {
        all.entry(path).or_default().0 = own;
    }
    let profile = shown.profile;
    for (path, own) in paths(&profile.tree, &profile.functions, shown.by) {
        all.entry(path).or_default().1 = own;
    }
    for (path, (before, now)) in all {
        writeln!(out, "{path} {before} {now}")?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Header {
    r#type: &'static str,
    schema: &'static str,
    version: u32,
    measure: &'static str,
    before: u64,
    now: u64,
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    name: &'a str,
    self_before: u64,
    self_now: u64,
    calls_before: u64,
    calls_now: u64,
}

/// The same as JSON lines.
///
/// # Errors
///
/// A failing write.
pub fn json_difference(
    shown: &Shown<'_>,
    before: &Profile,
    out: &mut impl Write,
) -> io::Result<()> {
    let header = Header {
        r#type: "header",
        schema: "hartrace-profile-difference",
        version: 1,
        measure: unit(shown.by),
        before: before.total().of(shown.by),
        now: shown.whole(),
    };
    json::line(&header, out)?;
    let changes = shown.profile.changes_since(before, shown.by);
    for both in changes.iter().take(shown.rows()) {
        let function = Function {
            r#type: "function",
            name: &both.name,
            self_before: both.own.0,
            self_now: both.own.1,
            calls_before: both.calls.0,
            calls_now: both.calls.1,
        };
        json::line(&function, out)?;
    }
    Ok(())
}
