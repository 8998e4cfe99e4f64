"""Whose state a verb reads and writes: this machine's, or for a demo or a recorded machine a private one that is gone afterwards."""

from __future__ import annotations

import sys

from .session import source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.private_state import PrivateState
    from ..store.queue import Queue
    from .options import Arguments, Verb


class OwnState:
    """The state of this machine, which stays where it is."""

    private = False

    def __enter__(self) -> OwnState:
        return self

    def __exit__(self, *why: object) -> None:
        """Leave it where it is."""

    def close(self) -> None:
        """Leave it where it is."""


def state_of(verb: Verb, arguments: Arguments) -> PrivateState | OwnState:
    """Return the state of the machine that the options name, to be entered while the verb runs.

    A verb that does not return closes it.
    """
    name = _source_of(verb, arguments)
    if not name:
        return OwnState()
    from ..sources.registry import is_this_machine

    if is_this_machine(name):
        return OwnState()
    from ..store.private_state import PrivateState

    return PrivateState(recorded=not name.startswith("demo"))


def queue_of(arguments: Arguments) -> Queue:
    """Return the queue for GPUs of the machine that the options name."""
    from ..store.queue import Queue

    if not source_name(arguments).startswith("demo"):
        return Queue()
    from ..recordings.demo_queue import DemoQueue
    from ..sources.registry import make_source

    source = make_source(source_name(arguments))
    source.open()
    try:
        return DemoQueue([str(device.identity["uuid"]) for device in source.devices])
    finally:
        source.close()


def say_unchanged(arguments: Arguments) -> None:
    """Say that the queue of this machine has not changed, if the options name another machine."""
    if arguments.state.private:
        sys.stderr.write(f"gpulse: {source_name(arguments)}: the queue of this machine has not changed.\n")


def _source_of(verb: Verb, arguments: Arguments) -> str:
    """Return the name of the source of a verb; empty for a verb that reads none."""
    words = arguments.words if verb.raw else []
    names = {option.name for option in verb.options}
    if ("demo" in names and arguments.demo) or "--demo" in words:
        return "demo"
    if "source" not in names:
        return ""
    for at, word in enumerate(words):
        if word.partition("=")[0] == "--source":
            return word.partition("=")[2] or "".join(words[at + 1 : at + 2])
    return source_name(arguments)
