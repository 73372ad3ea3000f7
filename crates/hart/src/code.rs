//! Decoded code.
//!
//! Code is decoded once into blocks: straight stretches of one page that end
//! with a jump, with an instruction that concerns the whole hart, or after
//! [`LONGEST`] instructions. A conditional branch does not end a block; when
//! it is taken, the block is left in the middle.
//!
//! Blocks belong to physical pages. Every page with code has a table with an
//! entry for each halfword; following a jump is two loads and no hashing.
//! Memory remembers which lines were decoded, so that stores to code are
//! noticed and the page's blocks forgotten.

mod what;

use hartrace_flow::{Placed, Touch};
use hartrace_isa::{Flow, Isa, ItypeTable, Op, decode};

use crate::cost::Costs;
use crate::cpu::SINK;
use crate::memory::{PAGE, Page};

pub(crate) use what::Do;

/// Instructions in a block.
pub(crate) const LONGEST: usize = 64;

/// Decoded instructions kept before all are forgotten: 64 MiB.
const MOST: usize = 1 << 22;

/// Pages with code before all are forgotten: 64 MiB, too.
const MOST_TABLES: usize = 1 << 12;

/// A decoded instruction, ready to run: sixteen bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Micro {
    /// The immediate; of branches and `jal`, the target relative to the start
    /// of the block; of floating-point arithmetic, the third source in bits 4
    /// to 0 and the rounding mode in bits 7 to 5; of `fli`, the number of the
    /// constant.
    pub(crate) imm: i32,
    pub(crate) op: Op,
    /// Offset in bytes from the start of the block.
    pub(crate) offset: u16,
    /// Cycles from the start of the block up to and with this instruction.
    pub(crate) cost: u16,
    pub(crate) what: Do,
    /// Destination; an integer x0 is [`SINK`]. Of branches, which have none, 0 if they
    /// lead to the next instruction in memory, otherwise 1 ([`Straight::taken`]).
    ///
    /// [`Straight::taken`]: hartrace_flow::Straight::taken
    pub(crate) rd: u8,
    /// Of `cm.push` and its kin, the list of registers.
    pub(crate) rs1: u8,
    /// Of jumps, which have none, the code of their [`Itype`](hartrace_isa::Itype).
    pub(crate) rs2: u8,
    /// Its number in the block, from 1.
    pub(crate) number: u8,
    /// Length in bytes.
    pub(crate) len: u8,
}

/// A block: where its instructions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// The blocks of a page, by halfword; a count of 0 is none.
type Table = [Block; PAGE as usize / 2];

impl Block {
    pub(crate) const NONE: Block = Block { first: 0, count: 0 };
}

/// The decoded code of a hart.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) micros: Vec<Micro>,
    /// The instructions as observers get them, one for each of `micros`.
    pub(crate) placed: Vec<Placed>,
    tables: Vec<Box<Table>>,
    /// Number of the table of a frame, plus one.
    by_frame: Vec<u32>,
    isa: Isa,
    costs: Costs,
    types: ItypeTable,
    /// Bytes of a cache block.
    cache_block: u64,
}

impl Code {
    pub(crate) fn new(isa: Isa, costs: Costs, types: ItypeTable, cache_block: u64) -> Code {
        Code {
            micros: Vec::new(),
            placed: Vec::new(),
            tables: Vec::new(),
            by_frame: Vec::new(),
            isa,
            costs,
            types,
            cache_block,
        }
    }

    /// The block at an address, of the page with this table; one without
    /// instructions if there is none.
    pub(crate) fn block(&self, table: u32, addr: u64) -> Block {
        let table = self.tables.get(table as usize);
        let block = table.and_then(|table| table.get((addr % PAGE / 2) as usize));
        block.copied().unwrap_or(Block::NONE)
    }

    /// The instructions of a block, and the number of the first.
    #[inline]
    pub(crate) fn slice(&self, block: Block) -> (usize, &[Micro]) {
        let first = block.first as usize;
        let micros = self.micros.get(first..first + block.count as usize);
        (first, micros.unwrap_or_default())
    }

    /// The table of a frame, new if need be.
    pub(crate) fn table(&mut self, frame: u32) -> u32 {
        let frame = frame as usize;
        if self.by_frame.len() <= frame {
            self.by_frame.resize(frame + 1, 0);
        }
        let next = self.tables.len() as u32;
        match self.by_frame.get_mut(frame) {
            Some(number) if *number != 0 => *number - 1,
            Some(number) => {
                *number = next + 1;
                self.tables.push(Box::new([Block::NONE; PAGE as usize / 2]));
                next
            }
            None => next,
        }
    }

    /// Forgets the blocks of a frame.
    pub(crate) fn forget_frame(&mut self, frame: u32) {
        let number = self.by_frame.get(frame as usize).copied().unwrap_or(0);
        if let Some(table) = number
            .checked_sub(1)
            .and_then(|n| self.tables.get_mut(n as usize))
        {
            table.fill(Block::NONE);
        }
    }

    /// Forgets everything; the instruction set may have changed.
    pub(crate) fn clear(&mut self, isa: Isa) {
        *self = Code::new(isa, self.costs, self.types, self.cache_block);
    }

    /// Whether it is time to forget everything.
    pub(crate) fn is_full(&self) -> bool {
        self.micros.len() >= MOST || self.tables.len() >= MOST_TABLES
    }

