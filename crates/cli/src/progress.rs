//! Progress of long reads and runs.

use crate::talk::Talk;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What takes less is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts bytes of an input whose size is known.
pub(crate) struct Progress {
    total: u64,
    seen: u64,
    begin: Instant,
    shown: Shown,
    /// What else there is to say.
    said: String,
}

enum Shown {
    Nothing,
    /// Tenths reported, one per line.
    Lines(u64),
    Bar(Option<ProgressBar>),
}

impl Progress {
    pub(crate) fn new(talk: &Talk, total: Option<u64>) -> Progress {
        let shown = match (talk.progress(), total) {
            (Some(true), Some(_)) => Shown::Bar(None),
            (Some(false), Some(_)) => Shown::Lines(0),
            _ => Shown::Nothing,
        };
        Progress {
            total: total.unwrap_or(0),
            seen: 0,
            begin: Instant::now(),
            shown,
            said: String::new(),
        }
    }

    /// Something to show beside the bytes.
    pub(crate) fn say(&mut self, text: &str) {
        text.clone_into(&mut self.said);
    }

    /// Something else is going to be shown, from now on.
    pub(crate) fn give_way(&mut self) {
        if let Shown::Bar(bar) = &mut self.shown {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
            self.shown = Shown::Nothing;
        }
    }

    /// So many more bytes have been read.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.reach(self.seen + bytes as u64);
    }

    /// So many bytes have been read in all.
    pub(crate) fn reach(&mut self, seen: u64) {
        self.seen = seen;
        let (seen, total) = (self.seen, self.total);
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines(told) => {
                let tenths = (seen.saturating_mul(10)).checked_div(total).unwrap_or(10);
                if tenths > *told {
                    *told = tenths;
                    let mut stderr = anstream::stderr().lock();
                    let gap = if self.said.is_empty() { "" } else { ", " };
                    let said = &self.said;
                    let _ = writeln!(stderr, "{seen} of {total} bytes, {tenths}0 %{gap}{said}");
                }
            }
            Shown::Bar(bar) => {
                if self.begin.elapsed() > PATIENCE {
                    let bar = bar.get_or_insert_with(|| new_bar(total));
                    bar.set_position(seen);
                    if !self.said.is_empty() {
                        bar.set_message(format!("{}, ", self.said));
                    }
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Shown::Bar(Some(bar)) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Counts instructions of a run. Clones are the same progress.
#[derive(Clone)]
pub(crate) struct RunProgress(Rc<RefCell<Counting>>);

struct Counting {
    limit: Option<u64>,
    begin: Instant,
    shown: Shown,
}

/// Between two lines where a line cannot be redrawn.
const LINES: Duration = Duration::from_secs(5);

impl RunProgress {
    pub(crate) fn new(talk: &Talk, limit: Option<u64>) -> RunProgress {
        let shown = match talk.progress() {
            Some(true) => Shown::Bar(None),
            Some(false) => Shown::Lines(0),
            None => Shown::Nothing,
        };
        RunProgress(Rc::new(RefCell::new(Counting {
            limit,
            begin: Instant::now(),
            shown,
        })))
    }

    /// So many instructions have been executed.
    pub(crate) fn at(&self, instructions: u64) {
        let counting = &mut *self.0.borrow_mut();
        let time = counting.begin.elapsed();
        let millions = instructions as f64 / 1e6;
        let rate = millions / time.as_secs_f64().max(1e-6);
        let text = format!("{millions:.0} M instructions, {rate:.0} M/s");
        match &mut counting.shown {
            Shown::Nothing => {}
            Shown::Lines(told) => {
                let now = time.as_secs() / LINES.as_secs();
                if now > *told {
                    *told = now;
                    let _ = writeln!(anstream::stderr().lock(), "{text}");
                }
            }
            Shown::Bar(bar) => {
                if time > PATIENCE {
                    let bar = bar.get_or_insert_with(|| run_bar(counting.limit));
                    bar.set_position(instructions);
                    bar.set_message(text);
                }
            }
        }
    }

    /// Something else is going to be shown, from now on.
    pub(crate) fn give_way(&self) {
        let counting = &mut *self.0.borrow_mut();
        if let Shown::Bar(bar) = &mut counting.shown {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
            counting.shown = Shown::Nothing;
        }
    }
}

fn run_bar(limit: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(limit, ProgressDrawTarget::stderr());
    let template = match limit {
        Some(_) => "{wide_bar} {msg}",
        None => "{spinner} {msg}",
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn new_bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{wide_bar} {bytes} of {total_bytes}, {msg}{eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
