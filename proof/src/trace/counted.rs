//! Messages are counted as well while they are decoded.

use hartrace_capture::trace::{Counting, Decoder, Settings};
use hartrace_flow::Image;
use hartrace_flow::decode::Nothing;

/// Counts the messages of a trace, any bytes, once apart and once while they are decoded.
///
/// # Errors
///
/// Counts that differ, and settings that do not make sense.
pub(crate) fn counted(settings: &Settings, image: &Image, trace: &[u8]) -> Result<(), String> {
    let mut apart = Counting::new(settings);
    apart.feed(trace);
    let mut decoder = Decoder::new(settings, image).map_err(|e| e.to_string())?;
    let mut decoding = Counting::new(settings);
    let mut rest = trace;
    while !rest.is_empty() {
        let used = decoder.feed_counting(rest, &mut Nothing, &mut decoding);
        if used == 0 {
            return Err("no progress while counting".into());
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    let apart = format!("{:?}", apart.finish());
    let decoding = format!("{:?}", decoding.finish());
    match apart == decoding {
        true => Ok(()),
        false => Err(format!(
            "counted apart: {apart}\nwhile decoding: {decoding}"
        )),
    }
}
