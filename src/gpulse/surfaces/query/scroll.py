"""Scrolling columns, one line per GPU or process and sample, as dmon and pmon write them."""

from __future__ import annotations

from ...model.catalog import Gpu, Process
from ...model.metric import Reading
from ...present.text import clean
from .field import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...model.snapshot import Snapshot

HEADER_EVERY = 20


class ScrollColumn:
    """One column: its two titles, the catalog key, and how a number is written; `group` is dmon's letter for it."""

    __slots__ = ("blank_zero", "form", "group", "key", "title", "unit")

    def __init__(
        self,
        title: str,
        unit: str,
        key: str,
        group: str,
        form: Callable[[float], float] = float,
        blank_zero: bool = False,
    ) -> None:
        self.title = title
        self.unit = unit
        self.key = key
        self.group = group
        self.form = form
        self.blank_zero = blank_zero

    def text(self, reading: Reading) -> str:
        """Return the value, a dash where there is none; pmon writes a process's idle video engines as one too."""
        value = reading.get(self.key)
        if self.blank_zero and value == 0:
            return "-"
        return f"{self.form(value):.0f}" if isinstance(value, (int, float)) else "-"


def _mb(count: float) -> float:
    return count // MIB


def _started_mb(count: float) -> float:
    return -(-count // MIB)


def _decimal_mb(count: float) -> float:
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
    ScrollColumn("fb", "MB", "memory_used", "m", _started_mb),
    ScrollColumn("bar1", "MB", "bar1_used", "m", _mb),
    ScrollColumn("ccpm", "MB", "memory_protected_used", "m", _mb),
    ScrollColumn("sbecc", "errs", "ecc_corrected", "e"),
    ScrollColumn("dbecc", "errs", "ecc_uncorrected", "e"),
    ScrollColumn("pci", "errs", "pcie_replays", "e"),
    ScrollColumn("rxpci", "MB/s", "pcie_rx", "t", _decimal_mb),
    ScrollColumn("txpci", "MB/s", "pcie_tx", "t", _decimal_mb),
    ScrollColumn("smact", "%", "sm_active", "a"),
    ScrollColumn("occ", "%", "sm_occupancy", "a"),
    ScrollColumn("tensor", "%", "tensor_active", "a"),
    ScrollColumn("dram", "%", "dram_active", "a"),
)
PROCESS = (
    ScrollColumn("sm", "%", "sm_utilization", "u"),
    ScrollColumn("mem", "%", "memory_utilization", "u"),
    ScrollColumn("enc", "%", "encoder_utilization", "u", blank_zero=True),
    ScrollColumn("dec", "%", "decoder_utilization", "u", blank_zero=True),
    ScrollColumn("jpg", "%", "", "u"),
    ScrollColumn("ofa", "%", "", "u"),
    ScrollColumn("fb", "MB", "memory_used", "m", _mb),
    ScrollColumn("ccpm", "MB", "memory_protected_used", "m", _mb),
)
GPU_ONLY = frozenset({"memory_protected_used"})
GROUPS = {
    "p": "power and temperature",
    "u": "utilization",
    "c": "clocks",
    "m": "memory",
    "e": "errors",
    "t": "PCIe traffic",
    "a": "SM, tensor and DRAM activity",
}


def columns(table: Sequence[ScrollColumn], groups: str) -> list[ScrollColumn]:
    """Return the columns of these groups, in the table's order."""
    return [column for column in table if column.group in groups]


def device_header(shown: Sequence[ScrollColumn]) -> list[str]:
    """Return dmon's two lines of titles."""
    titles = "".join(f"{column.title:>7}" for column in shown)
    units = "".join(f"{column.unit:>7}" for column in shown)
    return [f"# gpu{titles} ", f"# Idx{units} "]


def device_rows(snapshot: Snapshot, shown: Sequence[ScrollColumn]) -> Iterator[str]:
    """Return dmon's line for every GPU."""
    for gpu in snapshot.gpus:
        yield f"{gpu_index(gpu):>5}{device_cells(gpu, shown)}"


def device_cells(gpu: Gpu, shown: Sequence[ScrollColumn]) -> str:
    """Return the cells of dmon's line for one GPU, without its index."""
    return "".join(f"{column.text(gpu):>7}" for column in shown) + " "


def process_header(shown: Sequence[ScrollColumn]) -> list[str]:
    """Return pmon's two lines of titles."""
    titles = "".join(f"{column.title:>7}" for column in shown)
    units = "".join(f"{column.unit:>7}" for column in shown)
    return [f"# gpu         pid   type{titles}    command ", f"# Idx           #    C/G{units}    name "]


def process_rows(snapshot: Snapshot, shown: Sequence[ScrollColumn]) -> Iterator[str]:
    """Return pmon's line for every process, and a line of dashes for a GPU without any."""
    for gpu in snapshot.gpus:
        for cells in process_cells(gpu, shown):
            yield f"{gpu_index(gpu):>5}{cells}"


def process_cells(gpu: Gpu, shown: Sequence[ScrollColumn]) -> Iterator[str]:
    """Return the cells of pmon's lines for one GPU, without its index."""
    processes = [*gpu.all_processes()]
    for process in processes:
        name = clean(process.name or "-")
        yield (
            f"{_number(process, Process.pid.key):>11}{clean(process.type or '-'):>6}"
            + "".join(f"{_text(column, gpu, process):>7}" for column in shown)
            + f"    {name:<15}"
        )
    if not processes:
        yield f"{'-':>11}{'-':>6}" + "".join(f"{'-':>7}" for _ in shown) + f"    {'-':<15}"


def _text(column: ScrollColumn, gpu: Gpu, process: Process) -> str:
    """Return a process's value; of one that only the GPU has, no more can be said than that nobody uses any."""
    if column.key not in GPU_ONLY:
        return column.text(process)
    return "0" if gpu.get(column.key) == 0 else "-"


def gpu_index(gpu: Gpu) -> str:
    """Return the index of a GPU, a dash where it has none."""
    return _number(gpu, Gpu.index.key)


def _number(reading: Reading, key: str) -> str:
    value = reading.get(key)
    return f"{value:.0f}" if isinstance(value, (int, float)) else "-"
