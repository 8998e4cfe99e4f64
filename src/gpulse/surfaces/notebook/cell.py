"""The measurement of a notebook cell: its samples as a small chart, what limited it, and the lines of code at which the GPU waited."""

from __future__ import annotations

from ...analysis.diagnosis.judge import judge
from ...analysis.diagnosis.window import WindowBuilder
from ...analysis.own_lines import code_lines
from ...analysis.own_use import own_memory, own_sm, own_verdicts
from ...monitor.measurement import CallTally
from ...monitor.quiet import QUIET_MONITOR
from ...present.cells import energy_text, seconds_text
from ...present.code import advised, code_advice, code_sentence
from ...present.figures import advice_text
from ...present.plot import mini
from ...present.program import is_shared, others_lines, own_lines
from ...present.verdicts import QUIET, advice, line, times
from ...units import size_text
from .chart import CellChart, CellLine, ChartImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from ...analysis.summary import GpuSummary
    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot
    from ...model.stacks import CodeLine, Frame, Frames
    from ...model.verdict import Budget, Diagnosis
    from ...monitor.measurement import Measurement

_MOST = 2000  # samples; for longer cells every second one is dropped, repeatedly
_WIDE = 60  # characters of a curve in text
_FEWEST = 3  # samples below which no chart is drawn
_JUDGED = 5.0  # seconds a cell must last to be judged


class CellPoint:
    """One GPU at one sample of a cell: what it did, and what the kernel's own processes did."""

    __slots__ = ("memory", "own_memory", "own_sm", "sm_active", "utilization")

    def __init__(self, gpu: Gpu, own: Collection[int] | None) -> None:
        self.utilization = gpu.utilization
        self.sm_active = gpu.sm_active
        self.memory = gpu.memory_used
        self.own_memory = own_memory(gpu, own)
        self.own_sm = own_sm(gpu, own)


