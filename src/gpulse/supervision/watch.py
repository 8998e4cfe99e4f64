"""Watching a command from beside: its processes, and the GPUs they are on."""

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

_MUTE = ("lost", "timeout")  # who is on such a GPU cannot be told; it may be the command
_LAST_SAMPLE = 0.2  # seconds to wait for it


class CommandWatch:
    """Looks at a command until told to stop, in threads of its own. `record` is called with every sample, in one of them.

    `used` has, by UUID, the most memory the command's processes were seen to hold on a GPU together; None where the driver
    does not say. `blind` means that processes on GPUs cannot be told apart here, as in most containers. `problem` is why nothing
    could be seen at all.
    """

    def __init__(self, request: Request, record: Callable[[AgentSample], None] | None = None) -> None:
        self.used: dict[str, float | None] = {}
        self.problem = ""
        self.blind = False
        self._ledger = Ledger(_nothing)
        self._program = Program(request.pid)
        self._record = record
        self._over = threading.Event()
        try:
            self._link = InnerLink(request, self._note)
            threading.Thread(target=self._listen, name="gpulse-run", daemon=True).start()
        except (OSError, RuntimeError) as error:  # no more files or threads for us; the command runs already
            self._note(f"{error}.")

    def stop(self) -> Summary:
        """Take a last sample where that is quick, and return what was seen of the command's GPUs; of all it could use if `blind`."""
        if self._ledger.latest is not None:
            self._link.stop()
            self._over.wait(_LAST_SAMPLE)
        self._ledger.end()
        summary = self._ledger.summary()
        if not self.blind:
            summary.gpus = tuple(gpu for gpu in summary.gpus if gpu.uuid in self.used or gpu.state in _MUTE)
        return summary

    def _listen(self) -> None:
        try:
            for message in self._link:
                if isinstance(message, AgentSample):
                    self._note_owners(message)
                    self._ledger.add(message)
                    if self._record is not None:
                        self._record(message)
        except Exception as error:  # noqa: BLE001  # whatever happens to us, the command goes on
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


def _nothing() -> None:
    """Nobody looks at the edges of windows here."""
