"""Machines of a fleet in words: their states, their GPUs, and what is wrong with them that no verdict tells."""

from __future__ import annotations

from .text import clean
from .words import gpus_text, label, remarks, short_name, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..model.catalog import Gpu
    from ..model.fleet import HostReport

# In words, and how bad it is.
STATES = {
    "ok": ("ok", ""),
    "connecting": ("connecting", "label"),
    "stale": ("stale", "warn"),
    "unreachable": ("unreachable", "critical"),
    "denied": ("access denied", "critical"),
    "no_gpu": ("no GPU", "label"),
    "failed": ("failed", "critical"),
}


def visible_trouble(host: HostReport, now: float, judged: bool) -> Iterator[tuple[str, str, str]]:
    """Yield severity, place and sentence for what is wrong with a machine beside its verdicts: it cannot be read.

    Before it has been `judged`, what its values tell: GPUs that are lost, throttled or report errors.
    """
    state, style = STATES[host.state]
    if style in ("critical", "warn"):
        yield style, "", f"{state}: {clean(host.reason)}" if host.reason else state
    for gpu in () if judged else host.gpus:
        words, style = silence(gpu, host.snapshot.time if host.snapshot else now)
        for text, kind in [(words, style)] if words else [(text, kind) for text, kind, _ in remarks(gpu)]:
            if kind in ("critical", "warn"):
                yield kind, gpus_text([label(gpu)]), text


def product(gpus: Sequence[Gpu]) -> str:
    """Return what GPUs these are: 8 × H100 80GB HBM3."""
    names = list(dict.fromkeys(short_name(gpu) for gpu in gpus))
    if not names:
        return "no GPU"
    return f"{len(gpus)} × {names[0]}" if len(names) == 1 else f"{len(gpus)} GPUs, {len(names)} kinds"