class CellTally(CallTally):
    """The tally of a cell, which also keeps its samples."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[float, dict[str, CellPoint]]] = []
        self._window = WindowBuilder()
        self._stride = 1
        self._seen = 0

    def added(self, snapshot: Snapshot, program: Process | None, own: Collection[int] | None, within: bool) -> None:
        super().added(snapshot, program, own, within)
        if within:
            self._window.add(snapshot, program)
        self._seen += 1
        if not within or self._seen % self._stride:
            return
        self.taken.append((snapshot.time, {gpu.uuid or "": CellPoint(gpu, own) for gpu in snapshot.gpus}))
        if len(self.taken) > _MOST:
            self.taken = self.taken[::2]
            self._stride *= 2

    def diagnosis(self, gpus: Sequence[GpuSummary]) -> Diagnosis:
        """Return what limited each GPU that the kernel used."""
        return own_verdicts(judge(self._window), {gpu.uuid: gpu.own for gpu in gpus})

    def chart(self, gpus: Sequence[GpuSummary]) -> ChartImage | None:
        """Return activity and memory of GPUs, of the kernel's own processes where others compute; None if it would be empty."""
        if len(self.taken) < _FEWEST or not gpus:
            return None
        start = self.taken[0][0]
        times = [time - start for time, _ in self.taken]
        shared = any(map(is_shared, gpus))

        def lines(name: str) -> list[CellLine]:
            return [
                CellLine(
                    f"GPU {gpu.index}",
                    gpu.index or 0,
                    [getattr(at.get(gpu.uuid or ""), name, None) for _, at in self.taken],
                )
                for gpu in gpus
            ]

        memory = lines("memory" if gpus[0].own.used is None else "own_memory")
        total = max(gpu.memory_total or 0.0 for gpu in gpus)
        total = (
            total or max((value for line in memory for value in line.values if value is not None), default=0.0) or 1.0
        )
        if shared:
            busy = CellChart("SM share of this program", lines("own_sm"), 100.0, "100 %")
        else:
            areas = lines("sm_active")
            title = "Utilization, SM active below" if 0 < len(areas) <= 2 else "Utilization"
            busy = CellChart(title, lines("utilization"), 100.0, "100 %", areas)
        return ChartImage(times, [busy, CellChart("Memory used", memory, total, size_text(total))])

    def chart_text(self, gpus: Sequence[GpuSummary]) -> str:
        """Return the chart as lines of text, for notebooks that are not trusted, whose images are not shown."""
        shown = []
        for gpu in gpus:
            busy, title = ("own_sm", "SM share") if is_shared(gpu) else ("utilization", "utilization")
            memory = "memory" if gpu.own.used is None else "own_memory"
            shown.append(f"GPU {gpu.index} {title} {self._curve(gpu, busy, 100.0)}")
            shown.append(f"GPU {gpu.index} memory {self._curve(gpu, memory, gpu.memory_total or 0.0)}")
        return "\n".join(shown)

    def _curve(self, gpu: GpuSummary, name: str, top: float) -> str:
        """Return values of a GPU over time as one line of blocks."""
        values = [getattr(at.get(gpu.uuid or ""), name, None) for _, at in self.taken]
        parts = [values[len(values) * at // _WIDE : len(values) * (at + 1) // _WIDE] for at in range(_WIDE)]
        known = [[value for value in part if value is not None] for part in parts if part]
        return "".join(mini(max(part) / top if part and top else None) for part in known)


def cell_facts(runs: Sequence[Measurement]) -> list[tuple[str, str]]:
    """Return what a cell took as title and text: of one run everything, of several the median and the range of each figure."""
    if len(runs) == 1:
        return runs[0].facts()
    energy = [run.energy for run in runs if run.energy is not None]
    peaks = [run.memory_peak for run in runs if run.memory_peak is not None]
    facts = [("Runs", f"{len(runs)}"), ("Time", _spread([run.seconds for run in runs], seconds_text))]
    facts.append(("CPU time", _spread([run.cpu_seconds for run in runs], seconds_text)))
    facts += [("GPU", "not used")] if all(run.used_gpu is False for run in runs) else []
    facts += [("Peak GPU memory", _spread(peaks, size_text))] if peaks else []
    facts += [("Energy of a run", _spread(energy, energy_text))] if energy else []
    return facts + ([("Result", runs[-1].result)] if runs[-1].failed else [])


def cell_text(runs: Sequence[Measurement]) -> str:
    """Return what a cell took in one line of text."""
    return " · ".join([runs[0].name, *(f"{_inside(title)} {text}" for title, text in cell_facts(runs))])


def cell_notes(
    runs: Sequence[Measurement], code: Sequence[CodeLine] = ()
) -> tuple[list[str], list[tuple[str, Budget]]]:
    """Return what else is to be said of a cell, one line each: what limited its last run, if that was long enough, at which lines of its
    code the GPU waited, and who else was on the GPUs.

    The second part is where the time of its GPUs went.
    """
    last = runs[-1]
    tally, gpus = last.tally, last.visible_gpus
    if last.used_gpu is False:
        return others_lines(gpus), []
    if not isinstance(tally, CellTally) or last.elapsed < _JUDGED:
        return own_lines(gpus), []
    found = tally.diagnosis(gpus)
    lines = code_notes(code, sum(run.elapsed for run in runs))
    hidden = advice_text("profile_host") if lines else None  # not to find the lines of code that are told below it
    first = ((one, advice(one)[:1]) for one in found if one.key not in QUIET)
    told = [" ".join([line(one), *(text for text in texts if text != hidden)]) for one, texts in first]
    return [*told, *lines, *own_lines(gpus)], times(found)


def code_notes(code: Sequence[CodeLine], seconds: float) -> list[str]:
    """Return at which lines of code the GPU waited within `seconds`, and what to change there; nothing if it hardly did."""
    sentence = code_sentence(code, seconds)
    return [f"{sentence} {code_advice(code[0])}", *advised(code)[1:]] if sentence else []


def _spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    """Return the median of some values, and their range unless all are the same."""
    from statistics import median

    low, high = text(min(values)), text(max(values))
    return text(median(values)) + (f" ({low} to {high})" if low != high else "")


def _inside(title: str) -> str:
    """Return a title as it is written inside a sentence: CPU time, peak GPU memory."""
    return title if title[1:2].isupper() else f"{title[0].lower()}{title[1:]}"


class CellCode:
    """What the kernel executes from now on, while one cell runs; `copies` of its text if it is repeated."""

    def __init__(self, copies: int = 1) -> None:
        monitor = QUIET_MONITOR.sampling()
        self._ledger = None if monitor is None else monitor.ledger
        self._copies = copies
        self._before = self._stacks()

    def lines(self, compiler: Any, result: Any) -> list[CodeLine]:
        """Return the lines so far, the longest wait first; of functions of other cells, too, as far as this cell called them."""
        number = getattr(result, "execution_count", None)
        if number is None:
            return []
        height = len((getattr(result.info, "transformed_cell", None) or "").splitlines()) // self._copies
        cell, found = f"In [{number}]", []
        for frames, (waited, computed) in self._stacks().items():
            named = tuple(frame._replace(file=_name(frame.file, compiler)) for frame in frames)
            if any(frame.file == cell for frame in named):
                known = self._before.get(frames, (0.0, 0.0))
                once = tuple(_once(frame, height) if height and frame.file == cell else frame for frame in named)
                found.append((once, max(0.0, waited - known[0]), max(0.0, computed - known[1])))
        return [*code_lines(found)]

    def _stacks(self) -> dict[Frames, tuple[float, float]]:
        code = None if self._ledger is None else self._ledger.code
        return {} if code is None else {frames: (waited, computed) for frames, waited, computed in code.stacks()}


def named_lines(lines: Iterable[CodeLine], compiler: Any) -> list[CodeLine]:
    """Return lines of code with cells in place of the files that they were compiled as."""
    return [line._replace(file=_name(line.file, compiler)) for line in lines]


def _name(file: str, compiler: Any) -> str:
    """Return "In [3]" for the file that the shell compiled that cell as, other files unchanged."""
    known = compiler.format_code_name(file)
    return file if known is None else known[1].replace("In[", "In [")


def _once(frame: Frame, height: int) -> Frame:
    """Return a frame of a repeated cell at its line of the text that is written once."""
    return frame._replace(line=(frame.line - 1) % height + 1)
