//! Pieces of all formats, as a library user gets them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use hartrace_capture::config::Config;
use hartrace_capture::input::{Input, InputError};
use hartrace_capture::trace::{Format, Known, Trace};
use hartrace_isa::Isa;
use hartrace_print::dump::{Dump, DumpForm};
use std::path::Path;

fn dump(format: Format, bytes: &[u8], form: DumpForm) -> String {
    let setting = match format {
        Format::Ntrace => "src_bits = 0",
        Format::Etrace => "version = \"2.0\"",
        Format::Tandem => "xlen = 64",
    };
    let config = format!("[{}]\n{setting}\n", format.name());
    let config = Config::parse(&config, Path::new("t.toml")).unwrap();
    let input = Input::of(Path::new("t"), bytes.to_vec());
    let trace = Trace::open(input, &config, Known::default()).unwrap();
    assert_eq!((trace.format(), &trace.guess), (format, &None));
    let mut dump = Dump::new(format, form);
    let mut out = Vec::new();
    dump.heading(&mut out).unwrap();
    trace
        .explain(Isa::RV64GC, dump.view(), |piece, bytes| {
            dump.piece(piece, bytes, &mut out).unwrap();
            Ok::<(), InputError>(())
        })
        .unwrap();
    String::from_utf8(out).unwrap()
}

/// Table 6 of N-Trace, idle bytes, and a message that is cut off.
const MESSAGES: [u8; 9] = [0x70, 0xd0, 0x1d, 0x1d, 0xf8, 0xff, 0xff, 0xff, 0x0c];

#[test]
fn messages() {
    assert_eq!(
        dump(Format::Ntrace, &MESSAGES, DumpForm::Text),
        "00000000  IndirectBranchHist BTYPE=0x0 ICNT=0x7d UADDR=0x7 HIST=0xffe\n\
         00000006  (idle) 2\n\
         00000008  (bad) NT0105: the trace ends inside a message: 0c\n"
    );
    let bytes = dump(Format::Ntrace, &MESSAGES, DumpForm::Bytes);
    let first = "offset    byte  MDO     MSEO  decoded\n\
                 00000000  0x70  011100  00    TCODE[6]=28 - IndirectBranchHist\n\
                 00000001  0xD0  110100  00    BTYPE[2]=0x0\n\
                 00000002  0x1D  000111  01    ICNT[10]=0x7D\n";
    assert!(bytes.starts_with(first), "{bytes}");
    let json = dump(Format::Ntrace, &MESSAGES, DumpForm::Json);
    let lines: Vec<&str> = json.lines().collect();
    let fields = r#""BTYPE":"0x0","HIST":"0xffe","ICNT":"0x7d","UADDR":"0x7""#;
    let message = r#""bytes":"70d01d1df8ff","tcode":28,"name":"IndirectBranchHist""#;
    let message = format!(r#"{{"type":"message","offset":0,{message},"fields":{{{fields}}}}}"#);
    assert_eq!(
        lines[..3],
        [
            r#"{"type":"header","schema":"hartrace-messages","version":1}"#,
            message.as_str(),
            r#"{"type":"idle","offset":6,"count":2}"#,
        ]
    );
}

#[test]
fn packets() {
    // A support packet, and one whose last fields were compressed away.
    let bytes = [0x41, 0x1f, 0x43, 0x05, 0x58, 0x05];
    let text = dump(Format::Etrace, &bytes, DumpForm::Text);
    assert!(text.contains("(enabled"), "{text}");
    let table = dump(Format::Etrace, &bytes, DumpForm::Bytes);
    let header = "00000002  0x43  01000011  te_inst, 3 bytes\n";
    assert!(table.contains(header), "{table}");
    assert!(table.contains("(notify[1]=0)"), "{table}");
    let json = dump(Format::Etrace, &bytes, DumpForm::Json);
    let packet = r#"{"type":"packet","offset":2,"bytes":"43055805","format":1,"#;
    assert!(json.contains(packet), "{json}");
}

#[test]
fn groups() {
    // c.nop at a place that is not known, and an offset to a register.
    let bytes = [1, 3, 16, 1, 0, 5, 10, 16, 0xf8, 2];
    let text = dump(Format::Tandem, &bytes, DumpForm::Text);
    assert_eq!(text, "00000000  0  pc+; 0001 nop; a0-=0x8\n");
    let json = dump(Format::Tandem, &bytes, DumpForm::Json);
    let items = r#"[{"item":"increment_pc"},{"item":"insn","size":2,"value":"0x1","text":"nop"},{"item":"register","register":"a0","offset":-8}]"#;
    let group = r#"{"type":"group","offset":0,"bytes":"0103100100050a10f802","number":0,"items":"#;
    assert_eq!(
        json.lines().last(),
        Some(format!("{group}{items}}}").as_str())
    );
    let table = dump(Format::Tandem, &bytes, DumpForm::Bytes);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[1], "00000000  01                       begin group");
    let offset = "00000008  f8                       offset -8";
    assert!(rows.contains(&offset), "{table}");
}
