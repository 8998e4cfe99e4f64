"""A report as blocks that a renderer for HTML, Markdown or a terminal lays out, and the tables about GPUs in it."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, Gpu
from ...present.cells import DASH, energy_text, number_text, quantity_text, severity, throttle_words
from ...present.cost import money_text
from ...present.text import Untrusted, clean, column_widths, pad, width
from ...present.verdicts import budget_letters
from ...present.words import product_name, ranges, share_style
from ...units import duration_text
from ...value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ...model.stacks import TimedStack
    from ...model.verdict import Budget
    from .charts import ReportChart, Strip
    from .run import Run

    Cell: TypeAlias = "str | tuple[str, ...]"
    Block: TypeAlias = "Tiles | Lines | TimeBars | TableBlock | Flame | Charts"
    from ...analysis.summary import GpuSummary
    from ...analysis.tally import ServedRun
    from ...sinks.base import Mark
    from .charts import TimelineSeries
    from .run import InstanceSpan


class Loud(str):
    """Text that matters more than its neighbours."""

    __slots__ = ()


class Figure(str):
    """A number as text. `share` from 0 to 1 can be drawn as a bar; `style` is the style of the bar, or of the text without one."""

    __slots__ = ("share", "style")

    share: float | None
    style: str

    def __new__(cls, text: str, share: float | None = None, style: str = "") -> Figure:
        """Make one of a finished text."""
        made = super().__new__(cls, text)
        made.share = share
        made.style = style
        return made


class Tiles(Value):
    """The few figures that everybody wants, each with a name and a remark."""

    title: str
    tiles: Sequence[tuple[str, Cell, Cell]]


class Lines(Value):
    """Sentences, one below the other."""

    title: str
    lines: Sequence[Cell]


class TimeBars(Value):
    """Where the time of each GPU went, one bar per row: name and budget."""

    title: str
    rows: Sequence[tuple[str, Budget]]


class TableBlock:
    """Rows under a header: the first `words` columns and those in `wide` hold words, the others numbers.

    `styles` colors rows, by number: critical, warn, good or changed. A column without any value is left out.
    """

    def __init__(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        caption: str = "",
        words: int = 1,
        wide: Sequence[str] = (),
        styles: dict[int, str] | None = None,
    ) -> None:
        kept = [at for at in range(len(header)) if any(row[at] not in ("", DASH) for row in rows)]
        self.title = title
        self.caption = caption
        self.header = [header[at] for at in kept]
        self.rows = [[row[at] for at in kept] for row in rows]
        self.numeric = [at >= words and header[at] not in wide for at in kept]
        self.styles = styles or {}


class Flame(Value):
    """A flame graph of stacks, weighted by the GPU time that was lost; pages only."""

    title: str
    stacks: Sequence[TimedStack]


class Charts(Value):
    """Charts over time, of one run or of two laid over each other, all under one cursor."""

    title: str
    runs: Sequence[Run]
    charts: Sequence[ReportChart]
    strips: Sequence[Strip]


class Document(Value):
    """A title, what it is about, and blocks."""

    title: Cell
    subtitle: Cell
    blocks: Sequence[Block]


def with_content(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks that have something to say."""
    return [block for block in blocks if (block.lines if isinstance(block, Lines) else getattr(block, "rows", True))]


def plain(cell: Cell) -> str:
    """Return a cell as one text."""
    return cell if isinstance(cell, str) else "".join(cell)


def throttled_text(gpu: GpuSummary) -> Cell:
    """Return how long and why a GPU was throttled."""
    if gpu.throttled_seconds < 1:
        return DASH
    return (f"{duration_text(gpu.throttled_seconds)} (", *throttle_words(gpu.throttled), ")")


def mark_text(mark: Mark) -> Cell:
    """Return what a program noted."""
    if mark.value is None:
        return ("mark ", Untrusted(mark.name))
    value = Untrusted(mark.value) if isinstance(mark.value, str) else number_text(mark.value)
    return ("mark ", Untrusted(mark.name), ": ", value)


_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 60  # characters of a row


def to_markdown(document: Document) -> str:
    """Return Markdown whose tables are aligned, so that it also reads well as it is."""
    parts = [f"# {_inline(document.title)}", _inline(document.subtitle)]
    for block in document.blocks:
        if isinstance(block, Tiles):
            rows = [[name, value, remark] for name, value, remark in block.tiles]
            parts += [f"## {block.title}", _table(["", "", ""], rows, [False, True, False])]
        elif isinstance(block, Lines):
            parts += [f"## {_inline(block.title)}", "\n".join(f"- {_inline(line)}" for line in block.lines)]
        elif isinstance(block, TimeBars):
            bars = ((name, *budget_letters(budget)) for name, budget in block.rows)
            parts += [f"## {block.title}", "\n".join(f"- {name}: `{bar}` {told}" for name, bar, told in bars)]
        elif isinstance(block, TableBlock):
            parts += [f"## {block.title}"] + ([block.caption] if block.caption else [])
            parts.append(_table(block.header, block.rows, block.numeric))
        elif isinstance(block, Charts) and (sparks := _sparks(block)):
            parts += [f"## {block.title}", sparks]
    return "\n\n".join(parts) + "\n"


