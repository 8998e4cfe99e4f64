"""The pictures of the README: the demo's glance and live screen as SVG, the same at every run.

python -m tools.picture
"""

from __future__ import annotations

import os
import re
import sys
import time
from html import escape
from itertools import groupby
from pathlib import Path

from gpulse.present.text import width
from gpulse.present.theme import Theme
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.screen.grid import Grid
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.status import GLANCE
from gpulse.surfaces.status.view import glance
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State, wanted

ROOT = Path(__file__).parent.parent
COLUMNS = 124
CELL, LINE, PAD = 7.8, 18, 16
NO_BREAK = "\u00a0"  # a picture's ordinary spaces are joined into one
_SGR = re.compile(r"\x1b\[([0-9;]*)m")


def screen(columns: int) -> list[str]:
    """Return the status view of the demo, in color."""
    clock = ManualClock(1_794_733_267.0)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), GLANCE, clock=clock).open()
    clock.sleep(41.0)
    os.environ["TZ"] = "UTC"
    time.tzset()
    return glance(sampler.read(), Theme(256), columns)


def live(columns: int, rows: int, frames: int) -> list[list[str]]:
    """Return the live screen of the demo, in color, in consecutive seconds."""
    clock = ManualClock(1_794_733_267.0)
    settings = ScreenSettings()
    state = State(settings, History(settings.charts), Theme(256))
    state.columns, state.rows = columns, rows
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), wanted(state), clock=clock).open()
    state.selected = 40562
    shown = []
    for second in range(48 + frames - 1):
        clock.sleep(1.0)
        state.live = state.shown = sampler.read()
        state.history.add(state.live)
        if second >= 47:
            state.now = clock.now()
            shown.append(_colored(paint(state), state.theme))
    return shown


def _colored(grid: Grid, theme: Theme) -> list[str]:
    return [
        "".join(
            theme.paint("".join(char for char, _ in run), style)
            for style, run in groupby(zip(chars, styles, strict=True), key=lambda cell: cell[1])
        )
        for chars, styles in zip(grid.chars, grid.styles, strict=True)
    ]


def colour(code: str) -> tuple[str, bool]:
    """Return the color and weight of an SGR code, as far as the themes use them."""
    words = code.split(";")
    bold = words[0] == "1"
    if "38" in words:
        return _palette(int(words[words.index("38") + 2])), bold
    return "#e4e4e4", bold


def _palette(number: int) -> str:
    """Return one of the 256 colors of a terminal."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    levels = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(number - 16, 36)
    return "#" + "".join(f"{levels[level]:02x}" for level in (red, *divmod(rest, 6)))


def svg(frames: list[list[str]], columns: int) -> str:
    """Return screens of colored text as an SVG picture that shows each for a second; lines that stay are drawn once."""
    wide, high = columns * CELL + 2 * PAD, len(frames[0]) * LINE + 2 * PAD
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" font-size="13"']
    out.append(
        ' font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" xml:space="preserve">'
    )
    out.append(f'<rect width="{wide:.0f}" height="{high}" rx="10" fill="#16181d"/>')
    if len(frames) > 1:
        out.append(_STYLE.format(seconds=len(frames), shown=100 / len(frames), gone=100 / len(frames) + 0.01))
    for row, versions in enumerate(zip(*frames, strict=True)):
        if len(set(versions)) == 1:
            out += _line(versions[0], row)
        else:
            for second, line in enumerate(versions):
                out += [f'<g style="animation-delay:{second - len(frames)}s">', *_line(line, row), "</g>"]
    return "\n".join([*out, "</svg>", ""])


# Visitors who asked their system for less motion see the first screen.
_STYLE = """<style>
@keyframes turn {{ 0%,{shown:.3f}% {{ visibility:visible }} {gone:.3f}%,100% {{ visibility:hidden }} }}
g {{ animation:turn {seconds}s infinite }}
@media (prefers-reduced-motion) {{ g {{ animation-play-state:paused }} }}
</style>"""


def _line(line: str, row: int) -> list[str]:
    out: list[str] = []
    at, fill, bold = 0, "#e4e4e4", False
    for number, piece in enumerate(_SGR.split(line)):
        if number % 2:
            fill, bold = colour(piece) if piece != "0" else ("#e4e4e4", False)
        elif piece:
            out += _text(piece, at, PAD + row * LINE + 13, fill, bold)
            at += width(piece)
    return out


def _text(piece: str, at: int, y: int, fill: str, bold: bool) -> list[str]:
    """Return a piece as SVG, placed by its first letter: leading spaces would be dropped and the rest stretched."""
    words = piece.strip()
    if not words:
        return []
    x = PAD + (at + len(piece) - len(piece.lstrip())) * CELL
    weight = ' font-weight="bold"' if bold else ""
    length = f'textLength="{width(words) * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
    return [f'<text x="{x:.1f}" y="{y}" fill="{fill}"{weight} {length}>{escape(words).replace(" ", NO_BREAK)}</text>']


def main() -> int:
    """Write docs/glance.svg and docs/top.svg."""
    (ROOT / "docs/glance.svg").write_text(svg([screen(COLUMNS)], COLUMNS))
    (ROOT / "docs/top.svg").write_text(svg(live(116, 30, 6), 116))
    return 0


if __name__ == "__main__":
    sys.exit(main())
