"""Each process's share of a GPU since the previous read, from the driver's buffer of utilization samples."""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_ulonglong

from .nvml import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, NOT_FOUND, SUCCESS, gap_of
from .structures import ProcessUtilization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..base import Facts, Key
    from .nvml import Nvml

SHARES = {
    "sm_utilization": "smUtil",
    "memory_utilization": "memUtil",
    "encoder_utilization": "encUtil",
    "decoder_utilization": "decUtil",
}
SHARE_KEYS = SHARES.keys() | {"sm_time"}
_MOST_TRIES = 6
_FIRST = 2_000_000  # µs: the window of the first read
_LONGEST = 14_000_000  # µs that the driver's buffer reaches back
_APART = 1_000_000  # µs: the driver samples every 0.17 to 1 s, so a shorter window may hold no sample


class ProcessShares:
    """The shares of the processes on one GPU; used by one thread at a time.

    The driver returns the mean since the time stamp it is passed, so each read passes the newest one that the previous read saw.
    A process without a sample in that window ran nothing. One call costs 1.4 to 1.9 ms of CPU on an H200, whatever the window.
    """

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._handle = handle
        self._function = nvml.function("nvmlDeviceGetProcessUtilization")
        self._buffer: Any = (ProcessUtilization * 64)()
        self._seen: int | None = None
        self._code = FUNCTION_NOT_FOUND
        self._shares: dict[int, dict[str, int]] = {}
        self._busy: dict[int, float] = {}

    def read(self, processes: Mapping[int, Facts], keys: Key) -> None:
        """Store each process's shares since the previous read, and `sm_time`, the seconds its kernels ran since the first."""
        self._update(int(time.time() * 1e6))
        self._busy = {pid: self._busy.get(pid, 0.0) for pid in processes}
        for pid, facts in processes.items():
            shares = self._shares.get(pid, {})
            for key in keys & SHARE_KEYS:
                if self._code not in (SUCCESS, NOT_FOUND):
                    facts.gaps[key] = gap_of(self._code)
                else:
                    facts.values[key] = round(self._busy[pid], 3) if key == "sm_time" else shares.get(key, 0)

    def _update(self, now: int) -> None:
        """Fetch the shares of the window that ends now."""
        first = self._seen is None or not self._seen <= now  # the second: the clock has been set back
        since = now - _FIRST if self._seen is None or first else max(self._seen, now - _LONGEST)
        samples = self._fetch(since)
        if self._code not in (SUCCESS, NOT_FOUND):
            self._seen, self._shares = None, {}  # the next read that succeeds is a first one, not one without samples
            return
        if not samples and not first and now - since < _APART:
            return  # too soon for a new sample: the previous answer stands
        self._shares = {pid: {key: getattr(row, name) for key, name in SHARES.items()} for pid, row in samples.items()}
        newest = max((row.timeStamp for row in samples.values()), default=now)
        self._seen = newest if since < newest <= now else now
        if not first:
            for pid, shares in self._shares.items():
                if shares["sm_utilization"] <= 100:
                    self._busy[pid] = (
                        self._busy.get(pid, 0.0) + shares["sm_utilization"] / 100 * (self._seen - since) / 1e6
                    )

    def _fetch(self, since: int) -> dict[int, Any]:
        """Return the newest sample of each PID."""
        if self._function is None:
            return {}
        count = c_uint()
        for _ in range(_MOST_TRIES):
            count.value = len(self._buffer)
            self._code = self._function(self._handle, self._buffer, byref(count), c_ulonglong(since))
            if self._code != INSUFFICIENT_SIZE:
                break
            self._buffer = (ProcessUtilization * (max(count.value, len(self._buffer)) * 2))()
        newest: dict[int, Any] = {}
        # the driver leaves `count` as it was if the call fails
        for sample in self._buffer[: min(count.value, len(self._buffer))] if self._code == SUCCESS else []:
            if sample.timeStamp > since and sample.timeStamp >= getattr(newest.get(sample.pid), "timeStamp", 0):
                newest[sample.pid] = sample
        return newest
