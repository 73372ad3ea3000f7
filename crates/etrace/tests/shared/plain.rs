//! The plain decoder of the testkit beside the one of this crate: the same
//! packets, field by field, and the same instructions and traps.

use std::collections::BTreeMap;

use hartrace_etrace::{
    BranchMap, Config, Encapsulated, Ending, Framer, IdleIrdepth, Ioption, Kind, Packet, Piece,
    Report, ReturnRule, UpdisconRule, Version,
};
use hartrace_flow::decode::Framing as _;
use hartrace_flow::{Cause, Event, Image, Mark, SpaceId};
use hartrace_isa::{Ext, Flow, Isa, Xlen};
use hartrace_testkit::plain_etrace as plain;

/// The code of a gap for which the encoder lost packets.
const LOST: &str = "ET0401";

/// Whether the plain decoder knows these settings: not what repeats the mistakes
/// of the reference models, and not what cannot be decoded in general.
pub(crate) fn is_covered(config: &Config) -> bool {
    config.ending == Ending::Reported
        && config.updiscon == UpdisconRule::Followed
        && config.return_rule == ReturnRule::Settled
        && config.encapsulation.is_reference()
        && config.layout().is_plain()
}

/// Decodes a stream with the plain decoder and compares with the events of the
/// other one. Gives what both found.
///
/// # Errors
///
/// The first difference, or what the plain decoder has against the stream.
pub(crate) fn compare(
    config: &Config,
    image: &Image,
    isa: Isa,
    bytes: &[u8],
    events: &[Event],
) -> Result<(Vec<plain::Packet>, Vec<plain::Item>), String> {
    let settings = settings(config, image, isa);
    let (packets, mut ours) = plain::decode(bytes, &settings, &code(image)).map_err(|e| {
        let packets = plain::packets(bytes, &settings).unwrap_or_default();
        let first = e.packet.saturating_sub(6);
        let near: Vec<String> = packets.iter().skip(first).take(9).map(line).collect();
        format!("packet {}: {}\n{}", e.packet, e.what, near.join("\n"))
    })?;
    same_packets(config, bytes, &packets)?;
    let Items {
        items: theirs,
        losses,
    } = items(image, events)?;
    ours.retain(|item| !is_trapped(image, item));
    drop_before_losses(&mut ours, &theirs, &losses);
    let near = |items: &[plain::Item], i: usize| -> String {
        let near = items.iter().skip(i.saturating_sub(6)).take(12);
        near.map(|item| format!("  {item:x?}\n")).collect()
    };
    for (i, (one, other)) in ours.iter().zip(&theirs).enumerate() {
        if one != other {
            let (ours, theirs) = (near(&ours, i), near(&theirs, i));
            return Err(format!("item {i}: plain\n{ours}other\n{theirs}"));
        }
    }
    if ours.len() != theirs.len() {
        let (ours, theirs) = (ours.len(), theirs.len());
        return Err(format!("plain has {ours} items, the other {theirs}"));
    }
    Ok((packets, ours))
}

fn code(image: &Image) -> Vec<(u64, Vec<u8>)> {
    let segments = image.segments(SpaceId::FIRST);
    segments.map(|(at, bytes)| (at, bytes.to_vec())).collect()
}

fn line(packet: &plain::Packet) -> String {
    format!(
        "  {}.{:?} {:x?}{}{}{}",
        packet.format,
        packet.subformat,
        packet.fields,
        if packet.notify { " notify" } else { "" },
        if packet.updiscon { " updiscon" } else { "" },
        if packet.irreport { " irreport" } else { "" }
    )
}

