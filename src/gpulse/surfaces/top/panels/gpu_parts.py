"""What cards and lines of GPUs share: bars, marks, who uses a GPU, and what limits it."""

from __future__ import annotations

from ....model.catalog import Gpu
from ....present.cells import MISSING
from ....present.verdicts import QUIET, short
from ....present.verdicts import style as verdict_style
from ....present.words import narrow, notes_and_owners, remarks
from ....screen.grid import draw
from ....units import duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....present.words import Note
    from ....screen.grid import Grid
    from ..area import Area
    from ..state import State

ACTIVITY = (("SM", Gpu.sm_active), ("tensor", Gpu.tensor_active), ("DRAM", Gpu.dram_active))
_STALE = 3  # intervals after which what is on screen is no longer what is
_REMARKED = frozenset(
    {"thermal_throttled", "hw_slowdown", "lost", "xid", "memory_errors", "orphaned_memory"}
)  # shown as remarks of the moment


def stale(state: State) -> str:
    """Return how old the newest sample is, in words, when it is older than it should be; else nothing."""
    if state.shown is None or state.back or state.paused:
        return ""
    age = state.now - state.shown.time
    return f"{duration_text(age)} old" if age > _STALE * state.settings.interval else ""


def notes(state: State, gpu: Gpu, clock: bool = True) -> list[Note]:
    """Return what the numbers of a GPU do not say: remarks of the moment, what limits it, video engines in use."""
    return [*remarks(gpu, clock=clock, decimal=state.settings.decimal), *limit(state, gpu), *_engines(gpu)]


def limit(state: State, gpu: Gpu) -> list[Note]:
    """Return in a few words what limits a GPU or MIG instance; nothing where that is not known, or where a remark says it already."""
    verdict = None if state.back else next((one for one in state.diagnosis if one.uuid == gpu.uuid), None)
    if verdict is None or verdict.key in QUIET or verdict.key in _REMARKED:
        return []
    return [(short(verdict), verdict_style(verdict), narrow(short(verdict)))]


def _engines(gpu: Gpu) -> list[Note]:
    """Return the use of the video engines, only where they are used: most GPUs here never touch them."""
    shares = (("enc", gpu.encoder_utilization), ("dec", gpu.decoder_utilization), ("video", gpu.video_utilization))
    return [(text := f"{name} {share:.0f}%", "busy", text) for name, share in shares if share]


def who(grid: Grid, row: int, column: int, room: int, state: State, notes: Sequence[Note], gpu: Gpu) -> None:
    """Write notes and owners, as many as fit into `room` cells."""
    for text, style in notes_and_owners(gpu, notes, room, state.theme, state.settings.decimal):
        column = grid.put(row, column, text, style)


def mark(gpu: Gpu, state: State) -> str:
    """Return the style of a GPU's number: the one under the cursor, whose charts are shown, stands out."""
    return "selected" if state.chart_gpu is not None and gpu.index == state.chart_gpu else "accent"


def fade(grid: Grid, area: Area) -> None:
    """Take the colours out of an area: what it shows is no longer so."""
    for row in range(area.row, area.end):
        grid.restyle(row, area.column, area.columns, "faint")


def corner(grid: Grid, area: Area, text: str) -> None:
    """Write at the right end of the first row; a word that stands there goes as a whole."""
    start = area.column + max(0, area.columns - len(text) - 1)
    while start > area.column and grid.chars[area.row][start] != " ":
        start -= 1
    end = area.column + area.columns
    draw(grid, area.row, start, f"{text:>{end - start}}", "warn")


def gauge(grid: Grid, row: int, column: int, state: State, share: float | None, cells: int, style: str) -> int:
    """Draw a bar and return the column after it."""
    cells = max(0, cells)
    filled, empty = state.theme.bar(share, cells)
    end = draw(grid, row, column, filled, style)
    shades = state.theme.shaded(style, cells) if filled else None
    if shades is not None and 0 <= row < grid.rows and 0 <= column < end:
        grid.styles[row][column:end] = shades[: end - column]
    return draw(grid, row, end, empty, "track")


def fraction(percent: float | None) -> float | None:
    """Return a percentage as a fraction."""
    return None if percent is None else percent / 100


def percent(share: float | None) -> str:
    """Return a percentage, short: 97%."""
    return MISSING if share is None else f"{share:.0f}%"
