"""Verdicts laid out for a terminal: sentence, evidence, advice; and the progress while GPUs are watched."""

from __future__ import annotations

from ..analysis.concerns import concerns
from ..units import count_text, duration_text
from ..value import Value
from .code import advised, code_sentence
from .concerns import MARKS, concern_lines, headline, summary
from .figures import figure_name, figure_text, limit_text
from .line import Line
from .text import clean, fit, width, wrap
from .verdict_titles import who
from .verdicts import QUIET, advice, alike, budget_bar, budget_legend, style, title
from .verdicts import line as verdict_line
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from ..model.stacks import CodeLine
    from ..model.verdict import Concern, Diagnosis, Evidence, Verdict
    from .theme import Theme


_LABEL = 11  # cells of the column with Evidence, Also, Try
_INDENT = 2
_HOLDING = ("idle_allocation", "orphaned_memory")
_TELLING = 3.0  # seconds of samples before which a GPU at work cannot be told from one that only holds memory


def answer(diagnosis: Diagnosis, names: Mapping[int | None, str], theme: Theme, columns: int) -> list[str]:
    """Return the lines for a diagnosis; `names` are the products by index of the GPU."""
    return [line.render(theme, columns) for line in explained(diagnosis, names, theme, columns)]


def explained(diagnosis: Diagnosis, names: Mapping[int | None, str], theme: Theme, columns: int) -> list[Line]:
    """Return the same as lines of styled pieces: what is wrong, one line each, then the GPUs, the worst first."""
    room = max(40, min(columns, 120))
    if not diagnosis.verdicts:
        return [Line().add("No GPU was seen.", "label")]
    found = concerns(diagnosis)
    lines = [_heading(diagnosis)]
    if found and len(found) + len(diagnosis.verdicts) > 2:
        lines[0].add(": ", "label").add(summary(found), found[0].severity)
        lines += [Line(), *concern_lines(found, theme, room)]
    for group in alike(_worst_first(diagnosis, found), names):
        lines += [Line(), *_block(group, names.get(group[0].index, ""), theme, room)]
    return lines


def explained_verdict(verdict: Verdict, theme: Theme, columns: int) -> list[Line]:
    """Return the lines for one verdict, without the name of its GPU."""
    return _block([verdict], "", theme, max(40, min(columns, 120)))[1:]


def code_block(lines: Sequence[CodeLine], seconds: float, problem: str, columns: int) -> list[Line]:
    """Return the lines of code at which GPUs waited within `seconds`, with what to change; `problem` is why they are not known."""
    room = max(40, min(columns, 120)) - _LABEL - _INDENT
    sentence = code_sentence(lines, seconds)
    told = [sentence, *advised(lines)] if sentence else ["The GPU hardly waited for the program."] if lines else []
    return _rows("Code", (part for text in [*told, clean(problem)] if text for part in wrap(text, room)))


def so_far(diagnosis: Diagnosis, columns: int) -> str:
    """Return in one line what a diagnosis that is still going on has found: what is wrong, or the verdict that tells most."""
    if diagnosis.end - diagnosis.start < _TELLING:
        sure = [one for one in diagnosis if one.key not in _HOLDING]
        diagnosis = type(diagnosis)(sure, diagnosis.start, diagnosis.end, diagnosis.samples)
    found = concerns(diagnosis)
    told = [one for one in _worst_first(diagnosis, found) if one.key not in QUIET]
    if len(found) > 1:
        return "".join(text for text, _ in headline(found, columns).pieces)
    return fit(verdict_line(told[0]), columns) if told else ""


def _worst_first(diagnosis: Diagnosis, found: Sequence[Concern]) -> list[Verdict]:
    """Return the verdicts in the order of what is wrong; then what is worth knowing, what is healthy, and what is idle."""
    places: dict[str, int] = {}
    for at, one in enumerate(found):
        for name in one.gpus:
            places.setdefault(name, at)
    calm = len(found)
    return sorted(
        diagnosis, key=lambda one: places.get(one.label, calm + (one.key == "healthy") + 2 * (one.key in QUIET))
    )


def _heading(diagnosis: Diagnosis) -> Line:
    seconds = diagnosis.end - diagnosis.start
    gpus, parts = len({one.index for one in diagnosis}), sum(bool(one.instance) for one in diagnosis)
    text = count_text(gpus, "GPU") + (f" with {count_text(parts, 'MIG instance')}" if parts else "")
    return Line().add(f"{text} over {duration_text(seconds)}, {count_text(diagnosis.samples, 'sample')}", "label")


