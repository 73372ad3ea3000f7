//! Steps through the port and through the check.

use std::ops::ControlFlow;

use hartrace_flow::DataPort;
use hartrace_flow::{
    Cause, Check, Consumer, Context, Ctype, Effects, Event, Exit, HartId, Ingress, Insn,
    ItypeWidth, Mode, Observer, Port, PortConfig, Retirement, Retires, Run, Signal, Step,
    StepTransfers, Transfer, Trap, TrapStep,
};
use hartrace_isa::{Flow, ItypeTable};

use super::isa::set;
use super::{Input, ensure};

const HART: HartId = HartId(0);
const MODES: [Mode; 3] = [Mode::M, Mode::S, Mode::U];
const SIGNALS: [Signal; 11] = [
    Signal::Halted,
    Signal::Resumed,
    Signal::Reset,
    Signal::PowerDown,
    Signal::PowerUp,
    Signal::TraceOn,
    Signal::TraceOff,
    Signal::Notify,
    Signal::External(9),
    Signal::Lost,
    Signal::Untraced,
];

/// Any steps, sensible or not: every halfword that retired is shown once, no
/// block is longer than the port allows, and the check finds steps equal to
/// themselves.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let mut input = Input::new(bytes);
    let isa = set(&mut input);
    let choices = input.number(2);
    let room = 1 + u32::from(input.byte());
    let retirement = if choices & 1 != 0 {
        Retirement::Block(room)
    } else {
        Retirement::Single
    };
    let config = PortConfig {
        isa,
        itype_width: if choices & 2 != 0 {
            ItypeWidth::Three
        } else {
            ItypeWidth::Four
        },
        table: if choices & 4 != 0 {
            ItypeTable::NTrace10
        } else {
            ItypeTable::ETrace20
        },
        retirement,
        sijump: choices & 8 != 0,
        all_jumps: choices & 16 != 0,
        retires: if choices & 32 != 0 {
            Retires::EcallAndEbreak
        } else {
            Retires::Neither
        },
        ctype: Ctype::from_code((choices >> 6 & 3) as u8).unwrap_or_default(),
        tval_bits: (choices >> 8 & 0xff) as u8,
        data: DataPort::None,
        multiple: false,
    };
    let (mut shown, mut longest) = (0u64, 0);
    let mut port = Port::new(config, |_: HartId, row: &Ingress| {
        shown += u64::from(row.iretire);
        longest = longest.max(row.iretire);
    });
    let mut transfers = 0u64;
    let mut flows = StepTransfers::new(isa, |_: HartId, _: &Transfer| transfers += 1);
    let (mut check, mut events) = (Check::new(), Vec::new());
    let (mut retired, mut steps) = (0u64, 0u64);
    let mut pc = input.number(8);
    while !input.is_empty() && steps < 4096 {
        let step = step(&mut input, &mut pc, isa);
        if let Step::Insn(insn) = &step {
            retired += u64::from(insn.len()) / 2;
        }
        if let (Step::Trap(t), Retires::EcallAndEbreak) = (&step, config.retires) {
            let ecall = t.bits.filter(|&b| Flow::of_retired(b, isa) == Flow::Trap);
            retired += ecall.map_or(0, |b| u64::from(hartrace_isa::length(b as u16)) / 2);
        }
        events.extend(event(&step));
        let effects = Effects::default();
        port.step(HART, &step, &effects);
        flows.step(HART, &step, &effects);
        check.step(HART, &step, &effects);
        steps += 1;
    }
    port.finish();
    drop(port);
    flows.finish();
    let _ = flows.into_sink();
    ensure(shown == retired, || {
        format!("{shown} of {retired} halfwords")
    })?;
    // One instruction fits into any block, and an ecall into that of its trap.
    let most = match retirement {
        Retirement::Single => 11,
        Retirement::Block(room) => room.max(11) + 2,
    };
    ensure(longest <= most, || format!("a block of {longest}"))?;
    ensure(transfers <= steps, || format!("{transfers} transfers"))?;
    for event in &events {
        if let ControlFlow::Break(()) = check.event(HART, event) {
            break;
        }
    }
    check.result().map(drop).map_err(|d| d.to_string())
}

fn step(input: &mut Input<'_>, pc: &mut u64, isa: hartrace_isa::Isa) -> Step {
    let what = input.byte();
    let mode = input.pick(&MODES).unwrap_or_default();
    let context = Context(u64::from(what >> 6));
    match what % 16 {
        0 => Step::Signal(input.pick(&SIGNALS).unwrap_or(Signal::Lost)),
        1 | 2 => {
            let code = Some(u32::from(input.byte()));
            let handler = input.number(8);
            let trap = Trap {
                epc: match what & 32 != 0 {
                    true if code == Some(0) => None,
                    true => Some(input.number(8)),
                    false => Some(*pc),
                },
                handler: Some(handler),
                cause: match code {
                    Some(0..64) => Cause::Unknown,
                    _ if what % 16 == 1 => Cause::Exception(code),
                    _ => Cause::Interrupt(code),
                },
                tval: (what & 16 != 0).then_some(handler),
                pending: None,
            };
            *pc = handler;
            Step::Trap(TrapStep {
                trap,
                bits: (what & 16 != 0).then(|| input.number(4) as u32),
                mode,
                context,
                time: 0,
            })
        }
        _ => {
            let mut insn = Insn {
                pc: *pc,
                bits: input.number(4) as u32,
                mode,
                context,
                ..Insn::default()
            };
            insn.next = if what & 16 != 0 {
                input.number(8)
            } else {
                isa.xlen().wrap(insn.end())
            };
            *pc = insn.next;
            Step::Insn(insn)
        }
    }
}

/// What a perfect decoder would say.
fn event(step: &Step) -> Option<Event> {
    match step {
        Step::Insn(insn) => Some(Event::Run(Run {
            start: insn.pc,
            end: insn.end(),
            next: insn.next,
            insns: 1,
            exit: Exit::Stop,
            last: insn.len(),
        })),
        Step::Trap(t) => Some(Event::Trap(t.trap)),
        Step::Signal(_) => None,
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let seed = |choices: u8| {
        let mut seed = vec![choices, choices, choices >> 3, 7];
        seed.extend_from_slice(&0x8000_0000u64.to_le_bytes());
        for what in [3u8, 4, 64, 5, 1, 7, 19, 0, 34, 8, 3, 3] {
            seed.extend_from_slice(&[what, choices, 0x13, 0, 0, 0, 0x82, 0x80, 1, 0, 9]);
        }
        seed
    };
    (0..32).map(seed).collect()
}
