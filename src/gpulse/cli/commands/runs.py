"""`gpulse runs`: list, show, compare and open past runs."""

from __future__ import annotations

import os
import sys

from ...errors import GpulseError, UsageError
from ..main import VERBS
from ..options import DEMO_PAST, HELP, Option, Verb
from ..session import with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments

ACTIONS = ("list", "show", "compare", "open")
_MOST = {"list": 0, "show": 1, "compare": 2, "open": 1}


def run(arguments: Arguments) -> int:
    """Do one of the four with the runs that are named."""
    from ...present.terminal import size_of
    from ...store.runs import run_named, runs_folder
    from ...surfaces import runs

    action, *words = arguments.words or ["list"]
    if action not in ACTIONS:
        raise UsageError(
            f"runs: {action!r} is none of {', '.join(ACTIONS)};", f"write it as gpulse runs show {action}."
        )
    if len(words) > _MOST[action]:
        raise UsageError(f"runs: {action} takes at most {_MOST[action]} runs, not {len(words)};", "leave some out.")
    if runs_folder() is None:
        raise GpulseError("runs are not kept here: GPULSE_RUNS is off.", "Unset it to keep them.")
    columns = size_of(sys.stdout, os.environ)[0]
    if action == "open":
        return _open(words)
    if action == "list":
        found = runs.listed(arguments.number)
        plain, lines = runs.list_to_plain(found), runs.list_lines(found, columns)
    elif action == "show":
        one = run_named(words[0] if words else "last")
        plain, lines = runs.to_plain(one), runs.show_lines(one)
    else:
        comparison = runs.compared(words)
        plain, lines = runs.comparison_to_plain(comparison), runs.compare_lines(comparison)
    if arguments.json:
        import json

        lines = [json.dumps(plain, indent=2, allow_nan=False)]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def _open(words: list[str]) -> int:
    """Show the report of a run in a browser, or print its path where there is no screen."""
    from ...store.runs import run_named

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


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--number: {text!r} is not a number of runs;", "try --number 20, or 0 for all.")
    return int(text)


VERB = Verb(
    "runs",
    VERBS["runs"],
    (
        Option("words", value="[ACTION] [RUN …]", many=True, default=(), complete=ACTIONS, open=True,
               help="What to do: list, show RUN, compare [RUN] [RUN] or open RUN. A RUN is an id, the start of one, last, or last~1 for "
                    "the one before; compare with one RUN uses the last run of the same command before it (default: list)"),
        Option("--number", "-n", value="N", default=20, parse=_number, help="Number of runs to list; 0 for all (default: 20)"),
        Option("--json", default=False, help="Print JSON"),
        DEMO_PAST,
        HELP,
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
