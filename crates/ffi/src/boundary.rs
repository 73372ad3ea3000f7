//! The boundary: pointers of a caller become references, and panics end.
//!
//! A caller promises that a pointer is null or points to what its type says, for the time
//! of the call, and that no other call uses a handle at the same time. Everything else is
//! looked at: null, alignment, sizes, text that is not UTF-8.

use crate::types::*;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// Structs of later versions may be longer, but not by so much.
const LONGEST: usize = 4096;

/// Bytes of a program at most.
const MOST_BYTES: usize = 1 << 30;

/// A struct that starts with its size, of which all bits are values.
///
/// # Safety
///
/// Zeros, and any other bytes, are a value of the type.
pub(crate) unsafe trait Versioned: Copy {
    fn size(&self) -> u32;
}

macro_rules! versioned {
    ($($type:ty),+) => {$(
        // SAFETY: integers and pointers only, and the pointers are not followed before
        // they have been looked at.
        unsafe impl Versioned for $type {
            #[inline(always)]
            fn size(&self) -> u32 {
                self.size
            }
        }
    )+};
}

versioned!(
    CheckOptions,
    Retired,
    Difference,
    Counts,
    EncodeOptions,
    Block
);

/// The struct of a caller; `None` if it is null, misaligned, shorter than this version's, or
/// says something in fields that this version does not have.
///
/// # Safety
///
/// The pointer is null, or what it points to has as many bytes as its first four say.
#[inline]
pub(crate) unsafe fn versioned<'a, T: Versioned>(pointer: *const T) -> Option<&'a T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: any struct of this interface has its size at its start.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if size == size_of::<T>() {
        // SAFETY: it has all bytes of this version's, which are a value.
        return Some(unsafe { &*pointer });
    }
    // SAFETY: as the caller promised.
    unsafe { longer(pointer, size) }
}

/// A struct of another version.
///
/// # Safety
///
/// As for [`versioned`], with the size read.
#[cold]
unsafe fn longer<'a, T: Versioned>(pointer: *const T, size: usize) -> Option<&'a T> {
    if !(size_of::<T>()..=LONGEST).contains(&size) {
        return None;
    }
    // SAFETY: it has this many bytes.
    let all = unsafe { slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let unknown = all.get(size_of::<T>()..)?;
    if unknown.iter().any(|byte| *byte != 0) {
        return None;
    }
    // SAFETY: its first bytes are this version's.
    Some(unsafe { &*pointer })
}

/// Puts a struct where the caller wants it; `false` if it has no room for it.
///
/// # Safety
///
/// As for [`versioned`], and the struct may be written.
pub(crate) unsafe fn put<T: Versioned>(pointer: *mut T, value: T) -> bool {
    // SAFETY: as the caller promised.
    if unsafe { versioned(pointer.cast_const()) }.is_none() {
        return false;
    }
    // SAFETY: it was just read, and the caller has it for writing.
    unsafe { pointer.write(value) };
    value.size() as usize == size_of::<T>()
}

/// A text that may be null; an error if it is not UTF-8.
///
/// # Safety
///
/// The pointer is null, or points to bytes that end with a zero.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promised.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| HARTRACE_ARGUMENT)
}

/// Bytes that may be null; an error if there are too many.
///
/// # Safety
///
/// The pointer is null, or points to so many bytes.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    size: usize,
) -> Result<Option<&'a [u8]>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    if size > MOST_BYTES {
        return Err(HARTRACE_ARGUMENT);
    }
    // SAFETY: as the caller promised; bytes are aligned anywhere.
    Ok(Some(unsafe { slice::from_raw_parts(pointer.cast(), size) }))
}

/// Values of a caller; `None` if they are not aligned, or too many. Null is none of them.
///
/// # Safety
///
/// The pointer is null, or points to so many values of the type.
#[inline]
pub(crate) unsafe fn values<'a, T: Copy>(pointer: *const T, count: usize) -> Option<&'a [T]> {
    if pointer.is_null() {
        return (count == 0).then_some(&[]);
    }
    if !pointer.is_aligned() || count > LONGEST {
        return None;
    }
    // SAFETY: as the caller promised.
    Some(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Room of a caller for bytes.
///
/// # Safety
///
/// The pointer is null, or points to so many bytes, which no one else uses.
pub(crate) unsafe fn room<'a>(pointer: *mut u8, size: usize) -> &'a mut [u8] {
    if pointer.is_null() || size > isize::MAX as usize {
        return &mut [];
    }
    // SAFETY: as the caller promised.
    unsafe { slice::from_raw_parts_mut(pointer, size) }
}

/// The handle of a caller.
///
/// # Safety
///
/// The pointer is null, or is a handle of this type that has not been freed and that no
/// other call uses.
#[inline]
pub(crate) unsafe fn handle<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: as the caller promised.
    unsafe { pointer.as_mut() }
}

/// Works on a handle. A panic becomes a status, and the handle is replaced.
#[inline]
pub(crate) fn guarded<T>(
    handle: Option<&mut T>,
    poisoned: fn() -> T,
    work: impl FnOnce(&mut T) -> Status,
) -> Status {
    let Some(handle) = handle else {
        return HARTRACE_ARGUMENT;
    };
    // After a panic nothing of the handle is looked at again.
    match catch_unwind(AssertUnwindSafe(|| work(handle))) {
        Ok(status) => status,
        Err(_) => {
            // What was there may be in any state: not even its end is asked for.
            std::mem::forget(std::mem::replace(handle, poisoned()));
            HARTRACE_INTERNAL
        }
    }
}

/// A new handle, whatever happens while it is made.
pub(crate) fn made<T>(poisoned: fn() -> T, make: impl FnOnce() -> T) -> *mut T {
    let made = catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|_| poisoned());
    Box::into_raw(Box::new(made))
}

/// Frees a handle.
///
/// # Safety
///
/// As for [`handle`]; the handle was made by [`made`], and is not used again.
pub(crate) unsafe fn freed<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it came from a box.
        let handle = unsafe { Box::from_raw(pointer) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(handle)));
    }
}
