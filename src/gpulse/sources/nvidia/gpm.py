"""Activity and traffic of a GPU: GPM on Hopper and later, without root or a daemon; byte counters of links; traces.

GPM's counters are cumulative, so a pair of samples covers the whole interval between them. The hardware latches them
about every 100 ms: a pair between two latches reads 0 everywhere and 0/0 for DRAM. That NaN is the only sign that the
zeros are not a measurement, so DRAM is always read (docs/decisions/0002). The traffic of GPUs without GPM comes from byte
counters, never from the call that blocks for 20 ms.

Traces are what the driver sampled by itself since the previous read, finer than any interval of ours. One call costs 0.5 to 0.8 ms
of CPU on an H200 for power and 1.4 to 2.9 ms for utilization, however many samples are new.
"""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from itertools import pairwise

from ...model.catalog import GPU_METRICS
from ..base import Counter
from .nvml import FUNCTION_NOT_FOUND, NOT_FOUND, SUCCESS, field_number, gap_of
from .structures import FieldValue, GpmMetricsGet, GpmSupport, SampleValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, TypeAlias

    from ...model.metric import Gap
    from ..base import Facts, Key
    from .nvml import Nvml

    Sampled: TypeAlias = tuple[int, int]  # time stamp in µs, value

_MIB = 1 << 20
METRICS = {
    "graphics_active": (1, 1.0), "sm_active": (2, 1.0), "sm_occupancy": (3, 1.0), "integer_active": (4, 1.0),
    "tensor_active": (5, 1.0), "dram_active": (10, 1.0), "fp64_active": (11, 1.0), "fp32_active": (12, 1.0),
    "fp16_active": (13, 1.0), "pcie_tx": (20, _MIB), "pcie_rx": (21, _MIB), "nvlink_rx": (60, _MIB),
    "nvlink_tx": (61, _MIB),
}  # fmt: skip
KEYS = frozenset(METRICS)
_DRAM = METRICS["dram_active"][0]
_FRESH = 0.25  # seconds: how long the last latched values remain valid without a new latch
_RECENT = 0.1  # seconds: how old a sample may be that `settled` has taken and `read` uses


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
        self._settled_at = float("-inf")

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
        if self._measure(("dram_active",)) != SUCCESS:
            return True
        if _is_nan(self._request.metrics[0].value):
            return False
        self._settled_at = time.monotonic()
        return True

    def read(self, facts: Facts, keys: Key) -> int:
        """Store these metrics for the interval since the previous sample."""
        asked = tuple(key for key in METRICS if key in keys)
        if not self._primed:
            self.prime()
            _miss(facts, asked, "pending" if self._primed else "failed")
            return SUCCESS
        recent, self._settled_at = time.monotonic() - self._settled_at < _RECENT, float("-inf")
        code = (SUCCESS if recent else self._take(self._now)) or self._measure(("dram_active", *asked))
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
        self._nvml = nvml
        self._handle = handle
        self._pcie = _fields(_PCIE, 0)
        self._nvlink = _fields(_NVLINK, _ALL_LINKS)
        self._first: dict[str, tuple[int, int]] = {}

    def prime(self) -> None:
        """Take the first of the two readings of the PCIe counters; with the driver's time stamps, even 1 ms is enough."""
        self._first = self._read_counters(self._pcie, _PCIE)

    def read(self, facts: Facts, keys: Key) -> None:
        """Store PCIe rates since `prime`, and NVLink counters that the sampler turns into rates."""
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
        code = self._nvml.call("nvmlDeviceGetFieldValues", self._handle, len(names), fields)
        seen: dict[str, tuple[int, int]] = {}
        for key, entry in zip(names, fields, strict=True):
            if failure := code or entry.nvmlReturn:
                if facts is not None:
                    facts.gaps[key] = gap_of(failure)
            else:
                seen[key] = field_number(entry), entry.timestamp
        return seen


def _fields(names: dict[str, int], scope: int) -> Any:
    fields = (FieldValue * len(names))()
    for entry, identifier in zip(fields, names.values(), strict=True):
        entry.fieldId, entry.scopeId = identifier, scope
    return fields


