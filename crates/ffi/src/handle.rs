//! What the handles of the library have in common.

use crate::types::{HARTRACE_CONFIG, HARTRACE_INTERNAL, HARTRACE_OK, Status};
use std::ffi::{CStr, CString};

/// A thing that could be made, or why it could not, and the last text about it.
pub struct Handle<T> {
    made: Result<Box<T>, Status>,
    text: CString,
}

const FAULT: &str = "a fault in libhartrace: the handle can only be freed; please report the \
                     message on stderr";

impl<T> Handle<T> {
    /// A handle that can be used, or one that only knows why it cannot.
    pub(crate) fn new(made: Result<T, String>) -> Handle<T> {
        match made {
            Ok(made) => Handle {
                made: Ok(Box::new(made)),
                text: CString::default(),
            },
            Err(why) => Handle {
                made: Err(HARTRACE_CONFIG),
                text: c_text(&why),
            },
        }
    }

    /// A handle that is used no more, because of a fault in the library.
    pub(crate) fn poisoned() -> Handle<T> {
        Handle {
            made: Err(HARTRACE_INTERNAL),
            text: c_text(FAULT),
        }
    }

    /// Whether it can be used.
    #[must_use]
    pub fn status(&self) -> Status {
        self.made.as_ref().err().copied().unwrap_or(HARTRACE_OK)
    }

    /// What was made.
    ///
    /// # Errors
    ///
    /// The status of a handle that cannot be used.
    #[inline]
    pub(crate) fn get(&self) -> Result<&T, Status> {
        match &self.made {
            Ok(made) => Ok(made),
            Err(status) => Err(*status),
        }
    }

    /// The same, to be used.
    ///
    /// # Errors
    ///
    /// The status of a handle that cannot be used.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Result<&mut T, Status> {
        match &mut self.made {
            Ok(made) => Ok(made),
            Err(status) => Err(*status),
        }
    }

    /// The last text: of a difference or an error.
    #[must_use]
    pub fn text(&self) -> &CStr {
        &self.text
    }

    /// A text that takes the place of the last one, beside the status it belongs to.
    #[cold]
    pub(crate) fn say(&mut self, status: Status, text: &str) -> Status {
        self.text = c_text(text);
        status
    }
}

/// Text without the zeros that C would end at.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
