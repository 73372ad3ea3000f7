//! One simulator as a process that writes lines.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a log line starts with.
const LOG: &[u8] = b"core";
/// Lines of anything else that are kept.
const NOTES: usize = 20;

/// A running simulator.
pub(super) struct Side {
    child: Arc<Mutex<Child>>,
    reader: BufReader<ChildStderr>,
    notes: Vec<String>,
    /// Lines so far, for the watchdog.
    lines: Arc<AtomicU64>,
    /// Set while a line is awaited: a simulator that waits for the other one
    /// is not silent.
    awaited: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    expired: Arc<AtomicBool>,
}

/// How it ended.
pub(super) struct Ended {
    pub(super) status: String,
    pub(super) notes: Vec<String>,
}

impl Side {
    /// Starts what the template says.
    pub(super) fn start(
        template: &str,
        isa: &str,
        file: &str,
        patience: u64,
    ) -> Result<Side, String> {
        let mut words = template.split_whitespace().map(|word| {
            word.replace("{isa}", isa)
                .replace("{log}", "/dev/stderr")
                .replace("{elf}", file)
        });
        let program = words.next().ok_or("an empty command")?;
        let mut child = Command::new(&program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{program}: {e}"))?;
        let pipe = child.stderr.take().ok_or("no pipe")?;
        let side = Side {
            child: Arc::new(Mutex::new(child)),
            reader: BufReader::with_capacity(1 << 16, pipe),
            notes: Vec::new(),
            lines: Arc::default(),
            awaited: Arc::default(),
            done: Arc::default(),
            expired: Arc::default(),
        };
        side.watch(patience);
        Ok(side)
    }

    /// Ends the process when nothing has come for too long.
    fn watch(&self, patience: u64) {
        let (child, lines) = (Arc::clone(&self.child), Arc::clone(&self.lines));
        let (awaited, done) = (Arc::clone(&self.awaited), Arc::clone(&self.done));
        let expired = Arc::clone(&self.expired);
        std::thread::spawn(move || {
            let step = Duration::from_millis(100);
            let (mut before, mut silent) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(step);
                let now = lines.load(Ordering::Relaxed);
                let still = now == before && awaited.load(Ordering::Relaxed);
                silent = if still { silent + 1 } else { 0 };
                before = now;
                if silent >= patience * 10 {
                    expired.store(true, Ordering::Relaxed);
                    stop(&child);
                    return;
                }
            }
        });
    }

    /// The next line of the log; false at its end. A last line without an
    /// end was cut off with the process and does not count.
    pub(super) fn line(&mut self, line: &mut Vec<u8>) -> bool {
        self.awaited.store(true, Ordering::Relaxed);
        let found = loop {
            line.clear();
            match self.reader.read_until(b'\n', line) {
                Ok(1..) if line.last() != Some(&b'\n') => self.note(line),
                Ok(1..) if line.starts_with(LOG) => break true,
                Ok(1..) => self.note(line),
                Ok(0) | Err(_) => break false,
            }
        };
        self.awaited.store(false, Ordering::Relaxed);
        self.lines.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn note(&mut self, line: &[u8]) {
        if self.notes.len() < NOTES {
            let text = String::from_utf8_lossy(line);
            self.notes.push(text.trim_end().to_owned());
        }
    }

    /// Stops it if it still runs.
    pub(super) fn end(mut self) -> Ended {
        // What it said at its end, if it is at its end.
        let finished = self.wait_a_little();
        if !finished {
            stop(&self.child);
        }
        self.done.store(true, Ordering::Relaxed);
        let status = match self.child.lock() {
            Ok(mut child) => child.wait().map_or("unknown".to_owned(), |s| s.to_string()),
            Err(_) => "unknown".to_owned(),
        };
        let status = if self.expired.load(Ordering::Relaxed) {
            "silent for too long".to_owned()
        } else if finished {
            status
        } else {
            "still running".to_owned()
        };
        Ended {
            status,
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Whether the process ends within a moment.
    fn wait_a_little(&self) -> bool {
        for _ in 0..50 {
            if let Ok(mut child) = self.child.lock()
                && matches!(child.try_wait(), Ok(Some(_)))
            {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

/// Kills the process; one that is gone already is fine.
fn stop(child: &Mutex<Child>) {
    if let Ok(mut child) = child.lock() {
        let _ = child.kill();
    }
}
