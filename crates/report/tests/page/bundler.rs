//! Makes one page of the modules, the style sheets and the template in `page/src`.
//!
//! It understands exactly what those files use, so that it fits in one file and needs
//! no other tool: imports are `import { a, b } from "./file.js";`, exports
//! stand before a declaration at the start of a line, and style sheets import each other
//! with `@import "./file.css";`. Each module becomes a function of its own, so names in
//! different modules do not collide. Whatever it does not understand is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

/// The folder of the page.
pub(crate) fn page_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

/// The template with style and script; `{{connect}}` and `{{data}}` are left for the
/// writer of reports.
pub(crate) fn page() -> String {
    let source = page_folder().join("src");
    let style = style(&source.join("page.css"));
    let script = script(&source.join("main.js"));
    for text in [&style, &script] {
        assert!(!text.contains("</"), "style and script end at `</`");
        assert!(!text.contains("{{"), "markers belong in the template only");
    }
    read(&source.join("page.html"))
        .replace("{{style-hash}}", &policy_hash(&style))
        .replace("{{script-hash}}", &policy_hash(&script))
        .replace("{{style}}", &style)
        .replace("{{script}}", &script)
}

/// A style sheet with those that it imports in place.
pub(crate) fn style(file: &Path) -> String {
    let mut result = String::new();
    for line in without_comments(&read(file)).lines() {
        if let Some(path) = line.strip_prefix("@import ") {
            let path = path.trim_end_matches(';').trim_matches('"');
            result.push_str(&style(&resolve(file, path)));
        } else if !line.is_empty() {
            result.push_str(line);
            result.push('\n');
        }
    }
    result
}

/// A module with all it needs, as one script.
pub(crate) fn script(entry: &Path) -> String {
    let mut bundle = Bundle::default();
    bundle.add(entry);
    format!("(() => {{\n\"use strict\";\n{}}})();\n", bundle.text)
}

#[derive(Default)]
struct Bundle {
    text: String,
    /// What each module exports; `None` while its imports are read.
    modules: BTreeMap<PathBuf, Option<Vec<String>>>,
}

impl Bundle {
    /// Adds a module after those it imports.
    fn add(&mut self, file: &Path) {
        if let Some(known) = self.modules.get(file) {
            assert!(known.is_some(), "{} imports itself", file.display());
            return;
        }
        self.modules.insert(file.to_owned(), None);
        let (mut body, mut exports) = (String::new(), Vec::new());
        let text = joined_imports(&without_comments(&read(file)));
        for line in text.lines() {
            if let Some((names, path)) = import(line) {
                let other = resolve(file, path);
                self.add(&other);
                self.check(file, &other, names);
                body.push_str(&format!("const {{ {names} }} = {};\n", variable(&other)));
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exports.push(declared_name(declaration).to_owned());
                body.push_str(declaration);
                body.push('\n');
            } else {
                assert!(!line.starts_with("import"), "not understood: {line}");
                body.push_str(line);
                body.push('\n');
            }
        }
        let exported = exports.join(", ");
        let variable = variable(file);
        self.text +=
            &format!("const {variable} = (() => {{\n{body}return {{ {exported} }};\n}})();\n");
        self.modules.insert(file.to_owned(), Some(exports));
    }

    fn check(&self, file: &Path, other: &Path, names: &str) {
        let exports = self.modules.get(other).and_then(Option::as_ref).unwrap();
        for name in names.split(", ") {
            let known = exports.iter().any(|export| export == name);
            assert!(
                known,
                "{}: {} exports no {name}",
                file.display(),
                other.display()
            );
        }
    }
}

/// Long imports on one line, as the short ones.
fn joined_imports(text: &str) -> String {
    let mut result = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside |= line == "import {";
        if inside && line.starts_with('}') {
            result = result.trim_end_matches([',', ' ']).to_owned() + " ";
            inside = false;
        }
        result.push_str(if inside { line.trim() } else { line });
        result.push(if inside { ' ' } else { '\n' });
    }
    result
}

/// The names and the path of an import.
fn import(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("import { ")?.strip_suffix("\";")?;
    rest.split_once(" } from \"")
}

/// The name in `function f(`, `async function f(`, `class C {` or `const c =`.
fn declared_name(declaration: &str) -> &str {
    let declaration = declaration.trim_start_matches("async ");
    let (_, rest) = declaration.split_once(' ').unwrap();
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap();
    assert!(end > 0, "not understood: export {declaration}");
    &rest[..end]
}

/// The variable that holds the exports of a module: `data/axis.js` is `data_axis_js`.
fn variable(file: &Path) -> String {
    let folder = page_folder();
    let inside = file.strip_prefix(&folder).unwrap();
    inside
        .to_str()
        .unwrap()
        .replace(|c: char| !c.is_alphanumeric(), "_")
}

/// Leaves out comments that fill whole lines; others stay.
fn without_comments(text: &str) -> String {
    let mut result = String::new();
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        let opens =
            trimmed.starts_with("/*") && (trimmed.ends_with("*/") || !trimmed.contains("*/"));
        if inside || opens {
            inside = !trimmed.ends_with("*/");
        } else if !trimmed.starts_with("//") && !trimmed.is_empty() {
            result.push_str(line);
            result.push('\n');
        }
    }
    result
}

/// `path` as seen from the folder of `file`.
fn resolve(file: &Path, path: &str) -> PathBuf {
    let mut result = file.parent().unwrap().to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => assert!(result.pop()),
            Component::Normal(name) => result.push(name),
            _ => {}
        }
    }
    result
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The hash by which a content security policy allows an inline script or style.
fn policy_hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut result = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            result.push(if place <= chunk.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    result
}
