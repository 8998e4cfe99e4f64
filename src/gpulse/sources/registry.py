"""From the name of a source to the source; the vendors are listed in `vendors`."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..model.select import did_you_mean
from .vendors import VENDORS, make_vendor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Source

NAMES = ("auto", *VENDORS, "demo", "demo:mixed", "replay:FILE", "amd:ROOT", "intel:ROOT", "jetson:ROOT", "smi:FILE")


def make_source(name: str, root: str | None = None) -> Source:
    """Return the source with this name, not yet opened; raise UsageError if it is unknown.

    `root` is prefixed to /proc and /sys, for tests; None takes it from GPULSE_ROOT. amd:ROOT, intel:ROOT and jetson:ROOT read
    the tree of a recorded machine, smi:FILE the output of `nvidia-smi -q -x`.
    """
    kind, colon, detail = name.partition(":")
    place = os.environ.get("GPULSE_ROOT", "") if root is None else root
    if kind in VENDORS and bool(colon) == bool(detail):
        return make_vendor(kind, detail or place)
    if kind == "auto" and not colon:
        from .auto import AutoSource

        return AutoSource(place)
    if name in ("demo", "demo:mixed"):
        from .simulated.source import SimulatedSource

        return SimulatedSource(mixed=detail == "mixed")
    if kind == "replay" and detail:
        from .replay.source import ReplaySource

        return ReplaySource(detail)
    hint = did_you_mean(kind, [known.partition(":")[0] for known in NAMES])
    raise UsageError(f"unknown source {name!r}{hint}", f"choose one of {', '.join(NAMES)}.")


def metric_sources() -> dict[str, frozenset[str]]:
    """Return the GPU metrics that each vendor's source can read on some machine."""
    modules = {name: __import__(f"gpulse.sources.{name}.source", fromlist=["KEYS"]) for name in VENDORS}
    return {name: module.KEYS for name, module in modules.items()}
