//! Strings, each stored once and used by its number.

use std::collections::HashMap;

/// Numbers strings.
#[derive(Debug)]
pub(crate) struct Strings {
    list: Vec<String>,
    known: HashMap<String, i64>,
    is_complete: bool,
}

/// Number 0 is the empty string: no label is -1, which stands for no function.
impl Default for Strings {
    fn default() -> Strings {
        Strings {
            list: vec![String::new()],
            known: HashMap::from([(String::new(), 0)]),
            is_complete: false,
        }
    }
}

impl Strings {
    /// Those of a document that is written already: others have number 0.
    pub(crate) fn complete(list: Vec<String>) -> Strings {
        let known = list.iter().cloned().zip(0i64..).collect();
        Strings {
            list,
            known,
            is_complete: true,
        }
    }

    /// The number of a string.
    pub(crate) fn of(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.known.get(text) {
            return number;
        }
        if self.is_complete {
            return 0;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), number);
        number
    }

    /// A string in a place where functions are expected: below 0.
    pub(crate) fn label(&mut self, text: &str) -> i64 {
        -1 - self.of(text)
    }

    /// All of them, by their numbers.
    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}
