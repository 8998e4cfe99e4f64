"""From a request to the view that answers it, and to the GPUs it is about; nvidia-smi's bare table, to the character."""

from __future__ import annotations

import time

from ....errors import UnknownGpu, UsageError
from ....model.catalog import Gpu
from ....model.select import Wanted, choose_gpus
from ....present.text import clean
from ..field import enabled, mib, pstate, switch
from ..log_line import process_rows
from ..views import LinesView, ListingView, View
from . import failure
from .grammar import scroll_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ....model.snapshot import Snapshot
    from ..field import Field
    from .grammar import SmiRequest


def view_of(request: SmiRequest) -> View:
    """Return the view for a request without a subcommand; raise SmiExit as nvidia-smi would end."""
    view = _view(request)
    view.ids, view.interval, view.filename = request.ids, request.interval, request.get("--filename")
    return view


def view_of_command(command: str, words: Sequence[str]) -> View:
    """Return the view for a subcommand; raise SmiExit as nvidia-smi would end."""
    if command in ("dmon", "pmon"):
        return scroll_view(command, words)
    if command in ("topo", "nvlink"):
        from .topology import LinkView, Topology

        return Topology(words) if command == "topo" else LinkView(words)
    from .mig import MigLists

    return MigLists(words)


def _view(request: SmiRequest) -> View:
    if "--version" in request:
        return LinesView(_version_lines)
    if "--list-gpus" in request:
        return ListingView()
    if "--list-excluded-gpus" in request:
        return LinesView(lambda _: ["No excluded devices found."])  # the driver lists none of them to NVML clients
    if request.query:
        return _query(request)
    if "--query" in request:
        return LinesView(_unit_lines) if "--unit" in request else _log(request)
    return LinesView(_table, Wanted(_KEYS, {"pid", "type", "name", "command", "memory_used"}))


def gpus_named(gpus: Sequence[Gpu], words: Sequence[str]) -> list[str]:
    """Return those words after -i that name a GPU, by index, serial, UUID or bus id; raise SmiExit when none does."""
    found = []
    for word in words:
        index = next((gpu.index for gpu in gpus if gpu.serial and gpu.serial == word), None)
        name = word if index is None else f"{index:.0f}"
        try:
            choose_gpus(gpus, [name], {})
        except UnknownGpu:
            continue
        found.append(name)
    if not found:
        raise failure.no_devices()
    return found


def _query(request: SmiRequest) -> View:
    from ..fields import query_fields
    from ..scroll import LISTS, ListCsv
    from ..views import Csv

    names = [name.strip() for name in request.given[request.query].split(",")]
    known = query_fields(request.query)
    asked = [(name, _field(name, known)) for name in names if name]
    parts = [part.strip() for part in (request.get("--format") or "csv").split(",") if part.strip()]
    if any(part not in ("csv", "noheader", "nounits") for part in parts):
        raise failure.SmiExit("Format modifier is not recognized.", failure.INVALID)
    header, units = "noheader" not in parts, "nounits" not in parts
    if request.query in LISTS:
        return ListCsv(request.query, asked, header=header, units=units)
    return Csv(asked, header=header, units=units, apps=request.query == "--query-compute-apps")


def _field(name: str, known: Mapping[str, Field]) -> Field:
    if name.lower() not in known:
        raise failure.SmiExit(f'Field "{clean(name)}" is not a valid field to query.\n', failure.INVALID)
    return known[name.lower()]


def _log(request: SmiRequest) -> View:
    from .. import log

    text = request.get("--display")
    try:
        sections = log.parse_sections(text) if text is not None else ()
    except UsageError:
        raise failure.SmiExit("Failed to parse --display/-d flags", failure.INVALID) from None
    return log.Log(sections, xml="--xml-format" in request)


