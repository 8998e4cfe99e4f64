"""`gpulse completion`: a script for a shell to source."""

from __future__ import annotations

import sys

from ...errors import UsageError
from ..main import VERBS
from ..options import HELP, Option, Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..options import Arguments

SHELLS = ("bash", "zsh", "fish")


def run(arguments: Arguments) -> int:
    """Print the script."""
    if arguments.shell not in SHELLS:
        given = f"{arguments.shell!r} is none of them." if arguments.shell else "none was given."
        raise UsageError(f"completion needs a shell, bash, zsh or fish: {given}", "Try `gpulse completion bash`.")
    from ..completion import script

    sys.stdout.write(script(arguments.shell))
    return 0


VERB = Verb(
    "completion",
    VERBS["completion"],
    (Option("shell", value="SHELL", complete=SHELLS, help="bash, zsh or fish."), HELP),
    run,
    (
        ('eval "$(gpulse completion bash)"', "in ~/.bashrc"),
        ("gpulse completion fish | source", "in config.fish"),
        ("source <(gpulse completion zsh)", "in ~/.zshrc"),
    ),
)
