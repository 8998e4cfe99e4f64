"""`gpulse pick`: print free GPUs for CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import sys

from ..free import FREE, number_of_gpus, wait_for
from ..main import load
from ..options import DEMO, GPU, HELP, SOURCE, Arguments, Option, Verb, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.catalog import Gpu


def run(arguments: Arguments) -> int:
    """Observe the GPUs and print the free ones; with --wait, wait until there are enough."""
    if arguments.fleet:
        fleet = load("fleet")
        memory = [] if arguments.free_memory is None else ["--free-memory", f"{arguments.free_memory:.0f}B"]
        demo = ["--demo"] if arguments.demo else []
        return fleet.run(parse(fleet, ["--free", str(arguments.count), *memory, *demo]))
    from ...analysis.free import Requirement

    asked = Requirement(arguments.count, arguments.free_memory, arguments.utilization, arguments.share)
    chosen, _, _ = wait_for(asked, arguments, verb="pick", claims=False, program="gpulse pick")
    sys.stdout.write(f"{_WRITTEN[arguments.by](chosen)}\n")
    return 0


def _by_uuid(gpus: Sequence[Gpu]) -> str:
    from ...model.select import selectors

    return selectors(gpus)


def _by_index(gpus: Sequence[Gpu]) -> str:
    """Return indices in driver order, or UUIDs if one of them is a MIG instance, which has no index."""
    if any(gpu.index is None or gpu.gpu_instance is not None for gpu in gpus):
        return _by_uuid(gpus)
    return ",".join(f"{gpu.index:.0f}" for gpu in gpus)


def _by_env(gpus: Sequence[Gpu]) -> str:
    from ...model.select import selection

    return f"export {' '.join(f'{name}={value}' for name, value in selection(gpus).items())}"


_WRITTEN: dict[str, Callable[[Sequence[Gpu]], str]] = {"uuid": _by_uuid, "index": _by_index, "env": _by_env}


VERB = Verb(
    "pick",
    (
        Option("count", value="[N]", default=1, parse=number_of_gpus("pick", "gpulse pick 2"),
               help="Number of GPUs (default: 1)"),
        Option("--by", value="FORM", default="uuid", complete=tuple(_WRITTEN),
               help="Output format: uuid, index (needs CUDA_DEVICE_ORDER=PCI_BUS_ID) or env, an export line for eval (default: uuid)"),
        Option("--fleet", help="List the machines of fleet.toml with that many free GPUs; see `gpulse fleet`"),
        *FREE,
        *(GPU, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("CUDA_VISIBLE_DEVICES=$(gpulse pick) ./train", "run on one free GPU"),
        ('eval "$(gpulse pick 2 --by env)"', "select two GPUs for this shell"),
        ("gpulse pick --free-memory 40GiB --wait", "wait for a GPU with 40 GiB free"),
        ("gpulse pick --share --memory 10GiB", "also count a GPU that others use, if it has 10 GiB free"),
        ("gpulse pick 4 --timeout 10m --gpu 0-3", "wait at most ten minutes for GPUs 0 to 3"),
    ),
)  # fmt: skip
