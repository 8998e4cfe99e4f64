"""What is wrong now, as text: one line each, with owner, since when, what it costs, when it ends and what to do next."""

from __future__ import annotations

from ..model.condition import CONDITIONS
from ..units import count_text, duration_text
from .events import event_text
from .line import Line
from .text import clean, fit, width
from .verdicts import advice
from .verdicts import title as verdict_title
from .words import gpus_text, label, remarks, short_name, silence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..model.catalog import Gpu
    from ..model.fleet import HostReport
    from ..model.verdict import Concern
    from .theme import Theme

MARKS = {"critical": ("■", "X"), "warn": ("▲", "!"), "good": ("●", "+"), "label": ("○", "-")}  # by style
WORTH = 60.0  # seconds of GPU time from which a loss is told


def worded(found: Iterable[Concern]) -> list[Concern]:
    """Return the same concerns with every text filled in; safe to print."""
    return [
        one.replace(title=_title(one), text=_text(one), remedy=_remedy(one), owner=clean(one.owner)) for one in found
    ]


def _title(concern: Concern) -> str:
    known = CONDITIONS.get(concern.key)
    return clean(concern.key) if known is None else known.title


def _text(concern: Concern) -> str:
    if concern.verdict is not None:
        return verdict_title(concern.verdict)
    return "" if concern.event is None else event_text(concern.event)


def _remedy(concern: Concern) -> str:
    return next(iter(advice(concern.verdict)), "") if concern.verdict is not None else ""


def place(concern: Concern) -> str:
    """Return where it is: "GPU 3", "GPUs 0-3", "GPU 0 MIG 1", "machine"."""
    return gpus_text(concern.gpus) if concern.gpus else "machine"


def facts(concern: Concern) -> list[str]:
    """Return what is known beside the sentence: owner, since when, what it has cost, when it ends."""
    found = [clean(concern.owner)] if concern.owner else []
    if concern.since is not None and concern.time - concern.since >= 1:
        found.append(f"for {duration_text(concern.time - concern.since)}")
    if concern.lost >= WORTH:
        found.append(f"about {duration_text(concern.lost)} of GPU time lost")
    if concern.expected is not None:
        found.append(f"memory full in {duration_text(max(0.0, concern.expected - concern.time))}")
    return found


def summary(found: Sequence[Concern]) -> str:
    """Return how much is wrong, in a few words: "2 critical, 1 warning"."""
    critical, warnings = (sum(one.severity == level for one in found) for level in ("critical", "warn"))
    told = [f"{critical} critical"] if critical else []
    return ", ".join([*told, count_text(warnings, "warning")] if warnings else told)


def concern_lines(found: Iterable[Concern], theme: Theme, columns: int) -> list[Line]:
    """Return one line per concern, cut to `columns`, in aligned columns: mark and place, title, facts."""
    rows = [(one.severity, place(one), _title(one), " · ".join(facts(one))) for one in found]
    titles = max((width(title) for _, _, title, _ in rows), default=0)
    places = max(5, min(max((width(where) for _, where, _, _ in rows), default=0), columns - titles - 4))
    lines = []
    for severity, where, title, told in rows:
        line = Line().add(f"{theme.glyph(*MARKS[severity])} ", severity).add(where, "title", places)
        line.add("  ").add(fit(title, max(0, columns - line.width)), "", titles if told else None)
        room = columns - line.width - 2
        lines.append(line.add("  ").add(fit(told, room), "label") if told and room > 8 else line)
    return lines


def concern_line(concern: Concern, theme: Theme, columns: int, host: str = "") -> Line:
    """Return one concern as a line of at most `columns`: mark, machine, place, title, facts."""
    line = Line().add(f"{theme.glyph(*MARKS[concern.severity])} ", concern.severity)
    line.add(f"{host} {place(concern)}".strip(), "title").add("  ").add(_title(concern))
    told = " · ".join(facts(concern))
    return line.add(fit(f"  {told}", max(0, columns - line.width)), "label") if told else line


def headline(found: Sequence[Concern], columns: int, hint: str = "") -> Line:
    """Return everything that is wrong in one line of at most `columns`: how much, then the worst; empty when nothing is.

    What does not fit is counted ("+3"), and `hint` is added where there is room.
    """
    if not found:
        return Line()
    line = Line().add(fit(summary(found), columns), found[0].severity)
    parts = [_brief(one) for one in found]
    for at, part in enumerate(parts):
        before = " · " if at else ": "
        left = len(parts) - at - 1
        more = f" +{left}" if left else ""
        if line.width + width(before + part + more) > columns:
            more = f" +{left + 1}" if at else ""
            return line.add(more) if line.width + width(more) <= columns else line
        line.add(before, "label").add(part, found[at].severity)
    return line.add(f"  {hint}", "faint") if hint and line.width + 2 + width(hint) <= columns else line


def _brief(concern: Concern) -> str:
    left = None if concern.expected is None else max(0.0, concern.expected - concern.time)
    return f"{place(concern)} {_title(concern)}" + ("" if left is None else f", full in {duration_text(left)}")


# In words, and how bad it is.
STATES = {
    "ok": ("ok", ""),
    "connecting": ("connecting", "label"),
    "stale": ("stale", "warn"),
    "unreachable": ("unreachable", "critical"),
    "denied": ("access denied", "critical"),
    "no_gpu": ("no GPU", "label"),
    "failed": ("failed", "critical"),
}


def visible_trouble(host: HostReport, now: float, judged: bool) -> Iterator[tuple[str, str, str]]:
    """Yield severity, place and sentence for what is wrong with a machine beside its verdicts: it cannot be read.

    Before it has been `judged`, what its values tell: GPUs that are lost, throttled or report errors.
    """
    state, style = STATES[host.state]
    if style in ("critical", "warn"):
        yield style, "", f"{state}: {clean(host.reason)}" if host.reason else state
    for gpu in () if judged else host.gpus:
        words, style = silence(gpu, host.snapshot.time if host.snapshot else now)
        for text, kind in [(words, style)] if words else [(text, kind) for text, kind, _ in remarks(gpu)]:
            if kind in ("critical", "warn"):
                yield kind, gpus_text([label(gpu)]), text


def product(gpus: Sequence[Gpu]) -> str:
    """Return what GPUs these are: 8 × H100 80GB HBM3."""
    names = list(dict.fromkeys(short_name(gpu) for gpu in gpus))
    if not names:
        return "no GPU"
    return f"{len(gpus)} × {names[0]}" if len(names) == 1 else f"{len(gpus)} GPUs, {len(names)} kinds"
