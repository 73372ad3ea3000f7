//! The constructs that bodies of functions are made of.

use super::asm::{self, Code, Stack};
use super::build::{Builder, Style, TABLE_LEVEL};
use super::filler;
use super::layout::{Aim, Form, Kind, Label};

/// Registers that indirect jumps read; random constants never go there.
const JUMP: [u32; 7] = [7, 9, 18, 28, 29, 30, 31];

/// Deepest nesting of loops and alternatives.
const DEPTH: u32 = 3;

/// Table entries below this one lead to places inside functions.
const LOCAL: u32 = 16;

/// Bytes after which a function gets no more constructs: its branches reach
/// 4 KiB.
const MAX_FUNCTION: u64 = 2200;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Construct {
    #[default]
    Straight,
    Branch,
    Loop,
    Call,
    IndirectCall,
    Switch,
    Hop,
    EarlyReturn,
    Recursion,
    Pair,
    Absolute,
    Table,
    OtherLink,
    Swap,
    Environment,
    Spin,
    Long,
}

impl Builder<'_> {
    /// A number of constructs, one after the other.
    pub(super) fn body(&mut self, count: u32, depth: u32) {
        for _ in 0..count {
            if self.function_bytes() > MAX_FUNCTION {
                return;
            }
            let construct = self.choose();
            let calls = matches!(
                construct,
                Construct::Call
                    | Construct::IndirectCall
                    | Construct::Recursion
                    | Construct::Pair
                    | Construct::Absolute
                    | Construct::Table
                    | Construct::OtherLink
                    | Construct::Swap
                    | Construct::Environment
            );
            // A handler that calls what traps would never end.
            let guard = (calls && self.in_handler) || construct == Construct::Recursion;
            let over = self.label();
            if guard {
                self.guard(over);
            }
            self.construct(construct, depth);
            if guard {
                self.here(over);
                self.straight();
            }
        }
    }

    fn choose(&mut self) -> Construct {
        let w = self.spec.weights;
        self.r.weighted(&[
            (w.straight, Construct::Straight),
            (w.branch, Construct::Branch),
            (w.nested_loop, Construct::Loop),
            (w.call, Construct::Call),
            (w.indirect_call, Construct::IndirectCall),
            (w.switch, Construct::Switch),
            (w.hop, Construct::Hop),
            (w.early_return, Construct::EarlyReturn),
            (w.recursion, Construct::Recursion),
            (w.pair, Construct::Pair),
            (w.absolute, Construct::Absolute),
            (w.table, Construct::Table),
            (w.other_link, Construct::OtherLink),
            (w.swap, Construct::Swap),
            (w.environment, Construct::Environment),
            (w.spin, Construct::Spin),
            (w.long, Construct::Long),
        ])
    }

    fn construct(&mut self, construct: Construct, depth: u32) {
        let deep = depth >= DEPTH;
        match construct {
            Construct::Branch if !deep => self.alternative(depth),
            Construct::Loop if !deep => self.repeat(depth),
            Construct::Switch if !deep => self.switch(depth),
            Construct::Call => self.direct_call(),
            Construct::IndirectCall => self.indirect_call(),
            Construct::Hop => self.hop(),
            Construct::EarlyReturn if !self.in_handler && self.current.level > 0 => {
                let over = self.label();
                self.branch_to(over);
                self.finish_function();
                self.here(over);
            }
            Construct::Recursion => {
                let entry = self.current.entry;
                let function = self.functions.iter().find(|f| f.entry == entry);
                if let Some(link) = function.map(|f| f.style.link()) {
                    self.push(Form::Jal { rd: link }, Kind::Call, Aim::At(entry));
                }
            }
            Construct::Pair => self.pair_call(),
            Construct::Absolute if !self.stubs.is_empty() => self.absolute(),
            Construct::Table if self.has_table() => self.table_use(),
            Construct::OtherLink => self.other_link(),
            Construct::Swap => {
                let bits = match self.r.below32(3) {
                    0 => asm::jalr(1, 5, 0),
                    1 if self.spec.compressed => asm::c_jr(true, 5),
                    _ => asm::jalr(5, 1, 0),
                };
                self.fixed(bits, Kind::Swap);
            }
            Construct::Environment if self.spec.traps => {
                let bits = match self.r.below32(3) {
                    0 => asm::EBREAK,
                    1 if self.spec.compressed => asm::C_EBREAK,
                    _ => asm::ECALL,
                };
                self.fixed(bits, Kind::Trap);
            }
            Construct::Spin => self.spin(),
            Construct::Long => {
                let code = filler::long(&mut self.r, self.isa);
                self.push(Form::Fixed(code), Kind::Seq, Aim::None);
            }
            _ => {}
        }
        for _ in 0..self.r.between(1, self.spec.stretch.max(1)) {
            self.straight();
        }
    }

    fn function_bytes(&self) -> u64 {
        self.plan
            .drafts
            .get(self.function_start..)
            .unwrap_or_default()
            .iter()
            .map(|d| d.len().max(4) + d.gap.len() as u64)
            .sum()
    }

    pub(super) fn straight(&mut self) {
        let code: Code = filler::straight(&mut self.r, self.isa);
        self.push(Form::Fixed(code), Kind::Seq, Aim::None);
    }

    fn conditional(&mut self, kind: Kind, to: Label, arg: u32) {
        let form = if self.r.chance(500) {
            Form::Branch {
                funct3: self.r.below32(2),
                rs1: self.r.between(8, 15),
                rs2: 0,
            }
        } else {
            Form::Branch {
                funct3: self.r.pick(&[0, 1, 4, 5, 6, 7]),
                rs1: self.r.below32(32),
                rs2: self.r.below32(32),
            }
        };
        self.push(form, kind, Aim::At(to)).arg = arg;
    }

    /// A forward branch with a bias of its own.
    pub(super) fn branch_to(&mut self, to: Label) {
        let odds = self.r.pick(&[2, 20, 80, 128, 128, 180, 250]);
        self.conditional(Kind::Branch, to, odds);
    }

    fn guard(&mut self, over: Label) {
        self.conditional(Kind::Guard, over, 128);
    }

    fn alternative(&mut self, depth: u32) {
        let (other, end) = (self.label(), self.label());
        self.branch_to(other);
        let count = self.r.below32(3);
        self.straight();
        self.body(count, depth + 1);
        if self.r.chance(500) {
            self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(end));
            self.here(other);
            let count = self.r.below32(3);
            self.straight();
            self.body(count, depth + 1);
        } else {
            self.here(other);
        }
        self.here(end);
        self.straight();
    }

    fn repeat(&mut self, depth: u32) {
        let start = self.label();
        self.here(start);
        self.straight();
        let count = self.r.below32(3);
        self.body(count, depth + 1);
        // Long loops hold nothing but straight code, or the walk would stay
        // in one place for ever.
        let most = match (count, depth) {
            (0, _) if self.r.chance(50) => self.r.pick(&[100, 1000]),
            (0, _) => self.r.pick(&[2, 3, 5, 16]),
            (_, 0) => self.r.pick(&[2, 3, 6]),
            _ => 2,
        };
        let same = u32::from(self.r.chance(400)) << 16;
        self.conditional(Kind::Loop, start, most | same);
    }

    fn switch(&mut self, depth: u32) {
        let end = self.label();
        let cases: Vec<Label> = (0..self.r.between(2, 6)).map(|_| self.label()).collect();
        self.indirect(0, Kind::PickJump, cases.clone());
        self.data_gap(32);
        for (nth, &case) in cases.iter().enumerate() {
            self.here(case);
            self.straight();
            let count = self.r.below32(2);
            self.body(count, depth + 1);
            if nth + 1 < cases.len() && self.r.chance(800) {
                self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(end));
            }
        }
        self.here(end);
        self.straight();
    }

    /// A jump over data, or to the very next instruction.
    fn hop(&mut self) {
        let over = self.label();
        self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(over));
        self.data_gap(64);
        self.here(over);
        self.straight();
    }

    /// An indirect jump to one of the places, linking `rd`.
    fn indirect(&mut self, rd: u32, kind: Kind, pool: Vec<Label>) {
        let reg = self.r.pick(&JUMP);
        let short = self.spec.compressed && rd < 2 && self.r.chance(600);
        let offset = self.r.pick(&[0, 0, 0, 8, -4, 2046, -2048]);
        let bits = match rd {
            _ if short => asm::c_jr(rd == 1, reg),
            // The same link register twice is a call, no swap.
            1 | 5 if self.r.chance(200) => asm::jalr(rd, rd, offset),
            _ => asm::jalr(rd, reg, offset),
        };
        let form = Form::Fixed(Code::new(bits));
        self.push(form, kind, Aim::Pool(pool));
    }

    /// Whom this function may call, of one style chosen at random.
    fn candidates(&mut self) -> (Style, Vec<Label>) {
        let level = self.current.level;
        let all: Vec<_> = self.functions.iter().filter(|f| f.level > level).collect();
        let style = match all.get(self.r.below(all.len() as u64) as usize) {
            Some(f) => f.style,
            None => Style::Normal,
        };
        (style, self.callees(level, |s| s == style))
    }

    pub(super) fn direct_call(&mut self) {
        let (style, targets) = self.candidates();
        if targets.is_empty() {
            return;
        }
        if self.base != self.spec.base {
            return self.pool_call(style, &targets);
        }
        let target = self.r.pick(&targets);
        let rd = style.link();
        self.push(Form::Jal { rd }, Kind::Call, Aim::At(target));
    }

    pub(super) fn indirect_call(&mut self) {
        let (style, targets) = self.candidates();
        if !targets.is_empty() {
            self.pool_call(style, &targets);
        }
    }

    fn pool_call(&mut self, style: Style, targets: &[Label]) {
        let count = self.r.between(1, 5);
        let pool = (0..count).map(|_| self.r.pick(targets)).collect();
        self.indirect(style.link(), Kind::PickCall, pool);
    }

    fn pair_call(&mut self) {
        let (style, targets) = self.candidates();
        if targets.is_empty() {
            return;
        }
        let rd = style.link();
        let odd = self.r.below32(100) < self.spec.weights.odd_pair * 10;
        let rs1 = match rd {
            1 if odd => 5,
            1 => self.r.pick(&[1, 1, 6]),
            5 if odd => 1,
            5 => self.r.pick(&[5, 6]),
            _ => 6,
        };
        self.pair(rd, rs1, Kind::PairCall, &targets);
    }

    /// A constant and a jump through it. Now and then something jumps right
    /// to the jump, whose target the constant then does not tell.
    fn pair(&mut self, rd: u32, rs1: u32, kind: Kind, targets: &[Label]) {
        let (target, other) = (self.r.pick(targets), self.r.pick(targets));
        let xlen = self.spec.xlen;
        let near = self.base.near(self.spec.base, xlen);
        let absolute = self.spec.base.has_lui(xlen);
        if !near && !absolute {
            let pool = vec![target, other];
            let kind = match kind {
                Kind::PairCall => Kind::PickCall,
                _ => Kind::PickJump,
            };
            return self.indirect(rd, kind, pool);
        }
        let middle = self.label();
        if self.r.chance(150) {
            self.branch_to(middle);
        }
        let (high, low) = if absolute && (!near || self.r.chance(400)) {
            (Form::Lui { rd: rs1 }, Form::JalrLow { rd, rs1 })
        } else {
            (Form::Auipc { rd: rs1 }, Form::JalrRelative { rd, rs1 })
        };
        self.push(high, Kind::Seq, Aim::At(target));
        self.here(middle);
        self.push(low, kind, Aim::At(target)).other = Some(other);
    }

    /// Jumps through x0: calls, and tail calls with a way around them.
    fn absolute(&mut self) {
        let stub = Aim::At(self.r.pick(&self.stubs));
        let returns = self.current.level > 0 && self.current.style == Style::Normal;
        if returns && !self.in_handler && self.r.chance(300) {
            let over = self.label();
            self.branch_to(over);
            self.push(Form::JalrZero { rd: 0 }, Kind::Jump, stub);
            self.here(over);
        } else {
            let rd = self.r.pick(&[1, 1, 1, 5, 6]);
            self.push(Form::JalrZero { rd }, Kind::Call, stub);
        }
    }

    /// `cm.jalt` to a function, or `cm.jt` to a place further on.
    fn table_use(&mut self) {
        let over = self.label();
        let place = self.local_entries;
        match self.table.get_mut(place as usize) {
            Some(entry) if place < LOCAL && self.r.chance(400) => {
                *entry = over;
                self.local_entries += 1;
                self.table_jump(place, Kind::Jump);
                self.data_gap(8);
                self.here(over);
                self.straight();
            }
            _ => {
                let index = self.r.between(32, self.table.len() as u32 - 1);
                self.table_jump(index, Kind::Call);
            }
        }
    }

    fn has_table(&self) -> bool {
        !self.table.is_empty() && self.current.level <= TABLE_LEVEL
    }

    fn table_jump(&mut self, index: u32, kind: Kind) {
        let target = self.table.get(index as usize).copied().unwrap_or_default();
        let form = Form::Fixed(Code::new(asm::cm_table(index)));
        self.push(form, kind, Aim::At(target));
    }

    /// Jumps that link a register nobody returns through, and calls of the
    /// helpers that do return through it.
    fn other_link(&mut self) {
        let rd = self.r.pick(&[6, 7, 28, 31]);
        match self.r.below32(3) {
            0 => {
                let over = self.label();
                self.push(Form::Jal { rd }, Kind::Jump, Aim::At(over));
                self.data_gap(8);
                self.here(over);
                self.straight();
            }
            1 => {
                let over = self.label();
                self.indirect(rd, Kind::PickJump, vec![over]);
                self.here(over);
                self.straight();
            }
            _ => {
                let style = Style::Other(rd);
                let targets = self.callees(self.current.level, |s| s == style);
                if !targets.is_empty() {
                    self.pool_call(style, &targets);
                }
            }
        }
    }

    /// A jump to itself, which only an interrupt ends; where there are none,
    /// a branch to itself.
    fn spin(&mut self) {
        let start = self.label();
        self.here(start);
        let most = self.r.between(1, 40);
        if self.spec.traps && !self.in_handler {
            let form = Form::Jal { rd: 0 };
            self.push(form, Kind::Spin, Aim::At(start)).arg = most;
        } else {
            self.conditional(Kind::Loop, start, most);
        }
    }

    /// A return in one of its spellings.
    pub(super) fn ret(&mut self, style: Style) {
        let link = style.link();
        let popret = self.spec.zcmp && style == Style::Normal && self.r.chance(600);
        let bits = if popret {
            let what = self.r.pick(&[false, true]);
            let what = if what { Stack::PopRet } else { Stack::PopRetZ };
            asm::cm_stack(what, self.r.between(4, 15), self.r.below32(4))
        } else if self.spec.compressed && self.r.chance(700) {
            asm::c_jr(false, link)
        } else {
            asm::jalr(0, link, if self.r.chance(50) { 4 } else { 0 })
        };
        self.fixed(bits, Kind::Return);
    }

    /// The end of a function: a return or a tail call.
    pub(super) fn finish_function(&mut self) {
        let level = self.current.level;
        let targets = self.callees(level, |s| s == Style::Normal);
        let tail = self.r.below32(12) < self.spec.weights.tail_call;
        if !tail || targets.is_empty() || self.current.style != Style::Normal {
            return self.ret(self.current.style);
        }
        match self.r.below32(5) {
            0 => {
                let target = self.r.pick(&targets);
                self.push(Form::Jal { rd: 0 }, Kind::Jump, Aim::At(target));
            }
            1 => {
                let pool = vec![self.r.pick(&targets), self.r.pick(&targets)];
                self.indirect(0, Kind::PickJump, pool);
            }
            2 if self.has_table() => {
                let index = self.r.between(LOCAL, 31);
                self.table_jump(index, Kind::Jump);
            }
            3 if !self.stubs.is_empty() => {
                let stub = self.r.pick(&self.stubs);
                self.push(Form::JalrZero { rd: 0 }, Kind::Jump, Aim::At(stub));
            }
            _ => {
                // Through x1 the jump also looks like a return.
                let odd = self.r.below32(100) < self.spec.weights.odd_pair * 10;
                let rs1 = if odd { 1 } else { self.r.pick(&[6, 7]) };
                self.pair(0, rs1, Kind::PairJump, &targets);
            }
        }
    }
}
