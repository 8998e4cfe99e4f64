"""Throttle reasons from the firmware's `gpu_metrics` table.

Words that NVIDIA's driver has too are used where they mean the same; `throttle_status` differs from chip to chip and is not read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .metrics import MetricsTable

_POWER, _CURRENT, _HEAT, _HARDWARE = "sw_power_cap", "current_limit", "sw_thermal_slowdown", "hw_thermal_slowdown"
# The bits of indep_throttle_status, which are the same on all chips (swsmu/inc/amdgpu_smu.h).
_BITS = (
    (range(8), _POWER),
    (range(16, 24), _CURRENT),
    (range(32, 44), _HEAT),
    (range(44, 48), _HARDWARE),  # VRHOT and PROCHOT: a signal from outside the chip
)
# Counters of the time in which a limit was in force; one that grew since the sample before was in force in between.
_RESIDENCIES = {
    "prochot_residency_acc": _HARDWARE,
    "ppt_residency_acc": _POWER,
    "socket_thm_residency_acc": _HEAT,
    "vr_thm_residency_acc": _HEAT,
    "hbm_thm_residency_acc": _HEAT,
    "throttle_residency_prochot": _HARDWARE,
    "throttle_residency_spl": _POWER,
    "throttle_residency_fppt": _POWER,
    "throttle_residency_sppt": _POWER,
    "throttle_residency_thm_core": _HEAT,
    "throttle_residency_thm_gfx": _HEAT,
    "throttle_residency_thm_soc": _HEAT,
}


class Throttle:
    """What holds one GPU's clocks down; remembers the counters of the sample before."""

    __slots__ = "_before"

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def words(self, table: MetricsTable, busy: float | None) -> tuple[str, ...] | None:
        """Return the active reasons; None if the table has none or a second sample is needed."""
        status = table.number("indep_throttle_status")
        if status is not None:
            return _decoded(status) if busy != 0 else ()  # an idle GPU may leave bits of its last work standing
        counts = {name: count for name in _RESIDENCIES if (count := table.number(name)) is not None}
        return self._grown(counts)

    def counts(self, table: MetricsTable) -> bool:
        """Return whether the reasons come from counters, which need two samples."""
        return any(table.number(name) is not None for name in _RESIDENCIES)

    def _grown(self, counts: dict[str, int]) -> tuple[str, ...] | None:
        before, self._before = self._before, counts
        if not counts or not before:
            return None
        grown = [
            word for name, word in _RESIDENCIES.items() if counts.get(name, 0) > before.get(name, counts.get(name, 0))
        ]
        return tuple(dict.fromkeys(grown))


def _decoded(status: int) -> tuple[str, ...]:
    return tuple(word for bits, word in _BITS if any(status >> bit & 1 for bit in bits))
