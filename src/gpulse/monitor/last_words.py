"""What the agent writes when its program ends without stopping the monitor: a last line in each file, and the report.

No handler of the program is replaced: a process that is killed says nothing, so the agent, which outlives it for a moment, speaks for it.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import time

from ..sinks.base import Mark, PhaseProgress, Sample
from ..sources.files import read_text
from ..store.lines import remove
from .agent import is_alive
from .ledger import STARTING, Ledger
from .messages import EnergySinceStart
from .samples import Tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .messages import AgentSample, Request

_SECONDS = 5  # for everything, after which the agent ends whatever hangs
_DYING = 1.0  # seconds from the end of a program's pipe to its own
_GET_INFO = 0xC040FF0B  # ioctl PIDFD_GET_INFO with the 64 bytes of its first version
_EXIT = 1 << 3  # PIDFD_INFO_EXIT, Linux 6.15 and later
_ALIVE = "alive"


class LastWords:
    """Follows a run in its agent. `descriptor` is where to write the report; -1 for nowhere."""

    def __init__(self, request: Request, descriptor: int) -> None:
        self._request = request
        self._descriptor = descriptor
        self._pid = request.pid
        self._terminated = False
        self._energy = EnergySinceStart()
        self._uuids: list[str] | None = None
        self._status: Mapping[str, Any] = {}
        self._last: AgentSample | None = None
        self._ledger: Ledger | None = None
        if request.report:
            self._ledger = Ledger()
            self._ledger.started = request.started
        self._oom = OomKills(request.pid)

    def terminate(self, *_: object) -> None:
        """Remember a SIGTERM that was sent to the agent, too: schedulers signal every process of a job."""
        self._terminated = True

    def greet(self, uuids: list[str] | None) -> None:
        """Take the program's order of the GPUs."""
        self._uuids = uuids
        if self._ledger is not None:
            self._ledger.ordinals = {uuid: at for at, uuid in enumerate(uuids or ())}

    def status(self, told: Mapping[str, Any]) -> None:
        """Take how the program is getting on."""
        self._status = told

    def progress(self, told: Mapping[str, Any]) -> None:
        """Take what the run and its phases went through up to a time."""
        if self._ledger is not None:
            self._ledger.replay(told["at"], {name: PhaseProgress(**each) for name, each in told["phases"].items()})

    def sample(self, taken: AgentSample) -> None:
        """Take a sample; the one before is complete, since the program has said what it did until then."""
        seconds = taken.at - (self._request.started if self._last is None else self._last.at)
        self._energy.add(taken.snapshot, seconds if seconds < STARTING else 0.0)
        if self._ledger is not None and self._last is not None:
            self._ledger.add(self._last)
        self._last = taken
        self._oom.look()
        if self._terminated and self._ledger is not None:
            from . import report  # noqa: F401  # takes 0.1 s, which a scheduler may not leave at the end

    def speak(self, death: int) -> None:
        """Write the last sample and the report; `death` is a pidfd of the program, or -1. Does nothing if the program lives on."""
        signal.alarm(_SECONDS)
        status = _wait_status(self._pid, death)
        if status == _ALIVE:  # it became another program, and closed its files
            return
        from ..present.program import death_text

        how = death_text(None if isinstance(status, str) else status, self._oom.kind(), self._terminated)
        self._finish_files(how)
        if self._ledger is not None and self._status.get("leads", True):
            self._write(self._report(self._ledger, how))

    def _finish_files(self, how: str) -> None:
        from ..sinks.base import sink_named

        for name in self._request.files:
            remove(f"{name.partition(':')[2]}.{self._pid}.part")  # a draft of the program
            try:
                sink = sink_named(name)
                sink.open()
                if (sample := self._sample(how)) is not None:
                    sink.write(sample)
                sink.close()
            except Exception:  # noqa: BLE001  # a full disk; the next file may have room
                continue

    def _sample(self, how: str) -> Sample | None:
        """Return the last sample as the program would have passed it to its sinks, with a mark that says how it ended."""
        taken = self._last
        if taken is None:
            return None
        tags = Tags(self._uuids, self._request.metrics, self._energy)
        return Sample(
            taken.snapshot.time,
            taken.at - self._request.started,
            tags.values(taken),
            taken.snapshot,
            step=self._status.get("step"),
            phase=self._status.get("phase") or "",
            run=self._request.run,
            marks=(Mark("ended", how, taken.snapshot.time),),
            texts=tags.texts,
        )

    def _report(self, ledger: Ledger, how: str) -> str:
        from ..analysis.summary import Stats
        from ..model.stacks import CodeLine
        from .report import death_line, last_lines, report_text

        if self._last is not None:
            ledger.add(self._last)
        ledger.end()
        summary, told = ledger.summary(), self._status
        figures = [told.get(f"step_{name}") for name in ("mean", "p50", "p95", "max", "min")]
        if all(isinstance(figure, (int, float)) for figure in figures):
            summary.step_time = Stats(*figures)  # type: ignore[arg-type]
        if folder := told.get("job"):
            import shutil

            from .job import gather

            gather(summary, folder, time.time() - summary.seconds, ledger.places)
            shutil.rmtree(folder, ignore_errors=True)
        first = death_line(how, told.get("phase") or "", told.get("step"))
        code = last_lines([CodeLine(**line) for line in told.get("code") or ()])
        return "\n".join([first, report_text(summary, os.environ), *code, ""])

    def _write(self, text: str) -> None:
        if self._descriptor >= 0:
            try:
                os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))
            except OSError:
                pass  # nobody reads it any more


class OomKills:
    """Whether the kernel's OOM killer was at work: in the program's cgroup, or on the machine since the last look."""

    def __init__(self, pid: int, root: str = "") -> None:
        self._root = root
        found = [line[3:] for line in (read_text(f"{root}/proc/{pid}/cgroup") or "").split("\n") if line[:3] == "0::"]
        self._events = f"{root}/sys/fs/cgroup{found[0] if found else ''}/memory.events"
        self._in_cgroup = _count(self._events)
        self._on_machine = self._before = _count(f"{root}/proc/vmstat")

    def look(self) -> None:
        """Forget what happened before the sample before last, which was somebody else's."""
        self._before, self._on_machine = self._on_machine, _count(f"{self._root}/proc/vmstat")

    def kind(self) -> str:
        """Return where: cgroup, machine, or nothing."""
        if _count(self._events) > self._in_cgroup:
            return "cgroup"
        return "machine" if _count(f"{self._root}/proc/vmstat") > self._before else ""


def _count(path: str) -> int:
    for line in (read_text(path) or "").splitlines():
        key, _, value = line.partition(" ")
        if key == "oom_kill" and value.isdecimal():
            return int(value)
    return 0


def _wait_status(pid: int, death: int) -> int | str:
    """Return the wait status of a process that is not our child; a text if it lives on, or if nobody can tell."""
    if is_alive(pid) if death < 0 else not select.select([death], [], [], _DYING)[0]:
        return _ALIVE
    import fcntl

    answer = bytearray(struct.pack("<Q", _EXIT).ljust(64, b"\0"))
    try:
        fcntl.ioctl(death, _GET_INFO, answer)
        if struct.unpack_from("<Q", answer)[0] & _EXIT:
            return int(struct.unpack_from("<i", answer, 60)[0])
    except (OSError, ValueError):
        pass  # an older kernel, or no pidfd
    words = (read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    if len(words) > 49 and words[0] in "ZX":  # not yet waited for by its parent
        return int(words[49])
    return "unknown"
