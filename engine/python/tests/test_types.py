"""The stubs are those of the compiled part, and a type checker accepts what users write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hartrace
import pytest
import sample
from conftest import Traces, elf

HERE = Path(__file__).parent


def check(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, cwd=HERE.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_are_those_of_the_module() -> None:
    check("mypy.stubtest", "hartrace._hartrace")


def test_the_package_and_a_sample_have_right_types() -> None:
    check("mypy", "--strict", "-p", "hartrace")
    check("mypy", "--strict", "--ignore-missing-imports", "tests/sample.py")


def test_the_checker_sees_mistakes(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import hartrace\n"
        "trace = hartrace.open('x', program=5)\n"
        "trace.iter_events(['jump'])\n"
        "hartrace.run('x', trace='vcd').exit_code + 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(wrong)],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
    )
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    assert {line.split(":")[1] for line in lines} == {"2", "3", "4"}, done.stdout


def test_the_sample_runs(traces: Traces, capsys: pytest.CaptureFixture[str]) -> None:
    path = traces.path("sort-rv64gc", "ntrace")
    assert sample.main(str(path), str(elf("sort-rv64gc"))) == 0
    assert "auipc gp,0x2 _start 19" in capsys.readouterr().out
    assert sample.main("none.ntrace", "none.elf") == 1


def test_everything_is_documented() -> None:
    for name in hartrace.__all__:
        if name in ("TABLES", "Event"):
            continue
        thing = getattr(hartrace, name)
        assert thing.__doc__, name
        for attribute, value in vars(thing).items():
            if not attribute.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{attribute}"
