"""Verdicts as text: one sentence for each, its evidence, its advice, and where the time went; every surface takes its words from here."""

from __future__ import annotations

from ..model.verdict import total_budget
from .cells import severity_style, xid_remedy, xid_text
from .figures import advice_text, evidence_text
from .line import Line
from .text import Untrusted, pad, width
from .verdict_titles import title as title
from .verdict_titles import who
from .words import gpus_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..model.event import Event
    from ..model.verdict import Budget, Diagnosis, Verdict
    from .theme import Theme

QUIET = frozenset({"idle", "unknown", "starting", "loading"})  # not worth a line where only findings are listed


def short(verdict: Verdict) -> str:
    """Return the verdict in two to four words, for columns, badges and lists."""
    return verdict.key if verdict.condition is None else verdict.condition.title


def style(verdict: Verdict) -> str:
    """Return the style of a verdict, which says how bad it is: good, warn, critical or label."""
    return severity_style(verdict.severity)


def gpu_name(verdict: Verdict) -> str:
    """Return the name of the GPU or MIG instance that a verdict is about: "GPU 0", "GPU 0 MIG 1"."""
    return "GPU" if verdict.index is None else gpus_text([verdict.label])


def line(verdict: Verdict) -> str:
    """Return the verdict with its GPU in one line: "GPU 0: …"."""
    return f"{gpu_name(verdict)}: {title(verdict)}"


def findings(diagnosis: Diagnosis) -> list[str]:
    """Return a diagnosis as sentences, one per GPU and finding, each with its first advice; GPUs that all are well share one.

    What is idle or unknown is left out. The texts are safe to print.
    """
    return ["".join(parts) for parts in finding_parts(diagnosis)]


