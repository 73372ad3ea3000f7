//! Finds the signals of a port among the variables of a waveform.

use super::fields::{Block, Rvfi};
use super::names::{Hints, Place, clock_rank, place, reset_level};
use crate::config::Wave;
use hartrace_files::wave_port::{CSR_PARTS, WavePort, csr_field};
use hartrace_flow::order;
use hartrace_isa::{Xlen, csr};
use hartrace_wave::{Header, Var, Watch, Watched, WaveError, WaveFormat, read_header};
use std::collections::BTreeMap;
use std::fmt;

/// Lanes of a port, or blocks in a cycle.
const MAX_LANES: u32 = 64;

/// Where the signals of a port are.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The port.
    pub port: WavePort,
    /// The format of the file.
    pub format: WaveFormat,
    /// Its scope and what its names have in common.
    pub group: String,
    /// The name of the clock.
    pub clock: String,
    /// The name of the reset and whether it is active high.
    pub reset: Option<(String, bool)>,
    /// The width of the hart.
    pub xlen: Xlen,
    pub(super) header: Header,
    pub(super) watch: Watch,
    /// The names of watched signals.
    pub(super) names: Vec<String>,
    pub(super) reset_at: Option<usize>,
    pub(super) lanes: Vec<Lane>,
}

/// The signals of a lane, by the number of their field.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) fields: Vec<Option<Bits>>,
    pub(super) csrs: Vec<Csr>,
}

/// Bits of a watched signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) watched: usize,
    pub(super) lsb: u32,
    pub(super) width: u32,
}

/// The signals of a CSR.
#[derive(Clone, Copy, Debug)]
pub(super) struct Csr {
    pub(super) number: u16,
    /// As [`CSR_PARTS`].
    pub(super) parts: [Option<Bits>; 4],
}

/// Why the port of a waveform is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The header cannot be read.
    Wave(WaveError),
    /// There is no port of a known kind, or not the one that was asked for.
    NoPort(Option<WavePort>),
    /// There are several ports: their kinds and names.
    Several(Vec<(WavePort, String)>),
    /// A signal of the configuration is not in the file: its key and its name.
    NoSignal(String, String),
    /// A name of the configuration means several variables: its key and these.
    Ambiguous(String, Vec<String>),
    /// A signal that the port cannot do without is missing: the port and the field.
    Missing(String, &'static str),
    /// No clock was found, or several: these.
    Clock(Vec<String>),
    /// Whether the reset is active high or low is not known: its name.
    ResetLevel(String),
    /// A signal has a width that is no multiple of the number of lanes: its name, its
    /// width and the lanes.
    Width(String, u32, u32),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Wave(error) => error.fmt(f),
            MapError::NoPort(None) => f.write_str("it has no port that is known"),
            MapError::NoPort(Some(port)) => write!(f, "it has no {}", port.name()),
            MapError::Several(_) => f.write_str("it has several ports"),
            MapError::NoSignal(key, name) => {
                write!(f, "it has no variable `{name}` ({key})")
            }
            MapError::Ambiguous(key, _) => write!(f, "{key} may be one of several variables"),
            MapError::Missing(port, field) => {
                write!(f, "the port `{port}` has no signal `{field}`")
            }
            MapError::Clock(found) if found.is_empty() => f.write_str("no clock was found"),
            MapError::Clock(_) => f.write_str("several signals may be the clock"),
            MapError::ResetLevel(name) => {
                write!(f, "it is not known whether `{name}` is active high or low")
            }
            MapError::Width(name, width, lanes) => {
                write!(
                    f,
                    "`{name}` has {width} bits, which are not those of {lanes} lanes"
                )
            }
        }
    }
}

impl std::error::Error for MapError {}

/// A variable that may matter.
#[derive(Clone, Debug)]
struct Item {
    field: String,
    lane: Option<u32>,
    name: String,
    /// The number of the bit, if it is one.
    bit: Option<i64>,
    watched: Watched,
}

/// Variables of a port.
type Group = Vec<Item>;

