//! A section of the configuration, written down once: its keys, how each is
//! read, and how it is written.

use super::{Origin, Setting};
use hartrace_flow::queue::Queue;

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
        crate::config::write::quote(crate::config::ingress::name_of($names, $v))
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

/// The type of a section, with `over`, `read` and `write_keys`, and `KEYS`. The
/// keys that are sections of their own stand last.
macro_rules! section {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$doc:meta])* $key:ident: $type:ty = ($($kind:tt)+);)+
        }
        $(sections { $($(#[$subdoc:meta])* $sub:ident: $subtype:ty;)+ })?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $key: Option<crate::config::Setting<$type>>,)+
            $($($(#[$subdoc])* pub $sub: $subtype,)+)?
        }

        const KEYS: &[&str] = &[$(stringify!($key),)+ $($(stringify!($sub),)+)?];

        impl $name {
            /// This layer on top of another.
            pub(super) fn over(self, below: $name) -> $name {
                $name {
                    $($key: self.$key.or(below.$key),)+
                    $($($sub: self.$sub.over(below.$sub),)+)?
                }
            }

            fn read(
                reader: &mut crate::config::read::Reader,
                table: &toml::de::DeTable<'_>,
            ) -> $name {
                $name {
                    $($key: reader.get(table, stringify!($key), |r, n, v| {
                        read!($($kind)+, r, n, v)
                    }),)+
                    $($($sub: reader.$sub(table),)+)?
                }
            }

            fn write_keys(&self, out: &mut crate::config::write::Writer) -> std::fmt::Result {
                $(out.key(stringify!($key), self.$key.as_ref(), |v| {
                    show!($($kind)+, v)
                })?;)+
                Ok(())
            }

            /// Whether anybody said anything.
            #[must_use]
            pub fn is_said(&self) -> bool {
                *self != $name::default()
            }
        }
    };
}

/// What somebody said, or else this.
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

/// Bytes in 1024 cycles where nobody says it: one a cycle.
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
