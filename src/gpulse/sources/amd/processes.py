"""Processes of an AMD GPU: graphics clients from /proc and compute processes from KFD, joined by pid.

ROCm's queues go past the graphics scheduler, so a compute process has no engine time: its share is a gap, not 0.
"""

from __future__ import annotations

from ..base import Facts
from .kfd import compute_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base import Key
    from ..drm.clients import ClientUse

# Keys of a process and the engines whose time they are; the busier of several counts.
SHARES = {"sm_utilization": ("gfx", "compute"), "encoder_utilization": ("enc",), "decoder_utilization": ("dec",)}


def read_processes(
    uses: Iterable[ClientUse], root: str, gpu_ids: Iterable[int], apu: bool, keys: Key
) -> dict[int, Facts]:
    """Return the processes of one GPU by pid; memory on an APU includes what is mapped of the machine's."""
    by_pid: dict[int, list[ClientUse]] = {}
    for use in uses:
        by_pid.setdefault(use.pid, []).append(use)
    computing: dict[int, int] = {}
    for gpu_id in gpu_ids:
        for pid, amount in compute_memory(root, gpu_id).items():
            computing[pid] = computing.get(pid, 0) + amount
    pools = ("vram", "gtt") if apu else ("vram",)
    return {
        pid: _facts(pid, by_pid.get(pid, []), computing.get(pid), pools, keys)
        for pid in sorted(by_pid.keys() | computing.keys())
    }


def _facts(pid: int, uses: list[ClientUse], computes: int | None, pools: tuple[str, ...], keys: Key) -> Facts:
    facts = Facts()
    facts.values["pid"] = pid
    facts.values["type"] = _type(uses, computes)
    amounts = [held for use in uses if (held := use.client.held(*pools)) is not None]
    held = sum(amounts) if amounts else None
    if computes is not None:  # both lists count the same memory
        held = computes if held is None else max(held, computes)
    if held is None:
        facts.gaps["memory_used"] = "unsupported"
    else:
        facts.values["memory_used"] = held
    for key, engines in SHARES.items():
        if key in keys:
            _share(facts, key, engines, uses, computes)
    if "memory_utilization" in keys:
        facts.gaps["memory_utilization"] = "unsupported"
    return facts


def _share(facts: Facts, key: str, engines: tuple[str, ...], uses: list[ClientUse], computes: int | None) -> None:
    names = {name for use in uses for name in use.client.busy if name.startswith(engines)}
    known = [use.shares for use in uses if use.shares is not None]
    if not names or (computes is not None and key == "sm_utilization"):
        facts.gaps[key] = "unsupported"
    elif not known:
        facts.gaps[key] = "pending"
    else:
        sums = [sum(shares.get(name, 0.0) for shares in known) for name in names]
        facts.values[key] = round(min(100.0, max(sums)), 1)


def _type(uses: list[ClientUse], computes: int | None) -> str:
    """Tell compute from graphics by the engines that ran; a client that ran nothing yet is graphics."""
    ran = {name for use in uses for name, busy in use.client.busy.items() if busy}
    if computes is not None:
        return "C+G" if any(name.startswith("gfx") for name in ran) else "C"
    return "C" if any(name.startswith("compute") for name in ran) and not any(n.startswith("gfx") for n in ran) else "G"