/// All that was found in a header.
#[derive(Default)]
struct Found {
    /// By kind of port and group.
    groups: BTreeMap<(usize, String), Group>,
    /// Names like those of clocks and resets, of one bit: the scope, the name, the signal.
    bits: Vec<(String, String, Watched)>,
    /// Variables that the configuration names: the name there, the full one, the signal.
    named: Vec<(String, String, Watched)>,
}

/// The kinds of ports that are looked for: those of CVA6 are ingress ports.
const KINDS: [WavePort; 2] = [WavePort::Rvfi, WavePort::Ingress];

impl Found {
    /// Looks at all variables of a file that starts with `head`.
    fn read(format: WaveFormat, head: &[u8], settings: &Wave) -> Result<(Found, Header), MapError> {
        let text = |setting: &'_ Option<crate::config::Setting<String>>| {
            setting.as_ref().map(|setting| setting.value.clone())
        };
        let (scope, prefix) = (text(&settings.scope), text(&settings.prefix));
        let hints = Hints {
            scope: scope.as_deref(),
            prefix: prefix.as_deref(),
        };
        let signals = settings.signals.0.values().flat_map(|names| &names.value);
        let others = [text(&settings.clock), text(&settings.reset)];
        let wanted: Vec<String> = signals
            .cloned()
            .chain(others.into_iter().flatten())
            .collect();
        let mut found = Found::default();
        let header = read_header(format, head, &mut |var| found.see(var, hints, &wanted));
        let header = header.map_err(MapError::Wave)?;
        Ok((found, header.ok_or(MapError::Wave(WaveError::Truncated))?))
    }

    fn see(&mut self, var: &Var<'_>, hints: Hints<'_>, wanted: &[String]) {
        let full = || match var.scope.is_empty() {
            true => var.name.to_owned(),
            false => format!("{}.{}", var.scope, var.name),
        };
        let bit = var
            .range
            .filter(|range| var.width == 1 && range.0 == range.1);
        for (number, kind) in KINDS.into_iter().enumerate() {
            if let Some(Place { group, field, lane }) = place(kind, var.scope, var.name, hints) {
                let items = self.groups.entry((number, group)).or_default();
                items.push(Item {
                    field,
                    lane,
                    name: full(),
                    bit: bit.map(|range| range.0),
                    watched: Watched::of(var),
                });
            }
        }
        let is_bit = var.width == 1 && bit.is_none();
        if is_bit && (clock_rank(var.name).is_some() || reset_level(var.name).is_some()) {
            let names = (var.scope.to_owned(), var.name.to_owned());
            self.bits.push((names.0, names.1, Watched::of(var)));
        }
        if !wanted.is_empty() {
            let name = full();
            let is_meant = |wanted: &&String| {
                let rest = name.strip_suffix(wanted.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            };
            for meant in wanted.iter().filter(is_meant) {
                self.named
                    .push((meant.clone(), name.clone(), Watched::of(var)));
            }
        }
    }

    /// The ports that there are: their kinds, names and variables.
    fn ports(&self, asked: Option<WavePort>) -> Vec<(WavePort, &str, &Group)> {
        let all = self.groups.iter().filter_map(|((number, name), group)| {
            let has = |field: &str| group.iter().any(|item| item.field == field);
            let port = match KINDS.get(*number)? {
                WavePort::Rvfi => WavePort::Rvfi,
                _ if asked == Some(WavePort::Ingress) => WavePort::Ingress,
                _ if has("valid") && has("cycles") => WavePort::Cva6,
                _ if asked == Some(WavePort::Cva6) && has("valid") => WavePort::Cva6,
                _ => WavePort::Ingress,
            };
            let wanted = asked.is_none_or(|asked| asked == port);
            let mut needed = port.fields().iter().take(port.needed());
            (wanted && needed.all(|field| has(field))).then_some((port, name.as_str(), group))
        });
        all.collect()
    }

    /// The one port; what is the same under several names counts once.
    fn port(&self, asked: Option<WavePort>) -> Result<(WavePort, &str, &Group), MapError> {
        let mut ports = self.ports(asked);
        // It shows more than an ingress port.
        if ports.iter().any(|port| port.0 == WavePort::Rvfi) {
            ports.retain(|port| port.0 == WavePort::Rvfi);
        }
        // From the outermost scope on.
        order::sort_by_key(&mut ports, |(_, name, _)| {
            (name.matches('.').count(), name.len())
        });
        let mut kept: Vec<(WavePort, &str, &Group)> = Vec::new();
        for port in ports {
            if !kept.iter().any(|known| is_same(known, &port)) {
                kept.push(port);
            }
        }
        if let [first, rest @ ..] = kept.as_slice()
            && is_chain(first, rest)
        {
            return Ok(*first);
        }
        Err(match kept.is_empty() {
            true => MapError::NoPort(asked),
            false => {
                let names = kept
                    .iter()
                    .map(|(port, name, _)| (*port, (*name).to_owned()));
                MapError::Several(names.collect())
            }
        })
    }

    /// The variable that a name of the configuration means.
    fn named(&self, key: &str, name: &str) -> Result<(String, Watched), MapError> {
        let meant = self.named.iter().filter(|found| found.0 == name);
        let meant: Vec<_> = meant.collect();
        // A full name is no part of another.
        if let Some((_, full, watched)) = meant.iter().find(|found| found.1 == name) {
            return Ok((full.clone(), watched.clone()));
        }
        let [first, rest @ ..] = meant.as_slice() else {
            return Err(MapError::NoSignal(key.to_owned(), name.to_owned()));
        };
        match rest.iter().all(|other| other.2 == first.2) {
            true => Ok((first.1.clone(), first.2.clone())),
            false => {
                let names = meant.iter().map(|found| found.1.clone()).collect();
                Err(MapError::Ambiguous(key.to_owned(), names))
            }
        }
    }

    /// The signals of one bit in the innermost scope around a port that has any, of those
    /// that `rank` gives a rank: the best ones, each once.
    fn around(
        &self,
        group: &str,
        rank: &dyn Fn(&str) -> Option<u8>,
    ) -> Vec<&(String, String, Watched)> {
        let best = |in_scope: &dyn Fn(&str) -> bool| {
            let ranked = self.bits.iter().filter_map(|found| {
                let rank = rank(&found.1).filter(|_| in_scope(&found.0))?;
                Some((rank, found))
            });
            let mut ranked: Vec<_> = ranked.collect();
            order::sort_by_key(&mut ranked, |(rank, _)| *rank);
            let best = ranked.first().map(|(rank, _)| *rank);
            let mut kept: Vec<&(String, String, Watched)> = Vec::new();
            for (_, found) in ranked.into_iter().filter(|(rank, _)| Some(*rank) == best) {
                if !kept.iter().any(|known| known.2 == found.2) {
                    kept.push(found);
                }
            }
            kept
        };
        let mut scope = group;
        while let Some((outer, _)) = scope.rsplit_once('.') {
            let found = best(&|at| at == outer);
            if !found.is_empty() {
                return found;
            }
            scope = outer;
        }
        best(&|_| true)
    }
}

