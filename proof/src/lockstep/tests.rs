use super::*;

fn sides(a: &str, b: &str) -> (Side, Side) {
    let start = |template: &str| Side::start(template, "rv64gc", "x", 1).unwrap();
    (start(a), start(b))
}

fn options() -> Options {
    let args = ["--spike", "a", "--hart", "b", "c"].map(String::from);
    parse(&args).unwrap()
}

/// A log as a file, read by `cat` in place of a simulator.
fn log(name: &str, text: &str) -> String {
    let path =
        std::env::temp_dir().join(format!("hartrace-lockstep-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn run(name: &str, a: &str, b: &str, exact_end: bool) -> (Verdict, u64) {
    let files = [log(&format!("{name}-a"), a), log(&format!("{name}-b"), b)];
    // `dd` writes to its standard error what `of` says, as a simulator does.
    let [x, y] = files
        .each_ref()
        .map(|f| format!("dd if={f} of={{log}} status=none"));
    let (mut reference, mut ours) = sides(&x, &y);
    let mut options = options();
    options.exact_end = exact_end;
    let mut compared = 0;
    let mut last = Last::default();
    let verdict = compare(
        &mut reference,
        &mut ours,
        &options,
        &mut last,
        &mut compared,
    );
    reference.end();
    ours.end();
    for file in files {
        std::fs::remove_file(file).unwrap();
    }
    (verdict, compared)
}

const A: &str = "core   0: 3 0x80000000 (0x00000297) x5  0x80000000\n";
const B: &str = "core   0: 3 0x80000004 (0x0000006f)\n";
const C: &str = "core   0: 3 0x80000000 (0x00000297) x5  0x80000001\n";

#[test]
fn same_logs_are_the_same() {
    let text = [A, "warning: nothing\n", B].concat();
    let (verdict, compared) = run("same", &text, &[A, B].concat(), true);
    assert!(matches!(verdict, Verdict::Same));
    assert_eq!(compared, 2);
}

#[test]
fn a_difference_is_found() {
    let (verdict, compared) = run("other", &[B, A].concat(), &[B, C].concat(), false);
    assert!(matches!(verdict, Verdict::Differs(Some(a), Some(b))
        if a == A.as_bytes() && b == C.as_bytes()));
    assert_eq!(compared, 1);
}

#[test]
fn a_log_that_ends_early_differs_unless_the_other_only_spins() {
    let long = [A, B, B, B, B].concat();
    let short = [A, B].concat();
    let (verdict, _) = run("spin", &long, &short, false);
    assert!(matches!(verdict, Verdict::Spin(3, "the reference")));
    let (verdict, _) = run("exact", &short, &long, true);
    assert!(matches!(verdict, Verdict::Differs(None, Some(_))));
    let (verdict, _) = run("cut", &[B, A].concat(), B, false);
    assert!(matches!(verdict, Verdict::Differs(Some(_), None)));
}

#[test]
fn instructions_are_named() {
    let text = disassembly(A.trim_end(), Isa::RV64GC);
    assert_eq!(text.as_deref(), Some("auipc t0,0x0"));
}