# NVML's number of the samples, µs between two of them, and the scale to the catalog's unit
_KINDS = {"power_trace": (0, 20_000, 1000), "utilization_trace": (1, 200_000, 1)}
_MOST = 512  # samples; the driver keeps 119 and 71
_HOLE = (
    4  # steps between two samples that are a hole; under load an H200 stamps power 0.3 to 45 ms apart, 20 in the mean
)
_PACE = 0.1  # by how much the mean step may differ; older GPUs sample utilization every 1/6 s to 1 s
_ENOUGH = 8  # samples from which the mean step is known


class DriverTrace:
    """One kind of samples of one GPU, and their times where `keys` has a second name; used by one thread at a time.

    It remembers the newest sample that it returned.
    """

    def __init__(self, nvml: Nvml, handle: Any, keys: Sequence[str]) -> None:
        self.keys = keys
        self._kind, self._step, self._over = _KINDS[keys[0]]
        self._high = GPU_METRICS[keys[0]].high
        self._handle = handle
        self._call = nvml.function("nvmlDeviceGetSamples")
        self._buffer: Any = (SampleValue * _MOST)()
        self._seen = 0
        self._even = False  # the driver is known to sample at the step

    def read(self, facts: Facts, asked: Collection[str]) -> int:
        """Store what is asked for of the samples since the previous read, or why there are none, and return the driver's code."""
        own = [key for key in self.keys if key in asked]
        now = int(time.time() * 1e6)
        if self._seen > now + _HOLE * self._step:
            self._seen = 0  # the clock was set back
        code, found = self._fetch()
        if code == NOT_FOUND and self._seen:
            facts.gaps.update(dict.fromkeys(own, "pending"))  # nothing new
            return SUCCESS
        if code != SUCCESS:
            facts.gaps.update(dict.fromkeys(own, gap_of(code)))
            return code
        self._even = self._even or is_even(found, self._step)
        fresh = since(found, self._seen, self._step)
        if not self._even and len(found) >= _ENOUGH:
            facts.gaps.update(dict.fromkeys(own, "unsupported"))
        elif not fresh or now - fresh[-1][0] > _HOLE * self._step:
            facts.gaps.update(dict.fromkeys(own, "pending"))  # the driver has sampled nothing lately
        else:
            self._seen = fresh[-1][0]
            values = tuple(round(value / self._over) for _, value in fresh)
            if max(values) > self._high:
                facts.gaps.update(dict.fromkeys(own, "failed"))
            else:
                times = tuple(round(stamp / 1e6, 3) for stamp, _ in fresh)
                facts.values.update((key, values if key == self.keys[0] else times) for key in own)
        return code

    def _fetch(self) -> tuple[int, list[Sampled]]:
        if self._call is None:
            return FUNCTION_NOT_FOUND, []
        count, form = c_uint(_MOST), c_uint()
        code = self._call(self._handle, self._kind, c_ulonglong(self._seen), byref(form), byref(count), self._buffer)
        # the driver leaves `count` as it was if the call fails; the upper half of the 64 bits is not always clean
        samples = self._buffer[: min(count.value, _MOST)] if code == SUCCESS else []
        return code, [(sample.timeStamp, sample.sampleValue.uiVal) for sample in samples]


def since(samples: Sequence[Sampled], seen: int, step: int) -> list[Sampled]:
    """Return the samples after the time stamp `seen`, in order, each once; if there is a hole, only those after it."""
    fresh = sorted({stamp: value for stamp, value in samples if stamp > seen}.items())
    for at in range(len(fresh) - 1, 0, -1):
        if fresh[at][0] - fresh[at - 1][0] > _HOLE * step:
            return fresh[at:]
    return fresh


def is_even(samples: Sequence[Sampled], step: int) -> bool:
    """Return whether the samples are `step` apart in the median, or too few to tell."""
    stamps = sorted(stamp for stamp, _ in samples)
    if len(stamps) < _ENOUGH:
        return False
    apart = sorted(later - earlier for earlier, later in pairwise(stamps))
    return abs(apart[len(apart) // 2] - step) <= _PACE * step
