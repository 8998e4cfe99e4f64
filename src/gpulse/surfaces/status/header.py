"""What stands around the GPUs: the header and the problems."""

from __future__ import annotations

from ...present.line import Line
from ...present.quantities import clock_text
from ...present.text import clean
from ...present.words import of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Snapshot
    from ...present.theme import Theme


def header(snapshot: Snapshot, theme: Theme, columns: int, gpus: str = "") -> Line:
    """Return the first line: host, driver and time; `gpus` names the GPUs when all have the same name."""
    dot = theme.glyph(" · ", " | ")
    host, driver = snapshot.host, snapshot.driver
    line = Line().add(clean(host.name or "gpulse"), "title")
    facts = [gpus] if gpus else []
    facts += [f"driver {clean(driver['version'])}"] if "version" in driver else []
    facts += [f"CUDA {clean(driver['cuda'])}"] if "cuda" in driver else []
    if host.load and columns >= 100:
        facts.append(f"load {host.load[0]:.1f}")
    if host.memory_used is not None and host.memory_total and columns >= 100:
        facts.append(f"memory {of(host.memory_used, host.memory_total)}")
    line.add(dot + dot.join(facts) if facts else "", "label")
    clock = clock_text(snapshot.time)
    return line.to(columns - len(clock)).add(clock, "label") if line.width + len(clock) < columns else line


def problem_lines(snapshot: Snapshot) -> list[Line]:
    """Return one line for each problem of the snapshot."""
    return [
        Line().add(f"{clean(problem.message)} {clean(problem.remedy)}".strip(), "warn") for problem in snapshot.problems
    ]
