"""The rules that an agent applies to its samples, so that a training says what happens to its GPUs.

When an alert says that a job hangs, it is also read where its processes are, and which rank the others wait for.
"""

from __future__ import annotations

import os
import threading
import time

from ..analysis.alerts import RuleSet, rules_from
from ..analysis.alerts.rule import duration
from ..analysis.alerts.work import Diagnosed
from ..errors import GpulseError
from ..model.select import Wanted
from ..present.code import place_text
from ..sources.collectives import laggards
from ..sources.processes import LinuxMachine
from ..sources.py_spy import StacksUnavailable, is_own, read_stacks
from ..store.config import config_path, read_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from typing import Any

    from ..analysis.alerts.rule import Finding, RuleInput
    from ..analysis.alerts.rule_set import Explain
    from ..model.event import Event
    from ..model.snapshot import Snapshot
    from ..model.stacks import Stack
    from ..model.verdict import Verdict
    from ..sources.collectives import Laggard

RULES = ("lost", "xid", "ecc", "throttled", "memory", "leak", "stalled")
_OFTEN = 0.9  # seconds between two samples that the rules are shown: a measured program is sampled ten times per second
_FULL = 98.0  # percent: frameworks keep freed memory, and a healthy training is often above the usual threshold


class Hanging(Diagnosed):
    """A job whose GPUs spin in a collective, told sooner than other verdicts; one GPU cannot show it."""

    settings = {"for": (duration, 120.0), "clear_for": (duration, 120.0)}

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        return super().findings(sample) if len(sample.snapshot.gpus) > 1 else iter(())

    def tells(self, verdict: Verdict) -> bool:
        return verdict.key == "hang"


class TrainingRules:
    """The rules for a training, with the thresholds of the settings file; for the agent, so that the program pays nothing."""

    def __init__(self, environ: Mapping[str, str] | None = None, explain: Explain | None = None) -> None:
        table, hang = _table(os.environ if environ is None else environ)
        rules = [*rules_from(table), *([Hanging()] if hang else [])]
        self._rule_set = RuleSet(rules, lambda name, error: None, explain)
        self._at = float("-inf")

    @property
    def wanted(self) -> Wanted:
        """What has to be read for the rules; not the command lines of processes, which only tell servers apart."""
        return self._rule_set.wanted.without_commands()

    def observe(self, at: float, snapshot: Snapshot) -> list[Event]:
        """Return the alerts that fired or cleared, one for all GPUs that the same happened to; `at` is a monotonic time."""
        # a sample without process lists, of which there are several per second, would tell the rules of nobody
        if at - self._at < _OFTEN or any(gpu.gaps.get("processes") == "skipped" for gpu in snapshot.gpus):
            return []
        self._at = at
        turned = [transition.event for transition in self._rule_set.observe(snapshot)]
        lost = {event.uuids for event in turned if event.rule == "lost"}
        lost |= {(alert.uuid,) for alert in self._rule_set.active if alert.rule == "lost"}
        # an alert that a GPU is lost names its XID
        return _merged(event for event in turned if event.rule != "xid" or event.uuids not in lost)


def _table(environ: Mapping[str, str]) -> tuple[dict[str, Any], bool]:
    """Return the [alerts] table for a training, and whether hangs are told; without the settings where they are wrong, which other
    commands report."""
    try:
        given = read_config(config_path(environ)).get("alerts", {})
        rules_from(given)
    except (GpulseError, ImportError, AttributeError):
        given = {}
    kept = {"stalled", *given.get("enable", RULES)} - set(given.get("disable", ()))
    table = {name: given[name] for name in RULES if name in given}
    table["memory"] = {"above": _FULL, **table.get("memory", {})}
    return {**table, "enable": [name for name in RULES if name in kept]}, "diagnosis" not in given.get("disable", ())


def _merged(events: Iterable[Event]) -> list[Event]:
    """Return events of the same kind and moment as one, so that a hot room is one line and not one per GPU."""
    found: dict[object, Event] = {}
    for event in events:
        alone = event.process is not None or event.note
        key = (event.rule, event.alert, event.kind, event.reasons, event.value, event.uuids if alone else ())
        first = found.get(key)
        if first is not None:
            event = first.replace(gpus=(*first.gpus, *event.gpus), uuids=(*first.uuids, *event.uuids))
        found[key] = event
    return list(found.values())


_PATIENCE = 2.0  # seconds that an alert waits for all of it; usually 20 ms for each process
_PROCESSES = 16
_SAME = 5.0  # seconds for which what was read of a job counts for its other GPUs
_FRAMES = 6  # of each stack, the innermost first
_LONGEST = 1000  # characters, which is also what webhooks are sent of a text


class WhereStuck:
    """Says where the processes of a job that hangs are stuck; one alert for each GPU of a job costs one reading."""

    def __init__(self) -> None:
        self._until = float("-inf")  # when the last answer no longer counts
        self._pids: list[int] = []
        self._found: dict[str, float | str] = {}

    def __call__(self, event: Event, snapshot: Snapshot) -> dict[str, float | str]:
        """Return what to add to the values of an alert about a job that hangs: `stacks` and `behind`, as far as they can be read.

        Only processes of this user on this machine are read: those on the GPUs of the event, and the others of the same job.
        """
        pids = job_on(event.uuids, snapshot)
        if pids and (pids != self._pids or time.monotonic() >= self._until):
            self._found = _read_job(pids)
            self._until, self._pids = time.monotonic() + _SAME, pids
        return dict(self._found) if pids else {}


def _read_job(pids: list[int]) -> dict[str, float | str]:
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
    told = f"is at {one.collective} {one.done}, others at {one.others}" if one.collective else "does not respond"
    return f"{name} {told}"
