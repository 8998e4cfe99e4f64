"""Where the processes of a job that hangs are, and which rank the others wait for: read when an alert says that it hangs."""

from __future__ import annotations

import threading
import time

from ..present.code import place_text
from ..sources.collectives import laggards
from ..sources.processes import LinuxMachine
from ..sources.py_spy import StacksUnavailable, is_own, read_stacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.stacks import Stack
    from ..sources.collectives import Laggard

_PATIENCE = 2.0  # seconds that an alert waits for all of it; usually 20 ms for each process
_PROCESSES = 16
_SAME = 5.0  # seconds for which what was read of a job counts for its other GPUs
_FRAMES = 6  # of each stack, the innermost first
_LONGEST = 1000  # characters, which is also what webhooks are sent of a text

_told: list[Any] = [0.0, [], {}]  # until when the last answer counts, for which processes, and the answer


def where_stuck(event: Event, snapshot: Snapshot) -> dict[str, float | str]:
    """Return what to add to the values of an alert about a job that hangs: `stacks` and `behind`, as far as they can be read.

    Only processes of this user on this machine are read: those on the GPUs of the event, and the others of the same job.
    """
    pids = job_on(event.uuids, snapshot)
    if not pids or (time.monotonic() < _told[0] and _told[1] == pids):  # one alert for each GPU of a job
        return _told[2] if pids else {}
    found: dict[str, float | str] = {}

    def read(name: str, ask: Callable[[Collection[int]], str]) -> None:
        if text := ask(pids):
            found[name] = text[:_LONGEST]

    threads = [
        threading.Thread(target=read, args=one, name=f"gpulse-{one[0]}", daemon=True)
        for one in (("stacks", stacks_text), ("behind", behind_text))
    ]
    until = time.monotonic() + _PATIENCE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    _told[:] = time.monotonic() + _SAME, pids, dict(found)
    return dict(found)


def job_on(uuids: Collection[str], snapshot: Snapshot) -> list[int]:
    """Return our processes on these GPUs, and those on other GPUs that were started by the same parent, as ranks are."""
    machine = LinuxMachine()
    everybody = [
        (int(one.pid), gpu.uuid in uuids)
        for gpu in snapshot.gpus
        for one in gpu.all_processes()
        if one.pid and one.type != "G"
    ]
    parents = {machine.parent(pid) for pid, here in everybody if here} - {None, 0, 1}
    chosen = [pid for pid, here in everybody if here or machine.parent(pid) in parents]
    return [pid for pid in dict.fromkeys(chosen) if is_own(pid)][:_PROCESSES]


def stacks_text(pids: Iterable[int]) -> str:
    """Return what the main threads execute, one part per process: "4242: all_reduce distributed_c10d.py:2806 < step train.py:84"."""
    groups: dict[str, list[int]] = {}
    for pid in pids:
        try:
            stacks = read_stacks(pid, patience=_PATIENCE)
        except StacksUnavailable as error:
            if error.lasting:
                return ""
            continue
        groups.setdefault(_main_text(stacks), []).append(pid)
    parts = [f"{', '.join(map(str, members))}: {text}" for text, members in groups.items() if text]
    return "; ".join(parts)


def behind_text(pids: Iterable[int]) -> str:
    """Return which ranks others wait for: "rank 7 (pid 1650386 on node1) is at AllReduce 60, others at 64"."""
    return "; ".join(map(_laggard_text, laggards(pids)))


def _main_text(stacks: Iterable[Stack]) -> str:
    main: Any = next((stack for stack in stacks if stack.role == "main"), None)
    frames = [] if main is None else [*reversed(main.frames)][:_FRAMES]
    return " < ".join(f"{frame.function} {place_text(frame)}" for frame in frames)


def _laggard_text(one: Laggard) -> str:
    place = f"pid {one.pid}" if one.pid is not None else ""
    place += f" on {one.node}" if one.node else ""
    name = f"rank {one.rank}" + (f" ({place})" if place else "") if one.rank is not None else place
    return (
        f"{name} is at {one.collective} {one.done}, others at {one.others}"
        if one.collective
        else f"{name} does not respond"
    )
