"""The long log: nvidia-smi -q [-d SECTIONS] [-x], as text and as XML."""

from __future__ import annotations

from ...errors import UsageError
from ...model.catalog import GPU_METRICS
from ...model.select import Wanted, did_you_mean
from .field import QueryRow
from .fields import field_named
from .log_line import Processes
from .log_table import TABLE
from .log_text import log_text
from .log_xml import log_xml
from .views import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot

SECTIONS = (
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE",
    "SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "SUPPORTED_GPU_TARGET_TEMP", "VOLTAGE",
    "FBC_STATS", "ROW_REMAPPER", "GSP_FIRMWARE_VERSION", "POWER_SMOOTHING", "POWER_PROFILES",
)  # fmt: skip
PROCESS_KEYS = frozenset({"pid", "type", "name", "command", "memory_used"})


def parse_sections(text: str) -> tuple[str, ...]:
    """Parse the list after -d; raise UsageError naming an unknown section."""
    words = [word.strip().upper() for word in text.split(",") if word.strip()]
    known = f"the sections are {', '.join(SECTIONS)}."
    if not words:
        raise UsageError("-d needs at least one section", known)
    for word in words:
        if word not in SECTIONS:
            raise UsageError(f"-d: unknown section {word!r}{did_you_mean(word, SECTIONS)}", known)
    return tuple(dict.fromkeys(words))


def log_keys(sections: tuple[str, ...] = ()) -> set[str]:
    """Return the nvidia-smi fields and catalog keys a log of these sections takes."""
    chosen = (entry for entry in TABLE if entry.chosen(sections, xml=True))
    return {"count", "pci.bus_id", *(name for entry in chosen for name in entry.names())}


def shows_processes(sections: tuple[str, ...] = ()) -> bool:
    """Tell whether a log of these sections lists processes, each with PROCESS_KEYS."""
    return any(isinstance(entry, Processes) and entry.chosen(sections, xml=True) for entry in TABLE)


class Log(View):
    """The log of some sections, or with none the whole; as text or as XML, which can `embed` its document type."""

    def __init__(self, sections: tuple[str, ...] = (), *, xml: bool = False, embed: bool = False) -> None:
        self._sections = sections
        self._embed = embed
        self._xml = xml
        names = log_keys(sections)
        self._fields = {name: field_named(name) for name in names}
        keys = {field.key for field in self._fields.values() if field.key} | (names & GPU_METRICS.keys())
        self.wanted = Wanted({"index", "uuid", *keys}, PROCESS_KEYS if shows_processes(sections) else None)

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""

        def value(gpu: Gpu, name: str) -> str:
            return self._fields[name].text(QueryRow(snapshot, gpu))

        if self._xml:
            return log_xml(snapshot, value, self._sections, embed=self._embed).split("\n")[:-1]
        return log_text(snapshot, value, self._sections)
