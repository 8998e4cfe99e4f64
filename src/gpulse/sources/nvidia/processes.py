"""The processes on a GPU: compute, graphics and MPS processes merged."""

from __future__ import annotations

from ctypes import byref, c_uint

from ..base import Facts
from .nvml import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, SUCCESS, gap_of
from .structures import ALL_ONES_64, NO_INSTANCE, ProcessV1, ProcessV2, ProcessV3Early

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctypes import Structure
    from typing import Any

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
