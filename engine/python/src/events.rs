//! The events of a trace, as objects of Python.

use crate::feed::{Feed, Out};
use hartrace_analyze::cause_name;
use hartrace_flow::{
    Consumer, DataAccess, Event, Exit, Gap as Loss, HartId, Image, Mode, Ownership, Reason,
    Run as FlowRun, SpaceId, Trap as FlowTrap,
};
use hartrace_print::words;
use hartrace_tables::Opened;
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Instructions that were executed one after the other at consecutive addresses.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    hart: u32,
    begin: u64,
    time: Option<u64>,
    start: u64,
    end: u64,
    instructions: u32,
    exit: &'static str,
    next: Option<u64>,
}

#[pymethods]
impl Run {
    fn __repr__(&self) -> String {
        let Run {
            hart,
            begin,
            start,
            end,
            instructions,
            exit,
            ..
        } = self;
        format!(
            "Run(hart={hart}, begin={begin}, start={start:#x}, end={end:#x}, \
             instructions={instructions}, exit='{exit}')"
        )
    }
}

/// An exception or an interrupt.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Trap {
    hart: u32,
    begin: u64,
    kind: &'static str,
    code: Option<u32>,
    cause: String,
    address: Option<u64>,
    handler: Option<u64>,
    value: Option<u64>,
}

#[pymethods]
impl Trap {
    fn __repr__(&self) -> String {
        let (hart, begin, cause) = (self.hart, self.begin, &self.cause);
        let at = self.address.map_or("None".to_owned(), hexadecimal);
        format!("Trap(hart={hart}, begin={begin}, cause='{cause}', address={at})")
    }
}

/// From here on the hart runs in another mode or context.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    hart: u32,
    begin: u64,
    privilege: Option<&'static str>,
    context: Option<u64>,
}

#[pymethods]
impl Context {
    fn __repr__(&self) -> String {
        let (hart, begin) = (self.hart, self.begin);
        let privilege = self
            .privilege
            .map_or("None".to_owned(), |p| format!("'{p}'"));
        let context = self.context.map_or("None".to_owned(), |c| c.to_string());
        format!("Context(hart={hart}, begin={begin}, privilege={privilege}, context={context})")
    }
}

/// A data access.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Access {
    hart: u32,
    begin: u64,
    kind: &'static str,
    address: Option<u64>,
    size: u8,
    data: Option<u64>,
    operand: Option<u64>,
    pc: Option<u64>,
}

#[pymethods]
impl Access {
    fn __repr__(&self) -> String {
        let (hart, begin, kind, size) = (self.hart, self.begin, self.kind, self.size);
        let at = self.address.map_or("None".to_owned(), hexadecimal);
        format!("Access(hart={hart}, begin={begin}, kind='{kind}', address={at}, size={size})")
    }
}

/// Something that a trace reports beside the flow of control.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    hart: u32,
    begin: u64,
    kind: &'static str,
    number: Option<u16>,
}

#[pymethods]
impl Mark {
    fn __repr__(&self) -> String {
        let (hart, begin, kind) = (self.hart, self.begin, self.kind);
        format!("Mark(hart={hart}, begin={begin}, kind='{kind}')")
    }
}

/// Something that is missing, or in doubt.
#[pyclass(module = "hartrace", frozen, get_all, eq, hash, skip_from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Gap {
    hart: u32,
    begin: u64,
    kind: &'static str,
    code: Option<&'static str>,
    reason: &'static str,
    value: Option<u64>,
    position: Option<u64>,
    bytes: u64,
    unconfirmed: u64,
}

#[pymethods]
impl Gap {
    fn __repr__(&self) -> String {
        let (hart, begin, kind, reason) = (self.hart, self.begin, self.kind, self.reason);
        let code = self.code.map_or("None".to_owned(), |c| format!("'{c}'"));
        format!("Gap(hart={hart}, begin={begin}, kind='{kind}', code={code}, reason='{reason}')")
    }
}

