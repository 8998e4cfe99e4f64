"""Print the current utilization from inside a program."""

from __future__ import annotations

import os
import sys

from ..api import visible_gpus
from ..errors import GpulseError
from ..units import size_text
from .report import gpu_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_KEYS = (
    "utilization", "sm_active", "tensor_active", "memory_used", "memory_total", "temperature", "power_draw",
)  # fmt: skip


def print_utilization(file: TextIO | None = None, *, source: str | None = None) -> None:
    """Print one line for each GPU this program can see, with the program's indices, to `file` (default: stdout).

    Prints a message instead of raising on a machine without GPUs. Takes about 0.1 s if activity can be read.
    """
    stream = file or sys.stdout
    try:
        gpus = visible_gpus(_KEYS, source=source)
    except GpulseError as error:
        stream.write(f"gpulse: {error}\n")
        return
    if not gpus:
        stream.write(
            "gpulse: no GPU is visible to this program (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK).\n"
        )
    for number, gpu in enumerate(gpus):
        own = [process.memory_used for process in gpu.all_processes() if process.pid == os.getpid()]
        held = f" · this process {size_text(own[0])}" if own and own[0] is not None else ""
        stream.write(f"{gpu_line(gpu, number)}{held}\n")
