"""Past runs as text: a table of them, one in full, and which differences between two runs or periods matter."""

from __future__ import annotations

import time

from ..model.verdict import Budget
from ..units import count_text
from ..value import Value
from .cells import DASH, energy_text, moment_text, quantity_text, rate_text, seconds_text, when_text
from .cost import flops_text, money_text
from .events import kind_title
from .text import aligned, clean, fit, width
from .verdicts import PART_TITLES, budget_text
from .words import product_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..analysis.run_comparison import RunComparison
    from ..store.runs import KeptRun

_DAY = 86_400
_LEAST_COMMAND = 20  # cells
_CAUSES = {"data_wait": "waiting for data"}


def runs_table(runs: Sequence[tuple[KeptRun, str]], columns: int, now: float) -> list[str]:
    """Return a table of runs, each given with its state; the command takes what is left of the line."""
    rows = [("RUN", "STARTED", "TOOK", "GPUS", "SPEED", "LIMITED BY", "RESULT")]
    for run, state in runs:
        about = gpus_of(run), speed_text(run), limit_text(run)
        rows.append((run.short, when_text(run.start, now), took_text(run), *about, state))
    kept = [at for at in range(len(rows[0])) if any(row[at] not in ("", DASH) for row in rows[1:])]
    lines = aligned([[row[at] for at in kept] for row in rows], right=[at == 2 for at in kept])
    room = max(width(line) for line in lines)
    if columns - room - 2 < _LEAST_COMMAND:  # the command on a line of its own
        table = [fit(lines[0], columns)]
        for line, (run, _) in zip(lines[1:], runs, strict=True):
            table += [fit(line, columns), fit(f"  {command_text(run)}", columns)]
        return table
    commands = ["COMMAND", *(command_text(run) for run, _ in runs)]
    return [
        fit(f"{line}{' ' * (room - width(line))}  {text}", columns) for line, text in zip(lines, commands, strict=True)
    ]


def run_lines(run: KeptRun, state: str, now: float) -> list[str]:
    """Return one run in full, one fact per line."""
    return aligned(run_facts(run, state, now), left=2)


def run_facts(run: KeptRun, state: str, now: float) -> list[tuple[str, str]]:
    """Return what is known of a run, each with its title."""
    return [(title, text) for title, text in _facts(run, state, now) if text and text != DASH]


def _facts(run: KeptRun, state: str, now: float) -> Iterator[tuple[str, str]]:
    yield "run", clean(run.id)
    yield "command", clean(run.text("command"))
    yield "folder", clean(run.text("folder"))
    yield "commit", commit_text(run)
    yield "started", f"{moment_text(run.start)}, {than_text(run.start, now)}"
    yield "took", took_text(run)
    yield "result", state
    yield "machine", clean(run.text("host"))
    yield "GPUs", gpus_of(run)
    for title, _, text in FIGURES:
        value = figure(run, title)
        yield title.lower() if title != "MFU" else title, DASH if value is None else text(value)
    yield "no MFU", clean(str(run.part("throughput").get("mfu_reason") or ""))
    times = run.part("step_time")
    if all(isinstance(times.get(key), (int, float)) for key in ("p50", "p95", "max")):
        yield "step time", ", ".join(f"{key} {seconds_text(times[key])}" for key in ("p50", "p95", "max"))
    budget = Budget.from_plain(run.plain.get("budget"))
    yield "time", "" if budget is None else budget_text(budget)
    for verdict in run.list("verdict"):
        yield "verdict", clean(str(verdict.get("text", ""))) if isinstance(verdict, dict) else ""
    for text in run.list("code_text"):
        yield "code", clean(str(text))
    for one in () if run.list("code_text") else run.list("code")[:3]:
        if isinstance(one, dict):
            waited = one.get("waited")
            lost = f"the GPU waited {seconds_text(waited)}" if isinstance(waited, (int, float)) else ""
            yield "code", clean(f"{one.get('file')}:{one.get('line')} {one.get('function')}: {lost}")
    yield "cost", _cost_text(run)
    for key in ("report", "recording"):
        yield key, clean(run.text(key))


# Title, where it is in the document, and how it is written; both `show` and `compare` go through this list.
FIGURES: tuple[tuple[str, tuple[str, str], Callable[[float], str]], ...] = (
    ("Steps", ("throughput", "steps"), "{:,.0f}".format),
    ("Steps per second", ("throughput", "steps_per_second"), lambda rate: f"{rate_text(rate)}/s"),
    ("Items per second", ("throughput", "items_per_second"), lambda rate: f"{rate_text(rate)}/s"),
    ("Tokens per second", ("throughput", "tokens_per_second"), lambda rate: f"{rate_text(rate)}/s"),
    ("Operations per second", ("throughput", "flops_per_second"), flops_text),
    ("MFU", ("throughput", "mfu"), "{:.3g} %".format),
    ("Waiting for data", ("throughput", "data_wait"), "{:.0f} %".format),
    ("Peak memory", ("", "peak_memory"), lambda size: quantity_text("B", size)),
    ("Energy", ("throughput", "energy"), energy_text),
    ("Energy per step", ("throughput", "energy_per_step"), energy_text),
    ("Energy per item", ("throughput", "energy_per_item"), energy_text),
    ("Energy per token", ("throughput", "energy_per_token"), energy_text),
)  # fmt: skip


