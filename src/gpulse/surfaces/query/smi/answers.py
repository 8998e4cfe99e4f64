"""From a request to the view that answers it, and to the GPUs it is about."""

from __future__ import annotations

from ....errors import UnknownGpu, UsageError
from ....model.select import Wanted, choose_gpus
from ....present.text import clean
from ..views import ListingView, View
from . import failure
from .table import SmiTable, version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot
    from ..field import Field
    from .grammar import SmiRequest


def view_of(request: SmiRequest) -> View:
    """Return the view for a request without a subcommand; raise SmiExit as nvidia-smi would end."""
    if "--version" in request:
        return Version()
    if "--list-gpus" in request:
        return ListingView()
    if "--list-excluded-gpus" in request:
        return Excluded()
    if request.query:
        return _query(request)
    if "--query" in request:
        return Units() if "--unit" in request else _log(request)
    return SmiTable()


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
    from ..lists import KEYS, ListCsv
    from ..views import Csv

    names = [name.strip() for name in request.given[request.query].split(",")]
    known = query_fields(request.query)
    asked = [(name, _field(name, known)) for name in names if name]
    parts = [part.strip() for part in (request.get("--format") or "csv").split(",") if part.strip()]
    if any(part not in ("csv", "noheader", "nounits") for part in parts):
        raise failure.SmiExit("Format modifier is not recognized.", failure.INVALID)
    header, units = "noheader" not in parts, "nounits" not in parts
    if request.query in KEYS:
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
    return log.Log(sections, xml="--xml-format" in request, embed="--dtd" in request)


class Version(View):
    """nvidia-smi --version."""

    wanted = Wanted()

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        driver, own = snapshot.driver, version(snapshot.driver)
        rows = (
            ("NVIDIA-SMI version", own),
            ("NVML version", ".".join(own.split(".")[:2])),
            ("DRIVER version", clean(driver.get("version", "")) or "N/A"),
            ("CUDA Version", clean(driver.get("cuda", "")) or "N/A"),
        )
        return [f"{label:<20}: {text}" for label, text in rows]


class Excluded(View):
    """nvidia-smi -B: GPUs that the driver was told to leave alone; it lists none of those to NVML clients."""

    wanted = Wanted()

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        return ["No excluded devices found."]


class Units(View):
    """nvidia-smi -q -u: S-class units, which no machine of the last ten years has."""

    wanted = Wanted()

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        from ..log_text import header

        rows = [(label, text) for label, text in header(snapshot)]
        lines = ["", "==============NVSMI LOG==============", ""]
        lines += [f"{label:<55}: {text}" for label, text in rows]
        return [*lines, "", f"{'HIC Info':<55}: N/A", f"{'Attached Units':<55}: 0", ""]
