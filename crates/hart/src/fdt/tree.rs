//! The tree that settings describe.

use hartrace_isa::Isa;

use super::{Chosen, Virt};
use crate::config::Config;
use crate::devices::Equipment;

/// The device tree of our own machine.
pub(crate) fn tree(config: &Config, isa: Isa, chosen: Chosen<'_>) -> Vec<u8> {
    let virt = Virt {
        harts: config.harts,
        cache_block: config.cache_block,
        isa_name: &config.reported_isa(isa),
        isa,
        memory: &config.memory,
        equipment: Equipment::beside(&config.memory, &config.virtio),
        htif: chosen.is_empty(),
        chosen,
    };
    virt.blob()
}
