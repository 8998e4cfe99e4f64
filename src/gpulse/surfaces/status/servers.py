"""Model servers below the GPUs, one line each, led by the numbers of their GPUs."""

from __future__ import annotations

from ...present.line import Line
from ...present.serving import place_text, serving_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme


def server_lines(snapshot: Snapshot, theme: Theme, columns: int) -> list[Line]:
    """Return a line for each server; what does not fit is left out piece by piece, the least important first."""
    places = [place_text(server, snapshot.gpus) for server in snapshot.serving]
    widest = max(len(place) for place in places)
    dot = theme.glyph(" · ", " | ")
    lines: list[Line] = [Line().add("SERVING", "label")]
    for server, place in zip(snapshot.serving, places, strict=True):
        line = Line().add(place, "accent", widest).add(" ")
        for at, (text, style) in enumerate(serving_pieces(server)):
            if at and line.width + len(dot) + len(text) > columns:
                break
            line.add(dot if at else "", "label").add(text, style)
        lines.append(line)
    return lines
