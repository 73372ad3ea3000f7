//! The functions of the header.
//!
//! A caller promises what the head of `include/hartrace.h` says: a pointer is NULL or points
//! to what its type says, for the time of the call; a struct has as many bytes as it says,
//! an array as many values as are given with it, and a text ends with a zero; a handle has
//! not been freed, and no other call uses it.

#![allow(clippy::missing_safety_doc)] // it is the same for all of them: above

use crate::boundary::{bytes, freed, guarded, handle, made, put, room, text, values, versioned};
use crate::check::{Check, CheckSetup};
use crate::encode::{Encode, EncodeSetup};
use crate::types::*;
use std::ffi::c_char;
use std::ptr;

/// The version of this interface. It grows when something is added; a library with a larger
/// number does all that this header says.
#[unsafe(no_mangle)]
pub extern "C" fn hartrace_api_version() -> u32 {
    1
}

/// The version of hartrace, as text.
#[unsafe(no_mangle)]
pub extern "C" fn hartrace_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Makes a checker of one hart.
///
/// `check` gets a handle in any case, to be freed with hartrace_check_free(): if the result
/// is not HARTRACE_OK, hartrace_check_text() says why, and every call has the same result.
/// Only if one of the pointers is NULL, or a struct has a wrong size, there is no handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_new(
    options: *const CheckOptions,
    check: *mut *mut Check,
) -> Status {
    if check.is_null() {
        return HARTRACE_ARGUMENT;
    }
    // SAFETY: there is room for a pointer.
    unsafe { check.write(ptr::null_mut()) };
    // SAFETY: as the caller promised.
    let Some(options) = (unsafe { versioned(options) }) else {
        return HARTRACE_ARGUMENT;
    };
    let setup = || -> Result<CheckSetup<'_>, Status> {
        // SAFETY: as the caller promised.
        unsafe {
            Ok(CheckSetup {
                hart: options.hart,
                reports: options.reports,
                config: text(options.config)?,
                config_file: text(options.config_file)?,
                elf_file: text(options.elf_file)?,
                elf: bytes(options.elf, options.elf_size)?,
            })
        }
    };
    let setup = match setup() {
        Ok(setup) => setup,
        Err(status) => return status,
    };
    let new = made(Check::poisoned, || Check::new(&setup));
    // SAFETY: there is room for a pointer, and the handle was just made.
    unsafe {
        check.write(new);
        handle(new).map_or(HARTRACE_INTERNAL, |check| check.status())
    }
}

/// Frees a checker. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_free(check: *mut Check) {
    // SAFETY: as the caller promised.
    unsafe { freed(check) };
}

/// Checks an instruction that the core has retired, or that has trapped.
///
/// HARTRACE_OK: core and hart agree. HARTRACE_DIFFERENCE: they differ, now or at an earlier
/// call; nothing more is compared. Other results: the call was wrong and nothing was done.
///
/// What an instruction did is compared at once, if `pc_wdata` has a value. Otherwise, and
/// for instructions that trap or return from a trap, it is compared with the next call.
///
///     hartrace_retired r = {0};
///     r.size = sizeof r;
///     r.valid = HARTRACE_RVFI;
///     r.order = 0, r.pc_rdata = 0x80, r.pc_wdata = 0x84;
///     r.insn = 0x00100513, r.mode = 3, r.ixl = 1;     // li a0, 1
///     r.rd_addr = 10, r.rd_wdata = 1;
///     if (hartrace_check_retire(check, &r) == HARTRACE_DIFFERENCE)
///         puts(hartrace_check_text(check));
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_retire(
    check: *mut Check,
    retired: *const Retired,
) -> Status {
    // SAFETY: as the caller promised.
    let (check, retired) = unsafe { (handle(check), versioned(retired)) };
    guarded(check, Check::poisoned, |check| match retired {
        // SAFETY: as the caller promised.
        Some(retired) => unsafe { retire(check, retired) },
        None => check.handle.say(HARTRACE_ARGUMENT, WRONG_STRUCT),
    })
}

/// Checks one retirement.
///
/// # Safety
///
/// Its pointer to writes is null, or points to as many as it says.
#[inline]
unsafe fn retire(check: &mut Check, retired: &Retired) -> Status {
    // SAFETY: as the caller promised.
    match unsafe { values(retired.writes, retired.write_count) } {
        Some(writes) => check.retire(retired, writes),
        None => check.handle.say(HARTRACE_ARGUMENT, WRONG_STRUCT),
    }
}

/// Checks instructions that the core has retired one after the other, at most 4096: the same
/// as a call of hartrace_check_retire for each, up to the first that does not give
/// HARTRACE_OK, whose result is given back. It takes less than half the time, for
/// simulations that can wait until a difference is found.
///
/// `agreed` may be NULL; otherwise the number of calls that would have given HARTRACE_OK is
/// put there: what differs is `retired[agreed]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_retire_all(
    check: *mut Check,
    retired: *const Retired,
    count: usize,
    agreed: *mut usize,
) -> Status {
    // SAFETY: as the caller promised.
    let (check, all) = unsafe { (handle(check), values(retired, count)) };
    let mut passed = 0;
    let status = guarded(check, Check::poisoned, |check| {
        let known = |retired: &Retired| retired.size as usize == size_of::<Retired>();
        let Some(all) = all.filter(|all| all.iter().all(known)) else {
            return check.handle.say(HARTRACE_ARGUMENT, WRONG_STRUCT);
        };
        loop {
            passed += check.pass(all.get(passed..).unwrap_or_default());
            let Some(next) = all.get(passed) else {
                return check.status();
            };
            // SAFETY: as the caller promised.
            let status = unsafe { retire(check, next) };
            if status != HARTRACE_OK {
                return status;
            }
            passed += 1;
        }
    });
    if !agreed.is_null() && agreed.is_aligned() {
        // SAFETY: as the caller promised.
        unsafe { agreed.write(passed) };
    }
    status
}

