"""Accounting: GPU hours, memory and energy by owner, machine, GPU and calendar, which add up to what the GPUs could have done."""

from __future__ import annotations

import time

from ..errors import UsageError
from ..model.select import did_you_mean
from ..store.history.answers import UNATTRIBUTED_PID, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ..store.history import GpuIdentity, HistoryReader
    from ..store.history.answers import ProcessUse

    Key: TypeAlias = "tuple[str | None, ...]"
    Naming: TypeAlias = "Callable[[str | None], str | None]"

OWNERS = ("user", "group", "project", "job", "container", "pod", "name")
PLACES = ("host", "gpu")
CALENDAR = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}
KINDS = (*OWNERS, *PLACES, *CALENDAR)
_QUARTER = 900  # seconds; every time zone begins its days and hours at a multiple
_SLACK = 0.005  # the part by which what was held may exceed what was watched before that is not known


class AccountEntry(Usage):
    """What one owner used, or one GPU or day had: `keys` has a text for each word of `by`, None for none.

    `kind` is used, unused (nobody held the GPU) or unknown (it was lost, hung, or its processes could not be read). `share` is the part of
    the capacity, in percent. An entry without an owner has `capacity_hours` and `unused_hours`.
    """

    keys: Key = ()
    kind: str = "used"
    share: float | None = None
    capacity_hours: float | None = None
    unused_hours: float | None = None

    @property
    def idle_hours(self) -> float | None:
        """GPU hours that were held while no kernel ran."""
        return None if self.busy_hours is None or self.kind != "used" else max(0.0, self.gpu_hours - self.busy_hours)


class RecordedMachine:
    """The history of one machine: its `name`, and what GPUs are called."""

    def __init__(self, reader: HistoryReader, name: str, start: float, end: float) -> None:
        self.name = name
        self.rows = reader.hourly_uses(start, end)
        self.instances = reader.instances(end)
        self.labels = {gpu.uuid: gpu for gpu in reader.gpus(start, end)}

    def label(self, uuid: str) -> str:
        """Return the number of a GPU; of a MIG instance, that of its GPU with its own."""
        return gpu_label(uuid, self.labels)

    def whole(self, uuid: str) -> str:
        """Return the UUID of the GPU that an instance belongs to, or of the GPU itself."""
        gpu = self.labels.get(uuid)
        return gpu.parent if gpu is not None and gpu.parent else uuid


def gpu_label(uuid: str, known: Mapping[str, GpuIdentity]) -> str:
    """Return the number of a GPU, "0:1" for the second instance of the first, or a part of the UUID."""
    gpu = known.get(uuid)
    if gpu is None or gpu.index is None:
        return uuid[:12]
    parent = known.get(gpu.parent)
    return f"{gpu.index}" if not gpu.parent else f"{'?' if parent is None else parent.index}:{gpu.index}"


