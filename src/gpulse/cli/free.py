"""Wait for free GPUs: the options that define "free", and the loop shared by `pick` and `run`."""

from __future__ import annotations

import os
import sys
import time

from ..errors import UsageError
from ..units import parse_size
from .options import Option, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..analysis.free import Availability, Requirement
    from ..model.catalog import Gpu
    from ..sampling.clock import SystemClock
    from .options import Arguments

    T = TypeVar("T")

_TIMED_OUT = 124  # the exit code of timeout(1)


def wait_for(
    asked: Requirement,
    arguments: Arguments,
    take: Callable[[list[Availability]], T | None],
    *,
    verb: str,
    quiet: bool = False,
    clock: SystemClock | None = None,
) -> T:
    """Return what `take` returns for the first window with enough free GPUs; with --wait or --timeout, wait for such a window.

    Raises NoFreeGpu with the reasons: immediately if not waiting or if waiting cannot help, else with exit code 124 at the timeout.
    """
    from ..analysis.free import WANTED, never, refusal, samples_for, watch
    from ..model.catalog import Gpu
    from ..sampling.sampler import Sampler
    from ..sources.registry import make_source
    from .session import source_name

    waits = arguments.wait or arguments.timeout is not None
    end = time.monotonic() + (float("inf") if arguments.timeout is None else arguments.timeout)
    interval, size = samples_for(arguments.window)
    # read all GPUs regardless of --gpu: indices in CUDA_VISIBLE_DEVICES count all of them
    sampler = Sampler(make_source(source_name(arguments)), WANTED, clock=clock).open()
    error, told = refusal([], asked), quiet
    try:
        if not quiet:
            _doubt([Gpu(device.identity) for device in sampler.source.devices])
        for verdicts in watch(sampler.stream(interval), size, asked, os.environ, arguments.gpu):
            if (taken := take(verdicts)) is not None:
                return taken
            error = refusal(verdicts, asked)
            if never(verdicts, asked):
                break
            error.remedy = "" if waits else f"Use `gpulse {verb} --wait` to wait until enough are free."
            if not waits:
                break
            if time.monotonic() >= end:
                error.exit_code = _TIMED_OUT
                break
            if not told:
                told = True
                say(f"gpulse: waiting: {error.message.splitlines()[0]}")
        raise error
    finally:
        sampler.close()


def _doubt(gpus: Sequence[Gpu]) -> None:
    from ..model.visible import order_is_certain

    if "CUDA_VISIBLE_DEVICES" in os.environ and not order_is_certain(gpus, os.environ):
        say(
            "gpulse: indices in CUDA_VISIBLE_DEVICES are read in PCI bus order, but CUDA uses that order only with "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID."
        )


def say(text: str) -> None:
    """Write a line to stderr; ignore a closed stderr."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def number_of_gpus(option: str, example: str) -> Callable[[str], int]:
    """Return a parser for a number of GPUs."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise UsageError(f"{option}: {text!r} is not a positive number of GPUs;", f"write it as {example}.")
        return int(text)

    return parse


def _percent(text: str) -> float:
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise UsageError(f"--utilization: {text!r} is not between 0 and 100 percent;", "try --utilization 5.")
    return share


FREE = (
    Option("--free-memory", value="SIZE", parse=parse_size, help="Minimum free memory of each GPU, for example 40GiB"),
    Option("--utilization", value="PERCENT", parse=_percent,
           help="Maximum utilization of each GPU, in percent (default: 0)"),
    Option("--window", value="TIME", parse=seconds("--window", 0, 3600),
           help="How long to observe GPUs before selecting (default: 2s; 0: a single sample)"),
    Option("--wait", default=False, help="Wait until enough GPUs are free"),
    Option("--timeout", value="TIME", parse=seconds("--timeout", 0, 30 * 86400),
           help="Maximum time to wait, after which the exit code is 124 (implies --wait)"),
)  # fmt: skip
