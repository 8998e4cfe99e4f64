"""Format the summary of a Monitor or of a command that has ended, and GPUs on one line each."""

from __future__ import annotations

import os
import sys
from copy import copy

from ..analysis.energy import cost_of
from ..errors import GpulseError
from ..model.catalog import Gpu
from ..present.cells import DASH, energy_text, quantity_text, rate_text, seconds_text, throttle_words, value_text
from ..present.code import advised, code_sentence
from ..present.cost import cost_text, throughput_parts, unit_costs
from ..present.program import is_shared, own_energy_text, own_lines, rank_lines, status_text
from ..present.text import aligned, clean, without_empty
from ..present.verdicts import findings, time_lines, times
from ..present.words import part_of_whole, product_name, short_name
from ..settings.effective import tariff_in_force
from ..units import duration_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

    from ..analysis.summary import GpuSummary, Stats, Summary
    from ..analysis.tally import ServedRun
    from ..model.stacks import CodeLine

_ACTIVITY = (("util", "utilization"), ("SM", "sm_active"), ("tensor", "tensor_active"), ("DRAM", "dram_active"))
_SHOWN = (
    "utilization",
    "sm_active",
    "tensor_active",
    "memory_used",
    "memory_total",
    "temperature",
    "power_draw",
    "mig_mode",
)
SHORTEST = 5.0  # seconds of a run below which nothing is said about what limited it


def summary_text(summary: Summary) -> str:
    """Return the summary as text: duration, throughput, each GPU, each phase."""
    lines = [" · ".join(_headline(summary))]
    lines += [f"  {_gpu(gpu)}" for gpu in summary.gpus if gpu.own.used is not False or gpu.state != "ok"]
    lines += [f"  {line}" for line in own_lines(summary.gpus)]
    if summary.phases:
        lines += _phases(summary)
    if summary.ranks:
        lines += rank_lines(summary.ranks, summary.straggler, summary.world)
    return "\n".join([*lines, *limits(summary)])


def report_text(summary: Summary, environ: Mapping[str, str]) -> str:
    """Return the summary as text, with what the run cost on the GPUs that it used, at the prices of the settings."""
    text = summary_text(summary)
    used = copy(summary)
    used.gpus = tuple(gpu for gpu in summary.gpus if gpu.own.used is not False)
    try:
        cost = cost_of(used, tariff_in_force(environ))
    except (GpulseError, ImportError) as error:  # Python 3.10 without its TOML reader
        return f"{text}\n  no cost: {error}" if isinstance(error, GpulseError) else text
    return text if cost is None else f"{text}\n  {' · '.join([cost_text(cost), *unit_costs(used, cost).values()])}"


def death_line(how: str, phase: str, step: int | None) -> str:
    """Return the first line of the report of a program that was killed: how it ended, and what it was doing."""
    doing = [f"in phase {clean(phase)}"] * bool(phase) + [f"at about step {step}"] * (step is not None)
    return f"gpulse: the program did not finish ({how}){' ' if doing else ''}{', '.join(doing)}."


def last_lines(lines: Sequence[CodeLine]) -> list[str]:
    """Return where the GPU waited in a program that was killed; `lines` are only the first few, so there is no total."""
    told = advised(lines)
    title = "  Where the GPU waited longest, up to 15 s before the end:"
    return [title, *(f"    {text}" for text in told)] if told else []


def limits(summary: Summary) -> list[str]:
    """Return what limited the GPUs, one line per finding, and where their time went; nothing for a run too short to judge."""
    if summary.diagnosis is None or summary.seconds < SHORTEST:
        return []
    told = [f"  → {text}" for text in findings(summary.diagnosis)]
    told += [f"  {line}" for line in time_lines(times(summary.diagnosis))]
    if sentence := code_sentence(summary.code, summary.seconds):
        told += [f"  {line}" for line in (sentence, *(f"  {text}" for text in advised(summary.code)))]
    return told


def _headline(summary: Summary) -> list[str]:
    parts = [f"gpulse: {seconds_text(summary.seconds)}"]
    if summary.steps_per_second is not None:
        parts.append(f"{summary.steps} steps, {rate_text(summary.steps_per_second)}/s")
    if (step := summary.step_time) is not None:
        parts.append(f"step {seconds_text(step.p50)} (p95 {seconds_text(step.p95)}, max {seconds_text(step.max)})")
    parts += throughput_parts(summary)
    if summary.waited:
        parts.append(f"waited for data {100 * summary.waited / max(summary.seconds, 1e-9):.0f} % of the time")
    if summary.energy is not None and any(gpu.own.used is not False for gpu in summary.gpus):
        parts.append(own_energy_text(summary.energy, summary.gpus))
    if (cpu := summary.program.get("tree_cpu_percent")) is not None:
        parts.append(f"CPU {cpu.mean:.0f} %")
    return parts


def _gpu(gpu: GpuSummary) -> str:
    """Return one GPU on one line: what it did, or what the program did where others computed, too."""
    parts = [f"GPU {_number(gpu)} {product_name(gpu.name or 'GPU')}"]
    if gpu.state != "ok":
        parts.append(gpu.state)
    if is_shared(gpu):
        if gpu.own.sm_utilization is not None:
            parts.append(f"SM share {gpu.own.sm_utilization:.0f} %")
    else:
        parts += [f"{title} {_spread(stats)}" for title, key in _ACTIVITY if (stats := gpu.stats.get(key)) is not None]
    if gpu.peak_memory is not None:
        total = "" if gpu.memory_total is None else f" of {size_text(gpu.memory_total)}"
        parts.append(f"peak memory {size_text(gpu.peak_memory)}{total}")
    if (power := gpu.stats.get("power_draw")) is not None and not is_shared(gpu):
        parts.append(f"{power.mean:.0f} W")
    if gpu.energy is not None:
        parts.append(own_energy_text(gpu.energy, [gpu]))
    if gpu.idle_share is not None and gpu.idle_share >= 1 and not is_shared(gpu):
        parts.append(f"idle {gpu.idle_share:.0f} %")
    if gpu.throttled_seconds >= 1:
        parts.append(
            f"throttled {duration_text(gpu.throttled_seconds)} ({''.join(map(clean, throttle_words(gpu.throttled)))})"
        )
    return " · ".join(parts)


