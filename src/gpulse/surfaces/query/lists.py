"""Queries with several lines per GPU: supported clocks, retired pages and accounted processes, as nvidia-smi lists them."""

from __future__ import annotations

import time

from ...model.select import Wanted
from .field import Field, QueryRow, SnapshotField, mib, missing_text, time_stamp
from .fields import FIELDS
from .views import Csv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .views import Asked

    Entry = Mapping[str, str]

CAUSES = {"corrected": "Single Bit ECC", "uncorrected": "Double Bit ECC"}


class ListRow(QueryRow):
    """One entry of a list that a GPU has."""

    __slots__ = ("entry",)

    def __init__(self, snapshot: Snapshot, gpu: Gpu, entry: Entry) -> None:
        super().__init__(snapshot, gpu)
        self.entry = entry


class ListField(Field):
    """A field of an entry; `key` names the list in the catalog."""

    __slots__ = ()

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        value = row.entry.get(self.name) if isinstance(row, ListRow) else None
        if value is None:
            return missing_text(row.gpu.gap(self.key), self.missing)
        return f"{value} {self.unit}" if self.unit and units else value


class ListCsv(Csv):
    """CSV with one line per entry of a list."""

    def __init__(self, query: str, asked: Asked, *, header: bool = True, units: bool = True) -> None:
        super().__init__(asked, header=header, units=units)
        self._entries = ENTRIES[query]
        self.wanted |= Wanted({KEYS[query]})

    def _rows(self, snapshot: Snapshot) -> list[QueryRow]:
        return [ListRow(snapshot, gpu, entry) for gpu in snapshot.gpus for entry in self._entries(gpu)]


def _clocks(gpu: Gpu) -> Iterator[Entry]:
    for word in gpu.clocks_supported or ():
        memory, _, graphics = word.partition(":")
        yield from ({"memory": memory, "graphics": clock} for clock in graphics.split(",") if clock)


def _pages(gpu: Gpu) -> Iterator[Entry]:
    if gpu.retired_pages is None:
        yield from ({"retired_pages.cause": cause} for cause in CAUSES.values())  # as nvidia-smi does, without pages
        return
    for word in gpu.retired_pages:
        cause, address, moment = (*word.split(":"), "", "")[:3]
        stamp = time.asctime(time.localtime(int(moment))) if moment.isdecimal() else "[N/A]"
        yield {
            "retired_pages.address": address,
            "retired_pages.timestamp": stamp,
            "retired_pages.cause": CAUSES.get(cause, cause),
        }


def _accounted(gpu: Gpu) -> Iterator[Entry]:
    for word in gpu.accounting_apps or ():
        parts = word.split(":")
        if len(parts) == 6:
            pid, use, memory, most, milliseconds, _ = parts
            yield {
                "pid": pid,
                "gpu_utilization": use,
                "mem_utilization": memory,
                "max_memory_usage": mib(float(most)),
                "time": milliseconds,
            }


KEYS = {
    "--query-supported-clocks": "clocks_supported",
    "--query-retired-pages": "retired_pages",
    "--query-accounted-apps": "accounting_apps",
}
ENTRIES: dict[str, Callable[[Gpu], Iterator[Entry]]] = {
    "--query-supported-clocks": _clocks,
    "--query-retired-pages": _pages,
    "--query-accounted-apps": _accounted,
}
_COMMON: tuple[Field, ...] = (
    SnapshotField("timestamp", "", time_stamp),
    Field("gpu_name", "name"),
    Field("gpu_bus_id", "pci_bus_id"),
    Field("gpu_serial", "serial"),
    Field("gpu_uuid", "uuid"),
)
_FIELDS: dict[str, tuple[Field, ...]] = {
    "--query-supported-clocks": (
        ListField("memory", "clocks_supported", unit="MHz", aliases=("mem",)),
        ListField("graphics", "clocks_supported", unit="MHz", aliases=("gr",)),
    ),
    "--query-retired-pages": tuple(
        ListField(f"retired_pages.{name}", "retired_pages") for name in ("address", "timestamp", "cause")
    ),
    "--query-accounted-apps": (
        Field("vgpu_instance", ""),
        ListField("pid", "accounting_apps"),
        ListField("gpu_utilization", "accounting_apps", unit="%", aliases=("gpu_util",)),
        ListField("mem_utilization", "accounting_apps", unit="%", aliases=("mem_util",)),
        ListField("max_memory_usage", "accounting_apps", unit="MiB"),
        ListField("time", "accounting_apps", unit="ms"),
    ),
    "--query-remapped-rows": tuple(field for name, field in FIELDS.items() if name.startswith("remapped_rows.")),
}


def list_fields(query: str) -> dict[str, Field]:
    """Return the fields of one of these queries by every name nvidia-smi takes for them."""
    fields = (*_COMMON, *_FIELDS[query])
    return {name.lower(): field for field in fields for name in (field.name, *field.aliases)}
