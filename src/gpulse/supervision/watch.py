"""Sample a command's processes and the GPUs they use while it runs."""

from __future__ import annotations

import threading

from ..monitor.ledger import Ledger
from ..monitor.link import InnerLink
from ..monitor.request import AgentSample, Request
from ..sampling.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.summary import Summary
    from ..model.verdict import Diagnosis

_MUTE = ("lost", "timeout")  # the processes on such a GPU are unknown; one may be the command
_LAST_SAMPLE = 0.2  # seconds to wait for it


class CommandWatch:
    """Samples a command until stopped, in its own threads. `record` is called with every sample, in one of them.

    `used` maps UUIDs to the peak memory of the command's processes on that GPU; None if the driver does not report it.
    `blind`: processes on GPUs cannot be identified here, as in most containers. `problem`: why sampling failed.
    """

    def __init__(self, request: Request, record: Callable[[AgentSample], None] | None = None) -> None:
        self.used: dict[str, float | None] = {}
        self._answered = False
        self.problem = ""
        self.blind = False
        self._seen_cpu = 0.0
        self._ledger = Ledger(_nothing)
        self._program = Program(request.pid)
        self._record = record
        self._over = threading.Event()
        try:
            self._link = InnerLink(request, self._note)
            threading.Thread(target=self._listen, name="gpulse-run", daemon=True).start()
        except (OSError, RuntimeError) as error:  # no more files or threads available; the command is already running
            self._note(f"{error}.")

    def stop(self, cpu: float = 0.0, seconds: float = 0.0) -> Summary:
        """Take a last sample if that is quick, and return the summary of the command's GPUs, or of all it could use if `blind`.

        `cpu` is the CPU time that the command used in `seconds`, as the kernel reports it at the end.
        """
        if self._ledger.latest is not None:
            self._link.stop()
            self._over.wait(_LAST_SAMPLE)
        self._ledger.end()
        summary = self._ledger.summary()
        if seconds > 0 and (known := summary.program.get("tree_cpu_percent")) is not None:
            # the kernel leaves out descendants that nobody waited for, samples what happened before the first and after the last
            mean = 100.0 * max(cpu, self._seen_cpu) / seconds
            summary.program = {**summary.program, "tree_cpu_percent": known.with_mean(mean)}
        if not self.blind:
            summary.gpus = tuple(gpu for gpu in summary.gpus if gpu.uuid in self.used or gpu.state in _MUTE)
            summary.diagnosis = _of_gpus(summary.diagnosis, {gpu.uuid for gpu in summary.gpus})
        if not self._answered and not summary.gpus:
            summary.samples = 0  # no GPU ever responded, not even with its name
        return summary

    def _listen(self) -> None:
        try:
            for message in self._link:
                if isinstance(message, AgentSample):
                    if message.program is not None:
                        self._seen_cpu = max(self._seen_cpu, message.program.tree_cpu_time or 0.0)
                    self._note_owners(message)
                    self._answered |= any(gpu.state not in _MUTE for gpu in message.snapshot.gpus)
                    self._ledger.add(message)
                    if self._record is not None:
                        self._record(message)
        except Exception as error:  # noqa: BLE001  # the command continues, whatever happens here
            self._note(f"{error or type(error).__name__}")
        self._over.set()

    def _note_owners(self, sample: AgentSample) -> None:
        self.blind = any(problem.source == "processes" for problem in sample.snapshot.problems)
        for gpu in sample.snapshot.gpus:
            own = [process for process in gpu.all_processes() if process.pid and self._program.owns(int(process.pid))]
            if own:
                held = [process.memory_used for process in own if process.memory_used is not None]
                before = self.used.get(gpu.uuid or "")
                self.used[gpu.uuid or ""] = max(sum(held), before or 0.0) if held else before

    def _note(self, sentence: str) -> None:
        self.problem = self.problem or sentence


def _of_gpus(diagnosis: Diagnosis | None, uuids: set[str | None]) -> Diagnosis | None:
    """Return only the verdicts of some GPUs."""
    from ..model.verdict import Diagnosis

    if diagnosis is None:
        return None
    kept = [verdict for verdict in diagnosis if verdict.uuid in uuids]
    return Diagnosis(kept, diagnosis.start, diagnosis.end, diagnosis.samples)


def _nothing() -> None:
    """Ignore the edges of windows: no extra samples are taken here."""