def _number(gpu: GpuSummary) -> str:
    """Return the program's index of a GPU, with nvidia-smi's if it differs."""
    index = "?" if gpu.index is None else str(gpu.index)
    return index if gpu.ordinal is None or str(gpu.ordinal) == index else f"{gpu.ordinal} (nvidia-smi: {index})"


def _spread(stats: Stats) -> str:
    return f"{stats.mean:.0f} % (p95 {stats.p95:.0f})"


def _phases(summary: Summary) -> list[str]:
    header = ("phase", "times", "time", "share", "steps/s", "wait", "util", "SM", "peak", "energy")
    rows = [header]
    for phase in summary.phases:
        use, active = _busiest(phase, "utilization"), _busiest(phase, "sm_active")
        peaks = [gpu.peak_memory for gpu in phase.gpus if gpu.peak_memory is not None and gpu.own.used is not False]
        rows.append(
            (
                clean(phase.name),
                str(phase.calls),
                seconds_text(phase.seconds),
                f"{100 * phase.seconds / max(summary.seconds, 1e-9):.0f} %",
                DASH if phase.steps_per_second is None else rate_text(phase.steps_per_second),
                f"{100 * phase.waited / max(phase.seconds, 1e-9):.0f} %" if phase.waited else DASH,
                quantity_text("%", None if use is None else use.mean),
                quantity_text("%", None if active is None else active.mean),
                quantity_text("B", max(peaks, default=None)),
                energy_text(phase.energy if any(gpu.own.used is not False for gpu in phase.gpus) else None),
            )
        )
    return aligned(without_empty(rows), lead="  ")


def _busiest(phase: Summary, key: str) -> Stats | None:
    found = [gpu.stats[key] for gpu in phase.gpus if key in gpu.stats and (gpu.own.used is None or gpu.own.alone)]
    return max(found, key=lambda stats: stats.mean) if found else None


def gpu_line(gpu: Gpu, number: int) -> str:
    """Return one GPU on one line: utilization, memory, power and users."""
    parts = [f"GPU {number} {short_name(gpu)}"]
    if gpu.state != "ok":
        return f"{parts[0]}: {gpu.state}"
    for title, metric in (("util", Gpu.utilization), ("SM", Gpu.sm_active), ("tensor", Gpu.tensor_active)):
        if gpu.get(metric.key) is not None:
            parts.append(f"{title} {value_text(metric, gpu.get(metric.key))}")
    if gpu.memory_used is not None and gpu.memory_total is not None:
        parts.append(part_of_whole(gpu.memory_used, gpu.memory_total))
    parts += [
        value_text(metric, gpu.get(metric.key))
        for metric in (Gpu.temperature, Gpu.power_draw)
        if gpu.get(metric.key) is not None
    ]
    return " · ".join(parts)


def print_utilization(file: TextIO | None = None, *, source: str | None = None) -> None:
    """Print one line for each GPU this program can see, with the program's indices, to `file` (default: stdout).

    A line ends with the memory that this process holds on the GPU, if any. Prints a message instead of raising on a machine
    without GPUs. Takes about 0.1 s if activity can be read.
    """
    from ..api import read_once, seen_by_program
    from ..model.select import Wanted
    from ..sampling.assemble import ProcessFamily
    from ..sampling.sampler import Sampler
    from ..sources.registry import default_source, make_source

    stream, wanted = file or sys.stdout, Wanted(_SHOWN, process=("memory_used",))
    try:
        taken = read_once(Sampler(make_source(source or default_source()), wanted).open())
    except GpulseError as error:
        stream.write(f"gpulse: {error}\n")
        return
    gpus, family = seen_by_program(taken), ProcessFamily(os.getpid()).members(taken) or ()
    if not gpus:
        stream.write(
            "gpulse: no GPU is visible to this program (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK).\n"
        )
    for number, gpu in enumerate(gpus):
        own = [process for process in gpu.all_processes() if process.pid in family and process.pid == os.getpid()]
        known = [process.memory_used for process in own if process.memory_used is not None]
        held = f" · this process {size_text(sum(known))}" if known else ""
        stream.write(f"{gpu_line(gpu, number)}{held}\n")


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
    from ..present.cost import model_name  # of which other reports need nothing

    lines = []
    for run in runs:
        parts = [model_name(run.server)]
        if run.tokens is not None:
            parts.append(f"{run.tokens:,.0f} tokens, {quantity_text('tok/s', run.mean('generation_rate'))}")
        requests = [(name, run.mean(name)) for name in ("running", "waiting")]
        if known := [f"{mean:.1f} {name}" for name, mean in requests if mean is not None]:
            parts.append(", ".join(known))
        if (cache := run.mean("kv_cache")) is not None:
            parts.append(f"KV {cache:.0f} % (max {run.highest['kv_cache']:.0f})")
        for title, key in (("first token", "first_token_p95"), ("between tokens", "inter_token_p95")):
            if (late := run.mean(key)) is not None:
                parts.append(f"{title} p95 {seconds_text(late)}")
        if run.tokens_per_joule is not None:
            parts.append(quantity_text("tok/J", run.tokens_per_joule))
        lines.append("  served " + " · ".join(parts))
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
