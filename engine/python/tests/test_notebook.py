"""The notebook runs from its first to its last cell."""

from __future__ import annotations

import nbformat
from conftest import REPOSITORY
from nbclient import NotebookClient

FOLDER = REPOSITORY / "examples" / "notebook"


def test_the_notebook_runs() -> None:
    path = FOLDER / "questions.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    plots = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(plots) == 3
    tables = [output for output in outputs if output.output_type == "execute_result"]
    assert len(tables) == 3
    first, _, last = (str(table["data"]["text/plain"]) for table in tables)
    assert "collatz" in first and "interrupt" in last
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    assert text.startswith("ntrace 72436 instructions in") and " traps to " in text
