"""Jobs: which GPUs work for the same program, told from their processes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from .load import Load


def peers(loads: Sequence[Load]) -> list[list[Load]]:
    """Return for each load those of the other GPUs of the same job."""
    marks = [set(_marks(load)) for load in loads]
    return [
        [other for place, other in enumerate(loads) if place != at and marks[at] & marks[place]]
        for at in range(len(loads))
    ]


def _marks(load: Load) -> Iterator[Hashable]:
    """Yield what identifies the job of a GPU: the process itself, its batch job, or its parent and command."""
    for track in load.tracks:
        process = track.process
        yield ("pid", track.pid)
        if process.job:
            yield ("job", process.job)
        elif process.pod or process.container:
            yield ("container", process.pod or process.container, process.command)
        if process.parent is not None and process.parent > 1 and process.command:
            yield ("parent", process.parent, process.command)
