"""The log as XML: nvidia-smi -q -x."""

from __future__ import annotations

from .log_dtd import NAME, dtd
from .log_line import Clocks, Group, Instances, LogLine, Processes, plain
from .log_table import TABLE
from .log_text import attached, header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...model.catalog import Gpu
    from ...model.snapshot import Snapshot
    from .log_line import LogEntry, ValueOf

_HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log {}>\n<nvidia_smi_log>'
TAB = "\t"
_PROCESS_TAGS = ("gpu_instance_id", "compute_instance_id", "pid", "type", "process_name", "used_memory")


def log_xml(snapshot: Snapshot, value: ValueOf, sections: tuple[str, ...] = (), *, embed: bool = False) -> str:
    """Return the document; no sections means the whole of it, `embed` puts its type into it.

    Plain ASCII, so that no terminal's encoding can break it.
    """
    lines = [_HEAD.format("[\n" + "\n".join(dtd()) + "\n]" if embed else f'SYSTEM "{NAME}"')]
    lines += [_line(1, label.lower().replace(" ", "_"), text) for label, text in header(snapshot)]
    lines.append(_line(1, "attached_gpus", attached(snapshot, value)))
    shown = [entry for entry in TABLE if entry.chosen(sections, xml=True)]
    for gpu in snapshot.gpus:
        lines.append(f'\t<gpu id="{_escaped(plain(value(gpu, "pci.bus_id"))[0])}">')
        lines += [*_entries(shown, gpu, value, 2), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>\n"])


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _line(depth: int, tag: str, text: str) -> str:
    return f"{TAB * depth}<{tag}>{_escaped(text)}</{tag}>"


def _block(depth: int, tag: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{TAB * depth}<{tag}>"
    yield from lines
    yield f"{TAB * depth}</{tag}>"


def _entries(entries: Iterable[LogEntry], gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    for entry in entries:
        if not entry.tag or not entry.fits(gpu):
            continue
        if isinstance(entry, LogLine):
            yield from _value(entry, gpu, value, depth)
        elif isinstance(entry, Instances):
            yield from _block(depth, entry.tag, _instances(entry, gpu, value, depth))
        elif isinstance(entry, Group):
            yield from _group(entry, gpu, value, depth)
        elif isinstance(entry, Clocks):
            yield from _clocks(entry, gpu, depth)
        elif isinstance(entry, Processes):
            yield from _block(depth, entry.tag, _processes(entry, gpu, depth + 1))


def _value(line: LogLine, gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    text, _ = line.read(gpu, value)
    if line.lists and text == "None":
        yield from _block(depth, line.tag, ())
    else:
        yield _line(depth, line.tag, text.removeprefix("0x") if line.bare else text)


def _group(group: Group, gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    reason = group.folded(gpu, value)
    if reason is None:
        yield from _block(depth, group.tag, _entries(group.entries, gpu, value, depth + 1))
    else:
        yield _line(depth, group.tag, reason)


def _instances(entry: Instances, gpu: Gpu, value: ValueOf, depth: int) -> Iterator[str]:
    if not gpu.instances:
        yield TAB * (depth + 1) + "None"
    for part in gpu.instances:  # at the depth of the list itself: so does nvidia-smi
        yield from _block(depth, "mig_device", _entries(entry.entries, part, value, depth + 1))


def _clocks(entry: Clocks, gpu: Gpu, depth: int) -> Iterator[str]:
    rows = entry.rows(gpu)
    if not rows:
        yield _line(depth, entry.tag, entry.reason(gpu))
        return
    yield f"{TAB * depth}<{entry.tag}>"
    for memory, graphics in rows:
        inner = [_line(depth + 2, "value", memory)]
        inner += [_line(depth + 2, "supported_graphics_clock", clock) for clock in graphics]
        yield from _block(depth + 1, "supported_mem_clock", inner)
    yield f"{TAB * depth}</{entry.tag}>"


def _processes(entry: Processes, gpu: Gpu, depth: int) -> Iterator[str]:
    for row in entry.rows(gpu):
        pairs = zip(_PROCESS_TAGS, row, strict=True)
        yield from _block(depth, "process_info", [_line(depth + 1, tag, text) for tag, text in pairs])
