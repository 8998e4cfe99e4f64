"""Queries with several lines per GPU: supported clocks, retired pages and accounted processes, as nvidia-smi lists them."""

from __future__ import annotations

import time

from ...model.select import Wanted
from ...value import Value
from .field import Field, QueryRow, mib, missing_text
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

    entry: Entry = {}


class ListField(Field, frozen=True):
    """A field of an entry; `key` names the list in the catalog."""

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        value = row.entry.get(self.name) if isinstance(row, ListRow) else None
        if value is None:
            return missing_text(row.gpu.gap(self.key), self.missing)
        return f"{value} {self.unit}" if self.unit and units else value


class ListQuery(Value):
    """A query: its fields, and how the list at `key` of a GPU is read; one without a key has a line per GPU."""

    fields: tuple[Field, ...]
    key: str = ""
    entries: Callable[[Gpu], Iterator[Entry]] | None = None


class ListCsv(Csv):
    """CSV with one line per entry of a list."""

    def __init__(self, query: str, asked: Asked, *, header: bool = True, units: bool = True) -> None:
        super().__init__(asked, header=header, units=units)
        self._list = LISTS[query]
        self.wanted |= Wanted({self._list.key} if self._list.key else ())

    def _rows(self, snapshot: Snapshot) -> list[QueryRow]:
        if self._list.entries is None:
            return super()._rows(snapshot)
        return [ListRow(snapshot, gpu, None, entry) for gpu in snapshot.gpus for entry in self._list.entries(gpu)]


def _clocks(gpu: Gpu) -> Iterator[Entry]:
    for word in gpu.clocks_supported or ():
        memory, _, graphics = word.partition(":")
        yield from ({"memory": memory, "graphics": clock} for clock in graphics.split(",") if clock)


def _pages(gpu: Gpu) -> Iterator[Entry]:
    if gpu.retired_pages is None:
        yield from ({"retired_pages.cause": cause} for cause in CAUSES.values())  # as nvidia-smi does, without pages
        return
    for word in gpu.retired_pages:
        cause, address, seconds = (*word.split(":"), "", "")[:3]
        stamp = time.asctime(time.localtime(int(seconds))) if seconds.isdecimal() else "[N/A]"
        texts = address, stamp, CAUSES.get(cause, cause)
        yield dict(zip((field.name for field in LISTS["--query-retired-pages"].fields), texts, strict=True))


def _accounted(gpu: Gpu) -> Iterator[Entry]:
    for word in gpu.accounting_apps or ():
        parts = word.split(":")
        if len(parts) == 6:
            pid, use, memory, most, milliseconds, _ = parts
            texts = pid, use, memory, mib(float(most)), milliseconds
            yield dict(zip((field.name for field in _ACCOUNTED), texts, strict=True))


_ACCOUNTED = (
    ListField("pid", "accounting_apps"),
    ListField("gpu_utilization", "accounting_apps", unit="%", aliases=("gpu_util",)),
    ListField("mem_utilization", "accounting_apps", unit="%", aliases=("mem_util",)),
    ListField("max_memory_usage", "accounting_apps", unit="MiB"),
    ListField("time", "accounting_apps", unit="ms"),
)
LISTS = {
    "--query-supported-clocks": ListQuery(
        (
            ListField("memory", "clocks_supported", unit="MHz", aliases=("mem",)),
            ListField("graphics", "clocks_supported", unit="MHz", aliases=("gr",)),
        ),
        "clocks_supported",
        _clocks,
    ),
    "--query-retired-pages": ListQuery(
        tuple(ListField(f"retired_pages.{name}", "retired_pages") for name in ("address", "timestamp", "cause")),
        "retired_pages",
        _pages,
    ),
    "--query-accounted-apps": ListQuery((Field("vgpu_instance", ""), *_ACCOUNTED), "accounting_apps", _accounted),
    "--query-remapped-rows": ListQuery(
        tuple(field for name, field in FIELDS.items() if name.startswith("remapped_rows."))
    ),
}
