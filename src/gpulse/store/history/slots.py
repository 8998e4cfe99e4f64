"""Slots: which value of which GPU stands at which place of a tick, known by UUID; and snapshots rebuilt from such rows."""

from __future__ import annotations

from array import array

from ...model.catalog import (
    GPU_METRICS,
    HOST_METRICS,
    PROCESS_METRICS,
    SERVER_METRICS,
    TRACES,
    Gpu,
    Host,
    Process,
    Server,
)
from ...model.codec import STATES
from ...model.identity import rename
from ...model.metric import Flag, Number, Numbers, Words
from ...model.snapshot import Snapshot
from .answers import TEXTS, latest_facts, uuids_of
from .columns import NAN, PROCESSES, SERVING, metrics_of, sound
from .database import insertion
from .fetching import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    from ...model.metric import Metric, Reading, Value
    from .blocks import Damage

    Statement: TypeAlias = "tuple[str, tuple[Any, ...]]"

MOST_PROCESSES = 4  # of a GPU; a place for every PID would fill the file on machines with many short jobs
_FIGURES = (
    *("pid", "memory_used", "sm_utilization", "cpu_percent", "tree_cpu_percent", "children", "workers_running"),
    *("workers_blocked", "tree_read", "tree_write", "thread_state"),
)
HOST = ""  # stands for the machine where a UUID is asked for
# one value per core would double what a machine with 128 writes; XIDs are events; a trace is 50 values per second
_NOT_KEPT = TRACES | {"cpu_per_core", "xids"}
_INSERT_FACT = insertion("fact")
_FACT, _NOTHING = -1, -2  # places of what is kept as a fact beside the ticks, and of what is not kept


def uuid_of(gpu: Gpu) -> str:
    """Return what a GPU is known by: its UUID, or the next best where it has none."""
    return sound(gpu.uuid or gpu.pci_bus_id or f"index {gpu.index}")


def _unnamed(gpu: Gpu) -> tuple[Gpu, Gpu]:
    """Return a GPU as it was if it could not tell its UUID, or nothing but its index."""
    return gpu.replace(uuid=None), gpu.replace(uuid=None, pci_bus_id=None)


def parts_of(snapshot: Snapshot) -> Iterator[tuple[str, Gpu, str]]:
    """Walk GPUs and their MIG instances, each with its UUID and that of the GPU that holds it."""
    for gpu in snapshot.gpus:
        uuid = uuid_of(gpu)
        yield uuid, gpu, ""
        for instance in gpu.instances:
            yield uuid_of(instance), instance, uuid


def _place_kind(key: str, owner: str) -> int:
    """Return 0 for what changes and is a number, else where it goes instead."""
    if key in ("state", PROCESSES) and owner:
        return 0
    metric = metrics_of(owner).get(key)
    if metric is None or key in _NOT_KEPT:
        return _NOTHING
    if metric.cost == "static" or key == "memory_total" or not isinstance(metric, (Number, Flag, Words, Numbers)):
        return _FACT
    return 0


