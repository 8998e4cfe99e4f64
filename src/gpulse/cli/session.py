"""Open the sampler that the common options ask for."""

from __future__ import annotations

import os

from ..sampling.sampler import Sampler
from ..sources.registry import default_source, make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.select import Wanted
    from .options import Arguments


def source_name(arguments: Arguments) -> str:
    """Return the source named by the options or the environment."""
    if arguments.demo:
        return "demo:mixed" if arguments.demo == "mixed" else "demo"
    name: str = arguments.source or default_source()
    return name


def open_sampler(arguments: Arguments, wanted: Wanted, slow_every: float = 5.0, *, whole: bool = False) -> Sampler:
    """Return an open sampler for the selected GPUs; the caller closes it.

    Inside a Slurm job these are the job's if none are named; `whole`: all of the machine, as nvidia-smi shows.
    """
    sampler = Sampler(make_source(source_name(arguments)), wanted, slow_every=slow_every).open()
    if arguments.gpu:
        sampler.choose(arguments.gpu)
    elif not whole and sampler.source.machine.real and os.environ.get("SLURM_JOB_GPUS"):
        sampler.choose(["job"])
    return sampler
