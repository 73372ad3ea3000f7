"""Errors with the codes of the command line."""

from __future__ import annotations


class HartraceError(Exception):
    """Something that cannot be read or done, with a stable code.

    `str()` gives the text that the command line prints. `docs/diagnostics.md` explains the codes;
    `hartrace explain CODE` prints the same.
    """

    code: str
    """The code, such as `HT0001`."""
    message: str
    """What happened, and to what."""
    notes: list[str]
    """Why, probably."""
    help: str | None
    """What to change."""
    exit_code: int
    """With what the command line would end."""

    def __init__(
        self,
        code: str,
        message: str,
        notes: list[str],
        help: str | None,
        exit_code: int,
        text: str,
    ) -> None:
        super().__init__(code, message, notes, help, exit_code, text)
        self.code = code
        self.message = message
        self.notes = notes
        self.help = help
        self.exit_code = exit_code
        self._text = text

    def __str__(self) -> str:
        return self._text


class FileError(HartraceError, OSError):
    """A file cannot be opened, read or written (HT00xx)."""


class FormatError(HartraceError):
    """A file is not what it should be, is damaged, or has not what is wanted (HT01xx)."""


class ConfigError(HartraceError):
    """A configuration, or settings that contradict each other (HT02xx)."""


class UsageError(HartraceError, ValueError):
    """An argument that cannot be used; a program that is missing (HT03xx)."""


class RunError(HartraceError):
    """A program that failed on the built-in hart (HT04xx)."""


class HartraceWarning(UserWarning):
    """Something that may make a result wrong, such as settings that were guessed."""