class Slots:
    """The writer's knowledge of places. What the database has to learn of it stands in `news`, in order.

    A metric that is words has the number of words at its own place and 1 or 0 for each word ever seen at `key:word`, so that
    a mean is the share of time in which the word applied. One that is numbers has `key:0`, `key:1` and so on. A process has its
    figures at `processes:RANK:key`, and its state like a word.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Take up what the database knows."""
        self.news: list[Statement] = []
        self._gpus: dict[str, int] = {uuid: id for id, uuid in uuids_of(connection).items()}
        rows = connection.execute("SELECT gpu, key, id FROM slot")
        self._slots: dict[tuple[int, str], int] = {(gpu, key): id for gpu, key, id in rows}
        self._last_slot = max(self._slots.values(), default=0)
        self._last_layout: int = connection.execute("SELECT ifnull(max(id), 0) FROM layout").fetchone()[0]
        self._active = array("I")
        self._places: dict[str, dict[str, int]] = {}
        self._words: dict[tuple[str, str], list[int]] = {}
        self._facts: dict[str, dict[str, Value]] = {}
        self._layout: int | None = None

    @property
    def uuids(self) -> dict[int, str]:
        """UUIDs by the number a GPU has in the database."""
        return {number: uuid for uuid, number in self._gpus.items()}

    def gpu(self, uuid: str) -> int:
        """Return the number a GPU has in the database; 0 is the host."""
        if (number := self._gpus.get(uuid)) is None:
            number = self._gpus[uuid] = max(self._gpus.values(), default=0) + 1
            self._tell_twice("gpu", (number, uuid))
        return number

    def row(self, snapshot: Snapshot) -> tuple[int, bytes]:
        """Return a snapshot's layout and its values in that order, NaN where one is missing."""
        row = array("d", [NAN]) * len(self._active)
        self._fill(row, HOST, snapshot.host, snapshot.time, "")
        for server in snapshot.serving:
            self._fill(row, sound(f"{SERVING}{server.key}"), server, snapshot.time, "")
        for uuid, gpu, parent in parts_of(snapshot):
            if gpu.uuid and uuid not in self._gpus and not parent:
                self._rename(gpu, uuid)
            self._fill(row, uuid, gpu, snapshot.time, parent)
            row[self._place(row, uuid, "state")] = STATES.index(gpu.state)
            for rank, process in enumerate(gpu.processes[:MOST_PROCESSES]):
                self._fill_process(row, uuid, f"{PROCESSES}:{rank}:", process)
        if self._layout is None:
            self._layout = self._last_layout = self._last_layout + 1
            self._tell_twice("layout", (self._layout, self._active.tobytes()))
        return self._layout, row.tobytes()

    def keep_only(self, slots: set[int]) -> None:
        """Forget the places of all others: of GPUs and metrics that have gone. Those that come back get a new place."""
        kept = [slot for slot in self._active if slot in slots]
        if 0 < len(kept) < len(self._active):
            names = {slot: name for name, slot in self._slots.items()}
            uuids = self.uuids
            self._places, self._words, self._active, self._layout = {}, {}, array("I"), None
            for slot in kept:
                number, key = names[slot]
                self._add(uuids[number], key)

    def _fill(self, row: array[float], uuid: str, reading: Reading, time: float, parent: str) -> None:
        places = self._places.setdefault(uuid, {})
        changed = False
        for key, value in reading.items():
            place = places.get(key)
            if place is None:
                place = self._place(row, uuid, key)
            if place >= 0:
                if type(value) is tuple:
                    self._spread(row, uuid, key, value)
                elif value == value:
                    row[place] = value  # type: ignore[assignment]  # text is a fact
            elif place == _FACT:
                changed |= self._is_news(uuid, key, value)
        if changed:
            self._tell_facts(uuid, time, parent)

    def _fill_process(self, row: array[float], uuid: str, start: str, process: Process) -> None:
        for key in _FIGURES:
            value = process.get(key)
            if isinstance(value, str):
                for place in self._words.get((uuid, start + key), ()):
                    row[place] = 0
                row[self._place(row, uuid, f"{start}{key}:{value}")] = 1
            elif isinstance(value, (int, float)) and value == value:
                row[self._place(row, uuid, start + key)] = value

    def _spread(self, row: array[float], uuid: str, key: str, value: tuple[str, ...] | tuple[float, ...]) -> None:
        row[self._place(row, uuid, key)] = len(value)
        if value and not isinstance(value[0], str):
            for at, number in enumerate(value):
                row[self._place(row, uuid, f"{key}:{at}")] = number
            return
        for place in self._words.get((uuid, key), ()):
            row[place] = 0
        for word in value:
            row[self._place(row, uuid, sound(f"{key}:{word}"))] = 1

    def _place(self, row: array[float], uuid: str, key: str) -> int:
        """Return where a key stands; one seen for the first time makes the row longer."""
        places = self._places.setdefault(uuid, {})
        if (place := places.get(key)) is None:
            place = places[key] = _place_kind(key.partition(":")[0], uuid)
            if place == 0:
                place = self._add(uuid, key)
                row.append(NAN)
                self._layout = None
        return place

    def _add(self, uuid: str, key: str) -> int:
        number = self.gpu(uuid)
        if (slot := self._slots.get((number, key))) is None:
            self._last_slot += 1
            slot = self._slots[number, key] = self._last_slot
            self._tell_twice("slot", (slot, number, key))
        place = len(self._active)
        self._places.setdefault(uuid, {})[key] = place
        self._active.append(slot)
        name, _, word = key.rpartition(":") if key.startswith(f"{PROCESSES}:") else key.partition(":")
        if word:
            self._words.setdefault((uuid, name), []).append(place)
        return place

    def _is_news(self, uuid: str, key: str, value: Value) -> bool:
        known = self._facts.setdefault(uuid, {})
        if known.get(key) == value:
            return False
        known[key] = value
        return True

    def _tell_facts(self, uuid: str, time: float, parent: str) -> None:
        import json

        facts = self._facts[uuid] | ({"parent": parent} if parent else {})
        text = json.dumps(facts)
        self.news.append((_INSERT_FACT, (self.gpu(uuid), time, text)))

    def _rename(self, gpu: Gpu, uuid: str) -> None:
        """Go on with the records of a GPU that could not tell its UUID when it was first recorded: lost or hung at that time."""
        before = next((name for name in map(uuid_of, _unnamed(gpu)) if name in self._gpus), None)
        if before is not None:
            number = self._gpus[uuid] = self._gpus.pop(before)
            for kept in (self._places, self._facts, self._words):
                rename(kept, {before: uuid})
            statements = (insertion(table).replace("INSERT", "REPLACE", 1) for table in ("gpu", "gpu_copy"))
            self.news += [(statement, (number, uuid)) for statement in statements]

    def _tell_twice(self, table: str, values: tuple[Any, ...]) -> None:
        """Insert a row, and its copy into the table of copies."""
        self.news += [(insertion(table), values), (insertion(f"{table}_copy"), values)]


