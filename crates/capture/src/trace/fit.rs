//! Checks whether a trace with given settings can represent a program, and what
//! it omits.

use super::Settings;
use super::passed::Switches;
use crate::config::{Config, EtraceParameters, Filter, Ingress, Origin, Setting};
use crate::input;
use crate::program::CodePart;
use hartrace_etrace as etrace;
use hartrace_flow::filter::{FilterConfig, Input};
use hartrace_isa::{Ext, Isa, csr};
use hartrace_ntrace::TriggerAction::{Off, On};
use hartrace_tandem as tandem;

/// Codes of exceptions below this are the ones every hart has.
const USUAL_ECAUSE: u8 = 4;

/// Settings that do not suit a hart and its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Which, and why not.
    pub message: String,
    /// What they contradict.
    pub note: Option<String>,
    /// What to change.
    pub help: &'static str,
}

impl Settings {
    /// Checks that a decoder can follow the program. Gives what the trace will
    /// not hold in full, if anything.
    ///
    /// # Errors
    ///
    /// Settings by which no decoder could follow it.
    pub fn fit<'a>(
        &self,
        config: &Config,
        isa: Isa,
        code: impl IntoIterator<Item = CodePart<'a>>,
    ) -> Result<Option<Misfit>, Misfit> {
        self.fit_harts(config)?;
        match self {
            Settings::Ntrace(_) => Ok(None),
            Settings::Etrace(etrace) => fit_etrace(etrace, &config.ingress, isa, code),
            Settings::Tandem(tandem) => fit_tandem(tandem, config, isa),
        }
    }

    /// Checks that there is room for the harts of `[hart]`. Frames of CoreSight have
    /// sources of their own, and so do containers of tandem traces.
    fn fit_harts(&self, config: &Config) -> Result<(), Misfit> {
        let harts = config.hart.harts.as_ref().map_or(1, |harts| harts.value);
        let (bits, first, help) = match self {
            Settings::Ntrace(ntrace) => (
                ntrace.src_bits,
                ntrace.src_id,
                "make src_bits in [ntrace] larger, or leave it out",
            ),
            Settings::Etrace(_) if config.transport.coresight.is_some() => return Ok(()),
            Settings::Etrace(etrace) => (
                etrace.encapsulation.src_bits,
                etrace.encapsulation.src_id,
                "leave out form in [etrace.encapsulation], or use one with sources, such as \
                 \"riscv\" with src_bits = 8",
            ),
            Settings::Tandem(_) => return Ok(()),
        };
        let room = (1 << bits) - u32::from(first);
        if harts <= room {
            return Ok(());
        }
        let room = match room {
            1 => "one hart".to_owned(),
            _ => format!("{room} harts"),
        };
        Err(Misfit {
            message: format!("the trace has room for {room}, but there are {harts}"),
            note: None,
            help,
        })
    }

    /// Checks that packets of these settings can have the addresses of a program's
    /// instructions, so that decoding makes sense.
    ///
    /// # Errors
    ///
    /// Settings by which no encoder could have traced it.
    pub fn fit_decoder(&self, isa: Isa) -> Result<(), Misfit> {
        match self {
            Settings::Etrace(etrace) => fit_lsb(etrace, isa),
            Settings::Ntrace(_) | Settings::Tandem(_) => Ok(()),
        }
    }

    /// Checks that an encoder with the parameters in `[etrace.parameters]` can have
    /// these filters. What the section does not say is not limited.
    ///
    /// # Errors
    ///
    /// What the encoder lacks.
    pub fn fit_filter(&self, config: &Config, filter: &FilterConfig) -> Result<(), Misfit> {
        match self {
            Settings::Etrace(_) => fit_filter(&config.etrace.parameters, filter),
            Settings::Ntrace(_) | Settings::Tandem(_) => Ok(()),
        }
    }

    /// The settings by which not everything is traced.
    #[must_use]
    pub fn leaves_out(&self) -> Option<&'static str> {
        let queue = match self {
            Settings::Ntrace(ntrace) => ntrace.queue,
            Settings::Etrace(etrace) => etrace.queue,
            Settings::Tandem(tandem) => return hides_flow(tandem).then_some("absent in [tandem]"),
        };
        let drops = queue.is_some_and(|queue| !queue.stall);
        drops.then_some("queue_bytes without queue_stall")
    }

    /// What starts and stops the encoder.
    pub(super) fn switches(&self) -> Switches {
        match self {
            Settings::Ntrace(ntrace) => {
                let inputs = |wanted| {
                    let actions = ntrace.external.iter().zip(0..);
                    let bits = actions.map(|(action, bit)| u8::from(*action == wanted) << bit);
                    bits.sum()
                };
                Switches {
                    starts_disabled: ntrace.starts_disabled,
                    triggers: ntrace.triggers,
                    external_on: inputs(On),
                    external_off: inputs(Off),
                }
            }
            Settings::Etrace(etrace) => Switches {
                starts_disabled: etrace.starts_disabled,
                triggers: etrace.triggers,
                ..Switches::default()
            },
            Settings::Tandem(_) => Switches::default(),
        }
    }

    /// Adds to the state that a trace does not have; only a tandem trace has
    /// any.
    pub fn add_absent<N: AsRef<str>>(&mut self, names: impl IntoIterator<Item = N>) {
        if let Settings::Tandem(config) = self {
            for name in names {
                // They are names of elements.
                let _ = config.absent.add(name.as_ref());
            }
        }
    }
}

