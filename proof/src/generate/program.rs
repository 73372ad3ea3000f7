//! A finished program: code in an image, and what the walk needs to follow it.

use std::collections::HashSet;

use hartrace_flow::{Image, Mode, SpaceId};
use hartrace_isa::Isa;

use super::build::{Builder, VECTORS};
use super::layout::{Aim, Kind, Label, Placed, Plan};
use super::{Random, Segment, Spec};

/// An instruction, ready to be walked over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Op {
    pub(super) pc: u64,
    pub(super) bits: u32,
    /// See [`Kind`]: an op, or a place in the pool.
    pub(super) target: u32,
    pub(super) arg: u32,
    /// Straight instructions from here on, this one included.
    pub(super) run: u16,
    pub(super) len: u8,
    pub(super) kind: Kind,
}

/// Entries of the trap handlers of one mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub(super) mode: Mode,
    pub(super) direct: Vec<u32>,
    pub(super) vector: Option<u32>,
}

/// A generated program.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) spec: Spec,
    pub(super) isa: Isa,
    pub(super) ops: Vec<Op>,
    pub(super) pool: Vec<u32>,
    /// First ops of ordinary functions, the main one first.
    pub(super) entries: Vec<u32>,
    /// Ops after calls, and those of them in the main function.
    pub(super) returns: Vec<u32>,
    pub(super) home: Vec<u32>,
    pub(super) handlers: Vec<Entries>,
    segments: Vec<Segment>,
    symbols: Vec<(String, u64)>,
    jvt: Option<u64>,
    image: Image,
}

impl Program {
    /// The program of a shape and a seed: always the same one.
    #[must_use]
    pub fn new(spec: &Spec, seed: u64) -> Program {
        let mut random = Random::new(seed);
        let mut builder = Builder::new(spec, random.fork(1));
        builder.build();
        let placed = builder.plan.place();
        let mut program = Program {
            spec: *spec,
            isa: builder.isa,
            ops: Vec::new(),
            pool: Vec::new(),
            entries: Vec::new(),
            returns: builder.returns.clone(),
            home: Vec::new(),
            handlers: Vec::new(),
            segments: Vec::new(),
            symbols: Vec::new(),
            jvt: None,
            image: Image::new(),
        };
        program.add_ops(&builder.plan, &placed);
        program.add_names(&builder, &placed);
        program.add_segments(&builder, &placed);
        program.load(&mut random.fork(2));
        program
    }

    fn add_ops(&mut self, plan: &Plan, placed: &Placed) {
        let drafts = plan.drafts.iter().zip(&placed.pcs).zip(&placed.codes);
        for ((draft, &pc), code) in drafts {
            let (target, arg) = match &draft.aim {
                Aim::None => (0, draft.arg),
                Aim::At(label) => {
                    let other = draft.other.map(|o| plan.draft_of(o));
                    (plan.draft_of(*label), other.unwrap_or(draft.arg))
                }
                Aim::Pool(labels) => {
                    let first = self.pool.len() as u32;
                    self.pool.extend(labels.iter().map(|&l| plan.draft_of(l)));
                    (first, labels.len() as u32)
                }
            };
            self.ops.push(Op {
                pc,
                bits: code.bits(),
                target,
                arg,
                run: 0,
                len: code.bytes().len() as u8,
                kind: draft.kind,
            });
        }
        let mut run = 0u16;
        for op in self.ops.iter_mut().rev() {
            run = match op.kind {
                Kind::Seq => run.saturating_add(1),
                _ => 0,
            };
            op.run = run;
        }
    }

    fn add_names(&mut self, builder: &Builder<'_>, placed: &Placed) {
        let plan = &builder.plan;
        let op = |label: &Label| plan.draft_of(*label);
        let pc = |label: &Label| {
            let at = plan.draft_of(*label) as usize;
            placed.pcs.get(at).copied().unwrap_or_default()
        };
        self.entries = builder.functions.iter().map(|f| op(&f.entry)).collect();
        let main = self.entries.first().copied().unwrap_or_default();
        let end = self.entries.get(1).copied().unwrap_or(u32::MAX);
        self.home = self.returns.clone();
        self.home.retain(|op| (main..end).contains(op));
        self.home.push(main);
        for handlers in &builder.handlers {
            self.handlers.push(Entries {
                mode: handlers.mode,
                direct: handlers.direct.iter().map(op).collect(),
                vector: handlers.vector.as_ref().map(op),
            });
        }
        for (name, label) in &builder.symbols {
            self.symbols.push((name.clone(), pc(label)));
        }
        if let (false, Some(&(table, _))) = (builder.table.is_empty(), placed.spans.first()) {
            self.jvt = Some(table);
            self.symbols.push(("__jvt_base$".to_owned(), table));
        }
    }

