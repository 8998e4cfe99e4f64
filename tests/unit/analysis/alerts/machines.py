"""Machines that rules look at: short to write, one sample a second."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpulse.analysis.alerts import RuleSet, Transition, rules_from
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot

if TYPE_CHECKING:
    from gpulse.model.catalog import State

START = 1_700_000_000.0
GIB = 1 << 30


def gpu(index: int = 0, state: State = "ok", processes: Iterable[Process] = (), **values: Any) -> Gpu:
    known: dict[str, Any] = {"index": index, "uuid": f"GPU-{index}", "memory_total": 100 * GIB} | values
    return Gpu(
        {key: value for key, value in known.items() if value is not None}, state=state, processes=tuple(processes)
    )


def process(pid: int = 42, held: float | None = None, **values: Any) -> Process:
    known: dict[str, Any] = {"pid": pid, "name": "python", "user": "ada", "type": "C", "memory_used": held} | values
    return Process({key: value for key, value in known.items() if value is not None})


def book(*names: str, **tables: Mapping[str, Any] | list[dict[str, Any]]) -> RuleSet:
    """Return a book with these built-in rules only; all of them when none is named."""
    table: dict[str, Any] = {"enable": list(names)} if names or tables.get("rule") else {}
    return RuleSet(rules_from({**table, **tables}))


def watch(
    rules: RuleSet,
    make: Callable[[float], Gpu | tuple[Gpu, ...]],
    seconds: float,
    step: float = 1.0,
    start: float = 0.0,
) -> list[Transition]:
    """Look for so many seconds at what `make` gives for the seconds since START."""
    found = []
    for at in range(int(seconds / step)):
        time = start + at * step
        gpus = make(time)
        found += rules.observe(Snapshot(START + time, gpus if isinstance(gpus, tuple) else (gpus,), Host({})))
    return found


def turns(found: Iterable[Transition]) -> list[tuple[str, str, float]]:
    """Return what turned and when, in seconds since START."""
    return [(one.rule, one.state, one.time - START) for one in found]
