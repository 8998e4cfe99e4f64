"""topo and nvlink: how GPUs, network devices and CPUs are connected, and the state of each link, in nvidia-smi's layout."""

from __future__ import annotations

from ....model.select import Wanted
from ....present.text import clean
from ..field import gpu_index, gpu_title, whole_or
from ..views import View
from .failure import INVALID, SmiExit, no_devices
from .grammar import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot


_LEGEND = (
    "", "Legend:", "",
    "  X    = Self",
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)",
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node",
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)",
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
    "  PIX  = Connection traversing at most a single PCIe bridge",
    "  NV#  = Connection traversing a bonded set of # NVLinks",
)  # fmt: skip
_P2P_LEGEND = (
    "", "Legend:", "", "  X    = Self", "  OK   = Status Ok", "  CNS  = Chipset not supported",
    "  GNS  = GPU not supported", "  TNS  = Topology not supported", "  NS   = Not supported", "  U    = Unknown",
)  # fmt: skip
_P2P_LETTERS = "rwnap"
_LEVELS = (("PIX",), ("PIX",), ("PXB",), ("PHB",), ("NODE",), ("SYS",))
_LEVEL_WORDS = (
    "an single on-board PCIe switch", "a single PCIe switch", "multiple PCIe switches", "a PCIe host bridge",
    "an on-CPU interconnect link between PCIe host bridges", "an SMP interconnect link between NUMA nodes",
)  # fmt: skip
_UNDERLINED, _PLAIN = "\033[4m", "\033[0m"


