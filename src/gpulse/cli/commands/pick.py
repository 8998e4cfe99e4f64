"""`gpulse pick`: the names of free GPUs, for CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import os
import sys
import time

from ...errors import UsageError
from ...units import parse_size
from ..main import VERBS
from ..options import DEMO, GPU, HELP, SOURCE, Option, Verb, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...analysis.free import Asked, Verdict
    from ...model.catalog import Gpu
    from ...sampling.sampler import Sampler
    from ..options import Arguments

_TIMED_OUT = 124  # as timeout(1) says it


def run(arguments: Arguments) -> int:
    """Look over a window and write what was found; with --wait, go on until it is."""
    from ...analysis.free import WANTED, Asked, looks_for, watch
    from ...sampling.sampler import Sampler
    from ...sources.registry import make_source
    from ..session import source_name

    asked = Asked(arguments.count, arguments.free_memory, arguments.utilization)
    interval, size = looks_for(arguments.window)
    # all GPUs are read, whatever --gpu says: the numbers in CUDA_VISIBLE_DEVICES count them all
    sampler = Sampler(make_source(source_name(arguments)), WANTED).open()
    try:
        _warn(sampler)
        chosen = _found(watch(sampler.stream(interval), size, asked, os.environ, arguments.gpu), asked, arguments)
    finally:
        sampler.close()
    sys.stdout.write(f"{_WRITTEN[arguments.by](chosen)}\n")
    return 0


def _found(windows: Iterator[list[Verdict]], asked: Asked, arguments: Arguments) -> tuple[Gpu, ...]:
    """Return the GPUs to take, as soon as there are enough and no later than --timeout; raise NoFreeGpu with the reasons."""
    from ...analysis.free import best, never, refusal

    waits = arguments.wait or arguments.timeout is not None
    end = time.monotonic() + (float("inf") if arguments.timeout is None else arguments.timeout)
    error, told = refusal([], asked), False
    for verdicts in windows:
        if chosen := best(verdicts, asked):
            return chosen
        error = refusal(verdicts, asked)
        if not waits or never(verdicts, asked):
            raise error
        if time.monotonic() >= end:
            error.exit_code = _TIMED_OUT
            raise error
        if not told:
            told = True
            sys.stderr.write(f"gpulse: waiting: {error.message.splitlines()[0]}\n")
            sys.stderr.flush()
    raise error


def _warn(sampler: Sampler) -> None:
    from ...model.catalog import Gpu
    from ...model.visible import order_is_certain

    there = [Gpu(device.identity) for device in sampler.source.devices]
    if "CUDA_VISIBLE_DEVICES" in os.environ and not order_is_certain(there, os.environ):
        sys.stderr.write(
            "gpulse: the numbers in CUDA_VISIBLE_DEVICES are taken in bus order, which is CUDA's own only with "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID.\n"
        )


def _by_uuid(gpus: Sequence[Gpu]) -> str:
    return ",".join(str(gpu.uuid) for gpu in gpus)


def _by_index(gpus: Sequence[Gpu]) -> str:
    """Return the driver's numbers; a MIG instance has none and keeps its UUID."""
    if any(gpu.index is None or gpu.gpu_instance is not None for gpu in gpus):
        return _by_uuid(gpus)
    return ",".join(f"{gpu.index:.0f}" for gpu in gpus)


def _by_env(gpus: Sequence[Gpu]) -> str:
    return f"export CUDA_VISIBLE_DEVICES={_by_uuid(gpus)} CUDA_DEVICE_ORDER=PCI_BUS_ID"


_WRITTEN: dict[str, Callable[[Sequence[Gpu]], str]] = {"uuid": _by_uuid, "index": _by_index, "env": _by_env}


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise UsageError(f"pick: {text!r} is not a number of GPUs;", "write it as gpulse pick 2.")
    return int(text)


def _percent(text: str) -> float:
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise UsageError(f"--utilization: {text!r} is not between 0 and 100 per cent;", "try --utilization 5.")
    return share


VERB = Verb(
    "pick",
    VERBS["pick"],
    (
        Option("count", value="[N]", default=1, parse=_count, help="How many GPUs; 1 unless given."),
        Option("--free-memory", value="SIZE", parse=parse_size, help="Each with at least so much free memory, as 40GiB."),
        Option("--utilization", value="PERCENT", parse=_percent,
               help="Each in use for at most so much of the time; 0 unless given."),
        Option("--window", value="TIME", parse=seconds("--window", 0, 3600),
               help="Judge over so long a time; 2s unless given. 0 is one look."),
        Option("--by", value="FORM", default="uuid", complete=tuple(_WRITTEN),
               help="uuid, index (for use with CUDA_DEVICE_ORDER=PCI_BUS_ID), or env: a line for eval."),
        Option("--wait", default=False, help="Wait until there are enough; Ctrl-C ends it."),
        Option("--timeout", value="TIME", parse=seconds("--timeout", 0, 30 * 86400),
               help="Wait no longer than this, then exit with 124."),
        *(GPU, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("CUDA_VISIBLE_DEVICES=$(gpulse pick)", "before a program: one free GPU"),
        ('eval "$(gpulse pick 2 --by env)"', "two, for this shell"),
        ("gpulse pick --free-memory 40GiB --wait", "as soon as there is one"),
        ("gpulse pick 4 --timeout 10m --gpu 0-3", "of these, within ten minutes"),
    ),
)  # fmt: skip
