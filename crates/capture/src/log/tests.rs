use super::*;
use hartrace_flow::{Cause, Mode, Signal};

const SPIKE: &str = "warning: something\n\
    core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\n\
    core   0: 3 0x0000000000001000 (0x00000297) x5  0x0000000000001000\n\
    core   0: >>>>  _start\n\
    core   1: 0x0000000080000000 (0x00000073) ecall\n\
    core   1: exception trap_user_ecall, epc 0x0000000080000000\n\
    core   1:           tval 0x0000000000000000\n\
    core   1: 0x0000000080000010 (0x00000013) nop\n\
    core   1: 1 0x0000000080000010 (0x00000013)";

/// c.nop; c.bnez a0, -2; ecall; c.nop
const CODE: [u8; 10] = [0x01, 0x00, 0x7d, 0xfd, 0x73, 0, 0, 0, 0x01, 0x00];

fn image() -> Image {
    let mut image = Image::new();
    image.add_raw(SpaceId::FIRST, 0x1000, &CODE, Isa::RV64GC);
    image
}

fn steps(kind: Kind, options: &LogOptions<'_>, text: &str, piece: usize) -> (LogSummary, Damage) {
    let mut reader = LogReader::new(kind, options).unwrap();
    let (mut summary, mut damage) = (LogSummary::default(), Damage::default());
    for piece in text.as_bytes().chunks(piece) {
        reader.feed(piece, &mut summary, &mut |e| damage.add(e));
    }
    reader.finish(&mut summary, &mut |e| damage.add(e));
    (summary, damage)
}

fn rows(kind: Kind, text: &str, piece: usize) -> (LogSummary, Damage) {
    let mut reader = RowReader::new(kind, &LogOptions::default()).unwrap();
    let (mut summary, mut damage) = (LogSummary::default(), Damage::default());
    for piece in text.as_bytes().chunks(piece) {
        reader.feed(piece, &mut summary, &mut |e| damage.add(e));
    }
    reader.finish(&mut summary, &mut |e| damage.add(e));
    (summary, damage)
}

#[test]
fn spike_at_every_chunk_size() {
    for piece in 1..SPIKE.len() + 1 {
        let (summary, damage) = steps(Kind::SpikeLog, &LogOptions::default(), SPIKE, piece);
        assert_eq!((summary.instructions, summary.all_traps()), (2, 1));
        assert_eq!(summary.traps, [(Cause::Exception(Some(8)), 1)]);
        assert_eq!(summary.harts, [HartId(0), HartId(1)]);
        assert_eq!(summary.signals, [(Signal::Lost, 1)]);
        assert!(summary.modes().eq([Mode::U, Mode::S, Mode::M]));
        assert_eq!(summary.last_pc, Some(0x8000_0010));
        assert_eq!(
            (damage.lines, damage.first[0].line, damage.more()),
            (1, 1, 0)
        );
    }
}

#[test]
fn a_pc_list_with_and_without_its_program() {
    let text = "1000\n1002\n0x1000 # again\n\n1002\n1004\n1000\nzz\n1002\nfff0\n";
    let image = image();
    let options = LogOptions {
        image: Some(&image),
        ..LogOptions::default()
    };
    let (summary, damage) = steps(Kind::PcList, &options, text, 7);
    assert_eq!((summary.instructions, summary.rows), (6, 0));
    // The ecall, and the way to where there is no code.
    assert_eq!(summary.all_traps(), 2);
    assert_eq!(summary.first_pc, Some(0x1000));
    assert_eq!(damage.lines, 2);
    assert!(damage.first[1].to_string().contains("no code at 0xfff0"));

    let (summary, damage) = rows(Kind::PcList, text, 3);
    assert_eq!((summary.instructions, summary.rows), (0, 8));
    assert_eq!(summary.last_pc, Some(0xfff0));
    assert_eq!((damage.lines, damage.first[0].line), (1, 8));
}

#[test]
fn ingress_rows_with_and_without_the_program() {
    let text = "itype,cause,tval,priv,iaddr,iretire,ilastsize\n\
        0,0,0,3,1000,1,0\n5,0,0,3,1002,1,0\n0,0,0,3,1000,1,0\n4,0,0,3,1002,1,0\n\
        1,8,0,0,1004,0,0\nx\n0,0,0,3,1008,1,0\n";
    let image = image();
    let options = LogOptions {
        image: Some(&image),
        ..LogOptions::default()
    };
    let (with, damage) = steps(Kind::IngressCsv, &options, text, 5);
    assert_eq!((with.instructions, damage.lines), (5, 1));
    let (without, damage) = rows(Kind::IngressCsv, text, 5);
    assert_eq!((without.rows, damage.lines), (5, 1));
    assert_eq!(without.traps, [(Cause::Exception(Some(8)), 1)]);
    assert_eq!(without.first_pc, with.first_pc);
    assert!(without.modes().eq([Mode::U, Mode::M]));
}

