"""The known sources. A new vendor adds one line here and one folder next to this file."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..model.select import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Source

NAMES = ("auto", "nvidia", "demo", "replay:FILE")


def make_source(name: str, root: str | None = None) -> Source:
    """Return the source with this name, not yet opened; raise UsageError if it is unknown.

    `root` is prefixed to /proc and /sys, for tests; None takes it from GPULSE_ROOT.
    """
    kind, _, detail = name.partition(":")
    if kind in ("auto", "nvidia"):
        from .nvidia.source import NvidiaSource

        return NvidiaSource(os.environ.get("GPULSE_ROOT", "") if root is None else root)
    if kind == "demo":
        from .simulated.source import SimulatedSource

        return SimulatedSource()
    if kind == "replay" and detail:
        from .replay.source import ReplaySource

        return ReplaySource(detail)
    hint = did_you_mean(kind, [known.partition(":")[0] for known in NAMES])
    raise UsageError(f"unknown source {name!r}{hint}", f"choose one of {', '.join(NAMES)}.")


def metric_sources() -> dict[str, frozenset[str]]:
    """Return the GPU metrics that each vendor's source can read on some machine."""
    from .nvidia.device import KEYS

    return {"nvidia": KEYS}
