"""`gpulse reserve`: keep GPUs for yourself for some time, now or later."""

from __future__ import annotations

import os
import sys
import time

from ...errors import GpulseError, UsageError
from ...units import duration_text
from ..free import number_of_gpus
from ..options import DEMO, GPU, HELP, SOURCE, Arguments, Option, Verb, seconds
from ..session import open_whole
from ..state import queue_of, say_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.entry import Entry
    from ...store.queue import Queue
    from ...surfaces.queue import QueueView

_DAY = 86400.0


def run(arguments: Arguments) -> int:
    """Reserve GPUs, or make a reservation longer."""
    from ...present.queue import reserved_text, still_used_text

    if arguments.length is None:
        raise UsageError("reserve: for how long?", "Write it as gpulse reserve 2 --for 8h.")
    words = list(arguments.words or ["1"])
    if words[0] == "extend":
        return _extend(words[1:], arguments)
    if len(words) > 1:
        raise UsageError(f"reserve: {words[1]!r} is one word too many;", "write it as gpulse reserve 2 --for 8h.")
    count = number_of_gpus("reserve", "gpulse reserve 2 --for 8h")(words[0])
    queue = queue_of(arguments)
    _check_length(arguments.length, queue)
    entry, view = _chosen(arguments, count, queue)
    _write(entry, queue)
    sys.stdout.write(f"{reserved_text(entry, view.names, time.time())}\n")
    used = {view.names.get(slot.uuid, slot.uuid): slot.used for slot in view.slots if slot.uuid in entry.gpus}
    if arguments.start is None and any(used.values()):
        sys.stderr.write(f"gpulse: {still_used_text(used)}\n")
    say_unchanged(arguments)
    return 0


def _chosen(arguments: Arguments, count: int, queue: Queue) -> tuple[Entry, QueueView]:
    """Return a reservation of the best GPUs; raise GpulseError with the reasons if there are too few."""
    from ...analysis.free import WANTED
    from ...analysis.turns import reservable
    from ...model.select import choose_gpus
    from ...present.queue import hold_text
    from ...store.queue import new_entry
    from ...surfaces.queue import queue_view

    now = time.time()
    begins = now if arguments.start is None else _begins(arguments.start, now)
    sampler = open_whole(arguments, WANTED)  # others may wait for any GPU
    try:
        view = queue_view(sampler, queue)
        gpus = sampler.identities()
    finally:
        sampler.close()
    free, taken = reservable(now, begins, begins + arguments.length, view.slots, view.entries)
    if arguments.gpu:
        named = {
            part.uuid for at in choose_gpus(gpus, arguments.gpu, os.environ) for part in (gpus[at], *gpus[at].instances)
        }
        free = [uuid for uuid in free if uuid in named]
        taken = {uuid: one for uuid, one in taken.items() if uuid in named}
    if len(free) < count:
        reasons = "".join(f"\n  GPU {view.names.get(uuid, uuid)}: {hold_text(one, now)}" for uuid, one in taken.items())
        total = len(free) + len(taken)
        raise GpulseError(f"{len(free)} of {total} GPUs can be reserved for that time, {count} requested.{reasons}\n",
                          "Reserve fewer, or a later time with --from.")  # fmt: skip
    return new_entry("reserved", gpus=free[:count], count=count, begins=begins, until=begins + arguments.length,
                     reason=arguments.reason), view  # fmt: skip


def _extend(words: list[str], arguments: Arguments) -> int:
    from ...analysis.turns import overlapping
    from ...present.cells import when_text
    from ...present.queue import hold_text
    from ...surfaces.queue import named

    if len(words) > 1:
        raise UsageError("reserve: extend takes one id;", "write it as gpulse reserve extend ID --for 2h.")
    queue = queue_of(arguments)
    old = named(words[0] if words else "", ("reserved",), "reservation", queue)
    new = old.replace(until=(old.until or 0.0) + arguments.length)
    _check_length((new.until or 0.0) - (old.begins or 0.0), queue)
    others = [one for one in queue.entries() if one.id != old.id]
    for uuid in old.gpus:
        if (other := overlapping(uuid, others, old.until or 0.0, new.until or 0.0, None)) is not None:
            raise GpulseError(f"{uuid} is already {hold_text(other, time.time())}.", "Extend it by less.")
    if not queue.owns(old):
        raise GpulseError(f"reservation {old.id} belongs to {old.user}.", "Only they can extend it.")
    _write(new, queue)
    sys.stdout.write(f"Reservation {new.id} lasts until {when_text(new.until or 0.0, time.time())}.\n")
    say_unchanged(arguments)
    return 0


def _check_length(length: float, queue: Queue) -> None:
    if length > queue.longest + 1:
        raise GpulseError(
            f"a reservation on this machine lasts at most {duration_text(queue.longest)};", "reserve a shorter time."
        )


def _write(entry: Entry, queue: Queue) -> None:
    """Write a reservation; raise GpulseError if somebody else reserved the same GPUs in this moment: the first file counts."""
    from ...surfaces.queue import changed

    queue.tidy()
    changed(lambda: queue.reserve(entry), entry)
    kept = next((one for one in queue.entries() if one.id == entry.id), None)
    if kept is None or len(kept.gpus) < len(entry.gpus):
        if kept is not None:
            changed(lambda: queue.cancel(kept), kept)
        raise GpulseError("somebody else has just reserved these GPUs.", "Try again.")


def _begins(text: str, now: float) -> float:
    """Read when a reservation begins: 18:00, a date, or a duration from now on."""
    from ...model.when import parse_when
    from ...store.queue import AHEAD
    from ...units import parse_duration

    if text[:1].isdecimal() and text[-1:].isalpha() and not text.lower().endswith(("z", "am", "pm")):
        return now + parse_duration(text)
    begins = parse_when(text, now + _DAY)  # 18:00 is the next one
    if not now - 60 <= begins <= now + AHEAD:
        raise UsageError(
            f"--from: {text!r} is not within the next 60 days;", "write it as 18:00 or '2026-11-15 18:00'."
        )
    return begins


VERB = Verb(
    "reserve",
    (
        Option("words", value="[N | extend ID]", many=True, default=(), complete=("extend",), open=True,
               help="Number of GPUs, or a reservation to extend (default: 1)"),
        Option("--for", name="length", value="TIME", parse=seconds("--for", 60, 30 * _DAY), help="How long, for example 8h"),
        Option("--from", name="start", value="TIME", help="When it begins: 18:00, 6pm, '2026-11-15 18:00' or 2h from now (default: now)"),
        Option("--reason", value="TEXT", help="What for; all users can read it"),
        *(GPU, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse reserve 2 --for 8h", "keep two GPUs for yourself until this evening"),
        ("gpulse reserve 4 --for 12h --from 18:00 --reason 'paper deadline'", "plan for tonight"),
        ("gpulse reserve extend 3fa1c2 --for 2h", "two hours more"),
    ),
)  # fmt: skip
