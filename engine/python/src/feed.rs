//! A thread that makes items, and the iterator of Python that takes them.

use crate::error::failed;
use hartrace_tables::Error;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Items that are handed over at once: an iterator waits seldom, and the first come soon.
const BATCH: usize = 4096;

/// Batches that wait at most.
const WAITING: usize = 4;

/// How often something that waits looks for Ctrl-C.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Where a thread puts its items.
pub(crate) struct Out<T> {
    batch: Vec<T>,
    to: SyncSender<Result<Vec<T>, Error>>,
    unwanted: Arc<AtomicBool>,
}

impl<T> Out<T> {
    /// Gives an item.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> ControlFlow<()> {
        self.batch.push(item);
        match self.batch.len() >= BATCH {
            true => self.give(),
            false => ControlFlow::Continue(()),
        }
    }

    /// Whether anything more is wanted.
    #[inline]
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        match self.unwanted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn give(&mut self) -> ControlFlow<()> {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        match self.to.send(Ok(batch)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Items that a thread makes.
pub(crate) struct Feed<T> {
    /// Python may move an iterator to another thread.
    from: Mutex<Receiver<Result<Vec<T>, Error>>>,
    batch: std::vec::IntoIter<T>,
    unwanted: Arc<AtomicBool>,
    ended: bool,
}

impl<T: Send + 'static> Feed<T> {
    /// Starts a thread that makes items.
    pub(crate) fn start(
        make: impl FnOnce(&mut Out<T>) -> Result<(), Error> + Send + 'static,
    ) -> std::io::Result<Feed<T>> {
        let (to, from) = sync_channel(WAITING);
        let unwanted = Arc::new(AtomicBool::new(false));
        let mut out = Out {
            batch: Vec::with_capacity(BATCH),
            to,
            unwanted: Arc::clone(&unwanted),
        };
        let work = move || {
            let made = make(&mut out);
            // A reader that has gone wants neither the rest nor the error.
            let _ = out.give();
            if let Err(error) = made {
                let _ = out.to.send(Err(error));
            }
        };
        thread::Builder::new()
            .name("hartrace".to_owned())
            .spawn(work)?;
        Ok(Feed {
            from: Mutex::new(from),
            batch: Vec::new().into_iter(),
            unwanted,
            ended: false,
        })
    }

    /// The next item.
    #[inline]
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<T>> {
        loop {
            if let Some(item) = self.batch.next() {
                return Ok(Some(item));
            }
            if self.ended {
                return Ok(None);
            }
            self.refill(py)?;
        }
    }

    #[cold]
    fn refill(&mut self, py: Python<'_>) -> PyResult<()> {
        loop {
            match py.detach(|| self.receive()) {
                Ok(Ok(batch)) => {
                    self.batch = batch.into_iter();
                    return py.check_signals();
                }
                Ok(Err(error)) => {
                    self.ended = true;
                    return Err(failed(py, &error));
                }
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
    }

    fn receive(&mut self) -> Result<Result<Vec<T>, Error>, RecvTimeoutError> {
        let from = self.from.get_mut();
        from.unwrap_or_else(PoisonError::into_inner)
            .recv_timeout(PATIENCE)
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}
