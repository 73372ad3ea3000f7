//! The index of a trace for `view`: made in one pass, or read from where it was kept.

use crate::args::View;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::reporting::{FileFacts, doubts, feed};
use crate::session::Session;
use crate::settings::Program;
use crate::source::{How, Source, functions, places, source_text};
use crate::talk::Talk;
use hartrace_capture::cache::Cache;
use hartrace_capture::digest::Digest;
use hartrace_capture::output::Output;
use hartrace_capture::trace::{Decoded, Growth, Replay};
use hartrace_flow::{Checkpoint, HartId, Image};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::{Code as DiagnosticCode, Diagnostic};
use hartrace_report::{Collected, Collector, Index, Indexer, Kept, SourceLines, Stop};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Bytes of all indexes in the cache directory.
const CACHE: u64 = 256 << 20;

/// A program and its code.
#[derive(Clone, Copy)]
pub(crate) struct Code<'a> {
    pub(crate) program: &'a Program,
    pub(crate) image: &'a Image,
    pub(crate) isa: Isa,
}

/// Makes the index of a trace, or reads it.
pub(crate) fn index(
    (replay, session): (&Replay, &Session<'_>),
    (args, facts, has_time): (&View, FileFacts, bool),
    code: Code<'_>,
    talk: &Talk,
) -> Result<Index, Failure> {
    let key = key(replay, args, &facts, code.program);
    let cache = Cache::of_user(".index", CACHE).filter(|_| args.index.is_none());
    let cached = cache.as_ref().map(|cache| cache.file(&key));
    let path = args.index.clone().or(cached);
    let known = path.as_ref().and_then(|path| fs::read(path).ok());
    if let (Some(path), Some(bytes)) = (&args.index, &known)
        && !Index::is_kept_in(bytes)
    {
        return Err(no_index(path).into());
    }
    let known = known.and_then(|bytes| {
        Index::from_bytes(&bytes, key.to_string().as_bytes(), functions(code.program))
    });
    if let Some(index) = known {
        if cache.is_some() {
            path.as_deref().into_iter().for_each(Cache::note_use);
        }
        talk.phase("index: read");
        return Ok(index);
    }
    let index = make((replay, session), (args, facts, has_time), code)?;
    talk.phase("index: made");
    if let Some(path) = path {
        keep(&index, &key, (&path, cache.as_ref()), talk)?;
    }
    Ok(index)
}

/// A file that would be lost.
fn no_index(path: &Path) -> Diagnostic {
    let message = format!(
        "`{}` is a file of another kind, not an index",
        path.display()
    );
    Diagnostic::new(DiagnosticCode::OutputIsInput, message)
        .note("it would be replaced by the index of the trace")
        .help("give the index another name with --index, or leave it out")
}

/// Keeps an index for the next time. Only where a file was asked for, an error is one.
fn keep(
    index: &Index,
    key: &Digest,
    (path, cache): (&Path, Option<&Cache>),
    talk: &Talk,
) -> Result<(), Failure> {
    let bytes = index.to_bytes(key.to_string().as_bytes());
    if let Some(cache) = cache {
        cache.prepare();
    }
    let written = Output::create(path).and_then(|out| out.write_with(|out| out.write_all(&bytes)));
    match (written, cache) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(cache)) => {
            cache.trim(path);
            Ok(())
        }
        (Err(error), None) => Err(error.into()),
        (Err(error), Some(_)) => {
            let problem = Diagnostic::from(error);
            talk.warning(&problem.note("the index of the trace is made again the next time"));
            Ok(())
        }
    }
}

/// What an index depends on: the trace, the program, the settings, and the tool.
fn key(replay: &Replay, args: &View, facts: &FileFacts, program: &Program) -> Digest {
    let mut text = format!("{} {}\n", env!("CARGO_PKG_VERSION"), replay.fingerprint());
    // Writing to memory does not fail.
    let _ = writeln!(text, "{} {:?}", facts.format, facts.settings);
    let _ = writeln!(
        text,
        "{} {:?} {:?}",
        args.slices, args.traced.hart, args.sources
    );
    for elf in &program.elf {
        let _ = writeln!(text, "{:?} {}", elf.file.base, Digest::of(&elf.bytes));
    }
    for raw in &program.raw {
        let _ = writeln!(text, "{} {}", raw.file.base, Digest::of(&raw.bytes));
    }
    for code in &program.code {
        let _ = writeln!(text, "{}", Digest::of(&code.code.to_bytes()));
    }
    Digest::of(text.as_bytes())
}

/// Decodes a trace and makes its index.
fn make(
    (replay, session): (&Replay, &Session<'_>),
    (args, mut facts, has_time): (&View, FileFacts, bool),
    code: Code<'_>,
) -> Result<Index, Failure> {
    let mut kept = Kept::for_index(has_time, args.slices);
    let collector = Collector::new(code.image, functions(code.program), &mut kept);
    let mut indexer = Indexer::new(collector, code.image, has_time);
    let mut counting = replay.counting();
    let mut growth = Growth::default();
    let mut progress = Progress::new(session.talk, Some(replay.size()));
    let mut after = |decoded: &Decoded, done: u64| {
        progress.reach(done);
        growth.add(decoded.instructions, done);
    };
    let only = args.traced.hart.map(HartId);
    let decoded = replay.decode(
        code.image,
        only,
        &mut indexer,
        Some(&mut counting),
        &mut after,
    )?;
    drop(progress);
    session.judge(&decoded, args.traced.hart)?;
    let (collected, stops) = indexer.finish();
    facts.counted = Some((counting.finish(), growth));
    facts.warnings.extend(doubts(&decoded, replay.size()));
    Ok(finish((args, &facts), code, &collected, kept, stops))
}

/// Makes the index of a log, which is read from its start for every part.
pub(crate) fn index_of_log(
    (source, has_time): (Source<'_>, bool),
    (args, facts): (&View, &FileFacts),
    code: Code<'_>,
) -> Result<Index, Failure> {
    let mut kept = Kept::for_index(has_time, args.slices);
    let mut collector = Collector::new(code.image, functions(code.program), &mut kept);
    let how = How {
        only: args.traced.hart,
        single: false,
        progress: true,
        census: false,
        check: &|| Ok(()),
    };
    let of = (code.program, code.image, code.isa);
    feed((source, has_time), of, &mut collector, &how)?.report()?;
    let collected = collector.finish();
    Ok(finish((args, facts), code, &collected, kept, Vec::new()))
}

fn finish(
    (args, facts): (&View, &FileFacts),
    code: Code<'_>,
    collected: &Collected,
    kept: Kept,
    stops: Vec<(Checkpoint, Stop)>,
) -> Index {
    let text = source_text(&args.sources, [code.program]);
    let source: SourceLines<'_> = &|file: &str| text.lines(file);
    let places = places(code.program);
    let about = facts.about((code.program, code.image, &places), collected, source);
    Index::new(&about, collected, kept, stops)
}
