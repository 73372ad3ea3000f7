use super::*;
use hartrace_etrace as etrace;
use hartrace_flow::decode::Framing as _;
use hartrace_isa::Xlen;
use hartrace_testkit::Random;
use std::path::Path;

const FORMS: [&str; 7] = [
    "form = \"reference\"",
    "form = \"riscv\"\nsync_bytes = 200",
    "form = \"riscv\"\nsrc_bits = 5\ntime_bytes = 2\ntype_bits = 1",
    "form = \"smi\"\nsrc_bits = 8\ntime_bytes = 2",
    "form = \"atb\"\ntime_bytes = 2",
    "form = \"esp32\"",
    "form = \"slots\"\nsrc_bits = 8\ntype_bits = 8",
];

fn config(form: &str) -> Config {
    let text = format!("[etrace.encapsulation]\n{form}\n");
    Config::parse(&text, Path::new("t")).unwrap()
}

fn settings(form: &str) -> Settings {
    let encapsulation = config(form).etrace.form();
    Settings::Etrace(etrace::Config {
        encapsulation,
        ..etrace::Config::new(etrace::Version::V2_0, Xlen::Rv64)
    })
}

fn form(settings: &Settings) -> Encapsulation {
    match settings {
        Settings::Etrace(config) => config.encapsulation,
        _ => panic!("E-Trace"),
    }
}

type Owned = (u16, Kind, Vec<u8>);

/// Packets of these harts.
fn stream(form: Encapsulation, harts: u64, data: bool) -> (Vec<u8>, Vec<Owned>) {
    let mut random = Random::new(3);
    let mut packers: Vec<_> = (0..harts).map(|n| Packer::new(form, n as u16)).collect();
    let (mut bytes, mut sent) = (Vec::new(), Vec::new());
    for time in 0..200 {
        let src = random.below(harts) as u16;
        let kind = match data && random.below(3) == 0 {
            true => Kind::Data,
            false => Kind::Instruction,
        };
        let len = 1 + random.index(20);
        let payload = random.bytes(len);
        let packed = packers[usize::from(src)].pack(kind, &payload, time);
        bytes.extend_from_slice(packed.bytes());
        sent.push((src, kind, shortest(&payload).to_vec()));
    }
    (bytes, sent)
}

fn found(form: Encapsulation, bytes: &[u8]) -> Vec<Owned> {
    let (mut framer, mut rest) = (Framer::of(form), bytes);
    let mut found = Vec::new();
    while let Some((_, piece)) = framer.next_piece(&mut rest) {
        if let Piece::Packet(packet) = piece {
            found.push((packet.src, packet.kind, shortest(packet.payload).to_vec()));
        }
    }
    found
}

fn copied(
    bytes: &[u8],
    old: &Settings,
    new: &Settings,
    only: Option<u32>,
) -> Result<(Vec<u8>, Reencapsulated), ReencapsulateError> {
    let mut out = Vec::new();
    let put = Box::new(|bytes: &[u8]| out.extend_from_slice(bytes));
    let input = Input::of(Path::new("t"), bytes.to_vec());
    let copied = reencapsulate(input, (old, new), only.map(HartId), put)?;
    Ok((out, copied))
}

/// From every form to every other: the packets are the same.
#[test]
fn every_form_to_every_other() {
    for from in FORMS {
        let old = settings(from);
        let sources = form(&old).has_sources();
        let harts = if sources { 3 } else { 1 };
        let (bytes, sent) = stream(form(&old), harts, form(&old).has_kinds());
        for to in FORMS {
            let new = reencapsulated(&old, &config(to)).unwrap();
            let many = !form(&new).has_sources() && sources;
            let outcome = copied(&bytes, &old, &new, None);
            if many || form(&old).has_kinds() && !form(&new).has_kinds() {
                let refused = outcome.unwrap_err();
                let expected = matches!(
                    refused,
                    ReencapsulateError::Harts(..) | ReencapsulateError::Data
                );
                assert!(expected, "{from} to {to}: {refused}");
                continue;
            }
            let (out, sum) = outcome.unwrap();
            assert_eq!((sum.packets, sum.lost), (200, 0), "{from} to {to}");
            assert_eq!(sum.bytes, out.len() as u64);
            assert_eq!(found(form(&new), &out), sent, "{from} to {to}");
        }
    }
}

/// One hart alone fits where there are no sources.
#[test]
fn one_hart() {
    let old = settings(FORMS[3]);
    let (bytes, sent) = stream(form(&old), 3, true);
    let new = reencapsulated(&old, &config(FORMS[0])).unwrap();
    let (out, _) = copied(&bytes, &old, &new, Some(1)).unwrap();
    let own = sent.into_iter().filter(|packet| packet.0 == 1);
    let own: Vec<_> = own.map(|(_, kind, payload)| (0, kind, payload)).collect();
    assert_eq!(found(form(&new), &out), own);
}

/// What cannot be read becomes a loss that the new trace reports.
#[test]
fn damage_becomes_a_loss() {
    let (old, new) = (settings(FORMS[0]), settings(FORMS[3]));
    let (bytes, _) = stream(form(&old), 1, false);
    let at = bytes.len() / 2;
    let damaged = [&bytes[..at], &[0xff; 40], &bytes[at..]].concat();
    let (out, sum) = copied(&damaged, &old, &new, None).unwrap();
    assert_eq!(sum.lost, 1);
    let Settings::Etrace(config) = &new else {
        panic!("E-Trace")
    };
    let layout = config.layout();
    let lost = |(_, _, payload): &&Owned| {
        let packet = Packet::read(payload, &layout);
        matches!(packet, Ok(Packet::Support(s)) if s.qual_status == QualStatus::TraceLost && s.ienable)
    };
    assert_eq!(found(form(&new), &out).iter().filter(lost).count(), 1);
}

#[test]
fn other_formats_have_none() {
    let tandem = Settings::Tandem(Box::default());
    assert!(matches!(
        reencapsulated(&tandem, &Config::default()),
        Err(ReencapsulateError::Format)
    ));
}
