"""`gpulse doctor`: check the machine and explain what is missing and how to get it."""

from __future__ import annotations

import os
import sys

from ..main import VERBS
from ..options import COLOR, DEMO, HELP, SOURCE, Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments


def run(arguments: Arguments) -> int:
    """Print the checks; return 3 if no GPU can be read, so that scripts can test for it."""
    from ...present.terminal import size_of, theme_for
    from ...settings.check import settings_check
    from ...sources.registry import make_source
    from ...surfaces.doctor import diagnose, lines, plugin_checks, report
    from ..session import source_name

    checks = [*diagnose(make_source(source_name(arguments))), settings_check(os.environ), *plugin_checks()]
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
            "--report",
            default=False,
            help="Print Markdown for a bug report, with host names, UUIDs and serial numbers masked",
        ),
        SOURCE,
        DEMO,
        COLOR,
        HELP,
    ),
    run,
    (("gpulse doctor", "find out why a value is missing"), ("gpulse doctor --report", "create a bug report")),
)