def _version_lines(snapshot: Snapshot) -> list[str]:
    driver, own = snapshot.driver, version(snapshot.driver)
    rows = (
        ("NVIDIA-SMI version", own),
        ("NVML version", ".".join(own.split(".")[:2])),
        ("DRIVER version", clean(driver.get("version", "")) or "N/A"),
        ("CUDA Version", clean(driver.get("cuda", "")) or "N/A"),
    )
    return [f"{label:<20}: {text}" for label, text in rows]


def _unit_lines(snapshot: Snapshot) -> list[str]:
    """Return the S-class units of -q -u, which no machine of the last ten years has."""
    from ..log import log_head, text_line

    return [*log_head(snapshot), text_line(0, "HIC Info", "N/A"), text_line(0, "Attached Units", "0"), ""]


_NAME, _PROCESS_NAME = 27, 38  # longest names that are not cut
_WIDE = f"+{'-' * 89}+"
_THREE = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"
_FOUR = f"+{'-' * 18}+{'-' * 34}+{'-' * 11}+{'-' * 23}+"
_TITLES = (
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
    "|                                         |                        |               MIG M. |",
    _THREE.replace("-", "=").replace("+", "|", 1)[:-1] + "|",
)
_INSTANCE_TITLES = (
    _WIDE,
    f"| {'MIG devices:':<88}|",
    _FOUR,
    "| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |",
    "|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |",
    "|                  |                                  |        ECC|                       |",
    _FOUR.replace("-", "=").replace("+", "|", 1)[:-1] + "|",
)
_PROCESS_TITLES = (
    _WIDE,
    f"| {'Processes:':<88}|",
    "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |",
    "|        ID   ID                                                               Usage      |",
    f"|{'=' * 89}|",
)
_COMPUTE_MODES = {"exclusive_process": "E. Process", "exclusive_thread": "E. Thread"}
_on_or_off = switch("On", "Off")
_SHARED = ("mig_copy_engines", "mig_encoders", "mig_decoders", "mig_ofas", "mig_jpegs")
_KEYS = frozenset({
    "index", "uuid", "name", "pci_bus_id", "persistence_mode", "display_active", "fan_speed", "temperature", "pstate",
    "power_draw", "power_limit", "memory_used", "memory_total", "ecc_mode", "ecc_uncorrected", "utilization",
    "compute_mode", "mig_mode", "bar1_used", "bar1_total", "mig_multiprocessors", *_SHARED,
})  # fmt: skip


def _table(snapshot: Snapshot) -> list[str]:
    """Return the table that nvidia-smi prints without arguments."""
    lines = [f"{time.asctime(time.localtime(snapshot.time)):<31}", _WIDE, _versions(snapshot.driver), _THREE, *_TITLES]
    for gpu in snapshot.gpus:
        lines += [*_gpu(gpu), _THREE]
    lines.append("")
    if any(gpu.mig_mode for gpu in snapshot.gpus):
        lines += [*_INSTANCE_TITLES, *_instances(snapshot), ""]
    return [*lines, *_PROCESS_TITLES, *_processes(snapshot), _WIDE]


def version(driver: Mapping[str, str]) -> str:
    """Return the version nvidia-smi would have: that of its NVML library, or of the driver."""
    nvml = driver.get("nvml", "")
    return clean(nvml.partition(".")[2] if nvml.count(".") > 1 else driver.get("version", "")) or "N/A"


def _versions(driver: Mapping[str, str]) -> str:
    kernel, cuda = (clean(driver.get(name, "")) or "N/A" for name in ("version", "cuda"))
    return f"| NVIDIA-SMI {version(driver):<22} Driver Version: {kernel:<14} CUDA Version: {cuda:<8} |"


