//! The pieces of a trace for display, one value per piece in every format.

mod groups;

use super::{Counting, Format, Pieces, Settings, Trace, Warned};
use crate::config::nearest;
use crate::input::{Halt, InputError};
use groups::GroupExplainer;
use hartrace_etrace as etrace;
use hartrace_isa::Isa;
use hartrace_ntrace as ntrace;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A value of an item.
pub use hartrace_tandem::Value;

/// A piece of a trace, explained.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// Offset of its first byte, in the stream of its hart.
    pub at: u64,
    /// Its bytes.
    pub count: u64,
    /// What it is.
    pub kind: PieceKind,
    /// The hart, in a container.
    pub hart: Option<u32>,
    /// The source, where messages have one.
    pub source: Option<u64>,
    /// The word printed before the bytes of the packet: `te_inst`.
    pub frame: Option<&'static str>,
    /// What a message or packet is called; `None` if it cannot be read, and of a
    /// group.
    pub name: Option<Cow<'static, str>>,
    /// The numbers by which it is known: `TCODE`, format, number of a group.
    pub codes: Vec<(&'static str, u64)>,
    /// Where the instruction of a group is.
    pub pc: Option<u64>,
    /// The fields of a message or packet, in their order.
    pub fields: Vec<Field>,
    /// The items of a group, in their order.
    pub items: Vec<Item>,
    /// What its codes mean; for [`View::Lines`].
    pub meaning: Option<String>,
    /// The full address it reports.
    pub address: Option<u64>,
    /// The full time it reports.
    pub time: Option<u64>,
    /// What is wrong with it.
    pub fault: Option<PieceFault>,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PieceKind {
    /// A message, packet or group.
    #[default]
    Unit,
    /// A packet of data trace.
    Data,
    /// Bytes between messages.
    Idle,
    /// Bytes that cannot be read.
    Bad,
    /// Ends of groups that never began.
    Stray,
    /// A loss in the container; it has no bytes.
    Lost,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in the specification.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// Its width in bits.
    pub bits: u32,
    /// Index of the byte with its first bit, in the bytes of the piece.
    pub first_byte: usize,
    /// Index of the byte with the last of its bits that was sent; `None` if none
    /// was.
    pub last_byte: Option<usize>,
    /// Whether it is written as a decimal number.
    pub decimal: bool,
    /// Whether it is part of the name, the source or the codes of its piece.
    pub in_name: bool,
    /// What its value means.
    pub word: Option<Cow<'static, str>>,
}

/// An item of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it is, for programs that read it.
    pub name: &'static str,
    /// Index of its first byte, in the bytes of the piece, and how many.
    pub bytes: (usize, usize),
    /// It only begins or ends the group.
    pub is_frame: bool,
    /// It in a few words; for [`View::Lines`].
    pub text: String,
    /// Its values by name; for [`View::Objects`].
    pub values: Vec<(&'static str, Value)>,
    /// Its fields, in their order; for [`View::Bytes`].
    pub fields: Vec<Field>,
}

/// What is wrong with a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceFault {
    /// The code of the protocol.
    pub code: &'static str,
    /// What it means.
    pub text: &'static str,
    /// In a tandem trace: the offset of the fault, the number of the group and
    /// the offending value.
    pub place: Option<(u64, u64, u64)>,
}

/// Which parts of messages and groups are wanted; what takes time to make for
/// another view may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// One line for each piece.
    Lines,
    /// Every byte with what it means.
    Bytes,
    /// Values for programs.
    Objects,
}

/// How the bytes of a format are best shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Each byte as MDO and MSEO bits (table 6 of N-Trace).
    Mdo,
    /// Each byte as bits.
    Bits,
    /// The bytes of each field.
    Fields,
}

impl Format {
    /// How its bytes are best shown.
    #[must_use]
    pub const fn columns(self) -> Columns {
        match self {
            Format::Ntrace => Columns::Mdo,
            Format::Etrace => Columns::Bits,
            Format::Tandem => Columns::Fields,
        }
    }
}

/// Explains the pieces of a stream.
pub struct Explainer {
    view: View,
    explained: Explained,
    kind: Kind,
}

enum Kind {
    Ntrace(Pieces<ntrace::Framer>, Messages),
    Etrace(Pieces<etrace::Framer>, Box<Packets>),
    Tandem(Box<GroupExplainer>),
}