/// Whether two ports are the same nets: those that a port cannot do without are.
fn is_same(a: &(WavePort, &str, &Group), b: &(WavePort, &str, &Group)) -> bool {
    let signals = |port: &(WavePort, &str, &Group)| {
        let needed = port.0.fields().iter().take(port.0.needed());
        let signals = needed.map(|field| {
            let items = port.2.iter().filter(|item| item.field == **field);
            items.map(|item| &item.watched).cloned().collect::<Vec<_>>()
        });
        signals.collect::<Vec<_>>()
    };
    a.0 == b.0 && signals(a) == signals(b)
}

/// Whether ports are one port that is led through scopes: each is within the one before,
/// with as many bits.
fn is_chain(first: &(WavePort, &str, &Group), rest: &[(WavePort, &str, &Group)]) -> bool {
    let width = |port: &(WavePort, &str, &Group)| {
        let items = port
            .2
            .iter()
            .filter(|item| item.field == "valid" || item.field == "iretire");
        items.map(|item| item.watched.width).sum::<u32>()
    };
    let scope = |name: &str| {
        name.rsplit_once('.')
            .map_or(String::new(), |(scope, _)| scope.to_owned())
    };
    let mut outer = scope(first.1);
    rest.iter().all(|port| {
        let inner = scope(port.1);
        let within = inner.strip_prefix(outer.as_str());
        let within = within.is_some_and(|rest| rest.starts_with('.'));
        outer = inner;
        within && port.0 == first.0 && width(port) == width(first)
    })
}