def figure(run: KeptRun, title: str) -> float | None:
    """Return one of FIGURES of a run; None if it is not known or zero."""
    part, key = next(where for name, where, _ in FIGURES if name == title)
    return run.number(key, part) or None


def differences(comparison: RunComparison) -> list[Difference]:
    """Return the figures that at least one of two runs has."""
    before, after = comparison.before, comparison.after
    found = [Difference("Duration", before.seconds, after.seconds, seconds_text, floor=1.0)]
    for title, _, text in FIGURES:
        values = figure(before, title), figure(after, title)
        noise = 0.0
        if comparison.margin is not None and title.endswith("per second") and values[0]:
            noise = values[0] * comparison.margin / 2
        found.append(Difference(title, *values, text, noise))
    return [each for each in found if each.before or each.after]


def comparison_lines(comparison: RunComparison, now: float) -> list[str]:
    """Return two runs side by side, what is said of them first."""
    before, after = comparison.before, comparison.after
    rows = [("", before.short, after.short, "")]
    rows.append(("Started", when_text(before.start, now), when_text(after.start, now), ""))
    for title, tell in (("Commit", commit_text), ("Machine", lambda run: clean(run.text("host"))), ("GPUs", gpus_of)):
        if (texts := (tell(before), tell(after)))[0] != texts[1]:
            rows.append((title, *texts, "differs"))
    rows += [(each.title, each.before_text, each.after_text, each.change_text) for each in differences(comparison)]
    for part in PART_TITLES:
        shares = [
            100 * budget.shares.get(part, 0.0) if (budget := Budget.from_plain(run.plain.get("budget"))) else None
            for run in (before, after)
        ]
        if any(share is not None and share >= 0.5 for share in shares):
            one = Difference(_capital(PART_TITLES[part][0]), shares[0], shares[1], "{:.0f} %".format)
            rows.append((one.title, one.before_text, one.after_text, one.change_text))
    return [_capital(comparison_text(comparison, now)), "", *aligned(rows)]


def comparison_text(comparison: RunComparison, now: float, other: str = "") -> str:
    """Return how a run compares with an earlier one: "7 % slower than yesterday (run 4f2a1c), ± 2 %: waiting for data grew …"."""
    other = other or f"{than_text(comparison.before.start, now)} (run {comparison.before.short})"
    if comparison.change is None or comparison.margin is None:
        return f"speed cannot be compared with {other}: {comparison.reason}"
    margin = f"± {_percentage(comparison.margin)}"
    if not comparison.different:
        return f"as fast as {other}, {margin}"
    word = "slower" if comparison.change > 0 else "faster"
    each = "" if comparison.unit == "step" else f" per {comparison.unit}"
    change = abs(comparison.change) if comparison.change > 0 else 1 / (1 + comparison.change) - 1
    text = f"{_percentage(change)} {word}{each} than {other}, {margin}"
    if (cause := comparison.cause) is not None:
        moved = "grew" if cause.after > cause.before else "fell"
        title = _CAUSES.get(cause.part) or PART_TITLES[cause.part][0]
        text += f": {title} {moved} from {cause.before:.0f} to {cause.after:.0f} % of the time"
    return text


def than_text(moment: float, now: float) -> str:
    """Return an earlier time as one says it: 5 minutes ago, yesterday, 6 days ago."""
    ago = max(0.0, now - moment)
    if time.localtime(moment)[:3] == time.localtime(now - _DAY)[:3] and ago > _DAY / 4:
        return "yesterday"
    for size, name in ((_DAY, "day"), (3600, "hour"), (60, "minute")):
        if ago >= size:
            return f"{count_text(int(ago / size), name)} ago"
    return "a moment ago"


def took_text(run: KeptRun) -> str:
    """Return how long a run took; a dash if that is not known."""
    return DASH if run.seconds is None else seconds_text(run.seconds)


def gpus_of(run: KeptRun) -> str:
    """Return the GPUs of a run: "2 × H200"."""
    names = [clean(product_name(str(gpu.get("name") or "GPU"))) for gpu in run.list("gpus") if isinstance(gpu, dict)]
    kinds = {name: names.count(name) for name in names}
    return ", ".join(f"{count} × {name}" for name, count in kinds.items()) or DASH


def speed_text(run: KeptRun) -> str:
    """Return the speed of a run in the finest unit that it counted."""
    for unit, name in (("tokens", "tok"), ("items", "items"), ("steps", "steps")):
        if rate := run.number(f"{unit}_per_second", "throughput"):
            return f"{rate_text(rate)} {name}/s"
    return DASH


def limit_text(run: KeptRun) -> str:
    """Return the key of the first verdict, as text."""
    first = next((one for one in run.list("verdict") if isinstance(one, dict)), None)
    return DASH if first is None else clean(str(first.get("key", "")).replace("_", " "))


