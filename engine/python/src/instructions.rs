//! The instructions of a trace, one by one, as objects of Python.

use crate::feed::{Feed, Out};
use hartrace_flow::{Consumer, Event, HartId, Image, Run, SpaceId};
use hartrace_isa::{Isa, Style, decode};
use hartrace_tables::Opened;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// An instruction that was executed.
#[pyclass(module = "hartrace", frozen, skip_from_py_object)]
#[derive(Clone)]
pub(crate) struct Instruction {
    isa: Isa,
    #[pyo3(get)]
    hart: u32,
    #[pyo3(get)]
    begin: u64,
    #[pyo3(get)]
    pc: u64,
    #[pyo3(get)]
    bits: u32,
}

#[pymethods]
impl Instruction {
    /// Its length in bytes.
    #[getter]
    fn size(&self) -> u8 {
        hartrace_isa::length(self.bits as u16)
    }

    /// Its disassembly: mnemonic and operands.
    #[getter]
    fn text(&self) -> String {
        let style = Style::new(self.isa);
        let text = decode(self.bits, self.isa).text(self.pc, &style);
        text.to_string().replace('\t', " ")
    }

    fn __repr__(&self) -> String {
        let (hart, begin, pc, text) = (self.hart, self.begin, self.pc, self.text());
        format!("Instruction(hart={hart}, begin={begin}, pc={pc:#x}, text='{text}')")
    }
}

/// An instruction on its way.
pub(crate) struct Item {
    hart: u32,
    begin: u64,
    pc: u64,
    bits: u32,
}

/// The instructions of a trace, in their order.
#[pyclass(module = "hartrace")]
pub(crate) struct Instructions {
    feed: Feed<Item>,
    isa: Isa,
}

impl Instructions {
    /// Those of a hart, or of all, whose numbers are in a range.
    pub(crate) fn new(
        opened: &Arc<Opened>,
        hart: Option<u32>,
        range: Range<u64>,
    ) -> std::io::Result<Instructions> {
        let (isa, opened) = (opened.isa, Arc::clone(opened));
        let feed = Feed::start(move |out| {
            let mut maker = Maker {
                image: &opened.image,
                range,
                harts: BTreeMap::new(),
                only: hart,
                out,
            };
            let only = hart.map(HartId);
            opened.events(only, &mut maker, &mut |_| ()).map(drop)
        });
        Ok(Instructions { feed: feed?, isa })
    }
}

#[pymethods]
impl Instructions {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Instruction>> {
        let isa = self.isa;
        Ok(self.feed.next(py)?.map(|item| Instruction {
            isa,
            hart: item.hart,
            begin: item.begin,
            pc: item.pc,
            bits: item.bits,
        }))
    }
}

/// Divides runs into instructions.
struct Maker<'m> {
    image: &'m Image,
    range: Range<u64>,
    /// Instructions so far, and the space of the code.
    harts: BTreeMap<u32, (u64, SpaceId)>,
    only: Option<u32>,
    out: &'m mut Out<Item>,
}

impl Maker<'_> {
    fn run(&mut self, hart: u32, run: &Run) -> ControlFlow<()> {
        let (insns, space) = self.harts.entry(hart).or_default();
        let (begin, count) = (*insns, u64::from(run.insns));
        *insns += count;
        if *insns <= self.range.start {
            return ControlFlow::Continue(());
        }
        if begin >= self.range.end {
            // Nothing more comes of this hart; others may not be there yet.
            return match self.only {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            };
        }
        let code = self.image.insns(*space, run.start, count);
        for (begin, (pc, fetched)) in (begin..).zip(code) {
            if self.range.contains(&begin) {
                let bits = fetched.bits;
                self.out.push(Item {
                    hart,
                    begin,
                    pc,
                    bits,
                })?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Consumer for Maker<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Run(run) => self.run(hart.0, run)?,
            Event::Context(owner) => {
                if let Some(context) = owner.context {
                    self.harts.entry(hart.0).or_default().1 = self.image.space_of(context);
                }
            }
            Event::Code(space) => self.harts.entry(hart.0).or_default().1 = *space,
            _ => {}
        }
        self.out.go_on()
    }

    fn runs(&mut self, hart: HartId, runs: &[Run]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart.0, run)?;
        }
        self.out.go_on()
    }
}
