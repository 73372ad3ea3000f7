//! The names of traps.

/// What an exception is called (privileged architecture, `mcause`); `None` for
/// codes that are reserved or custom.
///
/// ```
/// assert_eq!(hartrace_analyze::exception_name(2), Some("illegal instruction"));
/// assert_eq!(hartrace_analyze::exception_name(10), None);
/// ```
#[must_use]
pub const fn exception_name(code: u32) -> Option<&'static str> {
    Some(match code {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8 => "environment call from U-mode",
        9 => "environment call from S-mode",
        11 => "environment call from M-mode",
        12 => "instruction page fault",
        13 => "load page fault",
        15 => "store page fault",
        18 => "software check",
        19 => "hardware error",
        _ => return None,
    })
}
