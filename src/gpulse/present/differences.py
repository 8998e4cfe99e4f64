"""Differences between two runs or two periods: which of them matter, and how they are worded."""

from __future__ import annotations

from .events import kind_title
from .quantities import DASH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PARTS = 10  # parts a period is cut into; the spread of their means tells how far to trust the overall mean
NOTE = "Marked: differences of more than 5 % that also exceed the variation within each run."
_ENOUGH = 0.05  # part by which figures must differ
_SURE = 2.0  # standard errors by which means must differ
# Title, catalog key, unit, and the difference below which nobody cares, in that unit.
COMPARED = (
    *(("Utilization", "utilization", "%", 1.0), ("SM active", "sm_active", "%", 1.0)),
    *(("Tensor active", "tensor_active", "%", 1.0), ("DRAM active", "dram_active", "%", 1.0)),
    *(("Power per GPU", "power_draw", "W", 5.0), ("SM clock", "clock_sm", "MHz", 15.0)),
    *(
        ("Temperature", "temperature", "°C", 2.0),
        ("PCIe in", "pcie_rx", "B/s", 1e6),
        ("PCIe out", "pcie_tx", "B/s", 1e6),
    ),
    *(("NVLink in", "nvlink_rx", "B/s", 1e6), ("NVLink out", "nvlink_tx", "B/s", 1e6)),
)
COUNTED = {
    kind: kind_title(kind)[:1].upper() + kind_title(kind)[1:]
    for kind in ("out-of-memory", "throttled", "xid", "memory-errors", "lost", "timeout")
}


class Difference:
    """One figure of both runs. `noise` is how far it may differ by chance, `floor` what nobody cares about, both in its unit."""

    def __init__(
        self,
        title: str,
        values: tuple[float | None, float | None],
        text: Callable[[float], str],
        noise: float = 0.0,
        floor: float = 0.0,
    ) -> None:
        self.title = title
        self.before, self.after = values
        self.noise = noise
        self.floor = floor
        self._text = text

    @property
    def matters(self) -> bool:
        """Whether it is more than chance, more than a trifle and more than one part in twenty; not if a figure is unknown."""
        if self.before is None or self.after is None:
            return False
        gap = abs(self.after - self.before)
        return gap > _ENOUGH * max(abs(self.before), abs(self.after)) and gap > _SURE * self.noise and gap > self.floor

    @property
    def before_text(self) -> str:
        """The first figure in words; a dash when it is unknown."""
        return DASH if self.before is None else self._text(self.before)

    @property
    def after_text(self) -> str:
        """The second figure in words; a dash when it is unknown."""
        return DASH if self.after is None else self._text(self.after)

    @property
    def change_text(self) -> str:
        """The difference in words: "▼ 220 Wh (-34 %)", "▲ 5 points", "same"; a dash when a figure is unknown."""
        if self.before is None or self.after is None:
            return DASH
        gap = self.after - self.before
        words = self._text(abs(gap))
        if words == self._text(0.0) and not self.matters:
            return "same"
        arrow = "▲" if gap > 0 else "▼"
        if words.endswith(" %"):  # a change of a percentage is in points: 5 % to 10 % is not "+100 %"
            points = words.removesuffix(" %")
            return f"{arrow} {points} point{'' if points == '1' else 's'}"
        percent = 100 * gap / abs(self.before) if self.before else 0.0
        part = f" ({percent:+.0f} %)" if 0.5 <= abs(percent) < 10_000 else ""
        return f"{arrow} {words}{part}"


def headline(found: Sequence[Difference]) -> list[str]:
    """Return the differences that matter as sentences, or the one that says there are none."""
    telling = [difference for difference in found if difference.matters]
    if not telling:
        return ["No significant differences: all values agree within 5 % or within the variation of each run."]
    return [f"{one.title}: {one.before_text} → {one.after_text} {one.change_text}" for one in telling]


def nothing_to_compare(empty: Sequence[str]) -> str:
    """Return why two periods cannot be compared, of which these have no records; empty if they can."""
    if not empty:
        return ""
    which = f"the {empty[0]} period" if len(empty) == 1 else "either period"
    return f"Nothing to compare: nothing was recorded in {which}."


def standard_error(means: Sequence[float]) -> float:
    """Return how far to trust an overall mean, by how much the means of its parts differ; 0 for less than two."""
    if len(means) < 2:
        return 0.0
    mean = sum(means) / len(means)
    return float((sum((part - mean) ** 2 for part in means) / (len(means) - 1) / len(means)) ** 0.5)
