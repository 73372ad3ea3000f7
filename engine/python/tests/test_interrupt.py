"""Ctrl-C ends what takes long."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Traces, elf

PRELUDE = """\
import sys, hartrace
import pyarrow as pa
trace = hartrace.open(sys.argv[1]) if sys.argv[1].endswith("ntrace") else None
# What is imported when it is first needed takes its time, too.
import polars
pa.table({{"a": [1]}})
print("ready", flush=True)
try:
    try:
        {work}
    except Exception as error:
        # No error of the tool that reads hides an interrupt.
        print(error)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
print("done", flush=True)
"""


def interrupt(path: Path, work: str, tmp_path: Path) -> tuple[str, int, float]:
    """Starts a script, presses Ctrl-C and waits for its end."""
    command = [sys.executable, "-c", PRELUDE.format(work=work), str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    return output, process.returncode, time.monotonic() - begin


@pytest.mark.parametrize(
    "work",
    [
        "pa.table(trace.runs())",
        "sum(1 for _ in trace.iter_instructions())",
        "list(trace.iter_events(['gap']))",
        "pa.RecordBatchReader.from_stream(trace.traps()).read_all()",
        "polars.DataFrame(trace.runs())",
    ],
)
def test_decoding_is_interrupted(traces: Traces, tmp_path: Path, work: str) -> None:
    # The same trace many times over: long enough for any machine.
    whole = traces.path("sort-rv64gc", "ntrace", 200_000)
    path = tmp_path / "long.ntrace"
    path.write_bytes(whole.read_bytes() * 1000)
    Path(f"{path}.toml").write_text(Path(f"{whole}.toml").read_text())
    output, code, took = interrupt(path, work, tmp_path)
    assert output.splitlines()[-1] == "interrupted" and code == 3, output
    assert took < 5


def test_a_run_is_interrupted_and_leaves_nothing(tmp_path: Path) -> None:
    work = "hartrace.run(sys.argv[1], output='run.ntrace')"
    output, code, took = interrupt(elf("long-rv64gc"), work, tmp_path)
    assert (output, code) == ("interrupted\n", 3)
    assert took < 5
    assert list(tmp_path.iterdir()) == []
