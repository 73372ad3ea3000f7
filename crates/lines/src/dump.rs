//! The pieces of a trace: one line for each, one for each byte, or JSON.

mod object;

use crate::json;
use crate::words::{count, hex};
use hartrace_capture::trace::{
    Columns, Explained, Field, Format, Item, PieceFault, PieceKind, View,
};
use object::{Header, Object};
use std::fmt::Write as _;
use std::io::{self, Write};

/// How pieces are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// One line for each piece.
    Text,
    /// One line for each byte, or field of a group.
    Bytes,
    /// JSON lines.
    Json,
}

/// Prints the pieces of a trace.
pub struct Dump {
    format: Format,
    form: DumpForm,
    /// The line that is being made.
    line: String,
    /// The lines of a piece. Only this is written to what may be any writer, so that the rest
    /// is compiled once.
    text: Vec<u8>,
}

impl Dump {
    /// Of a trace of this format.
    #[must_use]
    pub fn new(format: Format, form: DumpForm) -> Dump {
        Dump {
            format,
            form,
            line: String::new(),
            text: Vec::new(),
        }
    }

    /// What is to be known of each piece.
    #[must_use]
    pub fn view(&self) -> View {
        match self.form {
            DumpForm::Text => View::Lines,
            DumpForm::Bytes => View::Bytes,
            DumpForm::Json => View::Objects,
        }
    }

    /// Prints what comes before the first piece.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        match (self.form, self.format.columns()) {
            (DumpForm::Text, _) => Ok(()),
            (DumpForm::Json, _) => json::line(&Header::new(self.format), out),
            (_, Columns::Mdo) => writeln!(out, "offset    byte  MDO     MSEO  decoded"),
            (_, Columns::Bits) => writeln!(out, "offset    byte  bits      decoded"),
            (_, Columns::Fields) => writeln!(out, "offset    bytes                    meaning"),
        }
    }

    /// Prints a piece with these bytes.
    ///
    /// # Errors
    ///
    /// A failing write.
    pub fn piece(
        &mut self,
        piece: &Explained,
        bytes: &[u8],
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.print(piece, bytes)?;
        out.write_all(&self.text)
    }

    /// Makes the text of a piece.
    fn print(&mut self, piece: &Explained, bytes: &[u8]) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        match (self.form, self.format.columns()) {
            (DumpForm::Text, _) => self.line(piece, bytes, &mut text)?,
            (DumpForm::Json, _) => json::line(&Object::new(self.format, piece, bytes), &mut text)?,
            (_, Columns::Fields) if piece.kind == PieceKind::Unit => rows(piece, bytes, &mut text)?,
            (_, Columns::Fields) => self.line(piece, bytes, &mut text)?,
            (_, columns) => byte_lines(piece, bytes, columns, &mut text)?,
        }
        self.text = text;
        Ok(())
    }

    /// One line.
    fn line(&mut self, piece: &Explained, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        // Writing to memory does not fail.
        let _ = match (piece.kind, &piece.fault) {
            (PieceKind::Unit, _) => self.unit(piece, bytes, &mut line),
            (PieceKind::Idle, _) => write!(line, "(idle) {}", piece.count),
            (PieceKind::Stray, _) => write!(line, "(stray) {} end group", piece.count),
            (PieceKind::Data, _) => {
                let framed = usize::from(piece.frame.is_some());
                let payload = bytes.get(framed..).unwrap_or_default();
                write!(line, "(data) {}", hex(payload))
            }
            (PieceKind::Lost, Some(fault)) => {
                write!(line, "(container) {}: {}", fault.code, fault.text)
            }
            (_, Some(fault)) => bad(fault, bytes, piece.count, &mut line),
            (_, None) => Ok(()),
        };
        writeln!(out, "{:08x}  {line}", piece.at)?;
        self.line = line;
        Ok(())
    }

    /// A message, packet or group.
    fn unit(&self, piece: &Explained, bytes: &[u8], line: &mut String) -> std::fmt::Result {
        if let Some(hart) = piece.hart {
            write!(line, "hart {hart}  ")?;
        }
        if let Some(source) = piece.source {
            write!(line, "{source:<4} ")?;
        }
        let number = piece.codes.iter().find(|(name, _)| *name == "number");
        match (&piece.name, number) {
            (Some(name), _) => *line += name,
            (None, Some((_, number))) => write!(line, "{number}")?,
            (None, None) if self.format.columns() == Columns::Fields => line.push('-'),
            (None, None) => write!(line, "({})", self.format.unit())?,
        }
        if let Some(pc) = piece.pc {
            write!(line, " @{pc:#x}")?;
        }
        for field in piece.fields.iter().filter(|field| !field.in_name) {
            write!(line, " {}=", field.name)?;
            value(field, line)?;
        }
        let mut gap = "  ";
        for item in piece.items.iter().filter(|item| !item.is_frame) {
            *line += gap;
            *line += &item.text;
            gap = "; ";
        }
        if let Some(meaning) = &piece.meaning {
            write!(line, " ({meaning})")?;
        }
        if let Some(address) = piece.address {
            write!(line, " -> {address:#x}")?;
        }
        if let Some(time) = piece.time {
            write!(line, " at {time}")?;
        }
        if let Some(fault) = &piece.fault {
            *line += "  ";
            bad(fault, bytes, bytes.len() as u64, line)?;
        }
        Ok(())
    }
}

