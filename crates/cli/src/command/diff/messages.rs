//! Where the messages of two traces differ, whatever they decode to.

use super::{report, written};
use crate::args::{Diff, DiffFormat};
use crate::failure::Failure;
use crate::files::create;
use crate::session::Session;
use crate::talk::Talk;
use hartrace_analyze::{Compared, DiffOptions, compare_runs};
use hartrace_capture::input;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{PieceKind, Trace};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::trace::unknown_field;
use hartrace_print::difference as print;
use hartrace_print::dump::{Dump, DumpForm};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Messages that are sent at once.
const BATCH: usize = 1 << 10;

/// Batches that one trace may be ahead of the comparison.
const AHEAD: usize = 4;

/// A message: what it says as a number, and its text.
type Message = (u64, String);

pub(super) fn run(args: &Diff, talk: &Talk) -> Result<(), Failure> {
    let mut output = create(&args.output.output, [args.a.as_path(), args.b.as_path()])?;
    let (a, b) = (open(&args.a, args, talk)?, open(&args.b, args, talk)?);
    if a.0.format() != b.0.format() {
        return Err(Failure::Usage(
            "--messages compares traces of one format; without it, what was executed is compared",
        ));
    }
    a.0.format()
        .check_fields(&args.ignore)
        .map_err(|error| unknown_field(&error))?;
    let names = [input::name(&args.a), input::name(&args.b)];
    let (to_a, from_a) = sync_channel(AHEAD);
    let (to_b, from_b) = sync_channel(AHEAD);
    let (compared, read) = thread::scope(|scope| {
        let a = scope.spawn(move || produce(a, args, &to_a));
        let b = scope.spawn(move || produce(b, args, &to_b));
        let names = [names[0].as_ref(), names[1].as_ref()];
        let compared = compare(args, names, [from_a, from_b], &mut output);
        let read = [a.join(), b.join()].map(|read| match read {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (compared, read)
    });
    let compared = compared.map_err(|error| output.failed(error))?;
    read.into_iter().collect::<Result<(), Failure>>()?;
    output.finish()?;
    report(&compared, [&args.a, &args.b])
}

fn open(path: &Path, args: &Diff, talk: &Talk) -> Result<(Trace, Isa), Failure> {
    let session = Session::new(path, &args.traced.program, false, talk)?;
    let input = session.open(&args.traced.transport, "diff")?;
    let mut code = session.typed_code()?;
    code.isa = code.isa.or_else(|| session.isa());
    let trace = session.trace(input, code.known())?;
    let isa = code.isa.unwrap_or(trace.settings.general_isa());
    Ok((trace, isa))
}

/// Reads the messages of a trace, and sends them until none are wanted any more.
fn produce(
    (trace, isa): (Trace, Isa),
    args: &Diff,
    to: &SyncSender<Vec<Message>>,
) -> Result<(), Failure> {
    let form = match args.format {
        DiffFormat::Text => DumpForm::Text,
        DiffFormat::Json => DumpForm::Json,
    };
    let mut dump = Dump::new(trace.format(), form);
    let mut batch = Vec::with_capacity(BATCH);
    let read = trace.explain(isa, dump.view(), |piece, bytes| {
        if piece.kind == PieceKind::Idle {
            return Ok(());
        }
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = dump.piece(piece, bytes, &mut text);
        let text = String::from_utf8_lossy(&text).trim_end().to_owned();
        batch.push((piece.sum(bytes, &args.ignore), text));
        match batch.len() < BATCH {
            true => Ok(()),
            false => send(to, std::mem::take(&mut batch)),
        }
    });
    match read.and_then(|_| send(to, batch)) {
        // The comparison ends early if the traces do not meet again.
        Err(Failure::ClosedPipe) => Ok(()),
        read => read,
    }
}

fn send(to: &SyncSender<Vec<Message>>, batch: Vec<Message>) -> Result<(), Failure> {
    to.send(batch).map_err(|_| Failure::ClosedPipe)
}

/// The texts of the last messages of a trace.
struct Texts {
    lines: VecDeque<String>,
    /// The number of the first of them.
    first: u64,
    /// How many there may be.
    most: usize,
}

impl Texts {
    /// So many that a comparison with these options finds all that it shows.
    const fn new(options: &DiffOptions) -> Texts {
        let ahead = options.window.saturating_add(options.before);
        Texts {
            lines: VecDeque::new(),
            first: 0,
            most: ahead.saturating_add(2 * BATCH),
        }
    }

    fn add(&mut self, line: String) {
        self.lines.push_back(line);
        if self.lines.len() > self.most {
            self.lines.pop_front();
            self.first += 1;
        }
    }

    fn get(&self, number: u64) -> String {
        let at = number.checked_sub(self.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let line = at.and_then(|at| self.lines.get(at));
        line.cloned().unwrap_or_default()
    }
}

fn compare(
    args: &Diff,
    names: [&str; 2],
    from: [Receiver<Vec<Message>>; 2],
    out: &mut Output,
) -> io::Result<Compared> {
    let options = DiffOptions {
        before: args.context,
        window: args.window.max(1),
        confirm: CONFIRM,
    };
    let texts = [(); 2].map(|()| RefCell::new(Texts::new(&options)));
    let sums = |side: usize, batch: Vec<Message>| {
        let mut sums = Vec::with_capacity(batch.len());
        for (sum, text) in batch {
            sums.push(sum);
            if let Some(texts) = texts.get(side) {
                texts.borrow_mut().add(text);
            }
        }
        sums
    };
    let text = |side: usize, number: u64| {
        let texts = texts.get(side).map(|texts| texts.borrow().get(number));
        texts.unwrap_or_default()
    };
    let [a, b] = from;
    let (mut a, mut b) = (
        a.into_iter().map(|batch| sums(0, batch)),
        b.into_iter().map(|batch| sums(1, batch)),
    );
    let is_json = args.format == DiffFormat::Json;
    if is_json {
        print::json_header(names, out)?;
    }
    written(args, "message", out, |each, out| {
        compare_runs(&mut a, &mut b, &options, &mut |found| {
            each(out, &mut |number, out| match is_json {
                true => print::json_message_divergence(number, found, &text, out),
                false => print::message_divergence(number, found, names, &text, out),
            })
        })
    })
}

/// Messages that must be the same where traces meet again.
const CONFIRM: usize = 4;
