//! A head says what taking a packet apart says.

use hartrace_testkit::Random;

use super::*;
use crate::testing::RandomForms as _;

#[test]
fn a_head_fits_what_opens_so() {
    let mut random = Random::new(23);
    let (mut fitting, mut others) = (0, 0);
    for _ in 0..2000 {
        let form = random.encapsulation();
        for _ in 0..40 {
            let mut window = [0; WINDOW];
            // Few bits, so that sources and types come again.
            window.fill_with(|| random.draw() as u8 & random.one_of([0, 1, 3, 0xff]));
            window[0] = random.draw() as u8;
            let src = random.below(3) as u16;
            for kind in [Kind::Instruction, Kind::Data] {
                let head = Heads::new(&form, src).of(kind, window[0]).copied();
                let packet = head.and_then(|head| head.open(&window));
                let len = form.length(window[0]).filter(|&len| len > 1);
                let opened = len.map(|len| form.open(&window[..len]));
                let wanted = opened.filter(|opened| {
                    let has_payload = opened.payload / 8 < len.unwrap_or(0);
                    let same = opened.src == src && opened.kind == Some(kind);
                    let is_flow = !form.marks || window[0] >> 5 & 3 == 0;
                    same && has_payload && is_flow && !opened.mark
                });
                let (Some(head), Some(packet), Some(wanted)) = (head, packet, wanted) else {
                    assert!(packet.is_none() && wanted.is_none(), "{form:?} {window:x?}");
                    others += 1;
                    continue;
                };
                fitting += 1;
                assert_eq!(Some(packet.len), len);
                assert_eq!(head.time(&window), wanted.time);
                assert_eq!(head.is_timed(), wanted.time.is_some());
                let start = wanted.payload / 8;
                assert_eq!(packet.payload_bytes(), packet.len - start);
                // From the byte in which the payload or the type before it starts.
                let from = wanted.payload - packet.shift as usize;
                assert!(packet.shift < 16 && from.is_multiple_of(8));
                let bytes = &window[from / 8..packet.len];
                assert_eq!(packet.bytes, bytes.len());
                assert_eq!(packet.payload[..bytes.len()], *bytes);
                let all = bytes.iter().take(16).rev();
                let all = all.fold(0u128, |all, &byte| all << 8 | u128::from(byte));
                let number = (bytes.len() <= 8).then(|| {
                    let unused = 128 - 8 * bytes.len() as u32;
                    ((all << unused) as i128 >> unused >> packet.shift) as i64
                });
                assert_eq!(packet.word(), number);
                let shift = 128 - 8 * bytes.len().min(16) as u32;
                let number = (all << shift) as i128 >> shift >> packet.shift;
                assert_eq!(packet.first_bits() as u16, number as u16);
            }
        }
    }
    assert!(fitting > 5000 && others > 5000, "{fitting} {others}");
}
