"""From the name of a source to the source; the vendors are listed in `vendors`, other packages add plug-ins."""

from __future__ import annotations

import os

from ..errors import SourceUnavailable, UsageError
from .base import file_is_late
from .vendors import NAMES, VENDORS, make_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .base import Source

    Factory: TypeAlias = Callable[[str], Source]

BUILT_IN = frozenset(name.partition(":")[0] for name in NAMES)
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
        from .auto import AutoSource

        return AutoSource(place)
    if name in ("demo", "demo:mixed"):
        from .simulated.source import SimulatedSource

        return SimulatedSource(mixed=detail == "mixed")
    if kind == "replay" and detail:
        from .replay.source import replay_source

        return replay_source(detail)
    return _plugged_in(name, kind, detail)


def default_source() -> str:
    """Return the name of the source to read when none is named: one set for this process, else $GPULSE_SOURCE, else auto."""
    return next(reversed(_local), None) or os.environ.get("GPULSE_SOURCE") or "auto"


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
    from .base import Source

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


def metric_sources() -> dict[str, frozenset[str]]:
    """Return the GPU metrics that each vendor's source can read on some machine."""
    modules = {name: __import__(f"gpulse.sources.{name}.source", fromlist=["KEYS"]) for name in VENDORS}
    return {name: module.KEYS for name, module in modules.items()}