fn hexadecimal(address: u64) -> String {
    format!("{address:#x}")
}

/// What an event becomes.
enum What {
    Run(FlowRun, Option<u64>, bool),
    Trap(FlowTrap),
    Context(Ownership),
    Access(DataAccess, Option<u64>),
    Mark(hartrace_flow::Mark),
    Gap(&'static str, Loss, bool),
}

/// An event on its way.
pub(crate) struct Item {
    hart: u32,
    begin: u64,
    what: What,
}

/// Which events are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    runs: bool,
    traps: bool,
    contexts: bool,
    accesses: bool,
    marks: bool,
    gaps: bool,
}

impl Kinds {
    /// Those with these names.
    pub(crate) fn named(names: &[String]) -> Kinds {
        let has = |name: &str| names.iter().any(|known| known == name);
        Kinds {
            runs: has("run"),
            traps: has("trap"),
            contexts: has("context"),
            accesses: has("access"),
            marks: has("mark"),
            gaps: has("gap"),
        }
    }
}

/// The events of a trace, in their order.
#[pyclass(module = "hartrace")]
pub(crate) struct Events(Feed<Item>);

impl Events {
    pub(crate) fn new(
        opened: &Arc<Opened>,
        kinds: Kinds,
        hart: Option<u32>,
    ) -> std::io::Result<Events> {
        let opened = Arc::clone(opened);
        let feed = Feed::start(move |out| {
            let mut maker = Maker {
                image: &opened.image,
                kinds,
                harts: BTreeMap::new(),
                out,
            };
            let only = hart.map(HartId);
            opened.events(only, &mut maker, &mut |_| ()).map(drop)
        });
        Ok(Events(feed?))
    }
}

#[pymethods]
impl Events {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.0.next(py)? {
            Some(item) => item.object(py).map(Some),
            None => Ok(None),
        }
    }
}

impl Item {
    fn object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Item { hart, begin, what } = self;
        match what {
            What::Run(run, time, knows_next) => Run {
                hart,
                begin,
                time,
                start: run.start,
                end: run.end,
                instructions: run.insns,
                exit: words::exit(run.exit),
                next: knows_next.then_some(run.next),
            }
            .into_py_any(py),
            What::Trap(trap) => {
                let (kind, code) = words::cause(trap.cause);
                Trap {
                    hart,
                    begin,
                    kind,
                    code,
                    cause: cause_name(trap.cause),
                    address: trap.epc,
                    handler: trap.handler,
                    value: trap.tval,
                }
                .into_py_any(py)
            }
            What::Context(owner) => Context {
                hart,
                begin,
                privilege: owner.mode.map(privilege),
                context: owner.context.map(|context| context.0),
            }
            .into_py_any(py),
            What::Access(access, pc) => Access {
                hart,
                begin,
                kind: words::access_kind(access.access.kind),
                address: access.has_address.then_some(access.access.addr),
                size: 1u8.checked_shl(access.access.size.into()).unwrap_or(0),
                data: access.access.data,
                operand: access.access.operand,
                pc,
            }
            .into_py_any(py),
            What::Mark(mark) => {
                let (kind, number) = words::mark(mark);
                Mark {
                    hart,
                    begin,
                    kind,
                    number,
                }
                .into_py_any(py)
            }
            What::Gap(kind, gap, has_position) => Gap {
                hart,
                begin,
                kind,
                code: Some(gap.reason.code).filter(|code| !code.is_empty()),
                reason: gap.reason.text,
                value: gap.reason.shown_value(),
                position: has_position.then_some(gap.at),
                bytes: gap.bytes,
                unconfirmed: gap.unconfirmed,
            }
            .into_py_any(py),
        }
    }
}

const fn privilege(mode: Mode) -> &'static str {
    match mode {
        Mode::U => "U",
        Mode::S => "S",
        Mode::M => "M",
        Mode::D => "D",
        Mode::VU => "VU",
        Mode::VS => "VS",
    }
}

