//! Checks E-Trace against itself: encode, decode, compare.

pub mod data;
pub mod encapsulation;
mod judge;
#[cfg(feature = "peer")]
pub mod peer;
mod rewrite;
pub mod second;
mod setting;

use hartrace_capture::trace::Settings;
use hartrace_etrace::{
    Config, Decoder, Encapsulated, Encapsulation, Encoder, Form, Framer, Kind, Packet, Piece,
    QualStatus, Resync, ResyncRule, ResyncUnit, Version,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Event, HartId, Image, Mark};
use hartrace_isa::{Isa, ItypeTable};

use crate::generate::Spec;
use crate::trace::{Counters, Format, Out, Point, Pulse, Rules, Subjects, points};
use judge::EJudge;

/// The format.
#[derive(Clone, Copy, Debug)]
pub struct ETrace;

/// How harts are traced.
pub type Setting = crate::trace::Setting<ETrace>;

/// A program and how it is traced.
pub type Case = crate::trace::identity::Case<ETrace>;

/// The packets of instruction trace in a stream, with their offsets and
/// lengths.
fn packets<'b>(
    config: &Config,
    bytes: &'b [u8],
) -> impl Iterator<Item = (usize, usize, Option<Packet>)> + 'b {
    let mut layout = config.layout();
    let mut framer = Framer::of(config.encapsulation);
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let (at, piece) = framer.next_piece(&mut rest)?;
            if let Piece::Packet(Encapsulated {
                kind: Kind::Instruction,
                payload,
                len,
                ..
            }) = piece
            {
                let packet = Packet::read(payload, &layout).ok();
                if let Some(packet) = &packet {
                    layout.follow(packet);
                }
                return Some((at as usize, len, packet));
            }
        }
    })
}

/// Bits of the times in a stream: of packets, or of their encapsulation.
const fn time_bits(config: &Config) -> u8 {
    match config.time_width {
        0 => 8 * config.encapsulation.time_bytes,
        width => width,
    }
}

impl Format for ETrace {
    const NAME: &'static str = "etrace";

    type Config = Config;
    type Encoder<S: Out> = Encoder<S>;
    type Decoder<'i> = Decoder<'i>;
    type Judge = EJudge;

    fn setting(number: u64, isa: Isa) -> Setting {
        setting::numbered(number, isa)
    }

    fn tame(setting: &mut Setting, spec: &mut Spec) {
        setting::tame(setting, spec);
    }

    fn has_loss(setting: &Setting) -> bool {
        setting.loses || setting.config.queue.is_some_and(|q| !q.stall)
    }

    fn rules(setting: &Setting) -> Rules {
        let config = &setting.config;
        let draft = config.version == Version::V1_1_1;
        Rules {
            isa: setting.port.isa,
            xlen: config.xlen,
            triggers: config.triggers,
            starts_disabled: config.starts_disabled,
            external: [Pulse::Nothing; 8],
            power: false,
            reset_stops: true,
            retires: setting.port.retires,
            loses: ETrace::has_loss(setting),
            lost: "ET0401",
            open: true,
            open_trap: true,
            breaks_off: config.implicit_return,
            one_trap: draft,
            last_trap_untold: false,
            rounds: Some(config.sijump),
        }
    }

    fn judge(setting: &Setting) -> EJudge {
        EJudge::new(setting)
    }

    fn settings(config: &Config) -> Settings {
        Settings::Etrace(config.clone())
    }

    fn encoder<S: Out>(config: &Config, out: S) -> Result<Encoder<S>, String> {
        Encoder::new(config.clone(), out).map_err(|e| e.to_string())
    }

    fn counters<S: Out>(encoder: &Encoder<S>) -> Counters {
        encoder.total()
    }

    fn into_out<S: Out>(encoder: Encoder<S>) -> S {
        encoder.into_sink()
    }

