"""All GPUs of this machine, of any vendor: NVIDIA's first, then those of every vendor whose driver has a card.

Which vendors there are is told by a listing and a link per card, a few µs each: a machine without a vendor loads nothing of it.
"""

from __future__ import annotations

import os

from ..errors import SourceUnavailable
from ..model.snapshot import Problem
from .base import Source
from .files import link, names, read_bytes, read_text
from .processes import LinuxMachine
from .vendors import VENDORS, make_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..model.snapshot import Check
    from .base import Device

_NVIDIA_DRIVERS = ("nvidia", "nouveau")
_TEGRA = b"nvidia,tegra"


class AutoSource(Source):
    """Several sources as one. A vendor that cannot be opened is a problem beside the others' GPUs, not the end of them.

    GPUs are numbered through: NVIDIA's keep NVML's numbers, those after them follow.
    """

    name = "nvidia"
    machine: LinuxMachine

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._parts: list[Source] = []
        self._found: list[object] = []
        self._failed: list[Problem] = []
        self.machine = LinuxMachine(root)

    def open(self) -> None:
        self.close()
        self._failed = []
        failures: list[SourceUnavailable] = []
        drivers = card_drivers(self._root)
        for vendor in ("nvidia", *present(drivers), *(("jetson",) if self._is_board() else ())):
            if vendor == "jetson" and self._parts:
                continue  # NVML has this board, and fills its gaps from the kernel by itself
            part = make_vendor(vendor, self._root)
            try:
                part.open()
            except SourceUnavailable as error:
                failures.append(error)
                if vendor != "nvidia" or not drivers.isdisjoint(_NVIDIA_DRIVERS):
                    self._failed.append(Problem(vendor, error.message, error.remedy))
            else:
                self._parts.append(part)
        if not self._parts:
            raise _nothing(failures)
        self.name = "+".join(part.name for part in self._parts)
        self._gather()

    def refresh(self) -> None:
        for part in self._parts:
            part.refresh()
        if any(part.devices is not found for part, found in zip(self._parts, self._found, strict=True)):
            self._gather()
        self._merge()

    def versions(self) -> Mapping[str, Callable[[], object]]:
        return {word: call for part in self._parts for word, call in part.versions().items()}

    def stay(self) -> None:
        for part in self._parts:
            part.stay()

    def close(self) -> None:
        for part in self._parts:
            part.close()
        self._parts, self._found, self.devices = [], [], ()

    def examine(self) -> list[Check]:
        drivers = card_drivers(self._root)
        others = [*present(drivers), *(("jetson",) if self._is_board() else ())]
        vendors = others if others and drivers.isdisjoint(_NVIDIA_DRIVERS) else ["nvidia", *others]
        return [check for vendor in vendors for check in make_vendor(vendor, self._root).examine()]

    def _gather(self) -> None:
        """Take the devices of all parts, numbered through."""
        self._found = [part.devices for part in self._parts]
        devices: list[Device] = []
        for part in self._parts:
            for device in part.devices:
                if device.identity.get("index") != len(devices) and part is not self._parts[0]:
                    device.identity = {**device.identity, "index": len(devices)}
                devices.append(device)
        self.devices = devices
        self._merge()

    def _merge(self) -> None:
        self.driver = {word: text for part in self._parts for word, text in part.driver.items()}
        self.problems = (*self._failed, *(problem for part in self._parts for problem in part.problems))

    def _is_board(self) -> bool:
        return _TEGRA in (read_bytes(f"{self._root}/proc/device-tree/compatible", 4096) or b"")


def card_drivers(root: str = "") -> frozenset[str]:
    """Return the drivers of all cards."""
    folder = f"{root}/sys/class/drm"
    cards = [name for name in names(folder) if name.startswith("card") and name[4:].isdecimal()]
    return frozenset(_driver(f"{folder}/{name}/device") for name in cards)


def present(drivers: frozenset[str]) -> list[str]:
    """Return the vendors, other than NVIDIA, that have a card."""
    return [vendor for vendor, (_, own) in VENDORS.items() if not drivers.isdisjoint(own)]


def _driver(device: str) -> str:
    if name := os.path.basename(link(f"{device}/driver")):
        return name
    lines = (read_text(f"{device}/uevent", 4096) or "").splitlines()
    return next((line[7:].strip() for line in lines if line.startswith("DRIVER=")), "")


def _nothing(failures: list[SourceUnavailable]) -> SourceUnavailable:
    """Say of every vendor why it has no GPU here."""
    first = failures[0]
    others = " ".join(failure.message for failure in failures[1:]) or "No AMD or Intel card was found either."
    return SourceUnavailable(f"{first.message} {others}", first.remedy, first.driver_code)
