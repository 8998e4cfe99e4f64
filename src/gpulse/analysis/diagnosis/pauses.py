"""Pauses: when a GPU did nothing for a while, from the driver's own samples where it has them, else from ours."""

from __future__ import annotations

from .window import TRACE_STEP
from .workload import BUSY_SM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .load import Load

_PARTLY, _DEEP, _WHOLE = (
    0.25,
    0.7,
    0.95,
)  # of a sample without work: at the edge of a pause, in its emptiest sample, inside
_SHORTEST = 1.2  # sampling intervals that a pause lasts where only samples show it


def pauses(load: Load, least: float) -> list[tuple[float, float]]:
    """Return when the GPU did nothing for `least` seconds or more, as pairs of start and end in seconds since 1970."""
    if load.traced:
        return _runs([(time - TRACE_STEP, time, 1.0 if value < 2.0 else 0.0) for time, value in load.traced], least)
    return _runs(_dips(load), max(least, _SHORTEST * load.interval))


def _dips(load: Load) -> list[tuple[float, float, float]]:
    """Return start and end of each sample, and the share of it (0–1) in which nothing ran, from how far it is below the usual."""
    sm, use = load.values("sm_active"), load.values("utilization")
    detailed = sum(value is not None for value in sm) >= sum(
        value is not None for value in use
    )  # counters may be read less often
    known = sorted(value for value in (sm if detailed else use) if value is not None)
    usual = known[len(known) * 3 // 4] if known else 0.0
    found = []
    for at, (here, busy) in enumerate(zip(sm, use, strict=True)):
        value = here if detailed else busy
        end = load.gpu.times[load.first + at]
        if _is_quiet(here if detailed else None, busy):
            share = 1.0
        else:
            share = 0.0 if value is None or usual <= 0 else max(0.0, 1.0 - value / usual)
        found.append((end - load.weights[at], end, share))
    return found


def _is_quiet(sm: float | None, utilization: float | None) -> bool:
    """Tell whether no kernel ran at a sample; copies may have."""
    if sm is not None:
        return sm < 2 * BUSY_SM
    return utilization is not None and utilization < 2.0


def _runs(slots: Sequence[tuple[float, float, float]], least: float) -> list[tuple[float, float]]:
    """Return the stretches of slots that are empty, their first and last perhaps only in part, of at least `least` seconds."""
    found: list[tuple[float, float]] = []
    start: int | None = None
    for at in range(len(slots) + 1):
        dips = at < len(slots) and slots[at][2] >= _PARTLY
        whole = dips and slots[at][2] >= _WHOLE
        if dips and start is None:
            start = at
        elif start is not None and not whole:
            last = at if dips else at - 1  # the last slot of a pause may be empty in part only
            run = slots[start : last + 1]
            length = sum((end - begin) * share for begin, end, share in run)
            if length >= least and max(share for _, _, share in run) >= _DEEP:
                begin = run[0][1] - (run[0][1] - run[0][0]) * run[0][2]
                found.append((begin, begin + length))
            start = None
    return found
