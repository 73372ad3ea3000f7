//! What the name of a variable means.

use hartrace_files::wave_port::{WavePort, csr_field};

/// Where a variable belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The port: its scope and what its names start with.
    pub(super) group: String,
    pub(super) field: String,
    /// The lane or block, where it is in the name.
    pub(super) lane: Option<u32>,
}

/// What a user has said about names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints<'h> {
    pub(super) scope: Option<&'h str>,
    pub(super) prefix: Option<&'h str>,
}

/// The port that a variable belongs to, and what it is there.
pub(super) fn place(port: WavePort, scope: &str, name: &str, hints: Hints<'_>) -> Option<Place> {
    let inside = match hints.scope {
        Some(wanted) => Some(inside(scope, wanted)?),
        None => None,
    };
    // A lane of its own scope: `rvfi[0].valid`.
    let (outer, scope_lane) = scope_lane(scope);
    let (name, suffix) = direction(name);
    let (stem, rest) = match hints.prefix {
        Some(prefix) => (prefix, name.strip_prefix(prefix)?),
        None => stem(port, name),
    };
    let in_name = !stem.is_empty() || hints.prefix.is_some();
    let (field, lane) = field(port, rest)?;
    let rvfi = port == WavePort::Rvfi;
    // Words such as `valid` are everywhere.
    if rvfi && !in_name && inside != Some("") && !is_rvfi(outer) {
        return None;
    }
    Some(Place {
        group: format!("{outer}.{stem}*{suffix}"),
        field: field.to_owned(),
        lane: lane.or(scope_lane),
    })
}

/// What a scope has after one that it is, or is within. The first scopes may be left out: those
/// that a simulator adds around all.
fn inside<'s>(scope: &'s str, wanted: &str) -> Option<&'s str> {
    let mut rest = scope;
    loop {
        let found = rest.strip_prefix(wanted);
        if let Some(after) =
            found.filter(|after| after.is_empty() || after.starts_with(['.', '[', '(']))
        {
            return Some(after);
        }
        rest = rest.split_once('.')?.1;
    }
}

/// Whether the innermost scope is that of an RVFI port.
fn is_rvfi(scope: &str) -> bool {
    let last = scope.rsplit('.').next().unwrap_or(scope);
    last.to_ascii_lowercase().contains("rvfi")
}

/// A scope without its number, and the number: `a.rvfi[1]`, `a.rvfi(1)`, `a.rvfi.[1]`.
fn scope_lane(scope: &str) -> (&str, Option<u32>) {
    let found = || {
        let (base, number) = match scope.strip_suffix(']') {
            Some(rest) => rest.rsplit_once('[')?,
            None => scope.strip_suffix(')')?.rsplit_once('(')?,
        };
        Some((base.trim_end_matches('.'), number.parse().ok()?))
    };
    match found() {
        Some((base, lane)) => (base, Some(lane)),
        None => (scope, None),
    }
}

/// A name without the direction that many designs add.
fn direction(name: &str) -> (&str, &str) {
    for suffix in ["_o", "_i"] {
        if let Some(base) = name.strip_suffix(suffix) {
            return (base, suffix);
        }
    }
    (name, "")
}

/// What the names of a port start with, and the rest.
fn stem(port: WavePort, name: &str) -> (&str, &str) {
    match port {
        WavePort::Rvfi => match name.to_ascii_lowercase().rfind("rvfi_") {
            Some(at) => name.split_at(at + "rvfi_".len()),
            None => ("", name),
        },
        WavePort::Ingress | WavePort::Cva6 => {
            // The longest field at the end; a number may follow.
            let digits = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
            let digits = digits.trim_end_matches(['[', ']']);
            let base = if digits.is_empty() { name } else { digits };
            let base = base.split('[').next().unwrap_or(base);
            let known = port.fields().iter().filter_map(|field| {
                let stem = base.strip_suffix(field)?;
                (stem.is_empty() || stem.ends_with('_')).then_some(stem)
            });
            let stem = known.min_by_key(|stem| stem.len()).unwrap_or("");
            name.split_at(stem.len())
        }
    }
}

/// A field and its lane: `insn`, `insn_1`, `insn[1]`, `1_insn`.
fn field(port: WavePort, text: &str) -> Option<(&str, Option<u32>)> {
    if is_known(port, text) {
        return Some((text, None));
    }
    let bracket = || {
        let (base, number) = text.strip_suffix(']')?.rsplit_once('[')?;
        Some((base, number))
    };
    let behind = || text.rsplit_once('_');
    let before = || text.split_once('_').map(|(number, base)| (base, number));
    let forms = [bracket(), behind(), before()];
    forms.into_iter().flatten().find_map(|(base, number)| {
        let lane = number.parse().ok()?;
        is_known(port, base).then_some((base, Some(lane)))
    })
}

fn is_known(port: WavePort, field: &str) -> bool {
    port.fields().contains(&field) || (port == WavePort::Rvfi && csr_field(field).is_some())
}

/// Whether a name is one that clocks have: surely, or perhaps.
pub(super) fn clock_rank(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "clk" | "clock" | "clk_i" | "clock_i" | "i_clk" | "aclk" => Some(0),
        name if name.contains("clk") || name.contains("clock") => Some(1),
        _ => None,
    }
}

