"""The messages between an agent and its program: one JSON object per line, with snapshots as in recordings."""

from __future__ import annotations

import json

from ..errors import RecordingError
from ..model.catalog import Process
from ..model.codec import from_plain, to_plain
from ..model.event import Event
from ..model.metric import GAPS
from .request import AgentSample, AlertMessage, Birth, Greeting, Trouble


def encode(message: Birth | Greeting | AgentSample | AlertMessage | Trouble) -> bytes:
    """Return a message as a line."""
    if isinstance(message, AgentSample):
        plain = to_plain(message.snapshot)
        plain["at"], plain["slow"] = message.at, message.slow
        plain["own"] = None if message.own is None else [*message.own]
        if message.program is not None:
            plain["program"] = {**dict(message.program.items()), "gaps": dict(message.program.gaps)}
    elif isinstance(message, Greeting):
        plain = {"greeting": vars(message)}
    elif isinstance(message, Birth):
        plain = {"birth": message.pid}
    elif isinstance(message, AlertMessage):
        plain = {"alerts": [event.to_plain() for event in message.events]}
    else:
        plain = {"trouble": message.message, "fatal": message.fatal}
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Birth | Greeting | AgentSample | AlertMessage | Trouble | None:
    """Return the message in a line; None if the line is not a message, for example truncated by a dying process."""
    try:
        plain = json.loads(line)
        if "greeting" in plain:
            return Greeting(plain["greeting"]["uuids"], plain["greeting"]["certain"])
        if "birth" in plain:
            return Birth(int(plain["birth"]))
        if "alerts" in plain:
            return AlertMessage(Event.from_plain(event) for event in plain["alerts"])
        if "trouble" in plain:
            return Trouble(str(plain["trouble"]), bool(plain.get("fatal", True)))
        program, own = plain.get("program"), plain.get("own")
        return AgentSample(
            float(plain["at"]),
            from_plain(plain),
            None if program is None else _program(program),
            None if own is None else map(int, own),
            bool(plain.get("slow")),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, RecordingError):
        return None


def _program(plain: dict[str, object]) -> Process:
    gaps = plain.pop("gaps", None)
    values = {key: value for key, value in plain.items() if isinstance(value, (int, float))}
    return Process(values, {k: v for k, v in gaps.items() if v in GAPS} if isinstance(gaps, dict) else {})
