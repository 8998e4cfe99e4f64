"""What stands in a log: lines with a value, groups of them, and the lists of a GPU."""

from __future__ import annotations

from ...present.text import clean
from .field import mib, missing_text, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from ...model.catalog import Gpu, Process

    ValueOf: TypeAlias = Callable[[Gpu, str], str]

NOTHING = "N/A"
_GENERATIONS = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell")


class LogEntry:
    """Anything with a place: `label` in the text, `tag` in the XML; an empty one leaves it out there.

    `sections` are the words after -d that show it, beside the whole log; `asked` keeps it out of the whole text.
    `since` and `before` name the generation of chips from which, or up to which, nvidia-smi writes it.
    """

    __slots__ = ("asked", "before", "label", "sections", "since", "tag")

    def __init__(
        self, label: str, tag: str, *, sections: str = "", asked: bool = False, since: str = "", before: str = ""
    ) -> None:
        self.label = label
        self.tag = tag
        self.sections = frozenset(sections.split())
        self.asked = asked
        self.since = since
        self.before = before

    def chosen(self, sections: tuple[str, ...], xml: bool) -> bool:
        """Tell whether it belongs into the log of these sections; none means the whole log."""
        if sections:
            return not self.sections.isdisjoint(sections)
        return xml or not self.asked

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
        """Walk the nvidia-smi fields and catalog keys it takes."""
        if self.since or self.before:
            yield "architecture"


class LogLine(LogEntry):
    """One value: of an nvidia-smi field, made over by `form`; or of the catalog `keys`, written by `form`; or always `missing`.

    `needs` is a field without which the value means nothing. `deeper` sets the text, not the XML, one step in.
    `bare` leaves 0x out of the XML. `lists`: None is an empty list, which has tags around nothing there.
    """

    __slots__ = ("bare", "deeper", "field", "form", "keys", "lists", "missing", "needs")

    def __init__(
        self,
        label: str,
        tag: str,
        field: str = "",
        form: Callable[..., str] | None = None,
        *,
        keys: tuple[str, ...] = (),
        missing: str = NOTHING,
        needs: str = "",
        deeper: bool = False,
        bare: bool = False,
        lists: bool = False,
        **place: Any,
    ) -> None:
        super().__init__(label, tag, **place)
        self.field = field
        self.form = form
        self.keys = keys
        self.missing = missing
        self.needs = needs
        self.deeper = deeper
        self.bare = bare
        self.lists = lists

    def read(self, gpu: Gpu, value: ValueOf) -> tuple[str, bool]:
        """Return the text of the value and whether there is one."""
        if self.needs:
            reason, needed = plain(value(gpu, self.needs))
            if not needed:
                return reason, False
        if self.keys:
            return self._from_catalog(gpu)
        if not self.field:
            return self.missing, False
        text, there = plain(value(gpu, self.field))
        return (self.form(text), True) if there and self.form else (text, there)

    def _from_catalog(self, gpu: Gpu) -> tuple[str, bool]:
        found = [gpu.get(key) for key in self.keys]
        for key, one in zip(self.keys, found, strict=True):
            if one is None:
                return plain(missing_text(gpu.gap(key), self.missing))
        return clean((self.form or str)(*found)), True

    def names(self) -> Iterator[str]:
        """Walk the nvidia-smi fields and catalog keys it takes."""
        yield from super().names()
        yield from filter(None, (self.field, self.needs, *self.keys))


class Group(LogEntry):
    """Entries under one title; with `folds`, one line with the reason where the first of them has no value."""

    __slots__ = ("entries", "folds")

    def __init__(self, label: str, tag: str, *entries: LogEntry, folds: bool = False, **place: Any) -> None:
        super().__init__(label, tag, **place)
        self.entries = entries
        self.folds = folds

    def folded(self, gpu: Gpu, value: ValueOf) -> str | None:
        """Return the reason that stands for the whole group, or None."""
        if not self.folds or not isinstance(self.entries[0], LogLine):
            return None
        text, there = self.entries[0].read(gpu, value)
        return None if there else text

    def names(self) -> Iterator[str]:
        """Walk the nvidia-smi fields and catalog keys its entries take."""
        yield from super().names()
        for entry in self.entries:
            yield from entry.names()


class Instances(Group):
    """The MIG instances of a GPU, its entries once for each."""

    __slots__ = ()


class Clocks(LogEntry):
    """The memory clocks of a GPU, each with the graphics clocks it can run with."""

    __slots__ = ()

    def rows(self, gpu: Gpu) -> list[tuple[str, list[str]]]:
        """Return each memory clock and its graphics clocks, as texts; nothing where the GPU does not say."""
        pairs = [clean(word).partition(":") for word in gpu.clocks_supported or ()]
        return [(f"{memory} MHz", [f"{clock} MHz" for clock in rest.split(",") if clock]) for memory, _, rest in pairs]

    def reason(self, gpu: Gpu) -> str:
        """Return what stands for the list where there is none."""
        return plain(missing_text(gpu.gap("clocks_supported")))[0]

    def names(self) -> Iterator[str]:
        """Walk the nvidia-smi fields and catalog keys it takes."""
        yield from super().names()
        yield "clocks_supported"


class Processes(LogEntry):
    """The processes of a GPU and of its instances."""

    __slots__ = ()

    @staticmethod
    def rows(gpu: Gpu) -> list[tuple[str, ...]]:
        """Return GPU instance, compute instance, pid, type, name and memory of each, in the order of the pids."""
        homes = [(gpu, NOTHING, NOTHING)]
        homes += [(part, _whole(part.gpu_instance), _whole(part.compute_instance)) for part in gpu.instances]
        return [
            (gpu_instance, compute_instance, *_process(process))
            for home, gpu_instance, compute_instance in homes
            for process in sorted(home.processes, key=lambda each: each.pid or 0)
        ]


def _process(process: Process) -> tuple[str, str, str, str]:
    name, used = program(process.command) if process.command else process.name, process.memory_used
    return (
        _whole(process.pid),
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


def plain(text: str) -> tuple[str, bool]:
    """Return a value of a query as a log writes it, reasons without their brackets, and whether it is a value at all."""
    if text.startswith("[") and text.endswith("]"):
        return clean(text[1:-1]), False
    return (NOTHING, False) if text in ("", NOTHING) else (clean(text), True)


def _whole(number: float | None) -> str:
    return NOTHING if number is None else f"{number:.0f}"
