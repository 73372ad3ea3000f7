//! The code that each hart runs.

use hartrace_flow::{HartId, Image, Ownership, SpaceId};
use std::collections::BTreeMap;

/// In which space each hart is, where that is not the first one.
#[derive(Clone, Debug, Default)]
pub struct Spaces(BTreeMap<HartId, SpaceId>);

impl Spaces {
    /// That of a hart.
    #[inline]
    #[must_use]
    pub fn of(&self, hart: HartId) -> SpaceId {
        match self.0.is_empty() {
            true => SpaceId::FIRST,
            false => self.0.get(&hart).copied().unwrap_or_default(),
        }
    }

    /// What the hart runs next is in this context.
    pub fn enter(&mut self, hart: HartId, owner: &Ownership, image: &Image) {
        if let Some(context) = owner.context {
            self.set(hart, image.space_of(context));
        }
    }

    /// What the hart runs next is in this space.
    pub fn set(&mut self, hart: HartId, space: SpaceId) {
        match space {
            SpaceId::FIRST => self.0.remove(&hart),
            space => self.0.insert(hart, space),
        };
    }
}
