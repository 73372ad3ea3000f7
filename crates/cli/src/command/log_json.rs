//! Steps for other programs: JSON lines, a header first. Values of 64 bits are
//! hexadecimal strings, since JSON numbers are exact up to 2^53 only.

use super::log_write::Text;
use hartrace_flow::{
    Access, AccessKind, Cause, CsrWrite, Effects, HartId, Observer, RegId, RegWrite, Signal, Step,
    Wants,
};
use hartrace_isa::{Isa, csr};
use serde::{Serialize, Serializer};

/// Writes one object per step.
pub(super) struct JsonWriter<'s> {
    text: Text<'s>,
    /// Modes and effects are in the log.
    told: bool,
}

pub(super) struct Hex(pub(super) u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
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

/// Circumstances and effects; what the log does not tell is left out.
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

#[derive(Serialize)]
pub(super) struct Accessed {
    kind: &'static str,
    address: Hex,
    bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operand: Option<Hex>,
}

impl<'s> JsonWriter<'s> {
    pub(super) fn new(isa: Isa, told: bool, text: Text<'s>) -> JsonWriter<'s> {
        let mut writer = JsonWriter { text, told };
        writer.line(&Line::Header {
            schema: "hartrace-log",
            version: 1,
            isa: isa.to_string(),
        });
        writer
    }

    fn line(&mut self, line: &Line<'_>) {
        let buffer = self.text.line();
        // Writing to memory does not fail, and neither do these values.
        let _ = serde_json::to_writer(&mut *buffer, line);
        buffer.push(b'\n');
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
            mode: self.told.then_some(mode),
            context: not_zero(context),
            time: not_zero(time),
            regs: &effects.regs,
            csrs: &effects.csrs,
            accesses: &effects.accesses,
        }
    }
}

impl Observer for JsonWriter<'_> {
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
            Step::Trap(t) => {
                let (cause, code) = cause(t.trap.cause);
                Line::Trap {
                    hart,
                    cause,
                    code,
                    epc: t.trap.epc.map(Hex),
                    handler: t.trap.handler.map(Hex),
                    tval: t.trap.tval.map(Hex),
                    bits: t.bits.map(|b| Hex(b.into())),
                    when: self.when(t.mode.name(), t.context.0, t.time, effects),
                }
            }
            Step::Signal(signal) => Line::Signal {
                hart,
                signal: signal_word(*signal),
                input: match signal {
                    Signal::External(input) => Some(*input),
                    _ => None,
                },
            },
        };
        self.line(&line);
    }

    fn finish(&mut self) {
        self.text.flush();
    }
}

/// A word for the cause of a trap, and its code.
pub(super) fn cause(cause: Cause) -> (&'static str, Option<u32>) {
    match cause {
        Cause::Exception(code) => ("exception", code),
        Cause::Interrupt(code) => ("interrupt", code),
        Cause::Unknown => ("unknown", None),
    }
}

/// A word for a signal.
pub(super) fn signal_word(signal: Signal) -> &'static str {
    match signal {
        Signal::Halted => "halted",
        Signal::Resumed => "resumed",
        Signal::Reset => "reset",
        Signal::PowerDown => "power-down",
        Signal::PowerUp => "power-up",
        Signal::TraceOn => "trace-on",
        Signal::TraceOff => "trace-off",
        Signal::Notify => "notify",
        Signal::External(_) => "external",
        Signal::Update => "update",
        Signal::Lost => "lost",
        Signal::Untraced => "untraced",
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
    out.collect_seq(all.iter().map(access))
}

pub(super) fn access(access: &Access) -> Accessed {
    Accessed {
        kind: match access.kind {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::CsrReadWrite => "csr-read-write",
            AccessKind::CsrReadSet => "csr-read-set",
            AccessKind::CsrReadClear => "csr-read-clear",
            AccessKind::AtomicSwap => "atomic-swap",
            AccessKind::AtomicAdd => "atomic-add",
            AccessKind::AtomicAnd => "atomic-and",
            AccessKind::AtomicOr => "atomic-or",
            AccessKind::AtomicXor => "atomic-xor",
            AccessKind::AtomicMax => "atomic-max",
            AccessKind::AtomicMin => "atomic-min",
            AccessKind::ConditionalStoreFailure => "conditional-store-failure",
        },
        address: Hex(access.addr),
        bytes: 1u32.checked_shl(access.size.into()).unwrap_or(0),
        data: access.data.map(Hex),
        operand: access.operand.map(Hex),
    }
}