#[test]
fn the_csv_of_the_reference_flow() {
    let text = "VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n\
        1,1000,1,3,0,0,0,0\n1,1002,73,3,1,b,0,0\n1,2000,13,3,0,0,0,0\n";
    let (summary, damage) = steps(Kind::SpikeCsv, &LogOptions::default(), text, 9);
    assert_eq!((summary.instructions, damage.lines), (2, 0));
    assert_eq!(summary.traps, [(Cause::Exception(Some(11)), 1)]);
}

#[test]
fn what_cannot_be_read() {
    let none = LogOptions::default();
    for (kind, error) in [
        (Kind::PcList, LogError::NeedsProgram(Kind::PcList)),
        (Kind::IngressCsv, LogError::NeedsProgram(Kind::IngressCsv)),
        (Kind::Elf, LogError::NotALog(Kind::Elf)),
        (Kind::Config, LogError::NotALog(Kind::Config)),
    ] {
        assert_eq!(LogReader::new(kind, &none).err(), Some(error));
    }
    assert!(RowReader::new(Kind::SpikeLog, &LogOptions::default()).is_none());
}

#[test]
fn any_number_of_causes_and_faults_takes_no_memory() {
    let mut text = "itype,cause,tval,priv,iaddr,iretire,ilastsize\n".to_owned();
    for cause in 0..1000 {
        text += &format!("1,{cause},0,3,1000,0,0\nx\n");
    }
    let (summary, damage) = rows(Kind::IngressCsv, &text, 100);
    assert_eq!((summary.all_traps(), summary.more_traps), (1000, 936));
    assert_eq!((damage.lines, damage.more()), (1000, 995));
}

#[test]
fn guesses_from_the_first_lines() {
    let header = "itype,cause,tval,priv,iaddr,time,iretire,ilastsize\n";
    let single = format!("{header}0,0,0,3,1000,5,1,1\n");
    let blocks = format!("{single}0,0,0,3,1004,6,2,1\n");
    let (columns, counted) = ingress_layout(single.as_bytes());
    assert!(columns.is_some_and(|c| c.time && !c.context));
    assert_eq!(counted, Iretire::Instructions);
    assert_eq!(ingress_layout(blocks.as_bytes()).1, Iretire::Halfwords);
    assert_eq!(ingress_layout(b"\xff").0, None);
    assert_eq!(spike_isa(SPIKE.as_bytes()), Isa::RV64GC);
    let narrow = "hello\ncore   0: 3 0x80000000 (0x00010117) x2  0x80010000\n";
    assert_eq!(spike_isa(narrow.as_bytes()), Isa::RV32GC);
    assert_eq!(spike_isa(b"core"), Isa::RV64GC);
}

#[test]
fn another_program_is_doubted() {
    let fit = |steps, unexplained| {
        Fit {
            steps,
            unexplained,
            ..Fit::default()
        }
        .is_doubtful()
    };
    assert!(fit(399, 20) && fit(1_000_000, 50_001));
    assert!(!fit(400, 20) && !fit(19, 19) && !fit(0, 0));
    let image = image();
    let options = LogOptions {
        image: Some(&image),
        ..LogOptions::default()
    };
    let (right, _) = steps(Kind::PcList, &options, &"1000\n1002\n".repeat(50), 7);
    assert!(!right.fit().is_doubtful());
    let (wrong, _) = steps(Kind::PcList, &options, &"1000\n1008\n".repeat(50), 7);
    assert!(wrong.fit().is_doubtful(), "{wrong:?}");
}

#[test]
fn the_cause_of_an_ecall_follows_the_mode() {
    let image = image();
    let options = LogOptions {
        image: Some(&image),
        ..LogOptions::default()
    };
    for (mode, cause) in [(Mode::U, 8), (Mode::S, 9), (Mode::M, 11)] {
        let mut reader = LogReader::new(Kind::PcList, &options).unwrap();
        let mut summary = Assume::new(LogSummary::default(), mode);
        let list = b"1002\n1004\n1000\n1008\n1000\n";
        reader.feed(list, &mut summary, &mut |_| {});
        reader.finish(&mut summary, &mut |_| {});
        let known = (Cause::Exception(Some(cause)), 1);
        assert_eq!(summary.inner().traps, [known, (Cause::Unknown, 2)]);
        assert!(summary.inner().modes().eq([mode]));
    }
}

