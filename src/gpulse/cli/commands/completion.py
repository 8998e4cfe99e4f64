"""`gpulse completion`: print a completion script for a shell."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import DEMO_UNUSED, HELP, Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments

SHELLS = ("bash", "zsh", "fish")


def run(arguments: Arguments) -> int:
    """Print the script."""
    if arguments.shell not in SHELLS:
        problem = f"unknown shell {arguments.shell!r}" if arguments.shell else "no shell given"
        raise UsageError(f"completion: {problem};", "choose bash, zsh or fish.")
    from ..completion import script

    sys.stdout.write(script(arguments.shell))
    return 0


VERB = Verb(
    "completion",
    VERBS["completion"],
    (
        Option("shell", value="SHELL", complete=SHELLS, help="Shell to print the script for: bash, zsh or fish"),
        DEMO_UNUSED,
        HELP,
    ),
    run,
    (
        ('eval "$(gpulse completion bash)"', "in ~/.bashrc"),
        ("gpulse completion fish | source", "in config.fish"),
        ("source <(gpulse completion zsh)", "in ~/.zshrc"),
    ),
)
