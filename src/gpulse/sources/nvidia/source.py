"""The NVIDIA source: opens NVML once per process id and finds its GPUs, without waking one that sleeps."""

from __future__ import annotations

import os
import time
from ctypes import byref, c_uint, c_void_p

from ...errors import SourceUnavailable
from ...model.snapshot import Problem
from ..base import Source
from ..processes import LinuxMachine
from .device import ClosedDevice, NvidiaDevice
from .events import XidWatch
from .failure import failed_start, no_library
from .identity import driver_facts
from .nvml import SUCCESS, Nvml, error_name
from .sleep import SleepingDevice, power_states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.check import Check
    from ..base import Device

_REOPEN_EVERY = 5.0  # seconds between tries to get a driver back that answers nothing any more


class NvidiaSource(Source):
    """All NVIDIA GPUs of this machine; `root` stands before /proc and /sys, for tests."""

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
            raise no_library(self._root) from None
        start = self._nvml.function("nvmlInit_v2", "nvmlInit")
        code = start() if start is not None else 13
        if code != SUCCESS:
            self._nvml = None
            raise failed_start(code, self._root)
        self.driver = driver_facts(self._nvml)
        self.devices = self._find(self._nvml, asleep)
        if not self.devices:
            self.close()
            raise SourceUnavailable(
                "NVIDIA: the driver runs but lists no GPU.",
                "In a container, give it devices with `--gpus all`; else `lspci | grep -i nvidia` says what the bus has.",
            )
        if self._staying:
            self.stay()

    def refresh(self) -> None:
        if os.getpid() != self._pid:
            self._forget()
            self.open()
        elif any(isinstance(device, SleepingDevice) for device in self.devices):
            asleep = power_states(self._root)
            if any(isinstance(device, SleepingDevice) and not asleep.get(device.slot, True) for device in self.devices):
                self.close()
                self.open()
        elif self._silent() and time.monotonic() >= self._retry_at:
            self._reopen()

    def examine(self) -> list[Check]:
        from .examine import examine  # a doctor's business only

        return examine(self.machine, self._root)

    def stay(self) -> None:
        """Begin to note XID errors: only what happens from now on is heard."""
        self._staying = True
        if self._watch is None and self._nvml is not None:
            live = [device for device in self.devices if isinstance(device, NvidiaDevice)]
            self._watch = XidWatch(self._nvml, [device.handle for device in live])
            for device in live:
                device.watch = self._watch

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
        """Drop every handle without a call: after a fork they are the parent's."""
        self._nvml = None
        self._watch = None
        self.devices = ()

    def _find(self, nvml: Nvml, asleep: dict[str, bool]) -> list[Device]:
        name = "nvmlDeviceGetCount_v2" if nvml.function("nvmlDeviceGetCount_v2") else "nvmlDeviceGetCount"
        code, count = nvml.number(name)
        if code:
            raise failed_start(code, self._root)
        if any(asleep.values()):
            return self._find_by_slot(nvml, asleep)
        return [self._device(nvml, index) for index in range(count)]

    def _device(self, nvml: Nvml, index: int) -> Device:
        by_index = nvml.function("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
        handle = c_void_p()
        code = 13 if by_index is None else by_index(index, byref(handle))
        if code == SUCCESS:
            return NvidiaDevice(nvml, handle, index, self.driver.get("version", ""), self._root)
        self._note(index, code)
        return ClosedDevice(index, code)

    def _find_by_slot(self, nvml: Nvml, asleep: dict[str, bool]) -> list[Device]:
        """Find GPUs by their slots where some of them sleep: asking for a handle by index would wake those."""
        by_slot = nvml.function("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId")
        devices: list[Device] = []
        for position, (slot, sleeps) in enumerate(asleep.items()):
            handle, index = c_void_p(), c_uint(position)
            if sleeps or by_slot is None:
                devices.append(SleepingDevice(slot, position, self._root))
            elif code := by_slot(slot.encode(), byref(handle)):
                self._note(position, code)
                devices.append(ClosedDevice(position, code))
            else:
                nvml.call("nvmlDeviceGetIndex", handle, byref(index))
                devices.append(NvidiaDevice(nvml, handle, index.value, self.driver.get("version", ""), self._root))
        return devices

    def _note(self, index: int, code: int) -> None:
        self.problems = (*self.problems, Problem(self.name, f"GPU {index} cannot be opened ({error_name(code)})."))

    def _silent(self) -> bool:
        live = [device for device in self.devices if isinstance(device, NvidiaDevice)]
        return bool(live) and not any(device.answered or device.lost for device in live)

    def _reopen(self) -> None:
        """Start anew with a driver that answers nothing: it was replaced, or the container lost it for a while."""
        self._retry_at = time.monotonic() + _REOPEN_EVERY
        before = self.devices
        self.close()
        try:
            self.open()
        except SourceUnavailable as error:
            self.devices = before
            self.problems = (Problem(self.name, error.message, error.remedy),)