    fn decoder<'i>(config: &Config, image: &'i Image) -> Result<Decoder<'i>, String> {
        Decoder::new(config.clone(), image).map_err(|e| e.to_string())
    }

    fn restarts(config: &Config, bytes: &[u8], lost: &mut bool) -> bool {
        let mut restarts = false;
        for (_, _, packet) in packets(config, bytes) {
            match packet {
                Some(Packet::Support(s)) => *lost |= s.qual_status == QualStatus::TraceLost,
                Some(Packet::Start(_) | Packet::Trap(_)) => {
                    restarts |= std::mem::take(lost);
                }
                _ => {}
            }
        }
        restarts
    }

    fn sync_points(config: &Config, bytes: &[u8]) -> Vec<Point> {
        let tables = config.branch_prediction || config.jump_target_cache || config.implicit_return;
        // What comes after depends on what came before: handlers that were learnt,
        // tables that a synchronisation does not clear.
        if config.implicit_exception || (config.resync_disabled() && tables) {
            return Vec::new();
        }
        let layout = config.layout();
        points(
            Framer::of(config.encapsulation),
            bytes,
            |piece: &Piece<'_>| {
                let Piece::Packet(Encapsulated {
                    src,
                    kind: Kind::Instruction,
                    payload,
                    ..
                }) = *piece
                else {
                    return None;
                };
                let packet = Packet::read(payload, &layout).ok()?;
                packet.is_sync().then_some(HartId(src.into()))
            },
        )
    }

    fn late(config: &Config) -> usize {
        let form = &config.encapsulation;
        let marked = form.sync_bytes > 0 || matches!(form.form, Form::Reference | Form::Slots);
        // Where lengths are all that shows boundaries, the packets of a loop may be divided
        // in two ways for as long as the loop goes on.
        usize::from(!marked)
    }

    fn first_len(config: &Config, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut framer = Framer::of(config.encapsulation);
        // Null packets before it are no message.
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if !matches!(piece, Piece::Idle(_)) {
                return bytes.len() - rest.len();
            }
        }
        0
    }

    fn describe(config: &Config, message: &[u8]) -> String {
        let packet = packets(config, message).next().and_then(|p| p.2);
        format!("{packet:x?}")
    }

    fn field(config: &Config, bytes: &[u8], at: usize, bit: u32) -> String {
        for (first, len, packet) in packets(config, bytes) {
            if at >= first + len {
                continue;
            }
            let name = packet.map_or_else(|| "?".into(), |p| format!("{p:?}"));
            let name = name.split(['(', ' ']).next().unwrap_or_default();
            if !config.encapsulation.is_reference() {
                return format!("{name} in its encapsulation");
            }
            return match at.checked_sub(first) {
                Some(0) if bit < 5 => format!("{name} length"),
                Some(0) => format!("{name} type"),
                Some(1) if bit < 2 => format!("{name} format"),
                _ => format!("{name} payload"),
            };
        }
        "?".into()
    }

    fn rewrite(config: &Config, bytes: &[u8], seed: u64) -> Option<Vec<u8>> {
        let plain = config.encapsulation.is_reference() && config.layout().is_plain();
        plain.then(|| rewrite::rewrite(config, bytes, seed))
    }

    fn plain(config: &Config, event: Event) -> Event {
        match event {
            // Turns of a narrow clock.
            Event::Time(time) if time_bits(config) < 64 => {
                Event::Time(time & ((1 << time_bits(config)) - 1))
            }
            _ => event,
        }
    }

    fn tails(_: &Config, mut tail: Vec<Event>, mut whole: Vec<Event>) -> (Vec<Event>, Vec<Event>) {
        // It begins, in some mode and context, perhaps with a trap that was
        // it is unknown where.
        let is_start = |e: &&Event| {
            matches!(
                e,
                Event::Mark(Mark::On) | Event::Context(_) | Event::Trap(_) | Event::Time(_)
            )
        };
        let start = tail.iter().take_while(is_start).count();
        tail.drain(..start);
        whole.drain(..whole.len().saturating_sub(tail.len()));
        (tail, whole)
    }

    fn is_block_blind(setting: &Setting) -> bool {
        let config = &setting.config;
        let cycles = config.resync.unit == ResyncUnit::Cycles;
        // The time of a block is that of its first instruction.
        let times = time_bits(config) > 0 || config.queue.is_some();
        // A block may change places with packets of another hart.
        let alone = setting.harts == 1;
        alone && config.resync.rule == ResyncRule::Settled && !cycles && !times
    }
}

impl Subjects for ETrace {
    const TABLE: ItypeTable = ItypeTable::ETrace20;

    fn damaged(isa: Isa) -> Vec<(&'static str, Config)> {
        let mut delta = Config::new(Version::V2_0, isa.xlen());
        // One every 2^13.
        delta.resync = Resync {
            unit: ResyncUnit::Halfwords,
            max: 9,
            rule: ResyncRule::Settled,
        };
        let mut full = delta.clone();
        full.full_address = true;
        let mut draft = Config::new(Version::V1_1_1, isa.xlen());
        draft.resync = delta.resync;
        // Modes make packets so short that two syncs would fit into the bytes in which a
        // decoder finds the boundaries of packets again.
        let seldom = Resync {
            max: 11,
            ..delta.resync
        };
        let review = Config {
            resync: seldom,
            // There cannot be more branches between two synchronisations.
            max_branch_count: 1 << 15,
            ..Config::new(Version::V2_05, isa.xlen())
        };
        let modal = Config {
            resync: seldom,
            max_branch_count: review.max_branch_count,
            ..delta.clone()
        };
        let mut subjects = vec![
            ("delta", delta),
            ("full", full),
            ("draft", draft),
            ("2.0 modes", with_modes(modal)),
            ("modes", with_modes(review.clone())),
        ];
        subjects.extend(each_mode(&review));
        subjects.extend(encapsulated(
            &subjects.first().map_or(review, |s| s.1.clone()),
        ));
        subjects
    }

