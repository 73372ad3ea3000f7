//! The functions of the header, called as C would.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use hartrace::calls::*;
use hartrace::*;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr;

fn sieve() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/sieve/sieve-rv64gc.elf")
}

fn options() -> CheckOptions {
    CheckOptions {
        size: size_of::<CheckOptions>() as u32,
        hart: 0,
        reports: 0,
        reserved: 0,
        config: ptr::null(),
        config_file: ptr::null(),
        elf_file: ptr::null(),
        elf: ptr::null(),
        elf_size: 0,
    }
}

fn nothing() -> Retired {
    Retired {
        size: size_of::<Retired>() as u32,
        valid: HARTRACE_RVFI,
        order: 0,
        pc_rdata: 0,
        pc_wdata: 0,
        insn: 0,
        trap: 0,
        halt: 0,
        intr: 0,
        mode: 3,
        ixl: 2,
        rd_addr: 0,
        mem_rmask: 0,
        mem_wmask: 0,
        rd_wdata: 0,
        mem_addr: 0,
        mem_rdata: 0,
        mem_wdata: 0,
        cause: 0,
        tval: 0,
        writes: ptr::null(),
        write_count: 0,
    }
}

/// The first instructions of sieve: auipc sp,0x10; mv sp,sp; auipc t0,0x0
fn sieve_retires() -> [Retired; 3] {
    let mut retired = [nothing(); 3];
    let rows = [
        (0x8000_0000, 0x0001_0117, 2, 0x8001_0000),
        (0x8000_0004, 0x0001_0113, 2, 0x8001_0000),
        (0x8000_0008, 0x0000_0297, 5, 0x8000_0008),
    ];
    for (order, (retired, (pc, insn, rd, value))) in retired.iter_mut().zip(rows).enumerate() {
        retired.order = 7 + order as u64;
        (retired.pc_rdata, retired.pc_wdata, retired.insn) = (pc, pc + 4, insn);
        (retired.rd_addr, retired.rd_wdata) = (rd, value);
    }
    retired
}

/// A checker that is freed in the end.
struct Handle(*mut Check, Status);

impl Handle {
    fn new(options: &CheckOptions) -> Handle {
        let mut check = ptr::null_mut();
        let status = unsafe { hartrace_check_new(options, &mut check) };
        Handle(check, status)
    }

    fn of_sieve() -> Handle {
        let file = CString::new(sieve().to_str().unwrap()).unwrap();
        let options = CheckOptions {
            elf_file: file.as_ptr(),
            ..options()
        };
        let handle = Handle::new(&options);
        assert_eq!(handle.1, HARTRACE_OK, "{}", handle.text());
        handle
    }

    fn retire(&self, retired: &Retired) -> Status {
        unsafe { hartrace_check_retire(self.0, retired) }
    }

    /// The result, and how many agreed.
    fn retire_all(&self, retired: &[Retired]) -> (Status, usize) {
        let (first, count, mut agreed) = (retired.as_ptr(), retired.len(), 77);
        let status = unsafe { hartrace_check_retire_all(self.0, first, count, &mut agreed) };
        (status, agreed)
    }

    fn text(&self) -> String {
        let text = unsafe { CStr::from_ptr(hartrace_check_text(self.0)) };
        text.to_str().unwrap().to_owned()
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts {
            size: size_of::<Counts>() as u32,
            ..Counts::default()
        };
        let status = unsafe { hartrace_check_counts(self.0, &mut counts) };
        assert_eq!(status, HARTRACE_OK);
        counts
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        unsafe { hartrace_check_free(self.0) };
    }
}

