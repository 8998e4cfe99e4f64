"""The tables of GPUs and of MIG instances in a report."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, Gpu
from ...present.cells import severity
from ...present.cost import money_text
from ...present.quantities import DASH, energy_text, quantity_text
from ...present.text import Untrusted
from ...present.words import product_name, ranges, share_style
from ...units import duration_text
from .document import Figure, TableBlock, throttled_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...analysis.summary import GpuSummary
    from ...analysis.tally import ServedRun
    from .document import Cell
    from .run import InstanceSpan, Run

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
    numbers = {gpu.uuid: label for gpu, label in zip(run.last.gpus, run.labels, strict=False)}
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
