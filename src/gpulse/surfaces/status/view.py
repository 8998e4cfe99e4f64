"""The whole glance: a snapshot to lines of text, printed once or drawn in place again and again; and the table of processes."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, Gpu, Process
from ...model.metric import Number
from ...present.cells import clock_text, severity, value_text
from ...present.line import Line, table_lines
from ...present.text import clean
from ...present.words import heading, label, part_of_whole, problem_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import TextIO, TypeVar

    from ...model.metric import Metric
    from ...model.process_filter import ProcessFilter
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme

    Shown = TypeVar("Shown")

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
        from .gpus import deck

        lines = deck(snapshot, theme, columns)
    else:
        from .gpus import table

        headline, lines = table(snapshot, theme, columns, name_width)
    if header:
        lines.insert(0, _header(snapshot, theme, columns, headline))
    if snapshot.serving and not chosen:
        from ...present.cost import server_lines

        lines += [Line().add("SERVING", "label"), *server_lines(snapshot, theme, columns)]
    if processes:
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


_COLUMNS = (Process.pid, Process.user, Process.type, Process.memory_used, Process.sm_utilization, Process.cpu_percent)
_MORE = (Process.host_memory, Process.running_time, Process.container, Process.job)
_RIGHT = frozenset({"pid", "memory_used", "sm_utilization", "cpu_percent", "host_memory", "running_time"})


def process_table(snapshot: Snapshot, theme: Theme, columns: int, wanted: ProcessFilter | None = None) -> list[Line]:
    """Return a header line and a line for each process that the filter matches; empty columns are left out."""
    everyone = list(_rows(snapshot))
    rows = [(place, process) for place, at, process in everyone if wanted is None or wanted.fits(process, at)]
    if not rows:
        return [Line().add("no process matches the filter" if everyone else "no process uses a GPU", "label")]
    shown = [
        metric for metric in (*_COLUMNS, *_MORE) if any(process.get(metric.key) is not None for _, process in rows)
    ]
    if columns < 90:
        shown = [metric for metric in shown if metric not in _MORE]
    rows_of_cells = [
        [
            (place, "accent"),
            *((_text(metric, process), _style(metric)) for metric in shown),
            (_command(process), "label"),
        ]
        for place, process in rows
    ]
    titles = ["GPU", *(heading(metric, snapshot.gpus).upper() for metric in shown), "COMMAND"]
    return table_lines(titles, rows_of_cells, [False, *(metric.key in _RIGHT for metric in shown), False])


def _text(metric: Metric, process: Process) -> str:
    return value_text(metric, process.get(metric.key))


def _style(metric: Metric) -> str:
    return "user" if metric is Process.user else "calm"


def _command(process: Process) -> str:
    return value_text(Process.command, process.command or process.name)


def _rows(snapshot: Snapshot) -> Iterator[tuple[str, tuple[int, int], Process]]:
    """Yield each process with the label of its GPU or instance, and the same in numbers."""
    for at, gpu in enumerate(snapshot.gpus):
        index = at if gpu.index is None else int(gpu.index)
        for process in gpu.processes:
            yield label(gpu), (index, -1), process
        for inner, instance in enumerate(gpu.instances):
            number = inner if instance.index is None else int(instance.index)
            for process in instance.processes:
                yield f"{label(gpu)}:{label(instance)}", (index, number), process


_ENTER = "\x1b[?1049h\x1b[?25l"  # other screen, no cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_CLEAR_LINE = "\x1b[K"
_CLEAR_BELOW = "\x1b[J"


class _Stop(Exception):  # it is no error
    """Asked to end by a signal."""


def watch(
    snapshots: Iterable[Shown], draw: Callable[[Shown], list[str]], rows: Callable[[], int] | None, out: TextIO
) -> None:
    """Draw each snapshot in place until the snapshots or the user end it; the last picture stays on the terminal.

    `rows` gives the height of the terminal; without it, each picture is written below the one before, a blank line between.
    """
    import signal  # 2 ms, which a single glance need not pay

    last: list[str] = []
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        if rows is not None:
            out.write(_ENTER)
        for snapshot in snapshots:
            last = draw(snapshot)
            _write(out, last, rows()) if rows is not None else out.write("\n".join(last) + "\n\n")
            out.flush()
    except (KeyboardInterrupt, _Stop):
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        if rows is not None:
            out.write(_LEAVE + "\n".join(last) + "\n")
            out.flush()


def _write(out: TextIO, lines: list[str], rows: int) -> None:
    shown = lines
    if len(lines) > rows:
        shown = [*lines[: rows - 1], f"+{len(lines) - rows + 1} more lines"]
    out.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in shown[:-1]))
    out.write(f"{shown[-1]}{_CLEAR_LINE}{_CLEAR_BELOW}" if shown else _CLEAR_BELOW)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop
