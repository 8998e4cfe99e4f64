"""What a field is: nvidia-smi's name for a catalog key, and how it writes the value. Other keys of the catalog become fields, too."""

from __future__ import annotations

import time as clock

from ...model.catalog import THROTTLE_BITS
from ...model.metric import Flag, Numbers, Words
from ...present.text import clean
from ...units import BYTES, BYTES_PER_SECOND, CELSIUS, JOULE, MEGAHERTZ, PERCENT, SECOND, WATT, Unit
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ...model.catalog import Gpu, Process
    from ...model.metric import Gap, Metric, Reading
    from ...model.snapshot import Snapshot

MIB = 1 << 20
_MISSING: dict[str, str] = {
    "lost": "[GPU is lost]",
    "denied": "[Insufficient Permissions]",
    "failed": "[Unknown Error]",
    "timeout": "[Unknown Error]",
}
NOT_AVAILABLE = "[N/A]"


class QueryRow(Value):
    """What one line of an answer is about: a GPU of a snapshot, and a process on it where processes were asked for."""

    snapshot: Snapshot
    gpu: Gpu
    process: Process | None = None


class Field(Value, frozen=True):
    """One field of a query: `name` as nvidia-smi calls it first, `key` in the catalog (empty: gpulse cannot say it).

    `form` writes the value, `unit` follows it and stands in the header, `missing` is written where there is no value
    and the gap says nothing worse. `instead` is a key that says nearly the same, for sources without the first.
    """

    name: str
    key: str
    form: Callable[[Any], str] = str
    unit: str = ""
    aliases: tuple[str, ...] = ()
    missing: str = NOT_AVAILABLE
    instead: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the catalog it must be given."""
        return tuple(key for key in (self.key, self.instead) if key)

    def header(self) -> str:
        """Return the title of its column: the first name and the unit, whatever name was asked and with units or without."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        reading = self._reading(row)
        value = next((found for key in self.keys if (found := reading.get(key)) is not None), None)
        if value is None:
            return missing_text(reading.gap(self.key) if self.key else None, self.missing)
        return f"{self.form(value)} {self.unit}" if self.unit and units else self.form(value)

    def _reading(self, row: QueryRow) -> Reading:
        return row.gpu

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ProcessField(Field, frozen=True):
    """A field of the process instead of the GPU."""

    def _reading(self, row: QueryRow) -> Reading:
        assert row.process is not None
        return row.process


class SnapshotField(Field, frozen=True):
    """A field of the whole snapshot: `form` takes the snapshot."""

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        return self.form(row.snapshot)


class CountField(Field, frozen=True):
    """The number of GPUs of the machine, whichever of them are shown; a source that cannot tell has those shown."""

    def text(self, row: QueryRow, units: bool = True) -> str:
        """Return the value as nvidia-smi writes it."""
        count = row.gpu.get(self.key)
        return str(len(row.snapshot.gpus)) if count is None else f"{count:.0f}"


def missing_text(gap: Gap | None, otherwise: str = NOT_AVAILABLE) -> str:
    """Return nvidia-smi's words for a value that is not there."""
    return _MISSING.get(gap or "", otherwise)


def switch(on: str, off: str) -> Callable[[bool], str]:
    """Return what writes true as the first word and false as the second."""
    return lambda value: on if value else off


whole = "{:.0f}".format
watts = "{:.2f}".format
pstate = "P{:.0f}".format
enabled = switch("Enabled", "Disabled")
yes = switch("Yes", "No")
truth = switch("True", "False")
validity = switch("valid", "invalid")
bandwidth = switch("Degraded", "Full")  # of a fabric: whether it is degraded


def whole_or(value: float | None, missing: str = "N/A") -> str:
    """Write a whole number, or what stands for one that is missing."""
    return missing if value is None else f"{value:.0f}"


def gpu_index(gpu: Gpu) -> str:
    """Return the index of a GPU, a dash where it has none."""
    return whole_or(gpu.index, "-")


