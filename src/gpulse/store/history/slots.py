"""Slots: which value of which GPU stands at which place of a tick, known by UUID, growing as new ones are seen."""

from __future__ import annotations

from array import array

from ...model.codec import STATES
from ...model.metric import Flag, Number, Numbers, Words
from ...model.presets import TRACES
from .checks import insertion
from .columns import NAN, PROCESSES, SERVING, metrics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    from ...model.catalog import Gpu, Process
    from ...model.metric import Reading, Value
    from ...model.snapshot import Snapshot

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


def sound(text: str) -> str:
    """Return text that SQLite takes: what processes and boards say may hold halves of characters."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


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
        self._gpus: dict[str, int] = {uuid: id for id, uuid in connection.execute("SELECT id, uuid FROM gpu")}
        rows = connection.execute("SELECT gpu, key, id FROM slot")
        self._slots: dict[tuple[int, str], int] = {(gpu, key): id for gpu, key, id in rows}
        self._last_slot = max(self._slots.values(), default=0)
        self._layouts: dict[bytes, int] = {
            bytes(slots): id for id, slots in connection.execute("SELECT id, slots FROM layout")
        }
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
            self._fill(row, uuid, gpu, snapshot.time, parent)
            row[self._place(row, uuid, "state")] = STATES.index(gpu.state)
            for rank, process in enumerate(gpu.processes[:MOST_PROCESSES]):
                self._fill_process(row, uuid, f"{PROCESSES}:{rank}:", process)
        if self._layout is None:
            self._layout = self._layout_of(self._active.tobytes())
        return self._layout, row.tobytes()

    def keep_only(self, slots: set[int]) -> None:
        """Forget the places of all others: of GPUs and metrics that have gone. Those that come back get a new place."""
        if kept := array("I", [slot for slot in self._active if slot in slots]):
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

    def _layout_of(self, slots: bytes) -> int:
        if (number := self._layouts.get(slots)) is None:
            number = self._layouts[slots] = max(self._layouts.values(), default=0) + 1
            self._tell_twice("layout", (number, slots))
        return number

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

    def _tell_twice(self, table: str, values: tuple[Any, ...]) -> None:
        """Insert a row, and its copy into the table of copies."""
        self.news += [(insertion(table), values), (insertion(f"{table}_copy"), values)]
