//! How far a long reading is.

use crate::talk::Talk;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write as _;
use std::time::{Duration, Instant};

/// What takes less is not worth a bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts bytes of an input whose size is known.
pub(crate) struct Progress {
    total: u64,
    seen: u64,
    begin: Instant,
    shown: Shown,
}

enum Shown {
    Nothing,
    /// Tenths told, one per line.
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
        }
    }

    /// So many more bytes have been read.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.seen += bytes as u64;
        let (seen, total) = (self.seen, self.total);
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Lines(told) => {
                let tenths = (seen.saturating_mul(10)).checked_div(total).unwrap_or(10);
                if tenths > *told {
                    *told = tenths;
                    let mut stderr = anstream::stderr().lock();
                    let _ = writeln!(stderr, "{seen} of {total} bytes, {tenths}0 %");
                }
            }
            Shown::Bar(bar) => {
                if self.begin.elapsed() > PATIENCE {
                    bar.get_or_insert_with(|| new_bar(total)).set_position(seen);
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

fn new_bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{wide_bar} {bytes} of {total_bytes}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
