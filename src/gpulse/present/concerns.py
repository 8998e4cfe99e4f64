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

    from ..model.concern import Concern
    from .theme import Theme

_MARKS = {"critical": ("■", "X"), "warn": ("▲", "!")}
_WORTH = 60.0  # seconds of GPU time from which a loss is told


def worded(found: Iterable[Concern]) -> list[Concern]:
    """Return the same concerns with every text filled in; safe to print."""
    return [one.replace(title=_title(one), text=_text(one), remedy=_remedy(one)) for one in found]


def _title(concern: Concern) -> str:
    known = CONDITIONS.get(concern.key)
    return concern.key if known is None else known.title


def _text(concern: Concern) -> str:
    if concern.verdict is not None:
        return verdict_title(concern.verdict)
    return "" if concern.event is None else event_text(concern.event)


def _remedy(concern: Concern) -> str:
    found = advice(concern.verdict) if concern.verdict is not None else []
    return found[0] if found else ""


def place(concern: Concern) -> str:
    """Return where it is: "GPU 3", "GPUs 0-3", "machine"."""
    return gpus_text(concern.gpus) if concern.gpus else "machine"


def facts(concern: Concern) -> list[str]:
    """Return what is known beside the sentence: owner, since when, what it has cost, when it ends."""
    found = [clean(concern.owner)] if concern.owner else []
    if concern.since is not None and concern.time - concern.since >= 1:
        found.append(f"for {duration_text(concern.time - concern.since)}")
    if concern.lost >= _WORTH:
        found.append(f"{duration_text(concern.lost)} of GPU time lost")
    if concern.expected is not None:
        found.append(f"memory full in {duration_text(max(0.0, concern.expected - concern.time))}")
    return found


def summary(found: Sequence[Concern]) -> str:
    """Return how much is wrong, in a few words: "2 critical, 1 warning"."""
    counts = [
        (sum(one.severity == level for one in found), word)
        for level, word in (("critical", "critical"), ("warn", "warning"))
    ]
    return ", ".join(
        f"{count} {word}{'s' if count > 1 and word == 'warning' else ''}" for count, word in counts if count
    )


def concern_lines(found: Iterable[Concern], theme: Theme, columns: int) -> list[Line]:
    """Return one line per concern, cut to `columns`: mark, place, title, facts."""
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
