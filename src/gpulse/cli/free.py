"""Waiting for free GPUs: the options that say what is free, and the one loop that `pick` and `run` wait in."""

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

    from ..analysis.free import Requirement, Verdict
    from ..model.catalog import Gpu
    from ..sampling.clock import SystemClock
    from .options import Arguments

    T = TypeVar("T")

_TIMED_OUT = 124  # as timeout(1) says it


def wait_for(
    asked: Requirement,
    arguments: Arguments,
    take: Callable[[list[Verdict]], T | None],
    *,
    verb: str,
    quiet: bool = False,
    clock: SystemClock | None = None,
) -> T:
    """Return what `take` makes of the first window with enough free GPUs; with --wait or --timeout, go on until there is one.

    Raises NoFreeGpu with the reasons: at once when nothing is waited for or no waiting would help, else with 124 at the timeout.
    """
    from ..analysis.free import WANTED, never, refusal, samples_for, watch
    from ..model.catalog import Gpu
    from ..sampling.sampler import Sampler
    from ..sources.registry import make_source
    from .session import source_name

    waits = arguments.wait or arguments.timeout is not None
    end = time.monotonic() + (float("inf") if arguments.timeout is None else arguments.timeout)
    interval, size = samples_for(arguments.window)
    # all GPUs are read, whatever --gpu says: the numbers in CUDA_VISIBLE_DEVICES count them all
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
            error.remedy = "" if waits else f"`gpulse {verb} --wait` waits until enough are free."
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
            "gpulse: the numbers in CUDA_VISIBLE_DEVICES are taken in bus order, which is CUDA's own only with "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID."
        )


def say(text: str) -> None:
    """Write a line on stderr, if somebody is there to be told."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def number_of_gpus(option: str, example: str) -> Callable[[str], int]:
    """Return a parser of a number of GPUs."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
            raise UsageError(f"{option}: {text!r} is not a number of GPUs;", f"write it as {example}.")
        return int(text)

    return parse


def _percent(text: str) -> float:
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise UsageError(f"--utilization: {text!r} is not between 0 and 100 per cent;", "try --utilization 5.")
    return share


FREE = (
    Option("--free-memory", value="SIZE", parse=parse_size, help="Each with at least so much free memory, as 40GiB."),
    Option("--utilization", value="PERCENT", parse=_percent,
           help="Each in use for at most so much of the time; 0 unless given."),
    Option("--window", value="TIME", parse=seconds("--window", 0, 3600),
           help="Judge what is free over so long a time; 2s unless given. 0 is one sample."),
    Option("--wait", default=False, help="Wait until there are enough; Ctrl-C ends it."),
    Option("--timeout", value="TIME", parse=seconds("--timeout", 0, 30 * 86400),
           help="Wait no longer than this, then exit with 124."),
)  # fmt: skip