def _gpu(gpu: Gpu) -> Iterator[str]:
    name, divided = clean(gpu.name or "Unknown"), bool(gpu.mig_mode)
    name = name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."
    persistence, display = (_shown(gpu, key, _on_or_off) for key in ("persistence_mode", "display_active"))
    bus = clean(gpu.pci_bus_id or "N/A")
    errors = "On" if divided and gpu.ecc_mode else "Off" if gpu.ecc_mode is False else _whole(gpu, "ecc_uncorrected")
    yield f"| {_whole(gpu, 'index'):>3}  {name:<30} {persistence:<4}|   {bus:<16} {display:<4}| {errors:>20} |"
    memory = f"{_mebibytes(gpu, 'memory_used'):>11} / {_mebibytes(gpu, 'memory_total'):>9}"
    if gpu.memory_used is None and gpu.memory_total is None:
        memory = f"{_missing(gpu, 'memory_used'):>21}  "
    power = f"{_whole(gpu, 'power_draw', 'W'):>15} / {_whole(gpu, 'power_limit', 'W'):>5}"
    heat = (
        f"{_whole(gpu, 'fan_speed', '%'):>4}{_whole(gpu, 'temperature', 'C'):>6}  {_shown(gpu, 'pstate', pstate):>4} "
    )
    use = "N/A" if divided else _whole(gpu, "utilization", "%")
    yield f"|{heat}{power} |{memory} |{use:>8}{_shown(gpu, 'compute_mode', _mode):>13} |"
    mig = _shown(gpu, "mig_mode", enabled)
    yield f"|{'':41}|{'':24}|{mig:>21} |"


def _instances(snapshot: Snapshot) -> Iterator[str]:
    found = False
    for gpu in snapshot.gpus:
        for part in gpu.instances:
            found = True
            place = f"{_whole(gpu, 'index'):>3}{_whole(part, 'gpu_instance'):>5}{_whole(part, 'compute_instance'):>4}"
            memory = f"{_mebibytes(part, 'memory_used'):>19} / {_mebibytes(part, 'memory_total'):>8}    "
            work = f"{_whole(part, 'mig_multiprocessors'):>3}{_whole(part, 'ecc_uncorrected'):>7} "
            engines = "".join(
                f"{_whole(part, key):>{room}}" for key, room in zip(_SHARED, (3, 4, 5, 5, 5), strict=True)
            )
            yield f"|{place}{_whole(part, 'index'):>4}  |{memory}|{work}|{engines} |"
            window = f"{_mebibytes(part, 'bar1_used'):>21} / {_mebibytes(part, 'bar1_total'):>8}  "
            yield f"|{'':18}|{window}|{'':11}|{'':23}|"
            yield _FOUR
    if not found:
        yield f"|  {'No MIG devices found':<87}|"
        yield _WIDE


def _processes(snapshot: Snapshot) -> Iterator[str]:
    found = False
    for gpu in snapshot.gpus:
        for gpu_instance, compute_instance, pid, kind, name, memory in process_rows(gpu):
            found = True
            short = name if len(name) <= _PROCESS_NAME else f"...{name[3 - _PROCESS_NAME :]}"
            yield (
                f"|{_whole(gpu, 'index'):>5}{gpu_instance:>6}{compute_instance:>5}{pid:>16}{kind:>7}"
                f"   {short:<{_PROCESS_NAME}}{memory.replace(' ', ''):>8} |"
            )
    if not found:
        yield f"|  {'No running processes found':<87}|"


def _missing(gpu: Gpu, key: str) -> str:
    return "ERR!" if gpu.gap(key) in ("lost", "failed", "timeout") else "N/A"


def _shown(gpu: Gpu, key: str, form: Callable[[Any], str]) -> str:
    return _missing(gpu, key) if (value := gpu.get(key)) is None else form(value)


def _whole(gpu: Gpu, key: str, unit: str = "") -> str:
    """Write a number without its fraction, which is cut, not rounded."""
    return _shown(gpu, key, lambda value: f"{int(value)}{unit}")


def _mebibytes(gpu: Gpu, key: str) -> str:
    return _shown(gpu, key, lambda value: f"{mib(value)}MiB")


def _mode(word: str) -> str:
    return _COMPUTE_MODES.get(word, clean(word.capitalize()))
