"""%gpulse top: a table of the GPUs that is updated under its cell until the next cell runs; and the sampling in threads of the kernel."""

from __future__ import annotations

import os
import shutil
import sys
import threading

from ...analysis.concerns import concerns
from ...analysis.diagnosis.running import LiveDiagnosis
from ...analysis.diagnosis.window import WANTED
from ...model.catalog import GLANCE, Process
from ...model.select import Wanted
from ...monitor.report import gpu_line
from ...present.cells import moment_text, value_text
from ...present.concerns import place, worded
from ...present.html import SEVERITY_COLORS, cell, escape, snapshot_html, table
from ...present.text import aligned, clean, fit
from ...present.words import label, ranges
from ...sampling.assemble import ProcessFamily
from ...sampling.bus import Bus
from ...sampling.sampler import Sampler
from ...sources.registry import default_source, make_source
from ...units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from ...model.snapshot import Snapshot
    from ...model.verdict import Concern


_INTERVAL = 1.0  # seconds
_LONGEST = 1800.0  # seconds; while no browser is open, the Jupyter server keeps every picture in memory
_WANTED = WANTED | Wanted(GLANCE, ("host_memory", "cpu_percent"))
_MOST = 12  # processes
_HEADS = ("Processes on GPUs", "PID", "User", "GPU", "Memory", "SM", "CPU", "Host memory")
_UP, _CLEAR = "\x1b[{}F", "\x1b[J"


class LiveTable:
    """The live table of one shell; at most one moves at a time. While none does, nothing is sampled and no thread runs."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._feed: KernelFeed | None = None
        self._ignore: Any = None  # the kernel's own handler of interrupts between two cells

    def show(self, source: str | None) -> None:
        """Show the table; in a terminal until Ctrl-C. Raises GpulseError where there is no GPU."""
        self.stop()
        feed, picture = KernelFeed(_WANTED, _INTERVAL, source), Picture()
        kernel = getattr(self._shell, "kernel", None)
        if kernel is None:
            _in_terminal(feed, picture)
            return
        from IPython.display import display

        note = "updated every second until the next cell runs"
        shown: Any = display(picture.output(feed.latest, note), raw=True, display_id=True)

        def take(snapshot: Snapshot) -> None:
            shown.update(picture.output(snapshot, note), raw=True)
            if feed.seconds > _LONGEST:
                feed.stop()

        self._feed = feed
        self._hear_interrupts(kernel)
        feed.run(take, lambda: shown.update(picture.output(None, "stopped"), raw=True))

    def stop(self) -> None:
        """Leave the table as it is now, if one moves."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
            if self._ignore is not None:
                self._shell.kernel.saved_sigint_handler, self._ignore = self._ignore, None

    def _hear_interrupts(self, kernel: Any) -> None:
        """Let an interrupt between two cells stop the table, in place of the handler that ipykernel saves while a cell runs."""
        if hasattr(kernel, "saved_sigint_handler"):
            self._ignore = kernel.saved_sigint_handler
            kernel.saved_sigint_handler = lambda *_: None if self._feed is None else self._feed.stop()


class Picture:
    """What the table shows: what is wrong, the GPUs, and the processes on them, those of this kernel first."""

    def __init__(self) -> None:
        self._live = LiveDiagnosis()
        self._family = ProcessFamily(os.getpid())
        self._last: Snapshot | None = None

    def output(self, snapshot: Snapshot | None, note: str) -> dict[str, str]:
        """Return the picture after one more sample, or the last one again with another note."""
        if snapshot is not None:
            self._live.add(snapshot)
            self._last = snapshot
        last = self._last
        assert last is not None
        head = f"{moment_text(last.time)} · {note}"
        found = worded(concerns(self._live.latest, now=last.time))
        own = self._family.members(last) or frozenset()
        rows = process_rows(last, own)
        return {"text/plain": _text(last, found, rows, head), "text/html": _html(last, found, rows, head)}


def process_rows(snapshot: Snapshot, own: Collection[int]) -> list[Sequence[str]]:
    """Return the cells of each process on all its GPUs: those of this kernel first, then by memory; the last row counts the rest.

    Of the command only the name: a notebook is saved and passed on, and other command lines may hold secrets.
    """
    seen: dict[int, list[tuple[str, Process]]] = {}
    for gpu in snapshot.gpus:
        for process in gpu.all_processes():
            seen.setdefault(int(process.pid or 0), []).append((label(gpu), process))
    ranked = sorted(seen.items(), key=lambda one: (one[0] not in own, -(_sum(one[1], "memory_used") or 0.0), one[0]))
    rows = [_process_row(pid, on, pid in own) for pid, on in ranked[:_MOST]]
    if len(ranked) > _MOST:
        rows.append((f"{len(ranked) - _MOST} more", *("" for _ in _HEADS[1:])))
    return rows