#[test]
fn a_core_agrees_and_then_differs() {
    let handle = Handle::of_sieve();
    let [first, second, mut third] = sieve_retires();
    assert_eq!(handle.retire(&first), HARTRACE_OK);
    assert_eq!(handle.retire(&second), HARTRACE_OK);
    assert_eq!((handle.counts().retired, handle.text().as_str()), (2, ""));
    third.rd_wdata ^= 0x10;
    assert_eq!(handle.retire(&third), HARTRACE_DIFFERENCE);
    let text = handle.text();
    assert!(text.starts_with("mismatch 1: instruction 2"), "{text}");
    let mut difference = Difference {
        size: size_of::<Difference>() as u32,
        ..Difference::default()
    };
    let status = unsafe { hartrace_check_difference(handle.0, 0, &mut difference) };
    assert_eq!(status, HARTRACE_OK);
    let expected = Difference {
        size: size_of::<Difference>() as u32,
        field: HARTRACE_FIELD_X,
        number: 5,
        has_expected: 1,
        has_actual: 1,
        has_insn: 1,
        reserved: 0,
        expected: 0x8000_0008,
        actual: 0x8000_0018,
        index: 2,
        pc: 0x8000_0008,
        insn: 0x297,
        count: 1,
    };
    assert_eq!(difference, expected);
    let status = unsafe { hartrace_check_difference(handle.0, 1, &mut difference) };
    assert_eq!(status, HARTRACE_ARGUMENT);
    // It stays so until the caller goes on.
    assert_eq!(handle.retire(&nothing()), HARTRACE_ORDER);
    let mut next = nothing();
    next.order = 10;
    assert_eq!(handle.retire(&next), HARTRACE_DIFFERENCE);
    assert_eq!(handle.text(), text);
    assert_eq!(unsafe { hartrace_check_continue(handle.0) }, HARTRACE_OK);
    assert_eq!(handle.text(), "");
    assert_eq!(unsafe { hartrace_check_finish(handle.0) }, HARTRACE_OK);
}

#[test]
fn a_row_of_retirements_is_as_many_calls() {
    let row = sieve_retires();
    let single = Handle::of_sieve();
    let handle = Handle::of_sieve();
    row.iter()
        .for_each(|retired| assert_eq!(single.retire(retired), HARTRACE_OK));
    assert_eq!(handle.retire_all(&[]), (HARTRACE_OK, 0));
    assert_eq!(handle.retire_all(&row), (HARTRACE_OK, 3));
    assert_eq!(handle.counts(), single.counts());
    // It goes on where the row ended, by order and by address.
    assert_eq!(handle.retire_all(&row), (HARTRACE_ORDER, 0));
    for wrong in 0..3 {
        let mut row = row;
        row[wrong].rd_wdata += 4;
        let handle = Handle::of_sieve();
        assert_eq!(handle.retire_all(&row), (HARTRACE_DIFFERENCE, wrong));
        let rest = &row[wrong + 1..];
        assert_eq!(handle.retire_all(rest), (HARTRACE_DIFFERENCE, 0));
        let mut row = sieve_retires();
        row[wrong].order += 1;
        let handle = Handle::of_sieve();
        let expected = match wrong {
            // Any number may be the first, but the second does not follow it.
            0 => 1,
            _ => wrong,
        };
        assert_eq!(handle.retire_all(&row), (HARTRACE_ORDER, expected));
    }
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let handle = Handle::of_sieve();
    let mut row = sieve_retires();
    let status = unsafe { hartrace_check_retire_all(handle.0, ptr::null(), 1, ptr::null_mut()) };
    assert_eq!(status, HARTRACE_ARGUMENT);
    assert_eq!(
        handle.retire_all(&vec![row[0]; 4097]),
        (HARTRACE_ARGUMENT, 0)
    );
    row[2].size -= 8;
    assert_eq!(handle.retire_all(&row), (HARTRACE_ARGUMENT, 0));
    assert_eq!(handle.counts().retired, 0);
    let none =
        unsafe { hartrace_check_retire_all(ptr::null_mut(), row.as_ptr(), 2, ptr::null_mut()) };
    assert_eq!(none, HARTRACE_ARGUMENT);
    let two = unsafe { hartrace_check_retire_all(handle.0, row.as_ptr(), 2, ptr::null_mut()) };
    assert_eq!((two, handle.counts().retired), (HARTRACE_OK, 2));
}