    fn add_segments(&mut self, builder: &Builder<'_>, placed: &Placed) {
        let plan = &builder.plan;
        let width = (self.spec.xlen.bits() / 8) as usize;
        for (nth, (island, &(start, _))) in plan.islands.iter().zip(&placed.spans).enumerate() {
            let end = plan
                .islands
                .get(nth + 1)
                .map_or(plan.drafts.len(), |next| next.first);
            let mut bytes = Vec::new();
            if island.table > 0 {
                for &label in &builder.table {
                    let at = plan.draft_of(label) as usize;
                    let pc = placed.pcs.get(at).copied().unwrap_or_default();
                    let entry = pc.to_le_bytes();
                    bytes.extend_from_slice(entry.get(..width).unwrap_or_default());
                }
            }
            for at in island.first..end {
                let (Some(draft), Some(&pc), Some(code)) = (
                    plan.drafts.get(at),
                    placed.pcs.get(at),
                    placed.codes.get(at),
                ) else {
                    continue;
                };
                // Room between the table and the code when the end is fixed.
                let before = (pc - start) as usize - draft.gap.len();
                bytes.resize(before, 0);
                bytes.extend_from_slice(&draft.gap);
                bytes.extend_from_slice(code.bytes());
            }
            self.segments.push(Segment { base: start, bytes });
        }
    }

    /// Cuts the segments if asked to and fills the image.
    fn load(&mut self, random: &mut Random) {
        if self.spec.cut {
            let whole = std::mem::take(&mut self.segments);
            for mut segment in whole {
                for _ in 0..2 {
                    let half = segment.bytes.len() as u64 / 2;
                    let at = random.below(half) as usize * 2;
                    if at == 0 {
                        break;
                    }
                    let rest = segment.bytes.split_off(at);
                    let next = segment.base + at as u64;
                    self.segments.push(segment);
                    segment = Segment {
                        base: next,
                        bytes: rest,
                    };
                }
                self.segments.push(segment);
            }
        }
        for segment in &self.segments {
            self.image
                .add_raw(SpaceId::FIRST, segment.base, &segment.bytes, self.isa);
        }
        if let Some(jvt) = self.jvt {
            self.image.set_jvt(SpaceId::FIRST, jvt);
        }
    }

    /// The shape it was made for.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Its instruction set.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Its code.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Where it starts.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.pc_of(self.entries.first().copied().unwrap_or_default())
    }

    /// Address of the Zcmt jump table, if there is one.
    #[must_use]
    pub fn jvt(&self) -> Option<u64> {
        self.jvt
    }

    /// What is loaded, in address order within each part.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Functions, handlers and tables by name.
    #[must_use]
    pub fn symbols(&self) -> &[(String, u64)] {
        &self.symbols
    }

    /// The addresses and bits of all instructions, in no promised order.
    pub fn instructions(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.ops.iter().map(|op| (op.pc, op.bits))
    }

    /// First addresses of functions, stubs, trap handlers and vector tables.
    #[must_use]
    pub fn function_addresses(&self) -> HashSet<u64> {
        let functions = self.symbols.iter().filter(|s| Some(s.1) != self.jvt);
        functions.map(|s| s.1).collect()
    }

    pub(super) fn pc_of(&self, op: u32) -> u64 {
        self.ops
            .get(op as usize)
            .map(|op| op.pc)
            .unwrap_or_default()
    }

    /// The op where a trap into this mode goes.
    pub(super) fn handler(&self, to: Mode, interrupt: bool, code: u32, r: &mut Random) -> u32 {
        let Some(entries) = self.handlers.iter().find(|h| h.mode == to) else {
            return 0;
        };
        match entries.vector {
            Some(first) if interrupt && code < VECTORS => first + code,
            // Exceptions use the first entry of a vector table.
            Some(first) if r.chance(200) => first,
            _ => r.pick(&entries.direct),
        }
    }
}
