"""What an AMD card is: its names and ids, and what the compute driver (KFD) says of it and its processes."""

from __future__ import annotations

from ..base import Facts
from ..drm.cards import amd_name, pci_name
from ..drm.clients import by_pid, engine_share, memory_held
from ..files import names, read_int, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...model.metric import Value
    from ..base import Key
    from ..drm.cards import Card
    from ..drm.clients import ClientUse

IDENTITY_KEYS = frozenset(
    {"index", "ordinal", "uuid", "name", "vendor", "architecture", "pci_bus_id", "serial", "vbios", "driver_version"}
)
# PCI ids of chips with a CPU, for those whose gpu_metrics do not tell: Kaveri to Raven have none.
_APU_RANGES = (
    (0x1304, 0x131D), (0x1360, 0x1367),  # Kaveri
    (0x9640, 0x964F), (0x9802, 0x980A), (0x9900, 0x99A4),  # Llano, Ontario, Trinity (radeon)
    (0x9830, 0x983F), (0x9850, 0x985F), (0x9870, 0x9877), (0x98E4, 0x98E4),  # Kabini to Stoney
    (0x164C, 0x164E), (0x1900, 0x1901), (0x13F9, 0x13FF),
)  # fmt: skip
_APUS = frozenset({
    0x15D8, 0x15DD, 0x1636, 0x1638, 0x15E7, 0x163F, 0x1681, 0x1506, 0x1435, 0x15BF, 0x15C8, 0x150E, 0x1586, 0x1114, 0x13C0,
    0x143F, 0x74A0,
})  # fmt: skip
_NAMES = {
    (0x67DF, 0xE7): "Radeon RX 580", (0x67DF, 0xC7): "Radeon RX 480", (0x67DF, 0xCF): "Radeon RX 470",
    (0x67DF, 0xEF): "Radeon RX 570", (0x67DF, 0xE1): "Radeon RX 590", (0x687F, 0xC3): "Radeon RX Vega 56",
    (0x687F, 0xC1): "Radeon RX Vega 64", (0x66AF, 0xC1): "Radeon VII", (0x731F, 0xC1): "Radeon RX 5700 XT",
    (0x731F, 0xC4): "Radeon RX 5700", (0x7340, 0xC5): "Radeon RX 5500 XT", (0x73BF, 0xC0): "Radeon RX 6900 XT",
    (0x73BF, 0xC1): "Radeon RX 6800 XT", (0x73BF, 0xC3): "Radeon RX 6800", (0x73DF, 0xC1): "Radeon RX 6700 XT",
    (0x73FF, 0xC7): "Radeon RX 6600", (0x73FF, 0xC1): "Radeon RX 6600 XT", (0x744C, 0xC8): "Radeon RX 7900 XTX",
    (0x744C, 0xCC): "Radeon RX 7900 XT", (0x747E, 0xC8): "Radeon RX 7800 XT", (0x747E, 0xFF): "Radeon RX 7700 XT",
    (0x7480, 0xCF): "Radeon RX 7600", (0x7480, 0xC1): "Radeon RX 7700S", (0x7480, 0xC3): "Radeon RX 7600S",
    (0x7550, 0xC0): "Radeon RX 9070 XT", (0x7550, 0xC3): "Radeon RX 9070", (0x7551, 0xC0): "Radeon AI PRO R9700",
}  # fmt: skip
_FAMILIES = {
    0x67DF: "Radeon RX 470/480/570/580/590", 0x687F: "Radeon RX Vega", 0x738C: "Instinct MI100", 0x7408: "Instinct MI250X",
    0x740C: "Instinct MI250/MI250X", 0x740F: "Instinct MI210", 0x74A0: "Instinct MI300A", 0x74A1: "Instinct MI300X",
    0x74A2: "Instinct MI308X", 0x74A5: "Instinct MI325X", 0x75A0: "Instinct MI350X", 0x75A3: "Instinct MI355X",
    0x731F: "Radeon RX 5600/5700", 0x7340: "Radeon RX 5500", 0x73BF: "Radeon RX 6800/6900", 0x73DF: "Radeon RX 6700",
    0x73FF: "Radeon RX 6600", 0x744C: "Radeon RX 7900", 0x747E: "Radeon RX 7700/7800 XT", 0x7480: "Radeon RX 7600",
    0x7550: "Radeon RX 9070", 0x7551: "Radeon AI PRO R9700", 0x15DD: "Radeon Vega (Raven Ridge)",
    0x15D8: "Radeon Vega (Picasso)", 0x1636: "Radeon Vega (Renoir)", 0x1638: "Radeon Vega (Cezanne)",
    0x163F: "Radeon 0405 (Van Gogh)", 0x1681: "Radeon 680M", 0x164E: "Radeon 610M (Raphael)", 0x15BF: "Radeon 780M",
    0x15C8: "Radeon 740M", 0x1900: "Radeon 780M", 0x150E: "Radeon 890M", 0x1586: "Radeon 8060S", 0x1114: "Radeon 860M",
}  # fmt: skip
_ARCHITECTURES = (
    ((9, 0, 8), (9, 0, 8), "CDNA"), ((9, 0, 10), (9, 0, 10), "CDNA 2"), ((9, 4, 0), (9, 4, 9), "CDNA 3"),
    ((9, 5, 0), (9, 5, 9), "CDNA 4"), ((7, 0, 0), (7, 9, 9), "GCN 2"), ((8, 0, 0), (8, 9, 9), "GCN 3/4"),
    ((9, 0, 0), (9, 0, 12), "Vega"), ((10, 1, 0), (10, 2, 99), "RDNA"), ((10, 3, 0), (10, 9, 99), "RDNA 2"),
    ((11, 0, 0), (11, 4, 99), "RDNA 3"), ((11, 5, 0), (11, 9, 99), "RDNA 3.5"), ((12, 0, 0), (12, 9, 99), "RDNA 4"),
)  # fmt: skip


