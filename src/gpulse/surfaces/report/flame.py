"""The stacks of a run as a flame graph, and as text for other programs that draw one."""

from __future__ import annotations

from html import escape

from ...analysis.own_lines import flame_of, frame_name
from ...present.cells import seconds_text
from ...present.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...analysis.own_lines import FlameNode
    from ...model.stacks import TimedStack

_ROW = 18  # pixels
_WIDTH = 1000
_THINNEST = 1.0  # pixels below which a box is left out
_LETTER = 6.6  # pixels


def folded(stacks: Sequence[TimedStack]) -> str:
    """Return one line per stack with the milliseconds in which the GPU waited, as flamegraph.pl and inferno read them."""
    rows: dict[str, float] = {}
    for stack, waited, _ in stacks:
        if name := ";".join(frame_name(frame).replace(";", ",") for frame in stack):
            rows[name] = rows.get(name, 0.0) + waited
    return "".join(f"{name} {1000 * waited:.0f}\n" for name, waited in rows.items() if waited >= 0.0005)


def flame_svg(stacks: Sequence[TimedStack]) -> str:
    """Return a flame graph of the GPU time that was lost, the outermost frames on top; empty where nothing was."""
    root = flame_of(stacks)
    if root.seconds <= 0:
        return ""
    boxes: list[str] = []
    depth = _draw(root, 0.0, 0, _WIDTH / root.seconds, boxes)
    height = _ROW * (depth + 1)
    label = f"Where the GPU waited, {seconds_text(root.seconds)} in all, by stack"
    return (
        f'<svg class="flame" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}" '
        f'preserveAspectRatio="xMinYMin meet">{"".join(boxes)}</svg>'
    )


def _draw(node: FlameNode, x: float, depth: int, scale: float, boxes: list[str]) -> int:
    width = node.seconds * scale
    name = clean(node.name)
    room = int((width - 4) / _LETTER)
    shown = name if len(name) <= room else f"{name[: room - 1]}…" if room > 3 else ""
    text = f'<text x="{x + 3:.1f}" y="{depth * _ROW + 13}">{escape(shown)}</text>' if shown else ""
    boxes.append(
        f'<g class="{"own" if node.own else "library"}"><title>{escape(name)}: {seconds_text(node.seconds)}</title>'
        f'<rect x="{x:.1f}" y="{depth * _ROW}" width="{max(0.5, width - 0.5):.1f}" height="{_ROW - 1}"/>{text}</g>'
    )
    deepest = depth
    for inner in node.largest():
        if inner.seconds * scale >= _THINNEST:
            deepest = max(deepest, _draw(inner, x, depth + 1, scale, boxes))
        x += inner.seconds * scale
    return deepest
