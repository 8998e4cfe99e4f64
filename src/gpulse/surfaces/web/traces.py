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

    from ...live.hub import Hub
    from ...monitor.trace_request import TraceRequest

LARGEST = 1024  # bytes of a request


class TraceDesk:
    """Asks Monitors for traces and remembers the last request to each; called in worker threads."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._asked: dict[int, TraceRequest] = {}

    def monitors(self) -> dict[str, Any]:
        """Return the running Monitors, each with the state of its last trace: null, or `state` and `text`; none of a simulated machine."""
        there = presences() if self._hub.real else {}
        own = {pid: one.to_plain() for pid, one in there.items() if folder_of(pid) is not None}
        self._asked = {pid: request for pid, request in self._asked.items() if pid in own}
        hidden: dict[str, Any] = {} if self._hub.tells_programs else {"code": []}
        return {"monitors": [one | hidden | {"trace": self._state(pid)} for pid, one in sorted(own.items())]}

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
        if not self._hub.real:
            raise Refusal(404, "this server shows a machine that is not this computer.")
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
