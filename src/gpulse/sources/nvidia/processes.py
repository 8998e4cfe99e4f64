"""The processes on a GPU: compute, graphics and MPS processes merged, and each one's share since the previous read."""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_ulonglong

from ..base import Facts
from .nvml import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, NOT_FOUND, SUCCESS, gap_of
from .structures import ALL_ONES_64, NO_INSTANCE, ProcessUtilization, ProcessV1, ProcessV2, ProcessV3Early

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from ctypes import Structure
    from typing import Any

    from ..base import Key
    from .nvml import Nvml

_LISTS = (("C", "Compute"), ("G", "Graphics"), ("M", "MPSCompute"))
_MOST_TRIES = 6  # give up on a list that grows at every attempt; nvtop retries forever
_MOST_PIDS = 1 << 22  # the kernel's limit; Jetson drivers report PIDs beyond it, and PID 0


class ProcessLists:
    """The process lists of one GPU or MIG instance; used by one thread at a time."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._handle = handle
        self._lists = [(letter, *_newest(nvml, kind)) for letter, kind in _LISTS]
        self._buffers: dict[str, Any] = {}

    def read(self) -> tuple[int, dict[int, Facts], dict[int, tuple[int, int]]]:
        """Return a code, the processes by PID, and the MIG instance (GPU and compute instance) of each."""
        processes: dict[int, Facts] = {}
        instances: dict[int, tuple[int, int]] = {}
        codes = []
        for letter, function, record in self._lists:
            code, entries = (FUNCTION_NOT_FOUND, []) if function is None else self._fetch(letter, function, record)
            codes.append(code)
            for entry in entries:
                if 0 < entry.pid < _MOST_PIDS:
                    _merge(processes, entry.pid, letter, entry.usedGpuMemory)
                    if getattr(entry, "gpuInstanceId", NO_INSTANCE) != NO_INSTANCE:
                        instances[entry.pid] = (entry.gpuInstanceId, entry.computeInstanceId)
        # the compute list is required; the other two may be missing on a GPU that does not support them
        failed = [code for code in codes[1:] if code and gap_of(code) != "unsupported"]
        return codes[0] or (failed[0] if failed else SUCCESS), processes, instances

    def _fetch(self, letter: str, function: Any, record: type[Structure]) -> tuple[int, Any]:
        buffer = self._buffers.get(letter) or (record * 32)()
        count = c_uint()
        code = INSUFFICIENT_SIZE
        for _ in range(_MOST_TRIES):
            count.value = len(buffer)
            code = function(self._handle, byref(count), buffer)
            if code != INSUFFICIENT_SIZE:
                break
            buffer = (record * (max(count.value, len(buffer)) * 2))()
        self._buffers[letter] = buffer
        return code, buffer[: min(count.value, len(buffer))] if code == SUCCESS else []


def _newest(nvml: Nvml, kind: str) -> tuple[Any, type[Structure]]:
    """Return the newest call for a list and the record it fills; drivers have used three record sizes."""
    base = f"nvmlDeviceGet{kind}RunningProcesses"
    if third := nvml.function(f"{base}_v3"):
        early = nvml.function("nvmlDeviceGetConfComputeMemSizeInfo") and not nvml.function(
            "nvmlDeviceGetRunningProcessDetailList"
        )
        return third, ProcessV3Early if early else ProcessV2
    if second := nvml.function(f"{base}_v2"):
        return second, ProcessV2
    return nvml.function(base), ProcessV1


def _merge(processes: dict[int, Facts], pid: int, letter: str, memory: int) -> None:
    facts = processes.get(pid)
    if facts is None:
        facts = processes[pid] = Facts()
        facts.values["pid"] = pid
        facts.values["type"] = letter
    elif letter not in str(facts.values["type"]):
        facts.values["type"] = f"{facts.values['type']}+{letter}"
    if memory == ALL_ONES_64:
        if "memory_used" not in facts.values:
            facts.gaps["memory_used"] = "unsupported"
    else:
        held = facts.values.get("memory_used", 0)
        facts.values["memory_used"] = max(memory, held if isinstance(held, int) else 0)
        facts.gaps.pop("memory_used", None)


SHARES = {
    "sm_utilization": "smUtil",
    "memory_utilization": "memUtil",
    "encoder_utilization": "encUtil",
    "decoder_utilization": "decUtil",
}
SHARE_KEYS = SHARES.keys() | {"sm_time"}
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