/// Whether the state by which instructions and traps are known is absent.
fn hides_flow(config: &tandem::Config) -> bool {
    let absent = &config.absent;
    let mut causes = [csr::MCAUSE, csr::SCAUSE]
        .into_iter()
        .map(tandem::Register::csr);
    let causes = causes.any(|csr| absent.registers.contains(csr) || absent.in_traps.contains(csr));
    absent.pc || absent.insn || causes
}

fn fit_tandem(
    tandem: &tandem::Config,
    config: &Config,
    isa: Isa,
) -> Result<Option<Misfit>, Misfit> {
    if config.filter != Filter::default() {
        let note = "a tandem trace records every instruction, because each depends on those \
            before it";
        return Err(Misfit {
            message: "[filter] cannot be used with a tandem trace".to_owned(),
            note: Some(note.to_owned()),
            help: "remove the section; to omit parts of the state, use absent in [tandem]",
        });
    }
    if tandem.xlen != isa.xlen() {
        let (said, bits) = (tandem.xlen.bits(), isa.xlen().bits());
        return Err(Misfit {
            message: format!("xlen = {said} in [tandem] does not match a {bits}-bit hart"),
            note: Some(format!("the instruction set is {isa}")),
            help: "remove xlen: it follows from the instruction set",
        });
    }
    Ok(None)
}

fn fit_etrace<'a>(
    config: &etrace::Config,
    ingress: &Ingress,
    isa: Isa,
    code: impl IntoIterator<Item = CodePart<'a>>,
) -> Result<Option<Misfit>, Misfit> {
    if ingress.all_jumps.as_ref().is_some_and(|s| s.value) {
        let note = "the encoder would report jumps as branches, but a decoder expects jumps";
        return Err(Misfit {
            message: "all_jumps = true in [ingress] cannot be used with E-Trace".to_owned(),
            note: Some(note.to_owned()),
            help: "remove it: it is a mode of N-Trace",
        });
    }
    let signal = ingress.sijump.as_ref();
    if config.sijump && signal.is_some_and(|s| !s.value && s.origin != Origin::Default) {
        let note = "the encoder would not know which jumps are sequentially inferable, and a \
            decoder infers all of them";
        return Err(Misfit {
            message: "sijump = true in [etrace] needs sijump = true in [ingress]".to_owned(),
            note: Some(note.to_owned()),
            help: "change one of them; in an .scf file the port's is sijump_p",
        });
    }
    fit_lsb(config, isa)?;
    fit_addresses(config, code)?;
    let width = config.ecause_width;
    Ok((width < USUAL_ECAUSE).then(|| Misfit {
        message: format!("ecause_width = {width} in [etrace] truncates the causes of traps"),
        note: None,
        help: "set 4 or more: most harts use codes up to 15, and the largest code is 63",
    }))
}

