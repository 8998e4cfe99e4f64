"""A monitor beside real training in torch: same losses, one agent, and curves that TensorBoard reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.programs import Program, agents, plain_environment
from tests.packages import require
from tests.unit.readback import tensorboard_rows

require("torch", "tensorboard")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux"),
    pytest.mark.filterwarnings("ignore"),  # torch and tensorboard have many of their own
]

# of a loader, by how it starts them; one that is not forked takes 2 s of CPU time to import torch
WORKERS = {"fork": 2, "spawn": 1, "forkserver": 1}
DEMO = plain_environment(OMP_NUM_THREADS="1")
TRAINING = (
    f"WORKERS = {WORKERS}"
    + """
import contextlib, json
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __init__(self, monitor):
        self.monitor = monitor
    def __len__(self):
        return 64
    def __getitem__(self, at):
        if self.monitor is not None:
            self.monitor.step()  # in a worker: does nothing
        return self.look_up(at)
    @gpulse.measure(show=False)
    def look_up(self, at):
        generator = torch.Generator().manual_seed(at)
        return torch.randn(8, generator=generator), torch.tensor([float(at % 5)])

def train(monitor, method):
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Numbers(monitor), batch_size=8, shuffle=True, num_workers=WORKERS[method], multiprocessing_context=method,
                        persistent_workers=True)
    losses = []
    for epoch in range(2):
        if monitor is not None:
            monitor.mark("epoch", epoch)
        with monitor.phase("train") if monitor is not None else contextlib.nullcontext():
            for x, y in monitor.batches(loader) if monitor is not None else loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    return losses, loader

if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(train(None, "fork")[0]), flush=True)
    from gpulse.sinks import TensorBoardSink
    for method in WORKERS:
        values = Values()
        with gpulse.Monitor([TensorBoardSink(method), values.sink], interval=0.1) as m:
            losses, loader = train(m, method)
            print(json.dumps(losses), flush=True)
            print(json.dumps([worker.pid for worker in loader._iterator._workers]), flush=True)
            sys.stdin.readline()
            until(lambda: values.kept and values.kept[-1].get("process/tree_cpu_percent") and m.summary().seconds > 3)  # a point a second
        del loader  # and its workers
        print(json.dumps([m.errors, m.summary().steps, m.summary().phase("train").calls]), flush=True)
"""
)


def test_training_with_loader_workers_is_the_same_and_has_one_agent(tmp_path: Path) -> None:
    with Program(TRAINING, tmp_path, DEMO) as program:
        losses = program.line()
        assert len(losses.split(",")) == 16
        for method, count in WORKERS.items():
            assert program.line() == losses, method
            workers = [int(word) for word in re.findall(r"\d+", program.line())]
            assert len(agents(program.pid)) == 1, method
            assert [agents(worker) for worker in workers] == [[]] * count, method
            program.go()
            assert program.line() == "[0, 16, 2]", method  # steps of the loop, and none of the workers'
        ended = program.end()
    assert ended.code == 0, ended
    assert "gpulse" not in ended.err, ended

    for method in WORKERS:
        rows = tensorboard_rows(tmp_path / method / "gpulse")  # asserts also that no step comes twice or goes back
        assert len(rows) >= 3, method
        assert any("gpu0/utilization" in values for _, values in rows), method
        assert any("process/tree_cpu_percent" in values for _, values in rows), method


def test_a_real_error_of_torch_is_explained() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import gpulse, torch\nwith gpulse.oom_report(source='demo'):\n    torch.empty(1 << 50, dtype=torch.uint8)",
        ],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "PYTHONPATH": "src"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "gpulse: out of memory (RAM): torch asked for 1.0 PiB." in done.stderr
    assert "RuntimeError" in done.stderr
