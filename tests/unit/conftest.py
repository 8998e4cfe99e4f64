"""What unit tests share, and what holds for each: what belongs to the process as a whole is as new for the next test."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _new_process_state() -> Iterator[None]:
    """Stop the quiet monitor of measurements, forget their totals, and what was said once; only in modules that are loaded."""
    yield
    if (measure := sys.modules.get("gpulse.monitor.measure")) is not None:
        measure.QUIET_MONITOR.stop()
        measure.measurements().clear()
    if (process := sys.modules.get("gpulse.monitor.process")) is not None:
        vars(process)["EARLIER_CELLS"] = process.EarlierCells()
    if (training := sys.modules.get("gpulse.callbacks.training")) is not None:
        training._told.clear()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="gpulse-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
