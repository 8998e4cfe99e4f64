"""A document type for the XML log, made from its table: every element, and what may stand in it."""

from __future__ import annotations

from .log_line import Clocks, Group, Instances, Processes
from .log_table import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .log_line import LogEntry

NAME = "nvsmi_device_v13.dtd"
_PROCESS = ("gpu_instance_id", "compute_instance_id", "pid", "type", "process_name", "used_memory")
_TOP = ("timestamp", "driver_version", "cuda_version", "attached_gpus", "gpu")


def dtd() -> list[str]:
    """Return the lines of the document type; an element that can hold a reason instead of others allows both."""
    contents: dict[str, dict[str, None]] = {
        "nvidia_smi_log": dict.fromkeys(_TOP),
        "gpu": dict.fromkeys(entry.tag for entry in TABLE if entry.tag),
        **{tag: {} for tag in _TOP[:-1]},
    }
    for tag, children in _elements(TABLE):
        contents.setdefault(tag, {}).update(dict.fromkeys(children))
    lines = [f"<!-- {NAME} -->"]
    lines += [f"<!ELEMENT {tag} {_content(children)}>" for tag, children in contents.items()]
    return [*lines, "<!ATTLIST gpu id CDATA #REQUIRED>"]


def _content(children: Iterable[str]) -> str:
    inside = "".join(f" | {child}" for child in children)
    return f"(#PCDATA{inside})*" if inside else "(#PCDATA)"


def _elements(entries: Iterable[LogEntry]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for entry in entries:
        if not entry.tag:
            continue
        if isinstance(entry, Instances):
            yield entry.tag, ("mig_device",)
            yield "mig_device", tuple(each.tag for each in entry.entries)
            yield from _elements(entry.entries)
        elif isinstance(entry, Group):
            yield entry.tag, tuple(each.tag for each in entry.entries if each.tag)
            yield from _elements(entry.entries)
        elif isinstance(entry, Clocks):
            yield entry.tag, ("supported_mem_clock",)
            yield "supported_mem_clock", ("value", "supported_graphics_clock")
            yield from (("value", ()), ("supported_graphics_clock", ()))
        elif isinstance(entry, Processes):
            yield entry.tag, ("process_info",)
            yield "process_info", _PROCESS
            yield from ((tag, ()) for tag in _PROCESS)
        else:
            yield entry.tag, ()
