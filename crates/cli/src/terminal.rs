//! The terminal while a guest uses it: keys go to the guest as they are pressed.

#[cfg(unix)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ctrl-A, the key before a command to us.
const ESCAPE: u8 = 1;

/// The user has ended the run with Ctrl-A X.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Whether the user has ended the run.
pub(crate) fn is_left() -> bool {
    LEFT.load(Ordering::Relaxed)
}

/// Finds commands to us among the keys.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The last key was Ctrl-A.
    escaped: bool,
}

impl Keys {
    /// Takes out the commands and does them; the rest is for the guest.
    pub(crate) fn filter(&mut self, keys: &mut Vec<u8>) {
        keys.retain(|key| {
            let escaped = std::mem::replace(&mut self.escaped, false);
            match (escaped, key) {
                (false, &ESCAPE) => {
                    self.escaped = true;
                    false
                }
                (true, b'x' | b'X') => {
                    LEFT.store(true, Ordering::Relaxed);
                    false
                }
                // Ctrl-A twice is Ctrl-A; other keys have no meaning for us.
                (true, &ESCAPE) => true,
                (true, _) => false,
                (false, _) => true,
            }
        });
    }
}

/// What the terminal was set to, until it is so again.
#[cfg(unix)]
static BEFORE: Mutex<Option<nix::sys::termios::Termios>> = Mutex::new(None);

/// The terminal in the hands of the guest.
#[derive(Debug)]
pub(crate) struct Terminal(());

impl Terminal {
    /// Gives keys to the guest as they are pressed: no line editing, no echo, no
    /// signals. `None` if the terminal cannot do so.
    #[cfg(unix)]
    pub(crate) fn enter() -> Option<Terminal> {
        use nix::sys::termios::{
            ControlFlags, InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, tcgetattr,
            tcsetattr,
        };
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.input_flags &= !(InputFlags::IGNBRK
            | InputFlags::BRKINT
            | InputFlags::PARMRK
            | InputFlags::ISTRIP
            | InputFlags::INLCR
            | InputFlags::IGNCR
            | InputFlags::ICRNL
            | InputFlags::IXON);
        raw.local_flags &= !(LocalFlags::ECHO
            | LocalFlags::ECHONL
            | LocalFlags::ICANON
            | LocalFlags::IEXTEN
            | LocalFlags::ISIG);
        raw.control_flags |= ControlFlags::CS8;
        for (index, value) in [
            (SpecialCharacterIndices::VMIN, 1),
            (SpecialCharacterIndices::VTIME, 0),
        ] {
            if let Some(place) = raw.control_chars.get_mut(index as usize) {
                *place = value;
            }
        }
        *BEFORE.lock().ok()? = Some(before);
        tcsetattr(&stdin, SetArg::TCSANOW, &raw).ok()?;
        Some(Terminal(()))
    }

    /// There is no terminal that could be set.
    #[cfg(not(unix))]
    pub(crate) fn enter() -> Option<Terminal> {
        None
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Sets the terminal to what it was; for every way out.
pub(crate) fn restore() {
    #[cfg(unix)]
    if let Ok(mut before) = BEFORE.lock()
        && let Some(before) = before.take()
    {
        use nix::sys::termios::{SetArg, tcsetattr};
        // Without a terminal there is nothing to be restored.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(pieces: &[&[u8]]) -> Vec<u8> {
        let mut keys = Keys::default();
        let mut all = Vec::new();
        for piece in pieces {
            let mut piece = piece.to_vec();
            keys.filter(&mut piece);
            all.extend(piece);
        }
        all
    }

    #[test]
    fn keys_go_to_the_guest_except_for_commands() {
        assert_eq!(filtered(&[b"ls\r", b"\x03"]), b"ls\r\x03");
        assert_eq!(filtered(&[b"a\x01\x01b"]), b"a\x01b");
        // In two pieces, too; and a key without a meaning is dropped.
        assert_eq!(filtered(&[b"a\x01", b"\x01b", b"\x01?c"]), b"a\x01bc");
        assert!(!is_left());
        assert_eq!(filtered(&[b"a\x01", b"xb"]), b"ab");
        assert!(is_left());
    }
}
