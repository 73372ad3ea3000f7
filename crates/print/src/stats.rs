//! Statistics of a trace, as text.

mod object;

pub(crate) use object::Warning;
pub use object::json;

use crate::words::count;
use hartrace_analyze::Doubts;
use hartrace_capture::trace::{
    Bandwidth, Census, Count, Decoded, Format, KindCount, PacketCount, Warned,
};
use hartrace_flow::DataGap;
use std::io::{self, Write};

/// Everything that was counted.
#[derive(Clone, Debug)]
pub struct Counted<'a> {
    /// The name of the file.
    pub file: String,
    /// Its bytes, as they were read.
    pub bytes: u64,
    /// The format of the trace.
    pub format: Format,
    /// Its messages, packets or groups.
    pub census: &'a Census,
    /// What decoding it came to; only with the program.
    pub decoded: Option<&'a Decoded>,
    /// Jumps that contradict the call stack, if it was followed.
    pub doubts: Option<&'a Doubts>,
}

impl Counted<'_> {
    /// What a reader should know of: found by decoding, if that was done.
    fn warnings(&self) -> &[Warned] {
        match self.decoded {
            Some(decoded) => &decoded.warnings,
            None => &self.census.warnings,
        }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// Prints it for people.
///
/// # Errors
///
/// A failing write.
pub fn text(counted: &Counted<'_>, out: &mut impl Write) -> io::Result<()> {
    let census = &counted.census;
    let unit = counted.format.unit();
    writeln!(out, "{}: {}", counted.file, count(counted.bytes, "byte"))?;
    // A container has room for more.
    let bytes = match counted.format.has_containers() {
        true => census.bytes(),
        false => counted.bytes,
    };
    writeln!(
        out,
        "\n{:<24} {:>12} {:>7} {:>12} {:>7}",
        unit, "count", "%", "bytes", "%"
    )?;
    let mut row = |name: &str, messages: u64, size: u64| {
        writeln!(
            out,
            "{name:<24} {messages:>12} {:>7.2} {size:>12} {:>7.2}",
            percent(messages, census.all.messages),
            percent(size, bytes)
        )
    };
    for kind in &census.kinds {
        row(&kind.name, kind.count.messages, kind.count.bytes)?;
    }
    row("all", census.all.messages, census.all.bytes)?;
    write_items(&census.items, bytes, out)?;
    if census.idle > 0 {
        writeln!(out, "\nidle       {}", count(census.idle, "byte"))?;
    }
    for (code, text, bad) in &census.faults {
        let size = count(bad.bytes, "byte");
        writeln!(out, "bad        {}, {size}: {code}: {text}", bad.messages)?;
    }
    writeln!(out)?;
    for source in &census.sources {
        let messages = count(source.all.messages, unit);
        match census.sources.len() {
            1 if !counted.format.numbers_sources() => write!(out, "stream     {messages}")?,
            _ => write!(out, "source {:<3} {messages}", source.number)?,
        }
        write!(out, ", {}", count(source.all.bytes, "byte"))?;
        write!(out, ", full addresses: {}", source.syncs)?;
        match source.interval {
            Some(mean) => writeln!(out, ", every {mean} bytes, at most {}", source.longest)?,
            None => writeln!(out)?,
        }
    }
    if let Some(packets) = &census.packets {
        write_packets(packets, out)?;
    }
    if let Some(bandwidth) = &census.bandwidth {
        write_bandwidth(bandwidth, out)?;
    }
    for warned in counted.warnings() {
        let reason = warned.first.reason;
        writeln!(
            out,
            "warnings   {}: {}: {}, first at byte {:#x}",
            warned.count, reason.code, reason.text, warned.first.at
        )?;
    }
    let Some(report) = counted.decoded else {
        return Ok(());
    };
    let bits = bytes as f64 * 8.0 / report.instructions.max(1) as f64;
    writeln!(
        out,
        "decoded    {}",
        count(report.instructions, "instruction")
    )?;
    writeln!(out, "           {bits:.4} bits/instruction")?;
    if let Some(packets) = &census.packets {
        let bits = packets.payload_bits as f64 / report.instructions.max(1) as f64;
        writeln!(out, "           {bits:.4} bits/instruction of payload")?;
    }
    writeln!(out, "traps      {}", report.traps)?;
    writeln!(out, "gaps       {}", report.gaps)?;
    if report.unconfirmed > 0 {
        let insns = count(report.unconfirmed, "instruction");
        writeln!(out, "           {insns} unconfirmed")?;
    }
    for gaps in &report.data_gaps {
        let DataGap { at, reason } = gaps.first;
        writeln!(
            out,
            "data gaps  {}: {}: {}, first at byte {at:#x}",
            gaps.count, reason.code, reason.text
        )?;
    }
    let Some(doubts) = counted.doubts else {
        return Ok(());
    };
    write!(out, "doubts     {}", doubts.count)?;
    match doubts.count {
        0 => writeln!(out),
        _ => {
            let wrong = count(doubts.instructions, "instruction");
            writeln!(out, "; {wrong} may be wrong")
        }
    }
}

/// What groups of a tandem trace consist of.
fn write_items(items: &[KindCount], bytes: u64, out: &mut impl Write) -> io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let all = items.iter().map(|item| item.count.messages).sum();
    let heading = ["item", "count", "%", "bytes", "%"];
    let [name, number, percents, size, share] = heading;
    writeln!(
        out,
        "\n{name:<24} {number:>12} {percents:>7} {size:>12} {share:>7}"
    )?;
    for KindCount { name, count, .. } in items {
        let Count {
            messages,
            bytes: size,
        } = count;
        writeln!(
            out,
            "{name:<24} {messages:>12} {:>7.2} {size:>12} {:>7.2}",
            percent(*messages, all),
            percent(*size, bytes)
        )?;
    }
    Ok(())
}

