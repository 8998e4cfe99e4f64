"""Metrics of the host from /proc and /sys: CPUs, memory, disks, network, InfiniBand and Ethernet ports, top processes."""

from __future__ import annotations

import os
import time
from functools import lru_cache

from ..value import Value
from .base import Counter, Facts
from .files import names, read_bytes, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from .base import Key
    from .processes import Stat

_CPU = frozenset({"cpu_percent", "cpu_per_core", "iowait"})
_MEMORY = frozenset({"memory_used", "memory_total", "memory_cached", "swap_used", "swap_total"})
_AMOUNTS = frozenset(
    ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SReclaimable", "SwapTotal", "SwapFree")
)
_ACTIVITY = {
    "context_switches": "ctxt", "interrupts": "intr", "processes_running": "procs_running", "processes_blocked": "procs_blocked",
}  # fmt: skip
_PAGING = {"swap_in": "pswpin", "swap_out": "pswpout", "major_faults": "pgmajfault"}
_DISK = frozenset({"disk_read", "disk_write"})
_DISKS = frozenset({"disk_names", "disk_reads", "disk_writes", "disk_busy"})
_NET = frozenset({"net_rx", "net_tx"})
_PORTS = frozenset({"port_names", "port_states", "port_speeds", "port_rx", "port_tx", "port_downs", "port_errors"})
_INFINIBAND_ERRORS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards")
_ETHERNET_ERRORS = ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
_WORD = 4  # bytes that an InfiniBand data counter counts as one
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
                read(facts, root, keys)
            except (ValueError, IndexError):  # a kernel file in an unknown format costs only its own values
                facts.gaps.update(dict.fromkeys(own, "failed"))
    return facts


def memory_info(root: str = "") -> dict[str, int]:
    """Return the amounts of `_AMOUNTS` in /proc/meminfo in bytes; empty if it cannot be read."""
    parts = (line.partition(":") for line in _lines(f"{root}/proc/meminfo", 1 << 16))
    amounts = ((word, rest.split()[:1]) for word, _, rest in parts if word in _AMOUNTS)
    return {word: int(amount[0]) * 1024 for word, amount in amounts if amount and amount[0].isdecimal()}


def _lines(path: str, size: int = 1 << 20) -> list[str]:
    return (read_bytes(path, size) or b"").decode("ascii", "replace").splitlines()


def _read_cpu(facts: Facts, root: str, keys: Key) -> None:
    for line in _lines(f"{root}/proc/stat"):
        if not line.startswith("cpu"):
            break
        word, *times = line.split()
        ticks = [int(time) for time in times[:8]]
        if len(ticks) < 5:
            continue
        total, idle = sum(ticks), ticks[3] + ticks[4]
        apart = _APART * (os.cpu_count() or 1) if word == "cpu" else _APART
        busy = Counter(total - idle, total, 100.0, apart)
        if word == "cpu":
            facts.counters["cpu_percent"] = busy
            facts.counters["iowait"] = Counter(ticks[4], total, 100.0, apart)
        else:
            facts.counters[f"cpu_per_core.{word[3:]}"] = busy  # by its number: the kernel leaves out those that are off
    if not facts.counters:
        facts.gaps.update(dict.fromkeys(_CPU, "unsupported"))


def _read_memory(facts: Facts, root: str, keys: Key) -> None:
    info = memory_info(root)
    if "MemTotal" not in info:
        facts.gaps.update(dict.fromkeys(_MEMORY, "unsupported"))
        return
    available = info.get("MemAvailable", info.get("MemFree", 0) + info.get("Cached", 0))
    facts.values["memory_total"] = info["MemTotal"]
    facts.values["memory_used"] = max(0, info["MemTotal"] - available)
    facts.values["memory_cached"] = sum(info.get(word, 0) for word in ("Cached", "Buffers", "SReclaimable"))
    facts.values["swap_total"] = info.get("SwapTotal", 0)
    facts.values["swap_used"] = info.get("SwapTotal", 0) - info.get("SwapFree", 0)


def _read_load(facts: Facts, root: str, keys: Key) -> None:
    words = (read_text(f"{root}/proc/loadavg") or "").split()
    if len(words) < 3:
        facts.gaps["load"] = "unsupported"
    else:
        facts.values["load"] = tuple(float(word) for word in words[:3])


def _read_counts(facts: Facts, root: str, file: str, words: Mapping[str, str]) -> None:
    """Read counts by the kernel's words from a file of `word number` lines; processes are as many now, pages have bytes."""
    at, page = time.monotonic(), os.sysconf("SC_PAGE_SIZE")
    counts = dict(line.split(None, 2)[:2] for line in _lines(f"{root}/proc/{file}") if " " in line)
    for key, word in words.items():
        if word not in counts:
            facts.gaps[key] = "unsupported"
        elif word.startswith("procs"):
            facts.values[key] = int(counts[word])
        else:
            facts.counters[key] = Counter(int(counts[word]) * (page if word.startswith("pswp") else 1), at)