def command_text(run: KeptRun) -> str:
    """Return the command of a run in a list: without the folder of its program."""
    program, space, rest = clean(run.text("command")).partition(" ")
    return f"{program.rpartition('/')[2]}{space}{rest}"


def commit_text(run: KeptRun) -> str:
    """Return the commit of a run: "1a2b3c4d (main), with changes"; empty if it is not known."""
    git = run.part("git")
    if not git.get("commit"):
        return ""
    branch = f" ({clean(str(git['branch']))})" if git.get("branch") else ""
    return f"{clean(str(git['commit'])[:8])}{branch}{', with uncommitted changes' if git.get('dirty') else ''}"


def _cost_text(run: KeptRun) -> str:
    total, currency = run.number("total", "cost"), run.part("cost").get("currency")
    return "" if total is None else money_text(total, currency if isinstance(currency, str) else "")


def _percentage(part: float) -> str:
    return f"{100 * part:.0f} %" if part >= 0.0095 else f"{100 * part:.1f} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PARTS = 10  # parts a period is cut into; the spread of their means tells how far to trust the overall mean
NOTE = "Marked: differences of more than 5 % that also exceed the variation within each run."
_ENOUGH = 0.05  # part by which figures must differ
_SURE = 2.0  # standard errors by which means must differ
# Title, catalog key, unit, and the difference below which nobody cares, in that unit.
COMPARED = (
    *(("Utilization", "utilization", "%", 1.0), ("SM active", "sm_active", "%", 1.0)),
    *(("Tensor active", "tensor_active", "%", 1.0), ("DRAM active", "dram_active", "%", 1.0)),
    *(("Power per GPU", "power_draw", "W", 5.0), ("SM clock", "clock_sm", "MHz", 15.0)),
    ("Temperature", "temperature", "°C", 2.0),
    *(("PCIe in", "pcie_rx", "B/s", 1e6), ("PCIe out", "pcie_tx", "B/s", 1e6)),
    *(("NVLink in", "nvlink_rx", "B/s", 1e6), ("NVLink out", "nvlink_tx", "B/s", 1e6)),
)
COUNTED = {
    kind: kind_title(kind)[:1].upper() + kind_title(kind)[1:]
    for kind in ("out-of-memory", "throttled", "xid", "memory-errors", "lost", "timeout")
}


class Difference(Value):
    """One figure of both runs, and what writes it. `noise` is how far it may differ by chance, `floor` what nobody cares about."""

    title: str
    before: float | None
    after: float | None
    text: Callable[[float], str]
    noise: float = 0.0
    floor: float = 0.0

    @property
    def matters(self) -> bool:
        """Whether it is more than chance, more than a trifle and more than one part in twenty; not if a figure is unknown."""
        if self.before is None or self.after is None:
            return False
        gap = abs(self.after - self.before)
        return gap > _ENOUGH * max(abs(self.before), abs(self.after)) and gap > _SURE * self.noise and gap > self.floor

    @property
    def before_text(self) -> str:
        """The first figure as text; a dash when it is unknown."""
        return DASH if self.before is None else self.text(self.before)

    @property
    def after_text(self) -> str:
        """The second figure as text; a dash when it is unknown."""
        return DASH if self.after is None else self.text(self.after)

    @property
    def change_text(self) -> str:
        """The difference as text: "▼ 220 Wh (-34 %)", "▲ 5 points", "same"; a dash when a figure is unknown."""
        if self.before is None or self.after is None:
            return DASH
        gap = self.after - self.before
        words = self.text(abs(gap))
        if words == self.text(0.0) and not self.matters:
            return "same"
        arrow = "▲" if gap > 0 else "▼"
        if words.endswith(" %"):  # a change of a percentage is in points: 5 % to 10 % is not "+100 %"
            points = words.removesuffix(" %")
            return f"{arrow} {points} point{'' if points == '1' else 's'}"
        percent = 100 * gap / abs(self.before) if self.before else 0.0
        part = f" ({percent:+.0f} %)" if 0.5 <= abs(percent) < 10_000 else ""
        return f"{arrow} {words}{part}"


def headline(found: Sequence[Difference]) -> list[str]:
    """Return the differences that matter as sentences, or the one that says there are none."""
    telling = [difference for difference in found if difference.matters]
    if not telling:
        return ["No significant differences: all values agree within 5 % or within the variation of each run."]
    return [f"{one.title}: {one.before_text} → {one.after_text} {one.change_text}" for one in telling]


def nothing_to_compare(empty: Sequence[str]) -> str:
    """Return why two periods cannot be compared, of which these have no records; empty if they can."""
    if not empty:
        return ""
    which = f"the {empty[0]} period" if len(empty) == 1 else "either period"
    return f"Nothing to compare: nothing was recorded in {which}."


def standard_error(means: Sequence[float]) -> float:
    """Return how far to trust an overall mean, by how much the means of its parts differ; 0 for less than two."""
    if len(means) < 2:
        return 0.0
    mean = sum(means) / len(means)
    return float((sum((part - mean) ** 2 for part in means) / (len(means) - 1) / len(means)) ** 0.5)
