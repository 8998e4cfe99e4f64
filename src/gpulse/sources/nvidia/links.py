"""PCIe and NVLink traffic on GPUs without GPM: from byte counters, never from the call that blocks for 20 ms."""

from __future__ import annotations

from ctypes import byref, c_uint

from ..base import Counter
from .nvml import FUNCTION_NOT_FOUND, SUCCESS, gap_of
from .structures import FieldValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..base import Facts, Key
    from .nvml import Nvml

_PCIE = {"pcie_tx": 197, "pcie_rx": 198}
_NVLINK = {"nvlink_tx": 138, "nvlink_rx": 139}
_ALL_LINKS = 0xFFFFFFFF
_MOST_LINKS = 18
# The PCIe counters have 32 bits and wrap after 70 ms on the fastest link: over a longer interval they could wrap several times.
_WRAP = 1 << 32
_LONGEST_PAIR = 50_000  # µs


def has_nvlink(nvml: Nvml, handle: Any) -> bool | None:
    """Return whether any NVLink is up, None if the driver cannot tell; GPM returns 0 for links that do not exist."""
    state = c_uint()
    reference = byref(state)
    certain = True
    for link in range(_MOST_LINKS):
        code = nvml.call("nvmlDeviceGetNvLinkState", handle, link, reference)
        if code == SUCCESS and state.value == 1:
            return True
        if code == FUNCTION_NOT_FOUND:
            return False
        certain = certain and (code == SUCCESS or gap_of(code) == "unsupported")
    return False if certain else None


class Links:
    """The byte counters of one GPU; used by one thread at a time."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._function = nvml.function("nvmlDeviceGetFieldValues")
        self._handle = handle
        self._pcie = _fields(_PCIE, 0)
        self._nvlink = _fields(_NVLINK, _ALL_LINKS)
        self._first: dict[str, tuple[int, int]] = {}

    def prime(self) -> None:
        """Take the first of the two readings of the PCIe counters; with the driver's time stamps, even 1 ms is enough."""
        self._first = self._read_counters(self._pcie, _PCIE) if self._function is not None else {}

    def read(self, facts: Facts, keys: Key) -> None:
        """Store PCIe rates since `prime`, and NVLink counters that the sampler turns into rates."""
        if self._function is None:
            facts.gaps.update(dict.fromkeys(keys & (_PCIE.keys() | _NVLINK.keys()), "unsupported"))
            return
        if keys & _PCIE.keys():
            self._read_pcie(facts, keys)
        if keys & _NVLINK.keys():
            for key, (count, at) in self._read_counters(self._nvlink, _NVLINK, facts).items():
                facts.counters[key] = Counter(count * 1024, at / 1e6)

    def _read_pcie(self, facts: Facts, keys: Key) -> None:
        first, self._first = self._first, {}
        for key, (count, at) in self._read_counters(self._pcie, _PCIE, facts).items():
            if key not in keys:
                continue
            before, since = first.get(key, (0, at))
            if 0 < at - since <= _LONGEST_PAIR:
                facts.values[key] = (count - before) % _WRAP * 1_000_000 // (at - since)
            else:
                facts.gaps[key] = "pending"

    def _read_counters(
        self, fields: Any, names: dict[str, int], facts: Facts | None = None
    ) -> dict[str, tuple[int, int]]:
        """Return count and time in µs of each field; the gaps of missing fields go to `facts`."""
        assert self._function is not None
        code = self._function(self._handle, len(names), fields)
        seen: dict[str, tuple[int, int]] = {}
        for key, entry in zip(names, fields, strict=True):
            if failure := code or entry.nvmlReturn:
                if facts is not None:
                    facts.gaps[key] = gap_of(failure)
            else:
                seen[key] = (entry.value.ullVal if entry.valueType in (2, 3) else entry.value.uiVal, entry.timestamp)
        return seen


def _fields(names: dict[str, int], scope: int) -> Any:
    fields = (FieldValue * len(names))()
    for entry, identifier in zip(fields, names.values(), strict=True):
        entry.fieldId, entry.scopeId = identifier, scope
    return fields
