"""Real trainings in a process of their own: how a test runs one, and what the training tells about its monitor."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gpulse import Monitor
    from gpulse.sinks import Sample

from gpulse.sinks import Sink
from gpulse.sources.processes import parse_stat
from tests.e2e.lab import Forking

SLEEP = 0.05  # seconds a slow loader takes for a batch
SLOW = 0.2  # seconds, long against all that a training does in a step


_FRAMEWORKS = (  # each with what the trainings use of it
    "torch.utils.tensorboard",
    "accelerate",
    "transformers.trainer",
    "transformers.models.bert.modeling_bert",
    "lightning.pytorch.cli",
    "keras",
)


def trainings() -> Forking:
    """Return a program that has imported all frameworks there are, for 7 s of CPU time, and forks for each training."""
    return Forking("tests.e2e.trainings", 120.0, KERAS_BACKEND="torch", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")


def run(server: Forking, code: str, folder: Path, *needs: str) -> Any:
    """What a program says as JSON on the last line of its output; skips where a framework is missing."""
    for name in needs:
        if find_spec(name) is None:
            pytest.skip(f"needs {name}")
    environ = {
        "GPULSE_SOURCE": "demo",
        "GPULSE_CONFIG": str(Path(__file__).with_name("quiet.toml")),  # no alerts
    }
    ended = server.ask({"code": code, "folder": str(folder), "environment": environ})
    out, err = (folder / "out.txt").read_text(), (folder / "err.txt").read_text()
    assert ended == "0\n", err
    assert "gpulse:" not in err, err
    return json.loads(out.splitlines()[-1])


def train(request: dict[str, Any]) -> None:
    """Run one program in this, forked, process."""
    os.chdir(request["folder"])
    for number, name in ((0, os.devnull), (1, "out.txt"), (2, "err.txt")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o644), number)
    os.environ.update(request["environment"])
    sys.argv = ["-c"]
    exec(compile(request["code"], "<training>", "exec"), vars(sys.modules["__main__"]))


def serve() -> None:
    """Import the frameworks, then run one program a line until there are no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _FRAMEWORKS:
            with contextlib.suppress(ImportError):
                import_module(name)
    for line in iter(sys.stdin.readline, ""):
        if (pid := os.fork()) == 0:
            train(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


class Watch(Sink):
    """Keeps the samples of a training and lets it wait for them."""

    name = "watch"

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._changed = threading.Condition()

    def write(self, sample: Sample) -> None:
        with self._changed:
            self.samples.append(sample)
            self._changed.notify_all()

    def wait(self, more: int = 2) -> None:
        """Return once so many more samples have come."""
        with self._changed:
            wanted = len(self.samples) + more
            assert self._changed.wait_for(lambda: len(self.samples) >= wanted, timeout=20)

    def marks(self) -> list[tuple[str, object]]:
        return [(mark.name, mark.value) for sample in self.samples for mark in sample.marks]


def told(monitor: Monitor) -> dict[str, Any]:
    """What is left to say when a training is over."""
    summary = monitor.summary()
    assert summary is not None
    return {
        "samples": summary.samples,
        "steps": summary.steps,
        "waited": summary.waited,
        "phases": {phase.name: {"steps": phase.steps, "waited": phase.waited} for phase in summary.phases},
        "runs": monitor.samples,
        "agents": agents(),
        "errors": monitor.errors,
    }


def agents() -> int:
    """How many samplers are children of this process, ended ones that nobody has waited for included."""
    mine = 0
    for entry in Path("/proc").iterdir():
        try:
            stat = parse_stat((entry / "stat").read_bytes() if entry.name.isdecimal() else b"")
            words = (entry / "cmdline").read_bytes() if stat else b""
        except OSError:
            continue
        if stat and stat.parent == os.getpid():
            mine += b"gpulse" in words or not words
    return mine


class Failing:
    """A training that fails with `boom`: copies of its callback are made then, and whether it ran is noted."""

    def __init__(self, callback: Any) -> None:
        self.callback = callback
        self.copies: list[Any] = []
        self._ran: list[bool] = []
        self._passed = False

    def boom(self) -> None:
        """Fail."""
        self.copies += [copy.deepcopy(self.callback), pickle.loads(pickle.dumps(self.callback))]
        self._ran.append(self.callback.monitor.samples)
        raise _Boom

    def train(self, fit: Callable[[], object]) -> None:
        """Train until it fails."""
        try:
            fit()
        except _Boom:
            self._passed = True

    def told(self) -> dict[str, Any]:
        """Return what the monitor saw, and what became of error and copies."""
        ran = [each.monitor.samples for each in self.copies]
        return told(self.callback.monitor) | {"passed": self._passed, "ran": self._ran[:], "copies_run": ran}


class _Boom(Exception):
    pass


def tell(**answers: object) -> None:
    """Print what the test asks for."""
    print()
    print(json.dumps(answers))


if __name__ == "__main__":
    serve()
