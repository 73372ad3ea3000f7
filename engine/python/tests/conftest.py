"""Traces of the programs of the repository, made by the wheel itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import hartrace

REPOSITORY = Path(__file__).resolve().parents[3]

STAMPS = """\
[ntrace]
mode = "btm"
timestamps = true
sync_max = 4
"""

DATA = """\
[etrace.data]
enabled = true
"""


def elf(name: str) -> Path:
    """A program such as `sort-rv64gc`."""
    return REPOSITORY / "programs" / name.split("-")[0] / f"{name}.elf"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Indexes are kept apart from those of the user."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


class Traces:
    """Makes traces, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[object, ...], Path] = {}

    def path(
        self, name: str, kind: str, limit: int = 60_000, config: str = "", harts: int = 1
    ) -> Path:
        key = (name, kind, limit, config, harts)
        if key not in self.made:
            number = len(self.made)
            output = self.folder / f"{number}-{name}.{kind}"
            settings = self.folder / f"{number}.toml"
            settings.write_text(config)
            result = hartrace.run(
                elf(name),
                output=output,
                config=settings,
                max_instructions=limit,
                harts=harts,
            )
            assert result.trace is not None and result.trace_bytes == output.stat().st_size
            self.made[key] = output
        return self.made[key]

    def open(
        self, name: str, kind: str, limit: int = 60_000, config: str = "", harts: int = 1
    ) -> hartrace.Trace:
        return hartrace.open(self.path(name, kind, limit, config, harts))


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    return Traces(tmp_path_factory.mktemp("traces"))


def tool(variable: str) -> Path:
    """A program of hartrace that is built already."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} does not name the program")
    return Path(path)


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command, and gives what it printed."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)
