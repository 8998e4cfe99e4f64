"""Running Monitors of the server's own user, and traces asked for on the page."""

from __future__ import annotations

import json

from ...errors import GpulseError
from ...live.refusal import Refusal
from ...monitor.presence import folder_of, presences
from ...monitor.trace_request import MOST_STEPS, STEPS, ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...monitor.trace_request import TraceRequest

LARGEST = 1024  # bytes of a request


class TraceDesk:
    """Asks Monitors for traces and remembers the last request to each; called in worker threads."""

    def __init__(self) -> None:
        self._asked: dict[int, TraceRequest] = {}

    def monitors(self) -> dict[str, Any]:
        """Return the running Monitors, each with the state of its last trace: null, or `state` and `text`."""
        own = {pid: one for pid, one in presences().items() if folder_of(pid) is not None}
        self._asked = {pid: request for pid, request in self._asked.items() if pid in own}
        return {"monitors": [one.to_plain() | {"trace": self._state(pid)} for pid, one in sorted(own.items())]}

    def ask(self, body: bytes) -> dict[str, Any]:
        """Ask for a trace, as the body says: {"pid": 4242, "steps": 20}; refuse what is not such a request."""
        try:
            asked = json.loads(body)
            pid, steps = asked["pid"], asked.get("steps", STEPS)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise Refusal(422, 'send JSON: {"pid": 4242, "steps": 20}.') from None
        if not all(isinstance(one, int) and not isinstance(one, bool) for one in (pid, steps)):
            raise Refusal(422, "pid and steps must be integers.")
        if not 1 <= steps <= MOST_STEPS:
            raise Refusal(422, f"steps must be from 1 to {MOST_STEPS}.")
        try:
            self._asked[pid] = ask(pid, steps)
        except (GpulseError, OSError) as error:
            raise Refusal(404, str(error)) from None
        return {"pid": pid, "steps": steps}

    def _state(self, pid: int) -> dict[str, str] | None:
        if (request := self._asked.get(pid)) is None:
            return None
        state, text = request.answer()
        return {"state": state, "text": text}