    /// Decodes the block at an address of a page and puts it in the table.
    /// Gives the number of bytes it covers: 0 when the first instruction does
    /// not end in this page.
    pub(crate) fn build(&mut self, table: u32, addr: u64, page: &Page) -> u64 {
        let start = addr % PAGE;
        let first = self.micros.len();
        let mut at = start;
        let mut cost = 0;
        while let Some(bits) = instruction(page, at) {
            let index = self.micros.len() - first;
            let micro = self.micro(bits, at - start, index, &mut cost);
            self.push(micro, bits, index == 0);
            at += u64::from(micro.len);
            if micro.what.ends_block() || self.micros.len() - first == LONGEST {
                break;
            }
        }
        pair_up(self.micros.get_mut(first..).unwrap_or_default());
        let block = Block {
            first: first as u32,
            count: (self.micros.len() - first) as u32,
        };
        self.put(table, addr, block);
        at - start
    }

    fn put(&mut self, table: u32, addr: u64, block: Block) {
        let table = self.tables.get_mut(table as usize);
        if let Some(slot) = table.and_then(|table| table.get_mut((addr % PAGE / 2) as usize)) {
            *slot = block;
        }
    }

    /// Decodes one instruction into a block of its own that no table knows.
    pub(crate) fn build_one(&mut self, bits: u32) -> Block {
        let mut cost = 0;
        let micro = self.micro(bits, 0, 0, &mut cost);
        let first = self.micros.len() as u32;
        self.push(micro, bits, true);
        Block { first, count: 1 }
    }

    /// Takes the last block of [`Code::build_one`] back.
    pub(crate) fn drop_one(&mut self, block: Block) {
        if self.micros.len() == block.first as usize + 1 {
            self.micros.pop();
            self.placed.pop();
        }
    }

    /// Adds an instruction, to a new block if it is the first of one.
    fn push(&mut self, micro: Micro, bits: u32, first: bool) {
        let before = match first {
            true => Placed::default(),
            false => self.placed.last().copied().unwrap_or_default(),
        };
        let flow = Flow::of_retired(bits, self.isa);
        let accesses = match Touch::of(bits, self.isa) {
            // Those to CSRs are not part of straight-line code.
            Touch::Accesses { kind, .. } if kind.is_csr() => 0,
            // Not executed.
            Touch::Vector { .. } => 0,
            _ if decode(bits, self.isa).op == Op::CboZero => (self.cache_block / 8) as u8,
            touch => touch.count(),
        };
        let placed = Placed::after(&before, bits, flow, micro.cost);
        self.placed.push(placed.with_accesses(accesses));
        self.micros.push(micro);
    }

    fn micro(&self, bits: u32, offset: u64, index: usize, cost: &mut u16) -> Micro {
        let inst = decode(bits, self.isa);
        *cost = cost.saturating_add(self.costs.of(inst.op).into());
        let what = Do::of(&inst);
        let imm = match what {
            Do::Beq | Do::Bne | Do::Blt | Do::Bge | Do::Bltu | Do::Bgeu | Do::Jal => {
                inst.imm + offset as i32
            }
            Do::Float if matches!(inst.op, Op::FliS | Op::FliD | Op::FliH) => inst.imm,
            Do::Float => i32::from(inst.rs3().number() | inst.rm() << 5),
            // May-be-operations write 0 unless an extension gives them a meaning.
            Do::Li if matches!(inst.op, Op::MopR | Op::MopRr) => 0,
            _ => inst.imm,
        };
        let rs2 = match what {
            Do::Jal | Do::Jalr | Do::PopReturn | Do::Table => {
                let flow = Flow::of_retired(bits, self.isa);
                flow.itype4(bits, true, self.types).code()
            }
            _ => inst.rs2.number(),
        };
        let rd = match inst.rd.number() {
            _ if matches!(
                what,
                Do::Beq | Do::Bne | Do::Blt | Do::Bge | Do::Bltu | Do::Bgeu
            ) =>
            {
                u8::from(inst.imm != i32::from(inst.len))
            }
            // 0 is as good a floating-point register as any.
            0 if !inst.op.writes_float() => SINK,
            rd => rd,
        };
        let rs1 = match inst.op {
            Op::CmPush | Op::CmPop | Op::CmPopret | Op::CmPopretz => inst.rlist(),
            _ => inst.rs1.number(),
        };
        Micro {
            imm,
            op: inst.op,
            offset: offset as u16,
            cost: *cost,
            what,
            rd,
            rs1,
            rs2,
            number: index as u8 + 1,
            len: inst.len,
        }
    }
}

/// Makes pairs of adjacent instructions; the second of a pair keeps what
/// it does, for the first to find.
fn pair_up(micros: &mut [Micro]) {
    let mut rest = micros.iter_mut().peekable();
    while let Some(micro) = rest.next() {
        if let Some(pair) = rest.peek().and_then(|next| micro.what.pair(next.what)) {
            micro.what = pair;
            rest.next();
        }
    }
}

/// The instruction at an offset of a page, if it ends in it. Of instructions
/// longer than four bytes the first four.
pub(crate) fn instruction(page: &Page, at: u64) -> Option<u32> {
    let rest = page.get(at as usize..)?;
    let parcel = u16::from_le_bytes(*rest.first_chunk()?);
    if is_short(parcel) {
        Some(parcel.into())
    } else {
        Some(u32::from_le_bytes(*rest.first_chunk()?))
    }
}

/// Whether an instruction that starts like this is two bytes long.
pub(crate) fn is_short(parcel: u16) -> bool {
    parcel & 3 != 3
}
