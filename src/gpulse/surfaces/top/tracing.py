"""Traces asked for with a key: what to say at once, and when the answer comes."""

from __future__ import annotations

from ...errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...monitor.traces import TraceRequest
    from ...sources.base import Machine


class TraceKey:
    """Asks the Monitor in a process for a trace of its next steps; one request at a time."""

    def __init__(self) -> None:
        self._request: TraceRequest | None = None
        self._state = ""

    def ask(self, pid: int | None, machine: Machine) -> str:
        """Ask, and return what to say."""
        from ...monitor.traces import STEPS, ask

        if pid is None:
            return "no process selected"
        if not machine.real or machine.foreign([pid]):
            return f"{pid} is not on this machine, or outside this container"
        try:
            self._request, self._state = ask(pid, STEPS), "waiting"
        except (GpulseError, OSError) as error:
            return str(error)
        return f"asked {pid} for a trace of its next {STEPS} steps"

    def news(self) -> str:
        """Return what has changed since it was last asked; empty if nothing has."""
        if self._request is None:
            return ""
        state, text = self._request.answer()
        if state == self._state:
            return ""
        self._state, pid = state, self._request.pid
        if state in ("done", "failed"):
            self._request = None
        return {
            "tracing": f"{pid} is being traced",
            "writing": f"{pid} is writing its trace",
            "done": f"trace of {pid}: {text}",
            "failed": f"no trace of {pid}: {text}",
        }.get(state, "")
