"""Print the current utilization from inside a program."""

from __future__ import annotations

import os
import sys

from ..api import read_once, seen_by_program
from ..errors import GpulseError
from ..model.select import Wanted
from ..sampling.sampler import Sampler
from ..sources.registry import default_source, make_source
from ..units import size_text
from .report import gpu_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_SHOWN = Wanted(
    (
        "utilization",
        "sm_active",
        "tensor_active",
        "memory_used",
        "memory_total",
        "temperature",
        "power_draw",
        "mig_mode",
    ),
    process=("memory_used",),
)


def print_utilization(file: TextIO | None = None, *, source: str | None = None) -> None:
    """Print one line for each GPU this program can see, with the program's indices, to `file` (default: stdout).

    A line ends with the memory that this process holds on the GPU, if any. Prints a message instead of raising on a machine
    without GPUs. Takes about 0.1 s if activity can be read.
    """
    stream = file or sys.stdout
    try:
        gpus = seen_by_program(read_once(Sampler(make_source(source or default_source()), _SHOWN).open()))
    except GpulseError as error:
        stream.write(f"gpulse: {error}\n")
        return
    if not gpus:
        stream.write(
            "gpulse: no GPU is visible to this program (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK).\n"
        )
    for number, gpu in enumerate(gpus):
        own = [process.memory_used for process in gpu.all_processes() if process.pid == os.getpid()]
        known = [size for size in own if size is not None]
        held = f" · this process {size_text(sum(known))}" if known else ""
        stream.write(f"{gpu_line(gpu, number)}{held}\n")