#[test]
fn a_program_can_be_in_memory_and_settings_are_text() {
    let bytes = std::fs::read(sieve()).unwrap();
    let config = c"[program]\nisa = \"rv64imac\"\n[hart]\nentry = 0x80000000\n";
    let options = CheckOptions {
        elf: bytes.as_ptr().cast(),
        elf_size: bytes.len(),
        config: config.as_ptr(),
        ..options()
    };
    let handle = Handle::new(&options);
    assert_eq!(handle.1, HARTRACE_OK, "{}", handle.text());
    drop(bytes);
    for retired in sieve_retires() {
        assert_eq!(handle.retire(&retired), HARTRACE_OK);
    }
    assert_eq!(unsafe { hartrace_check_reset(handle.0) }, HARTRACE_OK);
    for retired in sieve_retires() {
        assert_eq!(handle.retire(&retired), HARTRACE_OK, "{}", handle.text());
    }
}

#[test]
fn a_handle_that_could_not_be_made_says_why() {
    let cases = [
        (c"[program", "error[HT"),
        (c"[hart]\nmemroy = 3", "did you mean `memory`"),
        (c"", "no program is given"),
        (c"[program]\nelf = \"no/such/file\"", "no/such/file"),
    ];
    for (config, expected) in cases {
        let options = CheckOptions {
            config: config.as_ptr(),
            ..options()
        };
        let handle = Handle::new(&options);
        assert_eq!(handle.1, HARTRACE_CONFIG);
        assert!(handle.text().contains(expected), "{}", handle.text());
        // Nothing else can be done with it.
        assert_eq!(handle.retire(&nothing()), HARTRACE_CONFIG);
        assert_eq!(unsafe { hartrace_check_finish(handle.0) }, HARTRACE_CONFIG);
        assert_eq!(handle.counts().retired, 0);
    }
}

#[test]
fn pointers_and_sizes_are_looked_at() {
    let null = ptr::null_mut();
    unsafe {
        assert_eq!(
            hartrace_check_new(ptr::null(), ptr::null_mut()),
            HARTRACE_ARGUMENT
        );
        let mut check = null;
        assert_eq!(
            hartrace_check_new(ptr::null(), &mut check),
            HARTRACE_ARGUMENT
        );
        assert!(check.is_null());
        assert_eq!(hartrace_check_retire(null, &nothing()), HARTRACE_ARGUMENT);
        assert_eq!(hartrace_check_finish(null), HARTRACE_ARGUMENT);
        assert_eq!(hartrace_check_reset(null), HARTRACE_ARGUMENT);
        assert_eq!(hartrace_check_continue(null), HARTRACE_ARGUMENT);
        assert_eq!(
            hartrace_check_counts(null, ptr::null_mut()),
            HARTRACE_ARGUMENT
        );
        let text = CStr::from_ptr(hartrace_check_text(null));
        assert_eq!(text, c"there is no handle");
        hartrace_check_free(null);
    }
    let handle = Handle::of_sieve();
    let status = unsafe { hartrace_check_retire(handle.0, ptr::null()) };
    assert_eq!(status, HARTRACE_ARGUMENT);
    for size in [0, 1, size_of::<Retired>() as u32 - 1, u32::MAX] {
        let retired = Retired { size, ..nothing() };
        assert_eq!(handle.retire(&retired), HARTRACE_ARGUMENT);
        assert!(handle.text().contains("another size"), "{}", handle.text());
    }
    // A later version's struct, which has nothing in its new fields, or something.
    #[repr(C)]
    struct Later(Retired, u64);
    let mut later = Later(sieve_retires()[0], 1);
    later.0.size = size_of::<Later>() as u32;
    let pointer = (&raw const later).cast();
    assert_eq!(
        unsafe { hartrace_check_retire(handle.0, pointer) },
        HARTRACE_ARGUMENT
    );
    later.1 = 0;
    let pointer = (&raw const later).cast();
    assert_eq!(
        unsafe { hartrace_check_retire(handle.0, pointer) },
        HARTRACE_OK
    );
    let mut wrong = sieve_retires()[1];
    wrong.write_count = 1;
    assert_eq!(handle.retire(&wrong), HARTRACE_ARGUMENT);
    let status = unsafe { hartrace_check_counts(handle.0, ptr::null_mut()) };
    assert_eq!(status, HARTRACE_ARGUMENT);
}

