//! `[etrace.encapsulation]`: how E-Trace packets are encapsulated.

use super::super::section::{set, some};
use super::super::value::{Named, Setting};
use hartrace_etrace::{Encapsulation, Form};

const FORMS: Named<Form> = &[
    ("reference", Form::Reference),
    ("riscv", Form::Riscv),
    ("smi", Form::Smi),
    ("atb", Form::Atb),
    ("esp32", Form::Esp32),
    ("slots", Form::Slots),
];

section! {
    /// `[etrace.encapsulation]`. What is `None` is not said.
    EtraceEncapsulation = "[etrace.encapsulation]" {
        /// Which one.
        form: Form = (named FORMS);
        /// Bits of the source.
        src_bits: u8 = (number 0 16);
        /// The source of hart 0.
        src_id: u16 = (number 0 65535);
        /// Bytes of a timestamp.
        time_bytes: u8 = (number 0 8);
        /// Bits of the type.
        type_bits: u8 = (number 0 8);
        /// `flow`.
        flow: u8 = (number 0 3);
        /// Bytes between two synchronisation sequences.
        sync_bytes: u32 = (number 0 0xffff_ffff);
        /// Bytes of a slot.
        slot_bytes: u8 = (number 1 64);
    }
}

impl EtraceEncapsulation {
    /// The names of the forms.
    pub fn forms() -> impl Iterator<Item = &'static str> {
        FORMS.iter().map(|(name, _)| *name)
    }

    /// Takes the form with this name, which a flag gives.
    pub fn set_form(&mut self, name: &str, flag: &'static str) {
        let form = FORMS.iter().find(|(known, _)| *known == name);
        self.form = form.map(|&(_, form)| Setting::flag(form, flag));
    }

    /// The encapsulation; `base` is that of the profile.
    pub(super) fn settings(&self, base: Encapsulation) -> Encapsulation {
        let mut form = match &self.form {
            Some(form) if form.value != base.form => Encapsulation::new(form.value),
            _ => base,
        };
        set(&mut form.src_bits, &self.src_bits);
        set(&mut form.src_id, &self.src_id);
        set(&mut form.time_bytes, &self.time_bytes);
        set(&mut form.type_bits, &self.type_bits);
        set(&mut form.flow, &self.flow);
        set(&mut form.sync_bytes, &self.sync_bytes);
        set(&mut form.slot_bytes, &self.slot_bytes);
        form
    }

    /// Every setting, as a default. Those without a meaning for the form are left out.
    pub(super) fn of(form: &Encapsulation) -> EtraceEncapsulation {
        let riscv = matches!(form.form, Form::Riscv | Form::Slots);
        let (smi, atb) = (form.form == Form::Smi, form.form == Form::Atb);
        let when = |is: bool, value| if is { some(value) } else { None };
        EtraceEncapsulation {
            form: some(form.form),
            src_bits: when(riscv || smi, form.src_bits),
            src_id: match form.src_bits {
                0 => None,
                _ => some(form.src_id),
            },
            time_bytes: when(riscv || smi || atb, form.time_bytes),
            type_bits: when(riscv || atb, form.type_bits),
            flow: when(riscv, form.flow),
            sync_bytes: match form.form {
                Form::Riscv | Form::Esp32 => some(form.sync_bytes),
                _ => None,
            },
            slot_bytes: when(form.form == Form::Slots, form.slot_bytes),
        }
    }
}