/// What E-Trace packets report, and how much compression saves.
fn write_packets(packets: &PacketCount, out: &mut impl Write) -> io::Result<()> {
    let PacketCount {
        branches, reasons, ..
    } = packets;
    let all = branches.all();
    write!(out, "branches   {all}")?;
    match branches.mapped {
        0 => {}
        mapped => write!(out, ", {:.2} % taken", percent(branches.taken, mapped))?,
    }
    writeln!(out)?;
    let told = [
        ("exceptions", reasons.exceptions),
        ("interrupts", reasons.interrupts),
        ("traps without a handler", reasons.no_handler),
        ("updiscon", reasons.updiscon),
        ("notify", reasons.notify),
        ("irreport", reasons.irreport),
        ("ends", reasons.ended),
        ("losses", reasons.lost),
    ];
    let told = told.into_iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = told
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !told.is_empty() {
        writeln!(out, "reported   {}", told.join(", "))?;
    }
    if packets.data.messages > 0 {
        let size = count(packets.data.bytes, "byte");
        writeln!(
            out,
            "data       {}, {size}",
            count(packets.data.messages, "packet")
        )?;
    }
    let (sent, whole) = (packets.payload_bits / 8, packets.whole_bits / 8);
    writeln!(
        out,
        "payload    {}, {:.2} % of {whole} without compression",
        count(sent, "byte"),
        percent(sent, whole)
    )
}

/// Bytes by time: in numbers, and as a line of bars.
fn write_bandwidth(bandwidth: &Bandwidth, out: &mut impl Write) -> io::Result<()> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Bandwidth {
        first,
        slice,
        bytes: slices,
    } = bandwidth;
    let most = slices.iter().copied().max().unwrap_or(0).max(1);
    let mean = slices.iter().sum::<u64>() / (slices.len() as u64).max(1);
    let thousand = |bytes: u64| bytes as f64 * 1000.0 / *slice as f64;
    writeln!(
        out,
        "time       from {first}, {} slices of {slice}: {:.1} bytes in 1000, at most {:.1}",
        slices.len(),
        thousand(mean),
        thousand(most)
    )?;
    let bar = |&bytes: &u64| {
        let height = (bytes.saturating_mul(8)).div_ceil(most).min(8);
        BARS.get(height as usize).copied().unwrap_or('█')
    };
    let line: String = slices.iter().map(bar).collect();
    writeln!(out, "           |{line}|")
}
