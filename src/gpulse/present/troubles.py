"""What is wrong now, in words: one line each, with owner, since when, what it costs, when it ends and what to do next."""

from __future__ import annotations

from ..model.condition import CONDITIONS
from ..units import duration_text
from .events import event_text
from .line import Line
from .text import clean, fit, width
from .verdicts import advice
from .verdicts import title as verdict_title
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model.trouble import Trouble
    from .theme import Theme

_MARKS = {"critical": ("■", "X"), "warn": ("▲", "!")}
_WORTH = 60.0  # seconds of GPU time from which a loss is told


def worded(found: Iterable[Trouble]) -> list[Trouble]:
    """Return the same troubles with every text filled in; safe to print."""
    return [one.replace(title=_title(one), text=_text(one), remedy=_remedy(one)) for one in found]


def _title(trouble: Trouble) -> str:
    known = CONDITIONS.get(trouble.key)
    return trouble.key if known is None else known.title


def _text(trouble: Trouble) -> str:
    if trouble.verdict is not None:
        return verdict_title(trouble.verdict)
    return "" if trouble.event is None else event_text(trouble.event)


def _remedy(trouble: Trouble) -> str:
    found = advice(trouble.verdict) if trouble.verdict is not None else []
    return found[0] if found else ""


def place(trouble: Trouble) -> str:
    """Return where it is: "GPU 3", "GPUs 0-3", "machine"."""
    return gpus_text(trouble.gpus) if trouble.gpus else "machine"


def facts(trouble: Trouble) -> list[str]:
    """Return what is known beside the sentence: owner, since when, what it has cost, when it ends."""
    found = [clean(trouble.owner)] if trouble.owner else []
    if trouble.since is not None and trouble.time - trouble.since >= 1:
        found.append(f"for {duration_text(trouble.time - trouble.since)}")
    if trouble.lost >= _WORTH:
        found.append(f"{duration_text(trouble.lost)} of GPU time lost")
    if trouble.expected is not None:
        found.append(f"memory full in {duration_text(max(0.0, trouble.expected - trouble.time))}")
    return found


def summary(found: Sequence[Trouble]) -> str:
    """Return how much is wrong, in a few words: "2 critical, 1 warning"."""
    counts = [
        (sum(one.severity == level for one in found), word)
        for level, word in (("critical", "critical"), ("warn", "warning"))
    ]
    return ", ".join(
        f"{count} {word}{'s' if count > 1 and word == 'warning' else ''}" for count, word in counts if count
    )


def trouble_lines(found: Iterable[Trouble], theme: Theme, columns: int) -> list[Line]:
    """Return one line per trouble, cut to `columns`: mark, place, title, facts."""
    lines = []
    for one in worded(found):
        line = Line().add(f"{theme.glyph(*_MARKS.get(one.severity, ('·', '-')))} ", one.severity)
        line.add(f"{place(one)}  ", "title").add(one.title)
        told = f"  {' · '.join(facts(one))}" if facts(one) else ""
        room = columns - line.width
        if told and room > 8:
            line.add(told if width(told) <= room else fit(told, room), "label")
        lines.append(line)
    return lines
