"""Wait for free GPUs: the options that define "free", and the loop shared by `pick` and `run`."""

from __future__ import annotations

import os
import time

from ..errors import UsageError
from ..units import parse_size
from .options import Option, seconds, whole
from .output import say
from .session import open_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..analysis.free import Requirement
    from ..errors import NoFreeGpu
    from ..model.catalog import Gpu
    from ..sampling.clock import SystemClock
    from ..store.claims import Claim
    from ..store.queue import QueuePlace
    from .options import Arguments


def wait_for(
    asked: Requirement,
    arguments: Arguments,
    *,
    verb: str,
    claims: bool,
    quiet: bool = False,
    clock: SystemClock | None = None,
    **parts: Any,
) -> tuple[list[Gpu], list[Claim], QueuePlace | None]:
    """Return free GPUs, the locks on them and the place in the queue; with --wait or --timeout, wait for them in the queue.

    Raises NoFreeGpu with the reasons: immediately if not waiting or if waiting cannot help, else with exit code 124 at the timeout.
    A program that has GPUs already, from Slurm for instance, gets these.
    """
    from ..analysis.free import WANTED
    from ..analysis.waiting import Waiting, allotted
    from ..model.catalog import Gpu
    from ..present.queue import hold_text, place_text

    wait = float("inf") if arguments.wait and arguments.timeout is None else arguments.timeout
    sampler = open_whole(arguments, WANTED, clock)  # indices in CUDA_VISIBLE_DEVICES count all GPUs
    try:
        if not quiet:
            _doubt([Gpu(device.identity) for device in sampler.source.devices])
        if (given := allotted(sampler.identities(), asked.count, arguments.gpu)) is not None:
            return given, [], None
        waiting = Waiting(asked, hold_text, claims=claims, verb=verb, **parts)

        def tell(error: NoFreeGpu) -> None:
            first, *reasons = error.message.rstrip().splitlines()
            place = place_text(waiting.turn, len(waiting.turns), time.time())
            say("\n".join([f"waiting: {first}", *reasons, f"  {place}; `gpulse queue` shows who waits"]))

        told = (lambda error: None) if quiet else tell
        return *waiting.seek(sampler, arguments.gpu, arguments.window, wait, told), waiting.place
    finally:
        sampler.close()


def _doubt(gpus: Sequence[Gpu]) -> None:
    from ..model.select import order_is_certain

    if "CUDA_VISIBLE_DEVICES" in os.environ and not order_is_certain(gpus, os.environ):
        say(
            "indices in CUDA_VISIBLE_DEVICES are read in PCI bus order, but CUDA uses that order only with "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID."
        )


def number_of_gpus(option: str, example: str) -> Callable[[str], int]:
    """Return a parser for a number of GPUs."""
    return whole(option, 1, 10**9 - 1, "a positive number of GPUs", f"write it as {example}.")


def _percent(text: str) -> float:
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise UsageError(f"--utilization: {text!r} is not between 0 and 100 percent;", "try --utilization 5.")
    return share


FREE = (
    Option("--free-memory", "--memory", name="free_memory", value="SIZE", parse=parse_size,
           help="Minimum free memory of each GPU, for example 40GiB; with --share, what the job needs at most"),
    Option("--share",
           help="Also select GPUs that others use if they have that much free memory; needs --memory"),
    Option("--utilization", value="PERCENT", parse=_percent,
           help="Maximum utilization of each GPU, in percent (default: 0)"),
    Option("--window", value="TIME", parse=seconds("--window", 0, 3600),
           help="How long to observe GPUs before selecting (default: 2s; 0: a single sample)"),
    Option("--wait", help="Wait until enough GPUs are free"),
    Option("--timeout", value="TIME", parse=seconds("--timeout", 0, 30 * 86400),
           help="Maximum time to wait, after which the exit code is 124 (implies --wait)"),
)  # fmt: skip