/// The same settings.
fn settings(config: &Config, image: &Image, isa: Isa) -> plain::Settings {
    let mode = |option: Ioption| match option {
        Ioption::SequentialJump => plain::Mode::SequentialJump,
        Ioption::ImplicitReturn => plain::Mode::ImplicitReturn,
        Ioption::ImplicitException => plain::Mode::ImplicitException,
        Ioption::BranchPrediction => plain::Mode::BranchPrediction,
        Ioption::JumpTargetCache => plain::Mode::JumpTargetCache,
        Ioption::FullAddress => plain::Mode::FullAddress,
        Ioption::DeltaAddress | Ioption::ResyncDisabled | Ioption::ImplicitReturnExtension => {
            plain::Mode::Reserved
        }
    };
    let order = config.ioptions.order();
    let options = [
        Ioption::SequentialJump,
        Ioption::ImplicitReturn,
        Ioption::ImplicitException,
        Ioption::BranchPrediction,
        Ioption::JumpTargetCache,
        Ioption::FullAddress,
    ];
    let on = options.into_iter().filter(|&option| config.is_on(option));
    let entry = |index| image.table_entry(SpaceId::FIRST, index, isa);
    let vectors = &config.trap_vectors;
    plain::Settings {
        version: match config.version {
            Version::V1_1_1 => plain::Version::Draft,
            Version::V2_0 => plain::Version::V2_0,
            Version::V2_05 => plain::Version::V2_05,
        },
        rv32: config.xlen == Xlen::Rv32,
        iaddress_width: config.iaddress_width.into(),
        iaddress_lsb: config.iaddress_lsb.into(),
        privilege_width: config.privilege_width.into(),
        context_width: config.context_width.into(),
        time_width: config.time_width.into(),
        ecause_width: config.ecause_width.into(),
        f0s_width: config.f0s_width.into(),
        bpred_size: config.bpred_size.into(),
        cache_size: config.cache_size.into(),
        call_counter_size: config.call_counter_size.into(),
        return_stack_size: config.return_stack_size.into(),
        encoder_mode_width: config.encoder_mode_width.into(),
        ioptions: order
            .iter()
            .map(|option| option.map_or(plain::Mode::Reserved, mode))
            .collect(),
        modes: on.map(mode).collect(),
        doptions_width: config.doptions_width.map(u32::from),
        sijump_returns: config.sijump_returns,
        repeats_irdepth: config.idle_irdepth == IdleIrdepth::Repeated,
        vectors: [vectors.mtvec, vectors.stvec, vectors.vstvec],
        zcmp: isa.has(Ext::Zcmp),
        jump_table: match isa.has(Ext::Zcmt) {
            true => (0..=255).map(|i| entry(i).unwrap_or_default()).collect(),
            false => Vec::new(),
        },
    }
}

fn same_packets(config: &Config, bytes: &[u8], plain: &[plain::Packet]) -> Result<(), String> {
    let mut layout = config.layout();
    let mut framer = Framer::new();
    let mut rest = bytes;
    let mut count = 0;
    while let Some((at, piece)) = framer.next_piece(&mut rest) {
        let Piece::Packet(Encapsulated {
            kind: Kind::Instruction,
            payload,
            ..
        }) = piece
        else {
            continue;
        };
        let packet = Packet::read(payload, &layout).map_err(|e| format!("{e:?}"))?;
        let Some(ours) = plain.get(count) else {
            return Err(format!("packet {count} is missing"));
        };
        let format = (packet.format().into(), packet.subformat().map(u64::from));
        let mut expected = ours.fields.clone();
        // Bits of a map above its branches mean nothing.
        if let Some(map) = expected.get_mut("branch_map") {
            let branches = match ours.get("branches") {
                0 => 31,
                branches => branches,
            };
            *map &= (1 << branches) - 1;
        }
        let fields = fields(&packet, config, &layout, &expected);
        let same = (ours.format, ours.subformat) == format && ours.offset as u64 == at;
        if !same || fields != expected {
            return Err(format!(
                "packet {count} at {at:#x}: plain\n{}\nother {packet:x?}\n  {fields:x?}",
                line(ours)
            ));
        }
        layout.follow(&packet);
        count += 1;
    }
    match count == plain.len() {
        true => Ok(()),
        false => Err(format!("{count} packets, plain has {}", plain.len())),
    }
}

