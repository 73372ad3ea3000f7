//! The loop of 6.6.2; the other examples are in `tests/clauses/examples.rs`.

use super::*;

const LOOP: u64 = 0x1004;

/// Once into the loop of 6.6.2 and round: opcodes A, B, C, the jump.
fn round() -> Vec<Ingress> {
    vec![i(LOOP - 4), i(LOOP), i(LOOP + 4), jalr(LOOP + 8)]
}

/// Scenario 2: an exception, a change of mode or a synchronisation in the
/// second iteration.
#[test]
fn a_format_3_follows_in_the_second_iteration() {
    let told = Packet::Address(updiscon(delta(LOOP - 4, LOOP)));
    for version in VERSIONS {
        let trap = vec![i(LOOP), exception(LOOP + 4, 5, 0x77), i(0x2000)];
        let inner = [start(LOOP - 4), told, handler(5, 0x2000, 0x77)];
        let blocks = [round(), trap].concat();
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);

        let mode = vec![i(LOOP), in_mode(Mode::U, i(LOOP + 4))];
        let inner = [start(LOOP - 4), told, start_in(Mode::U, LOOP + 4)];
        let blocks = [round(), mode].concat();
        check(&config(version), &blocks, &inner, QualStatus::EndedNtr);

        let resync = Resync {
            unit: ResyncUnit::Halfwords,
            max: 0,
            rule: ResyncRule::Exceeded,
        };
        let config = Config {
            resync,
            ..config(version)
        };
        let mut long = vec![i(LOOP - 20), i(LOOP - 16), i(LOOP - 12), i(LOOP - 8)];
        long.extend(round());
        long.extend([i(LOOP), i(LOOP + 4)]);
        let told = Packet::Address(updiscon(delta(LOOP - 20, LOOP)));
        let inner = [start(LOOP - 20), told, start(LOOP + 4)];
        check(&config, &long, &inner, QualStatus::EndedNtr);
    }
}
