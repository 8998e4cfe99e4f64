"""What the sources of cards that the kernel lists have in common: one sample of a card, how they open and close, `doctor`.

Kernel files that are read at every sample are opened once and read with pread; errors become gaps, never exceptions. A read by
open().read() costs 14 µs, a pread of a kept descriptor 0.9 µs plus the driver's own work.
"""

from __future__ import annotations

import errno
import os

from ...errors import SourceUnavailable
from ..base import Device, DeviceSample, Source, cached_attribute
from ..files import names, parse_number, read_text
from ..processes import LinuxMachine
from .cards import find_cards
from .clients import Clients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ...model.metric import Gap, Value
    from ...model.snapshot import Check
    from ..base import Counter, Key
    from .cards import Card


_ASLEEP = ("suspended", "suspending")


class CardReading:
    """One sample of one card while it is being read, and the keys that are wanted of it."""

    def __init__(self, sample: DeviceSample, keys: Key) -> None:
        self.sample = sample
        self.keys = keys

    def put(self, key: str, value: Value | None, gap: Gap = "unsupported") -> None:
        """Store a value, or the reason why there is none."""
        if key in self.keys:
            self.sample.put(key, value, gap)

    def count(self, key: str, counter: Counter | None) -> None:
        """Store a counter; without one the key stays unsupported."""
        if key in self.keys and counter is not None:
            self.sample.counters[key] = counter


