"""Traces: what the driver sampled by itself since the previous read, finer than any interval of ours.

One call costs 0.5 to 0.8 ms of CPU on an H200 for power and 1.4 to 2.9 ms for utilization, however many samples are new.
"""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_ulonglong
from itertools import pairwise

from ...model.catalog import GPU_METRICS
from .nvml import FUNCTION_NOT_FOUND, NOT_FOUND, SUCCESS, gap_of
from .structures import SampleValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, TypeAlias

    from ..base import Facts
    from .nvml import Nvml

    Sampled: TypeAlias = tuple[int, int]  # time stamp in µs, value

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
