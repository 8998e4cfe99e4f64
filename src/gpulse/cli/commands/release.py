"""`gpulse release`: give a reservation back before it is over."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ..options import DEMO, HELP, SOURCE, Arguments, Option, Verb


def run(arguments: Arguments) -> int:
    """Remove a reservation of this user, or all of them."""
    from ...store.queue import cancel, reservations
    from ...surfaces.queue import changed, named

    if arguments.all and arguments.id:
        raise UsageError("release: --all and an id exclude each other;", "leave one out.")
    chosen = list(reservations()) if arguments.all else [named(arguments.id or "", ("reserved",), "reservation")]
    for entry in chosen:
        changed(lambda entry=entry: cancel(entry), entry)  # type: ignore[misc]
        sys.stdout.write(f"Released {entry.id}.\n")
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