impl Plan {
    /// Finds the port of a waveform that starts with `head`, which has the whole header.
    ///
    /// # Errors
    ///
    /// A port that is not there, or not clear.
    pub fn new(
        format: WaveFormat,
        head: &[u8],
        asked: Option<WavePort>,
        settings: &Wave,
    ) -> Result<Plan, MapError> {
        let (found, header) = Found::read(format, head, settings)?;
        let asked = asked.or(settings.port.as_ref().map(|port| port.value));
        let (port, group, mut items) = match found.port(asked) {
            Ok((port, group, items)) => (port, group.to_owned(), items.clone()),
            // All of it may be in the configuration.
            Err(MapError::NoPort(Some(port))) if !settings.signals.0.is_empty() => {
                (port, "[wave.signals]".to_owned(), Vec::new())
            }
            Err(error) => return Err(error),
        };
        for (field, names) in &settings.signals.0 {
            items.retain(|item| item.field != *field);
            let several = names.value.len() > 1;
            for (lane, name) in (0..).zip(&names.value).filter(|(_, name)| *name != "none") {
                let (name, watched) = found.named(&format!("[wave.signals] {field}"), name)?;
                items.push(Item {
                    field: field.clone(),
                    lane: several.then_some(lane),
                    name,
                    bit: None,
                    watched,
                });
            }
        }
        let mut build = Build::default();
        let fields = joined(items);
        let lanes = lanes(port, &group, &fields)?;
        let xlen = build.lanes(port, &fields, lanes)?;
        let clock = clock(&found, &group, settings)?;
        let reset = reset(&found, &group, settings)?;
        let (clock, edge) = (build.watch(&clock.0, &clock.1), clock.0);
        let reset_at = reset
            .as_ref()
            .map(|(name, _, watched)| build.watch(name, watched));
        Ok(Plan {
            port,
            format,
            group,
            clock: edge,
            reset: reset.map(|(name, level, _)| (name, level)),
            xlen,
            header,
            watch: Watch {
                watched: build.watched,
                clock,
                edge: settings
                    .edge
                    .as_ref()
                    .map_or_else(Default::default, |s| s.value),
            },
            names: build.names,
            reset_at,
            lanes: build.lanes,
        })
    }

    /// Lanes of the port, or blocks in a cycle.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The unit of time as a power of ten of a second.
    #[must_use]
    pub fn exponent(&self) -> i8 {
        self.header.exponent
    }

    /// Whether the port has a field.
    pub(super) fn has(&self, field: usize) -> bool {
        let lane = self.lanes.first();
        lane.and_then(|lane| lane.fields.get(field))
            .is_some_and(Option::is_some)
    }

    /// Names of the state that the port does not show; of CSRs, see [`Plan::csrs`].
    pub(crate) fn absent(&self) -> Vec<&'static str> {
        let mut absent = vec!["trap.mstatus", "trap.sstatus", "csr", "trap.csr"];
        let mut without = |fields: &[Rvfi], name| {
            let shown = |field: &Rvfi| self.has(*field as usize);
            if self.port != WavePort::Rvfi || !fields.iter().all(shown) {
                absent.push(name);
            }
        };
        without(&[Rvfi::RdAddr, Rvfi::RdWdata], "gpr");
        without(&[Rvfi::FrdWvalid, Rvfi::FrdAddr, Rvfi::FrdWdata], "fpr");
        without(&[Rvfi::MemAddr, Rvfi::MemWmask, Rvfi::MemWdata], "store");
        if self.port == WavePort::Rvfi {
            without(&[Rvfi::Mode], "priv");
        }
        absent
    }

    /// CSRs whose writes the port shows.
    pub(crate) fn csrs(&self) -> impl Iterator<Item = u16> + '_ {
        let csrs = self.lanes.first().into_iter().flat_map(|lane| &lane.csrs);
        let shown = csrs.filter(|csr| matches!(csr.parts, [_, Some(_), _, Some(_)]));
        shown.map(|csr| csr.number)
    }
}

