"""Processes of an Intel GPU, from the clients in /proc."""

from __future__ import annotations

from ..base import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base import Key
    from ..drm.clients import ClientUse

_RENDER = ("render", "rcs")  # i915's word and xe's
_COMPUTE = ("compute", "ccs")
_UNSAID = ("memory_utilization", "encoder_utilization", "decoder_utilization")  # one video engine does both


def read_processes(uses: Iterable[ClientUse], integrated: bool, keys: Key) -> dict[int, Facts]:
    """Return the processes of one GPU by pid; an integrated GPU's memory is the machine's."""
    by_pid: dict[int, list[ClientUse]] = {}
    for use in uses:
        by_pid.setdefault(use.pid, []).append(use)
    regions = ("system", "gtt", "stolen") if integrated else ("local", "vram")
    return {pid: _facts(pid, own, regions, keys) for pid, own in sorted(by_pid.items())}


def _facts(pid: int, uses: list[ClientUse], regions: tuple[str, ...], keys: Key) -> Facts:
    facts = Facts()
    facts.values["pid"] = pid
    facts.values["type"] = "C" if _ran(uses, _COMPUTE) and not _ran(uses, _RENDER) else "G"
    amounts = [held for use in uses if (held := use.client.held(*regions)) is not None]
    if amounts:
        facts.values["memory_used"] = sum(amounts)
    else:
        facts.gaps["memory_used"] = "unsupported"
    facts.gaps.update({key: "unsupported" for key in _UNSAID if key in keys})
    if "sm_utilization" in keys:
        known = [use.shares for use in uses if use.shares is not None]
        sums = [sum(shares.get(engine, 0.0) for shares in known) for engine in (*_RENDER, *_COMPUTE)]
        if known:
            facts.values["sm_utilization"] = round(min(100.0, max(sums)), 1)
        else:
            facts.gaps["sm_utilization"] = "pending"
    return facts


def _ran(uses: list[ClientUse], engines: tuple[str, ...]) -> bool:
    return any(use.client.busy.get(engine) or use.client.cycles.get(engine) for use in uses for engine in engines)
