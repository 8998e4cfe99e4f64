"""Open the sampler that the common options ask for."""

from __future__ import annotations

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


def open_sampler(arguments: Arguments, wanted: Wanted, slow_every: float = 5.0) -> Sampler:
    """Return an open sampler for the selected GPUs; the caller closes it."""
    sampler = Sampler(make_source(source_name(arguments)), wanted, slow_every=slow_every).open()
    if arguments.gpu:
        sampler.choose(arguments.gpu)
    return sampler