type Fields = BTreeMap<&'static str, u64>;

/// The fields of a packet, as they are sent. Those that it always has are taken
/// only where the plain decoder finds them, since widths may be 0.
fn fields(
    packet: &Packet,
    config: &Config,
    layout: &hartrace_etrace::Layout,
    there: &Fields,
) -> Fields {
    let mut fields = Fields::new();
    let returns = if layout.iret_ext { "irets" } else { "irdepth" };
    let tail = |report: &Report, fields: &mut Fields| {
        let [notify, updiscon, irreport] = report.sent(layout).map(u64::from);
        fields.extend([
            ("address", report.address),
            ("notify", notify),
            ("updiscon", updiscon),
            ("irreport", irreport),
            (returns, report.irdepth.into()),
        ]);
    };
    let branches = |map: &BranchMap, fields: &mut Fields| {
        fields.insert("branches", map.count.into());
        fields.insert("branch_map", map.bits.into());
    };
    let owner = |privilege: u8, time: u64, context: u64, fields: &mut Fields| {
        fields.extend([
            ("privilege", privilege.into()),
            ("time", time),
            ("context", context),
        ]);
    };
    match packet {
        Packet::BranchCount {
            branch_count,
            address,
        } => {
            let format = address
                .as_ref()
                .map_or(0, |(failed, _)| 2 + u64::from(*failed));
            fields.insert("branch_count", (*branch_count).into());
            fields.insert("branch_fmt", format);
            if let Some((_, report)) = address {
                tail(report, &mut fields);
            }
        }
        Packet::JumpTarget {
            index,
            map,
            irreport,
            irdepth,
        } => {
            fields.insert("index", (*index).into());
            branches(map, &mut fields);
            // The bit before it.
            let msb = match there.get("branch_map") {
                Some(_) => map.count > 0 && map.bits >> (map.count - 1) & 1 == 1,
                None => false,
            };
            fields.insert("irreport", u64::from(*irreport ^ msb));
            fields.insert(returns, (*irdepth).into());
        }
        Packet::Branches { map, address } => {
            branches(map, &mut fields);
            match address {
                Some(report) => tail(report, &mut fields),
                None => drop(fields.insert("branches", 0)),
            }
        }
        Packet::Address(report) => tail(report, &mut fields),
        Packet::Start(start) => {
            owner(start.privilege, start.time, start.context, &mut fields);
            fields.insert("branch", start.branch.into());
            fields.insert("address", start.address);
        }
        Packet::Trap(trap) => {
            owner(trap.privilege, trap.time, trap.context, &mut fields);
            let draft = config.version == Version::V1_1_1;
            fields.insert("branch", trap.branch.into());
            fields.insert("ecause", trap.ecause.into());
            fields.insert("interrupt", trap.interrupt.into());
            if !draft {
                fields.insert("thaddr", trap.thaddr.into());
            }
            fields.extend(trap.address.map(|address| ("address", address)));
            let name = if draft { "tvalepc" } else { "tval" };
            fields.extend(trap.tval.map(|tval| (name, tval)));
        }
        Packet::Context(c) => owner(c.privilege, c.time, c.context, &mut fields),
        Packet::Support(support) => {
            fields.insert("ienable", support.ienable.into());
            fields.insert("encoder_mode", support.encoder_mode.into());
            fields.insert("qual_status", support.qual_status as u64);
            options(support.ioptions, config, &mut fields);
            if let Some(data) = &support.data {
                fields.insert("denable", data.denable.into());
                fields.insert("dloss", data.dloss.into());
                match config.version {
                    Version::V2_05 => {
                        let names = [
                            "mmacas_ext",
                            "noaddr",
                            "nodata",
                            "full_daddress",
                            "full_data",
                        ];
                        for (bit, name) in names.into_iter().enumerate() {
                            fields.insert(name, (data.doptions >> bit & 1).into());
                        }
                    }
                    _ => drop(fields.insert("doptions", data.doptions.into())),
                }
            }
        }
    }
    // Fields of no width are 0 in a packet of the other decoder.
    fields.retain(|name, value| there.contains_key(name) || *value != 0);
    fields
}

