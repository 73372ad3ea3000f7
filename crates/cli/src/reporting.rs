//! Collects what a report shows of a trace or a log.

use crate::args::{Part, Traced};
use crate::failure::Failure;
use crate::points;
use crate::settings::Program;
use crate::source::{How, Opened, Source, Verdict, functions, places};
use crate::talk::Talk;
use hartrace_analyze::{Places, Window, Windowed};
use hartrace_capture::source_text::SourceText;
use hartrace_capture::trace::{Census, Decoded, Growth};
use hartrace_flow::{Consumer, Image, Interpolate};
use hartrace_isa::Isa;
use hartrace_print::diagnostic::doubt::judge_doubts;
use hartrace_report::{
    About, Bandwidth, Budget, Collected, Collector, Kept, Run, SourceLines, Statistics,
};
use std::path::{Path, PathBuf};

/// Intervals in which the bytes of a trace are counted.
const INTERVALS: u64 = 200;

/// What was found out about a trace or a log.
pub(crate) struct Reported {
    file: FileFacts,
    pub(crate) program: Program,
    image: Image,
    pub(crate) collected: Collected,
    kept: Kept,
}

/// The file itself.
pub(crate) struct FileFacts {
    pub(crate) path: PathBuf,
    pub(crate) format: String,
    pub(crate) bytes: u64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) counted: Option<(Census, Growth)>,
    /// Why the page may be wrong.
    pub(crate) warnings: Vec<String>,
}

/// Reads a file, or a part of it.
pub(crate) fn collect(
    path: &Path,
    args: &Traced,
    (command, part): (&str, &Part),
    budget: &Budget,
    talk: &Talk,
) -> Result<Reported, Failure> {
    let Opened {
        program,
        image,
        isa,
        mut source,
    } = Opened::open(path, args, command, talk)?;
    let named = functions(&program);
    let options = points::part(part, &program, &named)?;
    let has_time = source.may_have_time()?;
    let (format, settings, size) = (source.format(), source.settings(), source.size());
    let mut warnings = guess(&source);
    let how = How {
        only: args.hart,
        single: false,
        progress: true,
        census: true,
        check: &|| Ok(()),
    };
    let mut kept = Kept::new(has_time, budget);
    let mut collector = Collector::new(&image, named, &mut kept);
    let of = (&program, &image, isa);
    let mut verdict = match options {
        None => feed((source, has_time), of, &mut collector, &how)?,
        Some(options) => {
            let window = Window::new(&image, options);
            let inner = &mut collector;
            let mut windowed = Windowed { inner, window };
            let verdict = feed((source, has_time), of, &mut windowed, &how)?;
            points::found(&windowed.window, part, path)?;
            verdict
        }
    };
    let counted = verdict.take_counted();
    let bytes = counted.as_ref().map(|(census, _)| census.bytes());
    let bytes = size.or(bytes).unwrap_or(0);
    warnings.extend(
        verdict
            .decoded()
            .into_iter()
            .flat_map(|of| doubts(of, bytes)),
    );
    verdict.report()?;
    let collected = collector.finish();
    if collected.profile.doubts.count > 0 {
        let places = places(&program);
        let doubts = &collected.profile.doubts;
        talk.report(judge_doubts(doubts, &places, path, args.strict))?;
    }
    Ok(Reported {
        file: FileFacts {
            path: path.to_path_buf(),
            format,
            bytes,
            settings,
            counted,
            warnings,
        },
        program,
        image,
        collected,
        kept,
    })
}

/// That settings were guessed.
pub(crate) fn guess(source: &Source<'_>) -> Vec<String> {
    let text = "The trace has no sidecar: its settings were guessed, and may be wrong (HT0401).";
    let guessed = source.is_guessed().then(|| text.to_owned());
    guessed.into_iter().collect()
}

