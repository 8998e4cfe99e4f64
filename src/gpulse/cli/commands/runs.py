"""`gpulse runs`: list, show, compare and open past runs."""

from __future__ import annotations

import os
import sys
import time

from ...analysis.run_comparison import RunComparison
from ...errors import GpulseError, UsageError
from ...monitor.run_record import result
from ...present.runs import comparison_lines, comparison_text, differences, run_lines, runs_table
from ...store.runs import EMPTY, earlier, kept_runs, run_named, runs_folder
from ..options import DEMO_PAST, HELP, JSON, Arguments, Option, Verb, checked_action, whole
from ..output import write_json
from ..session import with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...store.runs import KeptRun

ACTIONS = ("list", "show", "compare", "open")
_MOST = {"list": 0, "show": 1, "compare": 2, "open": 1}


def run(arguments: Arguments) -> int:
    """Do one of the four with the runs that are named."""
    action, *words = arguments.words or ["list"]
    checked_action("runs", action, ACTIONS, f"write it as gpulse runs show {action}.")
    if len(words) > _MOST[action]:
        raise UsageError(f"runs: {action} takes at most {_MOST[action]} runs, not {len(words)};", "leave some out.")
    if runs_folder() is None:
        raise GpulseError("runs are not kept here: GPULSE_RUNS is off.", "Unset it to keep them.")
    if action == "open":
        return _open(words)
    if action == "list":
        found = [one for at, one in enumerate(kept_runs()) if not arguments.number or at < arguments.number]
        plain, lines = {"schema": 1, "runs": [to_plain(one) for one in found]}, list_lines(found)
    elif action == "show":
        one = run_named(words[0] if words else "last")
        plain, lines = to_plain(one), run_lines(one, result(one), time.time())
    else:
        comparison = compared(words)
        plain, lines = comparison_to_plain(comparison), comparison_lines(comparison, time.time())
    if arguments.json:
        return write_json(plain)
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def _open(words: list[str]) -> int:
    """Show the report of a run in a browser, or print its path where there is no screen."""
    one = run_named(words[0] if words else "last")
    report, recording = one.text("report"), one.text("recording")
    if not report and recording:
        raise GpulseError(f"run {one.short} has no report.", f"Write one: gpulse report {recording} -o report.html.")
    if not report:
        raise GpulseError(f"run {one.short} has no report.", "Next time: gpulse run --report run.html -- COMMAND.")
    if not os.path.exists(report):
        raise GpulseError(f"{report} is no longer there.")
    if report.endswith((".html", ".htm")) and any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        import webbrowser
        from pathlib import Path

        if webbrowser.open(Path(report).as_uri()):
            return 0
    sys.stdout.write(f"{report}\n")
    return 0


VERB = Verb(
    "runs",
    (
        Option("words", value="[ACTION] [RUN …]", many=True, default=(), complete=ACTIONS, open=True,
               help="What to do: list, show RUN, compare [RUN] [RUN] or open RUN. A RUN is an id, the start of one, last, or last~1 for "
                    "the one before; compare with one RUN uses the last run of the same command before it (default: list)"),
        Option("--number", "-n", value="N", default=20, help="Number of runs to list; 0 for all (default: 20)",
               parse=whole("--number", 0, 10**15, "a number of runs", "try --number 20, or 0 for all.")),
        *(JSON, DEMO_PAST, HELP),
    ),
    with_past(run, "runs", ""),
    (
        ("gpulse runs", "list the newest runs"),
        ("gpulse runs show last", "show everything that is known about the last run"),
        ("gpulse runs compare", "compare the last run with the one before of the same command"),
        ("gpulse runs compare last~3 4f2a", "compare any two runs"),
        ("gpulse runs open last", "open the report of the last run in a browser"),
    ),
)  # fmt: skip


def list_lines(runs: Sequence[KeptRun]) -> list[str]:
    """Return a table of runs."""
    from ...present.theme import size_of

    if not runs:
        return ["No runs yet: `gpulse run -- COMMAND` and programs with a Monitor are listed here when they have run."]
    return runs_table([(run, result(run)) for run in runs], size_of(sys.stdout, os.environ)[0], time.time())


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


def comparison_to_plain(comparison: RunComparison) -> dict[str, Any]:
    """Return a comparison as plain data: `change` 0.07 is 7 % slower, `margin` is how far that may be off."""
    figures = [{"figure": each.title, "before": each.before, "after": each.after} for each in differences(comparison)]
    return {"schema": 1, **comparison.to_plain(), "text": comparison_text(comparison, time.time()), "figures": figures}