/// Traps whose cause is not known are counted, and the first is kept. That of an
/// ecall follows from its mode.
#[test]
fn causes_that_a_log_does_not_record() {
    let image = image();
    let options = LogOptions {
        image: Some(&image),
        ..LogOptions::default()
    };
    let mut reader = LogReader::new(Kind::PcList, &options).unwrap();
    let mut chosen = Chosen::new(LogSummary::default(), None, true);
    let list = b"1002\n1004\n1000\n1008\n1000\n";
    reader.feed(list, &mut chosen, &mut |_| {});
    reader.finish(&mut chosen, &mut |_| {});
    let fit = chosen.fit();
    assert_eq!((fit.causeless, fit.unexplained), (2, 2));
    let first = fit.first.unwrap();
    assert_eq!(
        (first.trap.epc, first.trap.handler),
        (Some(0x1002), Some(0x1008))
    );
    assert_eq!(first.trap.cause, Cause::Unknown);
    assert_eq!(first.step, 3);
}

#[test]
fn a_cause_that_tells_the_mode_is_believed() {
    let text = b"core   0: 0x0000000080000000 (0x00000073) ecall\n\
        core   0: exception trap_user_ecall, epc 0x0000000080000000\n\
        core   0: 0x0000000080000010 (0x00000013) nop\n";
    let mut reader = LogReader::new(Kind::SpikeLog, &LogOptions::default()).unwrap();
    let mut summary = Assume::new(LogSummary::default(), Mode::S);
    reader.feed(text, &mut summary, &mut |_| {});
    reader.finish(&mut summary, &mut |_| {});
    assert_eq!(summary.inner().traps, [(Cause::Exception(Some(8)), 1)]);
    assert!(summary.inner().modes().eq([Mode::U, Mode::S]));
}

#[test]
fn lines_are_counted_across_chunks() {
    for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\n\nb", 3), ("\n\n", 2)] {
        for piece in 1..4 {
            let mut count = LineCount::default();
            text.as_bytes().chunks(piece).for_each(|c| count.feed(c));
            assert_eq!(count.count(), lines, "{text:?}");
        }
    }
}

#[test]
fn where_a_log_starts() {
    let table = "VALID,ADDRESS,INSN,PRIVILEGE,EXCEPTION,ECAUSE,TVAL,INTERRUPT\n\
                 1,1000,297,3,0,0,0,0\n1,1004,2028593,3,0,0,0,0\n";
    let rows = "itype_0,cause,tval,priv,iaddr_0,context,ctype,iretire_0,ilastsize_0\n\
                0,0,0,3,1000,0,0,1,1\n0,0,0,3,1004,0,0,1,1\n";
    let blocks = rows.replace("1,1\n", "5,1\n");
    for (kind, text) in [
        (Kind::SpikeLog, SPIKE),
        (Kind::SpikeCsv, table),
        (Kind::IngressCsv, rows),
        (Kind::IngressCsv, &blocks),
        (Kind::PcList, "1000\n1004\n"),
    ] {
        assert_eq!(first_pc(kind, text.as_bytes()), Some(0x1000), "{kind}");
        assert_eq!(first_pc(kind, b""), None);
    }
    assert_eq!(first_pc(Kind::Elf, b"1000\n"), None);
}

#[test]
fn parts_of_a_spike_log() {
    let listing = "core   0: 0x0000000000001000 (0x00000297) auipc   t0, 0x0\n";
    let commit = "core   0: 3 0x0000000000001000 (0x00000297) x5  0x0000000000001000\n";
    let exception = "core   0: exception trap_user_ecall, epc 0x000000008000006e\n";
    for (text, listed, commits) in [
        (String::new(), false, false),
        (listing.to_owned(), true, false),
        (commit.to_owned(), false, true),
        (format!("{listing}{commit}"), true, true),
        (format!("{commit}{exception}"), true, true),
        ("core dumped\n".to_owned(), false, false),
    ] {
        let parts = spike_parts(text.as_bytes());
        assert_eq!((parts.listing, parts.commits), (listed, commits), "{text}");
    }
}