/// Why what was decoded of a trace of this size may be wrong, or only a part.
pub(crate) fn doubts(decoded: &Decoded, size: u64) -> Vec<String> {
    let mut all = Vec::new();
    let lost = decoded.lost.min(size);
    // A gap now and then is listed with the gaps.
    if lost > size / 100 {
        let share = match (size - lost) * 100 / size {
            0 => "Less than 1".to_owned(),
            share => share.to_string(),
        };
        all.push(format!(
            "{share} % of the trace was decoded: {lost} of {size} bytes were skipped."
        ));
    }
    if decoded.doubts_program() {
        let text = "The trace is probably of another program: it contradicts the code (HT0110).";
        all.push(text.to_owned());
    }
    all
}

/// Gives events to `out`; with timestamps, every run gets a time.
pub(crate) fn feed<'a>(
    (source, has_time): (Source<'a>, bool),
    of: (&Program, &Image, Isa),
    out: &mut dyn Consumer,
    how: &How<'_>,
) -> Result<Verdict<'a>, Failure> {
    if !has_time {
        return source.read(of, out, how);
    }
    let mut timed = Interpolate::new(of.1, out);
    let verdict = source.read(of, &mut timed, how);
    timed.finish();
    verdict
}

impl Reported {
    /// What a page shows of it: as much as the budget allows.
    pub(crate) fn run(&self, text: &SourceText, budget: &Budget) -> Run {
        let places = places(&self.program);
        let source: SourceLines<'_> = &|file: &str| text.lines(file);
        let code = (&self.program, &self.image, &places);
        let about = self.file.about(code, &self.collected, source);
        Run::of(&about, &self.collected, &self.kept, budget)
    }
}

impl FileFacts {
    /// What a page is told about the file.
    pub(crate) fn about<'a>(
        &self,
        (program, image, places): (&Program, &'a Image, &'a Places<'a>),
        collected: &Collected,
        source: SourceLines<'a>,
    ) -> About<'a> {
        let elf = program.elf.iter().map(|elf| &elf.file.file);
        let raw = program.raw.iter().map(|raw| &raw.file.file);
        About {
            name: file_name(&self.path),
            format: self.format.clone(),
            bytes: self.bytes,
            program: elf.chain(raw).map(|path| file_name(path)).collect(),
            settings: self.settings.clone(),
            image,
            places,
            source,
            statistics: self.statistics(collected),
            warnings: self.warnings.clone(),
        }
    }

    fn statistics(&self, collected: &Collected) -> Statistics {
        let Some((census, growth)) = &self.counted else {
            return Statistics::default();
        };
        let messages = census.kinds.iter().map(|kind| {
            let count = kind.count;
            (kind.name.clone(), count.messages, count.bytes)
        });
        let mut messages: Vec<_> = messages.collect();
        let faults = census.faults.iter();
        messages.extend(faults.map(|(code, text, count)| {
            let name = format!("{code}: {text}");
            (name, count.messages, count.bytes)
        }));
        if census.idle > 0 {
            messages.push(("idle".to_owned(), 0, census.idle));
        }
        let insns = collected.profile.total().insns;
        Statistics {
            messages,
            bandwidth: bandwidth(census, growth),
            bits_per_instruction: (insns > 0).then(|| census.bytes() as f64 * 8.0 / insns as f64),
        }
    }
}

/// Bytes by time where there are timestamps, and by instructions otherwise.
pub(crate) fn bandwidth(census: &Census, growth: &Growth) -> Bandwidth {
    let (unit, first, length, bytes) = match &census.bandwidth {
        Some(timed) => (
            "units of time",
            timed.first,
            timed.slice,
            timed.bytes.clone(),
        ),
        None => {
            let (length, bytes) = growth.intervals(INTERVALS);
            ("instructions", 0, length, bytes)
        }
    };
    let starts = (0u64..).zip(&bytes).map(|(n, _)| first + n * length);
    Bandwidth {
        unit: format!("bytes per {length} {unit}"),
        is_timed: census.bandwidth.is_some(),
        x: starts.collect(),
        bytes,
    }
}

/// The name of a file without its folders.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