def _inline(cell: Cell) -> str:
    return "".join(_part(part) for part in ((cell,) if isinstance(cell, str) else cell))


def _part(text: str) -> str:
    """Return a part of a sentence; what others chose goes between backticks, where nothing of it is obeyed."""
    if isinstance(text, Untrusted):
        shown = clean(text).replace("`", "'").replace("|", "¦").strip()
        return f"`{shown}`" if shown else ""
    return f"**{text}**" if isinstance(text, Loud) else text


def _table(header: list[str], rows: list[list[Cell]], numeric: list[bool]) -> str:
    texts = [list(header), *([_inline(cell) for cell in row] for row in rows)]
    widths = column_widths(texts, 3)
    rule = [f"{'-' * (wide - 1)}:" if right else "-" * wide for wide, right in zip(widths, numeric, strict=True)]
    lines = [texts[0], rule, *texts[1:]]
    return "\n".join(
        "| "
        + " | ".join(pad(text, wide, right) for text, wide, right in zip(line, widths, numeric, strict=True))
        + " |"
        for line in lines
    )


def _sparks(block: Charts) -> str:
    """Return the busiest charts as rows of blocks, one character for a stretch of time."""
    rows: list[tuple[str, str]] = []
    for chart in block.charts[:2] if not block.strips else [block.charts[block.strips[0].line[0]]]:
        rows += [
            (
                clean(f"{chart.title}, {line.name}").replace("`", "'"),
                _spark(line.trace, len(block.runs[line.run].timeline.at), chart.high),
            )
            for line in chart.lines
        ]
    wide = max((width(name) for name, _ in rows), default=0)
    body = "\n".join(f"{pad(name, wide)}  {spark}" for name, spark in rows)
    return f"```\n{body}\n```" if body else ""


