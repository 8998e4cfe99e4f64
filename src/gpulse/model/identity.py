"""Identities: one key for each GPU through loss and return, also while it cannot tell its UUID."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .catalog import Gpu
    from .snapshot import Snapshot

PLACE = "at "  # the key of a GPU without UUID: this and its index
_KEPT = ("uuid", "name", "pci_bus_id", "index")
_MOST = 1024  # GPUs that are remembered


class GpuIdentities:
    """Recognizes GPUs in snapshots handed over in the order of time. For one thread.

    A GPU that was lost or hung when sampling began has no UUID: its key is its place until the UUID is known. `renamed` maps the
    places whose UUID became known with the last snapshot to it. A GPU that tells its UUID no more keeps it. `replaced` holds the
    UUIDs of GPUs whose slot has another GPU now. `changed` says that `to_plain` has news; the one who saves it resets it.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}  # identity by place, of GPUs with UUID
        self._unnamed: set[str] = set()  # places that are used as keys
        self._last: tuple[list[object], list[str]] = (
            [],
            [],
        )  # GPUs of the last snapshot as they call themselves, and their keys
        self.renamed: dict[str, str] = {}
        self.replaced: set[str] = set()
        self.changed = False

    def remember(self, rows: object) -> None:
        """Take over what `to_plain` returned before a restart; what cannot be used is left out."""
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("uuid"), str) and row["uuid"]:
                one = {key: row[key] for key in _KEPT if isinstance(row.get(key), (str, int, float))}
                self._known.update((place, one) for place in _places(one.get("pci_bus_id"), one.get("index")))

    def to_plain(self) -> list[dict[str, Any]]:
        """Return what is known of GPUs, as JSON takes it, for `remember`."""
        return [*{one["uuid"]: one for one in self._known.values()}.values()][-_MOST:]

    def expect(self, key: str) -> None:
        """Note that a place was used as a key before a restart."""
        if key.startswith(PLACE):
            self._unnamed.add(key)
            self._last = ([], [])

    def keys(self, gpus: Sequence[Gpu]) -> list[str]:
        """Return the key of each GPU of one snapshot."""
        self.renamed = {}
        told: list[object] = [(gpu.uuid, gpu.pci_bus_id, gpu.index) for gpu in gpus]
        if told != self._last[0]:
            present = {gpu.uuid for gpu in gpus if gpu.uuid}
            for at, gpu in enumerate(gpus):
                if gpu.uuid:
                    self._meet(gpu, at, present)
            self._last = told, [self._key(gpu, at, present) for at, gpu in enumerate(gpus)]
        return self._last[1]

    def recognized(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot in which a GPU that does not tell its identity has the one that is remembered for its place."""
        keys = self.keys(snapshot.gpus)
        if all(gpu.uuid or key.startswith(PLACE) for gpu, key in zip(snapshot.gpus, keys, strict=True)):
            return snapshot
        present = {gpu.uuid for gpu in snapshot.gpus if gpu.uuid}
        gpus = (_named(gpu, {} if gpu.uuid else self._recall(gpu, at, present)) for at, gpu in enumerate(snapshot.gpus))
        return snapshot.replace(gpus=tuple(gpus))

    def _meet(self, gpu: Gpu, at: int, present: set[str]) -> None:
        places, uuid = _places(gpu.pci_bus_id, gpu.index, at), gpu.uuid or ""
        before = self._known.get(f"{PLACE}{gpu.pci_bus_id}") if gpu.pci_bus_id else None
        if before is not None and before["uuid"] != uuid and before["uuid"] not in present:
            self.replaced.add(before["uuid"])
        self.replaced.discard(uuid)
        one = {key: value for key in _KEPT if (value := gpu.get(key)) is not None}
        for place in places:
            if place in self._unnamed:
                self._unnamed.discard(place)
                self.renamed[place] = uuid
            if self._known.get(place) != one:
                self._known[place], self.changed = one, True

    def _recall(self, gpu: Gpu, at: int, present: set[str]) -> Mapping[str, Any]:
        """Return the identity of the GPU that was last at a place; not that of one which is elsewhere now."""
        found = (self._known.get(place) for place in _places(gpu.pci_bus_id, gpu.index, at))
        return next((one for one in found if one is not None and one["uuid"] not in present), {})

    def _key(self, gpu: Gpu, at: int, present: set[str]) -> str:
        if known := gpu.uuid or self._recall(gpu, at, present).get("uuid"):
            return str(known)
        place = key_of(None, at if gpu.index is None else gpu.index)
        self._unnamed.add(place)
        return place


def key_of(uuid: str | None, index: float | None) -> str:
    """Return the key of a GPU in a single sample: its UUID, or its place if that is missing."""
    return uuid or f"{PLACE}{'?' if index is None else int(index)}"


def _places(bus: str | None, index: float | None, at: int | None = None) -> list[str]:
    """Return where a GPU is, the most lasting first: indexes change when another GPU is gone."""
    number = at if index is None else int(index)
    return [f"{PLACE}{bus}"] * bool(bus) + [key_of(None, number)] * (number is not None)


def _named(gpu: Gpu, one: Mapping[str, Any]) -> Gpu:
    missing = {key: value for key, value in one.items() if gpu.get(key) is None}
    gaps = {key: gap for key, gap in gpu.gaps.items() if key not in missing}
    return gpu.replace(**missing, gaps=gaps) if missing else gpu


def rename(entries: dict[Any, Any], renamed: Mapping[str, str]) -> None:
    """Move what is kept of a GPU by its place to its UUID, in the same order; what the UUID has already stays.

    Keys are GPUs, or tuples that begin with one.
    """
    if not renamed or not any((key[0] if isinstance(key, tuple) else key) in renamed for key in entries):
        return
    kept = {_moved(key, renamed): value for key, value in entries.items()} | entries
    order = [_moved(key, renamed) for key in entries]
    entries.clear()
    entries.update((key, kept[key]) for key in order)


def _moved(key: Any, renamed: Mapping[str, str]) -> Any:
    if isinstance(key, tuple):
        return (renamed.get(key[0], key[0]), *key[1:])
    return renamed.get(key, key)
