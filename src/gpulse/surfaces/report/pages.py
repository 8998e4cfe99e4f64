"""The document of one run."""

from __future__ import annotations

from ...present.cells import (
    DASH,
    clock_text,
    elapsed_text,
    energy_text,
    moment_text,
    quantity_text,
    rate_text,
    seconds_text,
)
from ...present.code import HEADER, advised, code_rows, code_sentence
from ...present.cost import carbon_text, counted, flops_text, money_text, unit_costs
from ...present.events import event_parts, event_style, kind_title, lasted_text
from ...present.text import Untrusted
from ...present.words import part_of_whole, ranges, short_name
from ...units import duration_text, size_text
from .charts import run_charts, run_strips
from .document import (
    Charts,
    Document,
    Flame,
    Lines,
    TableBlock,
    Tiles,
    TimeBars,
    gpu_table,
    instance_table,
    mark_text,
    plain,
    serving_table,
    throttled_text,
    with_content,
)
from .run import mean_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...analysis.energy import Cost
    from ...analysis.summary import GpuSummary, Summary
    from ...model.serving import Tariff
    from .document import Block, Cell
    from .run import Run

_MOST_ROWS = 200
_MOST_LINES = 20
_ACTIVITY = {"sm_active": "SM active", "utilization": "Utilization"}
_COUNTED = (
    *("lost", "timeout", "xid", "memory-errors", "out-of-memory", "throttled", "gap"),
    *("process-start", "process-end"),
)
_PHASE_HEADER = (
    *("Phase", "Times", "Time", "Share", "Steps/s", "Data wait", "SM active", "Utilization"),
    *("Peak memory", "Energy"),
)
_PROCESS_HEADER = ("User", "Program", "PID", "GPU", "Seen", "Peak memory", "SM share", "GPU-hours", "Job", "Command")


def run_document(run: Run, title: str = "") -> Document:
    """Return everything about one run."""
    charts = run_charts(run)
    blocks: list[Block] = [
        Tiles("Summary", tiles(run)),
        Lines("What limited the run", run.verdict),
        TimeBars("Where the time went", run.times),
        *_code(run),
        Charts("Timelines", [run], charts, run_strips(run, charts)),
        gpu_table(run),
        instance_table(run),
        serving_table(run),
        _phase_table(run.summary),
        _process_table(run),
        _event_table(run),
        machine_table(run),
    ]
    return Document(Untrusted(title or run.name), subtitle(run), with_content(blocks))


def _code(run: Run) -> list[Block]:
    """Return the lines at which the GPU waited, with advice, as a table and as a flame graph; nothing where no stacks were recorded."""
    lines = run.summary.code
    rows = [tuple(Untrusted(text) for text in row) for row in code_rows(lines, _MOST_LINES)]
    sentence = code_sentence(lines, run.summary.seconds)
    told = [Untrusted(text) for text in (sentence, *advised(lines)) if text]
    blocks: list[Block] = [
        Lines("Which code kept the GPU waiting", told),
        TableBlock("Lines of code", HEADER, rows, words=3, caption="Seconds of GPU time at each line"),
    ]
    return [*blocks, Flame("Stacks at which the GPU waited", run.summary.stacks)] if sentence else blocks


