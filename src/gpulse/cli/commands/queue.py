"""`gpulse queue`: who waits for GPUs, and who has them until when."""

from __future__ import annotations

import os
import sys

from ...errors import SourceUnavailable, UsageError
from ..options import DEMO, HELP, JSON, SOURCE, Arguments, Option, Verb
from ..output import write_json
from ..session import open_whole
from ..state import queue_of, say_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...surfaces.queue import QueueView

ACTIONS = ("list", "cancel")


def run(arguments: Arguments) -> int:
    """Show the queue, or take a request out of it."""
    action, *words = arguments.words or ["list"]
    if action not in ACTIONS:
        raise UsageError(f"queue: {action!r} is neither list nor cancel;", f"write it as gpulse queue cancel {action}.")
    if action == "cancel":
        return _cancel(words, arguments)
    if words:
        raise UsageError(f"queue: list takes no {words[0]!r};", "leave it out.")
    from ...present.theme import size_of
    from ...store.queue import longest_reservation

    view = _view(arguments)
    if ignored := longest_reservation()[1]:
        sys.stderr.write(f"gpulse: {ignored}\n")
    if arguments.json:
        return write_json(view.to_plain())
    sys.stdout.write("\n".join([*view.lines(size_of(sys.stdout, os.environ)[0]), ""]))
    return 0


def _view(arguments: Arguments) -> QueueView:
    """Return the queue; it is shown without a driver, too, but then nobody knows when GPUs are free."""
    from ...analysis.free import WANTED
    from ...surfaces.queue import queue_view

    queue = queue_of(arguments)
    try:
        sampler = open_whole(arguments, WANTED)
    except SourceUnavailable:
        return queue_view(None, queue)
    try:
        return queue_view(sampler, queue)
    finally:
        sampler.close()


def _cancel(words: list[str], arguments: Arguments) -> int:
    from ...surfaces.queue import changed, named

    if len(words) != 1:
        raise UsageError("queue: cancel takes one id;", "`gpulse queue` lists them.")
    queue = queue_of(arguments)
    entry = named(words[0], ("waiting",), "waiting request", queue)
    changed(lambda: queue.cancel(entry), entry)
    sys.stdout.write(f"Cancelled {entry.id}.\n")
    say_unchanged(arguments)
    return 0


VERB = Verb(
    "queue",
    (
        Option("words", value="[list | cancel ID]", many=True, default=(), complete=ACTIONS, open=True,
               help="What to do: list, or cancel a waiting request of yours by its id or the start of it (default: list)"),
        *(JSON, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse queue", "list who has GPUs and who waits for them"),
        ("gpulse queue cancel 3fa1c2", "stop waiting"),
        ("gpulse queue --json", "the same for programs"),
    ),
)  # fmt: skip