/// The ingress port of a waveform that starts with `head`, or that of CVA6, if it has one and
/// no other is asked for.
#[must_use]
pub fn ingress_in(head: &[u8], settings: &Wave) -> Option<WavePort> {
    let format = WaveFormat::detect(head).filter(|_| settings.port.is_none())?;
    let (found, _) = Found::read(format, head, settings).ok()?;
    let ports = found.ports(None);
    let mut kinds = ports.iter().map(|port| port.0);
    kinds.find(|port| *port != WavePort::Rvfi)
}

/// Fields with their signals, by lane; bits that stand alone are put together.
type Fields = BTreeMap<String, BTreeMap<Option<u32>, (String, Watched)>>;

fn joined(items: Vec<Item>) -> Fields {
    let mut lists: BTreeMap<(String, Option<u32>), Vec<Item>> = BTreeMap::new();
    for item in items {
        let key = (item.field.clone(), item.lane);
        lists.entry(key).or_default().push(item);
    }
    let mut fields = Fields::new();
    for ((field, lane), mut items) in lists {
        let bits = items.len() > 1 && items.iter().all(|item| item.bit.is_some());
        if bits {
            order::sort_by_key(&mut items, |item| item.bit);
            items.dedup_by_key(|item| item.bit);
        }
        let Some(first) = items.first() else {
            continue;
        };
        let name = first.name.clone();
        let watched = match bits {
            false => first.watched.clone(),
            true => {
                let mut watched = Watched::default();
                for part in items.iter().flat_map(|item| &item.watched.parts) {
                    let lsb = watched.width;
                    watched.width += 1;
                    watched.parts.push(hartrace_wave::Part { lsb, ..*part });
                }
                watched
            }
        };
        let lanes = fields.entry(field).or_default();
        lanes.insert(lane, (name, watched));
    }
    fields
}

/// How many lanes a port has.
fn lanes(port: WavePort, group: &str, fields: &Fields) -> Result<u32, MapError> {
    for field in port.fields().iter().take(port.needed()) {
        if !fields.contains_key(*field) {
            return Err(MapError::Missing(group.to_owned(), field));
        }
    }
    let numbers = fields.values().flat_map(|lanes| lanes.keys().flatten());
    if let Some(last) = numbers.max() {
        return Ok(last.saturating_add(1).min(MAX_LANES));
    }
    let width = |field: &str| {
        let lanes = fields.get(field).and_then(|lanes| lanes.get(&None));
        lanes.map(|(_, watched)| watched.width)
    };
    if let Some(valid) = width("valid") {
        return Ok(valid.clamp(1, MAX_LANES));
    }
    // Without a bit for each block, from the widths of others.
    let (itype, iaddr) = (width("itype").unwrap_or(4), width("iaddr").unwrap_or(64));
    let fits = |lanes: &u32| {
        let (itype, iaddr) = (
            f64::from(itype) / f64::from(*lanes),
            f64::from(iaddr) / f64::from(*lanes),
        );
        (itype == 3.0 || itype == 4.0) && iaddr.fract() == 0.0 && (30.0..=64.0).contains(&iaddr)
    };
    Ok((1..=8).find(fits).unwrap_or(1))
}

/// Signals on their way into a plan.
#[derive(Default)]
struct Build {
    watched: Vec<Watched>,
    names: Vec<String>,
    lanes: Vec<Lane>,
}

impl Build {
    /// The place of a signal, which is watched once.
    fn watch(&mut self, name: &str, watched: &Watched) -> usize {
        let known = self.watched.iter().position(|known| known == watched);
        known.unwrap_or_else(|| {
            self.watched.push(watched.clone());
            self.names.push(name.to_owned());
            self.watched.len() - 1
        })
    }