impl Explainer {
    /// At the start of a stream; `isa` is for the instructions in it. Those of a
    /// container have a hart.
    #[must_use]
    pub fn new(settings: &Settings, isa: Isa, contained: bool, view: View) -> Explainer {
        let kind = match settings {
            Settings::Ntrace(config) => {
                let messages = Messages {
                    layout: config.layout(),
                    follower: ntrace::Follower::new(),
                };
                Kind::Ntrace(Pieces::new(ntrace::Framer::new()), messages)
            }
            Settings::Etrace(config) => {
                let packets = Packets {
                    layout: config.layout(),
                    follower: etrace::Follower::new(config),
                    data: etrace::DataFollower::new(config),
                    config: config.clone(),
                    current: 0,
                    others: Vec::new(),
                };
                let framer = etrace::Framer::of(config.encapsulation);
                Kind::Etrace(Pieces::new(framer), Box::new(packets))
            }
            Settings::Tandem(config) => {
                Kind::Tandem(Box::new(GroupExplainer::new(config, isa, contained)))
            }
        };
        Explainer {
            view,
            explained: Explained::default(),
            kind,
        }
    }

    /// The next bytes of the stream. Each piece is given to `take` with its
    /// bytes, which of a bad one may be the first only.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Explainer {
            view, explained, ..
        } = self;
        match &mut self.kind {
            Kind::Ntrace(pieces, messages) => pieces.feed(chunk, |at, bytes, piece| {
                messages.explain(at, bytes, piece, *view, explained);
                take(explained, bytes)
            }),
            Kind::Etrace(pieces, packets) => pieces.feed(chunk, |at, bytes, piece| {
                packets.explain(at, bytes, piece, *view, explained);
                take(explained, bytes)
            }),
            Kind::Tandem(groups) => groups.feed(chunk, *view, explained, &mut take),
        }
    }

    /// The stream ends.
    ///
    /// # Errors
    ///
    /// Whatever `take` returns.
    pub fn finish<E>(
        &mut self,
        mut take: impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Explainer {
            view, explained, ..
        } = self;
        match &mut self.kind {
            Kind::Ntrace(pieces, messages) => pieces.finish(|at, bytes, piece| {
                messages.explain(at, bytes, piece, *view, explained);
                take(explained, bytes)
            }),
            Kind::Etrace(pieces, packets) => pieces.finish(|at, bytes, piece| {
                packets.explain(at, bytes, piece, *view, explained);
                take(explained, bytes)
            }),
            Kind::Tandem(groups) => groups.finish(*view, explained, &mut take),
        }
    }
}

/// What takes the pieces of a trace, with their bytes.
type Take<'a> = dyn FnMut(&Explained, &[u8]) -> Result<(), Halt> + 'a;

impl Trace {
    /// Gives every piece of the trace to `take`, with its bytes. Returns what a
    /// reader should know of besides.
    ///
    /// # Errors
    ///
    /// A failing read, and whatever `take` returns.
    pub fn explain<E: From<InputError>>(
        self,
        isa: Isa,
        view: View,
        mut take: impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<Vec<Warned>, E> {
        let mut failed = None;
        let mut each = |explained: &Explained, bytes: &[u8]| {
            take(explained, bytes).map_err(|error| {
                failed = Some(error);
                Halt::Ended
            })
        };
        match self.explain_all(isa, view, &mut each) {
            Ok(warnings) => Ok(warnings),
            Err(Halt::Failed(error)) => Err(error.into()),
            // It was refused for a reason.
            Err(Halt::Ended) => failed.map_or(Ok(Vec::new()), Err),
        }
    }

    /// As [`Trace::explain`], compiled once.
    fn explain_all(self, isa: Isa, view: View, take: &mut Take<'_>) -> Result<Vec<Warned>, Halt> {
        let mut explainer = Explainer::new(&self.settings, isa, self.is_contained(), view);
        let mut counting = Counting::new(&self.settings);
        self.input.chunks(|chunk| {
            counting.feed(chunk);
            explainer.feed(chunk, &mut *take)
        })?;
        explainer.finish(take)?;
        Ok(counting.finish().warnings)
    }
}

/// The name of the source of a packet of E-Trace, which its header has.
const SOURCE: &str = "src";

/// The name of the time in that header.
const TIMESTAMP: &str = "timestamp";

/// A name that no field of a format has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The name.
    pub name: String,
    /// The format.
    pub format: Format,
    /// The fields it has.
    pub known: Vec<&'static str>,
    /// The one that may be meant.
    pub nearest: Option<&'static str>,
}

impl Format {
    /// The names of the fields that its messages or packets have when they are explained.
    #[must_use]
    pub fn fields(self) -> Vec<&'static str> {
        match self {
            Format::Ntrace => ntrace::FIELD_NAMES.to_vec(),
            Format::Etrace => [&[SOURCE, TIMESTAMP], &etrace::field_names()[..]].concat(),
            // Its groups have items.
            Format::Tandem => Vec::new(),
        }
    }

    /// Whether these are names of its fields.
    ///
    /// # Errors
    ///
    /// The first that is not.
    pub fn check_fields(self, names: &[String]) -> Result<(), UnknownField> {
        let known = self.fields();
        match names.iter().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(UnknownField {
                name: name.clone(),
                format: self,
                nearest: nearest(name, &known),
                known,
            }),
        }
    }
}

