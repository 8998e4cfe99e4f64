"""The NVIDIA source: opens NVML once per process id and finds its GPUs, without waking sleeping ones."""

from __future__ import annotations

import os
import time

from ...errors import SourceUnavailable
from ...model.snapshot import Problem
from ..base import Source
from ..processes import LinuxMachine
from .device import KEYS, NvidiaDevice
from .events import XidWatch
from .failure import failed_start, no_library
from .identity import VERSIONS
from .nvml import SUCCESS, Nvml
from .sleep import SleepingDevice, power_states

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
            raise no_library(self._root) from None
        start = self._nvml.function("nvmlInit_v2", "nvmlInit")
        code = start() if start is not None else 13
        if code != SUCCESS:
            self._nvml = None
            raise failed_start(code, self._root)
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
        elif any(isinstance(device, SleepingDevice) for device in self.devices):
            asleep = power_states(self._root)
            if any(isinstance(device, SleepingDevice) and not asleep.get(device.slot, True) for device in self.devices):
                self.close()
                self.open()
        elif self._silent() and time.monotonic() >= self._retry_at:
            self._reopen()

    def examine(self) -> list[Check]:
        from .examine import examine  # only `gpulse doctor` needs it

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
            raise failed_start(code, self._root)
        if not any(asleep.values()):
            return [NvidiaDevice(nvml, index, self._root) for index in range(count)]
        return [
            SleepingDevice(slot, at, self._root) if sleeps else NvidiaDevice(nvml, at, self._root, slot)
            for at, (slot, sleeps) in enumerate(asleep.items())
        ]

    def _silent(self) -> bool:
        live = [device for device in self.devices if isinstance(device, NvidiaDevice)]
        return bool(live) and not any(device.answered or device.lost for device in live)

    def _reopen(self) -> None:
        """Reopen a driver that no longer responds: it was replaced, or the container lost it temporarily."""
        self._retry_at = time.monotonic() + _REOPEN_EVERY
        before = self.devices
        self.close()
        try:
            self.open()
            for device, same in zip(self.devices, before, strict=False):
                if isinstance(device, NvidiaDevice):
                    device.resemble(same)
        except SourceUnavailable as error:
            self.devices = before
            self.problems = (Problem(self.name, error.message, error.remedy),)
