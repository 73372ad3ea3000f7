//! `[program]`: the code; and `[trace]`: the format of the trace that a sidecar
//! belongs to.

use super::read::{Problem, Reader, Value};
use super::value::Setting;
use super::write::{Writer, address, list, quote};
use crate::digest::Digest;
use crate::isa_hint;
use crate::program::{ElfFile, Identity, RawFile};
use hartrace_isa::Isa;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

const ELF: &[&str] = &["file", "base", "code_sha256", "sha256"];
const RAW: &[&str] = &["file", "base"];

section! {
    /// `[program]`: the code.
    Program = "[program]" {
        /// The instruction set, as [`hartrace_isa::Isa::parse`] reads it.
        isa: String = (isa);
        /// ELF files.
        elf: Vec<ElfFile> = (elf_files);
        /// Raw binaries.
        raw: Vec<RawFile> = (raw_files);
        /// Code histories.
        code: Vec<PathBuf> = (code_files);
        /// Folders with debug files.
        debug: Vec<PathBuf> = (code_files);
    }
}

impl Reader {
    fn isa(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        let text = self.string(name, value)?;
        match Isa::parse(&text) {
            Ok(_) => Some(text),
            Err(error) => {
                let mut expected = format!("an ISA string such as \"rv64gc\": {error}");
                if let Some(nearest) = isa_hint::nearest(&text) {
                    expected += &format!("; did you mean \"{nearest}\"?");
                }
                self.refuse(name, value, &expected)
            }
        }
    }

    fn elf_files(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<ElfFile>> {
        self.list(name, value, "files", Reader::elf)
    }

    fn raw_files(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<RawFile>> {
        self.list(name, value, "files", Reader::raw)
    }

    fn code_files(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<PathBuf>> {
        self.list(name, value, "files", |reader, name, value| {
            let file = reader.string(name, value)?;
            Some(reader.beside(Path::new(&file)))
        })
    }

    fn elf(&mut self, name: &'static str, value: &Value<'_>) -> Option<ElfFile> {
        let mut elf = match value.get_ref() {
            DeValue::String(text) => match ElfFile::parse(&**text) {
                Ok(elf) => elf,
                Err(error) => return self.refuse(name, value, &format!("FILE[@BASE]: {error}")),
            },
            DeValue::Table(table) => {
                self.known(table, ELF, "an entry of `elf`");
                ElfFile {
                    file: self.file(table, "an entry of `elf`", value)?,
                    base: self.get(table, "base", Reader::address).map(|s| s.value),
                    identity: self.identity(table),
                }
            }
            _ => {
                return self.refuse(
                    name,
                    value,
                    "\"FILE[@BASE]\" or { file, base, code_sha256 }",
                );
            }
        };
        elf.file = self.beside(&elf.file);
        Some(elf)
    }

    /// The hash of the whole file is the stricter one.
    fn identity(&mut self, table: &DeTable<'_>) -> Option<Identity> {
        let code = self.get(table, "code_sha256", Reader::digest);
        let file = self.get(table, "sha256", Reader::digest);
        let file = file.map(|s| Identity::File(s.value));
        file.or_else(|| code.map(|s| Identity::Code(s.value)))
    }

    fn raw(&mut self, name: &'static str, value: &Value<'_>) -> Option<RawFile> {
        let mut raw = match value.get_ref() {
            DeValue::String(text) => match RawFile::parse(&**text) {
                Ok(raw) => raw,
                Err(error) => return self.refuse(name, value, &format!("FILE@BASE: {error}")),
            },
            DeValue::Table(table) => {
                let section = "an entry of `raw`";
                self.known(table, RAW, section);
                let file = self.file(table, section, value)?;
                let Some(base) = self.get(table, "base", Reader::address) else {
                    if !table.contains_key("base") {
                        let name = "base";
                        self.fail(Problem::Missing { name, section }, value.span());
                    }
                    return None;
                };
                let base = base.value;
                RawFile { file, base }
            }
            _ => return self.refuse(name, value, "\"FILE@BASE\" or { file, base }"),
        };
        raw.file = self.beside(&raw.file);
        Some(raw)
    }

    fn file(
        &mut self,
        table: &DeTable<'_>,
        section: &'static str,
        whole: &Value<'_>,
    ) -> Option<PathBuf> {
        if !table.contains_key("file") {
            let name = "file";
            self.fail(Problem::Missing { name, section }, whole.span());
        }
        let file = self.get(table, "file", Reader::string)?;
        Some(PathBuf::from(file.value))
    }

    fn digest(&mut self, name: &'static str, value: &Value<'_>) -> Option<Digest> {
        let text = value.get_ref().as_str().unwrap_or_default();
        match text.parse() {
            Ok(digest) => Some(digest),
            Err(_) => self.refuse(name, value, "64 hexadecimal digits in quotes"),
        }
    }
}

fn isa(isa: &str) -> String {
    quote(isa)
}

fn elf_files(files: &[ElfFile]) -> String {
    list(files, elf)
}

fn raw_files(files: &[RawFile]) -> String {
    list(files, raw)
}

fn code_files(files: &[PathBuf]) -> String {
    list(files, |file| quote(file.display()))
}

fn elf(elf: &ElfFile) -> String {
    let mut text = format!("{{ file = {}", quote(elf.file.display()));
    if let Some(base) = elf.base {
        let _ = write!(text, ", base = {}", address(base));
    }
    if let Some(identity) = &elf.identity {
        let _ = write!(text, ", {} = {}", identity.key(), quote(identity.digest()));
    }
    text + " }"
}

fn raw(raw: &RawFile) -> String {
    format!(
        "{{ file = {}, base = {} }}",
        quote(raw.file.display()),
        address(raw.base)
    )
}

/// `[trace]`: what the file beside a sidecar is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The format's name.
    pub format: Setting<String>,
    /// The version of the format's specification.
    pub version: Option<Setting<String>>,
}

const TRACE: &str = "[trace]";

impl Trace {
    /// `span` is where the section has its name.
    pub(super) fn read(
        reader: &mut Reader,
        table: &DeTable<'_>,
        span: Range<usize>,
    ) -> Option<Trace> {
        reader.known(table, &["format", "version"], TRACE);
        let format = reader.get(table, "format", Reader::string);
        let version = reader.get(table, "version", Reader::string);
        if !table.contains_key("format") {
            let (name, section) = ("format", TRACE);
            reader.fail(Problem::Missing { name, section }, span);
        }
        format.map(|format| Trace { format, version })
    }

    pub(super) fn write(&self, out: &mut Writer) -> fmt::Result {
        out.section(TRACE)?;
        out.key("format", Some(&self.format), |v| quote(v))?;
        out.key("version", self.version.as_ref(), |v| quote(v))
    }
}