impl Explained {
    /// What it says, as a number to compare: its name, its source, and its fields or items
    /// with their values, but for fields of these names. Where it is and how many bits it has
    /// does not matter. `bytes` are those of a piece that cannot be read.
    #[must_use]
    pub fn sum(&self, bytes: &[u8], ignored: &[String]) -> u64 {
        let mut sum = DefaultHasher::new();
        let sourceless = ignored.iter().any(|name| name == "SRC" || name == SOURCE);
        let source = self.source.filter(|_| !sourceless);
        (self.hart, source, &self.name).hash(&mut sum);
        if self.name.is_none() && self.items.is_empty() {
            bytes.hash(&mut sum);
        }
        for field in &self.fields {
            if !ignored.iter().any(|name| name == field.name) {
                (field.name, field.value).hash(&mut sum);
            }
        }
        for item in &self.items {
            item.text.hash(&mut sum);
        }
        sum.finish()
    }

    /// Begins another piece; the room of the lists is kept.
    fn begin(&mut self, at: u64, kind: PieceKind, count: u64) {
        let mut codes = std::mem::take(&mut self.codes);
        let mut fields = std::mem::take(&mut self.fields);
        let items = std::mem::take(&mut self.items);
        codes.clear();
        fields.clear();
        *self = Explained {
            at,
            count,
            kind,
            codes,
            fields,
            items,
            ..Explained::default()
        };
        self.items.clear();
    }
}

/// Explains N-Trace.
struct Messages {
    layout: ntrace::Layout,
    follower: ntrace::Follower,
}

impl Messages {
    fn explain(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &ntrace::Piece<'_>,
        view: View,
        to: &mut Explained,
    ) {
        match *piece {
            ntrace::Piece::Idle(count) => return to.begin(at, PieceKind::Idle, count),
            ntrace::Piece::Bad(fault, count) => {
                self.follower.lost();
                to.begin(at, PieceKind::Bad, count);
                to.fault = Some(fault_of(fault.code(), fault.text()));
                return;
            }
            ntrace::Piece::Message(_) => to.begin(at, PieceKind::Unit, bytes.len() as u64),
        }
        let (fields, fault) = ntrace::explain(bytes, &self.layout);
        let tcode = ntrace::Tcode(fields.first().map_or(0, |f| f.value as u8));
        let name = match tcode.name() {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(tcode.to_string()),
        };
        let source = fields.iter().find(|f| f.name == "SRC").map(|f| f.value);
        to.codes.extend(source.map(|source| ("src", source)));
        to.codes.push(("tcode", tcode.0.into()));
        to.source = (self.layout.src_bits > 0).then_some(source.unwrap_or(0));
        for field in fields {
            let code = field.name == "TCODE";
            to.fields.push(Field {
                name: field.name,
                value: field.value,
                bits: field.bits,
                first_byte: field.first_bit as usize / 6,
                last_byte: Some(field.last_byte()),
                decimal: code,
                in_name: code || field.name == "SRC",
                word: code.then(|| name.clone()),
            });
        }
        to.name = Some(name);
        to.fault = fault.map(|fault| fault_of(fault.code(), fault.text()));
        match ntrace::Message::read(bytes, &self.layout) {
            Ok(message) => {
                (to.address, to.time) = self.follower.message(&message);
                if view == View::Lines {
                    to.meaning = message.meaning();
                }
            }
            Err(_) => self.follower.lost(),
        }
    }
}

/// Explains E-Trace.
struct Packets {
    config: etrace::Config,
    layout: etrace::Layout,
    follower: etrace::Follower,
    data: Option<etrace::DataFollower>,
    /// The source that layout and data are of, and those of the others.
    current: u16,
    others: Vec<(u16, etrace::Layout, Option<etrace::DataFollower>)>,
}

impl Packets {
    /// Goes on with what is known of a source.
    fn enter(&mut self, src: u16) {
        if src == self.current {
            return;
        }
        let known = self.others.iter().position(|other| other.0 == src);
        let (_, layout, data) = match known {
            Some(at) => self.others.swap_remove(at),
            None => {
                let data = etrace::DataFollower::new(&self.config);
                (src, self.config.layout(), data)
            }
        };
        let layout = std::mem::replace(&mut self.layout, layout);
        let data = std::mem::replace(&mut self.data, data);
        self.others.push((self.current, layout, data));
        self.current = src;
    }