def _block(group: Sequence[Verdict], name: str, theme: Theme, room: int) -> list[Line]:
    verdict = group[0]
    look = style(verdict)
    glyph = theme.glyph(*MARKS[look])
    heading = Line().add(gpus_text([one.label for one in group if one.index is not None]), "title")
    lines = [heading.add(f"  {clean(name)}", "label") if name else heading]
    for at, text in enumerate(wrap(title(verdict), room - 4)):
        lines.append(Line().add(f"{glyph} " if at == 0 else "  ", look).add(text, "title"))
    lines += _subject(verdict, title(verdict), room)
    lines += _time(verdict, theme, room)
    lines += _evidence(verdict.evidence, theme, room)
    lines += _also(verdict, room)
    return lines + _advice(verdict, room)


def _subject(verdict: Verdict, said: str, room: int) -> list[Line]:
    """Return the lines with the confidence, and the processes that the sentence does not name."""
    line = Line().add("  ").add("confidence ", "label").add(verdict.confidence)
    names = [who(one) for one in verdict.processes if who(one) not in said]
    if not names:
        return [line]
    people = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    if line.width + 5 + width(people) <= room:
        return [line.add("  ·  ", "faint").add(people, "user")]
    return [line, *(Line().add("  ").add(text, "user") for text in wrap(people, room - _INDENT))]


def _time(verdict: Verdict, theme: Theme, room: int) -> list[Line]:
    """Return where the time went: a bar, and its parts."""
    budget = verdict.budget
    if budget is None or len(budget.shares) < 2:
        return []
    cells = min(60, room - _LABEL - _INDENT)
    lines = [_labelled("Time").extend(budget_bar(budget, theme, cells))]
    return lines + [_labelled("").extend(line) for line in budget_legend(budget, room - _LABEL - _INDENT)]


def _evidence(numbers: Sequence[Evidence], theme: Theme, room: int) -> list[Line]:
    sides = (theme.glyph("≥", ">="), "<")
    rows = [(figure_name(one.metric), figure_text(one.metric, one.value), limit_text(one, *sides)) for one in numbers]
    value = max((width(text) for _, text, _ in rows), default=0)
    beside = _INDENT + _LABEL + 2 + value + max((3 + width(limit) for _, _, limit in rows if limit), default=0)
    widest = min(max((width(name) for name, _, _ in rows), default=0), room - beside)
    lines = []
    for at, (name, text, limit) in enumerate(rows):
        line = _labelled("Evidence" if at == 0 else "")
        line.add(name[:1].upper() + name[1:], "", widest).add("  ").add(text, "accent", value, right=True)
        lines.append(line.add(f"   {limit}", "label") if limit else line)
    return lines


def _also(verdict: Verdict, room: int) -> list[Line]:
    shares = [f" ({100 * one.share:.0f} % of the time)" if one.share < 0.95 else "" for one in verdict.also]
    texts = [f"{title(one).rstrip('.')}{share}." for one, share in zip(verdict.also, shares, strict=True)]
    return _rows("Also", (row for text in texts for row in wrap(text, room - _LABEL - _INDENT)))


def _advice(verdict: Verdict, room: int) -> list[Line]:
    lines = []
    for at, text in enumerate(advice(verdict)):
        for row, part in enumerate(wrap(clean(text), room - _LABEL - _INDENT - 3)):
            number = f"{at + 1}. " if row == 0 else "   "
            lines.append(_labelled("Try" if at == 0 and row == 0 else "").add(number, "label").add(part))
    return lines


def _rows(label: str, texts: Iterable[str]) -> list[Line]:
    return [_labelled("" if at else label).add(text) for at, text in enumerate(texts)]


def _labelled(label: str) -> Line:
    return Line().add(" " * _INDENT).add(label, "label", _LABEL)


_CELLS = 24


class Progress(Value):
    """Draws how much of `seconds` has passed; draws nothing where `stream` is not a terminal."""

    stream: TextIO
    theme: Theme
    seconds: float
    live: bool  # whether anything is drawn

    def show(self, passed: float, gpus: int, so_far: str = "") -> None:
        """Redraw the line, and below it what was found so far."""
        if not self.live:
            return
        theme = self.theme
        done = min(_CELLS, int(_CELLS * passed / self.seconds)) if self.seconds > 0 else _CELLS
        bar = theme.paint(theme.glyph("█", "#") * done, "busy") + theme.paint(
            theme.glyph("░", ".") * (_CELLS - done), "track"
        )
        left = max(0.0, self.seconds - passed)
        text = f"watching {count_text(gpus, 'GPU')}  {bar}  {left:.0f} s left"
        found = f"\r\n{theme.paint('so far: ', 'label')}{theme.spelled(so_far)}\x1b[1A\r" if so_far else ""
        self.stream.write(f"\r\x1b[J{text}  {theme.paint('Ctrl-C: judge what was seen', 'faint')}{found}")
        self.stream.flush()

    def clear(self) -> None:
        """Remove what was drawn."""
        if self.live:
            self.stream.write("\r\x1b[J")
            self.stream.flush()
