"""Views with several lines per GPU: dmon's and pmon's scrolling columns, and lists such as supported clocks and retired pages."""

from __future__ import annotations

import time

from ...model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu, Process
from ...model.metric import Reading
from ...model.select import Wanted
from ...present.text import clean
from ...value import Value
from .field import MIB, Field, QueryRow, gpu_index, mib, missing_text, whole_or
from .fields import FIELDS
from .views import Csv, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...model.snapshot import Snapshot
    from .views import Asked

    Entry = Mapping[str, str]

HEADER_EVERY = 20


class ScrollColumn(Value):
    """One column: its two titles, the catalog key, and how a number is written; `group` is dmon's letter for it."""

    title: str
    unit: str
    key: str
    group: str
    form: Callable[[float], float] = float
    blank_zero: bool = False

    def text(self, reading: Reading) -> str:
        """Return the value, a dash if there is none; pmon writes a process's idle video engines as one too."""
        value = reading.get(self.key)
        if self.blank_zero and value == 0:
            return "-"
        return f"{self.form(value):.0f}" if isinstance(value, (int, float)) else "-"


def _mib(count: float) -> float:
    return count // MIB


def _mib_started(count: float) -> float:
    return -(-count // MIB)


def _megabytes(count: float) -> float:
    return count // 1_000_000


DEVICE = (
    ScrollColumn("pwr", "W", "power_draw", "p", int),
    ScrollColumn("gtemp", "C", "temperature", "p"),
    ScrollColumn("mtemp", "C", "memory_temperature", "p"),
    ScrollColumn("sm", "%", "utilization", "u"),
    ScrollColumn("mem", "%", "memory_utilization", "u"),
    ScrollColumn("enc", "%", "encoder_utilization", "u"),
    ScrollColumn("dec", "%", "decoder_utilization", "u"),
    ScrollColumn("jpg", "%", "jpeg_utilization", "u"),
    ScrollColumn("ofa", "%", "ofa_utilization", "u"),
    ScrollColumn("mclk", "MHz", "clock_memory", "c"),
    ScrollColumn("pclk", "MHz", "clock_sm", "c"),
    ScrollColumn("fb", "MB", "memory_used", "m", _mib_started),
    ScrollColumn("bar1", "MB", "bar1_used", "m", _mib),
    ScrollColumn("ccpm", "MB", "memory_protected_used", "m", _mib),
    ScrollColumn("sbecc", "errs", "ecc_corrected", "e"),
    ScrollColumn("dbecc", "errs", "ecc_uncorrected", "e"),
    ScrollColumn("pci", "errs", "pcie_replays", "e"),
    ScrollColumn("rxpci", "MB/s", "pcie_rx", "t", _megabytes),
    ScrollColumn("txpci", "MB/s", "pcie_tx", "t", _megabytes),
    ScrollColumn("smact", "%", "sm_active", "a"),
    ScrollColumn("occ", "%", "sm_occupancy", "a"),
    ScrollColumn("tensor", "%", "tensor_active", "a"),
    ScrollColumn("dram", "%", "dram_active", "a"),
    ScrollColumn("pviol", "%", "throttle_time_power_cap", "v"),
    ScrollColumn("tviol", "bool", "throttle_time_thermal", "v"),
)
PROCESS = (
    ScrollColumn("sm", "%", "sm_utilization", "u"),
    ScrollColumn("mem", "%", "memory_utilization", "u"),
    ScrollColumn("enc", "%", "encoder_utilization", "u", blank_zero=True),
    ScrollColumn("dec", "%", "decoder_utilization", "u", blank_zero=True),
    ScrollColumn("jpg", "%", "", "u"),
    ScrollColumn("ofa", "%", "", "u"),
    ScrollColumn("fb", "MB", "memory_used", "m", _mib),
    ScrollColumn("ccpm", "MB", "memory_protected_used", "m", _mib),
)
# What --gpm-metrics shows, by GPM's number; nvidia-smi's titles and units, as seen on Hopper.
GPM = {
    1: ScrollColumn("gract", "GPM:%", "graphics_active", ""),
    2: ScrollColumn("smutil", "GPM:%", "sm_active", ""),
    3: ScrollColumn("smocc", "GPM:%", "sm_occupancy", ""),
    4: ScrollColumn("intutil", "GPM:%", "integer_active", ""),
    5: ScrollColumn("mmaact", "GPM:%", "tensor_active", ""),
    10: ScrollColumn("dram", "GPM:%", "dram_active", ""),
    11: ScrollColumn("fp64", "GPM:%", "fp64_active", ""),
    12: ScrollColumn("fp32", "GPM:%", "fp32_active", ""),
    13: ScrollColumn("fp16", "GPM:%", "fp16_active", ""),
    20: ScrollColumn("pcitx", "GPM:MiB/s", "pcie_tx", "", _mib),
    21: ScrollColumn("pcirx", "GPM:MiB/s", "pcie_rx", "", _mib),
    60: ScrollColumn("nvlrx", "GPM:MiB/s", "nvlink_rx", "", _mib),
    61: ScrollColumn("nvltx", "GPM:MiB/s", "nvlink_tx", "", _mib),
}
_HAS_GPM = "dram_active"  # links have traffic without GPM, too
_HEAT = ("throttle_time_thermal", "throttle_time_thermal_hardware")
_STAMPS = (("D", "Date", "YYYYMMDD", "%Y%m%d"), ("T", "Time", "HH:MM:SS", "%H:%M:%S"))
GPU_ONLY = frozenset({"memory_protected_used"})
# The groups of `gpulse query --scroll`; the letter v, violations of limits, is dmon's only.
GROUPS = {
    "p": "power and temperature",
    "u": "utilization",
    "c": "clocks",
    "m": "memory",
    "e": "errors",
    "t": "PCIe traffic",
    "a": "SM, tensor and DRAM activity",
}


class DeviceScroll(View):
    """dmon: one line per GPU and sample, and the header every 20 lines.

    `groups` are dmon's letters, in the order of the columns; `stamps` D and T add the date and the time; `forms` are csv, nounit and
    noheader; `gpm` are numbers of `GPM`. `compares` tells whether a value covers the time since the previous sample.
    """

    _table: Sequence[ScrollColumn] = DEVICE
    _ends = (("# gpu", " "), ("# Idx", " "))

    def __init__(
        self, groups: str = "puc", stamps: str = "", forms: Sequence[str] = (), gpm: Sequence[int] = ()
    ) -> None:
        self._gpm = [GPM[number] for number in gpm]
        self.columns = [column for letter in dict.fromkeys(groups) for column in self._table if column.group == letter]
        self._stamps = [parts for parts in _STAMPS if parts[0] in stamps]
        self._csv = "csv" in forms
        self._titled = "noheader" not in forms, "nounit" not in forms and "nounits" not in forms
        self._since = HEADER_EVERY
        self.compares = "v" in groups
        self._before: dict[str, tuple[float, float | None, float | None]] = {}
        keys = {column.key for column in (*self.columns, *self._gpm)}
        also = (*(_HEAT if self.compares else ()), *([_HAS_GPM] if self._gpm else ()))
        self.wanted = Wanted({"index", "uuid", *also, *keys})

    def note(self, snapshot: Snapshot) -> None:
        """Take a sample only to compare the next one with."""
        for gpu in snapshot.gpus:
            self._violations(snapshot, gpu)

    def lines(self, snapshot: Snapshot) -> list[str]:
        body = [f"{self._place(snapshot, gpu)}{cells}" for gpu in snapshot.gpus for cells in self._rows(snapshot, gpu)]
        due = self._since >= HEADER_EVERY
        if self._csv:
            self._since = 0
            titles = zip(self._titled, self._header(), strict=True)
            head = ["#" + ", ".join(line.removeprefix("#").split()) for shown, line in titles if shown]
            return [*(head if due else ()), *(f" {', '.join(line.split())}" for line in body)]
        self._since = len(body) if due else self._since + len(body)
        return [*self._header(), *body] if due else body

    def _header(self) -> list[str]:
        (first, after), (second, below) = self._ends
        titles = f"{first}{''.join(f'{column.title:>7}' for column in self.columns)}{after}"
        units = f"{second}{''.join(f'{column.unit:>7}' for column in self.columns)}{below}"
        titles += "".join(f"{column.title:>10} " for column in self._gpm)
        units += "".join(f"{column.unit:>10} " for column in self._gpm)
        if not self._stamps:
            return [titles, units]
        names = "    ".join(f"{name:<8}" for _, name, _, _ in self._stamps)
        shapes = "    ".join(shape for _, _, shape, _ in self._stamps)
        return [f"#{names}     {titles[2:]}", f"#{shapes}     {units[2:]}"]

    def _place(self, snapshot: Snapshot, gpu: Gpu) -> str:
        """Return date, time and index of a line."""
        if not self._stamps:
            return f"{gpu_index(gpu):>5}"
        local = time.localtime(snapshot.time)
        stamps = "    ".join(time.strftime(form, local) for *_, form in self._stamps)
        return f" {stamps}{gpu_index(gpu):>8}"

    def _rows(self, snapshot: Snapshot, gpu: Gpu) -> Iterator[str]:
        """Yield the cells of each line of a GPU."""
        told = self._violations(snapshot, gpu) if self.compares else {}
        cells = "".join(f"{told.get(column.title) or column.text(gpu):>7}" for column in self.columns)
        has = gpu.get(_HAS_GPM) is not None
        yield f"{cells} " + "".join(f"{column.text(gpu) if has else '-':>10} " for column in self._gpm)

    def _violations(self, snapshot: Snapshot, gpu: Gpu) -> dict[str, str]:
        """Return the share of time at the power cap, and whether heat slowed the GPU, since the last sample."""
        power, told = gpu.throttle_time_power_cap, {"pviol": "-", "tviol": "-"}
        heat = [value for key in _HEAT if isinstance(value := gpu.get(key), (int, float))]
        slowed, name = sum(heat) if heat else None, gpu.uuid or gpu_index(gpu)
        before, self._before[name] = self._before.get(name), (snapshot.time, power, slowed)
        if before is None or snapshot.time <= before[0]:
            return told
        if power is not None and before[1] is not None:
            share = min(100.0, max(0.0, 100 * (power - before[1]) / (snapshot.time - before[0])))
            told["pviol"] = f"{share:.0f}"
        if slowed is not None and before[2] is not None:
            told["tviol"] = str(int(slowed > before[2]))
        return told


class ProcessScroll(DeviceScroll):
    """pmon: one line per process and sample, and one of dashes for a GPU without any."""

    _table = PROCESS
    _ends = (("# gpu         pid   type", "    command "), ("# Idx           #    C/G", "    name "))

    def __init__(self, groups: str = "u", stamps: str = "") -> None:
        super().__init__(groups, stamps)
        keys = {column.key for column in self.columns if column.key}
        gpu = {"index", *(keys & GPU_METRICS.keys() - PROCESS_METRICS.keys())}
        self.wanted = Wanted(gpu, {"pid", "type", "name", *(keys & PROCESS_METRICS.keys())})

    def _rows(self, snapshot: Snapshot, gpu: Gpu) -> Iterator[str]:
        processes = [*gpu.all_processes()]
        for process in processes:
            cells = "".join(f"{_text(column, gpu, process):>7}" for column in self.columns)
            kind, name = clean(process.type or "-"), clean(process.name or "-")
            yield f"{whole_or(process.pid, '-'):>11}{kind:>6}{cells}    {name:<15}"
        if not processes:
            yield f"{'-':>11}{'-':>6}" + "".join(f"{'-':>7}" for _ in self.columns) + f"    {'-':<15}"


def _text(column: ScrollColumn, gpu: Gpu, process: Process) -> str:
    """Return a process's value; of one that only the GPU has, no more can be said than that nobody uses any."""
    if column.key not in GPU_ONLY:
        return column.text(process)
    return "0" if gpu.get(column.key) == 0 else "-"


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
