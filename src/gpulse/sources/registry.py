"""From the name of a source to the source: one of `vendors`, all of this machine at once, a recording, or a plug-in."""

from __future__ import annotations

import os

from ..errors import SourceUnavailable, UsageError
from .base import Source, file_is_late
from .files import card_names, driver_of, read_bytes
from .vendors import NAMES, VENDORS, make_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from ..model.snapshot import Check, Problem
    from .base import Device
    from .processes import LinuxMachine

    Factory: TypeAlias = Callable[[str], Source]

BUILT_IN = frozenset(name.partition(":")[0] for name in NAMES)
_NVIDIA_DRIVERS = ("nvidia", "nouveau")
_TEGRA = b"nvidia,tegra"
_local: dict[str, Factory] = {}  # sources of this process only; the one added last is the default
changed: list[Callable[[], None]] = []  # called when the default changes: sources kept open must be closed


def make_source(name: str, root: str | None = None) -> Source:
    """Return the source with this name, not yet opened; raise UsageError if it is unknown.

    `root` is prefixed to /proc and /sys, for tests; None takes it from GPULSE_ROOT. amd:DIR, intel:DIR and jetson:DIR read
    the tree of a recorded machine, smi:FILE the output of `nvidia-smi -q -x`.
    """
    kind, colon, detail = name.partition(":")
    if kind in _local:
        return _local[kind](detail)
    place = os.environ.get("GPULSE_ROOT", "") if root is None else root
    if kind in VENDORS and bool(colon) == bool(detail):
        if detail and kind != "smi" and not os.path.isdir(detail):
            raise UsageError(
                f"source {name!r}: there is no folder {detail!r};", "record one with `gpulse doctor --capture DIR`."
            )
        source = make_vendor(kind, detail if detail or kind == "smi" else place)
        if detail:
            source.late = file_is_late(detail)
        return source
    if kind == "auto" and not colon:
        return AutoSource(place)
    if name in ("demo", "demo:mixed"):
        from .simulated.source import SimulatedSource

        return SimulatedSource(mixed=detail == "mixed")
    if kind == "replay" and detail:
        from .replay import replay_source

        return replay_source(detail)
    return _plugged_in(name, kind, detail)


def default_source() -> str:
    """Return the name of the source to read when none is named: one set for this process, else $GPULSE_SOURCE, else auto."""
    return next(reversed(_local), None) or os.environ.get("GPULSE_SOURCE") or "auto"


def is_this_machine(name: str) -> bool:
    """Return whether a source reads this computer and not a simulated or recorded one: then this computer's state is its own."""
    kind, colon, _ = name.partition(":")
    return kind != "demo" and not (colon and kind in BUILT_IN)


def is_local(name: str) -> bool:
    """Return whether only this process has this source, so that no other process can sample it."""
    return name.partition(":")[0] in _local


def is_built_in(name: str) -> bool:
    """Return whether a source is gpulse's own, so that no other package is needed to read it."""
    return name.partition(":")[0] in BUILT_IN


def add_local(name: str, make: Factory) -> None:
    """Make a source the default of this process until it is removed."""
    _local[name] = make
    for tell in changed:
        tell()


def remove_local(name: str) -> None:
    """Remove a source that was added; the default is again what it was before."""
    _local.pop(name, None)
    for tell in changed:
        tell()


def _plugged_in(name: str, kind: str, detail: str) -> Source:
    """Return the source of a plug-in; raise SourceUnavailable when it is broken, UsageError when there is none."""
    from ..model.select import did_you_mean  # the whole catalog, which a Monitor's program does not need
    from ..plugins import SOURCES, BrokenPlugin, plugins

    found = [] if kind in BUILT_IN else plugins(SOURCES)
    for plugin in found:
        if plugin.name == kind:
            try:
                source = plugin.call(detail)
                if not isinstance(source, Source):
                    raise plugin.broken(f"it made a {type(source).__name__} instead of a gpulse.sources.Source")
                return source
            except BrokenPlugin as error:
                raise SourceUnavailable(error.message, error.remedy) from error
    names = [*NAMES, *dict.fromkeys(plugin.name for plugin in found)]
    hint = did_you_mean(kind, [known.partition(":")[0] for known in names])
    raise UsageError(f"unknown source {name!r}{hint}", f"choose one of {', '.join(names)}.")


class AutoSource(Source):
    """All GPUs of this machine, of any vendor: NVIDIA's first, then those of every vendor whose driver has a card.

    Which vendors there are is told by a listing and a link per card, a few µs each: a machine without a vendor loads nothing of it.
    A vendor that cannot be opened is a problem beside the others' GPUs, not the end of them. GPUs are numbered through: NVIDIA's
    keep NVML's numbers, those after them follow.
    """

    name = "nvidia"
    machine: LinuxMachine

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._parts: list[Source] = []
        self._found: list[object] = []
        self._failed: list[Problem] = []
        self.machine = _this_machine(root)

    def open(self) -> None:
        self.close()
        from ..model.snapshot import Problem  # the whole catalog, which a program with a Monitor does not need

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


def _this_machine(root: str = "") -> LinuxMachine:
    from .processes import LinuxMachine  # not for a simulation

    return LinuxMachine(root)


def card_drivers(root: str = "") -> frozenset[str]:
    """Return the drivers of all cards."""
    return frozenset(driver_of(f"{root}/sys/class/drm/{name}/device") for name in card_names(root))


def present(drivers: frozenset[str]) -> list[str]:
    """Return the vendors, other than NVIDIA, that have a card."""
    return [vendor for vendor, (_, own) in VENDORS.items() if not drivers.isdisjoint(own)]


def _nothing(failures: list[SourceUnavailable]) -> SourceUnavailable:
    """Say of every vendor why it has no GPU here."""
    first = failures[0]
    others = " ".join(failure.message for failure in failures[1:]) or "No AMD or Intel card was found either."
    return SourceUnavailable(f"{first.message} {others}", first.remedy, first.driver_code)


class NoGpuSource(Source):
    """This computer without its GPUs."""

    name = "host"

    def __init__(self) -> None:
        self.machine = _this_machine()

    def open(self) -> None:
        """Find nothing, which always succeeds."""

    def close(self) -> None:
        """Release nothing."""
