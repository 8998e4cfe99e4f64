"""The lab: gpulse on scripted machines, with a fresh process for each question and one start of Python for all."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fake_nvml import Clock, Scenario, calls
from tests.fake_nvml.build import SONAME

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds after which a question counts as hung


class Answer:
    """What a run left behind."""

    def __init__(self, code: int, folder: Path) -> None:
        self.code = code
        self.out = (folder / "out").read_bytes().decode("utf-8", "surrogateescape")
        self.err = (folder / "err").read_text(errors="surrogateescape")
        self.calls: Counter[str] = calls(folder)

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)

    @property
    def gpus(self) -> Any:
        """The GPUs of the one snapshot on stdout."""
        return self.json["gpus"]


def environment(scenario: Scenario, folder: Path, **more: str) -> dict[str, str]:
    """The environment of a child on a scripted machine without latency, and with this checkout's gpulse."""
    own = {
        "HOME": str(folder),
        "GPULSE_HISTORY": str(folder / "history.db"),
        "GPULSE_RUNS": "off",
        "GPULSE_CLAIMS": str(folder),
    }
    return scenario.write(folder) | {"FAKE_NVML_LATENCY": "none"} | own | more


class Forking:
    """A program, started when it is first asked, that reads a line of JSON, answers in a fork, and prints a line."""

    def __init__(self, module: str, patience: float, **environ: str) -> None:
        self._command = [sys.executable, "-m", module]
        self._environ = environ
        self._patience = patience  # seconds after which a question counts as hung
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Forking:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, question: dict[str, Any]) -> str:
        """Return the line that answers a question; a program that hangs is ended, and started again for the next."""
        program = self._start()
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps(question) + "\n")
        program.stdin.flush()
        if not select.select([program.stdout], [], [], self._patience)[0]:
            self.close()
            raise AssertionError(f"no answer within {self._patience:.0f} s")
        return program.stdout.readline()

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=os.environ | self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        return self._process

    def close(self) -> None:
        """End it, and whatever hangs in it."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.communicate()
            self._process = None


class Lab:
    """Owns the worker process; every question has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asked = 0
        self._worker = Forking("tests.e2e.worker", PATIENCE)

    def run(self, scenario: Scenario, *arguments: str, **environ: str) -> Answer:
        """Run a gpulse command on a scripted machine."""
        return self._ask(scenario, list(arguments), None, environ)

    def see(self, scenario: Scenario, code: str, **environ: str) -> Any:
        """What a piece of Python says about a scripted machine whose clock stands at 0 until it calls `at`."""
        answer = self.ask(scenario, code, **environ)
        assert answer.code == 0, answer.err
        assert not answer.err
        return answer.json

    def ask(self, scenario: Scenario, code: str, **environ: str) -> Answer:
        """The same, with all that the process left behind."""
        return self._ask(scenario, [], code, environ)

    def _ask(self, scenario: Scenario, arguments: list[str], code: str | None, environ: dict[str, str]) -> Answer:
        self._asked += 1
        folder = self._folder / str(self._asked)
        folder.mkdir()
        plain = environment(scenario, folder, **environ)
        if code is not None:
            plain |= Clock(folder).environment
        library = Path(plain.pop("LD_LIBRARY_PATH").split(os.pathsep)[0]) / SONAME
        request = {
            "arguments": arguments,
            "code": code,
            "environment": plain,
            "library": str(library),
            "out": str(folder / "out"),
            "err": str(folder / "err"),
        }
        return Answer(int(self._worker.ask(request)), folder)

    def close(self) -> None:
        """End the worker and whatever question hangs in it."""
        self._worker.close()
