"""Sample a command's processes and the GPUs they use while it runs."""

from __future__ import annotations

import threading

from ..analysis.alerts.rule_set import hangs
from ..analysis.code_lines import code_lines
from ..analysis.tally import ServingTally
from ..model.snapshot import Cadence
from ..monitor.ledger import Ledger
from ..monitor.link import Link
from ..monitor.listener import alert_of
from ..monitor.messages import AgentSample, AlertMessage, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..analysis.summary import Summary
    from ..analysis.tally import ServedRun
    from ..model.snapshot import Snapshot
    from .code_watch import CodeWatch

_MUTE = ("lost", "timeout")  # the processes on such a GPU are unknown; one may be the command
_LAST_SAMPLE = 0.2  # seconds to wait for it


class CommandWatch:
    """Samples a command until stopped, in its own threads. `record` is called with every sample, in one of them, `tell` if it hangs.

    `problem`: why sampling failed. `code_problem`: why the lines of code at which its GPUs waited are not known, once stopped.
    """

    def __init__(
        self,
        request: Request,
        record: Callable[[AgentSample], None] | None = None,
        code: CodeWatch | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._answered = False
        self.problem = ""
        self.code_problem = ""
        self._seen_cpu = 0.0
        self._serving = ServingTally()
        self._cadence = Cadence()
        self._ledger = Ledger()
        self._record = record
        self._code = code
        self._tell = tell
        self._own_gpus: set[str] | None = None
        self._over = threading.Event()
        try:
            self._link = Link(request, self._note, threaded=True)
            threading.Thread(target=self._listen, name="gpulse-run", daemon=True).start()
        except (OSError, RuntimeError) as error:  # no more files or threads available; the command is already running
            self._note(f"{error}.")

    def stop(self, cpu: float = 0.0, seconds: float = 0.0) -> Summary:
        """Take a last sample if that is quick, and return the summary of the command's GPUs, and of those whose processes are unknown.

        `cpu` is the CPU time that the command used in `seconds`, as the kernel reports it at the end.
        """
        if self._ledger.latest is not None:
            self._link.stop()
            self._over.wait(_LAST_SAMPLE)
        self._ledger.end()
        summary = self._ledger.summary()
        if self._code is not None:
            summary.stacks = self._code.stop()
            summary.code = [*code_lines(summary.stacks)]
            self.code_problem = self._code.problem
        if seconds > 0 and (known := summary.program.get("tree_cpu_percent")) is not None:
            # the kernel leaves out descendants that nobody waited for, samples what happened before the first and after the last
            mean = 100.0 * max(cpu, self._seen_cpu) / seconds
            summary.program = {**summary.program, "tree_cpu_percent": known.with_mean(mean)}
        summary.gpus = tuple(gpu for gpu in summary.gpus if gpu.own.used is not False or gpu.state in _MUTE)
        if not self._answered and not summary.gpus:
            summary.samples = 0  # no GPU ever responded, not even with its name
        return summary

    @property
    def serving(self) -> list[ServedRun]:
        """What model servers did meanwhile on the GPUs of the command."""
        return self._serving.sorted()

    def _listen(self) -> None:
        try:
            for message in self._link:
                if isinstance(message, AlertMessage):
                    self._alert(message)
                elif isinstance(message, AgentSample):
                    self._own_gpus = _own_gpus(message)
                    if message.program is not None:
                        self._seen_cpu = max(self._seen_cpu, message.program.tree_cpu_time or 0.0)
                    self._answered |= any(gpu.state not in _MUTE for gpu in message.snapshot.gpus)
                    self._ledger.add(message)
                    self._serving.add(_of_command(message), max(self._cadence.next(message.snapshot.time)[0], 1e-6))
                    if self._code is not None:
                        self._code.add(message.snapshot.time, message.snapshot.gpus, message.own)
                    if self._record is not None:
                        self._record(message)
        except Exception as error:  # noqa: BLE001  # the command continues, whatever happens here
            self._note(f"{error or type(error).__name__}")
        self._over.set()

    def _alert(self, message: AlertMessage) -> None:
        """Say that the command hangs, and where, when it does: who waits for its end would wait for long."""
        for event in message.events:
            own = self._own_gpus is None or not self._own_gpus.isdisjoint(event.uuids)
            if event.alert == "fire" and hangs(event) and own and self._tell is not None:
                self._tell(alert_of(event, {}).text)

    def _note(self, sentence: str) -> None:
        self.problem = self.problem or sentence


def _own_gpus(message: AgentSample) -> set[str] | None:
    """Return the UUIDs of the GPUs and instances that the command uses; None if processes cannot be told apart."""
    own = message.own
    if own is None:
        return None
    parts = [part for gpu in message.snapshot.gpus for part in (gpu, *gpu.instances)]
    return {part.uuid or "" for part in parts if any(process.pid in own for process in part.processes)}


def _of_command(message: AgentSample) -> Snapshot:
    """Return a snapshot with only the model servers on GPUs that the command uses."""
    snapshot, used = message.snapshot, _own_gpus(message)
    if used is None or not snapshot.serving:
        return snapshot
    return snapshot.replace(serving=tuple(one for one in snapshot.serving if not used.isdisjoint(one.gpus or ())))