    /// What the encapsulation says: the source and the time.
    fn add_header(&self, packet: &etrace::Encapsulated<'_>, to: &mut Explained) {
        let form = &self.config.encapsulation;
        if form.has_sources() {
            to.codes.push((SOURCE, packet.src.into()));
            to.source = Some(packet.src.into());
        }
        if let Some(time) = packet.time {
            let framing = packet.len.saturating_sub(packet.payload.len());
            let bytes = usize::from(form.time_bytes);
            let first_byte = match form.form {
                etrace::Form::Slots => 0,
                _ => framing.saturating_sub(bytes),
            };
            to.fields.push(Field {
                name: TIMESTAMP,
                value: time,
                bits: 8 * bytes as u32,
                first_byte,
                last_byte: Some(first_byte + bytes.saturating_sub(1)),
                decimal: true,
                in_name: false,
                word: None,
            });
        }
    }

    fn explain(
        &mut self,
        at: u64,
        bytes: &[u8],
        piece: &etrace::Piece<'_>,
        view: View,
        to: &mut Explained,
    ) {
        let length = bytes.len() as u64;
        let packet = match *piece {
            etrace::Piece::Idle(count) => return to.begin(at, PieceKind::Idle, count),
            etrace::Piece::Bad(fault, count) => {
                self.follower.lost();
                to.begin(at, PieceKind::Bad, count);
                to.fault = Some(fault_of(fault.code(), fault.text()));
                return;
            }
            etrace::Piece::Lost(_, fault, _, count) => {
                self.follower.lost();
                to.begin(at, PieceKind::Bad, count);
                to.fault = Some(fault_of(fault.code(), fault.text()));
                return;
            }
            etrace::Piece::Packet(packet) => packet,
        };
        let (src, payload) = (packet.src, packet.payload);
        self.enter(src);
        if packet.kind == etrace::Kind::Data {
            to.begin(at, PieceKind::Data, length);
            to.frame = Some("te_data");
            self.add_header(&packet, to);
            return self.explain_data(packet.len - payload.len(), payload, view, to);
        }
        to.begin(at, PieceKind::Unit, length);
        to.frame = Some("te_inst");
        self.add_header(&packet, to);
        let (fields, fault) = etrace::explain(payload, &self.layout);
        add_fields(fields, packet.len - payload.len(), to);
        to.fault = fault.map(|fault| fault_of(fault.code(), fault.text()));
        match etrace::Packet::read(payload, &self.layout) {
            Ok(packet) => {
                to.name = Some(Cow::Borrowed(packet.name().as_str()));
                to.address = self.follower.packet(src, &packet);
                if view == View::Lines {
                    to.meaning = packet.meaning(&self.config);
                }
                self.layout.follow(&packet);
                if let (etrace::Packet::Support(support), Some(data)) = (&packet, &mut self.data) {
                    data.support(support);
                }
            }
            Err(_) => self.follower.lost(),
        }
    }

    /// A packet of data trace, if its layout is known.
    fn explain_data(&mut self, framing: usize, payload: &[u8], view: View, to: &mut Explained) {
        let Some(data) = &mut self.data else {
            return;
        };
        to.kind = PieceKind::Unit;
        let (fields, fault) = etrace::explain_data(payload, data.layout(), data.outstanding());
        add_fields(fields, framing, to);
        to.fault = fault.map(|fault| fault_of(fault.code(), fault.text()));
        match data.read(payload) {
            Ok(packet) => {
                to.name = Some(Cow::Borrowed(packet.name().as_str()));
                let access = data.access(&packet);
                to.address = access.filter(|a| a.has_address).map(|a| a.access.addr);
                if view == View::Lines {
                    to.meaning = packet.meaning(data.layout());
                    let value = access.and_then(|a| a.access.data);
                    if let (Some(meaning), Some(value)) = (&mut to.meaning, value) {
                        *meaning += &format!(", data {value:#x}");
                    }
                }
            }
            Err(_) => data.lost(),
        }
    }
}

/// The fields of a packet, which come after so many bytes that frame it.
fn add_fields(fields: Vec<etrace::Field>, framing: usize, to: &mut Explained) {
    for field in fields {
        let code = matches!(field.name, "format" | "subformat");
        if code {
            to.codes.push((field.name, field.value));
        }
        to.fields.push(Field {
            name: field.name,
            value: field.value,
            bits: field.bits,
            first_byte: framing + field.first_bit as usize / 8,
            last_byte: field.last_byte().map(|byte| byte + framing),
            decimal: field.is_decimal(),
            in_name: code,
            word: None,
        });
    }
}

fn fault_of(code: &'static str, text: &'static str) -> PieceFault {
    PieceFault {
        code,
        text,
        place: None,
    }
}