class Topology(View):
    """The answer to one topo command."""

    def __init__(self, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        self._options = options = Options("topo", words)
        kind = options.get("--p2pstatus")
        if kind is not None and (len(kind) != 1 or kind not in _P2P_LETTERS):
            raise SmiExit("Invalid p2p capability index specified at the command-line", INVALID)
        self._kind = -1 if kind is None else _P2P_LETTERS.index(kind)
        for name, what in (("--get-numa-id-of-nearby-cpu", "CPU"), ("--get-numa-id-of-nearby-mem", "memory")):
            if name in options and len(options.ids or ()) != 1:
                text = f"NUMA ID of nearest {what} must be used in conjunction with the -i argument which must be a single identifier.\n"
                raise SmiExit(text, INVALID)
        if "--gpu_path" in options and len(options.ids or ()) != 2:
            text = "Path command line flag must be used in conjection with the -i argument which must be two GPU identifiers.\n"
            raise SmiExit(text, INVALID)
        self._asked = options.ids or []
        self.wanted = Wanted({"index", "uuid", "topology", "p2p", "cpu_affinity", "numa_affinity", "own_numa_node"})

    def lines(self, snapshot: Snapshot) -> list[str]:
        options, gpus = self._options, snapshot.gpus
        if self._kind >= 0:
            return _p2p(gpus, self._kind)
        if "--matrix" in options or "--matrix_pci" in options:
            return _matrix(gpus, _pci_ways if "--matrix_pci" in options else _ways)
        if (cpu := options.get("--cpu")) is not None:
            near = [gpu_index(gpu) for gpu in gpus if _holds(gpu.cpu_affinity or "", cpu)]
            return [f"The GPUs that have an affinity with CPU {clean(cpu)} are:", ", ".join(near), ""]
        chosen = [gpu for gpu in gpus if gpu_index(gpu) in self._asked] or list(gpus[:1])
        if (level := options.get("--nearest_gpus")) is not None:
            return self._nearest(chosen[0], level)
        if "--gpu_path" in options:
            return self._path(chosen)
        return _node(chosen[0], "--gpu-numa-id" in options, "--get-numa-id-of-nearby-mem" in options)

    def _nearest(self, gpu: Gpu, level: str) -> list[str]:
        if not level.isdecimal() or len(level) > 1 or int(level) >= len(_LEVELS):
            raise SmiExit(f"The level {clean(level)!r} is not between 0 and {len(_LEVELS) - 1}.", INVALID)
        ways, words = _LEVELS[int(level)], _LEVEL_WORDS[int(level)]
        near = [name[3:] for name, way in _ways(gpu).items() if name.startswith("GPU") and way in ways]
        if not near:
            return [f"Device {gpu_index(gpu)} is not connected to other devices by way of {words}.", ""]
        return [f"The following GPUs are connected to GPU {gpu_index(gpu)} by way of {words}:", ", ".join(near), ""]

    def _path(self, chosen: list[Gpu]) -> list[str]:
        if len(chosen) != 2:
            raise no_devices()
        one, other = chosen
        way = _ways(one).get(f"GPU{gpu_index(other)}", "N/A")
        return [f"Device {gpu_index(one)} is connected to device {gpu_index(other)} by way of {way}.", ""]


def _ways(gpu: Gpu) -> dict[str, str]:
    return {name: way for name, _, way in (word.partition(":") for word in gpu.topology or ())}


def _pci_ways(gpu: Gpu) -> dict[str, str]:
    """Return the ways to others without NVLink: the last word of what two GPUs can do with each other."""
    peers = (word.partition(":") for word in gpu.p2p or ())
    return {**_ways(gpu), **{name: rest.rpartition(",")[2] for name, _, rest in peers}}


def _way(ways: dict[str, dict[str, str]], name: str, other: str) -> str:
    """Return how two are connected; links count only as far as they are up at both ends."""
    there, back = ways[name].get(other, "N/A"), ways.get(other, {}).get(name, "")
    return min(there, back, key=lambda way: int(way[2:])) if _is_nvlink(there) and _is_nvlink(back) else there


def _is_nvlink(way: str) -> bool:
    return way.startswith("NV") and way[2:].isdecimal()


def _matrix(gpus: Sequence[Gpu], ways_of: Callable[[Gpu], dict[str, str]]) -> list[str]:
    names = [f"GPU{gpu_index(gpu)}" for gpu in gpus]
    ways = {f"GPU{gpu_index(gpu)}": ways_of(gpu) for gpu in gpus}
    devices = [name for name in (ways[names[0]] if names else {}) if not name.startswith("GPU")]
    nics = [f"NIC{at}" for at in range(len(devices))]
    head = "\t".join([*names, *nics, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [f"\t{_UNDERLINED}{head}{_PLAIN}"]
    for gpu, name in zip(gpus, names, strict=True):
        cells = [" X " if other == name else _way(ways, name, other) for other in (*names, *devices)]
        near = clean(gpu.cpu_affinity or "N/A")
        lines.append("\t".join([name, *cells, near, whole_or(gpu.numa_affinity), "", whole_or(gpu.own_numa_node)]))
    for nic, device in zip(nics, devices, strict=True):
        cells = [ways[name].get(device, "N/A") for name in names]
        lines.append("\t".join([nic, *cells, *(" X " if other == nic else "-" for other in nics), "", "", "", ""]))
    legend = [f"  {nic}: {clean(device)}" for nic, device in zip(nics, devices, strict=True)]
    meaning = _LEGEND if ways_of is _ways else _LEGEND[:-1]
    return [*lines, *meaning, *(["", "NIC Legend:", "", *legend, ""] if legend else [])]


def _p2p(gpus: Sequence[Gpu], kind: int) -> list[str]:
    names = [f"GPU{gpu_index(gpu)}" for gpu in gpus]
    lines = [f" \t{_UNDERLINED}" + "".join(f"{name}\t" for name in names) + _PLAIN]
    for gpu, name in zip(gpus, names, strict=True):
        peers = {other: rest.split(",") for other, _, rest in (word.partition(":") for word in gpu.p2p or ())}
        cells = ["X" if other == name else _at(peers.get(other, []), kind) for other in names]
        lines.append(f" {name}\t" + "".join(f"{cell}\t" for cell in cells))
    return [*lines, *_P2P_LEGEND]


def _at(statuses: list[str], kind: int) -> str:
    return statuses[kind] if kind < len(statuses) else "U"


def _node(gpu: Gpu, own: bool, memory: bool) -> list[str]:
    node = gpu.own_numa_node if own else gpu.numa_affinity
    if own:
        return [f"NUMA ID of GPU {gpu_index(gpu)}: {whole_or(node)}"]
    return [f"NUMA IDs of closest {'memory' if memory else 'CPU'}: {whole_or(node)}"]


def _holds(ranges: str, cpu: str) -> bool:
    """Tell whether 0-15,32-47 holds a CPU."""
    parts = (part.partition("-") for part in ranges.split(",") if part[:1].isdecimal())
    spans = [(int(first), int(last or first)) for first, _, last in parts]
    return cpu.isdecimal() and len(cpu) < 10 and any(low <= int(cpu) <= high for low, high in spans)


_CAPABILITIES = (
    "P2P is supported", "Access to system memory supported", "P2P atomics supported", "System memory atomics supported",
    "SLI is supported", "Link is supported",
)  # fmt: skip
_ERRORS = (("Replay", "nvlink_replay_links"), ("Recovery", "nvlink_recovery_links"), ("CRC", "nvlink_crc_links"))
_TRAFFIC = (("Data Tx", "nvlink_tx_links"), ("Data Rx", "nvlink_rx_links"))
_KEYS = frozenset({
    "index", "uuid", "name", "nvlink_states", "nvlink_speeds", "nvlink_capabilities", "nvlink_remotes",
    *(key for _, key in (*_ERRORS, *_TRAFFIC)),
})  # fmt: skip


class LinkView(View):
    """The answer to one nvlink command."""

    def __init__(self, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        self._options = Options("nvlink", words)
        self.ids = self._options.ids
        self.wanted = Wanted(_KEYS)

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot; a GPU without NVLink has none, as with nvidia-smi."""
        lines = []
        for gpu in snapshot.gpus:
            if gpu.nvlink_states:
                lines.append(gpu_title(gpu))
                lines += self._links(gpu, len(gpu.nvlink_states))
        return lines

    def _links(self, gpu: Gpu, count: int) -> list[str]:
        lines: list[str] = []
        for link in range(count):
            if (self._options.get("--link") or str(link)) == str(link):
                lines += [f"\t Link {link}{text}" if text else "" for text in self._texts(gpu, link)]
        return lines

    def _texts(self, gpu: Gpu, link: int) -> list[str]:
        options = self._options
        if "--capabilities" in options:
            digits = (gpu.nvlink_capabilities or ())[link : link + 1] or ("??????",)
            words = {"0": "false", "1": "true"}
            return [f", {name}: {words.get(one, 'N/A')}" for name, one in zip(_CAPABILITIES, digits[0], strict=False)]
        if "--errorcounters" in options:
            return [*(f": {name} Errors: {whole_or(_value(gpu, key, link))}" for name, key in _ERRORS), ""]
        if "--getthroughput" in options:
            return [f": {name}: {_kibibytes(gpu, key, link)}" for name, key in _TRAFFIC]
        if "--pcibusid" in options or "--remotelinkinfo" in options:
            return [f": {clean(((gpu.nvlink_remotes or ())[link : link + 1] or ('',))[0]) or 'N/A'}"]
        return [f": {_speed(gpu, link)}"]


def _value(gpu: Gpu, key: str, link: int) -> float | None:
    values = gpu.get(key)
    found = values[link] if isinstance(values, tuple) and link < len(values) else None
    return found if isinstance(found, (int, float)) else None


def _kibibytes(gpu: Gpu, key: str, link: int) -> str:
    value = _value(gpu, key, link)
    return "N/A" if value is None else f"{value // 1024:.0f} KiB"


def _speed(gpu: Gpu, link: int) -> str:
    if not _value(gpu, "nvlink_states", link):
        return "<inactive>"
    value = _value(gpu, "nvlink_speeds", link)
    return "N/A" if value is None else f"{value / 1e9:.3f}".rstrip("0").rstrip(".") + " GB/s"