def _disk_counts(root: str) -> dict[str, tuple[int, int, int]] | None:
    """Return the bytes read and written and the busy milliseconds of each whole disk; None if they cannot be read.

    /sys/block has no partitions, and device-mapper and md would count the same bytes twice.
    """
    disks = {disk for disk in names(f"{root}/sys/block") if not disk.startswith(("loop", "ram", "zram", "dm-", "md"))}
    content = read_bytes(f"{root}/proc/diskstats", 1 << 20)
    if content is None or not disks:
        return None
    found: dict[str, tuple[int, int, int]] = {}
    for line in content.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) >= 10 and words[2] in disks:
            busy = int(words[12]) if len(words) > 12 else 0
            found[words[2]] = (int(words[5]) * _SECTOR, int(words[9]) * _SECTOR, busy)
    return found


def _read_disks(facts: Facts, root: str, each: bool) -> None:
    at, counts = time.monotonic(), _disk_counts(root)
    if counts is None:
        facts.gaps.update(dict.fromkeys(_DISKS if each else _DISK, "unsupported"))
    elif not each:
        facts.counters["disk_read"] = Counter(sum(read for read, _, _ in counts.values()), at)
        facts.counters["disk_write"] = Counter(sum(written for _, written, _ in counts.values()), at)
    else:
        facts.values["disk_names"] = tuple(sorted(counts))
        for name, (read, written, busy) in sorted(counts.items()):
            facts.counters[f"disk_reads.{name}"] = Counter(read, at)
            facts.counters[f"disk_writes.{name}"] = Counter(written, at)
            facts.counters[f"disk_busy.{name}"] = Counter(busy / 1000, at, 100.0)


@lru_cache(maxsize=8)
def _counted(root: str, interfaces: frozenset[str]) -> frozenset[str]:
    """Return the interfaces that count every byte once: devices, because bridges, bonds, VLANs and tunnels repeat their bytes.

    A container has no device; there, what is not made of other interfaces counts.
    """
    folder = f"{root}/sys/class/net"
    own = interfaces - {"lo"}
    devices = frozenset(name for name in own if os.path.exists(f"{folder}/{name}/device"))
    made = frozenset(name for name in own if any(part.startswith("lower_") for part in names(f"{folder}/{name}")))
    return devices or own - made


def _read_network(facts: Facts, root: str, keys: Key) -> None:
    content = read_bytes(f"{root}/proc/net/dev", 1 << 20)
    at, received, sent = time.monotonic(), 0, 0
    rows: dict[str, list[str]] = {}
    for line in (content or b"").decode("ascii", "replace").splitlines()[2:]:
        interface, _, rest = line.partition(":")
        if len(words := rest.split()) >= 9:
            rows[interface.strip()] = words
    for interface in _counted(root, frozenset(rows)):
        received += int(rows[interface][0])
        sent += int(rows[interface][8])
    if content is None:
        facts.gaps.update(dict.fromkeys(_NET, "unsupported"))
        return
    facts.counters["net_rx"] = Counter(received, at)
    facts.counters["net_tx"] = Counter(sent, at)


def _read_ports(facts: Facts, root: str, keys: Key) -> None:
    """Read the ports that are hardware; each file costs 6 µs, so only those that are asked for are read."""
    at, ports = time.monotonic(), [*_infiniband(root), *_ethernet(root)]
    facts.values["port_names"] = tuple(port.name for port in ports)
    if "port_states" in keys:
        facts.values["port_states"] = tuple(port.state() for port in ports)
    if "port_speeds" in keys:
        facts.values["port_speeds"] = tuple(port.speed() for port in ports)
    if "port_downs" in keys:
        facts.values["port_downs"] = tuple(float(_count(port.downs) or 0) for port in ports)
    if "port_errors" in keys:
        facts.values["port_errors"] = tuple(float(sum(_count(path) or 0 for path in port.errors)) for port in ports)
    for port in ports:
        facts.counters[f"port_rx.{port.name}"] = Counter(port.received, at)
        facts.counters[f"port_tx.{port.name}"] = Counter(port.sent, at)
    if not ports:
        facts.values["port_rx"] = facts.values["port_tx"] = ()


class _Port(Value):
    """A network port: the bytes it has carried, and the files that tell the rest."""

    name: str
    place: str
    received: int
    sent: int
    downs: str
    errors: Sequence[str]

    def state(self) -> str:
        up = (read_text(f"{self.place}/operstate") or "").strip()
        return "active" if up == "up" else up or "unknown"

    def speed(self) -> float:
        return (_count(f"{self.place}/speed") or 0) * 1e6 / 8


