"""A document as one HTML page that asks for nothing else: style, script and data inside."""

from __future__ import annotations

import json
import pkgutil
from html import escape

from ..._version import __version__
from ...present.events import event_style, event_text
from ...present.text import Untrusted, clean
from .document import Charts, Lines, Loud, TableBlock, Tiles, plain
from .wording import mark_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .document import Block, Cell, Document
    from .run import Run

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_MOST_NOTES = 500  # marks, phases and events in a chart; more could not be told apart


def to_html(document: Document) -> str:
    """Return the page."""
    body = "\n".join(_block(block) for block in document.blocks)
    data = [_data(block) for block in document.blocks if isinstance(block, Charts)]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="gpulse {__version__}">
<title>{_text(plain(document.title))} – gpulse</title>
<link rel="icon" href="data:,">
<style>
{_asset("page.css")}</style>
</head>
<body>
<header>
<h1>{_inline(document.title)}</h1>
<p>{_inline(document.subtitle).replace(" | ", "<br>")}</p>
</header>
<main>
{body}
</main>
<footer><p>Made by gpulse {__version__}. Times are UTC; bands around lines reach from the least to the most.</p></footer>
<script type="application/json" id="data">{_embedded(data[0] if data else {})}</script>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _block(block: Block) -> str:
    name = plain(block.title).lower().replace(" ", "-")
    inner = (
        _tiles(block)
        if isinstance(block, Tiles)
        else _lines(block)
        if isinstance(block, Lines)
        else _table(block)
        if isinstance(block, TableBlock)
        else _charts(block)
    )
    return f'<section id="{_text(name)}">\n<h2>{_inline(block.title)}</h2>\n{inner}\n</section>'


def _tiles(block: Tiles) -> str:
    items = "\n".join(
        f"<div><dt>{_inline(name)}</dt><dd>{_inline(value)}</dd><dd>{_inline(note)}</dd></div>"
        for name, value, note in block.tiles
    )
    return f'<dl class="tiles">\n{items}\n</dl>'


def _lines(block: Lines) -> str:
    return "<ul>\n" + "\n".join(f"<li>{_inline(line)}</li>" for line in block.lines) + "\n</ul>"


def _table(block: TableBlock) -> str:
    def cell(text: Cell, at: int) -> str:
        right = ' class="number"' if block.numeric[at] else ""
        kind = 'th scope="row"' if at == 0 else "td"
        return f"<{kind}{right}>{_inline(text)}</{kind[:2]}>"

    head = "".join(
        f'<th scope="col"{" class=number" if block.numeric[at] else ""}>{_inline(text)}</th>'
        for at, text in enumerate(block.header)
    )
    rows = "\n".join(
        f"<tr{_class(block.styles.get(number))}>{''.join(cell(text, at) for at, text in enumerate(row))}</tr>"
        for number, row in enumerate(block.rows)
    )
    caption = f"<caption>{_text(block.caption or block.title)}</caption>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(block.title)}">\n'
        f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>\n</div>"
    )


def _charts(block: Charts) -> str:
    figures = "\n".join(
        f'<figure class="chart" data-chart="{at}"><figcaption title="{_text(chart.help)}">{_text(chart.title)}</figcaption>'
        f'<ul class="readout" aria-hidden="true"></ul>'
        f'<div class="plot" tabindex="0" role="img" aria-label="{_text(chart.text())}"><canvas></canvas></div></figure>'
        for at, chart in enumerate(block.charts)
    )
    strip = (
        '<figure class="strip"><figcaption>How busy each GPU was</figcaption>'
        '<div class="plot" tabindex="0" role="img" aria-label="One row for each GPU, the brighter the busier; the chart below'
        ' has the figures."><canvas></canvas></div></figure>'
        if block.strips
        else ""
    )
    return (
        "<noscript><p>The charts need JavaScript; everything else on this page does not.</p></noscript>\n"
        '<div class="toolbar"><div class="switches" role="group" aria-label="Lines shown"></div>'
        '<output class="moment" aria-live="polite"></output><button type="button" class="whole" hidden>Show all</button></div>\n'
        f'{strip}\n<div class="charts">\n{figures}\n</div>'
    )


def _data(block: Charts) -> dict[str, Any]:
    first = block.runs[0]
    alone = len(block.runs) == 1
    return {
        "runs": [_run(run) for run in block.runs],
        "charts": [chart.to_plain([len(run.timeline.at) for run in block.runs]) for chart in block.charts],
        "strips": [{"name": strip.name, "line": strip.line, "spans": strip.spans} for strip in block.strips],
        "phases": [
            [round(start - first.start, 2), round(end - first.start, 2), clean(name)]
            for start, end, name in first.bands[:_MOST_NOTES]
        ]
        if alone
        else [],
        "notes": _notes(first) if alone else [],
    }


def _run(run: Run) -> dict[str, Any]:
    at = run.timeline.at
    return {
        "start": run.start,
        "seconds": run.end - run.start,
        "width": run.timeline.width,
        "at": [place - before for place, before in zip(at, (0, *at), strict=False)],
        "breaks": sorted(run.timeline.breaks),
    }


def _notes(run: Run) -> list[tuple[float, str, str]]:
    """Return what is said of moments: events with their severity, and marks."""
    found: list[tuple[float, str, str]] = [
        (round(event.time - run.start, 2), event_style(event), event_text(event))
        for event in run.events
        if event.severity != "info"
    ]
    found += [(round(mark.time - run.start, 2), "mark", clean(plain(mark_text(mark)))) for mark in run.marks]
    return sorted(found, key=lambda note: note[0])[:_MOST_NOTES]


def _embedded(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _inline(cell: Cell) -> str:
    return "".join(_part(part) for part in ((cell,) if isinstance(cell, str) else cell))


def _part(text: str) -> str:
    if isinstance(text, Loud):
        return f"<strong>{_text(text)}</strong>"
    return f'<span class="raw">{_text(text)}</span>' if isinstance(text, Untrusted) else _text(text)


def _text(text: str) -> str:
    return escape(clean(text), quote=True)


def _class(style: str | None) -> str:
    return f' class="{style}"' if style else ""


def _asset(name: str) -> str:
    return (pkgutil.get_data(__package__, name) or b"").decode("utf-8")