def _process_row(pid: int, on: Sequence[tuple[str, Process]], own: bool) -> Sequence[str]:
    one = on[0][1]
    shares = [share for _, process in on if (share := process.sm_utilization) is not None]
    return (
        clean(one.name or "?") + (" (this kernel)" if own else ""),
        str(pid),
        clean(one.user or ""),
        ranges([name for name, _ in on]),
        value_text(Process.memory_used, _sum(on, "memory_used")),
        value_text(Process.sm_utilization, max(shares, default=None)),
        value_text(Process.cpu_percent, one.cpu_percent),
        value_text(Process.host_memory, one.host_memory),
    )


def _sum(on: Sequence[tuple[str, Process]], key: str) -> float | None:
    known = [value for _, process in on if isinstance(value := process.get(key), (int, float))]
    return sum(known) if known else None


def _text(snapshot: Snapshot, found: Sequence[Concern], rows: Sequence[Sequence[str]], head: str) -> str:
    lines = [head, *(_concern(one) for one in found)]
    lines += [gpu_line(gpu, int(at if gpu.index is None else gpu.index)) for at, gpu in enumerate(snapshot.gpus)]
    return "\n".join([*lines, *aligned([_HEADS, *rows], left=4)] if rows else lines)


def _html(snapshot: Snapshot, found: Sequence[Concern], rows: Sequence[Sequence[str]], head: str) -> str:
    problems = "".join(
        f'<div><span style="color:{SEVERITY_COLORS[one.severity]};font-weight:600">■</span> {escape(_concern(one))}</div>'
        for one in found
    )
    shown = ["".join(cell(escape(text), bold="this kernel" in row[0]) for text in row) for row in rows]
    return (
        f'<div style="opacity:.7;font-variant-numeric:tabular-nums">{escape(head)}</div>{problems}'
        f"{snapshot_html(snapshot)}{table(_HEADS, shown) if rows else ''}"
    )


def _concern(one: Concern) -> str:
    lasted = 0.0 if one.since is None else one.time - one.since
    return f"{place(one)}: {one.text}" + (f" For {duration_text(lasted)}." if lasted >= 1 else "")


def _in_terminal(feed: KernelFeed, picture: Picture) -> None:
    """Draw the table in place until Ctrl-C; without a terminal, once."""
    out, drawn, over = sys.stdout, 0, threading.Event()

    def draw(snapshot: Snapshot) -> None:
        nonlocal drawn
        columns, rows = shutil.get_terminal_size()
        lines = picture.output(snapshot, "Ctrl-C ends this")["text/plain"].splitlines()[: rows - 1]
        out.write((_UP.format(drawn) + _CLEAR if drawn else "") + "".join(f"{fit(line, columns)}\n" for line in lines))
        out.flush()
        drawn = len(lines)

    if not out.isatty():
        out.write(picture.output(feed.latest, "now")["text/plain"] + "\n")
        feed.close()
        return
    draw(feed.latest)
    feed.run(draw, over.set)
    try:
        over.wait()
    except KeyboardInterrupt:
        pass
    finally:
        feed.close()


_PATIENCE = 2.0  # seconds for a thread to end


class KernelFeed:
    """Samples every `interval` seconds until it is closed. `latest` is the last sample; the first is taken at once.

    Raises GpulseError where there is no GPU.
    """

    def __init__(self, wanted: Wanted, interval: float, source: str | None, gpus: Sequence[str] | None = None) -> None:
        self._sampler = Sampler(make_source(source or default_source()), wanted).open()
        try:
            if gpus is not None:
                self._sampler.choose(gpus)
            self._sampler.begin(rates=True)
            self.latest: Snapshot = self._sampler.complete()
        except BaseException:  # also an interrupted cell must not leave the driver open
            self._sampler.close()
            raise
        self.began = self._sampler.clock.monotonic()
        self._bus = Bus(self._sampler, interval)
        self._thread: threading.Thread | None = None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self._sampler.clock.monotonic() - self.began

    def run(self, take: Callable[[Snapshot], None], ended: Callable[[], None] | None = None) -> None:
        """Start to call `take` with each sample, and `ended` after the last one, both in a thread."""
        subscription = self._bus.subscribe()

        def pump() -> None:
            try:
                for snapshot in subscription:
                    self.latest = snapshot
                    take(snapshot)
            finally:
                self._bus.close()
                self._sampler.close()
                if ended is not None:
                    ended()

        self._thread = threading.Thread(target=pump, name="gpulse-feed", daemon=True)
        self._thread.start()
        self._bus.start()

    def stop(self) -> None:
        """Take no more samples; returns at once."""
        self._bus.close()

    def close(self) -> None:
        """Stop, and wait until the last sample was passed on."""
        self.stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)
