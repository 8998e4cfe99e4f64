"""NVLink by link, and where a GPU sits: CPU and NUMA affinity, the way to each other GPU and to network devices."""

from __future__ import annotations

import os
import time
from ctypes import byref, c_uint, c_ulong, sizeof

from ..files import names, read_text
from .nvml import NOT_SUPPORTED, SUCCESS, Reader, computed, field_number, gap_of, settle
from .structures import FieldValue, PciInfo
from .unified import power_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..base import Facts
    from .nvml import Bound, Nvml

_MOST_LINKS, _MOST_CPUS = 18, 4096
_WIDTH = 8 * sizeof(c_ulong)
_SWITCH = 2  # the kind of device at the other end of a link
# By link: field number, and what takes it to the catalog's unit.
_FIELDS = {
    "nvlink_speeds": (164, 1_000_000), "nvlink_tx_links": (138, 1024), "nvlink_rx_links": (139, 1024),
    "nvlink_replay_links": (161, 1), "nvlink_recovery_links": (162, 1), "nvlink_crc_links": (163, 1),
}  # fmt: skip
_TOTALS = {"nvlink_crc_errors": 163, "nvlink_replay_errors": 161, "nvlink_recovery_errors": 162}
_ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_P2P = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
_P2P_KINDS = 5


def _states(nvml: Nvml, handle: Any) -> tuple[int, list[int]]:
    """Return a code and the state of each link; a GPU without any says that it is not supported."""
    out, states, code = c_uint(), [], NOT_SUPPORTED
    for link in range(_MOST_LINKS):
        code = nvml.call("nvmlDeviceGetNvLinkState", handle, link, byref(out))
        if code != SUCCESS or out.value > 1:
            break
        states.append(out.value)
    return (SUCCESS if states else code or NOT_SUPPORTED), states


def _each_link(nvml: Nvml, handle: Any, identifier: int, links: int) -> tuple[int, list[int | None]]:
    """Return a code and the value of a field for each link, None for one that does not answer."""
    fields = (FieldValue * links)()
    for link, entry in enumerate(fields):
        entry.fieldId, entry.scopeId = identifier, link
    code = nvml.call("nvmlDeviceGetFieldValues", handle, links, fields)
    return code, [None if code or one.nvmlReturn else field_number(one) for one in fields]


def _bind_count(nvml: Nvml, handle: Any) -> Bound:
    def read(facts: Facts) -> int:
        code, states = _states(nvml, handle)
        settle(facts, "nvlink_links", code, None if code else states.count(1))
        return code

    return read


def _bind_errors(nvml: Nvml, handle: Any) -> Bound:
    def read(facts: Facts) -> int:
        code, states = _states(nvml, handle)
        for key, identifier in _TOTALS.items():
            failed, values = (code, []) if code else _each_link(nvml, handle, identifier, len(states))
            known = [value for value in values if value is not None]
            settle(facts, key, failed, sum(known) if known else None)
        return code

    return read


def _bind_links(nvml: Nvml, handle: Any) -> Bound:
    def read(facts: Facts) -> int:
        code, states = _states(nvml, handle)
        settle(facts, "nvlink_states", code, tuple(states))
        for key, (identifier, scale) in _FIELDS.items():
            failed, values = (code, []) if code else _each_link(nvml, handle, identifier, len(states))
            # a link that is down may say nothing, which is 0; one that is up and says nothing leaves no answer
            known = not any(value is None and up for value, up in zip(values, states, strict=False))
            settle(facts, key, failed, tuple((value or 0) * scale for value in values) if known else None)
        return code

    return read


def _capabilities(nvml: Nvml, handle: Any) -> tuple[int, tuple[Any, ...]]:
    code, states = _states(nvml, handle)
    pci, words, remotes = PciInfo(), [], []
    for link in range(len(states)):
        digits = ""
        for kind in range(6):
            failed, able = nvml.number("nvmlDeviceGetNvLinkCapability", handle, link, kind)
            digits += "?" if failed else str(min(able, 1))
        words.append(digits)
        failed = nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, byref(pci))
        remotes.append("" if failed else pci.busId.decode("ascii", "backslashreplace"))
    return code, (tuple(words), tuple(remotes))