    fn measured(isa: Isa) -> Vec<(&'static str, Config, bool)> {
        let delta = Config::new(Version::V2_0, isa.xlen());
        let mut full = delta.clone();
        full.full_address = true;
        let mut reference = delta.clone();
        reference.context_width = 32;
        reference.ecause_width = 5;
        reference.resync.max = 0;
        reference.resync.rule = ResyncRule::Exceeded;
        let review = Config::new(Version::V2_05, isa.xlen());
        let irdepth = Config {
            return_stack_size: 5,
            implicit_return: true,
            ..delta.clone()
        };
        let mut subjects = vec![
            ("delta", delta, true),
            ("full", full, true),
            ("as the reference", reference, false),
        ];
        subjects.extend(each_mode(&review).map(|(name, config)| (name, config, true)));
        subjects.push(("all modes", with_modes(review), true));
        subjects.push(("2.0, returns", irdepth, false));
        subjects
    }
}

/// Each encapsulation, of the same packets.
fn encapsulated(config: &Config) -> Vec<(&'static str, Config)> {
    let riscv = Encapsulation {
        src_bits: 8,
        time_bytes: 2,
        sync_bytes: 256,
        ..Encapsulation::new(Form::Riscv)
    };
    let smi = Encapsulation {
        src_bits: 8,
        ..Encapsulation::new(Form::Smi)
    };
    let esp32 = Encapsulation {
        sync_bytes: 256,
        ..Encapsulation::new(Form::Esp32)
    };
    let forms = [
        ("riscv", riscv),
        ("smi", smi),
        ("atb", Encapsulation::new(Form::Atb)),
        ("esp32", esp32),
        ("slots", Encapsulation::new(Form::Slots)),
    ];
    let with = |(name, encapsulation)| {
        let config = Config {
            encapsulation,
            ..config.clone()
        };
        (name, config)
    };
    forms.map(with).to_vec()
}

/// The modes that make traces small, each alone.
fn each_mode(config: &Config) -> [(&'static str, Config); 3] {
    let all = with_modes(config.clone());
    let predictor = Config {
        bpred_size: all.bpred_size,
        branch_prediction: true,
        ..config.clone()
    };
    let cache = Config {
        cache_size: all.cache_size,
        jump_target_cache: true,
        ..config.clone()
    };
    let returns = Config {
        return_stack_size: all.return_stack_size,
        implicit_return: true,
        ..config.clone()
    };
    [
        ("predictor", predictor),
        ("cache", cache),
        ("returns", returns),
    ]
}

/// All of them, with tables of the usual sizes.
fn with_modes(config: Config) -> Config {
    Config {
        f0s_width: 1,
        bpred_size: 7,
        branch_prediction: true,
        cache_size: 5,
        jump_target_cache: true,
        return_stack_size: 5,
        implicit_return: true,
        ..config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In implicit exception mode, a trap packet with an address comes between two
    /// support packets. The trace may start with it after a loss.
    #[test]
    fn a_trap_with_an_address_ends_a_loss() {
        Case::new(77_000_365).identity(2000).unwrap();
    }

    /// The PULP tracer reports `tval` of interrupts.
    #[test]
    fn interrupts_may_have_a_tval() {
        Case::new(2_203_000_057).identity(1000).unwrap();
    }

    /// A change of context in a loop whose rounds are not counted, and one at its jump.
    #[test]
    fn a_new_start_is_at_a_jump() {
        Case::new(2_234_000_011).identity(1500).unwrap();
    }

    /// The bits that fill the last byte are not taken for bits of the address.
    #[test]
    fn a_shortened_address_ends_before_the_padding() {
        Case::new(2_227_000_114).identity(500).unwrap();
        Case::new(2_225_000_125).identity(5000).unwrap();
    }

    /// One hart reports a loss and starts again later; another, in the same stream,
    /// starts in between.
    #[test]
    fn the_losses_of_several_harts_are_their_own() {
        Case::new(616_000_024).identity(1000).unwrap();
    }
}
