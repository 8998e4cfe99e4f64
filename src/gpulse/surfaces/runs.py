"""`gpulse runs` as lines or plain data: the list, one run, two compared."""

from __future__ import annotations

import time

from ..analysis.run_comparison import RunComparison
from ..errors import UsageError
from ..monitor.run_record import result
from ..present.runs import comparison_lines, comparison_text, differences, run_lines, runs_table
from ..store.runs import EMPTY, earlier, kept_runs, run_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..store.runs import KeptRun


def listed(count: int) -> list[KeptRun]:
    """Return the newest runs, at most `count`; 0 for all."""
    return [run for at, run in enumerate(kept_runs()) if not count or at < count]


def list_lines(runs: Sequence[KeptRun], columns: int) -> list[str]:
    """Return a table of runs."""
    if not runs:
        return ["No runs yet: `gpulse run -- COMMAND` and programs with a Monitor are listed here when they have run."]
    return runs_table([(run, result(run)) for run in runs], columns, time.time())


def list_to_plain(runs: Sequence[KeptRun]) -> dict[str, Any]:
    """Return runs as plain data."""
    return {"schema": 1, "runs": [to_plain(run) for run in runs]}


def show_lines(run: KeptRun) -> list[str]:
    """Return one run in full."""
    return run_lines(run, result(run), time.time())


def to_plain(run: KeptRun) -> dict[str, Any]:
    """Return one run as plain data, with its result in a word."""
    return {**EMPTY, **run.plain, "result": result(run)}


def compared(words: Sequence[str]) -> RunComparison:
    """Return the comparison of two runs, or of one with the last one before it of the same command; none named: the newest run.

    Raises UsageError where there is nothing to compare with.
    """
    after = run_named(words[-1] if words else "last")
    past = earlier(after)
    if len(words) == 2:
        return RunComparison(run_named(words[0]), after, past)
    if not past:
        raise UsageError(
            f"there is no earlier run of the command of {after.short} in the same folder;",
            "name two runs: gpulse runs compare RUN RUN.",
        )
    timed = [run for run in past if run.list("step_blocks")]
    return RunComparison((timed or past)[0], after, timed)


def compare_lines(comparison: RunComparison) -> list[str]:
    """Return two runs side by side."""
    return comparison_lines(comparison, time.time())


def comparison_to_plain(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as plain data: `change` 0.07 is 7 % slower, `margin` is how far that may be off."""
    figures = [{"figure": each.title, "before": each.before, "after": each.after} for each in differences(comparison)]
    return {"schema": 1, **comparison.to_plain(), "text": comparison_text(comparison, time.time()), "figures": figures}
