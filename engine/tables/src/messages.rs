//! The messages of a trace as rows.

use crate::collect::Take;
use crate::rows::Messages;
use crate::source::Opened;
use crate::table::{Projection, Table};
use arrow_array::StringArray;
use hartrace_capture::trace::{Explained, PieceKind};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Every message, packet or group. Its hart is the source that it names.
pub(crate) fn messages(opened: &Opened, projection: Projection, out: &mut dyn Take) {
    let none = Arc::new(StringArray::from(Vec::<&str>::new()));
    let mut harts: Vec<(u32, Messages)> = Vec::new();
    let mut each = |explained: &Explained| {
        let source = explained
            .source
            .and_then(|source| u32::try_from(source).ok());
        let hart = explained.hart.or(source).unwrap_or(0);
        let known = harts.iter().position(|(known, _)| *known == hart);
        let at = known.unwrap_or_else(|| {
            harts.push((hart, Messages::new(projection)));
            harts.len() - 1
        });
        let Some((_, rows)) = harts.get_mut(at) else {
            return ControlFlow::Break(());
        };
        match row(rows, explained) {
            false => ControlFlow::Continue(()),
            true => match rows.take(&none) {
                Some(batch) => out.batch(Table::Messages, hart, batch),
                None => ControlFlow::Continue(()),
            },
        }
    };
    opened.explain(&mut each);
    for (hart, rows) in &mut harts {
        if let Some(batch) = rows.take(&none)
            && out.batch(Table::Messages, *hart, batch).is_break()
        {
            return;
        }
    }
}

fn row(rows: &mut Messages, explained: &Explained) -> bool {
    rows.position.push(explained.at);
    rows.bytes.push(explained.count);
    let kind = match explained.kind {
        PieceKind::Unit | PieceKind::Data => explained.name.as_deref().unwrap_or("group"),
        PieceKind::Idle => "idle",
        PieceKind::Bad => "unreadable",
        PieceKind::Stray => "stray",
        PieceKind::Lost => "lost",
    };
    rows.kind.push(Some(kind));
    rows.address.push(explained.address);
    rows.time.push(explained.time);
    rows.fault.push(explained.fault.map(|fault| fault.code));
    rows.end_row()
}
