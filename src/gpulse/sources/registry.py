"""Which sources there are: a vendor is one line here and one folder beside."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..model.select import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .base import Source

NAMES = ("auto", "nvidia", "demo", "replay:FILE")


def make_source(name: str, root: str | None = None) -> Source:
    """Return the source of this name, not yet opened; raise UsageError when there is none.

    `root` stands before /proc and /sys, for tests; None takes it from GPULSE_ROOT.
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
    close = nearest(kind, [known.partition(":")[0] for known in NAMES])
    hint = f"; did you mean {close[0]}?" if close and close[0] != kind else "."
    raise UsageError(f"there is no source {name!r}{hint}", f"Choose one of {', '.join(NAMES)}.")


def metric_sources() -> dict[str, frozenset[str]]:
    """Return, by vendor, the GPU metrics that its source can have on some machine."""
    from .nvidia.device import KEYS

    return {"nvidia": KEYS}