const WRONG_STRUCT: &str = "a struct that is NULL or misaligned, has another size than the \
                            library's, or values that this version does not know";

/// The core was reset: the hart starts again as at first. Memory stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_reset(check: *mut Check) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(check) }, Check::poisoned, Check::reset)
}

/// Nothing follows: what waits for a further retirement is compared without it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_finish(check: *mut Check) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(check) }, Check::poisoned, Check::finish)
}

/// Goes on after a difference: the hart takes the values of the core. The text is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_continue(check: *mut Check) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(check) }, Check::poisoned, Check::go_on)
}

/// The report of the difference, as `hartrace verify` prints it, or what was wrong with a
/// call; an empty text if there is nothing. It is valid until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_text(check: *const Check) -> *const c_char {
    // SAFETY: as the caller promised; it is only read.
    match unsafe { check.as_ref() } {
        Some(check) => check.handle.text().as_ptr(),
        None => c"there is no handle".as_ptr(),
    }
}

/// One of the values that differ, `index` from 0 on; HARTRACE_ARGUMENT if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_difference(
    check: *mut Check,
    index: usize,
    difference: *mut Difference,
) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(check) }, Check::poisoned, |check| {
        match check.difference(index) {
            // SAFETY: as the caller promised.
            Some(found) if unsafe { put(difference, found) } => HARTRACE_OK,
            _ => HARTRACE_ARGUMENT,
        }
    })
}

/// What was compared so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_check_counts(check: *mut Check, counts: *mut Counts) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(check) }, Check::poisoned, |check| {
        // SAFETY: as the caller promised.
        match unsafe { put(counts, check.counts()) } {
            true => HARTRACE_OK,
            false => HARTRACE_ARGUMENT,
        }
    })
}

/// Makes an encoder. As for hartrace_check_new(), there is a handle in any case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_new(
    options: *const EncodeOptions,
    encode: *mut *mut Encode,
) -> Status {
    if encode.is_null() {
        return HARTRACE_ARGUMENT;
    }
    // SAFETY: there is room for a pointer.
    unsafe { encode.write(ptr::null_mut()) };
    // SAFETY: as the caller promised.
    let Some(options) = (unsafe { versioned(options) }) else {
        return HARTRACE_ARGUMENT;
    };
    // SAFETY: as the caller promised.
    let texts = unsafe { (text(options.config), text(options.config_file)) };
    let (Ok(config), Ok(config_file)) = texts else {
        return HARTRACE_ARGUMENT;
    };
    let setup = EncodeSetup {
        format: options.format,
        config,
        config_file,
    };
    let new = made(Encode::poisoned, || Encode::new(&setup));
    // SAFETY: there is room for a pointer, and the handle was just made.
    unsafe {
        encode.write(new);
        handle(new).map_or(HARTRACE_INTERNAL, |encode| encode.handle.status())
    }
}

/// Frees an encoder. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_free(encode: *mut Encode) {
    // SAFETY: as the caller promised.
    unsafe { freed(encode) };
}

/// Encodes a block. The bytes wait for hartrace_encode_take().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_block(encode: *mut Encode, block: *const Block) -> Status {
    // SAFETY: as the caller promised.
    let (encode, block) = unsafe { (handle(encode), versioned(block)) };
    guarded(encode, Encode::poisoned, |encode| match block {
        Some(block) => encode.block(block),
        None => encode.handle.say(HARTRACE_ARGUMENT, WRONG_STRUCT),
    })
}

/// No block follows: the trace is ended, as by an encoder that is switched off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_finish(encode: *mut Encode) -> Status {
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(encode) }, Encode::poisoned, Encode::finish)
}

/// Takes bytes of the trace, as many as wait and there is room for, and returns their
/// number: 0 if none wait.
///
///     uint8_t buffer[256];
///     size_t count;
///     while ((count = hartrace_encode_take(encode, buffer, sizeof buffer)) > 0)
///         fwrite(buffer, 1, count, file);
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_take(
    encode: *mut Encode,
    buffer: *mut u8,
    size: usize,
) -> usize {
    let mut taken = 0;
    // SAFETY: as the caller promised.
    let (encode, room) = unsafe { (handle(encode), room(buffer, size)) };
    guarded(encode, Encode::poisoned, |encode| {
        taken = encode.take(room);
        HARTRACE_OK
    });
    taken
}

/// How many bytes wait to be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_pending(encode: *mut Encode) -> usize {
    let mut pending = 0;
    // SAFETY: as the caller promised.
    guarded(unsafe { handle(encode) }, Encode::poisoned, |encode| {
        pending = encode.pending();
        HARTRACE_OK
    });
    pending
}

/// What was wrong with a call; an empty text if nothing was. It is valid until the next
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hartrace_encode_text(encode: *const Encode) -> *const c_char {
    // SAFETY: as the caller promised; it is only read.
    match unsafe { encode.as_ref() } {
        Some(encode) => encode.handle.text().as_ptr(),
        None => c"there is no handle".as_ptr(),
    }
}
