"""`gpulse doctor`: what was found, what is missing and how to get it."""

from __future__ import annotations

import os
import sys

from ..main import VERBS
from ..options import COLOR, DEMO, HELP, SOURCE, Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments


def run(arguments: Arguments) -> int:
    """Print the checks; exit 3 when no GPU can be read, so that scripts can ask."""
    from ...present.terminal import size_of, theme_for
    from ...sources.registry import make_source
    from ...surfaces.doctor import diagnose, lines, report
    from ..session import source_name

    checks = diagnose(make_source(source_name(arguments)))
    if arguments.report:
        sys.stdout.write(report(checks) + "\n")
    else:
        theme = theme_for(sys.stdout, arguments.color, os.environ)
        sys.stdout.write("\n".join(lines(checks, theme, size_of(sys.stdout, os.environ)[0])) + "\n")
    return 3 if any(check.about == "gpus" and check.level == "fail" for check in checks) else 0


VERB = Verb(
    "doctor",
    VERBS["doctor"],
    (
        Option(
            "--report", default=False, help="As Markdown to paste into an issue, with names, UUIDs and serials masked."
        ),
        SOURCE,
        DEMO,
        COLOR,
        HELP,
    ),
    run,
    (("gpulse doctor", "why is something missing?"), ("gpulse doctor --report", "for a bug report")),
)
