"""Two runs side by side, and which of their differences matter; and reports as plain data, ready for JSON."""

from __future__ import annotations

from functools import partial
from itertools import starmap
from operator import attrgetter

from ...analysis.run_comparison import RunComparison
from ...analysis.tally import together
from ...model.codec import time_text
from ...present.cells import DASH, energy_text, quantity_text, rate_text, seconds_text
from ...present.cost import money_text
from ...present.events import event_text
from ...present.runs import COMPARED, COUNTED, NOTE, PARTS, Difference, comparison_text, headline, standard_error
from ...present.text import Untrusted
from ...present.verdicts import worded
from ...present.words import short_name
from ...units import duration_text, size_text
from .charts import both_charts
from .document import Charts, Document, Lines, Loud, TableBlock, TimeBars, with_content
from .pages import idle_share, peak_of, subtitle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from .document import Block, Cell
    from .run import Run

    Figure: TypeAlias = tuple[str, Callable[[Run], float | None], Callable[[float], str], str, float]


def _waited(run: Run) -> float | None:
    summary = run.summary
    return 100 * summary.waited / summary.seconds if summary.waited and summary.seconds else None


def _peak(run: Run) -> float | None:
    found = peak_of(run.summary)
    return None if found is None else found[1].peak_memory


def _host_cpu(run: Run) -> float | None:
    stats = run.summary.host.get("cpu_percent")
    return None if stats is None else stats.mean


def _mfu(run: Run) -> float | None:
    return None if run.summary.mfu is None else run.summary.mfu.percent


def _throttled(run: Run) -> float | None:
    return max((gpu.throttled_seconds for gpu in run.summary.gpus), default=None)


def _cost_per(run: Run, count: float) -> float | None:
    return None if run.cost is None or run.cost.total is None or not count else run.cost.total / count


def _per_second(name: str) -> Figure:
    key = f"{name}_per_second"
    figure, title = attrgetter(f"summary.{key}"), f"{name.capitalize()} per second"
    return title, figure, lambda rate: f"{rate_text(rate)}/s", f"train/{key}", 0.0


def _mean(title: str, key: str, unit: str, floor: float) -> Figure:
    return title, lambda run: run.mean(key), partial(quantity_text, unit), key, floor


def _served(title: str, key: str, text: Callable[[float], str], floor: float) -> Figure:
    return title, lambda run: together(run.serving, key), text, "", floor


def _each(name: str) -> tuple[Figure, Figure]:
    """Return what one step, item or token took."""
    count = attrgetter(f"summary.{name}s")
    return (
        (f"Energy per {name}", lambda run: run.summary.energy_per(count(run)), energy_text, "", 0.0),
        (f"Cost per {name}", lambda run: _cost_per(run, count(run)), money_text, "", 0.0),
    )


_PERCENT = "{:.0f} %".format
_ENERGY, _COST = zip(*map(_each, ("step", "item", "token")), strict=True)
# Title, the figure of a run, its text, the metric whose variation says how far it may differ by chance, what nobody cares about.
_FIGURES: tuple[Figure, ...] = (
    ("Duration", lambda run: run.summary.seconds, seconds_text, "", 1.0),
    *map(_per_second, ("steps", "items", "tokens")),
    ("MFU", _mfu, "{:.3g} %".format, "train/mfu", 0.0),
    ("Waiting for data", _waited, _PERCENT, "", 1.0),
    *starmap(_mean, COMPARED),
    _served("Generated tokens", "generation_rate", partial(quantity_text, "tok/s"), 1.0),
    _served("Waiting requests", "waiting", "{:.1f}".format, 0.5),
    _served("KV cache", "kv_cache", partial(quantity_text, "%"), 1.0),
    _served("First token p95", "first_token_p95", seconds_text, 0.01),
    _served("Between tokens p95", "inter_token_p95", seconds_text, 0.001),
    _served("Tokens per joule", "tokens_per_joule", partial(quantity_text, "tok/J"), 0.01),
    ("Peak memory", _peak, size_text, "", 256 << 20),
    ("Energy", lambda run: run.summary.energy, energy_text, "", 36.0),
    *_ENERGY,
    *_COST,
    ("Idle", lambda run: idle_share(run.summary), _PERCENT, "", 1.0),
    ("Throttled (worst GPU)", _throttled, duration_text, "", 1.0),
    ("Host CPU", _host_cpu, _PERCENT, "", 1.0),
)


def comparison_document(first: Run, second: Run, title: str = "") -> Document:
    """Return two runs side by side."""
    runs, names = (first, second), ("A", "B")
    found = differences(first, second)
    loud = {at: "changed" for at, difference in enumerate(found) if difference.matters}
    blocks: list[Block] = [
        Lines("Differences", [*_speed(first, second), *headline(found)]),
        TableBlock(
            "Figures",
            ("Figure", "A", "B", "Difference"),
            [_runs_row(runs), *(_row(difference) for difference in found)],
            caption=f"{NOTE} Means over all GPUs.",
            styles={at + 1: style for at, style in loud.items()},
        ),
        *_verdicts(runs, names),
        Charts("Timelines", runs, both_charts(runs, names), ()),
        _gpu_pairs(first, second),
        TableBlock("Machines", ("What", "A", "B"), _machines(first, second), wide=("A", "B")),
    ]
    one, two = Untrusted(first.name), Untrusted(second.name)
    about = ("A: ", one, " · ", *subtitle(first), " | B: ", two, " · ", *subtitle(second))
    return Document(Untrusted(title) if title else ("Two runs: ", one, ", ", two), about, with_content(blocks))


