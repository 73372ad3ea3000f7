//! Names of functions as they stand in the source: Rust and C++.

/// The name in the source, or the name as it is where it is not mangled. The hash
/// of a Rust name is left out.
#[must_use]
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::default();
    let cpp = cpp_demangle::Symbol::new(name).ok();
    cpp.and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_language() {
        for (mangled, name) in [
            ("main", "main"),
            ("put_field.isra.0", "put_field.isra.0"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Z", "_Z"),
            ("_Zgarbage", "_Zgarbage"),
        ] {
            assert_eq!(demangle(mangled), name);
        }
    }
}
