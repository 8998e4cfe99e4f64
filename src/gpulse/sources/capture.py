"""Record the kernel's files of a machine's GPUs as a small tree, which `--source amd:DIR` and the like read back.

Serial numbers and unique ids are replaced. Names, users and command lines of processes are not recorded. A sleeping GPU stays
asleep: only its identity is recorded.
"""

from __future__ import annotations

import os

from ..errors import SourceUnavailable
from .drm.cards import Card
from .files import card_names, link, names, read_bytes, read_text
from .jetson import LOADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DRIVERS = ("amdgpu", "radeon", "i915", "xe")
_MOST = 65536  # bytes of one file
_ALL = 8 << 20  # bytes of a whole recording
# Left out: pcie_bw sleeps for a second in the driver, rom and config are the board's own, the rest acts on a read or is huge.
_UNREAD = frozenset({
    "pcie_bw", "rom", "config", "reset", "remove", "rescan", "resource", "driver_override", "thermal_throttling_logging",
})  # fmt: skip
_SECRET = frozenset({"unique_id", "serial_number", "serial-number", "product_number"})
_SECRET_TAGS = (
    b"uuid", b"serial", b"process_name", b"board_id", b"gpu_part_number", b"chassis_serial_number", b"gpu_guid",
)  # fmt: skip
_IDENTITY = ("uevent", "vendor", "device", "revision", "class", "subsystem_vendor", "subsystem_device", "power/runtime_status",
             "current_link_speed", "current_link_width", "max_link_speed", "max_link_width")  # fmt: skip
_FOLDERS = (
    "hwmon", "power", "ras", "gt", "tile", "freq0", "throttle", "gtidle", "temp", "ip_discovery", "die", "GC", "xcp", "0", "1",
)  # fmt: skip
_MACHINE = (
    *("proc/meminfo", "proc/sys/kernel/osrelease", "proc/device-tree/model", "proc/device-tree/compatible"),
    *("etc/nv_tegra_release", *(path.removeprefix("/") for path in LOADS)),
)
_TREES = (
    *("sys/class/kfd/kfd/topology/nodes", "sys/class/kfd/kfd/proc", "sys/class/devfreq", "sys/class/thermal"),
    "sys/bus/i2c/drivers/ina3221",
)
_CLIENT_LINES = (b"drm-", b"pdev", b"pasid", b"vram mem", b"gtt mem", b"cpu mem")
_DEEPEST = 6


class Capture:
    """A recording in the making: `files` and `size` count what was written, `cards` names the cards."""

    def __init__(self, folder: str, root: str = "") -> None:
        self._folder = folder
        self._root = root
        self._numbers: dict[str, str] = {}
        self.files = 0
        self.size = 0
        self.cards: list[str] = []

    def record(self) -> None:
        """Record everything; raises OSError if the folder cannot be written."""
        for name in card_names(self._root):
            self._card(f"sys/class/drm/{name}")
        for tree in _TREES:
            for path in self._below(tree, 0, anything=True):
                self._copy(path)
        for path in _MACHINE:
            self._copy(path)
        self._clients()
        if not self._root:
            self._nvidia()

    def _nvidia(self) -> None:
        """Record nvidia-smi's log where there is such a program, with numbers and process names replaced."""
        from .smi.source import run_smi

        try:
            log = run_smi()
        except SourceUnavailable:
            return
        for tag in _SECRET_TAGS:
            log = _replaced(log, tag)
        self._write("nvidia-smi.xml", log)
        self.cards.append("NVIDIA GPUs (nvidia-smi.xml)")

    def _card(self, card: str) -> None:
        device = f"{card}/device"
        driver = Card(f"{self._root}/{card}").driver
        if driver not in _DRIVERS:
            return
        asleep = read_text(f"{self._root}/{device}/power/runtime_status", 64) in ("suspended", "suspending")
        self.cards.append(f"{card.rsplit('/', 1)[-1]} ({driver}{', asleep' if asleep else ''})")
        identity = [f"{device}/{name}" for name in _IDENTITY]
        for path in identity if asleep else [*self._below(card, 0), *self._below(device, 0)]:
            self._copy(path)

    def _below(self, folder: str, depth: int, anything: bool = False) -> Iterator[str]:
        """Walk the files below a folder; links to folders are followed only where the walk begins, or it would leave the device."""
        for name in names(f"{self._root}/{folder}"):
            path = f"{folder}/{name}"
            whole = f"{self._root}/{path}"
            if os.path.isfile(whole):
                yield path
                continue
            followed = (anything and depth == 0) or not os.path.islink(whole)
            if depth < _DEEPEST and (anything or name.startswith(_FOLDERS)) and followed and os.path.isdir(whole):
                yield from self._below(path, depth + 1, anything)

    def _copy(self, path: str) -> None:
        name = path.rsplit("/", 1)[-1]
        if name in _UNREAD or self.size > _ALL:
            return
        content = read_bytes(f"{self._root}/{path}", _MOST)
        if content is None:
            return
        if name in _SECRET:
            content = self._masked(content)
        elif name == "properties":
            content = b"\n".join(self._property(line) for line in content.split(b"\n"))
        self._write(path, content)

    def _write(self, path: str, content: bytes) -> None:
        target = f"{self._folder}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        self.files += 1
        self.size += len(content)

    def _property(self, line: bytes) -> bytes:
        word, _, number = line.partition(b" ")
        if word != b"unique_id" or not number.isdigit() or not int(number):
            return line
        return b"unique_id %d" % int(self._masked(b"%x" % int(number)), 16)

    def _masked(self, content: bytes) -> bytes:
        """Replace a number by another of its own, the same wherever it appears, so that files still belong together."""
        text = content.partition(b"\0")[0].decode("ascii", "replace").strip()
        if not text.strip("0"):
            return content
        return self._numbers.setdefault(text.lstrip("0").lower(), f"{len(self._numbers) + 1:016x}").encode() + b"\n"

    def _clients(self) -> None:
        """Record the graphics drivers' fdinfo of processes that have a GPU open, without anything else of them."""
        for pid in names(f"{self._root}/proc"):
            if not pid.isdecimal():
                continue
            for number in names(f"{self._root}/proc/{pid}/fd"):
                target = link(f"{self._root}/proc/{pid}/fd/{number}")
                if target.startswith(("/dev/dri/", "/dev/accel/")):
                    content = read_bytes(f"{self._root}/proc/{pid}/fdinfo/{number}", _MOST) or b""
                    kept = [line for line in content.split(b"\n") if line.startswith(_CLIENT_LINES)]
                    self._write(f"proc/{pid}/fdinfo/{number}", b"\n".join([*kept, b""]))


def _replaced(log: bytes, tag: bytes) -> bytes:
    """Replace the text of an element by a number; N/A is kept."""
    first, *rest = log.split(b"<" + tag + b">")
    known: dict[bytes, bytes] = {}
    parts = [first]
    for part in rest:
        text, _, after = part.partition(b"</")
        prefix = b"GPU-" if text.startswith(b"GPU-") else b""
        masked = text if text.strip() in (b"N/A", b"") else known.setdefault(text, prefix + b"%08d" % (len(known) + 1))
        parts.append(b"<" + tag + b">" + masked + b"</" + after)
    return b"".join(parts)
