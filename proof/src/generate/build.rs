//! Builds a program: its functions, the calls between them, and their
//! addresses.

use hartrace_flow::Mode;
use hartrace_isa::{Isa, Xlen};

use super::asm::{self, Code};
use super::layout::{Aim, Draft, Form, Island, Kind, Label, Plan};
use super::{Base, Random, Spec};

/// Which register a function returns through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// x1.
    #[default]
    Normal,
    /// x5.
    Alternate,
    /// Any other, as helpers for saving registers do.
    Other(u32),
}

impl Style {
    /// The register itself.
    pub(super) const fn link(self) -> u32 {
        match self {
            Style::Normal => 1,
            Style::Alternate => 5,
            Style::Other(reg) => reg,
        }
    }
}

/// A function before it has a body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Function {
    pub(super) entry: Label,
    /// Functions call others of higher levels only, unless guarded.
    pub(super) level: u32,
    pub(super) style: Style,
}

/// Trap handlers of one mode.
#[derive(Clone, Debug, Default)]
pub(super) struct Handlers {
    pub(super) mode: Mode,
    pub(super) direct: Vec<Label>,
    /// First of [`VECTORS`] jumps, one for each interrupt code.
    pub(super) vector: Option<Label>,
}

/// Entries in a vector table.
pub(super) const VECTORS: u32 = 16;
/// Entries of the jump table: all of `cm.jt` and some of `cm.jalt`.
pub(super) const TABLE: u32 = 56;
/// Functions up to this level may use the jump table, whose entries are all
/// above it.
pub(super) const TABLE_LEVEL: u32 = 2;
/// Levels of functions; the highest calls nobody.
const LEVELS: u32 = 5;
/// Code beyond this is not added: `jal` must reach from end to end.
const MAX_CODE: u64 = 700 << 10;

/// Everything about a program but its addresses.
#[derive(Debug)]
pub(super) struct Builder<'s> {
    pub(super) spec: &'s Spec,
    pub(super) isa: Isa,
    pub(super) r: Random,
    pub(super) plan: Plan,
    pub(super) functions: Vec<Function>,
    pub(super) handlers: Vec<Handlers>,
    /// Jump table: `cm.jt` and `cm.jalt` targets by index.
    pub(super) table: Vec<Label>,
    /// Entries used for places inside functions.
    pub(super) local_entries: u32,
    /// Small functions near address 0 for `jalr` through x0.
    pub(super) stubs: Vec<Label>,
    /// Drafts after calls.
    pub(super) returns: Vec<u32>,
    /// Names for addresses.
    pub(super) symbols: Vec<(String, Label)>,
    /// Place of the code being written.
    pub(super) base: Base,
    /// Trap handlers guard everything that may trap or call.
    pub(super) in_handler: bool,
    /// First draft and style of the function being written.
    pub(super) function_start: usize,
    pub(super) current: Function,
    pub(super) bytes: u64,
    gap: Vec<u8>,
}

