"""The long log: nvidia-smi -q [-d SECTIONS] [-x], as text and as XML."""

from __future__ import annotations

import time

from ...errors import UsageError
from ...model.catalog import GPU_METRICS
from ...model.select import Wanted, did_you_mean
from ...present.text import clean
from .field import QueryRow
from .fields import field_named
from .log_line import NOTHING, PROCESSES, plain
from .log_table import TABLE
from .views import View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .log_line import LogEntry, ValueOf

SECTIONS = (
    "MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE",
    "SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "SUPPORTED_GPU_TARGET_TEMP", "VOLTAGE",
    "FBC_STATS", "ROW_REMAPPER", "GSP_FIRMWARE_VERSION", "POWER_SMOOTHING", "POWER_PROFILES",
)  # fmt: skip
PROCESS_KEYS = frozenset({"pid", "type", "name", "command", "memory_used"})
_COLON = 55
_XML_HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n<nvidia_smi_log>'


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
    return any(entry.records is PROCESSES and entry.chosen(sections, xml=True) for entry in TABLE)


class Log(View):
    """The log of some sections, or with none the whole; as text or as XML."""

    def __init__(self, sections: tuple[str, ...] = (), *, xml: bool = False) -> None:
        self._sections = sections
        self._xml = xml
        names = log_keys(sections)
        self._fields = {name: field_named(name) for name in names}
        keys = {field.key for field in self._fields.values() if field.key} | (names & GPU_METRICS.keys())
        self.wanted = Wanted({"index", "uuid", *keys}, PROCESS_KEYS if shows_processes(sections) else None)

    def lines(self, snapshot: Snapshot) -> list[str]:
        def value(gpu: Gpu, name: str) -> str:
            return self._fields[name].text(QueryRow(snapshot, gpu))

        if self._xml:
            return log_xml(snapshot, value, self._sections).split("\n")[:-1]
        return log_text(snapshot, value, self._sections)


def header(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return what stands above the GPUs: when, which driver, which CUDA."""
    return [
        ("Timestamp", time.asctime(time.localtime(snapshot.time))),
        ("Driver Version", clean(snapshot.driver.get("version", "")) or NOTHING),
        ("CUDA Version", clean(snapshot.driver.get("cuda", "")) or NOTHING),
    ]


def _attached(snapshot: Snapshot, value: ValueOf) -> str:
    """Return how many GPUs the machine has, which can be more than are shown."""
    count = value(snapshot.gpus[0], "count") if snapshot.gpus else ""
    return count if count.isdecimal() else str(len(snapshot.gpus))


def log_head(snapshot: Snapshot) -> list[str]:
    """Return the first lines of a log as text."""
    return ["", "==============NVSMI LOG==============", "", *(text_line(0, *pair) for pair in header(snapshot)), ""]


def log_text(snapshot: Snapshot, value: ValueOf, sections: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of a log; no sections means the whole of it."""
    lines = [*log_head(snapshot), text_line(0, "Attached GPUs", _attached(snapshot, value))]
    shown = [entry for entry in TABLE if entry.chosen(sections, xml=False)]
    for gpu in snapshot.gpus:
        lines += [f"GPU {plain(value(gpu, 'pci.bus_id'))[0]}", *_texts(shown, gpu, value, 1), ""]
    return lines if snapshot.gpus else [*lines, ""]


def text_line(depth: int, label: str, text: str, colon: int = _COLON) -> str:
    """Return one line of a log as text."""
    return f"{'    ' * depth + label:<{colon}}: {text}"


def _texts(entries: Iterable[LogEntry], gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    for entry in entries:
        if not entry.label or not entry.fits(gpu):
            continue
        text = entry.text(gpu, value)
        if text is not None:
            yield text_line(depth + entry.deeper, entry.label, text)
            continue
        for part in gpu.instances if entry.instances else (gpu,):
            yield "    " * depth + entry.label
            yield from _texts(entry.entries, part, value, depth + 1)
        if (records := entry.records) is not None:
            for record in records.rows(gpu):
                for (deeper, label, _), text in record:
                    yield text_line(depth + 1 + deeper, label, text, records.colon)


def log_xml(snapshot: Snapshot, value: ValueOf, sections: tuple[str, ...] = ()) -> str:
    """Return the document; no sections means the whole of it.

    Plain ASCII, so that no terminal's encoding can break it.
    """
    lines = [_XML_HEAD, *(_element(1, label.lower().replace(" ", "_"), text) for label, text in header(snapshot))]
    lines.append(_element(1, "attached_gpus", _attached(snapshot, value)))
    shown = [entry for entry in TABLE if entry.chosen(sections, xml=True)]
    for gpu in snapshot.gpus:
        lines.append(f'\t<gpu id="{_escaped(plain(value(gpu, "pci.bus_id"))[0])}">')
        lines += [*_elements(shown, gpu, value, 2), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>\n"])


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _element(depth: int, tag: str, text: str) -> str:
    tabs = "\t" * depth
    return f"{tabs}<{tag}>{_escaped(text)}</{tag}>"


def _block(depth: int, tag: str, lines: Iterable[str]) -> Iterator[str]:
    tabs = "\t" * depth
    yield f"{tabs}<{tag}>"
    yield from lines
    yield f"{tabs}</{tag}>"


def _elements(entries: Iterable[LogEntry], gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    for entry in entries:
        if not entry.tag or not entry.fits(gpu):
            continue
        text = entry.text(gpu, value)
        if text is None or (entry.lists and text == "None"):
            yield from _block(depth, entry.tag, _inside(entry, gpu, value, depth + 1))
        else:
            yield _element(depth, entry.tag, text.removeprefix("0x") if entry.bare else text)


def _inside(entry: LogEntry, gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    if entry.records is not None:
        for record in entry.records.rows(gpu):
            yield from _block(depth, entry.records.tag, [_element(depth + 1, tag, text) for (*_, tag), text in record])
    elif not entry.instances:
        yield from _elements(entry.entries, gpu, value, depth)
    elif not gpu.instances:
        yield "\t" * depth + "None"
    else:
        for part in gpu.instances:  # at the depth of the list itself: so does nvidia-smi
            yield from _block(depth - 1, "mig_device", _elements(entry.entries, part, value, depth))