STRETCH = 600.0  # seconds rebuilt at once; of rows that stand for at least a minute, 36 times as many
_PROCESSES = """
SELECT process.gpu, first, last, seconds, memory_seconds, pid, started, user, name, command, job, container, pod,
project, job_name FROM usage JOIN process ON process.id = usage.process LEFT JOIN label ON label.id = process.id
WHERE last >= ? AND first < ? AND pid >= 0
"""


def rebuilt(
    connection: sqlite3.Connection, start: float, end: float, damages: list[Damage], width: float = 0.0
) -> list[Snapshot]:
    """Return the snapshots of a stretch of time, about `width` seconds apart; what is damaged is added to `damages`."""
    fetched = fetch(connection, None, start, end, width, damages)
    if fetched is None:
        return []
    keys = dict(connection.execute("SELECT id, key FROM slot"))
    facts: dict[int, tuple[str, dict[str, Any]]] = {
        # of a GPU whose facts are damaged, the UUID is known, if it has one
        gpu: (uuid, {"uuid": uuid} if uuid.startswith(("GPU-", "MIG-")) else {})
        for gpu, uuid in uuids_of(connection).items()
    }
    facts |= {gpu: (uuid, known) for gpu, uuid, known in latest_facts(connection, end)}
    users = connection.execute(_PROCESSES, (start, end)).fetchall()
    columns = [
        (gpu, [(keys[slot], column.mean) for slot, column in slots.items() if slot in keys])
        for gpu, slots in fetched.rows.parts.items()
    ]
    # a GPU whose values are damaged must not look like one that was removed
    holes = [(damage.start, damage.stop) for damage in damages if damage.gpu is not None]
    found = []
    for at, time in enumerate(fetched.rows.times):
        if not any(first <= time <= last for first, last in holes):
            there = {gpu: {key: mean[at] for key, mean in values if mean[at] == mean[at]} for gpu, values in columns}
            found.append(_snapshot(time, there, facts, users))
    return found