class Accounting:
    """The usage of machines between two times, by the words of `by`; entries with the most GPU hours first, calendar entries in order.

    `capacity_hours` are those in which GPUs were watched, so that used, unused and unknown hours add up to them; None if part of
    that count was damaged. `unrecorded_hours` are the rest of the time between the two.
    """

    def __init__(
        self,
        machines: Sequence[RecordedMachine],
        start: float,
        end: float,
        by: Sequence[str],
        group_of: Naming | None = None,
    ) -> None:
        check_kinds(by)
        self.start, self.end, self.by = start, end, tuple(by)
        self.hosts = [machine.name for machine in machines]
        self._several = len(machines) > 1
        self._group_of = group_of or (lambda user: None)
        self.owned = any(word in OWNERS for word in by)
        self._entries: dict[tuple[Key, str], AccountEntry] = {}
        self._watched: dict[Key, float] = {}
        self._seen: set[tuple[str, str]] = set()
        self._counted: dict[tuple[Key, str], set[tuple[object, ...]]] = {}
        for machine in machines:
            for use in machine.rows:
                for piece, share in self._pieces(use):
                    self._count(machine, use, piece, share)
        self._settle()

    def _count(self, machine: RecordedMachine, use: ProcessUse, at: float, share: float) -> None:
        nobody = use.pid == UNATTRIBUTED_PID
        keys = (None if nobody and word in OWNERS else self._key(machine, use, at, word) for word in self.by)
        entry = self._entry(tuple(keys), "unused" if nobody and self.owned else "used")
        part = machine.instances.get(use.uuid, 1.0)
        if nobody:
            self._seen.add((machine.name, use.uuid))
            fixed = self._fixed(entry.keys)
            self._watched[fixed] = self._watched.get(fixed, 0.0) + use.seconds * share / 3600
            entry.unused_hours = (entry.unused_hours or 0.0) + use.held * share / 3600
        else:
            entry.gpu_hours += use.held * share / 3600 * part
            self._counted.setdefault((entry.keys, entry.kind), set()).add(
                (machine.name, use.uuid, use.pid, use.started)
            )
        entry.add(use if share == 1.0 else use.part(share))

    def _entry(self, keys: Key, kind: str) -> AccountEntry:
        return self._entries.setdefault((keys, kind), AccountEntry(keys[0] if keys else None, keys=keys, kind=kind))

    def _pieces(self, use: ProcessUse) -> Iterator[tuple[float, float]]:
        """Yield the time and the part of a use on each side of a new hour, day, week or month, which mostly is the whole."""
        kinds = [word for word in self.by if word in CALENDAR]
        if not kinds or all(_dated(word, use.first) == _dated(word, use.last) for word in kinds):
            yield use.first, 1.0
            return
        edge = next(
            at
            for at in range(int(use.first // _QUARTER + 1) * _QUARTER, int(use.last) + _QUARTER + 1, _QUARTER)
            if any(_dated(word, at) != _dated(word, use.first) for word in kinds)
        )
        before = min(1.0, (edge - use.first) / (use.last - use.first))
        yield use.first, before
        yield float(edge), 1.0 - before

    def _key(self, machine: RecordedMachine, use: ProcessUse, at: float, word: str) -> str | None:
        if word in CALENDAR:
            return _dated(word, at)
        if word == "host":
            return machine.name
        if word == "gpu":
            gpu = machine.label(machine.whole(use.uuid))
            return f"{machine.name} {gpu}" if self._several and "host" not in self.by else gpu
        if word == "group":
            return self._group_of(use.text.get("user"))
        text = use.text.get(word)
        name = use.text.get("job_name") if word == "job" else None
        return f"{text} {name}" if text and name else text

    def _fixed(self, keys: Key) -> Key:
        return tuple(key for key, word in zip(keys, self.by, strict=True) if word not in OWNERS)

    def _settle(self) -> None:
        """Add what is unknown, and the shares."""
        held: dict[Key, float] = {}
        for entry in self._entries.values():
            fixed = self._fixed(entry.keys)
            held[fixed] = held.get(fixed, 0.0) + entry.gpu_hours + (entry.unused_hours or 0.0)
        for fixed, watched in self._watched.items():
            rest = watched - held.get(fixed, 0.0)
            if rest > _SLACK * watched and self.owned:
                left = iter(fixed)
                keys = tuple(None if word in OWNERS else next(left) for word in self.by)
                self._entry(keys, "unknown").gpu_hours = rest
        for key, entry in self._entries.items():
            entry.processes = len(self._counted.get(key, ()))
            entry.capacity_hours = None if self.owned else self._watched.get(self._fixed(entry.keys))
            if entry.kind == "unused":
                entry.gpu_hours, entry.unused_hours = entry.unused_hours or 0.0, None
            if (whole := entry.capacity_hours or self.capacity_hours) is not None and whole > 0:
                entry.share = 100.0 * entry.gpu_hours / whole

    @property
    def entries(self) -> list[AccountEntry]:
        """The entries in order: by calendar, then the largest first, what nobody used last."""
        dated = [at for at, word in enumerate(self.by) if word in CALENDAR]
        rank = {"used": 0, "unused": 1, "unknown": 2}

        def order(entry: AccountEntry) -> tuple[list[str], int, float]:
            return [entry.keys[at] or "" for at in dated], rank[entry.kind], -entry.gpu_hours

        return sorted(self._entries.values(), key=order)

    @property
    def gpus(self) -> int:
        """How many GPUs were seen."""
        return len(self._seen)

    @property
    def used_hours(self) -> float:
        """GPU hours in which somebody held a GPU."""
        return sum(entry.gpu_hours for entry in self._entries.values() if entry.kind == "used")

    @property
    def unused_hours(self) -> float:
        """GPU hours in which nobody did."""
        return sum(
            entry.gpu_hours if entry.kind == "unused" else entry.unused_hours or 0.0 for entry in self._entries.values()
        )

    @property
    def capacity_hours(self) -> float | None:
        """GPU hours that were watched."""
        watched = sum(self._watched.values())
        return None if self.used_hours > (1 + _SLACK) * watched else watched

    @property
    def unknown_hours(self) -> float | None:
        """GPU hours of which nobody can say who held the GPU."""
        whole = self.capacity_hours
        return None if whole is None else round(max(0.0, whole - self.used_hours - self.unused_hours), 6)

    @property
    def unrecorded_hours(self) -> float | None:
        """GPU hours between the two times that were not recorded, of the GPUs that were ever seen in it."""
        whole = self.capacity_hours
        length = max(0.0, min(self.end, time.time()) - self.start) / 3600 * len(self._seen)
        return None if whole is None else max(0.0, length - whole)

    @property
    def total(self) -> AccountEntry:
        """Everything together, with the energy that nobody used."""
        total = AccountEntry()
        for name, add in (("busy_hours", sum), ("memory_hours", sum), ("energy", sum), ("memory_most", max)):
            known = [value for entry in self._entries.values() if (value := getattr(entry, name)) is not None]
            setattr(total, name, add(known) if known else None)
        total.gpu_hours = self.used_hours
        total.processes = len(set().union(*self._counted.values()))
        return total


def check_kinds(by: Sequence[str]) -> None:
    """Raise UsageError for a word by which usage cannot be divided, or one that is given twice."""
    for word in by:
        if word not in KINDS:
            raise UsageError(f"unknown owner {word!r}{did_you_mean(word, KINDS)}", f"choose from {', '.join(KINDS)}.")
    if len(set(by)) < len(by):
        raise UsageError(f"{','.join(by)} names something twice;", "name each once.")


def _dated(word: str, at: float) -> str:
    return time.strftime(CALENDAR[word], time.localtime(at))
