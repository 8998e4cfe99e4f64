"""Reports of a long history, which are made from means."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from gpulse.cli.main import main
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryWriter
from tests.unit.store.history.ticks import TurnedClock


def test_two_days_are_read_as_means_and_keep_peaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, clock, now = str(tmp_path / "h.db"), TurnedClock(), time.time()
    with HistoryWriter(path, clock=clock) as writer:
        for at in range(0, 48 * 3600 + 1, 60):
            clock.now += 0.5
            memory = (70 << 30) if at == 36_000 else 8 << 30
            running = Process(
                {"pid": 7, "user": "ada", "name": "python", "running_time": at + 1.0, "memory_used": memory}
            )
            gpu = Gpu({"uuid": "GPU-a", "index": 0, "name": "H100", "memory_total": 80 << 30}, processes=(running,))
            gpu = gpu.replace(utilization=50.0, memory_used=memory, power_draw=100.0)
            writer.add(Snapshot(now - 48 * 3600 + at, (gpu,)))
    monkeypatch.setenv("GPULSE_HISTORY", path)
    assert main(["report", "--from", "2d", "--format", "text"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"[23]\d\d samples, about (9|10)m\d\ds apart", said)
    assert "70.0/80.0 GiB" in said  # held for one sample
    assert re.search(r"4\.8\d kWh", said)