/// What is known of a hart.
#[derive(Default)]
struct Hart {
    /// Instructions so far.
    insns: u64,
    /// The time of the next run.
    time: Option<u64>,
    space: SpaceId,
    /// The last run, and the instructions before it.
    last: Option<(FlowRun, u64)>,
}

/// Makes items of events.
struct Maker<'m> {
    image: &'m Image,
    kinds: Kinds,
    harts: BTreeMap<u32, Hart>,
    out: &'m mut Out<Item>,
}

impl Maker<'_> {
    fn run(&mut self, id: u32, run: &FlowRun) -> ControlFlow<()> {
        let hart = self.harts.entry(id).or_default();
        let (begin, time) = (hart.insns, hart.time.take());
        hart.insns += u64::from(run.insns);
        hart.last = self.kinds.accesses.then_some((*run, begin));
        if !self.kinds.runs {
            return ControlFlow::Continue(());
        }
        let known = run.exit != Exit::Stop;
        self.out.push(Item {
            hart: id,
            begin,
            what: What::Run(*run, time, known),
        })
    }

    /// What an event other than a run becomes, if it is wanted.
    fn what(&mut self, id: u32, event: &Event) -> Option<(u64, What)> {
        let kinds = self.kinds;
        let hart = self.harts.entry(id).or_default();
        let gap = |kind, at: Option<u64>, reason, unconfirmed| {
            let loss = Loss {
                at: at.unwrap_or(0),
                reason,
                bytes: 0,
                unconfirmed,
            };
            What::Gap(kind, loss, at.is_some())
        };
        let what = match event {
            Event::Trap(trap) if kinds.traps => What::Trap(*trap),
            Event::Context(owner) => {
                if let Some(context) = owner.context {
                    hart.space = self.image.space_of(context);
                }
                kinds.contexts.then_some(What::Context(*owner))?
            }
            Event::Code(space) => {
                hart.space = *space;
                return None;
            }
            Event::Time(time) => {
                hart.time = Some(*time);
                return None;
            }
            Event::Access(access) if kinds.accesses => {
                let place = hart.last.zip(access.insn).map(|((run, before), nth)| {
                    let insns = self.image.insns(hart.space, run.start, run.insns.into());
                    let pc = insns.map(|(pc, _)| pc).nth(nth as usize);
                    (before + u64::from(nth), pc)
                });
                let (begin, pc) = place.unwrap_or((hart.insns, None));
                return Some((begin, What::Access(*access, pc)));
            }
            Event::Mark(mark) if kinds.marks => What::Mark(*mark),
            Event::Gap(loss) if kinds.gaps => What::Gap("loss", *loss, true),
            Event::DataGap(data) if kinds.gaps => gap("data", Some(data.at), data.reason, 0),
            Event::Warning(warning) if kinds.gaps => {
                gap("warning", Some(warning.at), warning.reason, 0)
            }
            Event::Unconfirmed(doubt) if kinds.gaps => {
                let reason = Reason {
                    code: "",
                    text: "the code may have been other code at the time",
                    value: doubt.address,
                };
                gap("unconfirmed", None, reason, doubt.insns)
            }
            _ => return None,
        };
        Some((hart.insns, what))
    }
}

impl Consumer for Maker<'_> {
    fn event(&mut self, hart: HartId, event: &Event) -> ControlFlow<()> {
        if let Event::Run(run) = event {
            return self.run(hart.0, run);
        }
        match self.what(hart.0, event) {
            Some((begin, what)) => self.out.push(Item {
                hart: hart.0,
                begin,
                what,
            }),
            None => self.out.go_on(),
        }
    }

    fn runs(&mut self, hart: HartId, runs: &[FlowRun]) -> ControlFlow<()> {
        for run in runs {
            self.run(hart.0, run)?;
        }
        self.out.go_on()
    }
}
