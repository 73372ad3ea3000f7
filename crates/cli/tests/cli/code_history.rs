//! Code histories: programs that change their own code are traced and decoded.

use crate::tiny::{BASE, elf_at, elf_with};
use crate::{Folder, run, text};
use hartrace_testkit::assemble;
use std::fs;

/// Six times an instruction is overwritten, by a jump and by what it was.
fn changing() -> Vec<u8> {
    let program = assemble(
        BASE,
        "       auipc s0, 0
                li s1, 6
                lw s2, 64(s0)
                lw s3, 68(s0)
        round:  sw s2, 52(s0)
                fence.i
                jal ra, patched
                sw s3, 52(s0)
                fence.i
                jal ra, patched
                addi s1, s1, -1
                bnez s1, round
        end:    j end
        patched:
                nop
                addi a0, a0, 1
                ret
                .word 0x00000013
                .word 0x0080006f",
    );
    elf_at(BASE, &program.unwrap().bytes)
}

/// How often the loop at the end was passed, E-Trace does not say.
fn before_end(pcs: &str) -> Vec<&str> {
    let lines = pcs.lines();
    lines.take_while(|pc| *pc != "0000000080000030").collect()
}

#[track_caller]
fn success(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

#[test]
fn a_program_that_changes_its_code_is_decoded() {
    let folder = Folder::new();
    let elf = folder.file("changing.elf", changing());
    let pcs = folder.name("pcs");
    for format in ["ntrace", "etrace"] {
        let trace = folder.name(format);
        let (trace_flag, log_flag) = (format!("{format}={trace}"), format!("pc={pcs}"));
        success(&[
            "run",
            "-q",
            &elf,
            "--trace",
            &trace_flag,
            "--log",
            &log_flag,
        ]);
        let code = format!("{trace}.code");
        assert!(fs::metadata(&code).unwrap().len() < 400);
        assert!(
            fs::read_to_string(format!("{trace}.toml"))
                .unwrap()
                .contains(&format!("code = [\"{format}.code\"]"))
        );
        for threads in ["1", "2"] {
            let decoded = success(&["decode", "-q", &trace, "-f", "pc", "--threads", threads]);
            let truth = fs::read_to_string(&pcs).unwrap();
            assert_eq!(before_end(&decoded), before_end(&truth), "{format}");
        }
        let listing = success(&["decode", "-q", &trace]);
        let patched = |line: &&str| line.starts_with("0000000080000034");
        let jumps = listing
            .lines()
            .filter(patched)
            .filter(|l| l.contains("j "))
            .count();
        let nops = listing
            .lines()
            .filter(patched)
            .filter(|l| l.contains("nop"))
            .count();
        assert_eq!((nops, jumps), (6, 6), "{listing}");
        let info = success(&["info", "-q", &code]);
        assert!(
            info.contains("code history") && info.contains("at 1 place"),
            "{info}"
        );
        let output = run(&["decode", &code]);
        assert!(text(&output.stderr).contains("--code"));
        // Without it, the code of the ELF file is all there is.
        fs::remove_file(&code).unwrap();
        let output = run(&["decode", "-q", &trace, "-f", "pc"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("HT0001"));
    }
}

#[test]
fn a_program_that_stays_as_it_is_needs_none() {
    let folder = Folder::new();
    let program = assemble(BASE, "li a0, 3\nend: j end").unwrap();
    let elf = folder.file("plain.elf", elf_at(BASE, &program.bytes));
    let trace = folder.name("plain.ntrace");
    success(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    assert!(fs::metadata(format!("{trace}.code")).is_err());
}

#[test]
fn what_is_no_history_is_refused() {
    let folder = Folder::new();
    let elf = folder.file("changing.elf", changing());
    let trace = folder.name("t");
    success(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    let code = format!("{trace}.code");
    let mut bytes = fs::read(&code).unwrap();
    bytes.truncate(bytes.len() - 5);
    fs::write(&code, bytes).unwrap();
    for (file, words) in [(&code, "damaged or cut off"), (&elf, "not a code history")] {
        let output = run(&["decode", &trace, "--code", file]);
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.contains("HT0126") && message.contains(words),
            "{message}"
        );
    }
}

/// Code that a program writes after its own has no name: the last function does not go on
/// for ever.
#[test]
fn code_outside_the_program_has_no_name() {
    let folder = Folder::new();
    let text = "        auipc s0, 0
                        lui s1, 1
                        add s1, s1, s0
                        lw a1, 36(s0)
                        sw a1, 0(s1)
                        fence.i
                        jalr ra, 0(s1)
                end:    j end
                last:   nop
                        ret";
    let program = assemble(BASE, text).unwrap();
    let words = program.bytes.chunks_exact(4);
    let words: Vec<u32> = words
        .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
        .collect();
    let elf = folder.file("writes.elf", elf_with(&words, &[("start", 0), ("last", 8)]));
    let trace = folder.name("writes.ntrace");
    success(&["run", "-q", &elf, "--trace", &format!("ntrace={trace}")]);
    let listing = success(&["decode", "-q", &trace]);
    let line = |address: &str| listing.lines().find(|l| l.starts_with(address)).unwrap();
    assert!(line("0000000080000018").contains("start+0x18"), "{listing}");
    let outside = line("0000000080001000");
    assert!(
        outside.contains("ret") && !outside.contains("last"),
        "{listing}"
    );
}

/// A check decodes with the files: it goes as far as they do, and says so.
#[test]
fn a_check_ends_where_code_changes() {
    let folder = Folder::new();
    let elf = folder.file("changing.elf", changing());
    for format in ["ntrace", "etrace"] {
        let to = format!("{format}={}", folder.name(format));
        let args = ["run", &elf, "--max-insns", "200", "--trace", &to, "--check"];
        let output = run(&args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        assert!(message.contains("warning[HT0410]: "), "{message}");
        assert!(message.contains(" is checked up to "), "{message}");
        assert!(message.contains("the code that ran"), "{message}");
    }
}
