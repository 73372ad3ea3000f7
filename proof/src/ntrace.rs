//! Checks N-Trace against itself: encode, decode, compare.

mod judge;
mod setting;

use hartrace_capture::trace::Settings;
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Event, HartId, Image};
use hartrace_isa::{Isa, ItypeTable};
use hartrace_ntrace::{
    Config, Decoder, Encoder, Framer, ImplicitReturn, Message, Periodic, Piece, RepeatedHistory,
    Sync, SyncUnit, Timestamps, TraceMode, TriggerAction, Version,
};

use crate::generate::Spec;
use crate::trace::{Counters, Format, Out, Point, Pulse, Rules, Subjects, points};
use judge::NJudge;

/// The format.
#[derive(Clone, Copy, Debug)]
pub struct NTrace;

/// How harts are traced.
pub type Setting = crate::trace::Setting<NTrace>;

/// A program and how it is traced.
pub type Case = crate::trace::identity::Case<NTrace>;

impl Format for NTrace {
    const NAME: &'static str = "ntrace";

    type Config = Config;
    type Encoder<S: Out> = Encoder<S>;
    type Decoder<'i> = Decoder<'i>;
    type Judge = NJudge;

    fn setting(number: u64, isa: Isa) -> Setting {
        setting::numbered(number, isa)
    }

    fn tame(setting: &mut Setting, spec: &mut Spec) {
        setting::tame(setting, spec);
    }

    fn bound(config: &mut Config) {
        config.max_expansion = 1 << 12;
    }

    fn trusts(config: &Config) -> bool {
        config.implicit_return == ImplicitReturn::Count
    }

    fn distrust(config: &mut Config) {
        config.implicit_return = ImplicitReturn::Full;
    }

    fn has_loss(setting: &Setting) -> bool {
        setting.loses || setting.config.queue.is_some_and(|q| !q.stall)
    }

    fn rules(setting: &Setting) -> Rules {
        let config = &setting.config;
        Rules {
            isa: setting.port.isa,
            xlen: config.xlen,
            triggers: config.triggers,
            starts_disabled: config.starts_disabled,
            external: config.external.map(|action| match action {
                TriggerAction::None => Pulse::Nothing,
                TriggerAction::On => Pulse::On,
                TriggerAction::Off => Pulse::Off,
                TriggerAction::Notify => Pulse::Notify,
            }),
            power: true,
            reset_stops: false,
            retires: config.retires,
            loses: NTrace::has_loss(setting),
            lost: "NT0401",
            // Whether a return was implied is not reported where a trace stops.
            open: config.implicit_return != ImplicitReturn::Off,
            open_trap: false,
            breaks_off: false,
            one_trap: false,
            last_trap_untold: true,
            rounds: None,
        }
    }

    fn judge(setting: &Setting) -> NJudge {
        NJudge::new(setting)
    }

