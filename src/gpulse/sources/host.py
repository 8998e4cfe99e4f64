"""Metrics of the host from /proc: CPUs, memory, disks, network."""

from __future__ import annotations

import os
import time

from .base import Counter, Facts
from .files import names, read_bytes, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Key

_CPU = frozenset({"cpu_percent", "cpu_per_core", "iowait"})
_MEMORY = frozenset({"memory_used", "memory_total", "swap_used", "swap_total"})
_DISK = frozenset({"disk_read", "disk_write"})
_NET = frozenset({"net_rx", "net_tx"})
_APART = 5  # minimum clock ticks of one CPU between two counts for a meaningful rate
_SECTOR = 512  # /proc/diskstats counts sectors of this size, whatever the disk's own sector size


def read_host(keys: Key, root: str = "") -> Facts:
    """Read these metrics of the host; rates are returned as counters. `root` is prefixed to /proc and /sys, for tests."""
    facts = Facts()
    facts.values["name"] = os.uname().nodename
    facts.values["cpu_count"] = os.cpu_count() or 1
    for own, read in _READERS:
        if keys & own:
            try:
                read(facts, root)
            except (ValueError, IndexError):  # a kernel file in an unknown format costs only its own values
                facts.gaps.update(dict.fromkeys(own, "failed"))
    return facts


def memory_info(root: str = "") -> dict[str, int]:
    """Return /proc/meminfo in bytes, by its own keys; empty if it cannot be read."""
    lines = (read_bytes(f"{root}/proc/meminfo") or b"").decode("ascii", "replace").splitlines()
    info: dict[str, int] = {}
    for line in lines:
        word, _, rest = line.partition(":")
        amount = rest.split()
        if amount and amount[0].isdecimal():
            info[word] = int(amount[0]) * 1024
    return info


def _read_cpu(facts: Facts, root: str) -> None:
    cores: list[Counter] = []
    for line in (read_bytes(f"{root}/proc/stat", 1 << 20) or b"").splitlines():
        if not line.startswith(b"cpu"):
            break
        word, *times = line.split()
        ticks = [int(time) for time in times[:8]]
        if len(ticks) < 5:
            continue
        total, idle = sum(ticks), ticks[3] + ticks[4]
        apart = _APART * (os.cpu_count() or 1) if word == b"cpu" else _APART
        busy = Counter(total - idle, total, 100.0, apart)
        if word == b"cpu":
            facts.counters["cpu_percent"] = busy
            facts.counters["iowait"] = Counter(ticks[4], total, 100.0, apart)
        else:
            cores.append(busy)
    for number, core in enumerate(cores):
        facts.counters[f"cpu_per_core.{number}"] = core
    if not cores:
        facts.gaps.update(dict.fromkeys(_CPU, "unsupported"))


def _read_memory(facts: Facts, root: str) -> None:
    info = memory_info(root)
    if "MemTotal" not in info:
        facts.gaps.update(dict.fromkeys(_MEMORY, "unsupported"))
        return
    available = info.get("MemAvailable", info.get("MemFree", 0) + info.get("Cached", 0))
    facts.values["memory_total"] = info["MemTotal"]
    facts.values["memory_used"] = max(0, info["MemTotal"] - available)
    facts.values["swap_total"] = info.get("SwapTotal", 0)
    facts.values["swap_used"] = info.get("SwapTotal", 0) - info.get("SwapFree", 0)


def _read_load(facts: Facts, root: str) -> None:
    words = (read_text(f"{root}/proc/loadavg") or "").split()
    if len(words) < 3:
        facts.gaps["load"] = "unsupported"
    else:
        facts.values["load"] = tuple(float(word) for word in words[:3])


def _read_disks(facts: Facts, root: str) -> None:
    # whole disks only: /sys/block has no partitions, and device-mapper and md would count the same bytes twice
    disks = {disk for disk in names(f"{root}/sys/block") if not disk.startswith(("loop", "ram", "zram", "dm-", "md"))}
    at, read, written = time.monotonic(), 0, 0
    content = read_bytes(f"{root}/proc/diskstats", 1 << 20)
    for line in (content or b"").decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) >= 10 and words[2] in disks:
            read += int(words[5]) * _SECTOR
            written += int(words[9]) * _SECTOR
    if content is None or not disks:
        facts.gaps.update(dict.fromkeys(_DISK, "unsupported"))
        return
    facts.counters["disk_read"] = Counter(read, at)
    facts.counters["disk_write"] = Counter(written, at)


def _read_network(facts: Facts, root: str) -> None:
    content = read_bytes(f"{root}/proc/net/dev", 1 << 20)
    at, received, sent = time.monotonic(), 0, 0
    for line in (content or b"").decode("ascii", "replace").splitlines()[2:]:
        interface, _, rest = line.partition(":")
        words = rest.split()
        if interface.strip() != "lo" and len(words) >= 9:
            received += int(words[0])
            sent += int(words[8])
    if content is None:
        facts.gaps.update(dict.fromkeys(_NET, "unsupported"))
        return
    facts.counters["net_rx"] = Counter(received, at)
    facts.counters["net_tx"] = Counter(sent, at)


_READERS = (
    (_CPU, _read_cpu),
    (_MEMORY, _read_memory),
    (frozenset({"load"}), _read_load),
    (_DISK, _read_disks),
    (_NET, _read_network),
)
