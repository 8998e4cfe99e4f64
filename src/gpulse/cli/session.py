"""Open the sampler that the common options ask for."""

from __future__ import annotations

import os

from ..sampling.sampler import Sampler
from ..sources.registry import default_source, make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.select import Wanted
    from .options import Arguments


def source_name(arguments: Arguments) -> str:
    """Return the source named by the options or the environment."""
    if arguments.demo:
        return "demo:mixed" if arguments.demo == "mixed" else "demo"
    name: str = arguments.source or default_source()
    return name


def with_past(run: Callable[[Arguments], int], kind: str, name: str) -> Callable[[Arguments], int]:
    """Return a verb's function that reads the past of a simulated machine with --demo.

    `kind` is "history", "recording" or "runs"; the path of a temporary file is put into the argument called `name`, unless it has a value.
    """

    def remembering(arguments: Arguments) -> int:
        if not arguments.demo or (name and getattr(arguments, name)):
            return run(arguments)
        import tempfile
        import time

        from ..recordings.demo import write_history, write_recording, write_runs

        with tempfile.TemporaryDirectory(prefix="gpulse-demo-") as folder:
            if kind == "runs":
                write_runs(folder, time.time())
                os.environ["GPULSE_RUNS"] = folder
                return run(arguments)
            path = os.path.join(folder, "history.db" if kind == "history" else "demo.ndjson")
            (write_history if kind == "history" else write_recording)(path, time.time())
            setattr(arguments, name, [path] if name.endswith("s") else path)
            return run(arguments)

    return remembering


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
