//! Traces of instructions that do several things at once: Zcmp, Zcmt, Zacas, `cbo.zero`.

use crate::data::config;
use crate::tiny::{BASE, SPIN, addi, auipc, elf_with};
use crate::{Folder, repository, run, succeeds, text};
use hartrace_testkit::asm::{Stack, cm_stack, cm_table, csrw, r_type};

const ISA: &str = "rv64imac_zicsr_zcmp_zcmt_zacas_zicboz";

/// Two compressed instructions.
const fn two(first: u32, second: u32) -> u32 {
    first | second << 16
}

const C_NOP: u32 = 1;

/// The word with which the jump table begins.
const TABLE: usize = 16;

/// A call and a jump through the table, a function that pushes and pops all it can,
/// compare-and-swaps of which one fails, and a cache block of zeros.
fn program(folder: &Folder) -> String {
    // amocas.q a0, a2, (sp).
    let swap = r_type(0x2f, 4, 0x05 << 2, 10, 2, 12);
    let mut words = vec![
        auipc(2),
        addi(2, 2, 0x7f0),
        auipc(5),
        addi(5, 5, 4 * (TABLE as i32 - 2)),
        csrw(0x017, 5),
        two(cm_table(32), C_NOP),
        two(cm_table(0), C_NOP),
        SPIN,
        // The function: cm.mvsa01 s0, s1 and cm.mva01s s1, s0 between.
        two(cm_stack(Stack::Push, 15, 3), 0xac22 | 1 << 2),
        two(0xac62 | 1 << 7, cm_stack(Stack::PopRetZ, 15, 3)),
        // The end.
        swap,
        swap,
        0x0041_200f, // cbo.zero (sp)
        two(cm_stack(Stack::Push, 4, 0), cm_stack(Stack::Pop, 4, 0)),
        SPIN,
        SPIN,
    ];
    assert_eq!(words.len(), TABLE);
    words.resize(TABLE + 2 * 33, 0);
    words[TABLE] = BASE as u32 + 4 * 10;
    words[TABLE + 64] = BASE as u32 + 4 * 8;
    let symbols = [("_start", 0), ("function", 8), ("__jvt_base$", TABLE)];
    folder.file("small.elf", elf_with(&words, &symbols))
}

fn settings(name: &str) -> String {
    let path = repository().join("configs/ntrace").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_trace_has_them_all() {
    let folder = Folder::new();
    let program = program(&folder);
    let cases = [
        ("ntrace", settings("htm.toml")),
        ("ntrace", settings("htm-full.toml")),
        ("ntrace", settings("btm.toml")),
        ("etrace", config("default.toml")),
        ("etrace", config("compact.toml")),
        ("etrace", config("data.toml")),
        ("etrace", config("data-split.toml")),
        ("etrace", config("data-stores.toml")),
        ("tandem", config("default.toml")),
    ];
    for (format, settings) in cases {
        let trace = folder.name("trace");
        let to = format!("{format}={trace}");
        let args = [
            "run", &program, "--isa", ISA, "-c", &settings, "--trace", &to,
        ];
        let output = run(&[&args[..], &["--check", "--max-insns", "18"]].concat());
        let said = text(&output.stderr);
        assert!(
            said.contains("decoded and equal: 18 instructions"),
            "{settings}: {said}"
        );
        // From the file alone, too.
        let listing = succeeds(&["decode", "-q", &trace]);
        for insn in [
            "cm.jalt",
            "cm.jt",
            "cm.push",
            "cm.popretz",
            "amocas.q",
            "cbo.zero",
        ] {
            assert!(listing.contains(insn), "{settings}: {listing}");
        }
        if format == "tandem" {
            succeeds(&["verify", "-q", &trace]);
        }
    }
}
