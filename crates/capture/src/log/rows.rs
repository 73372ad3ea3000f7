//! Steps as ingress rows.

use hartrace_flow::{
    DataIngress, DataPort, Effects, HartId, Ingress, IngressSink, Observer, Port, PortConfig, Step,
    Straights, Wants, steps_of,
};
use hartrace_isa::ItypeTable;
use hartrace_logs::{IngressColumns, IngressWriter, Iretire, RowError};
use std::fmt;

/// Most data accesses of a block that a row has columns for.
const MOST: u8 = 8;

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
    /// A block whose accesses may follow, if there are columns for them.
    block: Option<(HartId, Ingress)>,
    data: Vec<DataIngress>,
    accesses: bool,
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
            accesses: match (port.data, iretire) {
                (DataPort::None, _) => 0,
                // An instruction has a row for each of its accesses.
                (_, Iretire::Instructions) => 1,
                (_, Iretire::Halfwords) => MOST,
            },
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
        let accesses = port.data != DataPort::None;
        let rows = Rows {
            writer,
            text,
            block: None,
            data: Vec::new(),
            accesses,
            dense,
        };
        // Rows have the unified form.
        let data = match accesses {
            true => DataPort::Unified,
            false => DataPort::None,
        };
        RowWriter(Port::new(PortConfig { data, ..port }, rows))
    }
}

impl Observer for RowWriter<'_> {
    // Where there are columns for data accesses, it takes them from effects.
    const WANTS: Wants = Wants::STEPS;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        self.0.step(hart, step, effects);
    }

    fn straights(&mut self, hart: HartId, code: &Straights<'_>) {
        steps_of(self, hart, code);
    }

    fn finish(&mut self) {
        self.0.finish();
    }
}

impl IngressSink for Rows<'_> {
    fn ingress(&mut self, hart: HartId, block: &Ingress) {
        if self.dense && block.iretire == 0 && !block.itype.is_trap() {
            return;
        }
        if self.accesses {
            self.close();
            self.block = Some((hart, *block));
            return;
        }
        let row = std::slice::from_ref(block);
        if let Err(error) = self.writer.of(hart).write_row(&mut self.text, row) {
            (self.text.put)(Err(error));
        }
    }

    fn data(&mut self, _: HartId, data: &DataIngress) {
        self.data.push(*data);
    }

    fn finish(&mut self) {
        self.close();
        self.text.flush();
    }
}

impl Rows<'_> {
    /// Writes the block that waited for its accesses.
    fn close(&mut self) {
        if let Some((hart, block)) = self.block.take() {
            let row = std::slice::from_ref(&block);
            let writer = self.writer.of(hart);
            let written = writer.write_cycle(&mut self.text, row, &self.data);
            if let Err(error) = written {
                (self.text.put)(Err(error));
            }
        }
        self.data.clear();
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