class _InfinibandPort(_Port):
    """An InfiniBand or RoCE port."""

    def state(self) -> str:
        return (read_text(f"{self.place}/state") or "").rpartition(":")[2].strip().lower() or "unknown"

    def speed(self) -> float:
        gigabits = (read_text(f"{self.place}/rate") or "").split()[:1]
        return float(gigabits[0]) * 1e9 / 8 if gigabits and self.state() == "active" else 0.0


def _infiniband(root: str) -> Iterator[_Port]:
    """Walk the InfiniBand and RoCE ports; one without counters is left out, as is one of a container without rights."""
    folder = f"{root}/sys/class/infiniband"
    for device in sorted(names(folder), key=lambda name: (len(name), name)):
        for number in sorted(names(f"{folder}/{device}/ports")):
            port = f"{folder}/{device}/ports/{number}"
            counters = f"{port}/counters"
            received, sent = (_count(f"{counters}/port_{way}_data") for way in ("rcv", "xmit"))
            if received is not None and sent is not None:
                errors = [f"{counters}/{name}" for name in _INFINIBAND_ERRORS]
                count = (received * _WORD, sent * _WORD)
                yield _InfinibandPort(f"{device}/{number}", port, *count, f"{counters}/link_downed", errors)


def _ethernet(root: str) -> Iterator[_Port]:
    """Walk the network interfaces that are hardware."""
    folder = f"{root}/sys/class/net"
    for name in sorted(names(folder)):
        place = f"{folder}/{name}"
        if not os.path.exists(f"{place}/device"):
            continue
        received, sent = (_count(f"{place}/statistics/{way}_bytes") for way in ("rx", "tx"))
        if received is not None and sent is not None:
            errors = [f"{place}/statistics/{kind}" for kind in _ETHERNET_ERRORS]
            yield _Port(name, place, received, sent, f"{place}/carrier_down_count", errors)


def _count(path: str) -> int | None:
    """Read a count; a port that is down says -1 or nothing at all."""
    text = (read_text(path) or "").strip()
    return int(text) if text.isdecimal() else None


_READERS: tuple[tuple[frozenset[str], Callable[[Facts, str, Key], None]], ...] = (
    (_CPU, _read_cpu),
    (_MEMORY, _read_memory),
    (frozenset({"load"}), _read_load),
    (frozenset(_ACTIVITY), lambda facts, root, keys: _read_counts(facts, root, "stat", _ACTIVITY)),
    (frozenset(_PAGING), lambda facts, root, keys: _read_counts(facts, root, "vmstat", _PAGING)),
    (_DISK, lambda facts, root, keys: _read_disks(facts, root, False)),
    (_DISKS, lambda facts, root, keys: _read_disks(facts, root, True)),
    (_NET, _read_network),
    (_PORTS, _read_ports),
)


TOP_KEYS = frozenset({"top_pids", "top_users", "top_commands", "top_cpu", "top_memory", "top_roles"})
_COUNT = 12  # processes by CPU, and as many by memory
_OTHERS = 4  # of them without a GPU, even if many workers use more
_EVERY = 1.9  # seconds between two walks over /proc, which take about 10 ms per thousand processes
_LONGEST = 400  # characters of a command


class TopProcess(Value):
    """One of the top processes: `cpu` in percent of one core, `memory` in bytes, `role` gpu, worker or other."""

    pid: int
    cpu: float
    memory: int
    role: str


