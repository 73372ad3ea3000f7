//! The rows of each table, with the columns as they are documented.

use crate::column::{Column, Flag, Function, MaybeU32, MaybeU64, Text, U8, U32, U64, Word, Words};
use crate::table::{ColumnInfo, Projection, Table};
use arrow_array::{RecordBatch, StringArray};
use std::sync::Arc;

/// Rows in a batch.
pub(crate) const BATCH: usize = 8192;

/// Makes the rows of a table.
macro_rules! rows {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty, $about:literal;)+ }) => {
        $(#[$doc])*
        pub(crate) struct $name {
            projection: Projection,
            rows: usize,
            $(pub(crate) $field: $kind,)+
        }

        impl $name {
            pub(crate) const COLUMNS: &[ColumnInfo] = &[$(ColumnInfo {
                name: stringify!($field),
                about: $about,
                nullable: <$kind as Column>::NULLABLE,
                data_type: <$kind as Column>::data_type,
            }),+];

            /// No rows yet.
            pub(crate) fn new(projection: Projection) -> $name {
                let mut columns = 0..;
                let mut wanted = || projection.has(columns.next().unwrap_or(0));
                $(let $field = <$kind as Column>::new(wanted());)+
                $name { projection, rows: 0, $($field,)+ }
            }

            /// A row has all its values. Whether there are enough for a batch.
            #[inline]
            pub(crate) fn end_row(&mut self) -> bool {
                self.rows += 1;
                self.rows >= BATCH
            }

            /// The rows since the last time, if there are any.
            pub(crate) fn take(&mut self, functions: &Arc<StringArray>) -> Option<RecordBatch> {
                let rows = std::mem::take(&mut self.rows);
                let columns = [$(self.$field.take(functions)),+];
                let columns = columns.into_iter().flatten().collect();
                match rows {
                    0 => None,
                    rows => Table::$name.batch(self.projection, columns, rows),
                }
            }
        }
    };
}

/// How a stretch of instructions ended.
pub(crate) enum Exits {}

impl Words for Exits {
    const LIST: &'static [&'static str] = &[
        "end",
        "not taken",
        "taken",
        "jump",
        "call",
        "linked jump",
        "indirect jump",
        "indirect call",
        "indirect linked jump",
        "return",
        "swap",
        "trap return",
        "trap",
        "context",
        "gap",
    ];
}

/// Privilege modes.
pub(crate) enum Modes {}

impl Words for Modes {
    const LIST: &'static [&'static str] = &["U", "S", "M", "D", "VU", "VS"];
}

/// How calls and traps end.
pub(crate) enum Ends {}

impl Words for Ends {
    const LIST: &'static [&'static str] = &["returned", "tail call", "unwound", "lost"];
}

/// Kinds of traps.
pub(crate) enum TrapKinds {}

impl Words for TrapKinds {
    const LIST: &'static [&'static str] = &["exception", "interrupt", "unknown"];
}

/// Kinds of gaps.
pub(crate) enum GapKinds {}

impl Words for GapKinds {
    const LIST: &'static [&'static str] = &["loss", "data", "warning", "unconfirmed", "not traced"];
}

rows! {
    /// Stretches of instructions.
    Runs {
        context: MaybeU64, "Software context, if the trace reports it";
        privilege: Word<Modes>, "Privilege mode (U, S, M, D, VU, VS), if the trace reports it";
        start: U64, "Address of the first instruction";
        end: U64, "Address after the last instruction";
        instructions: U64, "Instructions that retired: all from `start` to `end`";
        exit: Word<Exits>, "How it ended: taken, jump, call, linked jump, indirect jump, \
            indirect call, indirect linked jump, return, swap, trap return; trap; context, where \
            mode or context changed; gap; end, where the trace or tracing ended";
        next: MaybeU64, "Where the hart continued, for an exit by an instruction";
        begin: U64, "Instructions of the hart before it";
        time: MaybeU64, "Time of its start, in the unit of the trace's timestamps; estimated \
            between two timestamps";
        position: U64, "Byte offset in the trace of the last synchronisation point before it \
            from which decoding can start";
    }
}