/// `ioptions`: one field, or those of the standard support packet.
fn options(ioptions: u32, config: &Config, fields: &mut Fields) {
    if config.version != Version::V2_05 {
        fields.insert("ioptions", ioptions.into());
        return;
    }
    let names = [
        ("sijump", 1),
        ("implicit_return", 1),
        ("branch_predictor", 1),
        ("jump_target_cache", 1),
        ("implicit_except", 1),
        ("full_iaddress", 1),
        ("resync_disabled", 1),
        ("iret_ext", 1),
        ("time_width", 2),
        ("f0s_width", 2),
        ("return_stack_size", 3),
        ("call_counter_size", 4),
        ("bpred_size", 3),
        ("cache_size", 3),
    ];
    let mut rest = u64::from(ioptions);
    for (name, width) in names {
        fields.insert(name, rest & ((1 << width) - 1));
        rest >>= width;
    }
}

/// What the other decoder says, and which starts come after a loss.
struct Items {
    items: Vec<plain::Item>,
    losses: Vec<usize>,
}

fn items(image: &Image, events: &[Event]) -> Result<Items, String> {
    let (mut items, mut losses) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Run(run) => {
                let mut pc = run.start;
                for _ in 0..run.insns {
                    let fetched = image.fetch(SpaceId::FIRST, pc);
                    let len = fetched.ok_or_else(|| format!("no code at {pc:#x}"))?.len;
                    items.push(plain::Item::Insn(pc));
                    pc = pc.wrapping_add(len.into());
                }
            }
            Event::Trap(trap) => {
                let (interrupt, cause) = match trap.cause {
                    Cause::Interrupt(cause) => (true, cause),
                    Cause::Exception(cause) => (false, cause),
                    Cause::Unknown => return Err("a trap without a cause".to_owned()),
                };
                items.push(plain::Item::Trap(plain::Trap {
                    interrupt,
                    cause: cause.ok_or("a cause without a number")?.into(),
                    tval: trap.tval,
                    epc: trap.epc,
                    handler: trap.handler,
                }));
            }
            Event::Mark(Mark::On) => items.push(plain::Item::Start),
            Event::Gap(gap) if gap.reason.code == LOST => {
                losses.push(items.len());
                items.push(plain::Item::Start);
            }
            Event::Gap(gap) => return Err(format!("gap {}", gap.reason)),
            _ => {}
        }
    }
    // A loss that no start follows.
    if losses.last().is_some_and(|last| last + 1 == items.len()) {
        items.pop();
    }
    Ok(Items { items, losses })
}

/// Drops what only the plain decoder makes of the last packet before a loss: the
/// other one leaves out what the lost packet would have settled.
fn drop_before_losses(ours: &mut Vec<plain::Item>, theirs: &[plain::Item], losses: &[usize]) {
    for &loss in losses.iter().filter(|&&loss| loss < theirs.len()) {
        let more = ours.iter().skip(loss);
        let more = more.take_while(|item| matches!(item, plain::Item::Insn(_)));
        let end = loss + more.count();
        if ours.get(end) == Some(&plain::Item::Start) {
            ours.drain(loss..end);
        }
    }
}

/// Whether this is an `ecall` or `ebreak` that counts as retired. The plain decoder
/// lists those; the other one has their traps only.
fn is_trapped(image: &Image, item: &plain::Item) -> bool {
    let plain::Item::Insn(pc) = item else {
        return false;
    };
    let fetched = image.fetch(SpaceId::FIRST, *pc);
    fetched.is_some_and(|f| Flow::of_retired(f.bits, f.isa) == Flow::Trap)
}