def gpu_title(gpu: Gpu) -> str:
    """Return the line that names a GPU above what is said of it."""
    return f"GPU {gpu_index(gpu)}: {clean(gpu.name or 'Unknown')} (UUID: {clean(gpu.uuid or 'N/A')})"


def mib(count: float) -> str:
    """Write bytes as MiB, started ones counted."""
    return f"{-(-count // MIB):.0f}"


def microseconds(value: float) -> str:
    """Write seconds as whole microseconds."""
    return f"{value * 1e6:.0f}"


def hexadecimal(digits: int) -> Callable[[float], str]:
    """Return a formatter for hexadecimal numbers with a minimum number of digits."""
    return lambda value: f"0x{int(value):0{digits}X}"


def mask(words: Iterable[str]) -> str:
    """Write reasons as the bit mask they came from."""
    return f"0x{sum(THROTTLE_BITS.get(word) or _bits(word) for word in words):016X}"


def _bits(word: str) -> int:
    try:
        return int(word, 16)
    except ValueError:
        return 0


def reason(word: str) -> Callable[[Iterable[str]], str]:
    """Return what tells whether one reason is among those that hold."""
    return lambda words: "Active" if word in words else "Not Active"


def titled(word: str) -> str:
    """Write a word of the catalog as a title: in_progress is In Progress."""
    return " ".join(part.capitalize() for part in word.split("_"))


def spelt(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return what writes a word of the catalog as this table spells it; one that is not there becomes a title."""
    return lambda word: words.get(word) or titled(word)


compute_mode = spelt({"exclusive_process": "Exclusive_Process", "exclusive_thread": "Exclusive_Thread"})
addressing_mode = spelt({"hmm": "HMM", "ats": "ATS"})
peer = spelt({"direct": "Direct Connected", "switch": "Switch Connected"})
recovery = spelt({"drain_p2p": "Drain P2P", "drain_and_reset": "Drain and Reset"})
status = spelt({"unknown": "Unknown Error", "gpu_is_lost": "GPU is lost", "no_permission": "Insufficient Permissions"})
misconfiguration = spelt(
    {
        "incorrect_system_guid": "Incorrect SystemGUID",
        "insufficient_nvlinks": "Insufficient NVLink Resources",
        "gpu_state_invalid": "GPU State Invalid",
    }
)


def program(command: str) -> str:
    """Write the program of a command line, as it was called."""
    return command.split(" ", 1)[0]


def time_stamp(snapshot: Snapshot) -> str:
    """Write the local time of a sample to the millisecond."""
    whole_seconds, millis = divmod(int(snapshot.time * 1000), 1000)
    return f"{clock.strftime('%Y/%m/%d %H:%M:%S', clock.localtime(whole_seconds))}.{millis:03d}"


def short(value: Any) -> str:
    """Write a number with two digits at most, and anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def rate(value: float) -> str:
    """Write bytes a second as MiB a second."""
    return f"{value / MIB:.2f}"


def listed(values: Iterable[object]) -> str:
    """Write a list so that it stays one column."""
    return " ".join(map(short, values)) or "none"


_UNITS: dict[Unit, tuple[Callable[[Any], str], str]] = {
    BYTES: (mib, "MiB"),
    BYTES_PER_SECOND: (rate, "MiB/s"),
    WATT: (watts, "W"),
    JOULE: (short, "J"),
    CELSIUS: (short, "C"),
    MEGAHERTZ: (short, "MHz"),
    SECOND: (short, "s"),
    PERCENT: (short, "%"),
}


def field_of(metric: Metric, kind: type[Field] = Field) -> Field:
    """Return a metric of the catalog as a field, in the manner of nvidia-smi's own."""
    form, unit = _UNITS.get(metric.unit, (short, ""))
    if isinstance(metric, Flag):
        form = yes
    elif isinstance(metric, (Words, Numbers)):
        form = listed
    return kind(metric.key, metric.key, form, unit)
