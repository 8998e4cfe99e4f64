"""Activity and traffic of a GPU: GPM on Hopper and later, without root or a daemon; elsewhere the byte counters of its links.

GPM's counters are cumulative, so a pair of samples covers the whole interval between them. The hardware latches them
about every 100 ms: a pair between two latches reads 0 everywhere and 0/0 for DRAM. That NaN is the only sign that the
zeros are not a measurement, so DRAM is always read (docs/decisions/0002). The traffic of GPUs without GPM comes from byte
counters, never from the call that blocks for 20 ms.
"""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_void_p

from ..base import Counter
from .nvml import FUNCTION_NOT_FOUND, SUCCESS, gap_of
from .structures import FieldValue, GpmMetricsGet, GpmSupport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.metric import Gap
    from ..base import Facts, Key
    from .nvml import Nvml


_MIB = 1 << 20
METRICS = {
    "graphics_active": (1, 1.0), "sm_active": (2, 1.0), "sm_occupancy": (3, 1.0), "integer_active": (4, 1.0),
    "tensor_active": (5, 1.0), "dram_active": (10, 1.0), "fp64_active": (11, 1.0), "fp32_active": (12, 1.0),
    "fp16_active": (13, 1.0), "pcie_tx": (20, _MIB), "pcie_rx": (21, _MIB), "nvlink_rx": (60, _MIB),
    "nvlink_tx": (61, _MIB),
}  # fmt: skip
KEYS = frozenset(METRICS)
LINK_KEYS = frozenset({"pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx"})
_DRAM = METRICS["dram_active"][0]
_FRESH = 0.25  # seconds: how long the last latched values remain valid without a new latch


def supported(nvml: Nvml, handle: Any) -> bool | None:
    """Return whether this GPU has GPM; None if the driver cannot tell."""
    support = GpmSupport(version=1)
    code = nvml.call("nvmlGpmQueryDeviceSupport", handle, byref(support))
    if code and gap_of(code) != "unsupported":
        return None
    return code == SUCCESS and bool(support.isSupportedDevice)


class Gpm:
    """The pair of samples of one GPU, or of one MIG instance if `instance` is given; used by one thread at a time."""

    def __init__(self, nvml: Nvml, handle: Any, instance: int | None = None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._instance = instance
        self._before, self._now = c_void_p(), c_void_p()
        self._primed = False
        self._request = GpmMetricsGet(version=1)
        self._asked: tuple[str, ...] = ()
        self._last: dict[str, float] = {}
        self._last_at = 0.0

    def prime(self) -> None:
        """Take the first sample of the pair, if there is none yet."""
        if self._primed:
            return
        for sample in (self._before, self._now):
            if sample.value is None and self._nvml.call("nvmlGpmSampleAlloc", byref(sample)) != SUCCESS:
                return
        self._primed = self._take(self._before) == SUCCESS

    def settled(self) -> bool:
        """Return whether the hardware has latched since the first sample; also True if waiting would not help."""
        if not self._primed or self._take(self._now) != SUCCESS:
            return True
        return self._measure(("dram_active",)) != SUCCESS or not _is_nan(self._request.metrics[0].value)

    def read(self, facts: Facts, keys: Key) -> int:
        """Store these metrics for the interval since the previous sample."""
        asked = tuple(key for key in METRICS if key in keys)
        if not self._primed:
            self.prime()
            _miss(facts, asked, "pending" if self._primed else "failed")
            return SUCCESS
        code = self._take(self._now) or self._measure(("dram_active", *asked))
        if code:
            _miss(facts, asked, gap_of(code))
            return code
        if _is_nan(self._request.metrics[0].value):
            self._repeat(facts, asked)
            return SUCCESS
        self._file(facts, asked)
        self._before, self._now = self._now, self._before
        return SUCCESS

    def close(self) -> None:
        """Free the samples; not after a fork, because they belong to the parent."""
        for sample in (self._before, self._now):
            if sample.value is not None:
                self._nvml.call("nvmlGpmSampleFree", sample)
                sample.value = None
        self._primed = False

    def _take(self, sample: c_void_p) -> int:
        if self._instance is None:
            return self._nvml.call("nvmlGpmSampleGet", self._handle, sample)
        return self._nvml.call("nvmlGpmMigSampleGet", self._handle, self._instance, sample)

    def _measure(self, asked: tuple[str, ...]) -> int:
        request = self._request
        if asked != self._asked:
            for entry, key in zip(request.metrics, asked, strict=False):
                entry.metricId = METRICS[key][0]
            request.numMetrics = len(asked)
            self._asked = asked
        request.sample1, request.sample2 = self._before, self._now
        return self._nvml.call("nvmlGpmMetricsGet", byref(request))

    def _file(self, facts: Facts, asked: tuple[str, ...]) -> None:
        self._last = {}
        self._last_at = time.monotonic()
        for entry, key in zip(self._request.metrics[1:], asked, strict=False):
            if entry.nvmlReturn:
                facts.gaps[key] = gap_of(entry.nvmlReturn)
            elif _is_nan(entry.value):
                facts.gaps[key] = "failed"
            else:
                self._last[key] = round(entry.value * METRICS[key][1], 2)
        facts.values.update(self._last)

    def _repeat(self, facts: Facts, asked: tuple[str, ...]) -> None:
        """Keep the last values for a short time if there is no new latch; after that they are missing."""
        fresh = time.monotonic() - self._last_at < _FRESH
        for key in asked:
            if fresh and key in self._last:
                facts.values[key] = self._last[key]
            else:
                facts.gaps[key] = "pending"


def _miss(facts: Facts, asked: tuple[str, ...], gap: Gap) -> None:
    for key in asked:
        facts.gaps[key] = gap


def _is_nan(value: float) -> bool:
    return value != value


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
