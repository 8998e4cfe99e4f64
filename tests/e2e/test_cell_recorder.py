"""`%load_ext gpulse` in a real kernel: when each cell ran is in a file beside the connection file, and no cell notices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.store.cell_log import CellLog
from tests.e2e.lab import ROOT

pytest.importorskip("ipykernel")
client_module = pytest.importorskip("jupyter_client")

_PATIENCE = 60


class RunningKernel:
    """A kernel of Jupyter, and what its cells wrote."""

    def __init__(self, folder: Path) -> None:
        environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "JUPYTER_RUNTIME_DIR": str(folder)}
        self.manager = client_module.KernelManager(
            kernel_name="python3", connection_file=str(folder / "kernel-test.json")
        )
        self.manager.start_kernel(env=environ)
        self.connect()
        self.log = CellLog(self.manager.connection_file)

    def connect(self) -> None:
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(_PATIENCE)

    def run(self, code: str, **more: Any) -> tuple[str, str]:
        """Run a cell and return the ID of its message with everything it showed."""
        told: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            told.append(str(content.get("text") or content.get("traceback") or content.get("data") or ""))

        reply = self.client.execute_interactive(code, output_hook=hear, timeout=_PATIENCE, **more)
        return reply["parent_header"]["msg_id"], "".join(told)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[RunningKernel]:
    kernel = RunningKernel(tmp_path)
    yield kernel
    kernel.close()


def test_each_cell_is_recorded_with_its_message_and_how_it_ended(kernel: RunningKernel) -> None:
    kernel.run("x = 0")
    kernel.run("%load_ext gpulse")
    good, _ = kernel.run("\n  # a comment\nx = 1")
    bad, told = kernel.run("raise ValueError('the cell')")
    kernel.run("x = 2", silent=True)
    kernel.run("")
    nested, _ = kernel.run("get_ipython().run_cell('y = 1'); get_ipython().run_cell(''); z = 2")
    spans = kernel.log.read()
    assert [(span.id, span.code, span.ok) for span in spans] == [
        (good, "# a comment", True),
        (bad, "raise ValueError('the cell')", False),
        (nested, "get_ipython().run_cell('y = 1'); get_ipython().run_cell(''); z = 2", True),
    ]
    assert [span.count for span in spans] == [3, 4, 5]
    assert all(span.end is not None and span.end >= span.start for span in spans)
    assert "gpulse" not in told
    kernel.run("%unload_ext gpulse")
    kernel.run("x = 3")
    assert len(kernel.log.read()) == 4, "the cell that unloads it was the last"


def test_a_cell_that_runs_is_there_and_a_restart_keeps_the_past(kernel: RunningKernel) -> None:
    kernel.run("%load_ext gpulse")
    _, told = kernel.run(f"print(open({kernel.log.path!r}).read())")
    assert '"end":null' in told
    kernel.client.stop_channels()
    kernel.manager.restart_kernel(now=True)
    kernel.connect()
    kernel.run("%load_ext gpulse")
    kernel.run("after = 1")
    assert [span.code for span in kernel.log.read()][-1] == "after = 1"
    assert len(kernel.log.read()) == 2


@pytest.mark.parametrize("trouble", ["import os; os.mkdir(path)", "import os; os.symlink('/dev/full', path)"])
def test_a_file_that_cannot_be_written_disturbs_no_cell(kernel: RunningKernel, trouble: str) -> None:
    kernel.run(f"path = {kernel.log.path!r}; {trouble}")
    for code in ("%load_ext gpulse", "print('fine')"):
        _, told = kernel.run(code)
        assert "Error" not in told
    assert told == "fine\n"
