//! Declares the faults of a protocol.

/// Defines a protocol's `Fault`: one flat list, each with a stable code and a
/// few words, convertible to a [`Reason`](crate::Reason).
///
/// ```
/// hartrace_flow::faults! {
///     //! What is wrong with such a trace.
///
///     /// A byte that is nothing.
///     BadByte = "XX0101", "byte that is nothing";
/// }
///
/// assert_eq!(Fault::ALL, [Fault::BadByte]);
/// assert_eq!(Fault::BadByte.reason(7).to_string(), "XX0101: byte that is nothing (0x7)");
/// assert_eq!(Fault::BadByte.reason(0).to_string(), "XX0101: byte that is nothing");
/// ```
///
/// Inner comments (`//!`) at the start are those of the list.
#[macro_export]
macro_rules! faults {
    (
        $(#![$all:meta])*
        $($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*
    ) => {
        $(#[$all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// Every fault there is.
            pub const ALL: &'static [Fault] = &[$(Fault::$name,)*];

            /// The stable code: two letters for the protocol, four digits.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Fault::$name => $code,)* }
            }

            /// What it means, in a few words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Fault::$name => $text,)* }
            }

            /// As the reason of a gap, with the value that goes with it.
            #[must_use]
            pub const fn reason(self, value: u64) -> $crate::Reason {
                $crate::Reason {
                    code: self.code(),
                    text: self.text(),
                    value,
                }
            }
        }
    };
}
