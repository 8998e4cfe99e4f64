"""The difference between two screens as terminal output, as short as possible; empty if nothing changed."""

from __future__ import annotations

from .grid import WIDE_REST, Grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..present.theme import Theme

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"  # drawn atomically if the terminal supports synchronized updates
_NEAR = 4  # unchanged cells between two changes that are cheaper to rewrite than to skip


def difference(before: Grid | None, after: Grid, theme: Theme) -> str:
    """Return the text that turns one screen into the other; `before` None or of another size clears first."""
    fresh = before is None or (before.columns, before.rows) != (after.columns, after.rows)
    out: list[str] = ["\x1b[0m\x1b[2J"] if fresh else []
    old = Grid(after.columns, after.rows) if before is None or fresh else before
    style = ""
    for row in range(after.rows):
        chars, styles = after.chars[row], after.styles[row]
        if chars == old.chars[row] and styles == old.styles[row]:
            continue
        for start, end in _runs(old.chars[row], old.styles[row], chars, styles):
            out.append(f"\x1b[{row + 1};{start + 1}H")
            at = start
            while at < end:
                run = at + 1
                while run < end and styles[run] == styles[at]:
                    run += 1
                if styles[at] != style:
                    out.append(theme.switch(styles[at]))
                    style = styles[at]
                out.append("".join(chars[at:run]))
                at = run
    if style:
        out.append(theme.switch(""))
    return f"{_BEGIN}{''.join(out)}{_END}" if out else ""


def _runs(old_chars: list[str], old_styles: list[str], chars: list[str], styles: list[str]) -> list[tuple[int, int]]:
    """Return the changed spans of a row: near ones are joined, and none splits a wide character."""
    cells = enumerate(zip(chars, old_chars, styles, old_styles, strict=True))
    changed = [at for at, (char, old_char, style, old_style) in cells if char != old_char or style != old_style]
    runs: list[list[int]] = []
    for at in changed:
        if runs and at - runs[-1][1] <= _NEAR:
            runs[-1][1] = at + 1
        else:
            runs.append([at, at + 1])
    for run in runs:
        while run[0] > 0 and (chars[run[0]] == WIDE_REST or old_chars[run[0]] == WIDE_REST):
            run[0] -= 1
        while run[1] < len(chars) and (chars[run[1]] == WIDE_REST or old_chars[run[1]] == WIDE_REST):
            run[1] += 1
    return [(start, end) for start, end in runs]
