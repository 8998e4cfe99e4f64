"""The summary of a command that has ended."""

from __future__ import annotations

import os

from ..monitor.report import limits, summary_text
from ..present.endings import status_text
from ..present.quantities import seconds_text
from ..present.text import clean
from ..units import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.summary import Summary

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
