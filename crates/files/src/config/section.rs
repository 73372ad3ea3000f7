//! Declares a section of the configuration once: its keys, and how each is read
//! and written.

use super::read::Reader;
use super::value::{Origin, Setting};
use super::write::Writer;
use hartrace_flow::queue::Queue;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// A section: it reads, merges and writes itself.
pub(super) trait Section: Default {
    /// Its name in its brackets.
    const TITLE: &'static str;

    /// This layer on top of another.
    fn over(self, below: Self) -> Self;

    fn read(reader: &mut Reader, table: &DeTable<'_>) -> Self;

    /// Writes it, if any key is set.
    fn write(&self, out: &mut Writer) -> fmt::Result;
}

impl Reader {
    /// A section within another, if there is one.
    pub(super) fn within<S: Section>(&mut self, table: &DeTable<'_>, name: &'static str) -> S {
        match table.get(name).map(|value| (value, value.get_ref())) {
            None => S::default(),
            Some((_, DeValue::Table(table))) => S::read(self, table),
            Some((value, _)) => {
                let expected = format!("a section: write {}", S::TITLE);
                self.refuse::<()>(name, value, &expected);
                S::default()
            }
        }
    }
}

/// How a key is read.
macro_rules! read {
    (named $names:ident, $r:ident, $n:ident, $v:ident) => {
        $r.one_of($n, $v, $names)
    };
    (number $from:literal $to:literal, $r:ident, $n:ident, $v:ident) => {
        $r.number($n, $v, $from..=$to)
    };
    (width $to:literal, $r:ident, $n:ident, $v:ident) => {
        $r.width($n, $v, $to)
    };
    ($reader:ident, $r:ident, $n:ident, $v:ident) => {
        $r.$reader($n, $v)
    };
}

/// How a value is written.
macro_rules! show {
    (named $names:ident, $v:ident) => {
        crate::config::write::quote(crate::config::value::name_of($names, $v))
    };
    (boolean, $v:ident) => {
        $v.to_string()
    };
    (number $from:literal $to:literal, $v:ident) => {
        $v.to_string()
    };
    (count, $v:ident) => {
        crate::config::write::count(*$v)
    };
    (width $to:literal, $v:ident) => {
        match $v {
            0 => crate::config::write::quote("unlimited"),
            bits => bits.to_string(),
        }
    };
    // The other readers have a writer of the same name.
    ($writer:ident, $v:ident) => {
        $writer($v)
    };
}

/// The type of a section, which is a [`Section`]. The keys that are sections of
/// their own stand last.
macro_rules! section {
    (
        $(#[$about:meta])*
        $name:ident = $title:literal {
            $($(#[$doc:meta])* $key:ident: $type:ty = ($($kind:tt)+);)+
        }
        $(sections { $($(#[$subdoc:meta])* $sub:ident: $subtype:ty;)+ })?
    ) => {
        $(#[$about])*
        #[derive(Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $key: Option<crate::config::value::Setting<$type>>,)+
            $($($(#[$subdoc])* pub $sub: $subtype,)+)?
        }

        // What is derived is inlined, and so compiled again in every crate that has it.
        impl Clone for $name {
            fn clone(&self) -> $name {
                $name {
                    $($key: self.$key.clone(),)+
                    $($($sub: self.$sub.clone(),)+)?
                }
            }
        }

        impl $name {
            pub(in crate::config) const KEYS: &[&'static str] = &[
                $(stringify!($key),)+
                $($(stringify!($sub),)+)?
            ];

            /// Whether any key is set.
            #[must_use]
            pub fn is_said(&self) -> bool {
                *self != $name::default()
            }
        }

        impl crate::config::section::Section for $name {
            const TITLE: &'static str = $title;

            fn over(self, below: $name) -> $name {
                $name {
                    $($key: self.$key.or(below.$key),)+
                    $($($sub: self.$sub.over(below.$sub),)+)?
                }
            }

            fn read(
                reader: &mut crate::config::read::Reader,
                table: &toml::de::DeTable<'_>,
            ) -> $name {
                reader.known(table, $name::KEYS, $title);
                $name {
                    $($key: reader.get(table, stringify!($key), |r, n, v| {
                        read!($($kind)+, r, n, v)
                    }),)+
                    $($($sub: reader.within(table, stringify!($sub)),)+)?
                }
            }

            fn write(&self, out: &mut crate::config::write::Writer) -> std::fmt::Result {
                if [$(self.$key.is_some()),+].contains(&true) {
                    out.section($title)?;
                }
                $(out.key(stringify!($key), self.$key.as_ref(), |v| {
                    show!($($kind)+, v)
                })?;)+
                $($(self.$sub.write(out)?;)+)?
                Ok(())
            }
        }
    };
}

/// A default value.
pub(super) fn some<T>(value: T) -> Option<Setting<T>> {
    Some(Setting::default(value))
}

/// The value that was set, or else this one.
pub(super) fn said<T>(setting: Option<Setting<T>>, default: T) -> Option<Setting<T>> {
    let given = setting.filter(|s| s.origin != Origin::Default);
    Some(given.unwrap_or(Setting::default(default)))
}

pub(super) fn set<T: Copy>(to: &mut T, setting: &Option<Setting<T>>) {
    if let Some(setting) = setting {
        *to = setting.value;
    }
}

pub(super) fn value<T: Copy>(setting: &Option<Setting<T>>, default: T) -> T {
    setting.as_ref().map_or(default, |s| s.value)
}

/// The default number of bytes in 1024 cycles: one per cycle.
const QUEUE_DRAIN: u32 = 1024;

/// The output queue of an encoder, if there is a limit to it.
pub(super) fn queue(
    bytes: &Option<Setting<u32>>,
    drain: &Option<Setting<u32>>,
    stall: &Option<Setting<bool>>,
) -> Option<Queue> {
    bytes.as_ref().map(|bytes| Queue {
        bytes: bytes.value,
        drain: value(drain, QUEUE_DRAIN),
        stall: value(stall, false),
    })
}
