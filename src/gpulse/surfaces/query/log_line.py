"""What stands in a log: lines with a value, groups of them, and the lists of a GPU."""

from __future__ import annotations

from ...present.text import clean
from ...value import Value
from .field import mib, missing_text, program, whole_or

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from ...model.catalog import Gpu, Process

    ValueOf: TypeAlias = Callable[[Gpu, str], str]
    Record: TypeAlias = "list[tuple[tuple[int, str, str], str]]"

NOTHING = "N/A"
_GENERATIONS = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell")


class LogEntry(Value):
    """A line with a value, a group of entries, or a list of records: `label` in the text, `tag` in the XML; without one it is left out.

    `section` is the word after -d that shows it, beside the whole log; `asked` keeps it out of the whole text. `since` and `before`
    name the generation of chips from which, or up to which, nvidia-smi writes it.

    The value of a line is that of an nvidia-smi `field`, made over by `form`; or that of catalog `keys`, written by `form`; or always
    `missing`. `needs` is a field without which it means nothing. `deeper` indents the text, not the XML, one step more. `bare` leaves
    0x out of the XML. `lists`: None is an empty list, an empty element there.

    A group with `folds` is one line with the reason if the first of its entries has no value; with `instances` its entries are written
    once for each MIG instance.
    """

    label: str
    tag: str
    field: str = ""
    form: Callable[..., str] | None = None
    keys: tuple[str, ...] = ()
    missing: str = NOTHING
    needs: str = ""
    deeper: bool = False
    bare: bool = False
    lists: bool = False
    entries: tuple[LogEntry, ...] = ()
    folds: bool = False
    instances: bool = False
    records: Records | None = None
    section: str = ""
    asked: bool = False
    since: str = ""
    before: str = ""

    def chosen(self, sections: tuple[str, ...], xml: bool) -> bool:
        """Tell whether it belongs into the log of these sections; none means the whole log."""
        return self.section in sections if sections else xml or not self.asked

    def fits(self, gpu: Gpu) -> bool:
        """Tell whether it is written for this generation of chips; an unknown one counts as new."""
        if not self.since and not self.before:
            return True
        known = gpu.architecture in _GENERATIONS
        at = _GENERATIONS.index(gpu.architecture or "") if known else len(_GENERATIONS)
        if self.before and at >= _GENERATIONS.index(self.before):
            return False
        return not self.since or at >= _GENERATIONS.index(self.since)

    def names(self) -> Iterator[str]:
        """Yield the nvidia-smi fields and catalog keys it takes."""
        if self.since or self.before:
            yield "architecture"
        yield from filter(None, (self.field, self.needs, *self.keys))
        for entry in self.entries:
            yield from entry.names()

    def text(self, gpu: Gpu, value: ValueOf) -> str | None:
        """Return the text of one line; None for what has entries or records below it."""
        if self.records is not None:
            if self.records.rows(gpu):
                return None
            return plain(missing_text(gpu.gap(self.keys[0])))[0] if self.keys else "None"
        if not self.entries:
            return self.read(gpu, value)[0]
        reason, there = self.entries[0].read(gpu, value) if self.folds else ("", True)
        return None if there else reason

    def read(self, gpu: Gpu, value: ValueOf) -> tuple[str, bool]:
        """Return the text of the value of a line and whether there is one."""
        if self.needs:
            reason, needed = plain(value(gpu, self.needs))
            if not needed:
                return reason, False
        if self.keys:
            found = [gpu.get(key) for key in self.keys]
            if None in found:
                return plain(missing_text(gpu.gap(self.keys[found.index(None)]), self.missing))
            return clean((self.form or str)(*found)), True
        if not self.field:
            return self.missing, False
        text, there = plain(value(gpu, self.field))
        return (self.form(text), True) if there and self.form else (text, there)


class Records(Value):
    """A list that a GPU has: the tag around each record; `columns` are the depth, label and tag of its values; the place of the colon."""

    tag: str
    columns: tuple[tuple[int, str, str], ...]
    rows: Callable[[Gpu], list[Record]]
    colon: int = 55


def plain(text: str) -> tuple[str, bool]:
    """Return a value of a query as a log writes it, reasons without their brackets, and whether it is a value at all."""
    if text.startswith("[") and text.endswith("]"):
        return clean(text[1:-1]), False
    return (NOTHING, False) if text in ("", NOTHING) else (clean(text), True)


def process_rows(gpu: Gpu) -> list[tuple[str, ...]]:
    """Return GPU instance, compute instance, pid, type, name and memory of the processes, in the order of the pids."""
    homes = [(gpu, NOTHING, NOTHING)]
    homes += [(part, whole_or(part.gpu_instance), whole_or(part.compute_instance)) for part in gpu.instances]
    return [
        (gpu_instance, compute_instance, *_process(process))
        for home, gpu_instance, compute_instance in homes
        for process in sorted(home.processes, key=lambda each: each.pid or 0)
    ]


def _process(process: Process) -> tuple[str, str, str, str]:
    name, used = program(process.command) if process.command else process.name, process.memory_used
    return (
        whole_or(process.pid),
        _kind(process.type or NOTHING),
        plain(missing_text(process.gap("name"), "[Not Found]"))[0] if name is None else clean(name),
        plain(missing_text(process.gap("memory_used")))[0] if used is None else f"{mib(used)} MiB",
    )


def _kind(letters: str) -> str:
    """Write how a process uses the GPU: MPS stands first and is computing too."""
    parts = set(letters.split("+"))
    if not parts <= set("MCG"):
        return clean(letters)
    return "+".join(letter for letter in "MCG" if letter in parts or (letter == "C" and "M" in parts))


def _supported_clocks(gpu: Gpu) -> list[Record]:
    """Return each memory clock with the graphics clocks it can run with; nothing if the GPU does not say."""
    memory, graphics = CLOCKS.columns
    pairs = [clean(word).partition(":") for word in gpu.clocks_supported or ()]
    return [
        [(memory, f"{first} MHz"), *((graphics, f"{clock} MHz") for clock in rest.split(",") if clock)]
        for first, _, rest in pairs
    ]


CLOCKS = Records(
    "supported_mem_clock", ((0, "Memory", "value"), (1, "Graphics", "supported_graphics_clock")), _supported_clocks
)
_PROCESS_COLUMNS = (
    (0, "GPU instance ID", "gpu_instance_id"),
    (0, "Compute instance ID", "compute_instance_id"),
    (0, "Process ID", "pid"),
    (1, "Type", "type"),
    (1, "Name", "process_name"),
    (1, "Used GPU Memory", "used_memory"),
)
PROCESSES = Records(
    "process_info",
    _PROCESS_COLUMNS,
    lambda gpu: [[*zip(_PROCESS_COLUMNS, row, strict=True)] for row in process_rows(gpu)],
    colon=42,
)
