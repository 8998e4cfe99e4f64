"""Small machines made of files, and a GPU read from them: what the tests of the kernel's sources stand on."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS
from gpulse.model.select import EVERYTHING
from gpulse.sources.base import DeviceSample, Source

KEYS = frozenset(key for key in EVERYTHING.gpu if GPU_METRICS[key].kind != "identity") - {
    "memory_percent",
    "memory_unattributed",
}
PROCESS_KEYS = frozenset(PROCESS_METRICS)
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "fixtures"


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder; a value that begins with -> is a symbolic link."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("->"):
            path.unlink(missing_ok=True)
            path.symlink_to(content[2:])
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def under(folder: str, files: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def card(driver: str, pci_id: str, slot: str) -> dict[str, str | bytes]:
    return {"uevent": f"DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID={pci_id}\nPCI_SLOT_NAME={slot}\n"}


def read_one(source: Source, keys: frozenset[str] = KEYS, processes: bool = True) -> DeviceSample:
    """Open a source if it is not, and read its only GPU."""
    if not source.devices:
        source.open()
    source.refresh()
    (device,) = source.devices
    return device.read(keys, PROCESS_KEYS if processes else None)


def packed(version: tuple[int, int], size: int, fields: Mapping[int, tuple[str, int]]) -> bytes:
    """Return a gpu_metrics table of all ones with some fields filled: offset → struct letter, value."""
    content = bytearray(b"\xff" * size)
    content[:4] = struct.pack("<HBB", size, *version)
    for offset, (letter, value) in fields.items():
        struct.pack_into(f"<{letter}", content, offset, value)
    return bytes(content)