def _spark(trace: TimelineSeries, length: int, high: float) -> str:
    trace.reach(length)
    cells = min(_SPARK, length)
    text = ""
    for cell in range(cells):
        points = [at for at in range(cell * length // cells, (cell + 1) * length // cells) if trace.counts[at]]
        if not points:
            text += " "
            continue
        mean = sum(trace.sums[at] for at in points) / sum(trace.counts[at] for at in points)
        text += _BLOCKS[min(len(_BLOCKS) - 1, max(0, int(mean / max(high, 1e-9) * len(_BLOCKS))))]
    return text


_GPU_HEADER = (
    *("GPU", "Utilization", "SM active", "SM p95", "Tensor", "DRAM", "Peak memory", "Power", "Peak power", "Hottest"),
    *("SM clock", "PCIe in", "Energy", "Idle", "At power cap", "Throttled"),
)
_SERVING_HEADER = (
    *("Model", "GPU", "Generated", "Tokens", "Running / waiting", "KV cache", "First token p95", "Between p95"),
    *("Per joule", "Per million"),
)
_INSTANCE_HEADER = ("Instance", "Profile", "Memory", "Peak memory", "SM active", "Tensor", "DRAM", "Processes")


def gpu_table(run: Run) -> TableBlock:
    """Return a row for each GPU."""
    latest = {gpu.uuid: gpu for gpu in run.last.gpus}
    rows = [_gpu_row(label, gpu, latest.get(gpu.uuid)) for label, gpu in zip(run.labels, run.summary.gpus, strict=True)]
    return TableBlock(
        "GPUs", _GPU_HEADER, rows, caption="Means over the run unless noted otherwise.", wide=("Throttled",)
    )


def _gpu_row(label: str, gpu: GpuSummary, latest: Gpu | None) -> list[Cell]:
    def figure(key: str, which: str, unit: str) -> str:
        stats = gpu.stats.get(key)
        return quantity_text(unit, None if stats is None else getattr(stats, which))

    heat = None if "temperature" not in gpu.stats else gpu.stats["temperature"].max
    limit = None if latest is None else latest.temperature_limit
    hot = _level("temperature", temperature=heat, temperature_limit=limit)
    return [
        label if gpu.state == "ok" else f"{label} ({gpu.state})",
        _share(gpu, "utilization"),
        _share(gpu, "sm_active"),
        figure("sm_active", "p95", "%"),
        figure("tensor_active", "mean", "%"),
        figure("dram_active", "mean", "%"),
        _filled(gpu.peak_memory, gpu.memory_total),
        figure("power_draw", "mean", "W"),
        figure("power_draw", "max", "W"),
        Figure(quantity_text("°C", heat), style=hot),
        figure("clock_sm", "mean", "MHz"),
        figure("pcie_rx", "mean", "B/s"),
        energy_text(gpu.energy),
        quantity_text("%", gpu.idle_share),
        DASH if gpu.power_capped < 1 else duration_text(gpu.power_capped),
        throttled_text(gpu),
    ]


def _share(gpu: GpuSummary, key: str) -> Figure:
    """Return the mean of a percentage with a bar."""
    stats = gpu.stats.get(key)
    if stats is None:
        return Figure(DASH)
    return Figure(quantity_text("%", stats.mean), stats.mean / 100, share_style(stats.mean))


def _filled(used: float | None, total: float | None) -> Figure:
    """Return an amount of memory, in the color of how full that is."""
    share = 100 * used / total if used is not None and total else None
    return Figure(quantity_text("B", used), style=_level("memory_percent", memory_percent=share))


def _level(key: str, **values: float | None) -> str:
    """Return the style of a value by the thresholds of its metric: critical, warn or none."""
    level = severity(GPU_METRICS[key], Gpu({name: value for name, value in values.items() if value is not None}))
    return "" if level == "calm" else level


def serving_table(run: Run) -> TableBlock:
    """Return the model servers: what they made, who waited, and what it took."""
    rows: list[list[Cell]] = []
    numbers = {gpu.uuid: label for gpu, label in zip(run.summary.gpus, run.labels, strict=True)}
    for served in run.serving:
        queue = " / ".join(quantity_text("", _round(served.mean(key))) for key in ("running", "waiting"))
        cache = served.highest.get("kv_cache")
        rows.append(
            [
                Untrusted(served.server.model or served.server.server or "?"),
                ranges([numbers.get(uuid, "?") for uuid in served.gpus]) or Untrusted(served.server.endpoint or "?"),
                quantity_text("tok/s", served.mean("generation_rate")),
                quantity_text("", _round(served.tokens)),
                queue,
                f"{quantity_text('%', served.mean('kv_cache'))} (max {quantity_text('%', cache)})" if cache else DASH,
                quantity_text("seconds", served.mean("first_token_p95")),
                quantity_text("seconds", served.mean("inter_token_p95")),
                quantity_text("tok/J", served.tokens_per_joule),
                money_text(_cost_per_million(run, served)),
            ]
        )
    return TableBlock(
        "Model servers",
        _SERVING_HEADER,
        rows,
        caption="Means over the run, as the servers say; energy is that of their GPUs, by power.",
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1 if value < 100 else None)


def _cost_per_million(run: Run, served: ServedRun) -> float | None:
    """Return what a million generated tokens cost: GPU time and energy of the server's GPUs."""
    if run.tariff is None or not served.gpus:
        return None
    return run.tariff.per_million(served.tokens, len(served.gpus) * served.seconds, served.joules)


def instance_table(run: Run) -> TableBlock:
    """Return a row for each MIG instance that existed during the run; no rows without MIG."""
    rows = [_instance_row(span) for span in run.instances]
    missing = sorted({title for span in run.instances for title in span.unmeasured()})
    why = f" Not measured per instance by this driver and GPU: {', '.join(missing)}." if missing else ""
    caption = f"Means over the time in which the instance existed.{why}"
    return TableBlock("MIG instances", _INSTANCE_HEADER, rows, caption=caption, words=2, wide=("Processes",))


def _instance_row(span: InstanceSpan) -> list[Cell]:
    summary = span.summary()
    used = summary.stats.get("memory_used")
    total = quantity_text("B", summary.memory_total)
    share = None if used is None or not summary.memory_total else used.mean / summary.memory_total
    figures = [_share(summary, key) for key in ("sm_active", "tensor_active", "dram_active")]
    peak = _filled(summary.peak_memory, summary.memory_total)
    return [
        span.label,
        Untrusted(product_name(summary.name or "?").removeprefix("MIG ")),
        DASH if used is None else Figure(f"{quantity_text('B', used.mean)} of {total}", share, "memory"),
        peak,
        figures[0],
        Figure(figures[1]),
        Figure(figures[2]),
        _programs(span),
    ]


def _programs(span: InstanceSpan) -> Cell:
    """Return the users and programs seen on an instance, those with the most memory first."""
    parts: list[str] = []
    for user, name, count in span.programs():
        parts += [", "] if parts else []
        parts.append(Untrusted(f"{user} {name}".strip()))
        parts += [f" ({count} processes)"] if count > 1 else []
    return tuple(parts) or DASH
