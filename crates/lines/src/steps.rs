//! Steps as JSON lines, schema `hartrace-log`: what a hart did, one object per
//! step.

use crate::json::{self, Hex};
use crate::words;
use hartrace_flow::{
    Access, CsrWrite, DataAccess, Effects, HartId, Observer, RegId, RegWrite, Signal, Step, Trap,
    Wants,
};
use hartrace_isa::{Isa, csr};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Bytes gathered before they are written.
const FULL: usize = 1 << 16;

/// Writes one object per step, after a header.
///
/// An observer cannot fail: the first write that does is kept, nothing is
/// written after it, and [`JsonSteps::end`] returns it.
///
/// ```
/// use hartrace_flow::{Effects, HartId, Insn, Observer, Step};
/// use hartrace_isa::Isa;
/// use hartrace_lines::JsonSteps;
///
/// let mut text = Vec::new();
/// let mut steps = JsonSteps::new(Isa::RV64GC, true, &mut text);
/// let insn = Insn { pc: 0x8000_0000, bits: 0x13, next: 0x8000_0004, ..Insn::default() };
/// steps.step(HartId(0), &Step::Insn(insn), &Effects::default());
/// steps.finish();
/// steps.end()?;
/// let text = String::from_utf8(text).unwrap();
/// let lines: Vec<&str> = text.lines().collect();
/// assert_eq!(lines.len(), 2);
/// assert!(lines[1].starts_with(r#"{"type":"insn","hart":0,"pc":"0x80000000","bits":"0x13""#));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JsonSteps<'w> {
    out: Box<dyn Write + 'w>,
    buffer: Vec<u8>,
    error: Option<io::Error>,
    /// Modes and effects are known.
    modes: bool,
}

impl<'w> JsonSteps<'w> {
    /// A log of a hart with this instruction set; `modes` says that the source
    /// of the steps knows the privilege modes.
    #[must_use]
    pub fn new(isa: Isa, modes: bool, out: impl Write + 'w) -> JsonSteps<'w> {
        let mut steps = JsonSteps {
            out: Box::new(out),
            buffer: Vec::with_capacity(FULL + 1024),
            error: None,
            modes,
        };
        steps.line(&Line::Header {
            schema: "hartrace-log",
            version: 1,
            isa: isa.to_string(),
        });
        steps
    }

    /// Writes what was gathered.
    pub fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Writes all that was gathered.
    ///
    /// # Errors
    ///
    /// The first write that failed.
    pub fn end(mut self) -> io::Result<()> {
        self.flush();
        self.error.map_or(Ok(()), Err)
    }

    fn line(&mut self, line: &Line<'_>) {
        if self.buffer.len() >= FULL {
            self.flush();
        }
        // Writing to memory does not fail, and neither do these values.
        let _ = json::line(line, &mut self.buffer);
    }

    fn when<'a>(
        &self,
        mode: &'static str,
        context: u64,
        time: u64,
        effects: &'a Effects,
    ) -> When<'a> {
        let not_zero = |value: u64| (value != 0).then_some(Hex(value));
        When {
            mode: self.modes.then_some(mode),
            context: not_zero(context),
            time: not_zero(time),
            regs: &effects.regs,
            csrs: &effects.csrs,
            accesses: &effects.accesses,
        }
    }
}

impl Observer for JsonSteps<'_> {
    const WANTS: Wants = Wants::ALL;

    fn step(&mut self, hart: HartId, step: &Step, effects: &Effects) {
        let hart = hart.0;
        let line = match step {
            Step::Insn(i) => Line::Insn {
                hart,
                pc: Hex(i.pc),
                bits: Hex(i.bits.into()),
                next: Hex(i.next),
                when: self.when(i.mode.name(), i.context.0, i.time, effects),
            },
            Step::Trap(t) => Line::Trap {
                hart,
                trap: Trapped::new(&t.trap),
                bits: t.bits.map(|b| Hex(b.into())),
                when: self.when(t.mode.name(), t.context.0, t.time, effects),
            },
            Step::Signal(signal) => Line::Signal {
                hart,
                signal: words::signal(*signal),
                input: match signal {
                    Signal::External(input) => Some(*input),
                    _ => None,
                },
            },
        };
        self.line(&line);
    }

    fn finish(&mut self) {
        self.flush();
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Header {
        schema: &'static str,
        version: u32,
        isa: String,
    },
    Insn {
        hart: u32,
        pc: Hex,
        bits: Hex,
        next: Hex,
        #[serde(flatten)]
        when: When<'a>,
    },
    Trap {
        hart: u32,
        #[serde(flatten)]
        trap: Trapped,
        #[serde(skip_serializing_if = "Option::is_none")]
        bits: Option<Hex>,
        #[serde(flatten)]
        when: When<'a>,
    },
    Signal {
        hart: u32,
        signal: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<u8>,
    },
}

/// Circumstances and effects; those that are unknown are left out.
#[derive(Serialize)]
struct When<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Hex>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "registers")]
    regs: &'a [RegWrite],
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "csrs")]
    csrs: &'a [CsrWrite],
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "accesses")]
    accesses: &'a [Access],
}

#[derive(Serialize)]
struct Written {
    name: Name,
    value: Hex,
}

enum Name {
    Reg(RegId),
    Csr(u16),
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Name::Reg(RegId::X(n)) => serializer.collect_str(&format_args!("x{n}")),
            Name::Reg(RegId::F(n)) => serializer.collect_str(&format_args!("f{n}")),
            Name::Csr(n) => match csr::name(n) {
                Some(name) => serializer.serialize_str(name),
                None => serializer.collect_str(&format_args!("{n:#x}")),
            },
        }
    }
}

fn registers<S: Serializer>(writes: &[RegWrite], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(writes.iter().map(|write| Written {
        name: Name::Reg(write.reg),
        value: Hex(write.value),
    }))
}

fn csrs<S: Serializer>(writes: &[CsrWrite], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(writes.iter().map(|write| Written {
        name: Name::Csr(write.csr),
        value: Hex(write.value),
    }))
}

fn accesses<S: Serializer>(all: &[Access], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(all.iter().map(Accessed::new))
}

/// A trap.
#[derive(Serialize)]
pub(crate) struct Trapped {
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epc: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tval: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Hex>,
}

impl Trapped {
    pub(crate) fn new(trap: &Trap) -> Trapped {
        let (cause, code) = words::cause(trap.cause);
        Trapped {
            cause,
            code,
            epc: trap.epc.map(Hex),
            handler: trap.handler.map(Hex),
            tval: trap.tval.map(Hex),
            pending: trap.pending.map(Hex),
        }
    }
}

/// A data access.
#[derive(Serialize)]
pub(crate) struct Accessed {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operand: Option<Hex>,
}

impl Accessed {
    pub(crate) fn new(access: &Access) -> Accessed {
        Accessed {
            kind: words::access_kind(access.kind),
            address: Some(Hex(access.addr)),
            bytes: 1u32.checked_shl(access.size.into()).unwrap_or(0),
            data: access.data.map(Hex),
            operand: access.operand.map(Hex),
        }
    }

    /// The access of an event, whose address may be unknown.
    pub(crate) fn of(data: &DataAccess) -> Accessed {
        let all = Accessed::new(&data.access);
        Accessed {
            address: all.address.filter(|_| data.has_address),
            ..all
        }
    }
}
