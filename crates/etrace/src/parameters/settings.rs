//! What parameters mean for the settings of an encoder, and the other way round.

use hartrace_isa::Xlen;

use super::{ParameterError, Parameters};
use crate::{Config, DataConfig, Version};

impl Parameters {
    /// The parameters of an encoder with these settings. What the settings do not
    /// determine, such as the widths of buses, is the default of the version; `itype`
    /// has four bits.
    #[must_use]
    pub fn of(config: &Config) -> Parameters {
        let default = Parameters::new(config.version);
        let data = config.data.as_ref();
        Parameters {
            bpred_size: config.bpred_size,
            cache_size: config.cache_size,
            call_counter_size: config.call_counter_size,
            context_width: config.context_width.max(1),
            time_width: config.time_width.max(1),
            ecause_width: config.ecause_width,
            f0s_width: config.f0s_width,
            iaddress_lsb: config.iaddress_lsb,
            iaddress_width: config.iaddress_width,
            nocontext: config.context_width == 0,
            notime: config.time_width == 0,
            privilege_width: config.privilege_width,
            return_stack_size: config.return_stack_size,
            sijump: config.sijump,
            itype_width: 4,
            daddress_width: data.map_or(default.daddress_width, |data| data.daddress_width),
            data_width: data.map_or(default.data_width, |data| data.data_width),
            lrid_width: data.map_or(default.lrid_width, |data| data.lrid_width),
            ..default
        }
    }

    /// Sets what the parameters determine. Modes stay as they are: a parameter only
    /// says which an encoder can have.
    ///
    /// # Errors
    ///
    /// Parameters that no encoder can have, alone or with these settings.
    pub fn apply(&self, config: &mut Config) -> Result<(), ParameterError> {
        self.validate()?;
        let present = |absent: bool, width| if absent { 0 } else { width };
        config.bpred_size = self.bpred_size;
        config.cache_size = self.cache_size;
        config.call_counter_size = self.call_counter_size;
        config.context_width = present(self.nocontext, self.context_width);
        config.time_width = present(self.notime, self.time_width);
        config.ecause_width = self.ecause_width;
        config.f0s_width = self.f0s_width;
        config.iaddress_lsb = self.iaddress_lsb;
        config.iaddress_width = self.iaddress_width;
        config.privilege_width = self.privilege_width;
        config.return_stack_size = self.return_stack_size;
        if let Some(data) = &mut config.data {
            data.daddress_width = self.daddress_width;
            data.data_width = self.data_width;
            data.lrid_width = self.lrid_width;
        }
        Ok(config.validate()?)
    }

    /// Settings of an encoder with these parameters and every mode off, with data
    /// trace or without.
    ///
    /// # Errors
    ///
    /// Parameters that no encoder can have.
    pub fn config(
        &self,
        version: Version,
        xlen: Xlen,
        data: bool,
    ) -> Result<Config, ParameterError> {
        let mut config = Config::new(version, xlen);
        config.data = data.then(|| DataConfig::new(version, xlen));
        self.apply(&mut config)?;
        Ok(config)
    }
}