#[test]
fn further_writes_are_compared() {
    for (kind, number, expected) in [
        (HARTRACE_X, 32, HARTRACE_ARGUMENT),
        (HARTRACE_F, 32, HARTRACE_ARGUMENT),
        (HARTRACE_CSR, 0x1000, HARTRACE_ARGUMENT),
        (3, 0, HARTRACE_ARGUMENT),
        (HARTRACE_X, 7, HARTRACE_DIFFERENCE),
        (HARTRACE_CSR, 0x340, HARTRACE_DIFFERENCE),
        (HARTRACE_X, 2, HARTRACE_OK),
    ] {
        let handle = Handle::of_sieve();
        let write = Write {
            kind,
            number,
            value: 0x8001_0000,
        };
        let mut retired = sieve_retires()[0];
        (retired.writes, retired.write_count) = (&write, 1);
        if (kind, number) == (HARTRACE_X, 2) {
            retired.rd_addr = 0;
        }
        assert_eq!(handle.retire(&retired), expected, "{kind} {number:#x}");
    }
}

#[test]
fn blocks_become_bytes() {
    let block = Block {
        size: size_of::<Block>() as u32,
        iretire: 2,
        ilastsize: 1,
        iaddr: 0x8000_0000,
        r#priv: 3,
        ..Block::default()
    };
    for (format, config) in [
        (HARTRACE_FORMAT_ETRACE, None),
        (HARTRACE_FORMAT_NTRACE, None),
        (
            HARTRACE_FORMAT_CONFIG,
            Some(c"[etrace]\nversion = \"2.0\"\n"),
        ),
    ] {
        let options = EncodeOptions {
            size: size_of::<EncodeOptions>() as u32,
            format,
            config: config.map_or(ptr::null(), CStr::as_ptr),
            config_file: ptr::null(),
        };
        let mut encode = ptr::null_mut();
        unsafe {
            assert_eq!(hartrace_encode_new(&options, &mut encode), HARTRACE_OK);
            for taken in 0..4u64 {
                let block = Block {
                    iaddr: 0x8000_0000 + 4 * taken,
                    ..block
                };
                assert_eq!(hartrace_encode_block(encode, &block), HARTRACE_OK);
            }
            let wrong = Block { itype: 99, ..block };
            assert_eq!(hartrace_encode_block(encode, &wrong), HARTRACE_ARGUMENT);
            let text = CStr::from_ptr(hartrace_encode_text(encode));
            assert!(text.to_str().unwrap().contains("itype"));
            assert_eq!(hartrace_encode_finish(encode), HARTRACE_OK);
            let pending = hartrace_encode_pending(encode);
            assert!(pending > 4, "{pending}");
            // In pieces of any size.
            let (mut all, mut piece) = (Vec::new(), [0; 3]);
            loop {
                let count = hartrace_encode_take(encode, piece.as_mut_ptr(), piece.len());
                all.extend_from_slice(&piece[..count]);
                if count == 0 {
                    break;
                }
            }
            assert_eq!((all.len(), hartrace_encode_pending(encode)), (pending, 0));
            assert_eq!(hartrace_encode_take(encode, ptr::null_mut(), 10), 0);
            hartrace_encode_free(encode);
        }
    }
}

#[test]
fn an_encoder_needs_a_format() {
    for (format, expected) in [
        (HARTRACE_FORMAT_CONFIG, "which trace"),
        (9, "there is no format 9"),
    ] {
        let options = EncodeOptions {
            size: size_of::<EncodeOptions>() as u32,
            format,
            config: ptr::null(),
            config_file: ptr::null(),
        };
        let mut encode = ptr::null_mut();
        unsafe {
            assert_eq!(hartrace_encode_new(&options, &mut encode), HARTRACE_CONFIG);
            let text = CStr::from_ptr(hartrace_encode_text(encode))
                .to_str()
                .unwrap();
            assert!(text.contains(expected), "{text}");
            assert_eq!(
                hartrace_encode_block(encode, &Block::default()),
                HARTRACE_ARGUMENT
            );
            hartrace_encode_free(encode);
        }
    }
}

#[test]
fn versions_are_given() {
    assert_eq!(hartrace_api_version(), 1);
    let version = unsafe { CStr::from_ptr(hartrace_version()) };
    assert_eq!(version.to_str().unwrap(), env!("CARGO_PKG_VERSION"));
}
