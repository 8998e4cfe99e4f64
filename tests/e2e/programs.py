"""Programs with a monitor in them, run as their users run them, and the agents beside them."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.e2e.lab import ROOT, environment
from tests.fake_nvml import Scenario

PATIENCE = 60.0
QUIET = str(Path(__file__).with_name("quiet.toml"))  # no alerts
PRELUDE = """
import atexit, os, signal, sys, threading, time
import gpulse
from gpulse.sinks import CallableSink

def until(condition, patience=50):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            print("waited in vain", file=sys.stderr, flush=True)
            os._exit(99)
        time.sleep(0.01)

def onto_the_gpus():
    # the driver reads its script when it is loaded: put this program where it has OWN
    path = os.environ.get("FAKE_NVML_SCENARIO", "")
    if os.path.isfile(path):
        with open(path) as file:
            script = file.read()
        with open(path, "w") as file:
            file.write(script.replace("pid = OWN", f"pid = {os.getpid()}"))

class Values:
    '''A sink that keeps all values; call it for the next that fit, of which none is missed on a busy machine.'''
    def __init__(self):
        self.kept, self.read = [], 0
        self.sink = CallableSink(self.take)
    def take(self, values, step, time):
        self.step = step
        self.kept.append(values)
    @property
    def count(self):
        return len(self.kept)
    def __call__(self, fits=bool):
        def found():
            while self.read < len(self.kept):
                self.read += 1
                if fits(self.kept[self.read - 1]):
                    return True
        until(found)
        return self.kept[self.read - 1]
"""


def plain_environment(**more: str) -> dict[str, str]:
    """Return an environment in which a demo machine is what gpulse sees."""
    # since 3.12 Python warns whoever forks beside a thread, be it ours
    usual = {
        "PYTHONPATH": str(ROOT / "src"),
        "GPULSE_SOURCE": "demo",
        "GPULSE_CONFIG": QUIET,
        "GPULSE_RUNS": "off",
        "PYTHONWARNINGS": "ignore",
    }
    return os.environ | usual | more


class Ended:
    """What a program left behind."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ended) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def run(code: str, folder: Path, environ: dict[str, str], **more: object) -> Ended:
    """Run a program to its end."""
    file = folder / "program.py"
    file.write_text(PRELUDE + code)
    done = subprocess.run(
        [sys.executable, str(file)], env=environ, capture_output=True, timeout=PATIENCE, cwd=folder, **more
    )  # type: ignore[call-overload]
    return Ended(done.returncode, done.stdout, done.stderr)


class Program:
    """A program that is talked to: it says lines on stdout and waits for lines on stdin."""

    def __init__(self, code: str, folder: Path, environ: dict[str, str]) -> None:
        file = folder / "program.py"
        file.write_text(PRELUDE + code)
        self._err = folder / "err"
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, str(file)],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                bufsize=0,
                cwd=folder,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._out = b""

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def line(self) -> str:
        """Return the next line it says."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], PATIENCE)[0]:
            raise AssertionError(f"it says nothing; stderr: {self._err.read_text()}")
        line = self._process.stdout.readline()
        assert line, f"it has ended; stderr: {self._err.read_text()}"
        self._out += line
        return line.decode().rstrip("\n")

    def go(self) -> None:
        """Say a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal, as Ctrl-C does to the whole `group`."""
        (os.killpg if group else os.kill)(self.pid, number)

    def end(self) -> Ended:
        """Wait for its end."""
        out, _ = self._process.communicate(timeout=PATIENCE)
        return Ended(self._process.returncode, self._out + out, self._err.read_bytes())

    @property
    def err(self) -> str:
        """What it has said on stderr so far."""
        return self._err.read_text()


def agents(of: int) -> list[int]:
    """Return the agents that serve a process, which are nobody's children."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                name = (entry / "comm").read_bytes().strip()  # what starts an agent has its words and not its name
            except OSError:
                continue
            if name == b"gpulse-agent" and any(b'"pid": %d,' % of in word for word in words):
                found.append(int(entry.name))
    return sorted(found)


def agent(of: int) -> int:
    """Return the one agent of a process."""
    until(lambda: agents(of))  # it is there soon after it was started
    found = agents(of)
    assert len(found) == 1, f"agents: {found}"
    return found[0]


@contextmanager
def outlived(pid: int) -> Iterator[Callable[[], None]]:
    """Yield a function that waits until a process, found by its id now, has ended."""
    handle = os.pidfd_open(pid)

    def wait() -> None:
        assert select.select([handle], [], [], PATIENCE)[0], f"process {pid} lives on"

    try:
        yield wait
    finally:
        os.close(handle)


def until(condition: Callable[[], object]) -> None:
    """Wait for something that nobody tells of."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


# --- machines that programs are run on

DEMO = plain_environment()
UUIDS = [f"GPU-0000000{at}-1111-2222-3333-444444444444" for at in range(4)]
READY = """
m = gpulse.Monitor(interval=0.1).start()
until(lambda: m.latest)
print("ready", flush=True)
"""


def machine(count: int = 4) -> Scenario:
    """Return a machine on which every GPU says other numbers."""
    scenario = Scenario.parse(f"include boards/h100\n[driver]\ngpus = {count}")
    for at in range(count):
        scenario.gpu(
            at,
            uuid=UUIDS[at],
            pci__bus_id=f"00000000:{at + 1:02X}:00.0",
            utilization__gpu=10 + at,
            temperature=40 + at,
            power=f"{100 + at} W",
            memory__used=f"{at + 1} GiB",
        )
    return scenario


def on(scenario: Scenario, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a scripted machine, without alerts."""
    return environment(scenario, folder / "machine", **{"GPULSE_CONFIG": QUIET, **more})


def told(code: str, folder: Path, environ: dict[str, str]) -> Any:
    """Return what a program prints as JSON; it must end well and say nothing else."""
    ended = run(f"import json\n{code}", folder, environ)
    assert (ended.code, ended.err) == (0, ""), ended
    return json.loads(ended.out)
