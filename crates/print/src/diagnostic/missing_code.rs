//! Where code is missing: whose it probably is.

use hartrace_flow::{Mode, Ownership};

/// Where Linux on RV64 has its kernel, and below it its modules.
const LINUX_MODULES: std::ops::Range<u64> = 0xffff_ffff_0000_0000..0xffff_ffff_8000_0000;

/// The part of a user's address space from which Linux gives room to libraries and the
/// vdso, with Sv39, Sv48 and Sv57 alike: the top quarter of what Sv39 has.
const LIBRARIES: std::ops::Range<u64> = 0x30_0000_0000..0x40_0000_0000;

/// Whose code an address is, for someone who has to find the file.
pub(super) fn whose(address: u64, owner: &Ownership) -> String {
    let context = owner.context.map(|c| format!("context {:#x}", c.0));
    let mode = owner.mode.map(|mode| format!("{}-mode", mode.name()));
    let place: Vec<String> = context.into_iter().chain(mode).collect();
    let place = match place.is_empty() {
        true => String::new(),
        false => format!("in {}: ", place.join(", ")),
    };
    let upper = address >> 63 != 0;
    let file = match owner.mode {
        Some(Mode::M | Mode::D) => {
            "firmware or another machine-mode program; give it with -e FILE or --raw FILE@BASE"
        }
        Some(Mode::U | Mode::VU) if upper => {
            "not an address of a user program; the trace may be damaged"
        }
        Some(Mode::U | Mode::VU) if LIBRARIES.contains(&address) => {
            "a shared library, the dynamic loader or the vdso of a process; give its ELF file with \
             -e FILE@BASE"
        }
        Some(Mode::U | Mode::VU) => "a user program; give its ELF file with -e FILE[@BASE]",
        _ if LINUX_MODULES.contains(&address) => {
            "where Linux loads modules; give the module with -e FILE@BASE"
        }
        _ if upper => "the kernel; give its ELF file with -e, such as vmlinux",
        Some(Mode::S | Mode::VS) => {
            "a kernel before it has turned on paging, or an identity map; give its ELF file with \
             -e FILE@BASE"
        }
        None => return String::new(),
    };
    format!("{place}probably {file}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hartrace_flow::Context;

    fn text(address: u64, mode: Option<Mode>, context: Option<u64>) -> String {
        let context = context.map(Context);
        whose(address, &Ownership { mode, context })
    }

    #[test]
    fn the_address_the_mode_and_the_context_say_whose_code_it_is() {
        let cases = [
            (
                0x8000_0000,
                Some(Mode::M),
                Some(5),
                "in context 0x5, M-mode: probably firmware",
            ),
            (
                0x1_0000,
                Some(Mode::U),
                Some(5),
                "in context 0x5, U-mode: probably a user program",
            ),
            (
                0x3f_b200_0000,
                Some(Mode::U),
                Some(6),
                "in context 0x6, U-mode: probably a shared library",
            ),
            (
                0xffff_ffff_8000_1000,
                Some(Mode::S),
                None,
                "in S-mode: probably the kernel",
            ),
            (0xffff_ffff_8000_1000, None, None, "probably the kernel"),
            (
                0xffff_ffff_0123_4568,
                Some(Mode::S),
                Some(0),
                "in context 0x0, S-mode: probably where Linux loads modules",
            ),
            (
                0x8020_0000,
                Some(Mode::S),
                Some(0),
                "in context 0x0, S-mode: probably a kernel before",
            ),
            (
                u64::MAX - 1,
                Some(Mode::U),
                None,
                "in U-mode: probably not an address of a user",
            ),
            (0x8000_0000, None, None, ""),
        ];
        for (address, mode, context, expected) in cases {
            let text = text(address, mode, context);
            assert!(text.starts_with(expected), "{text}");
            assert_eq!(text.is_empty(), expected.is_empty());
        }
    }
}
