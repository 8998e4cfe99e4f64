"""`gpulse top`: the live screen."""

from __future__ import annotations

from ..main import VERBS
from ..options import COMMON, Option, Verb, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments


def run(arguments: Arguments) -> int:
    """Show the live screen, or write one line per sample if stdout is not a terminal."""
    from ..screen import show_screen
    from ..session import open_sampler

    show_screen(arguments, lambda wanted: open_sampler(arguments, wanted), arguments.interval)
    return 0


VERB = Verb(
    "top",
    VERBS["top"],
    (
        Option("--interval", "-n", value="SECONDS", parse=seconds("--interval", 0.1, 3600),
               help="Time between samples, in seconds (default: the saved setting, else 1)"),
        Option("--readonly", default=False, help="Disable sending signals to processes"),
        *COMMON,
    ),
    run,
    (("gpulse top", "press ? for the keys"), ("gpulse top --source replay:run.ndjson.gz", "show a recording")),
)  # fmt: skip
