"""`gpulse top`: the live screen."""

from __future__ import annotations

from ..main import VERBS
from ..options import COMMON, THEME, Option, Verb, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments


def run(arguments: Arguments) -> int:
    """Open the screen; where there is no terminal, write a line at each sample instead."""
    from ..screen import show_screen
    from ..session import open_sampler

    show_screen(arguments, lambda wanted: open_sampler(arguments, wanted), arguments.interval)
    return 0


VERB = Verb(
    "top",
    VERBS["top"],
    (
        Option("--interval", "-n", value="SECONDS", parse=seconds("--interval", 0.1, 3600),
               help="Look every so many seconds; 1 unless the settings say otherwise."),
        Option("--readonly", default=False, help="No signals can be sent from the screen."),
        THEME,
        *COMMON,
    ),
    run,
    (("gpulse top", "the live screen; ? lists its keys"), ("gpulse top --source replay:run.ndjson.gz", "a recording")),
)  # fmt: skip
