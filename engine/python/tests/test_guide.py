"""The examples of the guide run as they are."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path

import pytest
from conftest import REPOSITORY, STAMPS, Traces, elf

import hartrace


def test_the_examples_of_the_guide(
    traces: Traces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (REPOSITORY / "docs" / "guide" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 7
    monkeypatch.chdir(tmp_path)
    program = shutil.copy(elf("timer-rv64gc"), "prog.elf")
    Path("encoder.toml").write_text("[etrace]\ntime_width = 40\n" + STAMPS)
    for name in ("run.ntrace", "run.etrace"):
        hartrace.run(program, output=name, config="encoder.toml")
    Path("regression").mkdir()
    for number in range(2):
        shutil.copy("run.ntrace", f"regression/{number}.ntrace")
        shutil.copy("run.ntrace.toml", f"regression/{number}.ntrace.toml")
        text = Path(f"regression/{number}.ntrace.toml").read_text()
        Path(f"regression/{number}.ntrace.toml").write_text(text.replace("prog.elf", "../prog.elf"))
    with Path("spike.log").open("w") as log:
        for insn in hartrace.open("run.ntrace").iter_instructions():
            log.write(f"core   0: 3 {insn.pc:#018x} ({insn.bits:#010x})\n")
    names: dict[str, object] = {}
    for block in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(block, names)
    assert names["traps"].height > 0  # type: ignore[attr-defined]
    assert isinstance(names["result"], hartrace.RunResult)
