"""KFD, the compute driver: its GPU nodes in the order HIP counts them, partitions included, and the processes of a GPU.

Graphics clients come from /proc and compute processes from KFD, joined by pid. ROCm's queues go past the graphics scheduler, so a
compute process has no engine time: its share is a gap, not 0.
"""

from __future__ import annotations

from ..base import Facts
from ..files import names, read_int, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base import Key
    from ..drm.clients import ClientUse

_FOLDER = "/sys/class/kfd/kfd"
_MOST_PIDS = 1 << 22
MEMORY_KEYS = frozenset({"memory_used", "memory_total", "memory_free"})


class Node:
    """One GPU node of the topology: a whole GPU, or one partition of it."""

    __slots__ = ("gpu_id", "path", "position", "properties")

    def __init__(self, path: str, gpu_id: int, position: int) -> None:
        self.path = path
        self.gpu_id = gpu_id
        self.position = position
        self.properties = read_properties(f"{path}/properties")

    @property
    def place(self) -> str:
        """The PCI address without its function: partitions have functions that are not on the bus."""
        location = self.properties.get("location_id", 0)
        return f"{self.properties.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}"

    @property
    def unique_id(self) -> int:
        """The number burnt into the chip; 0 where it has none."""
        return self.properties.get("unique_id", 0)

    @property
    def partition(self) -> int:
        """Which partition of its GPU this is; 0 for a whole GPU."""
        location = self.properties.get("location_id", 0)
        return location >> 28 & 0xF or location & 0x7

    @property
    def gfx(self) -> tuple[int, int, int]:
        """The instruction set, as (9, 4, 2) for gfx942; zeros where the kernel does not say."""
        version = self.properties.get("gfx_target_version", 0)
        return version // 10000, version // 100 % 100, version % 100

    def memory(self) -> dict[str, int | None]:
        """Return the memory metrics of the node's first memory bank, in bytes."""
        bank = f"{self.path}/mem_banks/0"
        used = read_int(f"{bank}/used_memory")
        total = read_properties(f"{bank}/properties").get("size_in_bytes")
        free = None if used is None or total is None else max(0, total - used)
        return {"memory_used": used, "memory_total": total, "memory_free": free}


def read_properties(path: str) -> dict[str, int]:
    """Return a file of `word number` lines."""
    found = {}
    for line in (read_text(path) or "").splitlines():
        word, _, number = line.partition(" ")
        if number.isascii() and number.isdecimal() and len(number) < 21:
            found[word] = int(number)
    return found


def find_nodes(root: str) -> list[Node]:
    """Return the GPU nodes in KFD's order, which is the order of HIP ordinals; nodes without SIMDs are CPUs."""
    folder = f"{root}{_FOLDER}/topology/nodes"
    numbers = sorted(int(name) for name in names(folder) if name.isascii() and name.isdecimal())
    nodes: list[Node] = []
    for number in numbers:
        gpu_id = read_int(f"{folder}/{number}/gpu_id")
        if gpu_id:
            node = Node(f"{folder}/{number}", gpu_id, len(nodes))
            if node.properties.get("simd_count"):
                nodes.append(node)
    return nodes


def compute_memory(root: str, gpu_id: int) -> dict[int, int]:
    """Return, by pid, the bytes of GPU memory that each compute process holds on this node.

    A process that once opened the driver stays in the list; without memory and without a queue it is left out.
    """
    folder = f"{root}{_FOLDER}/proc"
    held: dict[int, int] = {}
    for name in names(folder):
        if not (name.isascii() and name.isdecimal() and 0 < int(name) < _MOST_PIDS):
            continue
        amount = read_int(f"{folder}/{name}/vram_{gpu_id}")
        if amount is not None and (amount > 0 or _has_queue(f"{folder}/{name}/queues", gpu_id)):
            held[int(name)] = max(0, amount)
    return held


def _has_queue(folder: str, gpu_id: int) -> bool:
    return any(read_int(f"{folder}/{queue}/gpuid") == gpu_id for queue in names(folder))


# Keys of a process and the engines whose time they are; the busier of several counts.
SHARES = {"sm_utilization": ("gfx", "compute"), "encoder_utilization": ("enc",), "decoder_utilization": ("dec",)}


def read_processes(
    uses: Iterable[ClientUse], root: str, gpu_ids: Iterable[int], apu: bool, keys: Key
) -> dict[int, Facts]:
    """Return the processes of one GPU by pid; memory on an APU includes what is mapped of the machine's."""
    by_pid: dict[int, list[ClientUse]] = {}
    for use in uses:
        by_pid.setdefault(use.pid, []).append(use)
    computing: dict[int, int] = {}
    for gpu_id in gpu_ids:
        for pid, amount in compute_memory(root, gpu_id).items():
            computing[pid] = computing.get(pid, 0) + amount
    pools = ("vram", "gtt") if apu else ("vram",)
    return {
        pid: _facts(pid, by_pid.get(pid, []), computing.get(pid), pools, keys)
        for pid in sorted(by_pid.keys() | computing.keys())
    }


def _facts(pid: int, uses: list[ClientUse], computes: int | None, pools: tuple[str, ...], keys: Key) -> Facts:
    facts = Facts()
    facts.values["pid"] = pid
    facts.values["type"] = _type(uses, computes)
    amounts = [held for use in uses if (held := use.client.held(*pools)) is not None]
    held = sum(amounts) if amounts else None
    if computes is not None:  # both lists count the same memory
        held = computes if held is None else max(held, computes)
    if held is None:
        facts.gaps["memory_used"] = "unsupported"
    else:
        facts.values["memory_used"] = held
    for key, engines in SHARES.items():
        if key in keys:
            _share(facts, key, engines, uses, computes)
    if "memory_utilization" in keys:
        facts.gaps["memory_utilization"] = "unsupported"
    return facts


def _share(facts: Facts, key: str, engines: tuple[str, ...], uses: list[ClientUse], computes: int | None) -> None:
    names = {name for use in uses for name in use.client.busy if name.startswith(engines)}
    known = [use.shares for use in uses if use.shares is not None]
    if not names or (computes is not None and key == "sm_utilization"):
        facts.gaps[key] = "unsupported"
    elif not known:
        facts.gaps[key] = "pending"
    else:
        sums = [sum(shares.get(name, 0.0) for shares in known) for name in names]
        facts.values[key] = round(min(100.0, max(sums)), 1)


def _type(uses: list[ClientUse], computes: int | None) -> str:
    """Tell compute from graphics by the engines that ran; a client that ran nothing yet is graphics."""
    ran = {name for use in uses for name, busy in use.client.busy.items() if busy}
    if computes is not None:
        return "C+G" if any(name.startswith("gfx") for name in ran) else "C"
    return "C" if any(name.startswith("compute") for name in ran) and not any(n.startswith("gfx") for n in ran) else "G"
