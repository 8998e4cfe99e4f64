"""What a field is: nvidia-smi's name for a catalog key, and how it writes the value."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...model.catalog import Gpu, Process
    from ...model.metric import Gap, Reading
    from ...model.snapshot import Snapshot

MIB = 1 << 20
_MISSING: dict[str, str] = {
    "lost": "[GPU is lost]",
    "denied": "[Insufficient Permissions]",
    "failed": "[Unknown Error]",
    "timeout": "[Unknown Error]",
}
NOT_AVAILABLE = "[N/A]"


class QueryRow:
    """What one line of an answer is about: a GPU of a snapshot, and a process on it where processes were asked for."""

    __slots__ = ("gpu", "process", "snapshot")

    def __init__(self, snapshot: Snapshot, gpu: Gpu, process: Process | None = None) -> None:
        self.snapshot = snapshot
        self.gpu = gpu
        self.process = process


class Field:
    """One field of a query: `name` as nvidia-smi calls it first, `key` in the catalog (empty: gpulse cannot say it).

    `form` writes the value, `unit` follows it and stands in the header, `missing` is written where there is no value
    and the gap says nothing worse. `instead` is a key that says nearly the same, for sources without the first.
    """

    __slots__ = ("aliases", "form", "instead", "key", "missing", "name", "unit")

    def __init__(
        self,
        name: str,
        key: str,
        form: Callable[[Any], str] = str,
        unit: str = "",
        *,
        aliases: tuple[str, ...] = (),
        missing: str = NOT_AVAILABLE,
        instead: str = "",
    ) -> None:
        self.name = name
        self.key = key
        self.form = form
        self.unit = unit
        self.aliases = aliases
        self.missing = missing
        self.instead = instead

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the catalog it must be given."""
        return tuple(key for key in (self.key, self.instead) if key)

    def header(self) -> str:
        """Return the title of its column: the first name and the unit, whatever name was asked and with units or without."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        reading = self._reading(row)
        value = next((found for key in self.keys if (found := reading.get(key)) is not None), None)
        if value is None:
            return missing_text(reading.gap(self.key) if self.key else None, self.missing)
        return f"{self.form(value)} {self.unit}" if self.unit and units else self.form(value)

    def _reading(self, row: QueryRow) -> Reading:
        return row.gpu

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ProcessField(Field):
    """A field of the process instead of the GPU."""

    __slots__ = ()

    def _reading(self, row: QueryRow) -> Reading:
        assert row.process is not None
        return row.process


class SnapshotField(Field):
    """A field of the whole snapshot: `form` takes the snapshot."""

    __slots__ = ()

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        return self.form(row.snapshot)


class CountField(Field):
    """The number of GPUs of the machine, whichever of them are shown; a source that cannot tell has those shown."""

    __slots__ = ()

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        count = row.gpu.get(self.key)
        return str(len(row.snapshot.gpus)) if count is None else f"{count:.0f}"


def missing_text(gap: Gap | None, otherwise: str = NOT_AVAILABLE) -> str:
    """Return nvidia-smi's words for a value that is not there."""
    return _MISSING.get(gap or "", otherwise)
