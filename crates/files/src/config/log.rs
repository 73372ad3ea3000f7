//! `[log]`: how a log is read whose format is not recognised by itself, or is not among
//! the known ones.

use super::read::{Reader, Value};
use super::value::Named;
use super::write::quote;
use crate::detect::Kind;
use crate::wave_port::WavePort;
use hartrace_logs::{Column, Columns, ColumnsError, LogFormat};
use toml::de::DeValue;

/// The names of formats.
pub(crate) const FORMATS: Named<Kind> = &[
    ("pc", Kind::PcList),
    ("spike", Kind::SpikeLog),
    ("spike-csv", Kind::SpikeCsv),
    ("ingress", Kind::IngressCsv),
    ("ibex", Kind::Log(LogFormat::Ibex)),
    ("rvvi", Kind::Log(LogFormat::Rvvi)),
    ("sail", Kind::Log(LogFormat::Sail)),
    ("rocket", Kind::Log(LogFormat::Rocket)),
    ("qemu-execlog", Kind::Log(LogFormat::QemuPlugin)),
    ("qemu-exec", Kind::Log(LogFormat::QemuBlocks)),
    ("whisper", Kind::Log(LogFormat::Whisper)),
    ("whisper-csv", Kind::Log(LogFormat::WhisperCsv)),
    ("gem5", Kind::Log(LogFormat::Gem5)),
    ("renode", Kind::Log(LogFormat::Renode)),
    ("renode-binary", Kind::Log(LogFormat::RenodeBinary)),
    ("riscv-dv", Kind::Log(LogFormat::RiscvDv)),
    ("tracerv", Kind::Log(LogFormat::Tracerv)),
    ("columns", Kind::Log(LogFormat::Columns)),
    ("wave", Kind::Wave(None)),
    ("rvfi-wave", Kind::Wave(Some(WavePort::Rvfi))),
    ("ingress-wave", Kind::Wave(Some(WavePort::Ingress))),
    ("cva6-wave", Kind::Wave(Some(WavePort::Cva6))),
];

const OTHERS: Named<bool> = &[("error", false), ("ignore", true)];

section! {
    /// `[log]`. What is `None` is not said.
    Log = "[log]" {
        /// The format.
        format: Kind = (named FORMATS);
    }
    sections {
        /// `[log.columns]`.
        columns: LogColumns;
    }
}

section! {
    /// `[log.columns]`: a table by its separator and its columns, or a pattern. What is
    /// `None` is not said.
    LogColumns = "[log.columns]" {
        /// The form of a line, with columns in braces.
        pattern: String = (text);
        /// What divides the columns of a table.
        separator: u8 = (separator);
        /// Columns whose numbers are decimal.
        decimal: Vec<Column> = (columns);
        /// Columns whose numbers are hexadecimal.
        hexadecimal: Vec<Column> = (columns);
        /// Lines of another form are passed over.
        other_lines: bool = (named OTHERS);
        /// The columns of a table, by name or number.
        pc: String = (column);
        /// See [`Column::Insn`].
        insn: String = (column);
        /// See [`Column::Mode`].
        mode: String = (column);
        /// See [`Column::Hart`].
        hart: String = (column);
        /// See [`Column::Time`].
        time: String = (column);
        /// See [`Column::Next`].
        next: String = (column);
        /// See [`Column::Valid`].
        valid: String = (column);
        /// See [`Column::Trap`].
        trap: String = (column);
        /// See [`Column::Intr`].
        intr: String = (column);
        /// See [`Column::Cause`].
        cause: String = (column);
        /// See [`Column::Tval`].
        tval: String = (column);
        /// See [`Column::Rd`].
        rd: String = (column);
        /// See [`Column::RdValue`].
        rd_value: String = (column);
        /// See [`Column::Frd`].
        frd: String = (column);
        /// See [`Column::FrdValue`].
        frd_value: String = (column);
        /// See [`Column::MemAddr`].
        mem_addr: String = (column);
        /// See [`Column::MemRmask`].
        mem_rmask: String = (column);
        /// See [`Column::MemWmask`].
        mem_wmask: String = (column);
        /// See [`Column::MemRdata`].
        mem_rdata: String = (column);
        /// See [`Column::MemWdata`].
        mem_wdata: String = (column);
    }
}

impl Reader {
    fn text(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        self.string(name, value)
    }

    fn separator(&mut self, name: &'static str, value: &Value<'_>) -> Option<u8> {
        match self.string(name, value)?.as_bytes() {
            [byte] if byte.is_ascii() => Some(*byte),
            _ => self.refuse(name, value, "one character, such as \",\""),
        }
    }

    /// A column of a table: its name, or its number from 1 on.
    fn column(&mut self, name: &'static str, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::Integer(_) => {
                let number: u32 = self.number(name, value, 1..=65535)?;
                Some(number.to_string())
            }
            _ => self.string(name, value),
        }
    }

    fn columns(&mut self, name: &'static str, value: &Value<'_>) -> Option<Vec<Column>> {
        let what = "a list of columns, such as [\"pc\"]";
        self.list(name, value, what, |reader, name, value| {
            let text = reader.string(name, value)?;
            match Column::named(&text) {
                Some(column) => Some(column),
                None => reader.refuse(name, value, "names of columns, such as \"pc\""),
            }
        })
    }
}

fn text(text: &String) -> String {
    quote(text)
}

fn column(text: &String) -> String {
    quote(text)
}

fn separator(byte: &u8) -> String {
    quote(char::from(*byte).to_string())
}

fn columns(columns: &[Column]) -> String {
    let names = Column::NAMES
        .iter()
        .filter(|named| columns.contains(&named.1));
    let names: Vec<String> = names.map(|named| quote(named.0)).collect();
    format!("[{}]", names.join(", "))
}

impl LogColumns {
    /// The columns; `None` if there is nothing about them.
    ///
    /// # Errors
    ///
    /// Columns that cannot be.
    pub fn columns(&self) -> Option<Result<Columns, ColumnsError>> {
        if !self.is_said() {
            return None;
        }
        let made = match &self.pattern {
            Some(pattern) => Columns::pattern(&pattern.value),
            None => {
                let separator = self.separator.as_ref().map_or(b',', |s| s.value);
                Columns::csv(separator, &self.named())
            }
        };
        Some(made.map(|mut made| {
            for (list, decimal) in [(&self.decimal, true), (&self.hexadecimal, false)] {
                for column in list.iter().flat_map(|list| &list.value) {
                    made = made.with_decimal(*column, decimal);
                }
            }
            match self.other_lines.as_ref().is_some_and(|s| s.value) {
                true => made.ignoring_others(),
                false => made,
            }
        }))
    }

    /// The columns of a table that are there.
    fn named(&self) -> Vec<(Column, &str)> {
        let all = [
            &self.pc,
            &self.insn,
            &self.mode,
            &self.hart,
            &self.time,
            &self.next,
            &self.valid,
            &self.trap,
            &self.intr,
            &self.cause,
            &self.tval,
            &self.rd,
            &self.rd_value,
            &self.frd,
            &self.frd_value,
            &self.mem_addr,
            &self.mem_rmask,
            &self.mem_wmask,
            &self.mem_rdata,
            &self.mem_wdata,
        ];
        let named = Column::NAMES.iter().zip(all);
        named
            .filter_map(|((_, column), setting)| Some((*column, setting.as_ref()?.value.as_str())))
            .collect()
    }
}
