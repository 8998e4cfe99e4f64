"""Values as HTML tables for notebooks, with inline styles that work in light and dark themes."""

from __future__ import annotations

from ..model.catalog import Gpu
from ..units import size_text
from .cells import energy_text, rate_text, severity, value_text
from .text import clean
from .verdicts import advice, budget_row, budget_text, evidence, line, part_text
from .words import label, owners, part_of_whole, short_name, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..analysis.summary import GpuSummary, Summary
    from ..model.snapshot import Snapshot
    from ..model.verdict import Budget, Verdict

# Lines of charts on light and on dark ground, on the page and in reports: eight colors that stay apart for color-blind eyes (after Okabe
# and Ito, moved apart by search; web/test/unit/palette.test.ts measures it).
LINE_COLORS = {
    "light": ("#20499c", "#cb6201", "#0e9d7b", "#a62816", "#437bd5", "#cf57a0", "#65a32d", "#414e6d"),
    "dark": ("#4ca5f7", "#deac29", "#21c19a", "#f3744d", "#aee2ff", "#e68bc3", "#e3e266", "#c7ccc8"),
}
SEVERITY_COLORS = {"warn": "#b26a00", "critical": "#d0342c"}
_BUSY, _MEMORY = "#12a06c44", "#2f7fe044"  # translucent, for any background
# The colors of the parts of a time budget, by style.
_PARTS = {
    "chart1": "#8467d7", "busy": "#12a06c", "memory": "#2f7fe0", "chart4": "#1f9fb8", "warn": "#d98c12", "critical": "#d0342c",
    "label": "#8a939e", "chart3": "#7f89d8", "track": "#8a939e55",
}  # fmt: skip
_CELL = "padding:2px 10px 2px 4px;text-align:left;white-space:nowrap"


def escape(text: str) -> str:
    """Return text escaped for HTML; control characters become visible. Names of processes are untrusted."""
    cleaned = clean(text)
    return cleaned.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def snapshot_html(snapshot: Snapshot) -> str:
    """Return a table with one row per GPU, followed by problems."""
    if not snapshot.gpus:
        return _notes(["No GPU was found."], snapshot)
    heads = ("GPU", "Name", "Utilization", "SM", "Tensor", "Memory", "Power", "Temperature", "Used by")
    rows = [_gpu_row(gpu, snapshot.time) for gpu in snapshot.gpus]
    return table(heads, rows) + _notes([], snapshot)


def summary_html(summary: Summary) -> str:
    """Return a table with one row per GPU over a window of time."""
    seconds = f"{summary.seconds:.1f} s" if summary.seconds < 600 else f"{summary.seconds / 60:.1f} min"
    head = [f"<b>{escape(summary.name)}</b>" if summary.name else "", seconds]
    if summary.steps_per_second is not None:
        head.append(f"{summary.steps} steps, {rate_text(summary.steps_per_second)}/s")
    if summary.energy is not None:
        head.append(energy_text(summary.energy))
    phases = "".join(summary_html(phase) for phase in summary.phases)
    return f"<div>{' · '.join(filter(None, head))}</div>{gpus_html(summary.gpus)}{phases}"


def measurement_html(facts: Sequence[tuple[str, str]], gpus: Sequence[GpuSummary]) -> str:
    """Return a table of the main figures of a measurement, and with several GPUs one row per GPU."""
    heads = [title for title, _ in facts]
    row = [cell(escape(text)) for _, text in facts]
    return table(heads, ["".join(row)]) + (gpus_html(gpus) if len(gpus) > 1 else "")


def gpus_html(gpus: Iterable[GpuSummary]) -> str:
    """Return a table of GPUs over a window of time: means, with the 95th percentile for shares."""
    rows = []
    for gpu in gpus:
        shares = [_stat(gpu, key) for key in ("utilization", "sm_active", "tensor_active")]
        total = "" if gpu.memory_total is None else f" of {size_text(gpu.memory_total)}"
        memory = "" if gpu.peak_memory is None else f"{size_text(gpu.peak_memory)}{total}"
        power = gpu.stats.get("power_draw")
        cells = [
            escape("?" if gpu.index is None else str(gpu.index)),
            escape((gpu.name or "GPU").removeprefix("NVIDIA ")),
            *shares,
            memory,
            "" if power is None else f"{power.mean:.0f} W",
            "" if gpu.energy is None else energy_text(gpu.energy),
        ]
        rows.append("".join(map(cell, cells)))
    return table(("GPU", "Name", "Utilization", "SM", "Tensor", "Peak memory", "Power", "Energy"), rows)


