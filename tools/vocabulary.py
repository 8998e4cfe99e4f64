"""The words of the web pages, written as TypeScript from those of present, so that there is one set of words."""

from __future__ import annotations

import json

from gpulse.model.fleet import HOST_STATES
from gpulse.present import cells, concerns, words
from gpulse.present.html import LINE_COLORS


def vocabulary(made: str) -> str:
    """Return web/src/vocabulary.ts."""
    tables = {
        "GAPS": ("why a value is missing", words.PAGE_GAPS),
        "SEVERITIES": ("how bad a problem is", words.SEVERITIES),
        "HOST_STATES": (
            "of machines, by the letter in the stream",
            {one[0]: concerns.STATES[one][0] for one in HOST_STATES},
        ),
    }
    lines = [f"// Words of gpulse.present for the pages; {made}.", ""]
    for name, (about, table) in tables.items():
        rows = [f"  {key}: {json.dumps(text, ensure_ascii=False)}," for key, text in table.items()]
        lines += [
            f"/** {about[0].upper()}{about[1:]}. */",
            f"export const {name}: Record<string, string> = {{",
            *rows,
            "};",
        ]
    lines.append(
        f"/** Bytes below which memory that nobody owns is not told. */\nexport const UNATTRIBUTED = {words.UNATTRIBUTED};"
    )
    lines.append(f"/** °C below its limit at which a GPU counts as hot. */\nexport const HEADROOM = {cells.HEADROOM};")
    for ground, colors in LINE_COLORS.items():
        lines.append(
            f"/** Colors of lines on {ground} ground. */\nexport const {ground.upper()} = {json.dumps(colors)};"
        )
    lines.append(f"/** Seconds of GPU time from which a loss is told. */\nexport const WORTH = {concerns.WORTH:g};")
    return "\n".join([*lines, ""])
