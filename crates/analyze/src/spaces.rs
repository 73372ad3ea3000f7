//! The code that each hart runs.

use hartrace_flow::{HartId, Image, Ownership, SpaceId};
use std::collections::BTreeMap;

/// In which space each hart is, where that is not the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spaces(BTreeMap<HartId, SpaceId>);

impl Spaces {
    #[inline]
    pub(crate) fn of(&self, hart: HartId) -> SpaceId {
        match self.0.is_empty() {
            true => SpaceId::FIRST,
            false => self.0.get(&hart).copied().unwrap_or_default(),
        }
    }

    pub(crate) fn enter(&mut self, hart: HartId, owner: &Ownership, image: &Image) {
        let Some(context) = owner.context else {
            return;
        };
        match image.space_of(context) {
            SpaceId::FIRST => self.0.remove(&hart),
            space => self.0.insert(hart, space),
        };
    }
}
