"""An out-of-memory error as text: what happened, who held the memory, and what to try."""

from __future__ import annotations

import os

from ..units import duration_text, size_text
from .text import aligned, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..analysis.out_of_memory import MemoryHolder, OutOfMemory

_MOST_OTHERS = 5
_OWN = ("demand", "growth", "fragmentation", "limit")  # causes for which it matters what the program itself allocated
_FRAMEWORKS = {"torch": "torch", "jax": "JAX", "tensorflow": "TensorFlow", "cupy": "CuPy", "cuda": "CUDA"}
CAUSES = {
    "too_large": "this single allocation is larger than the whole GPU.",
    "limit": "the program reached its own limit; the GPU still has room.",
    "fragmentation": "fragmentation: enough memory is reserved and unused, but not in one piece.",
    "others": "other processes hold the memory; without them it would have fit.",
    "growth": "memory kept growing until it ran out, as with a leak.",
    "outside": "much of this process's memory is outside the framework's allocator (NCCL, cuBLAS, other libraries).",
    "unknown": "cannot be told: there is as much free memory as was asked for. Some may have been freed since the error.",
    "demand": "the program needs more memory than this GPU has left.",
    "host": "the machine's own memory (RAM) ran out, not the GPU's.",
}
REMEDIES = {
    "batch": "Reduce the batch size, or the sequence length or image size.",
    "accumulation": "Use gradient accumulation: smaller micro-batches with the same effective batch size.",
    "checkpointing": "Use activation checkpointing (torch.utils.checkpoint, gradient_checkpointing=True, jax.checkpoint): less "
    "memory for some recomputation.",
    "precision": "Use mixed precision (bf16 autocast), or 8-bit optimizers.",
    "expandable_segments": "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF in newer torch) to reduce "
    "fragmentation.",
    "loader": "Do not load the whole data set at once: move one batch at a time to the GPU (DataLoader).",
    "shape": "Check the shape: a broadcast, a full attention matrix or a missing batch loop often asks for this much.",
    "shapes": "Keep tensor shapes fixed, for example by padding to a few lengths.",
    "limit": "Raise the limit (torch.cuda.set_per_process_memory_fraction, or the memory fraction of your framework).",
    "again": "Run it again and watch: `gpulse top`, or a Monitor, which keeps the memory of the last ten minutes.",
    "others": "Stop the other processes, or select another GPU: `gpulse pick`, `gpulse run --gpus 1 --wait -- …`.",
    "gradients": "Do not keep tensors with their graph: total += loss.item(), outputs.append(output.detach().cpu()).",
    "evaluation": "Run evaluation under torch.inference_mode().",
    "outside": "Look at what else allocates: NCCL buffers, custom kernels, a second framework in the same process.",
    "preallocation": "JAX and TensorFlow reserve most of the memory at the start: see XLA_PYTHON_CLIENT_MEM_FRACTION and "
    "XLA_PYTHON_CLIENT_PREALLOCATE=false.",
    "host_batch": "Reduce the batch size or the prefetch factor of the data loader.",
    "workers": "Use fewer DataLoader workers: each has its own copy of what it loads.",
}  # fmt: skip


def account(report: OutOfMemory) -> str:
    """Return the whole account, several lines."""
    lines = [_headline(report), f"  Cause: {CAUSES[report.cause]}"]
    lines += _memory(report)
    if report.growth is not None:
        lines.append(f"  Before: {_growth(report)}")
    lines += _allocations(report)
    lines.append("  Try, in this order:")
    lines += [f"    {at}. {REMEDIES[key]}" for at, key in enumerate(report.remedies, 1)]
    if report.framework == "torch" and report.cause in _OWN and not report.allocations:
        lines.append("  Which lines allocated it: run it again with gpulse.Monitor(memory_snapshot=True).")
    return "\n".join(lines)


def _headline(report: OutOfMemory) -> str:
    where = " (RAM)" if report.where == "host" else "" if report.device is None else f" on GPU {report.device}"
    name = f" ({clean(report.gpu_name)})" if report.gpu_name else ""
    parts = []
    if report.requested is not None:
        parts.append(f"{_FRAMEWORKS[report.framework]} asked for {size_text(report.requested)}")
    if report.free is not None:
        parts.append(f"{size_text(report.free)} {'is free now' if report.free_is_now else 'was free'}")
    return f"gpulse: out of memory{where}{name}{': ' if parts else ''}{', '.join(parts)}."


def _memory(report: OutOfMemory) -> list[str]:
    framework = _FRAMEWORKS[report.framework]
    rows = [
        (f"{framework}: tensors", report.allocated),
        (f"{framework}: reserved, unused", report.reserved_unused),
        ("this process, other (context, libraries)", report.outside_framework),
        ("this process", report.used if report.allocated is None else None),
        *((_holder(other), other.bytes) for other in report.others[:_MOST_OTHERS]),
        ("free now" if report.free_is_now else "free", report.free),
        ("limit of this program", report.limit),
    ]
    known = [(label, count) for label, count in rows if count is not None]
    if not known or report.where == "host":
        return []
    wide = max(len(label) for label, _ in known)
    total = "" if report.total is None else f" of {size_text(report.total)}"
    lines = [f"  Memory{total}:"] + [f"    {label:<{wide}}  {size_text(count):>9}" for label, count in known]
    left = len(report.others) - _MOST_OTHERS
    return lines + ([f"    and {left} more processes"] if left > 0 else [])


def _allocations(report: OutOfMemory) -> list[str]:
    """Return the lines of code that hold most memory."""
    if not report.allocations:
        return []
    rows = [
        (
            f"{os.path.basename(clean(line.file))}:{line.line} {clean(line.function)}",
            size_text(line.bytes),
            str(line.blocks),
        )
        for line in report.allocations
    ]
    return ["  Allocated by:", *aligned([("line", "memory", "blocks"), *rows], lead="    ")]


def _holder(other: MemoryHolder) -> str:
    name = f" {clean(other.name)[:24]}" if other.name else ""
    user = f" ({clean(other.user)[:16]})" if other.user else ""
    return f"process {other.pid}{name}{user}"


def _growth(report: OutOfMemory) -> str:
    growth = report.growth
    assert growth is not None
    span = duration_text(growth.seconds)
    if abs(growth.last - growth.first) < 1 << 20:
        return f"memory in use on the GPU did not change in the last {span}."
    rate = f", {size_text(growth.rate)}/s" if growth.steady else ""
    return f"memory in use on the GPU went from {size_text(growth.first)} to {size_text(growth.last)} in {span}{rate}."