fn fit_filter(encoder: &EtraceParameters, filter: &FilterConfig) -> Result<(), Misfit> {
    let selected = filter.selected | filter.data_selected;
    let units = || {
        let units = filter.filters.iter().enumerate();
        units.filter(|(n, unit)| selected >> n & 1 != 0 && unit.enabled)
    };
    let comparators = || units().flat_map(|(_, unit)| unit.comparators).flatten();
    let needed = |most: Option<u32>| most.map_or(0, |most| most + 1);
    let filters = needed(units().map(|(n, _)| n as u32).max());
    let pairs = needed(comparators().map(u32::from).max());
    let compares = |input: Input| {
        comparators().any(|n| {
            let pair = filter.comparators.get(usize::from(n));
            pair.is_some_and(|pair| pair.primary.input == input || pair.secondary.input == input)
        })
    };
    let traps = || units().any(|(_, unit)| unit.causes.is_some() || unit.trap.is_some());
    let number = |setting: &Option<Setting<u8>>| {
        let given = setting.as_ref();
        given.map_or(u32::MAX, |setting| setting.value.into())
    };
    let can = |setting: &Option<Setting<bool>>| setting.as_ref().is_none_or(|s| s.value);
    let excint = number(&encoder.filter_excint) > 0;
    let checks = [
        (filters <= number(&encoder.filters), "filters"),
        (pairs <= number(&encoder.comparators), "comparators"),
        (
            can(&encoder.filter_context) || !compares(Input::Context),
            "filter_context",
        ),
        (
            can(&encoder.filter_privilege) || !units().any(|(_, unit)| unit.modes.is_some()),
            "filter_privilege",
        ),
        (excint || !traps(), "filter_excint"),
        (
            can(&encoder.filter_tval) && excint || !compares(Input::Tval),
            "filter_tval",
        ),
        (
            can(&encoder.filter_impdef) || !units().any(|(_, unit)| unit.impdef.is_some()),
            "filter_impdef",
        ),
    ];
    match checks.into_iter().find(|(good, _)| !good) {
        None => Ok(()),
        Some((_, name)) => Err(Misfit {
            message: format!("{name} in [etrace.parameters] does not allow the [filter] given"),
            note: Some(format!(
                "it takes {filters} filters and {pairs} comparators"
            )),
            help: "use a simpler [filter], or correct the parameters of the encoder",
        }),
    }
}

/// Instructions may start at any bit that is traced.
fn fit_lsb(config: &etrace::Config, isa: Isa) -> Result<(), Misfit> {
    if config.iaddress_lsb > 1 && isa.has(Ext::Zca) {
        let message = "iaddress_lsb = 2 in [etrace] cannot be used with compressed instructions";
        return Err(Misfit {
            message: message.to_owned(),
            note: Some(format!("the instruction set is {isa}")),
            help: "set iaddress_lsb = 1, or give an --isa without compressed instructions",
        });
    }
    Ok(())
}

/// The upper bits that are not traced must repeat the highest one that is.
fn fit_addresses<'a>(
    config: &etrace::Config,
    code: impl IntoIterator<Item = CodePart<'a>>,
) -> Result<(), Misfit> {
    let width = u32::from(config.iaddress_width);
    let held = |address: u64| {
        let unused = 64u32.saturating_sub(width);
        let extended = (address.checked_shl(unused).unwrap_or(0)).cast_signed() >> unused;
        config.xlen.wrap(extended.cast_unsigned()) == config.xlen.wrap(address)
    };
    for (path, first, size) in code {
        let last = first.wrapping_add(size.saturating_sub(1));
        let Some(address) = [first, last].into_iter().find(|&address| !held(address)) else {
            continue;
        };
        let name = input::name(path);
        let top = width.saturating_sub(1);
        return Err(Misfit {
            message: format!("iaddress_width = {width} in [etrace] is too small for {name}"),
            note: Some(format!(
                "it has code at {address:#x}; all upper bits must equal bit {top}"
            )),
            help: "remove iaddress_width: the default is the width of the program's addresses",
        });
    }
    Ok(())
}