/// Bytes that are no message: what is wrong, the first of them, and how many
/// there are.
fn bad(fault: &PieceFault, bytes: &[u8], all: u64, line: &mut String) -> std::fmt::Result {
    write!(line, "(bad) {}: {}", fault.code, fault.text)?;
    if let Some((at, group, value)) = fault.place {
        write!(line, " ({value:#x}) at {at:#x}, in group {group}")?;
    }
    line.push(':');
    for byte in bytes.iter().take(16) {
        write!(line, " {byte:02x}")?;
    }
    match all > 16 {
        true => write!(line, " ... {all} bytes"),
        false => Ok(()),
    }
}

/// Numbers that count are decimal, the others hexadecimal.
fn value(field: &Field, line: &mut String) -> std::fmt::Result {
    match field.decimal {
        true => write!(line, "{}", field.value),
        false => write!(line, "{:#x}", field.value),
    }
}

/// `ICNT[10]=0x7D`, `TCODE[6]=28 - IndirectBranchHist`, `address[63]=0x558`.
fn field_text(field: &Field, columns: Columns) -> String {
    let mut text = format!("{}[{}]=", field.name, field.bits);
    // Writing to memory does not fail.
    let _ = match columns {
        // As in the table of the specification.
        Columns::Mdo if !field.decimal => write!(text, "0x{:X}", field.value),
        _ => value(field, &mut text),
    };
    if let Some(word) = &field.word {
        let _ = write!(text, " - {word}");
    }
    text
}

/// One line for each byte, with the fields that end in it. Fields that were
/// compressed away stand at the last byte.
fn byte_lines(
    piece: &Explained,
    bytes: &[u8],
    columns: Columns,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let last = bytes.len().saturating_sub(1);
    for (i, byte) in bytes.iter().enumerate() {
        let mut notes: Vec<String> = match (i, piece.frame) {
            _ if piece.kind == PieceKind::Idle => vec!["Idle".to_owned()],
            (0, Some(frame)) => vec![format!("{frame}, {}", count(last as u64, "byte"))],
            _ => {
                let here = piece.fields.iter().filter(|f| f.last_byte == Some(i));
                here.map(|f| field_text(f, columns)).collect()
            }
        };
        if i == last {
            let implied = piece.fields.iter().filter(|f| f.last_byte.is_none());
            notes.extend(implied.map(|f| format!("({})", field_text(f, columns))));
            let fault = piece.fault.as_ref();
            notes.extend(fault.map(|fault| format!("{}: {}", fault.code, fault.text)));
        }
        let (at, notes) = (piece.at + i as u64, notes.join(", "));
        let line = match columns {
            Columns::Mdo => {
                let (mdo, mseo) = (byte >> 2, byte & 3);
                format!("{at:08x}  0x{byte:02X}  {mdo:06b}  {mseo:02b}    {notes}")
            }
            _ => format!("{at:08x}  0x{byte:02X}  {byte:08b}  {notes}"),
        };
        writeln!(out, "{}", line.trim_end())?;
    }
    match piece.kind == PieceKind::Bad && piece.count > bytes.len() as u64 {
        true => writeln!(out, "... {} bytes", piece.count),
        false => Ok(()),
    }
}

/// One line for each field of a group, as in the tables of the specification's
/// examples. Fields that share a byte share a line.
fn rows(piece: &Explained, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    for Item {
        bytes: (start, length),
        fields,
        ..
    } in &piece.items
    {
        let mut rest = fields.as_slice();
        while let Some(first) = rest.first() {
            let from = first.first_byte;
            let shared = rest.iter().take_while(|f| f.first_byte == from).count();
            let (now, after) = rest.split_at(shared);
            rest = after;
            let to = after.first().map_or(start + length, |f| f.first_byte);
            let words = now.iter().filter_map(|f| f.word.as_deref());
            let words: Vec<&str> = words.collect();
            let shown = bytes.get(from..to).unwrap_or_default();
            let shown: Vec<String> = shown.iter().map(|b| format!("{b:02x}")).collect();
            let offset = piece.at + from as u64;
            let (shown, words) = (shown.join(" "), words.join(", "));
            writeln!(out, "{offset:08x}  {shown:<23}  {words}")?;
        }
    }
    Ok(())
}