impl<'s> Builder<'s> {
    pub(super) fn new(spec: &'s Spec, r: Random) -> Builder<'s> {
        Builder {
            spec,
            isa: spec.isa(),
            r,
            plan: Plan {
                xlen: spec.xlen,
                drafts: Vec::new(),
                labels: Vec::new(),
                islands: Vec::new(),
            },
            functions: Vec::new(),
            handlers: Vec::new(),
            table: Vec::new(),
            local_entries: 0,
            stubs: Vec::new(),
            returns: Vec::new(),
            symbols: Vec::new(),
            base: spec.base,
            in_handler: false,
            function_start: 0,
            current: Function::default(),
            bytes: 0,
            gap: Vec::new(),
        }
    }

    /// Writes all functions and handlers.
    pub(super) fn build(&mut self) {
        self.plan_functions();
        let table = if self.table.is_empty() { 0 } else { TABLE };
        self.plan.islands.push(Island {
            first: 0,
            base: self.spec.base,
            table: u64::from(table * self.spec.xlen.bits() / 8),
        });
        if self.spec.base == Base::Zero {
            self.write_stubs();
        }
        for nth in 0..self.functions.len() {
            self.write_function(nth);
        }
        let apart = self.spec.handlers.filter(|_| self.spec.traps);
        if self.spec.traps && apart.is_none() {
            self.write_handlers();
        }
        if self.spec.base == Base::Top {
            self.write_stubs();
        }
        if let Some(base) = apart {
            self.gap.clear();
            self.base = base;
            self.plan.islands.push(Island {
                first: self.plan.drafts.len(),
                base,
                table: 0,
            });
            self.write_handlers();
        }
    }

    fn plan_functions(&mut self) {
        for nth in 0..self.spec.functions.max(1) {
            let style = match self.r.below32(20) {
                _ if nth < 2 => Style::Normal,
                0..3 => Style::Alternate,
                3..5 if self.spec.weights.other_link > 0 => {
                    Style::Other(self.r.pick(&[6, 7, 28, 31]))
                }
                _ => Style::Normal,
            };
            let level = match nth {
                0 => 0,
                // Somebody to call, however few there are.
                1 => LEVELS - 1,
                _ => self.r.between(1, LEVELS - 1),
            };
            let entry = self.label();
            self.symbols.push((format!("f{nth}"), entry));
            self.functions.push(Function {
                entry,
                level,
                style,
            });
        }
        if matches!(self.spec.base, Base::Zero | Base::Top) && self.spec.weights.absolute > 0 {
            self.stubs = (0..self.r.between(1, 12)).map(|_| self.label()).collect();
        }
        if self.spec.zcmt && self.spec.compressed && self.functions.len() > 1 {
            let high = self.callees(TABLE_LEVEL, |s| s == Style::Normal);
            self.table = (0..TABLE).map(|_| self.r.pick(&high)).collect();
        }
    }

    /// Entries of the functions above a level, of some style.
    pub(super) fn callees(&self, level: u32, style: impl Fn(Style) -> bool) -> Vec<Label> {
        self.functions
            .iter()
            .filter(|f| f.level > level && style(f.style))
            .map(|f| f.entry)
            .collect()
    }

    /// Leaf functions so small that all of them lie within 2 KiB of address 0.
    fn write_stubs(&mut self) {
        for nth in 0..self.stubs.len() {
            let stub = self.stubs.get(nth).copied().unwrap_or_default();
            self.symbols.push((format!("stub{nth}"), stub));
            self.here(stub);
            if self.r.chance(500) {
                self.straight();
            }
            let leaves = self.callees(LEVELS - 2, |s| s == Style::Normal);
            match leaves.first() {
                Some(&leaf) if self.r.chance(300) => {
                    self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(leaf));
                }
                _ => self.ret(Style::Normal),
            }
        }
    }

