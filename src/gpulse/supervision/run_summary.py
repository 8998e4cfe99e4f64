"""The summary of a command that has ended."""

from __future__ import annotations

import os

from ..monitor.report import limits, summary_text
from ..present.program import status_text
from ..present.quantities import quantity_text, seconds_text
from ..present.serving import model_name
from ..present.text import clean
from ..units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..analysis.summary import Summary
    from ..analysis.tally import ServedRun

LONG_ENOUGH = 2.0  # seconds after which a working driver has responded, and there is something to tell
_UNSEEN = "none of its processes used a GPU"
_BLIND = "processes on GPUs cannot be told apart here, so these are all GPUs the command could see:"


def headline(command: str, status: int, seconds: float) -> str:
    """Return the first line: the command, its duration, and how it ended."""
    return f"gpulse: {_short(command)} · {seconds_text(seconds)} · {status_text(status)}"


def ending(summary: Summary, problem: str = "") -> list[str]:
    """Return the other lines: each of its GPUs, its CPU and memory, and what limited it; `problem` is why sampling failed."""
    if not summary.samples and not problem and summary.seconds >= LONG_ENOUGH:
        problem = "the driver did not respond."
    if not summary.samples:
        return [f"  GPUs were not sampled: {clean(problem)}"] if problem else []
    lines = [f"  sampling was incomplete: {clean(problem)}"] if problem else []
    if not any(gpu.own.used for gpu in summary.gpus):
        blind = any(gpu.own.used is None and gpu.state == "ok" for gpu in summary.gpus)
        lines.append(f"  {_BLIND if blind else _UNSEEN}")
    said = limits(summary)
    lines += [line for line in summary_text(summary).splitlines()[1:] if line not in said]
    lines += [f"  {line}" for line in [_machine(summary)] if line]
    return lines + said


def serving_ending(runs: Sequence[ServedRun]) -> list[str]:
    """Return a line for each model server: what it made, who waited, how fast it was and what it took."""
    lines = []
    for run in runs:
        queue = (
            ""
            if run.mean("running") is None
            else f"{run.mean('running') or 0:.1f} running, {run.mean('waiting') or 0:.1f} waiting"
        )
        cache = (
            ""
            if run.mean("kv_cache") is None
            else f"KV {run.mean('kv_cache') or 0:.0f} % (max {run.highest['kv_cache']:.0f})"
        )
        parts = [
            model_name(run.server),
            ""
            if run.tokens is None
            else f"{run.tokens:,.0f} tokens, {quantity_text('tok/s', run.mean('generation_rate'))}",
            *(queue, cache),
            *(
                "" if (late := run.mean(key)) is None else f"{title} p95 {seconds_text(late)}"
                for title, key in (("first token", "first_token_p95"), ("between tokens", "inter_token_p95"))
            ),
            "" if run.tokens_per_joule is None else quantity_text("tok/J", run.tokens_per_joule),
        ]
        lines.append("  served " + " · ".join(part for part in parts if part))
    return lines


def _machine(summary: Summary) -> str:
    parts = []
    if (cpu := summary.program.get("tree_cpu_percent")) is not None:
        parts.append(f"CPU {cpu.mean:.0f} % (p95 {cpu.p95:.0f}) of {100 * len(os.sched_getaffinity(0))} %")
    if (memory := summary.program.get("tree_memory")) is not None:
        parts.append(f"peak host memory {size_text(memory.max)}")
    read = summary.program.get("tree_read")
    if read is not None and read.mean >= 1e6:
        parts.append(f"read {size_text(read.mean)}/s")
    return " · ".join(parts)


def _short(command: str) -> str:
    text = clean(command)
    return text if len(text) <= 60 else f"{text[:59]}…"