    fn settings(config: &Config) -> Settings {
        Settings::Ntrace(config.clone())
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

    fn restarts(config: &Config, bytes: &[u8], _: &mut bool) -> bool {
        let layout = config.layout();
        let mut framer = Framer::new();
        let mut rest = bytes;
        while let Some((_, piece)) = framer.next_piece(&mut rest) {
            if let Piece::Message(bytes) = piece
                && let Ok(message) = Message::read(bytes, &layout)
                && message.body.sync() == Some(Sync::OVERRUN)
            {
                return true;
            }
        }
        false
    }

    fn sync_points(config: &Config, bytes: &[u8]) -> Vec<Point> {
        let stack = config.implicit_return != ImplicitReturn::Off;
        let keeps = stack && config.version == Version::Rc7 && config.markers_keep_stack;
        let layout = config.layout();
        points(Framer::new(), bytes, |piece| {
            let Piece::Message(bytes) = *piece else {
                return None;
            };
            let message = Message::read(bytes, &layout).ok()?;
            let sync = message.body.sync()?;
            let src = u32::from(message.src).wrapping_sub(u32::from(config.src_id));
            let hart = HartId(src & ((1 << config.src_bits) - 1));
            (!keeps || !sync.is_marker()).then_some(hart)
        })
    }

    fn first_len(_: &Config, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let first = Framer::new().next_piece(&mut rest).is_some();
        usize::from(first) * (bytes.len() - rest.len())
    }

    fn describe(config: &Config, message: &[u8]) -> String {
        format!("{:x?}", Message::read(message, &config.layout()))
    }

    fn field(config: &Config, bytes: &[u8], at: usize, bit: u32) -> String {
        field(config, bytes, at, bit).unwrap_or_else(|| "?".into())
    }

    fn plain(config: &Config, event: Event) -> Event {
        match (event, config.timestamps) {
            // Turns of a narrow clock.
            (Event::Time(time), Some(Timestamps { width, .. })) if width < 64 => {
                Event::Time(time & ((1 << width) - 1))
            }
            _ => event,
        }
    }

    fn tails(
        config: &Config,
        mut tail: Vec<Event>,
        mut whole: Vec<Event>,
    ) -> (Vec<Event>, Vec<Event>) {
        whole.drain(..whole.len().saturating_sub(tail.len()));
        // The first context is reported in parts, and one part is known.
        let part = |e: &Event| !matches!(e, Event::Context(_));
        let first = tail.iter().take_while(|e| part(e)).count() + 1;
        if config.hcontext && first <= tail.len() {
            for events in [&mut tail, &mut whole] {
                let mut nth = 0;
                events.retain(|e| {
                    nth += 1;
                    nth > first + 1 || (nth <= first && part(e))
                });
            }
        }
        (tail, whole)
    }
}

fn field(config: &Config, bytes: &[u8], at: usize, bit: u32) -> Option<String> {
    let mut rest = bytes;
    let mut framer = Framer::new();
    while let Some((first, piece)) = framer.next_piece(&mut rest) {
        let Piece::Message(bytes) = piece else {
            continue;
        };
        let first = first as usize;
        if at >= first + bytes.len() {
            continue;
        }
        let message = Message::read(bytes, &config.layout());
        let name = message.map(|m| format!("{:?}", m.body));
        let name = name.unwrap_or_else(|_| "?".into());
        let name = name.split(' ').next().unwrap_or_default();
        if bit < 2 {
            return Some(format!("{name} MSEO"));
        }
        let inside = at.checked_sub(first)?;
        let fields = bytes.iter().take(inside).filter(|b| *b & 3 != 0).count();
        return Some(match inside {
            0 => {
                let tcode = (bytes.first()? >> 2) ^ (1 << (bit - 2));
                format!("{name} TCODE, now {tcode}")
            }
            _ => format!("{name} variable field {fields}"),
        });
    }
    None
}

/// trTeInstSyncMax of the traces to be damaged: a sync every 2^13 halfwords.
const SYNC_MAX: u8 = 9;

impl Subjects for NTrace {
    const TABLE: ItypeTable = ItypeTable::NTrace10;

    fn damaged(isa: Isa) -> Vec<(&'static str, Config)> {
        let mut htm = Config::new(Version::V1_0, isa.xlen());
        htm.periodic = Periodic {
            unit: SyncUnit::Halfwords,
            max: SYNC_MAX,
            delayed: false,
        };
        let mut btm = htm.clone();
        btm.mode = TraceMode::Btm;
        let mut full = htm.clone();
        full.implicit_return = ImplicitReturn::Full;
        full.repeated_history = RepeatedHistory::On;
        vec![("HTM", htm), ("BTM", btm), ("HTM full", full)]
    }

    fn measured(isa: Isa) -> Vec<(&'static str, Config, bool)> {
        let htm = Config::new(Version::V1_0, isa.xlen());
        let mut btm = htm.clone();
        btm.mode = TraceMode::Btm;
        let mut returns = htm.clone();
        returns.implicit_return = ImplicitReturn::Full;
        let mut repeats = htm.clone();
        repeats.repeated_history = RepeatedHistory::On;
        let mut full = returns.clone();
        full.repeated_history = RepeatedHistory::On;
        vec![
            ("BTM", btm, true),
            ("HTM", htm, true),
            ("HTM + IR", returns, false),
            ("HTM + RH", repeats, false),
            ("HTM full", full, true),
        ]
    }
}
