"""What limited a run, as far as its figures can tell: a sentence for each finding, the one that matters most first.

Thresholds are those of NVIDIA's DCGM guide (SM 80, DRAM 80 is the practical most), of the study of slow training jobs at ICSE 2024
(memory 50 and 80 % of the GPU), and of gpulse's own traces of an H200.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .summary import GpuSummary, Summary

_FAULTS = {"lost": "was lost", "timeout": "stopped answering"}
_SHORTEST = 10.0  # seconds below which a run says nothing but that it was short


def verdict(summary: Summary, cores: float | None = None) -> list[str]:
    """Return the findings of a run; none where nothing can be told. `cores` are the processors the program may use."""
    if summary.seconds < _SHORTEST or not summary.gpus:
        return []
    busiest = max(summary.gpus, key=lambda gpu: _mean(gpu, "utilization") or 0.0)
    found = [*_faults(summary), *_throttled(summary)]
    found += _waiting(summary, busiest, cores) or _working(busiest)
    return found + _memory(busiest) + _unused(summary)


def _faults(summary: Summary) -> list[str]:
    return [f"{_name(gpu)} {_FAULTS[gpu.state]}." for gpu in summary.gpus if gpu.state in _FAULTS]


def _throttled(summary: Summary) -> list[str]:
    slowed = [gpu for gpu in summary.gpus if gpu.throttled_seconds >= summary.seconds / 100]
    hot = [gpu for gpu in slowed if any("thermal" in reason for reason in gpu.throttled)]
    found = []
    for gpus, cure in ((hot, "cooling"), ([gpu for gpu in slowed if gpu not in hot], "power supply and cables")):
        if gpus:
            share = 100 * max(gpu.throttled_seconds for gpu in gpus) / summary.seconds
            were = "was slowed down" if len(gpus) == 1 else "were slowed down up to"
            found.append(
                f"{', '.join(map(_name, gpus))} {were} {min(share, 100):.0f} % of the time: look at the {cure}."
            )
    return found


def _waiting(summary: Summary, gpu: GpuSummary, cores: float | None) -> list[str]:
    """The GPU had nothing to do for a good part of the time: say what the program did meanwhile, where that shows."""
    if gpu.idle_share is None or gpu.idle_share < 20:
        return []
    text = f"{_name(gpu)} was idle {gpu.idle_share:.0f} % of the time"
    wait = 100 * summary.waited / summary.seconds
    cpu, disk = summary.program.get("tree_cpu_percent"), summary.host.get("iowait")
    if wait >= 10:
        return [
            f"{text}, and the program waited for data {wait:.0f} %: more loader workers, faster storage or less decoding."
        ]
    if cpu is not None and cores is not None and cores > 1 and cpu.mean >= 90 * cores:
        return [f"{text} while all {cores:.0f} CPUs of the program were busy: preprocessing limits it."]
    if disk is not None and disk.mean >= 20:
        return [f"{text} while the CPUs waited for disks ({disk.mean:.0f} %): storage limits it."]
    if cpu is not None and 80 <= cpu.p50 <= 130:
        return [f"{text} while one CPU was busy: a single thread (Python, a loader without workers) limits it."]
    return [f"{text}."]


def _working(gpu: GpuSummary) -> list[str]:
    """The GPU was at work: say at what."""
    use, active = _mean(gpu, "utilization"), _mean(gpu, "sm_active")
    tensor, dram = _mean(gpu, "tensor_active"), _mean(gpu, "dram_active")
    if use is None or active is None or tensor is None or dram is None or use < 50:
        return []
    name = _name(gpu)
    if active < 25:
        shown = f"{name} read {use:.0f} % utilised with its SMs {active:.0f} % active"
        return [f"{shown}: small kernels or copies; larger batches, torch.compile or CUDA graphs help."]
    if dram >= 60 and tensor < 20:
        shown = f"{name} was limited by its memory bandwidth (DRAM {dram:.0f} %, tensor cores {tensor:.0f} %)"
        return [f"{shown}: fuse, or move fewer bytes."]
    if active >= 60 and tensor < 3:
        return [f"{name} hardly used its tensor cores ({tensor:.0f} %): bf16, or float32 matmul precision `high`."]
    if active >= 80 and tensor >= 40:
        return [f"{name} was limited by computing, as it should be (SM {active:.0f} %, tensor {tensor:.0f} %)."]
    if active >= 80:
        return [f"{name} was busy (SM {active:.0f} %, tensor {tensor:.0f} %, DRAM {dram:.0f} %)."]
    return []


def _memory(gpu: GpuSummary) -> list[str]:
    used = gpu.stats.get("memory_percent")
    if used is None:
        return []
    if used.max >= 95:
        return [f"{_name(gpu)} came within {100 - used.max:.0f} % of its memory; peaks between samples can be higher."]
    use = _mean(gpu, "utilization")
    if use is not None and 5 <= use <= 50 and used.max <= 50:
        return [f"{_name(gpu)} had half of its memory free: a larger batch may use it better."]
    return []


def _unused(summary: Summary) -> list[str]:
    busy = [gpu for gpu in summary.gpus if (_mean(gpu, "utilization") or 0.0) >= 5]
    idle = [gpu for gpu in summary.gpus if (use := _mean(gpu, "utilization")) is not None and use < 1]
    if busy and idle:
        return [f"{', '.join(map(_name, idle))} did nothing."]
    return []


def _mean(gpu: GpuSummary, key: str) -> float | None:
    stats = gpu.stats.get(key)
    return None if stats is None else stats.mean


def _name(gpu: GpuSummary) -> str:
    return f"GPU {gpu.index if gpu.index is not None else '?'}"
