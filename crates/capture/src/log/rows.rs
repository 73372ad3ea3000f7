//! Steps as ingress rows.

use hartrace_flow::{
    Effects, HartId, Ingress, IngressSink, Observer, Port, PortConfig, Step, Wants,
};
use hartrace_isa::ItypeTable;
use hartrace_logs::{IngressColumns, IngressWriter, Iretire, RowError};
use std::fmt;

/// Text gathered before it is handed on.
const FULL: usize = 1 << 16;

/// What takes rows, or why there is none.
type Put<'a> = Box<dyn FnMut(Result<&[u8], RowError>) + 'a>;

/// Writes what the ingress port of the hart shows. `put` gets the text, and the
/// blocks that fit no row.
pub struct RowWriter<'a>(Port<Rows<'a>>);

struct Rows<'a> {
    writer: IngressWriter,
    text: Text<'a>,
    /// Cycles in which nothing happens to an instruction are left out.
    dense: bool,
}

impl<'a> RowWriter<'a> {
    /// These columns and that of `sijump` if the port has it; for the E-Trace
    /// reference encoder, those that it knows.
    pub fn new(
        port: PortConfig,
        columns: IngressColumns,
        iretire: Iretire,
        put: impl FnMut(Result<&[u8], RowError>) + 'a,
    ) -> RowWriter<'a> {
        let dense = port.table == ItypeTable::ETraceReference;
        let columns = IngressColumns {
            sijump: port.sijump,
            ..if dense {
                IngressColumns::default()
            } else {
                columns
            }
        };
        let writer = IngressWriter::new(columns, iretire);
        let buffer = Vec::with_capacity(FULL + 1024);
        let put = Box::new(put);
        let mut text = Text { put, buffer };
        // Text takes everything.
        let _ = writer.write_header(&mut text);
        let rows = Rows {
            writer,
            text,
            dense,
        };
        RowWriter(Port::new(port, rows))
    }
}

impl Observer for RowWriter<'_> {
    // The port also shows data accesses, for which a row has no columns.
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl IngressSink for Rows<'_> {
    fn ingress(&mut self, _: HartId, block: &Ingress) {
        if self.dense && block.iretire == 0 && !block.itype.is_trap() {
            return;
        }
        let row = std::slice::from_ref(block);
        if let Err(error) = self.writer.write_row(&mut self.text, row) {
            (self.text.put)(Err(error));
        }
    }

    fn finish(&mut self) {
        self.text.flush();
    }
}

/// Text on its way out.
struct Text<'a> {
    put: Put<'a>,
    buffer: Vec<u8>,
}

impl Text<'_> {
    fn flush(&mut self) {
        (self.put)(Ok(&self.buffer));
        self.buffer.clear();
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.buffer.len() >= FULL {
            self.flush();
        }
        self.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
