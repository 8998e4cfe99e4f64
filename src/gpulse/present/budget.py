"""Time budgets in words: the parts of a GPU's time, as a bar, a line and a sentence."""

from __future__ import annotations

from .line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.budget import Budget
    from .theme import Theme

# The name of each part, its style, and the cell of a bar without colors.
TITLES: dict[str, tuple[str, str, str]] = {
    "tensor": ("tensor cores", "chart1", "#"),
    "compute": ("other computing", "busy", "="),
    "memory": ("memory-bound", "memory", "m"),
    "copy": ("copying", "chart4", "c"),
    "launch": ("small kernels and launches", "warn", "l"),
    "throttled": ("lost to throttling", "critical", "!"),
    "workers": ("waiting for workers", "warn", "w"),
    "thread": ("waiting for one thread", "warn", "t"),
    "storage": ("waiting for storage", "warn", "s"),
    "network": ("waiting for the network", "warn", "n"),
    "outside": ("waiting for something outside", "warn", "o"),
    "checkpoint": ("checkpoints", "warn", "k"),
    "unexplained": ("waiting, cause not recorded", "label", "?"),
    "starting": ("starting up", "chart3", "^"),
    "idle": ("idle", "track", "."),
    "unread": ("not readable", "label", "x"),
}
_SHOWN = 0.005  # of the time below which a part is not named
_LETTERS = 24  # of a bar in plain text


def part_text(budget: Budget, part: str) -> str:
    """Return a part with its share: "waiting for workers ~28 %"; the sign marks an estimate."""
    about = "~" if part in budget.estimated else ""
    return f"{TITLES[part][0]} {about}{100 * budget.shares[part]:.0f} %"


def budget_text(budget: Budget) -> str:
    """Return the budget as text, the largest part first: "tensor cores 47 %, waiting for workers ~28 %, …"."""
    return ", ".join(part_text(budget, part) for part in _named(budget))


def budget_row(budget: Budget) -> list[dict[str, object]]:
    """Return the parts for a page, in the order of a bar: key, title, style, share and whether it is an estimate."""
    return [
        {
            "part": part,
            "title": TITLES[part][0],
            "style": TITLES[part][1],
            "share": round(share, 4),
            "estimated": part in budget.estimated,
        }
        for part, share in budget.shares.items()
        if share >= _SHOWN
    ]


def budget_bar(budget: Budget, theme: Theme, cells: int) -> Line:
    """Return one bar of all parts, `cells` wide."""
    line = Line()
    for part, count in _cells(budget, cells):
        _, style, letter = TITLES[part]
        block = theme.glyph("·" if part == "idle" else "█", letter) if theme.colors else letter
        line.add(block * count, style)
    return line


def budget_letters(budget: Budget) -> tuple[str, str]:
    """Return a bar of letters, and its parts with the letter of each, for text without colors."""
    bar = "".join(TITLES[part][2] * count for part, count in _cells(budget, _LETTERS))
    return bar, " · ".join(f"{TITLES[part][2]} {part_text(budget, part)}" for part in _named(budget))


def _cells(budget: Budget, cells: int) -> Iterator[tuple[str, int]]:
    """Yield how many cells of a bar each part takes."""
    edge = drawn = 0.0
    for part, share in budget.shares.items():
        edge += share * cells
        yield part, round(edge) - round(drawn)
        drawn = edge


def budget_legend(budget: Budget, columns: int) -> list[Line]:
    """Return the parts with their shares in as many lines as they need, each in the style of the bar."""
    lines = [Line()]
    for part in _named(budget):
        text = part_text(budget, part)
        gap = "" if not lines[-1].pieces else "   "
        if lines[-1].width + len(gap) + len(text) + 2 > columns and lines[-1].pieces:
            lines.append(Line())
            gap = ""
        _, style, letter = TITLES[part]
        lines[-1].add(gap).add(f"{letter} ", style).add(text)
    return lines


def _named(budget: Budget) -> list[str]:
    shown = [part for part, share in budget.shares.items() if share >= _SHOWN]
    return sorted(shown, key=lambda part: -budget.shares[part])