def speed(first: Run, second: Run) -> RunComparison | None:
    """Return which run was faster, by the times of their steps; None for recordings that no kept run has."""
    return None if first.kept is None or second.kept is None else RunComparison(first.kept, second.kept)


def _speed(first: Run, second: Run) -> list[Cell]:
    found = speed(first, second)
    return [] if found is None else [Untrusted(f"Speed of B: {comparison_text(found, second.end, 'A')}.")]


def differences(first: Run, second: Run) -> list[Difference]:
    """Return all figures that at least one of the runs has, and not as zero."""
    found = [
        Difference(title, figure(first), figure(second), text, _both(first, second, noise) if noise else 0.0, floor)
        for title, figure, text, noise, floor in _FIGURES
    ]
    counts = [
        Difference(title, first.count(kind), second.count(kind), "{:.0f}".format)
        for kind, title in COUNTED.items()
        if first.count(kind) + second.count(kind)
    ]
    return [each for each in found if each.before or each.after] + counts


def _both(first: Run, second: Run, key: str) -> float:
    """Return how far the difference of two means may be off by chance."""
    return float((_noise(first, key) ** 2 + _noise(second, key) ** 2) ** 0.5)


def _noise(run: Run, key: str) -> float:
    """Return the standard error of a mean over the run and its GPUs, by how much the parts of the run differ."""
    length = len(run.timeline.at)
    parts: list[float] = []
    traces = [trace for (_, name), trace in run.timeline.traces.items() if name == key]
    for part in range(PARTS):
        points = range(part * length // PARTS, (part + 1) * length // PARTS)
        full = [(trace, at) for trace in traces for at in points if at < len(trace.counts) and trace.counts[at]]
        if full:
            parts.append(sum(trace.sums[at] for trace, at in full) / sum(trace.counts[at] for trace, at in full))
    return standard_error(parts)


def _row(difference: Difference) -> list[Cell]:
    change = Loud(difference.change_text) if difference.matters else difference.change_text
    return [difference.title, difference.before_text, difference.after_text, change]


def _runs_row(runs: tuple[Run, Run]) -> list[Cell]:
    def gpus(run: Run) -> Cell:
        names = ", ".join(dict.fromkeys(short_name(gpu) for gpu in run.last.gpus))
        return (f"{len(run.summary.gpus)} × ", Untrusted(names))

    return ["GPUs", gpus(runs[0]), gpus(runs[1]), ""]


def _verdicts(runs: tuple[Run, Run], names: tuple[str, str]) -> list[Block]:
    told: list[Block] = []
    for run, name in zip(runs, names, strict=True):
        told += [Lines(f"What limited {name}", run.verdict)] if run.verdict else []
        told += [TimeBars(f"Where the time of {name} went", run.times)] if run.times else []
    return told


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


def run_to_plain(run: Run) -> dict[str, Any]:
    """Return one run: figures in the catalog's units, times as RFC 3339 in UTC."""
    return {
        "schema": 1,
        "name": run.name,
        **({} if run.job is None else {"job": run.job.to_plain()}),
        "start": time_text(run.start),
        "end": time_text(run.end),
        "interval": run.interval,
        "missing_seconds": run.missing,
        "host": {key: run.last.host.get(key) for key in ("name", "cpu_count", "memory_total")},
        "driver": dict(run.last.driver),
        "energy_estimated": run.estimated,
        "cost": None if run.cost is None else run.cost.to_plain(),
        "summary": run.summary.to_plain(),
        "code": [line.to_plain() for line in run.summary.code],
        "verdict": ["".join(parts) for parts in run.verdict],
        "diagnosis": worded(run.diagnosis).to_plain(),
        "budget": [
            {"index": one.index, "uuid": one.uuid, **one.budget.to_plain()}
            for one in run.diagnosis
            if one.budget is not None
        ],
        "serving": [served.to_plain() for served in run.serving],
        "instances": [span.to_plain() for span in run.instances],
        "processes": [_timed(use.to_plain(), "first_seen", "last_seen") for use in run.uses],
        "events": [
            {
                "time": time_text(event.time),
                "until": None if event.until is None else time_text(event.until),
                "kind": event.kind,
                "severity": event.severity,
                "gpus": list(event.gpus),
                "pid": None if event.process is None else event.process.pid,
                "text": event_text(event),
            }
            for event in run.events
        ],
        "phases": [{"start": time_text(a), "end": time_text(b), "name": name} for a, b, name in run.bands],
        "marks": [{"time": time_text(mark.time), "name": mark.name, "value": mark.value} for mark in run.marks],
        "problems": [{"source": source, "message": message} for source, message in run.problems],
    }


def comparison_to_plain(first: Run, second: Run) -> dict[str, Any]:
    """Return two runs and their differences."""
    found = speed(first, second)
    return {
        "schema": 1,
        "speed": None if found is None else found.to_plain(),
        "a": run_to_plain(first),
        "b": run_to_plain(second),
        "differences": [
            {"figure": each.title, "a": each.before, "b": each.after, "noise": each.noise, "matters": each.matters}
            for each in differences(first, second)
        ],
    }


def _timed(plain: dict[str, Any], *keys: str) -> dict[str, Any]:
    return plain | {key: time_text(plain[key]) for key in keys}