def identify(card: Card, index: int, node: Node | None, root: str) -> dict[str, Value]:
    """Return the identity of a card; reading it wakes nothing. Values the board does not provide are left out."""
    values: dict[str, Value] = {"index": index, "vendor": "amd", "name": _name(card, root)}
    if card.slot:
        values["pci_bus_id"] = card.slot
    values["uuid"] = _uuid(card, node)
    if node is not None:
        values["ordinal"] = node.position
    for key, file in (("serial", "serial_number"), ("vbios", "vbios_version")):
        if text := read_text(f"{card.device}/{file}", 256):
            values[key] = text
    if architecture := _architecture(card, node):
        values["architecture"] = architecture
    if version := driver_version(root, card.driver):
        values["driver_version"] = version
    return values


def driver_version(root: str, driver: str) -> str:
    """Return the version of a driver that has one of its own, else that of the kernel it came with."""
    own = read_text(f"{root}/sys/module/{driver}/version", 256) if driver else ""
    return own or read_text(f"{root}/proc/sys/kernel/osrelease", 256) or ""


def is_apu(card: Card, table_format: int | None, node: Node | None) -> bool:
    """Return whether the GPU shares its memory with the CPU: by its tables, by its KFD node, or by its PCI id."""
    if table_format is not None and table_format >= 2:
        return True
    if node is not None and node.properties.get("cpu_cores_count", 0) > 0:
        return True
    return card.device_id in _APUS or any(low <= card.device_id <= high for low, high in _APU_RANGES)


def gfx_version(card: Card, node: Node | None) -> tuple[int, int, int]:
    """Return the version of the graphics core, from KFD or from the chip's IP discovery table; zeros if neither has it."""
    if node is not None and node.gfx[0]:
        return node.gfx
    folder = f"{card.device}/ip_discovery/die/0/GC/0"
    major, minor, step = (read_int(f"{folder}/{word}") for word in ("major", "minor", "revision"))
    return (major, minor or 0, step or 0) if major else (0, 0, 0)


def _architecture(card: Card, node: Node | None) -> str:
    version = gfx_version(card, node)
    if not version[0]:
        return ""
    code = f"gfx{version[0]}{version[1]:x}{version[2]:x}"
    family = next((name for low, high, name in _ARCHITECTURES if low <= version <= high), "")
    return f"{family} ({code})" if family else code


def _uuid(card: Card, node: Node | None) -> str:
    """Return HIP's UUID where the chip has a number of its own, else a name made of its place."""
    own = (read_text(f"{card.device}/unique_id", 64) or "").removeprefix("0x").lower()
    if own and own.strip("0") and all(digit in "0123456789abcdef" for digit in own):
        return f"GPU-{own.rjust(16, '0')}"
    if node is not None and node.unique_id:
        return f"GPU-{node.unique_id:016x}"
    return f"PCI-{card.slot or card.name}"


def _name(card: Card, root: str) -> str:
    said = read_text(f"{card.device}/product_name", 256) or amd_name(root, card.device_id, card.revision)
    known = said or _NAMES.get((card.device_id, card.revision)) or pci_name(root, 0x1002, card.device_id)
    name = known or _FAMILIES.get(card.device_id) or f"GPU {card.device_id:04x}"
    return name if name.upper().startswith(("AMD", "ATI")) else f"AMD {name}"


def has_display(card: Card) -> bool | None:
    """Return whether a connector of this card drives a display; None where it has no connectors."""
    folder = card.path.rsplit("/", 1)[0]
    connectors = [name for name in names(folder) if name.startswith(f"{card.name}-")]
    states = [read_text(f"{folder}/{name}/enabled", 64) for name in connectors]
    return "enabled" in states if any(states) else None


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
    clients = by_pid(uses)
    computing: dict[int, int] = {}
    for gpu_id in gpu_ids:
        for pid, amount in compute_memory(root, gpu_id).items():
            computing[pid] = computing.get(pid, 0) + amount
    pools = ("vram", "gtt") if apu else ("vram",)
    return {
        pid: _facts(pid, clients.get(pid, []), computing.get(pid), pools, keys)
        for pid in sorted(clients.keys() | computing.keys())
    }


def _facts(pid: int, uses: list[ClientUse], computes: int | None, pools: tuple[str, ...], keys: Key) -> Facts:
    facts = Facts()
    facts.values["pid"] = pid
    facts.values["type"] = _type(uses, computes)
    held = memory_held(uses, pools)
    if computes is not None:  # both lists count the same memory
        held = computes if held is None else max(held, computes)
    facts.put("memory_used", held)
    for key, engines in SHARES.items():
        if key in keys:
            _share(facts, key, engines, uses, computes)
    if "memory_utilization" in keys:
        facts.gaps["memory_utilization"] = "unsupported"
    return facts


def _share(facts: Facts, key: str, engines: tuple[str, ...], uses: list[ClientUse], computes: int | None) -> None:
    names = {name for use in uses for name in use.client.busy if name.startswith(engines)}
    if not names or (computes is not None and key == "sm_utilization"):
        facts.gaps[key] = "unsupported"
    else:
        facts.put(key, engine_share(uses, names), "pending")


def _type(uses: list[ClientUse], computes: int | None) -> str:
    """Tell compute from graphics by the engines that ran; a client that ran nothing yet is graphics."""
    ran = {name for use in uses for name, busy in use.client.busy.items() if busy}
    if computes is not None:
        return "C+G" if any(name.startswith("gfx") for name in ran) else "C"
    return "C" if any(name.startswith("compute") for name in ran) and not any(n.startswith("gfx") for n in ran) else "G"