class TopProcesses:
    """Compares the CPU time of all processes between two walks over /proc; the first walk only counts."""

    def __init__(self, ticks: int, page: int) -> None:
        self._ticks = ticks
        self._page = page
        self._before: dict[tuple[int, int], int] = {}
        self._at = float("-inf")
        self._found: list[TopProcess] | None = None

    def is_due(self) -> bool:
        """Return whether the last walk is old enough for another one."""
        return time.monotonic() - self._at >= _EVERY

    def count(self, stats: Mapping[int, Stat], gpu_pids: Collection[int]) -> None:
        """Take a walk over all processes."""
        now = time.monotonic()
        passed = now - self._at
        ticks = {(pid, stat.started): stat.cpu for pid, stat in stats.items()}
        if self._before:
            used = {
                pid: 100.0 * (stat.cpu - self._before.get((pid, stat.started), stat.cpu)) / self._ticks / passed
                for pid, stat in stats.items()
            }
            self._found = self._chosen(stats, used, frozenset(gpu_pids))
        self._before, self._at = ticks, now

    def _chosen(
        self, stats: Mapping[int, Stat], used: Mapping[int, float], gpu_pids: frozenset[int]
    ) -> list[TopProcess]:
        by_cpu = sorted(stats, key=lambda pid: -used[pid])[:_COUNT]
        by_memory = sorted(stats, key=lambda pid: -stats[pid].resident)[:_COUNT]
        roles = {pid: _role(pid, stats, gpu_pids) for pid in stats}
        others = sorted((pid for pid in stats if roles[pid] == "other"), key=lambda pid: -used[pid])[:_OTHERS]
        both = sorted({*by_cpu, *by_memory, *others}, key=lambda pid: (-used[pid], -stats[pid].resident))
        return [TopProcess(pid, round(used[pid], 1), stats[pid].resident * self._page, roles[pid]) for pid in both]

    def add_to(self, facts: Facts, describe: Callable[[int], tuple[str, str] | None]) -> None:
        """Add the lists to the facts of the host; `describe` gives user and command of a process, None if it has ended."""
        if self._found is None:
            facts.gaps.update(dict.fromkeys(TOP_KEYS, "pending"))
            return
        known = [(process, about) for process in self._found if (about := describe(process.pid)) is not None]
        facts.values["top_pids"] = tuple(float(process.pid) for process, _ in known)
        facts.values["top_users"] = tuple(user for _, (user, _) in known)
        facts.values["top_commands"] = tuple(command[:_LONGEST] for _, (_, command) in known)
        facts.values["top_cpu"] = tuple(process.cpu for process, _ in known)
        facts.values["top_memory"] = tuple(float(process.memory) for process, _ in known)
        facts.values["top_roles"] = tuple(process.role for process, _ in known)


def _role(pid: int, stats: Mapping[int, Stat], gpu_pids: frozenset[int]) -> str:
    """Return gpu for a process that uses a GPU, worker for a descendant of one, and other for the rest."""
    if pid in gpu_pids:
        return "gpu"
    seen = {pid}
    while pid in stats and (pid := stats[pid].parent) not in seen:
        if pid in gpu_pids:
            return "worker"
        seen.add(pid)
    return "other"


# Beginnings of kernel functions and what a thread waits for in them; the longest one that fits decides.
_WAITS = {
    "lock": ("futex", "do_futex"),
    "sleep": ("hrtimer_nanosleep", "do_nanosleep", "common_nsleep"),
    "poll": ("ep_poll", "do_epoll", "poll_schedule", "do_poll", "do_sys_poll", "do_select", "io_cqring_wait"),
    "pipe": ("pipe_", "anon_pipe_", "wait_for_partner"),
    "driver": ("nv", "_nv", "uvm", "os_acquire_", "rm_", "amdgpu", "amdkfd", "kfd_", "ttm_", "dma_fence", "dma_resv", "xe_", "i915_"),
    "disk": (
        *("io_schedule", "folio_wait", "wait_on_page", "__folio_lock", "__lock_page", "filemap_", "rq_qos_wait", "wbt_wait"),
        *("blk_", "bio_", "submit_bio", "wait_on_buffer", "__wait_on_buffer", "balance_dirty", "swap_", "nvme", "nvfs", "md_"),
        *("jbd2_", "ext4_", "xfs_", "xlog_", "btrfs_", "zio_", "txg_", "dio_", "iomap_dio", "__iomap_dio", "wait_log_commit"),
    ),
    # sockets, and file systems whose data is on another machine or in another process
    "network": (
        *("sk_wait", "sk_stream", "__skb_wait", "skb_wait", "wait_for_packet", "inet_", "tcp_", "udp_", "unix_", "vsock_", "virtio_vsock"),
        *("nfs", "rpc_", "__rpc_", "fuse", "request_wait_answer", "ceph_", "cifs_", "smb", "p9_", "v9fs_", "netfs_", "afs_"),
        *("ptlrpc_", "ll_", "osc_", "cl_sync_io", "cxiWait", "beegfs_", "FhgfsOps_"),
    ),
}  # fmt: skip
_WORDS = {beginning: word for word, beginnings in _WAITS.items() for beginning in beginnings}
_LENGTHS = sorted({len(beginning) for beginning in _WORDS}, reverse=True)
RUNNING, BLOCKED = "R", "D"


@lru_cache(maxsize=256)  # threads wait in few places, and finding the word takes 5 µs
def thread_state(state: str, wchan: str) -> str | None:
    """Return the word of the catalog's `thread_state`; None for a thread that has ended.

    `wchan` is 0 or empty for a thread that runs, and where the kernel does not show it: to other users, in some containers.
    """
    if state == RUNNING:
        return "running"
    if state in ("T", "t"):
        return "stopped"
    if state in ("S", "D", "I"):
        known = (word for length in _LENGTHS if (word := _WORDS.get(wchan[:length])) is not None)
        return next(known, "disk" if state == BLOCKED else "waiting")
    return None
