//! What contexts are called.

use hartrace_flow::Context;
use std::collections::BTreeMap;

/// Names of contexts, such as those of processes.
///
/// ```
/// use hartrace_analyze::ContextNames;
/// use hartrace_flow::Context;
///
/// let names: ContextNames = [(Context(5), "sh".to_owned())].into_iter().collect();
/// assert_eq!(names.label(Context(5)), "context 0x5 sh");
/// assert_eq!(names.label(Context(6)), "context 0x6");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextNames(BTreeMap<Context, String>);

impl ContextNames {
    /// The name of a context, if it has one.
    #[must_use]
    pub fn get(&self, context: Context) -> Option<&str> {
        self.0.get(&context).map(String::as_str)
    }

    /// The number of a context, and its name if it has one.
    #[must_use]
    pub fn label(&self, context: Context) -> String {
        match self.get(context) {
            Some(name) => format!("context {:#x} {name}", context.0),
            None => format!("context {:#x}", context.0),
        }
    }
}

impl FromIterator<(Context, String)> for ContextNames {
    fn from_iter<T: IntoIterator<Item = (Context, String)>>(names: T) -> ContextNames {
        ContextNames(names.into_iter().collect())
    }
}
