"""Two runs side by side, and which of their differences matter."""

from __future__ import annotations

from ...model.event import SEVERITY
from ...present.quantities import DASH, energy_text, quantity_text, seconds_text
from ...present.text import Untrusted
from ...present.words import short_name
from ...units import duration_text, size_text
from .charts import both_charts
from .document import Charts, Document, Lines, Loud, TableBlock
from .pages import idle_share, peak_of, subtitle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .document import Block, Cell
    from .run import Run

_ENOUGH = 0.05  # part by which figures must differ
_SURE = 2.0  # standard errors by which means must differ
_PARTS = 10  # parts a run is cut into; the spread of their means tells how far to trust the overall mean
_METRICS = (
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
_EVENTS = {
    "out-of-memory": "Out of memory",
    "throttled": "Times throttled",
    "xid": "XID errors",
    "memory-errors": "Memory errors",
    "lost": "Lost GPUs",
    "timeout": "Driver timeouts",
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
        """Whether it is more than chance, more than a trifle and more than one part in twenty."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        gap = abs(self.after - self.before)
        return gap > _ENOUGH * max(abs(self.before), abs(self.after)) and gap > _SURE * self.noise and gap > self.floor

    def row(self) -> list[Cell]:
        """Return it as a row of a table."""
        return [self.title, self._written(self.before), self._written(self.after), self._change()]

    def _written(self, value: float | None) -> str:
        return DASH if value is None else self._text(value)

    def _change(self) -> str:
        if self.before is None or self.after is None:
            return DASH
        gap = self.after - self.before
        words = self._text(abs(gap))
        if words == self._text(0.0) and not self.matters:
            return "same"
        arrow = "▲" if gap > 0 else "▼"
        if words.endswith(" %"):  # a change of a percentage is in points: 5 % to 10 % is not "+100 %"
            points = words.removesuffix(" %")
            said = f"{arrow} {points} point{'' if points == '1' else 's'}"
        else:
            percent = 100 * gap / abs(self.before) if self.before else 0.0
            part = f" ({percent:+.0f} %)" if 0.5 <= abs(percent) < 10_000 else ""
            said = f"{arrow} {words}{part}"
        return Loud(said) if self.matters else said


def comparison_document(first: Run, second: Run, title: str = "") -> Document:
    """Return two runs side by side."""
    runs, names = (first, second), ("A", "B")
    found = differences(first, second)
    loud = {at: "changed" for at, difference in enumerate(found) if difference.matters}
    telling = [difference for difference in found if difference.matters]
    blocks: list[Block] = [
        Lines("Differences", _headline(telling)),
        TableBlock(
            "Figures",
            ("Figure", "A", "B", "Difference"),
            [_runs_row(runs), *(difference.row() for difference in found)],
            caption="Marked: differences of more than 5 % that also exceed the variation within each run. Means over all GPUs.",
            styles={at + 1: style for at, style in loud.items()},
        ),
        *_verdicts(runs, names),
        Charts("Timelines", runs, both_charts(runs, names), ()),
        _gpu_pairs(first, second),
        TableBlock("Machines", ("What", "A", "B"), _machines(first, second), wide=("A", "B")),
    ]
    about = (
        "A: ",
        Untrusted(first.name),
        " · ",
        *subtitle(first),
        " | B: ",
        Untrusted(second.name),
        " · ",
        *subtitle(second),
    )
    there = [block for block in blocks if not isinstance(block, TableBlock) or block.rows]
    return Document(
        Untrusted(title) if title else ("Two runs: ", Untrusted(first.name), ", ", Untrusted(second.name)), about, there
    )


def differences(first: Run, second: Run) -> list[Difference]:
    """Return all figures that at least one of the runs has, and not as zero."""
    one, two = first.summary, second.summary
    found = [
        Difference("Duration", (one.seconds, two.seconds), seconds_text, floor=1.0),
        Difference("Steps per second", (one.steps_per_second, two.steps_per_second), "{:.3g}/s".format),
        Difference("Items per second", (one.items_per_second, two.items_per_second), "{:.4g}/s".format),
        Difference("Waiting for data", (_waited(first), _waited(second)), "{:.0f} %".format, floor=1.0),
        *(
            Difference(
                title,
                (first.mean(key), second.mean(key)),
                lambda value, unit=unit: quantity_text(unit, value),  # type: ignore[misc]
                (_noise(first, key) ** 2 + _noise(second, key) ** 2) ** 0.5,
                floor,
            )
            for title, key, unit, floor in _METRICS
        ),
        Difference("Peak memory", (_peak(first), _peak(second)), size_text, floor=256 << 20),
        Difference("Energy", (one.energy, two.energy), energy_text, floor=36.0),
        Difference("Energy per step", (_per_step(first), _per_step(second)), energy_text),
        Difference("Idle", (idle_share(one), idle_share(two)), "{:.0f} %".format, floor=1.0),
        Difference("Throttled (worst GPU)", (_held(first), _held(second)), duration_text, floor=1.0),
        Difference("Host CPU", (_host(first), _host(second)), "{:.0f} %".format, floor=1.0),
    ]
    counts = [
        Difference(title, (first.count(kind), second.count(kind)), "{:.0f}".format)
        for kind, title in _EVENTS.items()
        if kind in SEVERITY and first.count(kind) + second.count(kind)
    ]
    return [each for each in found if each.before or each.after] + counts


def _noise(run: Run, key: str) -> float:
    """Return the standard error of a mean over the run and its GPUs, by how much the parts of the run differ."""
    length = len(run.timeline.at)
    parts: list[float] = []
    traces = [trace for (_, name), trace in run.timeline.traces.items() if name == key]
    for part in range(_PARTS):
        points = range(part * length // _PARTS, (part + 1) * length // _PARTS)
        full = [(trace, at) for trace in traces for at in points if at < len(trace.counts) and trace.counts[at]]
        if full:
            parts.append(sum(trace.sums[at] for trace, at in full) / sum(trace.counts[at] for trace, at in full))
    if len(parts) < 2:
        return 0.0
    mean = sum(parts) / len(parts)
    return float((sum((part - mean) ** 2 for part in parts) / (len(parts) - 1) / len(parts)) ** 0.5)


def _headline(telling: Sequence[Difference]) -> list[Cell]:
    if not telling:
        return ["No significant differences: all values agree within 5 % or within the variation of each run."]
    return [
        (
            f"{difference.title}: ",
            *(str(difference.row()[1]), " → ", str(difference.row()[2])),
            f" {difference.row()[3]}",
        )
        for difference in telling
    ]


def _runs_row(runs: tuple[Run, Run]) -> list[Cell]:
    def gpus(run: Run) -> Cell:
        names = ", ".join(dict.fromkeys(short_name(gpu) for gpu in run.last.gpus))
        return (f"{len(run.summary.gpus)} × ", Untrusted(names))

    return ["GPUs", gpus(runs[0]), gpus(runs[1]), ""]


def _verdicts(runs: tuple[Run, Run], names: tuple[str, str]) -> list[Lines]:
    return [Lines(f"What limited {name}", run.verdict) for run, name in zip(runs, names, strict=True) if run.verdict]


def _gpu_pairs(first: Run, second: Run) -> TableBlock:
    """Return GPUs beside each other, in their order; nothing where the runs had different numbers of them."""
    one, two = first.summary.gpus, second.summary.gpus
    key = first.activity if first.activity == second.activity else "utilization"
    rows: list[list[Cell]] = []
    if 1 < len(one) == len(two):
        for label, a, b in zip(first.labels, one, two, strict=True):
            means = [gpu.stats[key].mean if key in gpu.stats else None for gpu in (a, b)]
            powers = [gpu.stats["power_draw"].mean if "power_draw" in gpu.stats else None for gpu in (a, b)]
            peaks = [quantity_text("B", gpu.peak_memory) for gpu in (a, b)]
            activity = [quantity_text("%", mean) for mean in means]
            rows.append([label, *activity, *peaks, *(quantity_text("W", watts) for watts in powers)])
    name = "SM" if key == "sm_active" else "Util."
    header = ("GPU", f"{name} A", f"{name} B", "Peak memory A", "Peak memory B", "Power A", "Power B")
    return TableBlock("GPU by GPU", header, rows, caption="GPUs by index.")


def _machines(first: Run, second: Run) -> list[list[Cell]]:
    keys = dict.fromkeys([*first.last.driver, *second.last.driver])
    names = {"version": "Driver", "cuda": "CUDA"}
    rows: list[list[Cell]] = [
        ["Machine", Untrusted(first.last.host.name or DASH), Untrusted(second.last.host.name or DASH)]
    ]
    for key in keys:
        pair = (Untrusted(first.last.driver.get(key, DASH)), Untrusted(second.last.driver.get(key, DASH)))
        rows.append([names.get(key, Untrusted(key)), *pair])
    return rows


def _waited(run: Run) -> float | None:
    summary = run.summary
    return 100 * summary.waited / summary.seconds if summary.waited and summary.seconds else None


def _peak(run: Run) -> float | None:
    found = peak_of(run.summary)
    return None if found is None else found[1].peak_memory


def _per_step(run: Run) -> float | None:
    summary = run.summary
    return summary.energy / summary.steps if summary.energy is not None and summary.steps else None


def _held(run: Run) -> float | None:
    return max((gpu.throttled_seconds for gpu in run.summary.gpus), default=None)


def _host(run: Run) -> float | None:
    stats = run.summary.host.get("cpu_percent")
    return None if stats is None else stats.mean
