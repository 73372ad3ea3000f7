//! The pieces of a tandem trace for display.

use super::{Explained, Field, Item, PieceFault, PieceKind, Value, View};
use crate::trace::{GroupPiece, Groups, StreamPiece, Streams, items};
use hartrace_flow::HartId;
use hartrace_isa::{Isa, Relative, Style, decode};
use hartrace_tandem::{self as tandem, Config, Follower, Group, Problem};
use std::borrow::Cow;

/// Explains the groups of all harts.
pub(super) struct GroupExplainer {
    streams: Streams,
    harts: Vec<Hart>,
    words: Words,
}

/// The stream of a hart, and its pc as far as groups have reported it.
struct Hart {
    id: HartId,
    groups: Groups,
    pc: Option<u64>,
}

/// What is needed to explain a group.
struct Words {
    config: Config,
    style: Style,
    /// Groups have a hart.
    contained: bool,
}

impl GroupExplainer {
    pub(super) fn new(config: &Config, isa: Isa, contained: bool) -> GroupExplainer {
        GroupExplainer {
            streams: Streams::default(),
            harts: Vec::new(),
            words: Words {
                config: config.clone(),
                style: Style::new(isa),
                contained,
            },
        }
    }

    pub(super) fn feed<E>(
        &mut self,
        chunk: &[u8],
        view: View,
        to: &mut Explained,
        take: &mut impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let GroupExplainer {
            streams,
            harts,
            words,
        } = self;
        streams.feed(chunk, |piece| words.piece(harts, piece, view, to, take))
    }

    pub(super) fn finish<E>(
        &mut self,
        view: View,
        to: &mut Explained,
        take: &mut impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let GroupExplainer {
            streams,
            harts,
            words,
        } = self;
        streams.finish(|piece| words.piece(harts, piece, view, to, take))?;
        for Hart { id, groups, pc } in harts {
            groups.finish(|at, bytes, piece| {
                words.explain((at, bytes), piece, (*id, pc), view, to);
                take(to, bytes)
            })?;
        }
        Ok(())
    }
}

impl Words {
    fn piece<E>(
        &self,
        harts: &mut Vec<Hart>,
        piece: StreamPiece<'_>,
        view: View,
        to: &mut Explained,
        take: &mut impl FnMut(&Explained, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (id, bytes) = match piece {
            StreamPiece::Lost(problem) => {
                to.begin(problem.at, PieceKind::Lost, 0);
                to.fault = Some(fault(&problem));
                return take(to, &[]);
            }
            StreamPiece::Bytes(hart, bytes) => (hart, bytes),
        };
        if !harts.iter().any(|hart| hart.id == id) {
            harts.push(Hart {
                id,
                groups: Groups::new(self.config.clone()),
                pc: None,
            });
        }
        let Some(Hart { groups, pc, .. }) = harts.iter_mut().find(|hart| hart.id == id) else {
            return Ok(());
        };
        groups.feed(bytes, |at, bytes, piece| {
            self.explain((at, bytes), piece, (id, pc), view, to);
            take(to, bytes)
        })
    }

    fn explain(
        &self,
        (at, bytes): (u64, &[u8]),
        piece: &GroupPiece<'_>,
        (hart, pc): (HartId, &mut Option<u64>),
        view: View,
        to: &mut Explained,
    ) {
        let length = bytes.len() as u64;
        match piece {
            GroupPiece::Stray => to.begin(at, PieceKind::Stray, length),
            GroupPiece::Bad(problem) => {
                *pc = None;
                to.begin(at, PieceKind::Bad, length);
                to.fault = Some(fault(problem));
            }
            GroupPiece::Group(group) => {
                to.begin(at, PieceKind::Unit, length);
                if !group.outside {
                    to.codes.push(("number", group.number));
                }
                to.pc = self.follow(group, pc);
                for (at, length, item) in items(bytes, &self.config) {
                    to.items.push(self.item((at, length), &item, to.pc, view));
                }
            }
        }
        to.hart = self.contained.then_some(hart.0);
    }

    /// Where the instruction of a group is; and the pc moves on.
    fn follow(&self, group: &Group, pc: &mut Option<u64>) -> Option<u64> {
        let mut follower = Follower::at(self.config.xlen, *pc);
        let here = follower.follow(group);
        *pc = follower.pc();
        here.filter(|_| group.insn.is_some())
    }

    fn item(
        &self,
        bytes: (usize, usize),
        item: &tandem::Item,
        here: Option<u64>,
        view: View,
    ) -> Item {
        let mut one = Item {
            name: item.word(),
            bytes,
            is_frame: item.is_frame(),
            ..Item::default()
        };
        let insn = item.insn();
        match view {
            View::Lines if item.is_frame() => {}
            View::Lines => {
                // Writing to memory does not fail.
                let _ = item.write_brief(&mut one.text);
                if let Some((bits, _)) = insn {
                    one.text.push(' ');
                    one.text += &self.text(bits, here);
                }
            }
            View::Objects if item.is_frame() => {}
            View::Objects => {
                one.values = item.values();
                let text = insn.map(|(bits, _)| ("text", Value::Word(self.text(bits, here))));
                one.values.extend(text);
            }
            View::Bytes => {
                let fields = tandem::explain(item, &self.config);
                let fields = fields.iter().map(|f| self.field(f, bytes.0, item, here));
                one.fields = fields.collect();
            }
        }
        one
    }

    fn field(
        &self,
        field: &tandem::Field,
        from: usize,
        item: &tandem::Item,
        here: Option<u64>,
    ) -> Field {
        let word = match (field.name, item.insn()) {
            ("opcode", _) => Cow::Borrowed(match item.identifier() {
                Some(_) => "additional state",
                None => item.name(),
            }),
            ("identifier", _) => Cow::Borrowed(item.name()),
            (_, Some((bits, _))) => Cow::Owned(self.text(bits, here)),
            (name, None) => Cow::Owned(format!("{name} {field}")),
        };
        let last = field.first_bit + field.bits.saturating_sub(1);
        Field {
            name: field.name,
            value: field.value,
            bits: field.bits,
            first_byte: from + field.first_bit as usize / 8,
            last_byte: Some(from + last as usize / 8),
            decimal: false,
            in_name: false,
            word: Some(word),
        }
    }

    /// The instruction, with distances where its address is not known.
    fn text(&self, bits: u32, here: Option<u64>) -> String {
        let inst = decode(bits, self.style.isa);
        let text = match here {
            Some(pc) => inst.text(pc, &self.style).to_string(),
            None => inst.text(0, &self.style).resolve(&Relative).to_string(),
        };
        text.replace('\t', " ")
    }
}

fn fault(problem: &Problem) -> PieceFault {
    PieceFault {
        code: problem.fault.code(),
        text: problem.fault.text(),
        place: Some((problem.at, problem.group, problem.value)),
    }
}