def subtitle(run: Run) -> Cell:
    """Return where and when it was."""
    host = (Untrusted(run.last.host.name), " · ") if run.last.host.name else ()
    same_day = int(run.start // 86_400) == int(run.end // 86_400)
    end = clock_text(run.end, utc=True) if same_day else moment_text(run.end, utc=True)
    return (*host, f"{moment_text(run.start, utc=True)} to {end}")


def tiles(run: Run) -> list[tuple[str, Cell, Cell]]:
    """Return the figures that everybody wants."""
    summary = run.summary
    apart = (run.end - run.start - run.missing) / max(
        1, summary.samples - 1
    )  # rows of a history have several distances
    spacing = f"{apart:.2g} s apart" if apart < 99 else f"about {duration_text(apart)} apart"
    samples = f"{summary.samples:,} samples, {spacing}" if summary.samples > 1 else "1 sample"
    lost = f"; {duration_text(run.missing)} missing" if run.missing >= 1 else ""
    busy = run.mean(run.activity)
    use = run.mean("utilization")
    found: list[tuple[str, Cell, Cell]] = [
        ("Duration", seconds_text(summary.seconds), samples + lost),
        ("GPUs", str(len(summary.gpus)), Untrusted(", ".join(dict.fromkeys(short_name(gpu) for gpu in run.last.gpus)))),
        (
            f"{_ACTIVITY[run.activity]}, mean",
            quantity_text("%", busy),
            f"utilization {quantity_text('%', use)}" if use is not None and run.activity != "utilization" else "",
        ),
        ("Peak memory", *_peak(run)),
        ("Energy", energy_text(summary.energy), _mean_power(run)),
        ("Idle", quantity_text("%", idle_share(summary)), "of GPU time below 5 % utilization"),
        ("Throttled", *_throttled(run)),
    ]
    if run.tariff is not None and (cost := run.cost) is not None:
        found += _cost(cost, run.tariff)
    if summary.steps_per_second is not None:
        wait = f", waiting for data {100 * summary.waited / summary.seconds:.0f} %" if summary.waited else ""
        found.append(("Steps", f"{rate_text(summary.steps_per_second)}/s", f"{summary.steps:,} steps{wait}"))
    found += _throughput(run)
    return [tile for tile in found if tile[1] != DASH]


def _throughput(run: Run) -> Iterator[tuple[str, Cell, Cell]]:
    """Yield what the program counted, with the energy and the cost of each, and its model FLOPs utilization."""
    summary, costs = run.summary, {} if run.cost is None else unit_costs(run.summary, run.cost)
    for name, rate, count in counted(summary):
        energy = summary.energy_per(count)
        remark = f"{count:,.0f} {name}s" + ("" if energy is None else f", {energy_text(energy)} each")
        cost = (", ", Untrusted(costs[name])) if name in costs else ()
        yield f"{name.capitalize()}s", f"{rate_text(rate)}/s", (remark, *cost)
    if (mfu := summary.mfu) is not None and mfu.percent is not None:
        yield "MFU", f"{mfu.percent:.3g} %", flops_text(mfu.rate or 0.0)


def _cost(cost: Cost, tariff: Tariff) -> list[tuple[str, Cell, Cell]]:
    known = (("GPU time", cost.gpu_time), ("energy", cost.energy), ("idle", cost.idle))
    parts = [f"{name} {money_text(amount)}" for name, amount in known if amount is not None]
    money: Cell = DASH if cost.total is None else Untrusted(money_text(cost.total, cost.currency))
    carbon: Cell = DASH if cost.carbon is None else carbon_text(cost.carbon)
    return [
        ("Cost", money, ", ".join(parts)),
        ("Emissions", carbon, f"at {tariff.carbon or 0.0:g} g per kWh"),
    ]


def idle_share(summary: Summary) -> float | None:
    """Return the mean share of time in which GPUs did nothing."""
    known = [gpu.idle_share for gpu in summary.gpus if gpu.idle_share is not None]
    return sum(known) / len(known) if known else None


def peak_of(summary: Summary) -> tuple[int, GpuSummary] | None:
    """Return the GPU that came nearest to being full, and its place; None when nobody told."""
    known = [(at, gpu) for at, gpu in enumerate(summary.gpus) if gpu.peak_memory is not None]
    return max(known, key=lambda one: (one[1].peak_memory or 0.0) / (one[1].memory_total or 2**60), default=None)


def _phase_table(summary: Summary) -> TableBlock:
    rows: list[list[Cell]] = []
    for phase in summary.phases:
        busy, use = (mean_of(phase, key) for key in ("sm_active", "utilization"))
        peak = peak_of(phase)
        rows.append(
            [
                Untrusted(phase.name),
                str(phase.calls),
                seconds_text(phase.seconds),
                quantity_text("%", 100 * phase.seconds / max(summary.seconds, 1e-9)),
                DASH if phase.steps_per_second is None else rate_text(phase.steps_per_second),
                quantity_text("%", 100 * phase.waited / max(phase.seconds, 1e-9)) if phase.waited else DASH,
                quantity_text("%", busy),
                quantity_text("%", use),
                quantity_text("B", None if peak is None else peak[1].peak_memory),
                energy_text(phase.energy),
            ]
        )
    return TableBlock(
        "Phases", _PHASE_HEADER, rows, caption="Phases reported by the program, at the resolution of the samples."
    )


def _process_table(run: Run) -> TableBlock:
    rows: list[list[Cell]] = []
    for use in run.uses[:_MOST_ROWS]:
        process = use.process
        owner = process.job or process.pod or process.container
        rows.append(
            [
                Untrusted(process.user) if process.user else DASH,
                Untrusted(process.name or "?"),
                DASH if process.pid is None else f"{process.pid:.0f}",
                ", ".join(use.instances) or ranges(use.gpus),
                f"{elapsed_text(int(use.first - run.start))} to {elapsed_text(int(use.last - run.start))}",
                quantity_text("B", use.peak),
                quantity_text("%", use.share),
                f"{use.hours:.2f}" if use.hours >= 0.1 else f"{use.hours:.4f}",
                Untrusted(owner) if owner else DASH,
                Untrusted(_cut(process.command)) if process.command else DASH,
            ]
        )
    more = len(run.uses) - _MOST_ROWS
    caption = "GPU usage by process; a GPU shared by several processes is divided equally."
    return TableBlock(
        "Processes",
        _PROCESS_HEADER,
        rows,
        caption=caption + (f" {more:,} more are not shown." if more > 0 else ""),
        words=2,
        wide=("GPU", "Seen", "Job", "Command"),
    )


def _event_table(run: Run) -> TableBlock:
    found: list[tuple[float, str, str, Cell]] = [
        (event.time, event_style(event), lasted_text(event, run.end), event_parts(event)) for event in run.events
    ]
    found += [(mark.time, "label", "", mark_text(mark)) for mark in run.marks]
    found.sort(key=lambda one: one[0])
    kept = found[:_MOST_ROWS]
    rows: list[list[Cell]] = [
        [elapsed_text(int(time - run.start)), clock_text(time, utc=True), lasted, text]
        for time, _, lasted, text in kept
    ]
    more = len(found) - len(kept)
    return TableBlock(
        "Events",
        ("Into the run", "Clock (UTC)", "Lasted", "Event"),
        rows,
        caption=_counts(run) + (f" {more:,} more are not shown." if more > 0 else ""),
        words=2,
        wide=("Lasted", "Event"),
        styles={at: style for at, (_, style, _, _) in enumerate(kept) if style != "label"},
    )


def _counts(run: Run) -> str:
    said = [f"{kind_title(kind)} {run.count(kind)}" for kind in _COUNTED if run.count(kind)]
    return f"Number of events: {', '.join(said)}." if said else ""


def machine_table(run: Run) -> TableBlock:
    """Return what the run ran on."""
    host, driver = run.last.host, run.last.driver
    rows: list[list[Cell]] = []
    if host.name:
        rows.append(["Machine", Untrusted(host.name)])
    if host.cpu_count is not None:
        rows.append(["CPUs", f"{host.cpu_count:.0f}"])
    if host.memory_total is not None:
        rows.append(["Host memory", size_text(host.memory_total)])
    rows += [
        [{"version": "Driver", "cuda": "CUDA"}.get(key, Untrusted(key)), Untrusted(value)]
        for key, value in driver.items()
    ]
    for label, gpu in zip(run.labels, run.summary.gpus, strict=True):
        size = () if gpu.memory_total is None else (f", {size_text(gpu.memory_total)}",)
        rows.append(
            [f"GPU {label}", (Untrusted(gpu.name or "unknown"), *size, " · ", Untrusted(gpu.uuid or "no UUID"))]
        )
    rows += [["Problem", (Untrusted(source), ": ", Untrusted(message))] for source, message in run.problems]
    return TableBlock("Machine", ("What", "Is"), rows, wide=("Is",))


def _peak(run: Run) -> tuple[str, str]:
    found = peak_of(run.summary)
    if found is None:
        return DASH, ""
    at, gpu = found
    total, peak = gpu.memory_total, gpu.peak_memory or 0.0
    if not total:  # unknown, or 0 as one driver says
        return size_text(peak), f"on GPU {run.labels[at]}"
    return part_of_whole(peak, total), f"{100 * peak / total:.0f} % of GPU {run.labels[at]}"


def _mean_power(run: Run) -> str:
    watts = sum(stats.mean for stats in run.stats("power_draw"))
    mean = f"{watts:,.0f} W on average" if watts else ""
    return f"{mean}, estimated from power" if run.estimated else mean


def _throttled(run: Run) -> tuple[Cell, Cell]:
    throttled = [(gpu.throttled_seconds, label, gpu) for label, gpu in zip(run.labels, run.summary.gpus, strict=True)]
    worst = max(throttled, key=lambda one: one[0], default=None)
    if worst is None or all(gpu.throttle_reasons is None for gpu in (*run.first.gpus, *run.last.gpus)):
        return DASH, ""
    if worst[0] < 1:
        return "none", "by heat or hardware"
    several = sum(seconds >= 1 for seconds, _, _ in throttled)
    reason = plain(throttled_text(worst[2])).partition("(")[2].rstrip(")")
    return duration_text(worst[0]), (f"GPU {worst[1]}: ", Untrusted(reason), f"; {several} GPUs" if several > 1 else "")


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:299]}…"
