"""A running Monitor in words: its phase, step, waits, and the lines of code that keep the GPU waiting."""

from __future__ import annotations

import os

from .quantities import rate_text, seconds_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..monitor.presence import Presence

_LINES = 3
_SHORT = ("Run", "Phase", "Step", "Step time", "Data wait")


def running_text(run: Presence) -> str:
    """Return what a Monitor says of its run on one line, without its lines of code."""
    parts = [(label, text) for label, text in running_parts(run) if label in _SHORT]
    return " · ".join(text if label == "Run" else f"{label.lower()} {text}" for label, text in parts)


def running_parts(run: Presence) -> Iterator[tuple[str, str]]:
    """Yield what a Monitor says of its run, each with a label; what it does not know is left out."""
    rank = "" if run.rank is None else f", rank {run.rank}"
    yield "Run", f"{run.run}{rank} · {seconds_text(run.seconds)}"
    if run.phase:
        yield "Phase", run.phase
    if run.step is not None:
        rate = "" if run.steps_per_second is None else f" · {rate_text(run.steps_per_second)}/s"
        yield "Step", f"{run.step}{rate}"
    times = (("p50", run.step_p50), ("p95", run.step_p95), ("max", run.step_max))
    if known := [f"{name} {seconds_text(value)}" for name, value in times if value is not None]:
        yield "Step time", " · ".join(known)
    if run.data_wait is not None:
        yield "Data wait", f"{run.data_wait:.0f} %"
    for at, line in enumerate(run.code[:_LINES]):
        place = f"{os.path.basename(line['file'])}:{line['line']} {line['function']}"
        yield "" if at else "GPU waits in", f"{place} ({seconds_text(line['waited'])})"