    /// Makes the lanes; the width of the hart.
    fn lanes(&mut self, port: WavePort, fields: &Fields, lanes: u32) -> Result<Xlen, MapError> {
        for lane in 0..lanes {
            let mut made = Lane::default();
            for (number, field) in port.fields().iter().enumerate() {
                let shared = port != WavePort::Rvfi && Block::is_shared(number);
                let bits = match fields.get(*field) {
                    Some(signals) => self.bits(signals, lane, lanes, shared)?,
                    None => None,
                };
                made.fields.push(bits);
            }
            for (field, signals) in fields {
                let Some((name, part)) = csr_field(field) else {
                    continue;
                };
                let Some(number) = csr::number(name) else {
                    // Those of a core of its own have no number.
                    continue;
                };
                let bits = self.bits(signals, lane, lanes, false)?;
                let at = made.csrs.iter().position(|csr| csr.number == number);
                let at = at.unwrap_or_else(|| {
                    made.csrs.push(Csr {
                        number,
                        parts: [None; CSR_PARTS.len()],
                    });
                    made.csrs.len() - 1
                });
                let place = made
                    .csrs
                    .get_mut(at)
                    .and_then(|csr| csr.parts.get_mut(part));
                if let Some(place) = place {
                    *place = bits;
                }
            }
            self.lanes.push(made);
        }
        let address = match port {
            WavePort::Rvfi => Rvfi::PcRdata as usize,
            WavePort::Ingress | WavePort::Cva6 => Block::Iaddr as usize,
        };
        let lane = self.lanes.first().and_then(|lane| lane.fields.get(address));
        let width = lane.copied().flatten().map_or(64, |bits| bits.width);
        Ok(if width <= 32 { Xlen::Rv32 } else { Xlen::Rv64 })
    }

    /// The bits of a lane.
    fn bits(
        &mut self,
        signals: &BTreeMap<Option<u32>, (String, Watched)>,
        lane: u32,
        lanes: u32,
        shared: bool,
    ) -> Result<Option<Bits>, MapError> {
        if let Some((name, watched)) = signals.get(&Some(lane)) {
            let at = self.watch(name, watched);
            let (lsb, width) = (0, watched.width);
            return Ok(Some(Bits {
                watched: at,
                lsb,
                width,
            }));
        }
        let Some((name, watched)) = signals.get(&None) else {
            // A lane without this signal, or one that all lanes share.
            let only = signals.get(&Some(0)).filter(|_| shared);
            return Ok(only.map(|(name, watched)| Bits {
                watched: self.watch(name, watched),
                lsb: 0,
                width: watched.width,
            }));
        };
        let width = match shared {
            true => watched.width,
            false if watched.width % lanes == 0 => watched.width / lanes,
            false => return Err(MapError::Width(name.clone(), watched.width, lanes)),
        };
        Ok(Some(Bits {
            watched: self.watch(name, watched),
            lsb: if shared { 0 } else { lane * width },
            width,
        }))
    }
}

/// The clock of a port.
fn clock(found: &Found, group: &str, settings: &Wave) -> Result<(String, Watched), MapError> {
    if let Some(clock) = &settings.clock {
        return found.named("[wave] clock", &clock.value);
    }
    match found.around(group, &clock_rank).as_slice() {
        [(scope, name, watched)] => Ok((format!("{scope}.{name}"), watched.clone())),
        several => {
            let names = several
                .iter()
                .map(|(scope, name, _)| format!("{scope}.{name}"));
            Err(MapError::Clock(names.collect()))
        }
    }
}

/// The reset of a port, if one is found, and whether it is active high.
fn reset(
    found: &Found,
    group: &str,
    settings: &Wave,
) -> Result<Option<(String, bool, Watched)>, MapError> {
    let level = settings.reset_active.as_ref().map(|level| level.value);
    let (name, watched) = match &settings.reset {
        Some(reset) if reset.value == "none" => return Ok(None),
        Some(reset) => found.named("[wave] reset", &reset.value)?,
        None => {
            let rank = |name: &str| reset_level(name).map(|_| 0);
            match found.around(group, &rank).as_slice() {
                [(scope, name, watched)] => (format!("{scope}.{name}"), watched.clone()),
                // Without one, the port itself shows what counts.
                _ => return Ok(None),
            }
        }
    };
    let last = name.rsplit('.').next().unwrap_or(&name);
    match level.or_else(|| reset_level(last)) {
        Some(level) => Ok(Some((name, level, watched))),
        None => Err(MapError::ResetLevel(name)),
    }
}