def finding_parts(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    """Return the same in parts; what processes chose is Untrusted, for documents that have markup of their own."""
    told: list[tuple[str, ...]] = []
    for group in alike(diagnosis.verdicts):
        name, verdict = gpus_text([one.label for one in group if one.index is not None]), group[0]
        if verdict.key not in QUIET:
            hint = f" {advice(verdict)[0]}" if advice(verdict) else ""
            told.append((f"{name}: ", *_marked(title(verdict), verdict), hint))
        told += [(f"{name}, also: ", *_marked(title(one), one)) for one in verdict.also if one.key != "healthy"]
    return told


def _marked(text: str, verdict: Verdict) -> tuple[str, ...]:
    """Split a sentence at the processes it names, which are Untrusted."""
    parts: list[str] = [text]
    for name in {who(one) for one in verdict.processes}:
        split: list[str] = []
        for part in parts:
            pieces = [part] if isinstance(part, Untrusted) else part.split(name)
            for at, piece in enumerate(pieces):
                split += [Untrusted(name), piece] if at else [piece]
        parts = split
    return tuple(part for part in parts if part)


def times(diagnosis: Iterable[Verdict]) -> list[tuple[str, Budget]]:
    """Return where the time of each GPU went, with its name; GPUs that all are well share an entry.

    What is idle or unknown is left out.
    """
    told = []
    for group in alike([one for one in diagnosis if one.budget is not None and one.key not in QUIET]):
        spent = total_budget(one.budget for one in group if one.budget is not None)
        if spent is not None:
            told.append((gpus_text([one.label for one in group if one.index is not None]), spent))
    return told


def time_lines(spent: Sequence[tuple[str, Budget]]) -> list[str]:
    """Return the same as one line of plain text per GPU: a bar of letters, and what they stand for."""
    names = [f"{name} time" for name, _ in spent]
    return [
        f"{pad(name, max(map(width, names)))}  {'  '.join(budget_letters(budget))}"
        for name, (_, budget) in zip(names, spent, strict=True)
    ]


def alike(verdicts: Sequence[Verdict], names: Mapping[int | None, str] | None = None) -> list[list[Verdict]]:
    """Put neighbors together that have nothing but the same good verdict, and the same product where `names` gives it by index."""
    groups: list[list[Verdict]] = []
    products = names or {}
    for verdict in verdicts:
        last = groups[-1][0] if groups else None
        good = verdict.key in ("healthy", "idle") and not verdict.also
        # `values` say whether power limits a healthy one
        same = last is not None and (last.key, last.values) == (verdict.key, verdict.values) and not last.also
        if last is not None and good and same and products.get(last.index) == products.get(verdict.index):
            groups[-1].append(verdict)
        else:
            groups.append([verdict])
    return groups


def verdict_event(verdict: Verdict, time: float) -> Event:
    """Return the event that a GPU has a new verdict, as a history keeps it."""
    from ..model.event import Event

    return Event(
        time,
        "verdict",
        () if verdict.index is None else (verdict.label,),
        uuids=() if verdict.uuid is None else (verdict.uuid,),
        values={"verdict": verdict.key, "confidence": verdict.confidence},
        severity=verdict.severity,
        note=title(verdict),
    )


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return what a page shows of a verdict: its sentence, and what unfolds below it."""
    return {
        "uuid": verdict.uuid or "",
        "gpu": verdict.label,
        "verdict": verdict.key,
        "confidence": verdict.confidence,
        "level": style(verdict),
        "short": short(verdict),
        "text": title(verdict),
        "evidence": evidence(verdict),
        "advice": advice(verdict),
        "also": [title(one) for one in verdict.also],
        "since": verdict.since,
        "budget": [] if verdict.budget is None else budget_row(verdict.budget),
    }


def evidence(verdict: Verdict) -> list[str]:
    """Return the evidence as text, one entry per number."""
    return [evidence_text(one) for one in verdict.evidence]


def advice(verdict: Verdict) -> list[str]:
    """Return the advice as text; an XID comes with NVIDIA's own action."""
    code = verdict.values.get("xid")
    if "xid" in verdict.advice and isinstance(code, (int, float)):
        remedy = xid_remedy(code) or "see NVIDIA's XID catalog"
        return [f"{xid_text(code)}: {remedy}.", *(advice_text(key) for key in verdict.advice if key != "xid")]
    return [advice_text(key) for key in verdict.advice[:3]]


def worded(diagnosis: Diagnosis) -> Diagnosis:
    """Return the same diagnosis with every text filled in: titles, evidence and advice."""
    from ..model.verdict import Diagnosis

    verdicts = [worded_verdict(verdict) for verdict in diagnosis]
    return Diagnosis(verdicts, diagnosis.start, diagnosis.end, diagnosis.samples)


def worded_verdict(verdict: Verdict) -> Verdict:
    """Return the same verdict with every text filled in."""
    from ..model.verdict import Evidence

    numbers = [Evidence(one.metric, one.value, one.threshold, one.side, evidence_text(one)) for one in verdict.evidence]
    also = [worded_verdict(one) for one in verdict.also]
    return verdict.replace(title=title(verdict), remedies=advice(verdict), evidence=numbers, also=also)


# The name of each part, its style, and the cell of a bar without colors.
PART_TITLES: dict[str, tuple[str, str, str]] = {
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
    return f"{PART_TITLES[part][0]} {about}{100 * budget.shares[part]:.0f} %"


def budget_text(budget: Budget) -> str:
    """Return the budget as text, the largest part first: "tensor cores 47 %, waiting for workers ~28 %, …"."""
    return ", ".join(part_text(budget, part) for part in _named(budget))


def budget_row(budget: Budget) -> list[dict[str, object]]:
    """Return the parts for a page, in the order of a bar: key, title, style, share and whether it is an estimate."""
    return [
        {
            "part": part,
            "title": PART_TITLES[part][0],
            "style": PART_TITLES[part][1],
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
        _, style, letter = PART_TITLES[part]
        block = theme.glyph("·" if part == "idle" else "█", letter) if theme.colors else letter
        line.add(block * count, style)
    return line


def budget_letters(budget: Budget) -> tuple[str, str]:
    """Return a bar of letters, and its parts with the letter of each, for text without colors."""
    bar = "".join(PART_TITLES[part][2] * count for part, count in _cells(budget, _LETTERS))
    return bar, " · ".join(f"{PART_TITLES[part][2]} {part_text(budget, part)}" for part in _named(budget))


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
        _, style, letter = PART_TITLES[part]
        lines[-1].add(gap).add(f"{letter} ", style).add(text)
    return lines


def _named(budget: Budget) -> list[str]:
    shown = [part for part, share in budget.shares.items() if share >= _SHOWN]
    return sorted(shown, key=lambda part: -budget.shares[part])
