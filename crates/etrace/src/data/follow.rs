//! Data packets for display and counting: their layout as support packets change it,
//! and full addresses and data.

use hartrace_flow::DataAccess;

use super::{DataConfig, DataLayout, DataPacket, DataSource, Formats, Outstanding};
use crate::{Config, Fault, Support};

/// Reads the data packets of a stream of one source, one after the other.
#[derive(Clone, Debug)]
pub struct DataFollower {
    config: Config,
    data: DataConfig,
    layout: DataLayout,
    /// What packets are in this layout.
    formats: Formats,
    source: DataSource,
}

impl DataFollower {
    /// `None` if the settings have no data trace.
    #[must_use]
    pub fn new(config: &Config) -> Option<DataFollower> {
        let layout = config.data_layout()?;
        Some(DataFollower {
            data: config.data?,
            layout,
            formats: Formats::new(&layout),
            config: config.clone(),
            source: DataSource::default(),
        })
    }

    /// The layout of the next packet.
    #[must_use]
    pub const fn layout(&self) -> &DataLayout {
        &self.layout
    }

    /// What the next packets are that are loads and stores.
    pub(crate) const fn formats(&self) -> &Formats {
        &self.formats
    }

    /// What is known about split atomics.
    #[must_use]
    pub const fn outstanding(&self) -> &Outstanding {
        &self.source.outstanding
    }

    /// What support packets and requests have said.
    pub(crate) const fn said(&self) -> (DataConfig, Outstanding) {
        (self.data, self.source.outstanding)
    }

    /// Goes on after packets that have said this.
    pub(crate) fn set_said(&mut self, (data, outstanding): (DataConfig, Outstanding)) {
        self.source.outstanding = outstanding;
        self.change(data);
    }

    /// A support packet changes what follows.
    pub fn support(&mut self, support: &Support) {
        let width = self.config.doptions_width.unwrap_or(0);
        self.change(self.data.follow(support, self.config.version, width));
    }

    fn change(&mut self, data: DataConfig) {
        self.data = data;
        let layout = self.data.layout(self.config.version, self.config.xlen);
        if layout != self.layout {
            self.formats = Formats::new(&layout);
            self.layout = layout;
        }
    }

    /// Reads the next packet.
    ///
    /// # Errors
    ///
    /// Bytes that cannot be a data packet.
    pub fn read(&mut self, payload: &[u8]) -> Result<DataPacket, Fault> {
        let packet = DataPacket::read(payload, &self.layout, &self.source.outstanding)?;
        self.source.outstanding.note(&packet);
        Ok(packet)
    }

    /// The access that a packet reports, with its full address and data; `None` if
    /// they are not known.
    pub fn access(&mut self, packet: &DataPacket) -> Option<DataAccess> {
        self.source.packet(packet, &self.config, &self.data).ok()
    }

    /// Something is missing: differences lead nowhere until the next full values.
    pub fn lost(&mut self) {
        self.source = DataSource::default();
    }
}
