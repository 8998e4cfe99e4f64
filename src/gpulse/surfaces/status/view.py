"""The whole glance: a snapshot to lines of text."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS
from ...model.metric import Number
from ...present.cells import severity, value_text
from ...present.line import Line, table_lines
from ...present.words import label
from .cards import deck
from .header import header, problem_lines
from .lines import table
from .processes import process_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.catalog import Gpu
    from ...model.metric import Metric
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

_MOST_CARDS = 2
_NARROWEST_CARD = 64


def glance(
    snapshot: Snapshot, theme: Theme, columns: int, *, processes: bool = False, chosen: Sequence[str] = ()
) -> list[str]:
    """Return the lines of the view; `processes` adds the process table, `chosen` keys replace the usual columns."""
    if not snapshot.gpus:
        lines = [header(snapshot, theme, columns), Line().add("no GPU", "label")]
    elif chosen:
        lines = [header(snapshot, theme, columns), *_columns(snapshot, chosen)]
    elif len(snapshot.gpus) <= _MOST_CARDS and columns >= _NARROWEST_CARD:
        lines = deck(snapshot, theme, columns)
    else:
        lines = table(snapshot, theme, columns)
    if processes:
        lines += [Line(), *process_table(snapshot, theme, columns)]
    lines += problem_lines(snapshot)
    return [line.render(theme, columns) for line in lines]


def _columns(snapshot: Snapshot, chosen: Sequence[str]) -> list[Line]:
    """Return a plain table of the metrics asked for; a missing value is the reason in brackets."""
    metrics = [GPU_METRICS[key] for key in chosen]
    gpus = [gpu for whole in snapshot.gpus for gpu in (whole, *whole.instances)]
    rows = [
        [(label(gpu), "accent"), *((_text(metric, gpu), severity(metric, gpu)) for metric in metrics)] for gpu in gpus
    ]
    right = [isinstance(metric, Number) for metric in metrics]
    return table_lines(["GPU", *(metric.short.upper() for metric in metrics)], rows, [False, *right])


def _text(metric: Metric, gpu: Gpu) -> str:
    value = gpu.get(metric.key)
    return f"({gpu.gap(metric.key)})" if value is None else value_text(metric, value)
