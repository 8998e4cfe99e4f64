"""XID errors: faults that the driver reports while gpulse is running."""

from __future__ import annotations

from ctypes import byref, c_ulonglong, c_void_p

from .nvml import SUCCESS
from .structures import EventData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nvml import Nvml

_XID = 8
_MOST_AT_ONCE = 64


class XidWatch:
    """A set of GPUs whose faults are recorded. Registering costs 1 ms per GPU, a read 2 µs. Used by one thread at a time."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._set = c_void_p()
        self._last: dict[int, int] = {}
        self._new: dict[int, list[int]] = {}
        if nvml.call("nvmlEventSetCreate", byref(self._set)) != SUCCESS:
            self._set = c_void_p()

    def add(self, handle: c_void_p) -> None:
        """Start recording the faults of a GPU."""
        if self._set.value is not None:
            self._nvml.call("nvmlDeviceRegisterEvents", handle, c_ulonglong(_XID), self._set)

    def read(self, handle: c_void_p) -> tuple[int | None, tuple[int, ...]]:
        """Return the last code this GPU reported since recording started, or None, and all codes since the previous read."""
        event = EventData()
        for _ in range(_MOST_AT_ONCE):
            if self._set.value is None or self._nvml.call("nvmlEventSetWait_v2", self._set, byref(event), 0) != SUCCESS:
                break
            if event.eventType & _XID and event.device is not None:
                self._last[event.device] = event.eventData
                self._new.setdefault(event.device, []).append(event.eventData)
        return self._last.get(handle.value or 0), tuple(self._new.pop(handle.value or 0, ()))

    def close(self) -> None:
        """Free the set."""
        if self._set.value is not None:
            self._nvml.call("nvmlEventSetFree", self._set)
            self._set = c_void_p()