def diagnosis_html(diagnosis: Iterable[Verdict]) -> str:
    """Return the verdict of each GPU with its evidence and advice."""
    return "".join(map(_verdict, diagnosis)) or "<div>No GPU was judged.</div>"


def budget_html(budget: Budget) -> str:
    """Return where the time of a GPU went: a bar, and the share of each part."""
    rows = [
        (_PARTS[f"{row['style']}"], row["share"], escape(part_text(budget, f"{row['part']}")))
        for row in budget_row(budget)
    ]
    bar = "".join(
        f'<span style="flex:{share} 1 0;background:{color}" title="{text}"></span>' for color, share, text in rows
    )
    legend = " ".join(
        f'<span style="white-space:nowrap;margin-right:12px"><span style="color:{color}">■</span> {text}</span>'
        for color, _, text in rows
    )
    box = "display:flex;gap:1px;height:10px;max-width:600px;margin:2px 0"
    return f'<div role="img" aria-label="{escape(budget_text(budget))}" style="{box}">{bar}</div><div>{legend}</div>'


def _verdict(verdict: Verdict) -> str:
    shown = [f"<div><b>{escape(line(verdict))}</b> ({escape(verdict.confidence)} confidence)</div>"]
    if verdict.budget is not None:
        shown.append(budget_html(verdict.budget))
    for title, texts in (("Evidence", evidence(verdict)), ("Try", advice(verdict))):
        if texts:
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            shown.append(f'<div style="opacity:.7">{title}</div><ul style="margin:0">{items}</ul>')
    return f'<div style="margin-bottom:8px">{"".join(shown)}</div>'


def table(heads: Iterable[str], rows: Iterable[str]) -> str:
    """Return a table; `rows` are rows of finished cells."""
    head = "".join(f'<th style="{_CELL};opacity:.7">{escape(title)}</th>' for title in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table style="color:inherit;font-variant-numeric:tabular-nums"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _gpu_row(gpu: Gpu, now: float) -> str:
    named = cell(escape(label(gpu))) + cell(escape(short_name(gpu)))
    words, style = silence(gpu, now)
    if words:
        return named + cell(escape(words), color=SEVERITY_COLORS.get(style, ""))
    memory = None if not gpu.memory_total or gpu.memory_used is None else 100 * gpu.memory_used / gpu.memory_total
    heat = severity(Gpu.temperature, gpu)
    users = ", ".join(f"{user} {name}".strip() for user, name, _, _ in owners(gpu.all_processes()))
    return "".join(
        (
            named,
            cell(_share(gpu.utilization), gpu.utilization, _BUSY),
            cell(_share(gpu.sm_active), gpu.sm_active, _BUSY),
            cell(_share(gpu.tensor_active), gpu.tensor_active, _BUSY),
            cell(escape(part_of_whole(gpu.memory_used, gpu.memory_total)), memory, _MEMORY),
            cell(escape(value_text(Gpu.power_draw, gpu.power_draw))),
            cell(escape(value_text(Gpu.temperature, gpu.temperature)), color=SEVERITY_COLORS.get(heat, "")),
            cell(escape(users)),
        )
    )


def cell(text: str, share: float | None = None, fill: str = "", color: str = "", *, bold: bool = False) -> str:
    """Return a cell of finished HTML; `share` in percent is a bar behind it."""
    style = _CELL
    if share is not None:
        end = max(0.0, min(100.0, share))
        style += f";background:linear-gradient(90deg,{fill} {end:.0f}%,transparent {end:.0f}%)"
    if color or bold:
        style += f"{f';color:{color}' if color else ''};font-weight:600"
    return f'<td style="{style}">{text}</td>'


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %"


def _stat(gpu: GpuSummary, key: str) -> str:
    stats = gpu.stats.get(key)
    return "–" if stats is None else f"{stats.mean:.0f} % (p95 {stats.p95:.0f})"


def _notes(said: Sequence[str], snapshot: Snapshot) -> str:
    notes = [*said, *(f"{problem.message} {problem.remedy}".strip() for problem in snapshot.problems)]
    return "".join(f'<div style="opacity:.8">{escape(note)}</div>' for note in notes)