def _snapshot(
    time: float,
    parts: Mapping[int, dict[str, float]],
    facts: Mapping[int, tuple[str, dict[str, Any]]],
    users: list[tuple[Any, ...]],
) -> Snapshot:
    gpus: dict[str, Gpu] = {}
    instances: dict[str, list[Gpu]] = {}
    host = Host(_values(parts.get(0, {}), HOST_METRICS) | _known(facts.get(0, ("", {}))[1], HOST_METRICS))
    servers: list[Server] = []
    for number, numbers in parts.items():
        if facts.get(number, ("",))[0].startswith(SERVING):
            if numbers:
                servers.append(Server(_known(facts[number][1], SERVER_METRICS) | _values(numbers, SERVER_METRICS)))
            continue
        if number == 0 or "state" not in numbers:  # no state: it was not there
            continue
        uuid, known = facts.get(number, ("", {}))
        figures = _figures(numbers)
        gpu = Gpu(
            _known(known, GPU_METRICS) | _values(numbers, GPU_METRICS),
            state=STATES[min(round(numbers["state"]), len(STATES) - 1)],
            processes=tuple(
                _process(user, time, figures.get(user[5], {}))
                for user in users
                if user[0] == number and user[1] <= time <= user[2]
            ),
        )
        if "parent" in known:
            instances.setdefault(known["parent"], []).append(gpu)
        else:
            gpus[uuid] = gpu
    whole = [gpu.replace(instances=tuple(instances[uuid])) if uuid in instances else gpu for uuid, gpu in gpus.items()]
    whole.sort(key=lambda gpu: (gpu.index is None, gpu.index or 0))
    return Snapshot(time, tuple(whole), host, serving=tuple(servers))


def _values(numbers: dict[str, float], metrics: Mapping[str, Metric]) -> dict[str, Value]:
    """Return numbers as the catalog's types; what this version does not know is left out."""
    values: dict[str, Value] = {}
    for key, number in numbers.items():
        metric = metrics.get(key)
        if isinstance(metric, Number):
            values[key] = number
        elif isinstance(metric, Flag):
            values[key] = number >= 0.5
        elif isinstance(metric, Words):
            start = f"{key}:"
            values[key] = tuple(
                word.removeprefix(start) for word, share in numbers.items() if word.startswith(start) and share >= 0.5
            )
        elif isinstance(metric, Numbers):
            values[key] = tuple(numbers[at] for place in range(round(number)) if (at := f"{key}:{place}") in numbers)
    return values


def _known(facts: Mapping[str, Any], metrics: Mapping[str, Metric]) -> dict[str, Value]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items() if key in metrics}


def _figures(numbers: dict[str, float]) -> dict[float, dict[str, Value]]:
    """Return the figures of the processes of a GPU by PID; the state is the one that held longest."""
    found: dict[float, dict[str, Value]] = {}
    for rank in range(MOST_PROCESSES):
        start, state = f"{PROCESSES}:{rank}:", f"{PROCESSES}:{rank}:thread_state:"
        if (pid := numbers.get(f"{start}pid")) is None:
            break
        shares = {key.removeprefix(state): share for key, share in numbers.items() if key.startswith(state)}
        values: dict[str, Value] = {
            name: number
            for key, number in numbers.items()
            if key.startswith(start) and (name := key.removeprefix(start)) in PROCESS_METRICS
        }
        if shares:
            values["thread_state"] = max(shares, key=lambda word: shares[word])
        found[pid] = values
    return found


def _process(user: tuple[Any, ...], time: float, figures: dict[str, Value]) -> Process:
    _, _, _, seconds, memory, pid, started, *texts = user
    values: dict[str, Value] = {"pid": pid}
    values |= {key: text for key, text in zip(TEXTS, texts, strict=True) if text is not None and key in PROCESS_METRICS}
    if memory is not None and seconds:
        values["memory_used"] = memory / seconds
    if started is not None:
        values["running_time"] = max(0.0, time - started)
    return Process(values | figures)