    fn write_function(&mut self, nth: usize) {
        let function = self.functions.get(nth).copied().unwrap_or_default();
        self.current = function;
        self.function_start = self.plan.drafts.len();
        self.here(function.entry);
        let blocks = match self.bytes < MAX_CODE {
            true => self.r.between(1, self.spec.blocks.max(1)),
            false => 0,
        };
        if self.spec.zcmp && function.style == Style::Normal && nth > 0 {
            let push = asm::cm_stack(asm::Stack::Push, self.r.between(4, 15), self.r.below32(4));
            self.fixed(push, Kind::Seq);
        }
        self.body(blocks, 0);
        if nth == 0 {
            // Whatever else it holds, the main function calls others.
            for _ in 0..self.functions.len().min(8) / 2 {
                self.direct_call();
                self.straight();
                self.indirect_call();
                self.straight();
            }
            // It never returns.
            self.straight();
            self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(function.entry));
        } else {
            self.finish_function();
        }
        self.data_gap(48);
    }

    fn write_handlers(&mut self) {
        self.in_handler = true;
        for &mode in self.spec.modes.all() {
            if !matches!(mode, Mode::M | Mode::S | Mode::VS) {
                continue;
            }
            let mut handlers = Handlers {
                mode,
                ..Handlers::default()
            };
            for nth in 0..self.r.between(1, 3) {
                let entry = self.label();
                self.symbols
                    .push((format!("trap_{}{nth}", mode.name()), entry));
                handlers.direct.push(entry);
                self.write_handler(entry, mode);
            }
            if self.r.chance(500) {
                let entry = self.label();
                self.symbols
                    .push((format!("vector_{}", mode.name()), entry));
                self.here(entry);
                for _ in 0..VECTORS {
                    let to = self.r.pick(&handlers.direct);
                    self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(to));
                    // A vector table has one word for each entry.
                    if let Some(last) = self.plan.drafts.last_mut() {
                        last.short = false;
                    }
                }
                handlers.vector = Some(entry);
            }
            self.handlers.push(handlers);
        }
        self.in_handler = false;
    }

    fn write_handler(&mut self, entry: Label, mode: Mode) {
        self.function_start = self.plan.drafts.len();
        self.current = Function {
            entry,
            level: 2,
            style: Style::Normal,
        };
        self.here(entry);
        let back = if mode == Mode::M {
            asm::MRET
        } else {
            asm::SRET
        };
        if self.spec.contexts > 1 && self.r.chance(300) {
            self.fixed(asm::csrw(0x5a8, 10), Kind::Context);
        }
        if self.r.chance(300) {
            let over = self.label();
            self.branch_to(over);
            self.fixed(back, Kind::TrapReturn);
            self.here(over);
        }
        let blocks = self.r.below32(self.spec.blocks.min(4) + 1);
        self.body(blocks, 1);
        self.fixed(back, Kind::TrapReturn);
        self.data_gap(16);
    }

    /// A label for a place to come.
    pub(super) fn label(&mut self) -> Label {
        self.plan.labels.push(0);
        Label((self.plan.labels.len() - 1) as u32)
    }

    /// The next instruction is where this label points.
    pub(super) fn here(&mut self, label: Label) {
        let at = self.plan.drafts.len() as u32;
        if let Some(slot) = self.plan.labels.get_mut(label.0 as usize) {
            *slot = at;
        }
    }

    /// Adds an instruction, in its short form if it has one and luck wills.
    pub(super) fn push(&mut self, form: Form, kind: Kind, aim: Aim) -> &mut Draft {
        let has_short = match form {
            Form::Branch { funct3, rs1, rs2 } => funct3 < 2 && rs2 == 0 && (8..16).contains(&rs1),
            Form::Jal { rd } => rd == 0 || (rd == 1 && self.spec.xlen == Xlen::Rv32),
            Form::Lui { rd } => rd != 0 && rd != 2,
            _ => false,
        };
        let draft = Draft {
            gap: std::mem::take(&mut self.gap),
            form,
            short: has_short && self.spec.compressed && self.r.chance(800),
            kind,
            aim,
            arg: 0,
            other: None,
        };
        self.bytes += draft.len() + draft.gap.len() as u64;
        let at = self.plan.drafts.len();
        self.plan.drafts.push(draft);
        if matches!(
            kind,
            Kind::Call | Kind::PairCall | Kind::PickCall | Kind::Swap
        ) && !self.in_handler
        {
            // Handlers run in modes of their own: nobody strays into them.
            self.returns.push(at as u32 + 1);
        }
        // It was pushed just above.
        #[allow(clippy::indexing_slicing)]
        &mut self.plan.drafts[at]
    }

    /// Adds an instruction whose bits need no address.
    pub(super) fn fixed(&mut self, bits: u32, kind: Kind) -> &mut Draft {
        self.push(Form::Fixed(Code::new(bits)), kind, Aim::None)
    }

    /// Bytes that are no code: execution never gets here.
    pub(super) fn data_gap(&mut self, most: u32) {
        let unit = if self.spec.compressed { 2 } else { 4 };
        let units = self.r.below32(most / unit + 1);
        if self.r.chance(600) {
            let zero = self.r.chance(300);
            for _ in 0..units * unit {
                let byte = if zero { 0 } else { self.r.draw() as u8 };
                self.gap.push(byte);
            }
        }
    }
}
