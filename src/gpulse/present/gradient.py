"""Bars that become brighter to their end, on terminals with 24-bit color."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .palettes import Sheet

STEPS = 8
_STYLES = ("good", "busy", "memory", "warn")
_DULLEST = 0.5  # share of its own color that the first cell of a bar has
# The palettes with a gradient, and the background that the colors come out of. The others exist for their contrast.
_BACKGROUNDS = {"dark": (0, 0, 0), "blind": (0, 0, 0), "light": (255, 255, 255), "blind-light": (255, 255, 255)}


def gradient_codes(sheet: Sheet, name: str) -> Mapping[str, str]:
    """Return the codes of the styles `busy~0` to `busy~7` and so on; none for a palette without a gradient."""
    behind = _BACKGROUNDS.get(name)
    if behind is None:
        return {}
    return {
        f"{style}~{step}": _mixed(sheet[style][2], behind, _DULLEST + (1 - _DULLEST) * step / (STEPS - 1))
        for style in _STYLES
        for step in range(STEPS)
    }


def gradient(style: str, cells: int) -> list[str]:
    """Return the style of each cell of a bar of this length."""
    return [f"{style}~{at * STEPS // cells}" for at in range(cells)]


def _mixed(color: str, behind: tuple[int, int, int], share: float) -> str:
    digits = color.rpartition("#")[2]
    parts = [round(share * own + (1 - share) * back) for own, back in zip(bytes.fromhex(digits), behind, strict=True)]
    return "38;2;" + ";".join(map(str, parts))
