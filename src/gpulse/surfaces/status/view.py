"""The whole glance: a snapshot to lines of text."""

from __future__ import annotations

from ...model import catalog
from ...model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu
from ...model.metric import Number
from ...model.select import Wanted
from ...present.cells import clock_text, severity, value_text
from ...present.line import Line, table_lines
from ...present.text import clean
from ...present.words import label, part_of_whole, problem_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.metric import Metric
    from ...model.process_filter import ProcessFilter
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

GLANCE = Wanted(catalog.GLANCE, catalog.USERS, ("name", "load", "memory_used", "memory_total"), serving=True)
STAYING = Wanted(gpu=("xid_last", "xids"))
PROCESSES = Wanted(process=PROCESS_METRICS)
_MOST_CARDS = 2
_NARROWEST_CARD = 64


def glance(
    snapshot: Snapshot,
    theme: Theme,
    columns: int,
    *,
    processes: bool = False,
    chosen: Sequence[str] = (),
    wanted: ProcessFilter | None = None,
    header: bool = True,
    name_width: int | None = None,
) -> list[str]:
    """Return the lines of the view; `processes` adds the table of processes, of those `wanted`; `chosen` keys replace the usual columns.

    Without `header` the line about the machine is left out; `name_width` sets the cells of names in lines, 0 for none.
    """
    headline = ""
    if not snapshot.gpus:
        lines = [Line().add("no GPU", "label")]
    elif chosen:
        lines = _columns(snapshot, chosen)
    elif len(snapshot.gpus) <= _MOST_CARDS and columns >= _NARROWEST_CARD:
        from .cards import deck

        lines = deck(snapshot, theme, columns)
    else:
        from .lines import table

        headline, lines = table(snapshot, theme, columns, name_width)
    if header:
        lines.insert(0, _header(snapshot, theme, columns, headline))
    if snapshot.serving and not chosen:
        from ...present.cost import server_lines

        lines += [Line().add("SERVING", "label"), *server_lines(snapshot, theme, columns)]
    if processes:
        from .processes import process_table

        lines += [Line(), *process_table(snapshot, theme, columns, wanted)]
    lines += _problems(snapshot, columns)
    return [line.render(theme, columns) for line in lines]


def _columns(snapshot: Snapshot, chosen: Sequence[str]) -> list[Line]:
    """Return a plain table of the metrics asked for, led by the index unless it is one of them; a missing value is its reason."""
    metrics = [GPU_METRICS[key] for key in (*(() if "index" in chosen else ("index",)), *chosen)]
    gpus = [gpu for whole in snapshot.gpus for gpu in (whole, *whole.instances)]
    rows = [[_cell(metric, gpu) for metric in metrics] for gpu in gpus]
    right = [isinstance(metric, Number) and metric is not Gpu.index for metric in metrics]
    return table_lines([_heading(metric) for metric in metrics], rows, right)


def _heading(metric: Metric) -> str:
    return "GPU" if metric is Gpu.index else metric.short.upper()


def _cell(metric: Metric, gpu: Gpu) -> tuple[str, str]:
    if metric is Gpu.index:
        return label(gpu), "accent"
    value = gpu.get(metric.key)
    return f"({gpu.gap(metric.key)})" if value is None else value_text(metric, value), severity(metric, gpu)


def _header(snapshot: Snapshot, theme: Theme, columns: int, gpus: str) -> Line:
    """Return the first line: host, driver and time; `gpus` names the GPUs when all have the same name.

    Load and memory of the host give way to the time.
    """
    dot, clock = theme.glyph(" · ", " | "), clock_text(snapshot.time)
    host, driver = snapshot.host, snapshot.driver
    line = Line().add(clean(host.name or "gpulse"), "title")
    facts = [gpus] if gpus else []
    facts += [f"driver {clean(driver['version'])}"] if "version" in driver else []
    facts += [f"CUDA {clean(driver['cuda'])}"] if "cuda" in driver else []
    line.add("".join(f"{dot}{fact}" for fact in facts), "label")
    extra = [f"load {host.load[0]:.1f}"] if host.load else []
    if host.memory_used is not None and host.memory_total:
        extra.append(f"memory {part_of_whole(host.memory_used, host.memory_total)}")
    for fact in extra if columns >= 100 else ():
        if line.width + len(dot) + len(fact) + len(clock) < columns:
            line.add(f"{dot}{fact}", "label")
    return line.to(columns - len(clock)).add(clock, "label") if line.width + len(clock) < columns else line


def _problems(snapshot: Snapshot, columns: int) -> list[Line]:
    """Return each problem of the snapshot with its remedy, on as many lines as it needs."""
    if not snapshot.problems:
        return []
    from ...present.line import wrapped_lines

    return [line for problem in snapshot.problems for line in wrapped_lines([(problem_text(problem), "warn")], columns)]
