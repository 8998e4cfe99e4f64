"""The record of a run for `gpulse runs`: what it was, from which commit, and how fast it went."""

from __future__ import annotations

import os
import threading
import time

from ..analysis.own_lines import flame_of
from ..model.codec import time_text
from ..model.verdict import total_budget
from ..present.code import advised, code_sentence
from ..present.verdicts import QUIET, line
from ..sources.secrets import mask
from ..store.runs import KeptRun, earlier, free_id, keep, keep_flame, read_run
from .presence import started_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..analysis.energy import Cost
    from ..analysis.summary import Summary
    from .ledger import Ledger

_THROUGHPUT = (
    "steps", "steps_per_second", "items", "items_per_second", "tokens", "tokens_per_second", "flops_per_second", "mfu",
    "mfu_reason", "energy", "energy_per_step", "energy_per_item", "energy_per_token",
)  # fmt: skip
_PHASE = ("name", "calls", "seconds", "steps", "steps_per_second", "data_wait_seconds", "energy")
_MOST_PHASES = 50
_MOST_LINES = 20
_GIT_SECONDS = 5.0
_PATIENCE = 0.5  # seconds to wait for git at the end of a run that was short


class RunRecord:
    """Writes one run into the index: what it is, how it is getting on, and how it ended.

    A run that is killed stays as it was last written, with the state "running" and a process that no longer exists. Nothing here raises
    or waits: a run matters more than its record. A Monitor inside of `gpulse run` only adds to that run's record (`part`).
    """

    def __init__(self, run: str, command: Sequence[str], pid: int, started: float, *, part: bool = False) -> None:
        self.id = run
        self.part = part
        self._command = command
        self._pid = pid
        self._start = time.time() - (time.monotonic() - started)
        self._due = 0.0  # seconds into the run at which it is written next
        self._begun = part
        self._git: threading.Thread | None = None
        self._ended = False
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Write what is known at the start, at once; what git says follows."""
        self._begun = True
        self.id = free_id(self.id)
        folder = _folder()
        self._write(
            {
                "state": "running",
                "command": mask(self._command)[:10_000],
                "folder": folder,
                "host": os.uname().nodename,
                "process": {"pid": self._pid, "started": started_ticks(self._pid)},
            }
        )
        self._git = _aside(lambda: self._write({"git": git_state(folder)}))

    def tick(self, ledger: Ledger) -> None:
        """Write how the run is getting on: early, and then ever less often."""
        seconds = ledger.seconds
        if seconds >= self._due:
            self._due = min(seconds * 4, seconds + 600.0)
            _aside(lambda: self._update(ledger))

    def end(self, summary: Summary | None, cost: Cost | None = None, **more: Any) -> KeptRun | None:
        """Write how it ended and return it; None if runs are not kept."""
        told = {} if summary is None else described(summary, cost)
        if self.part:
            part = {"recording": more.get("recording"), "seconds": None}
            return self._write({**told, **part}, summary)
        if not self._begun:
            self.begin()
        if self._git is not None:
            self._git.join(_PATIENCE)
        return self._write({**told, **more, "state": "ended"}, summary, last=True)

    def end_in_time(self, seconds: float, summary: Summary, **more: Any) -> str:
        """Write how it ended; return how it compares with the last run of its command, empty if that takes longer than this."""
        told: list[str] = []
        thread = _aside(lambda: told.append(compared_text(self.end(summary, **more))))
        if thread is not None:
            thread.join(seconds)
        return told[0] if told and not self.part else ""  # `gpulse run` says it itself

    def _update(self, ledger: Ledger) -> None:
        if not self._begun:
            self.begin()
        summary = ledger.summary()
        self._write({**described(summary), "seconds": None}, summary)

    def _write(self, told: Mapping[str, Any], summary: Summary | None = None, last: bool = False) -> KeptRun | None:
        with self._lock:
            if self._ended:
                return None
            self._ended = last
            try:
                path = keep({"schema": 1, "id": self.id, "start": time_text(self._start), **told})
                if path is not None and summary is not None and (flame := flame_of(summary.stacks)).seconds > 0:
                    keep_flame(path, flame.to_plain())
            except (OSError, ValueError):
                return None  # no space or no permission
        return None if path is None else read_run(path)


def _aside(write: Callable[[], object]) -> threading.Thread | None:
    try:
        thread = threading.Thread(target=_guarded, args=(write,), name="gpulse-record", daemon=True)
        thread.start()
    except RuntimeError:  # the interpreter is exiting
        _guarded(write)
        return None
    return thread


def _guarded(write: Callable[[], object]) -> None:
    try:
        write()
    except Exception:  # noqa: BLE001, S110  # the record of a run is worth no word in its output
        pass


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # it has been removed


def described(summary: Summary, cost: Cost | None = None) -> dict[str, Any]:
    """Return what a summary says, as it is kept."""
    plain, diagnosis = summary.to_plain(), summary.diagnosis or ()
    verdicts = [one for one in diagnosis if one.key not in QUIET]
    budget = total_budget(one.budget for one in diagnosis if one.budget is not None)
    used = [gpu for gpu in summary.gpus if gpu.own.used is not False]
    wait = 100.0 * summary.waited / summary.seconds if summary.waited and summary.seconds > 0 else None
    return {
        "seconds": summary.seconds,
        "gpus": [{"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name} for gpu in used],
        "verdict": [{"key": one.key, "index": one.index, "text": line(one)} for one in verdicts],
        "budget": None if budget is None else budget.to_plain(),
        "throughput": {key: plain[key] or None for key in _THROUGHPUT} | {"data_wait": wait},
        "peak_memory": max((gpu.peak_memory for gpu in used if gpu.peak_memory is not None), default=None),
        "cost": None if cost is None else cost.to_plain(),
        "step_time": plain["step_time"],
        "step_blocks": [float(f"{seconds:.6g}") for seconds in summary.step_blocks],
        "phases": [{key: phase[key] for key in _PHASE} for phase in plain["phases"][:_MOST_PHASES]],
        "code": plain.get("code", [])[:_MOST_LINES],
        "code_text": [text for text in (code_sentence(summary.code, summary.seconds), *advised(summary.code)) if text],
    }


def compared_text(run: KeptRun | None) -> str:
    """Return how a run compares with the last one of the same command, in a sentence; empty if there is none."""
    if run is None:
        return ""
    from ..analysis.run_comparison import RunComparison
    from ..present.runs import comparison_text

    before = earlier(run)
    steps = [one for one in before if one.list("step_blocks")]
    if not before or not (run.list("step_blocks") and steps):
        return ""
    return comparison_text(RunComparison(steps[0], run, steps), time.time())


def git_state(folder: str) -> dict[str, Any] | None:
    """Return commit, branch and whether files differ from the commit; None outside of a repository or if git does not answer."""
    import subprocess

    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # never writes to the repository
    try:
        told = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    return _git_told(told)


def _git_told(told: str) -> dict[str, Any] | None:
    heads: Mapping[str, str] = dict(
        text.removeprefix("# branch.").split(" ", 1) for text in told.splitlines() if text.startswith("# branch.")
    )
    commit, branch = heads.get("oid", ""), heads.get("head", "")
    if not commit or commit == "(initial)":
        return None
    dirty = any(text and not text.startswith("#") for text in told.splitlines())
    return {"commit": commit, "branch": None if branch == "(detached)" else branch, "dirty": dirty}


def result(run: KeptRun) -> str:
    """Return how a run ended: ok, exit 1, SIGTERM, ended (of a Monitor), running, or killed if nobody could say."""
    if signal := run.text("signal"):
        return signal
    if (code := run.number("exit_code")) is not None:
        return "ok" if not code else f"exit {code:.0f}"
    if run.text("state") == "ended":
        failure = run.text("failure") or "ended"
        return "interrupted" if failure == "KeyboardInterrupt" else failure
    process = run.part("process")
    if run.text("host") == os.uname().nodename and isinstance(pid := process.get("pid"), int):
        started = started_ticks(pid)
        return "running" if started is not None and started == process.get("started") else "killed"
    return "running"