rows! {
    /// Calls.
    Calls {
        thread: U32, "Thread of the hart, as its call stacks show them, from 0";
        context: MaybeU64, "Software context of the thread, if the trace reports it";
        function: Function, "The function that was called, demangled; its address where the \
            program has no name";
        caller: Function, "The function that called it; null for the first function of a \
            thread or of a trap handler";
        site: MaybeU64, "Address of the call instruction; null if the call is not in the trace";
        depth: U32, "Calls of the thread around it that had not returned";
        begin: U64, "Instructions of the hart before its first";
        end: U64, "Instructions of the hart up to its last";
        begin_time: MaybeU64, "Time of its begin, in the unit of the trace's timestamps; \
            estimated between two timestamps";
        end_time: MaybeU64, "Time of its end, likewise";
        instructions: MaybeU64, "Instructions from call to return, with those of the functions \
            it called, without traps and other threads; null if the thread was not running when \
            the trace ended";
        cycles: MaybeU64, "Time that these took, in the unit of the trace's timestamps";
        ended: Word<Ends>, "How it ended: returned; tail call, another function took its place; \
            unwound, by longjmp or an exception; lost, in a gap or at the end of the trace";
        whole: Flag, "The trace has all of it: its call, its end and no gap between them";
    }
}

rows! {
    /// Traps.
    Traps {
        thread: U32, "Thread of the hart that it interrupted, from 0";
        context: MaybeU64, "Software context of the thread, if the trace reports it";
        kind: Word<TrapKinds>, "exception, interrupt or unknown";
        code: MaybeU32, "Code in `mcause` or `scause`, without the top bit, if known";
        cause: Text, "What it is called, such as machine timer interrupt";
        address: MaybeU64, "Address of the instruction that trapped, or before which an \
            interrupt was taken, if known";
        handler: MaybeU64, "First address of the handler, if known";
        value: MaybeU64, "The trap value (`mtval`, `stval`), if known";
        function: Function, "The function that was interrupted";
        depth: U32, "Calls of the thread that had not returned";
        begin: U64, "Instructions of the hart before the handler";
        end: U64, "Instructions of the hart up to the end of the handler";
        begin_time: MaybeU64, "Time of the trap, in the unit of the trace's timestamps; \
            estimated between two timestamps";
        end_time: MaybeU64, "Time of the return, likewise";
        ended: Word<Ends>, "returned, or lost: the trace has no return from it";
    }
}

rows! {
    /// Data accesses.
    Accesses {
        context: MaybeU64, "Software context, if the trace reports it";
        kind: Text, "What the instruction does, such as load, store or the name of an atomic";
        address: MaybeU64, "Virtual address, or CSR number; null if the trace does not report it";
        size: U8, "Bytes";
        data: MaybeU64, "The value loaded or stored, if reported";
        operand: MaybeU64, "Atomics: the value read; CSRs: the value read or the operand";
        pc: MaybeU64, "Address of the instruction, if it is known which one made the access";
        begin: U64, "Instructions of the hart before that one, or before the end of the run \
            that it is reported after";
        time: MaybeU64, "Time of the start of its stretch of instructions, as in `runs`";
    }
}

rows! {
    /// What is missing or in doubt.
    Gaps {
        kind: Word<GapKinds>, "loss: instructions are missing; data: data accesses are missing; \
            warning: something may be missing; unconfirmed: instructions were decoded with code \
            that may have been other code; not traced: tracing was off";
        code: Text, "The code of the diagnostic, such as NT0203";
        reason: Text, "What it means";
        value: MaybeU64, "The offending value: an address, a field, a count";
        position: MaybeU64, "Byte offset in the trace where it was noticed";
        bytes: U64, "Bytes of trace that could not be used";
        unconfirmed: U64, "How many of the instructions before it nothing confirms";
        begin: U64, "Instructions of the hart before it";
        time: MaybeU64, "The last known time before it, in the unit of the trace's timestamps";
    }
}

rows! {
    /// Messages.
    Messages {
        position: U64, "Byte offset of its first byte";
        bytes: U64, "Its length in bytes";
        kind: Text, "What it is called in its specification; idle, unreadable";
        address: MaybeU64, "The full address that it reports";
        time: MaybeU64, "The full time that it reports";
        fault: Text, "The code of what is wrong with it, such as NT0101";
    }
}

rows! {
    /// Functions of the program.
    Functions {
        function: Text, "Its name, demangled";
        symbol: Text, "Its symbol in the program";
        start: U64, "First address";
        end: U64, "Address after its last instruction; `start` where that is not known";
        file: Text, "Source file of its first instruction";
        line: MaybeU32, "Source line of its first instruction";
    }
}

rows! {
    /// Source lines of the program.
    Lines {
        file: Text, "Source file";
        line: U32, "Source line";
        start: U64, "First address of a piece of code of this line";
        end: U64, "Address after it";
        function: Text, "The function that this is in";
    }
}

rows! {
    /// Branches of the program.
    Branches {
        address: U64, "Address of a conditional branch";
        function: Text, "The function that it is in";
        file: Text, "Its source file";
        line: MaybeU32, "Its source line";
        taken: U64, "How often it was taken, in the whole trace, by all harts";
        not_taken: U64, "How often it was not taken";
    }
}