/// Whether a name is one that resets have, and the level at which such a reset is active.
pub(super) fn reset_level(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    let base = name.strip_suffix("_i").unwrap_or(&name);
    let base = base.strip_prefix("i_").unwrap_or(base);
    match base {
        "rst" | "reset" | "areset" | "rst_p" => Some(true),
        "rst_n" | "rstn" | "reset_n" | "resetn" | "nrst" | "nreset" | "aresetn" | "rst_ni"
        | "arst_n" | "rst_b" | "reset_b" => Some(false),
        // `rst_ni` without its direction.
        "rst_n_i" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rvfi(scope: &str, name: &str) -> Option<(String, String, Option<u32>)> {
        let place = place(WavePort::Rvfi, scope, name, Hints::default())?;
        Some((place.group, place.field, place.lane))
    }

    #[test]
    fn the_first_scopes_may_be_left_out() {
        for (scope, wanted, rest) in [
            ("TOP.tb.core", "tb", Some(".core")),
            ("TOP.tb.core", "TOP.tb.core", Some("")),
            ("tb.tb.core[0]", "tb.core", Some("[0]")),
            ("TOP.tb2.core", "tb", None),
            ("TOP.tb", "tb.core", None),
        ] {
            assert_eq!(inside(scope, wanted), rest, "{scope} {wanted}");
        }
    }

    #[test]
    fn names_of_rvfi() {
        let found =
            |group: &str, field: &str, lane| Some((group.to_owned(), field.to_owned(), lane));
        assert_eq!(
            rvfi("tb.dut", "rvfi_valid"),
            found("tb.dut.rvfi_*", "valid", None)
        );
        assert_eq!(
            rvfi("tb", "io_rvfi_rd_wdata"),
            found("tb.io_rvfi_*", "rd_wdata", None)
        );
        assert_eq!(
            rvfi("tb", "rvfi_insn_o"),
            found("tb.rvfi_*_o", "insn", None)
        );
        assert_eq!(
            rvfi("tb", "rvfi_insn_1"),
            found("tb.rvfi_*", "insn", Some(1))
        );
        assert_eq!(
            rvfi("tb", "rvfi_insn[1]"),
            found("tb.rvfi_*", "insn", Some(1))
        );
        assert_eq!(
            rvfi("tb", "rvfi_1_insn"),
            found("tb.rvfi_*", "insn", Some(1))
        );
        assert_eq!(
            rvfi("tb", "rvfi_csr_mepc_wdata"),
            found("tb.rvfi_*", "csr_mepc_wdata", None)
        );
        assert_eq!(rvfi("tb.rvfi", "valid"), found("tb.rvfi.*", "valid", None));
        assert_eq!(
            rvfi("tb.rvfi_instr[1]", "valid"),
            found("tb.rvfi_instr.*", "valid", Some(1))
        );
        assert_eq!(
            rvfi("tb.rvfi.[1]", "valid"),
            found("tb.rvfi.*", "valid", Some(1))
        );
        for (scope, name) in [
            ("tb", "valid"),
            ("tb", "rvfi_something"),
            ("tb.axi", "order"),
        ] {
            assert_eq!(rvfi(scope, name), None);
        }
    }

    #[test]
    fn names_of_the_ingress_port() {
        let ingress = |scope: &str, name: &str| {
            let place = place(WavePort::Ingress, scope, name, Hints::default())?;
            Some((place.group, place.field, place.lane))
        };
        let found =
            |group: &str, field: &str, lane| Some((group.to_owned(), field.to_owned(), lane));
        assert_eq!(ingress("tb", "itype"), found("tb.*", "itype", None));
        assert_eq!(ingress("tb", "itype_1"), found("tb.*", "itype", Some(1)));
        assert_eq!(
            ingress("tb", "te_iretire_i"),
            found("tb.te_*_i", "iretire", None)
        );
        assert_eq!(
            ingress("tb", "te_iaddr[0]"),
            found("tb.te_*", "iaddr", Some(0))
        );
        assert_eq!(
            ingress("tb.iti_to_encoder_o", "cycles"),
            found("tb.iti_to_encoder_o.*", "cycles", None)
        );
        assert_eq!(ingress("tb", "uptime"), None);
    }

    #[test]
    fn hints_narrow_and_widen() {
        let hints = Hints {
            scope: Some("tb.a"),
            prefix: Some("trace_"),
        };
        let at = |scope, name| place(WavePort::Rvfi, scope, name, hints).map(|place| place.field);
        assert_eq!(at("tb.a", "trace_valid").as_deref(), Some("valid"));
        assert_eq!(at("tb.a.b", "trace_valid").as_deref(), Some("valid"));
        assert_eq!(at("tb.ab", "trace_valid"), None);
        assert_eq!(at("tb.a", "rvfi_valid"), None);
        let hints = Hints {
            scope: Some("tb.a"),
            prefix: None,
        };
        let at = |scope, name| place(WavePort::Rvfi, scope, name, hints).map(|place| place.field);
        assert_eq!(at("tb.a", "valid").as_deref(), Some("valid"));
        assert_eq!(at("tb.a.b", "valid"), None);
    }

    #[test]
    fn clocks_and_resets() {
        assert_eq!(
            ["clk", "CLK_I", "core_clk", "data"].map(clock_rank),
            [Some(0), Some(0), Some(1), None]
        );
        let levels = ["rst", "resetn", "rst_ni", "reset_i", "i_rst_n", "resets"].map(reset_level);
        assert_eq!(
            levels,
            [
                Some(true),
                Some(false),
                Some(false),
                Some(true),
                Some(false),
                None
            ]
        );
    }
}