def _bind_affinity(nvml: Nvml, handle: Any) -> Bound:
    cpus, nodes = (c_ulong * (_MOST_CPUS // _WIDTH))(), (c_ulong * 16)()

    def read(facts: Facts) -> int:
        codes = [code := nvml.call("nvmlDeviceGetCpuAffinity", handle, len(cpus), cpus)]
        folder = _folder(_bus_id(nvml, handle))
        near = _ranges(cpus) if code == SUCCESS else read_text(f"{folder}/local_cpulist") or ""
        settle(facts, "cpu_affinity", SUCCESS if near else code, near or None)
        codes.append(code := nvml.call("nvmlDeviceGetMemoryAffinity", handle, len(nodes), nodes, 0))
        said = read_text(f"{folder}/numa_node") or ""
        spans = _spans(nodes) if code == SUCCESS else [(int(said), int(said))] if said.isdecimal() else []
        node = spans[0][0] if spans else None
        settle(facts, "numa_affinity", SUCCESS if node is not None else code, node)
        code, own = nvml.number("nvmlDeviceGetNumaNodeId", handle)
        settle(facts, "own_numa_node", code, own)
        return min(*codes, code)  # what comes from sysfs does not show that the driver answers

    return read


def _between(key: str, find: Callable[[Nvml, Any], tuple[int, list[str]]]) -> Reader:
    """What is between a GPU and the others; it is not read while one of them sleeps: asking about it would wake it."""

    def bind(nvml: Nvml, handle: Any) -> Bound:
        def read(facts: Facts) -> int:
            if _one_sleeps(_root()):
                facts.gaps[key] = "asleep"
                return NOT_SUPPORTED
            code, words = find(nvml, handle)
            settle(facts, key, code, tuple(words))
            return code or nvml.number("nvmlDeviceGetIndex", handle)[0]

        return read

    return Reader((key,), bind)


_SLEEP_KNOWN = 1.0  # seconds
_sleep: dict[str, tuple[float, bool]] = {}  # when it was last looked up, and the answer, by root


def _one_sleeps(root: str) -> bool:
    """Return whether any GPU sleeps; all GPUs ask one after another, and it takes two files of each."""
    now = time.monotonic()
    if root not in _sleep or now - _sleep[root][0] > _SLEEP_KNOWN:
        _sleep[root] = (now, any(power_states(root).values()))
    return _sleep[root][1]


def _topology(nvml: Nvml, handle: Any) -> tuple[int, list[str]]:
    code, switched, direct = _own_links(nvml, handle)
    if code:  # without its links it would look as if there were only PCIe
        return code, []
    ways = []
    for index, other, bus_id in _others(nvml, handle):
        links = switched or direct.count(bus_id)
        ways.append(f"GPU{index}:{f'NV{links}' if links else _ancestor(nvml, handle, other)}")
    folder = _folder(_bus_id(nvml, handle))
    return SUCCESS, ways + [f"{name}:{_way_by_path(folder, nic)}" for name, nic in _network_devices()]


def _p2p(nvml: Nvml, handle: Any) -> tuple[int, list[str]]:
    return SUCCESS, [
        f"GPU{index}:{','.join(_peer(nvml, handle, other))},{_ancestor(nvml, handle, other)}"
        for index, other, _ in _others(nvml, handle)
    ]


def _network_devices() -> list[tuple[str, str]]:
    """Return the InfiniBand and RoCE devices of this machine with their places in sysfs, in the order of their names."""
    root = f"{_root()}/sys/class/infiniband"
    found = sorted(names(root), key=lambda name: (len(name), name))
    return [(name, os.path.realpath(f"{root}/{name}/device")) for name in found]


def _others(nvml: Nvml, handle: Any) -> Iterator[tuple[int, Any, str]]:
    """Yield index, handle and bus id of the other GPUs that could be opened: looking one up that hangs would hang this one, too."""
    for index, (other, bus_id) in sorted(nvml.opened.items()):
        if other.value != handle.value:
            yield index, other, bus_id


def _own_links(nvml: Nvml, handle: Any) -> tuple[int, int, list[str]]:
    """Return a code, how many links of a GPU lead to a switch, and the bus ids of the GPUs that the others lead to.

    Only this GPU is asked: another one that hangs must not take it along.
    """
    code, states = _states(nvml, handle)
    if code and gap_of(code) != "unsupported":
        return code, 0, []
    kind, pci, switched = c_uint(), PciInfo(), 0
    direct: list[str] = []
    for link in (at for at, state in enumerate(states) if state == 1):
        failed = nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", handle, link, byref(kind))
        if failed:
            return failed, 0, []
        if kind.value == _SWITCH:
            switched += 1
        elif nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, link, byref(pci)) == SUCCESS:
            direct.append(pci.busId.decode("ascii", "backslashreplace").lower())
    return SUCCESS, switched, direct


def _ancestor(nvml: Nvml, handle: Any, other: Any) -> str:
    code, ancestor = nvml.number("nvmlDeviceGetTopologyCommonAncestor", handle, other)
    return _ANCESTORS.get(ancestor, "SYS") if code == SUCCESS else "N/A"


def _peer(nvml: Nvml, handle: Any, other: Any) -> Iterator[str]:
    for kind in range(_P2P_KINDS):
        code, status = nvml.number("nvmlDeviceGetP2PStatus", handle, other, kind)
        yield _P2P[status] if code == SUCCESS and status < len(_P2P) else "U"


def _way_by_path(one: str, other: str) -> str:
    """Return what is between two PCI devices, from their real places in sysfs."""
    first, second = os.path.realpath(one).split("/"), other.split("/")
    common = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    root = next((at for at, part in enumerate(first) if part.startswith("pci")), len(first))
    if common > root + 1:
        return "PIX" if len(first) - common + len(second) - common <= 4 else "PXB"
    if common == root + 1:
        return "PHB"
    same = read_text(f"{one}/numa_node") == read_text(f"{other}/numa_node")
    return "NODE" if same else "SYS"


def _bus_id(nvml: Nvml, handle: Any) -> str:
    pci = PciInfo()
    code = nvml.call("nvmlDeviceGetPciInfo_v3", handle, byref(pci))
    return "" if code else pci.busId.decode("ascii", "backslashreplace").lower()


def _folder(bus_id: str) -> str:
    """Return the place of a PCI device in sysfs, whose domains have four digits, NVML's eight."""
    domain, _, rest = bus_id.partition(":")
    return f"{_root()}/sys/bus/pci/devices/{domain[-4:]}:{rest}"


def _root() -> str:
    return os.environ.get("GPULSE_ROOT", "")


def _spans(words: Any) -> list[tuple[int, int]]:
    """Return the first and the last number of each row of set bits."""
    # as text, which is searched many times faster; every machine with these GPUs is little-endian
    bits = f"{int.from_bytes(bytes(words), 'little'):b}"[::-1] + "0"
    spans, last = [], -1
    while (first := bits.find("1", last + 1)) >= 0:
        last = bits.index("0", first) - 1
        spans.append((first, last))
    return spans


def _ranges(words: Any) -> str:
    """Write the numbers of set bits as 0-15,32-47."""
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in _spans(words))


# Apart, because an error counter takes 110 µs per link: 6 ms for the three of a GPU with 18 links, their states 15 µs.
NVLINK_TOTALS = (Reader(("nvlink_links",), _bind_count), Reader(tuple(_TOTALS), _bind_errors))
FABRIC_READERS: tuple[Reader, ...] = (
    Reader(("nvlink_states", *_FIELDS), _bind_links),
    computed(("nvlink_capabilities", "nvlink_remotes"), _capabilities),
)
PLACE: tuple[Reader, ...] = (
    Reader(("cpu_affinity", "numa_affinity", "own_numa_node"), _bind_affinity),
    _between("topology", _topology),
    _between("p2p", _p2p),
)
