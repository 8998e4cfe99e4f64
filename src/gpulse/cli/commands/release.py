"""`gpulse release`: give a reservation back before it is over."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ..options import DEMO, HELP, SOURCE, Arguments, Option, Verb
from ..state import queue_of, say_unchanged


def run(arguments: Arguments) -> int:
    """Remove a reservation of this user, or all of them."""
    from ...surfaces.queue import changed, named

    if arguments.all and arguments.id:
        raise UsageError("release: --all and an id exclude each other;", "leave one out.")
    queue = queue_of(arguments)
    for entry in (
        queue.reservations() if arguments.all else [named(arguments.id or "", ("reserved",), "reservation", queue)]
    ):
        changed(lambda entry=entry: queue.cancel(entry), entry)  # type: ignore[misc]
        sys.stdout.write(f"Released {entry.id}.\n")
    say_unchanged(arguments)
    return 0


VERB = Verb(
    "release",
    (
        Option("id", value="[ID]", help="Reservation, or the start of its id; without one, the only one you have"),
        Option("--all", help="Release all your reservations"),
        *(SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse release", "give back your only reservation"),
        ("gpulse release 3fa1c2", "give back one of several"),
    ),
)  # fmt: skip
