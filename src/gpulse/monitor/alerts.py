"""Alerts of the agent in the words of all surfaces, for stderr and for sinks."""

from __future__ import annotations

from ..present.events import event_text
from ..sinks.base import Alert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..model.event import Event


def alert_of(event: Event, ordinals: Mapping[str, int]) -> Alert:
    """Return an alert for sinks, in the words of all surfaces; a GPU that has another number in this program gets both."""
    known = [
        (number, ordinals[uuid]) for number, uuid in zip(event.gpus, event.uuids, strict=False) if uuid in ordinals
    ]
    others = ", ".join(f"gpu{ordinal}" for number, ordinal in known if number != str(ordinal))
    text = event_text(event) + (f" ({others} in this program)" if others else "")
    return Alert(event.time, event.rule, event.alert, event.severity, text, event)
