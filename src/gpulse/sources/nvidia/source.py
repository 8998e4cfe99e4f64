"""The NVIDIA source: opens NVML once per process id, finds its GPUs without waking sleeping ones, and records XID errors."""

from __future__ import annotations

import os
import time
from ctypes import byref, c_ulonglong, c_void_p

from ...errors import SourceUnavailable
from ...model.snapshot import Problem
from ..base import Source
from ..processes import LinuxMachine
from .device import KEYS, NvidiaDevice
from .nvml import SUCCESS, Nvml
from .readers import VERSIONS
from .structures import EventData
from .unified import SleepingDevice, power_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.snapshot import Check
    from ..base import Device

__all__ = ["KEYS", "NvidiaSource"]
_REOPEN_EVERY = 5.0  # seconds between attempts to reopen a driver that no longer responds


class NvidiaSource(Source):
    """All NVIDIA GPUs of this machine; `root` is prefixed to /proc and /sys, for tests."""

    name = "nvidia"
    machine: LinuxMachine

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._nvml: Nvml | None = None
        self._pid = 0
        self._retry_at = 0.0
        self._watch: XidWatch | None = None
        self._staying = False
        self.machine = LinuxMachine(root)

    def open(self) -> None:
        self._pid = os.getpid()
        self.problems = ()
        asleep = power_states(self._root)
        if asleep and all(asleep.values()):
            self.devices = [SleepingDevice(slot, index, self._root) for index, slot in enumerate(asleep)]
            return
        try:
            self._nvml = Nvml()
        except OSError:
            from .failure import no_library  # what explains a failure is loaded when there is one

            raise no_library(self._root) from None
        start = self._nvml.function("nvmlInit_v2", "nvmlInit")
        code = start() if start is not None else 13
        if code != SUCCESS:
            self._nvml = None
            raise self._failed_start(code)
        self.driver = {}
        self.devices = self._find(self._nvml, asleep)
        if not self.devices:
            self.close()
            raise SourceUnavailable(
                "NVIDIA: the driver is running but lists no GPU.",
                "In a container, add devices with `--gpus all`; otherwise check `lspci | grep -i nvidia`.",
            )
        if self._staying:
            self.stay()

    def versions(self) -> Mapping[str, Callable[[], object]]:
        nvml = self._nvml
        return {} if nvml is None else {word: self._learning(nvml, word) for word in VERSIONS}

    def _learning(self, nvml: Nvml, word: str) -> Callable[[], object]:
        def learn() -> None:
            nvml.versions[word] = text = VERSIONS[word](nvml)
            if text:
                self.driver = {**self.driver, word: text}  # snapshots keep the one they were given

        return learn

    def refresh(self) -> None:
        if os.getpid() != self._pid:
            self._forget()
            self.open()
        elif time.monotonic() >= self._retry_at and (self._woke() or self._silent()):
            self._reopen()

    def examine(self) -> list[Check]:
        from .failure import examine  # only `gpulse doctor` needs it

        return examine(self.machine, self._root)

    def stay(self) -> None:
        """Start recording XID errors; earlier ones are unknown."""
        self._staying = True
        if self._watch is None and self._nvml is not None:
            self._watch = XidWatch(self._nvml)
            for device in self.devices:
                if isinstance(device, NvidiaDevice):
                    device.note_faults(self._watch)

    def close(self) -> None:
        if self._nvml is None:
            return
        if os.getpid() == self._pid:
            if self._watch is not None:
                self._watch.close()
            for device in self.devices:
                if isinstance(device, NvidiaDevice):
                    device.close()
            self._nvml.call("nvmlShutdown")
        self._forget()

    def _forget(self) -> None:
        """Drop every handle without a call: after a fork they belong to the parent."""
        self._nvml = None
        self._watch = None
        self.devices = ()

    def _find(self, nvml: Nvml, asleep: dict[str, bool]) -> list[Device]:
        name = "nvmlDeviceGetCount_v2" if nvml.function("nvmlDeviceGetCount_v2") else "nvmlDeviceGetCount"
        code, count = nvml.number(name)
        if code:
            raise self._failed_start(code)
        if not any(asleep.values()):
            return [NvidiaDevice(nvml, index, self._root) for index in range(count)]
        return [
            SleepingDevice(slot, at, self._root) if sleeps else NvidiaDevice(nvml, at, self._root, slot)
            for at, (slot, sleeps) in enumerate(asleep.items())
        ]

    def _failed_start(self, code: int) -> SourceUnavailable:
        from .failure import failed_start

        return failed_start(code, self._root)

    def _woke(self) -> bool:
        slots = [device.slot for device in self.devices if isinstance(device, SleepingDevice)]
        asleep = power_states(self._root) if slots else {}
        return not all(asleep.get(slot, True) for slot in slots)

    def _silent(self) -> bool:
        live = [device for device in self.devices if isinstance(device, NvidiaDevice)]
        return bool(live) and not any(device.answered or device.lost for device in live)

    def _reopen(self) -> None:
        """Reopen a driver that no longer responds (it was replaced, or the container lost it temporarily) or has another GPU awake."""
        self._retry_at = time.monotonic() + _REOPEN_EVERY
        before = self.devices
        self.close()
        try:
            self.open()
            for device, same in zip(self.devices, before, strict=False):
                if isinstance(device, NvidiaDevice) and isinstance(same, NvidiaDevice):
                    device.resemble(same)
        except SourceUnavailable as error:
            self.devices = before
            self.problems = (Problem(self.name, error.message, error.remedy),)


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