class CardDevice(Device):
    """One card, never read while it sleeps. A vendor's own class says how to read one that is awake."""

    drivers: tuple[str, ...]
    runtime_status = "power/runtime_status"  # below `files`

    def __init__(self, card: Card, clients: Clients, root: str, folder: str, identity: Mapping[str, Value]) -> None:
        self.card = card
        self.identity = identity
        self._clients = clients
        self._root = root
        self._files = Folder(folder)

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        if self._sleeps():
            self._forget()
            sample.state = "asleep"
            sample.gaps.update(dict.fromkeys(keys - self.identity.keys(), "asleep"))
            return sample
        self._read_awake(sample, keys, process_keys)
        for key in keys:
            if key not in sample.values and key not in sample.gaps and key not in sample.counters:
                sample.gaps[key] = "unsupported"
        self.card.lose(sample, keys)
        return sample

    def close(self) -> None:
        """Close all files; a later read opens them again."""
        self._files.close()
        self._sensors.close()

    def _read_awake(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        raise NotImplementedError

    def _forget(self) -> None:
        """Drop counts: after the GPU slept, they do not compare."""

    def _sleeps(self) -> bool:
        return self._files.text(self.runtime_status) in _ASLEEP  # any other file might wake it

    @cached_attribute
    def _sensors(self) -> Sensors:
        return Sensors(self.card.device, self.drivers)


class CardSource(Source):
    """A source whose devices are DRM cards; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    vendor: str
    vendor_id: int
    drivers: tuple[str, ...]  # the first is that of cards that name none
    hidden_remedy: str  # what to do where processes of other users are hidden

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._clients = Clients(root)
        self.machine = LinuxMachine(root)
        self.machine.real = not root  # no signal to a PID that another machine had
        self.devices = []

    def open(self) -> None:
        self.close()
        self.devices = self._found(find_cards(self._root, self.drivers, self.vendor_id))
        if not self.devices:
            raise SourceUnavailable(
                f"{self.vendor}: the kernel has no card of {' or '.join(self.drivers)}.",
                "Check `lspci -k | grep -A3 -i vga`; in a container, /sys must be mounted.",
            )

    def _found(self, cards: list[Card]) -> Sequence[Device]:
        """Return the devices of these cards, and set `driver`."""
        raise NotImplementedError

    def refresh(self) -> None:
        self._clients.expire()

    def close(self) -> None:
        for device in self.devices:
            device.close()
        self.devices = []

    def examine(self) -> list[Check]:
        """Return the cards by driver, those that sleep, what the vendor checks, and whose processes are hidden."""
        from ...model.snapshot import Check

        cards = find_cards(self._root, self.drivers, self.vendor_id)
        if not cards:
            return [Check("note", "cards", f"the kernel has no card of {' or '.join(self.drivers)}.")]
        named = sorted({card.driver or self.drivers[0] for card in cards})
        found = [Check("ok", "cards", f"{len(cards)} of {', '.join(named)}.")]
        asleep = [card for card in cards if read_text(f"{card.device}/power/runtime_status", 64) == "suspended"]
        if asleep:
            slots = ", ".join(card.slot for card in asleep)
            found.append(Check("note", "asleep", f"{slots} sleeps and is not woken by gpulse."))
        found += self._checks([card for card in cards if card not in asleep])
        clients = Clients(self._root)
        clients.of_slot("")
        if clients.hidden:
            text = f"{clients.hidden} processes belong to other users, so their GPU use is not visible."
            found.append(Check("note", "processes", text, self.hidden_remedy))
        return found

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        return []


_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # O_NONBLOCK: a pipe in a recorded tree must not block us
_SHORT = 64  # bytes; no number the kernel writes is longer
_LONG = 1 << 16
_RETRY = 32  # reads after which a file that did not exist is tried again: drivers add files when a GPU is rebound
_ON_OPEN: dict[int, Gap] = {
    errno.ENOENT: "unsupported",
    errno.ENOTDIR: "unsupported",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
}
_ON_READ: dict[int, Gap] = {
    errno.EBUSY: "asleep",  # runtime-suspended, on kernels that do not wake the GPU for a read
    errno.EPERM: "asleep",  # amdgpu while the GPU suspends or resets
    errno.EACCES: "denied",
    errno.EOPNOTSUPP: "unsupported",
    errno.EINVAL: "unsupported",
    errno.ENODATA: "unsupported",
    errno.ENODEV: "lost",
    errno.ENXIO: "lost",
}


class KernelFile:
    """One file. `gap` is the reason why the last read returned None."""

    __slots__ = ("_absent", "_handle", "_path", "gap")

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._absent = 0
        self.gap: Gap = "unsupported"

    def read(self, size: int = _LONG) -> bytes | None:
        """Return up to `size` bytes from the start of the file, or None."""
        if self._handle < 0 and not self._open():
            return None
        try:
            return os.pread(self._handle, size, 0)
        except OSError as error:
            self.gap = _ON_READ.get(error.errno or 0, "failed")
            if self.gap in ("lost", "failed"):
                self.close()  # the device was rebound: its file is another one now
            return None

    def close(self) -> None:
        """Close the descriptor; a later read opens the file again."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            try:
                os.close(handle)
            except OSError:
                pass
        self._absent = 0

    def _open(self) -> bool:
        if self._absent:
            self._absent -= 1
            return False
        try:
            self._handle = os.open(self._path, _OPEN_FLAGS)
        except (OSError, ValueError) as error:
            self.gap = _ON_OPEN.get(getattr(error, "errno", 0) or 0, "failed")
            self._absent = _RETRY if self.gap == "unsupported" else 0
            return False
        return True


class Folder:
    """The files of one folder by name, each opened at its first read."""

    __slots__ = ("_files", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._files: dict[str, KernelFile] = {}

    def number(self, name: str) -> int | None:
        """Return a file as a whole number; None when it is missing, holds anything else, or does not end."""
        content = self._file(name).read(_SHORT)
        if content is None:
            return None
        if (number := parse_number(content, _SHORT)) is None:
            self._files[name].gap = "failed"
        return number

    def text(self, name: str) -> str | None:
        """Return a file as text up to the first NUL, stripped, or None."""
        content = self._file(name).read()
        return None if content is None else content.partition(b"\0")[0].decode("utf-8", "replace").strip()

    def content(self, name: str) -> bytes | None:
        """Return a file as it is, or None."""
        return self._file(name).read()

    def gap(self, *names: str) -> Gap:
        """Return why the last read of these files found nothing: the first reason that is more than a missing file."""
        gaps = [file.gap for name in names if (file := self._files.get(name)) is not None]
        return next((gap for gap in gaps if gap != "unsupported"), "unsupported")

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def _file(self, name: str) -> KernelFile:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = KernelFile(f"{self.path}/{name}")
        return file


class Sensors(Folder):
    """The hwmon folder of a device; empty where it has none. `found` is False if there is none."""

    __slots__ = ("_entries", "found", "labels")

    def __init__(self, device: str, drivers: Collection[str] = ()) -> None:
        path = _folder(device, drivers)
        super().__init__(path or f"{device}/hwmon/none")
        self.found = bool(path)
        self._entries = frozenset(names(path)) if path else frozenset()
        self.labels: dict[str, dict[str, str]] = {}  # kind → label → sensor: temp → edge → temp1
        for entry in sorted(self._entries):
            if entry.endswith("_label"):
                sensor = entry.removesuffix("_label")
                label = (read_text(f"{path}/{entry}", 256) or "").lower()
                self.labels.setdefault(sensor.rstrip("0123456789"), {}).setdefault(label, sensor)

    def has(self, name: str) -> bool:
        """Return whether the folder had this file when it was found."""
        return name in self._entries

    def labelled(self, kind: str, *labels: str) -> str:
        """Return the sensor of the first of these labels, as temp2, or an empty string."""
        known = self.labels.get(kind, {})
        return next((known[label] for label in labels if label in known), "")

    def numbered(self, kind: str, suffix: str = "_input") -> list[str]:
        """Return all sensors of a kind that have this file, in order of their numbers."""
        sensors = [entry.removesuffix(suffix) for entry in self._entries if entry.endswith(suffix)]
        ours = [sensor for sensor in sensors if sensor.startswith(kind) and sensor[len(kind) :].isdecimal()]
        return sorted(ours, key=lambda sensor: int(sensor[len(kind) :]))


def _folder(device: str, drivers: Collection[str]) -> str:
    """Return the hwmon folder that names one of these drivers, else the first there is; the NIC of a board has one, too."""
    found = [f"{device}/hwmon/{name}" for name in names(f"{device}/hwmon") if name.startswith("hwmon")]
    own = [path for path in found if (read_text(f"{path}/name", 64) or "") in drivers]
    return (own or found or [""])[0]
