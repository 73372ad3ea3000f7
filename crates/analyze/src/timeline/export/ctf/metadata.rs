//! The metadata of a CTF 2 trace: a sequence of JSON texts (RFC 7464).

use std::fmt::Write as _;

/// The first four bytes of a packet.
pub(super) const MAGIC: u32 = 0xC1FC_1FC1;

/// Kinds of events, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventClass {
    Call,
    Return,
    Interrupt,
    Exception,
    Trap,
    TrapReturn,
    Thread,
    Gap,
    GapEnd,
    Privilege,
    Context,
}

const TEXT: &str = r#"{"type":"null-terminated-string"}"#;
const NUMBER: &str = r#"{"type":"variable-length-unsigned-integer"}"#;
const HEX: &str = r#"{"type":"variable-length-unsigned-integer","preferred-display-base":16}"#;
const SIGNED: &str = r#"{"type":"variable-length-signed-integer"}"#;

/// The names of fields, and what these are.
type Fields = &'static [(&'static str, &'static str)];

/// The names of events, and their fields.
const EVENTS: [(EventClass, &str, Fields); 11] = [
    (
        EventClass::Call,
        "call",
        &[("function", TEXT), ("address", HEX)],
    ),
    (EventClass::Return, "return", &[]),
    (
        EventClass::Interrupt,
        "interrupt",
        &[("name", TEXT), ("cause", SIGNED), ("latency", SIGNED)],
    ),
    (
        EventClass::Exception,
        "exception",
        &[("name", TEXT), ("cause", SIGNED)],
    ),
    (EventClass::Trap, "trap", &[("name", TEXT)]),
    (EventClass::TrapReturn, "trap_return", &[]),
    (
        EventClass::Thread,
        "thread",
        &[("thread", NUMBER), ("name", TEXT)],
    ),
    (EventClass::Gap, "gap", &[("reason", TEXT)]),
    (EventClass::GapEnd, "gap_end", &[]),
    (EventClass::Privilege, "privilege", &[("mode", TEXT)]),
    (EventClass::Context, "context", &[("context", HEX)]),
];

/// The metadata of streams with a clock of this frequency.
pub(super) fn metadata(frequency: u64) -> Vec<u8> {
    let fixed = |bits: u32, role: &str| {
        let roles = match role {
            "" => String::new(),
            role => format!(r#","roles":["{role}"]"#),
        };
        format!(
            r#"{{"type":"fixed-length-unsigned-integer","length":{bits},"byte-order":"little-endian","alignment":8{roles}}}"#
        )
    };
    let header = structure([
        ("magic", fixed(32, "packet-magic-number")),
        ("stream", fixed(32, "data-stream-id")),
    ]);
    let context = structure([
        ("length", fixed(64, "packet-total-length")),
        ("content", fixed(64, "packet-content-length")),
        ("begin", fixed(64, "default-clock-timestamp")),
        ("end", fixed(64, "packet-end-default-clock-timestamp")),
        ("number", fixed(64, "packet-sequence-number")),
        ("cpu_id", fixed(32, "")),
    ]);
    let event = structure([
        ("id", fixed(8, "event-record-class-id")),
        ("time", fixed(32, "default-clock-timestamp")),
    ]);
    let mut all = vec![
        r#"{"type":"preamble","version":2}"#.to_owned(),
        format!(
            r#"{{"type":"trace-class","environment":{{"tracer_name":"hartrace"}},"packet-header-field-class":{header}}}"#
        ),
        format!(r#"{{"type":"clock-class","id":"time","name":"time","frequency":{frequency}}}"#),
        format!(
            r#"{{"type":"data-stream-class","default-clock-class-id":"time","packet-context-field-class":{context},"event-record-header-field-class":{event}}}"#
        ),
    ];
    for (class, name, fields) in EVENTS {
        let mut text = format!(
            r#"{{"type":"event-record-class","id":{},"name":"{name}""#,
            class as u8
        );
        if !fields.is_empty() {
            let fields = fields
                .iter()
                .map(|(name, class)| (*name, (*class).to_owned()));
            // Writing to memory does not fail.
            let _ = write!(text, r#","payload-field-class":{}"#, structure(fields));
        }
        text.push('}');
        all.push(text);
    }
    let mut out = Vec::new();
    for text in all {
        out.push(0x1e);
        out.extend(text.bytes());
        out.push(b'\n');
    }
    out
}

/// A structure with these members.
fn structure<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members = members
        .into_iter()
        .map(|(name, class)| format!(r#"{{"name":"{name}","field-class":{class}}}"#));
    let members: Vec<String> = members.collect();
    format!(
        r#"{{"type":"structure","member-classes":[{}]}}"#,
        members.join(",")
    )
}
