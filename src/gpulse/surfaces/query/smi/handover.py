"""Calls that only NVIDIA's own nvidia-smi answers: which of them just read the machine, and how they are handed to it."""

from __future__ import annotations

import os
import sys

from ....errors import GpulseError
from .failure import UNAVAILABLE, SmiExit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

# Subcommands that gpulse does not implement, with the options that are known to read; a call with any other option is not handed over.
READING = {
    "base-clocks": "",
    "boost-slider": "-l --list",
    "c2c": "-s --status",
    "clocks": "--sync-boost-list",
    "compute-policy": "-l --list",
    "conf-compute": "-gc --get-cpu-caps -gg --get-gpus-caps -d --get-devtools-mode -e --get-environment -f --get-cc-feature -gm "
    "--get-mem-size-info -grs --get-gpus-ready-state -gkr --get-key-rotation-threshold-info -mgm --get-multigpu-mode -q "
    "--query-conf-compute",
    "drain": "-q --query -p --pciid",
    "encodersessions": "-l --loop",
    "fbcsessions": "-l --loop",
    "gpm": "-g --get-stream-state",
    "pci": "-gErrCnt --getErrorCounters -gCnt --getCounters",
    "power-hint": "-l --list-info -gc --graphics-clock -t --temperature -p --profile",
    "power-profiles": "-l --list -ld --list-detailed -gr --get-requested -ge --get-enforced",
    "power-smoothing": "",
    "prm": "-l --list",
    "replay": "-f --filename -b --begin -e --end",
    "vgpu": "-q --query -l --loop -s --supported -c --creatable -v --verbose -u --utilization -p -es --encodersessions -fs "
    "--fbcsessions",
}
_ALWAYS = frozenset({"-h", "--help", "-i", "--id"})
_GUARD = "GPULSE_SMI_HANDED_OVER"  # set for the program that is started: if that is gpulse once more, it does not start it again


class Unimplemented(GpulseError):
    """A call that reads and that gpulse does not implement: `reason` continues the sentence "gpulse smi ..."."""

    def __init__(self, words: Sequence[str], reason: str = "") -> None:
        import shlex

        super().__init__(f"gpulse smi {reason or f'does not implement `{shlex.join(words)}`'}")
        self.words = words


def unimplemented(words: Sequence[str], reading: Iterable[str]) -> GpulseError:
    """Return what ends a call that gpulse does not implement: the refusal if it has an option that is not among the `reading` ones."""
    flags = {word.partition("=")[0] for word in words if word.startswith("-")}
    return Unimplemented(words) if flags <= _ALWAYS.union(reading) else changes_state(words)


def changes_state(words: Sequence[str]) -> SmiExit:
    """Return the refusal of a call that would change the machine."""
    return _refusal(f"gpulse only watches and changes nothing; run `{real_command(words)}` instead.")


def refused(words: Sequence[str]) -> SmiExit:
    """Return the refusal of a subcommand that changes the machine, whatever its options."""
    if words[0] != "daemon":
        return changes_state(words)
    return _refusal(
        f"gpulse smi has no `daemon`; `gpulse record` keeps samples in a file, or run `{real_command(words)}`."
    )


def hand_over(call: Unimplemented, source: str) -> SmiExit:
    """Become the real nvidia-smi, with its input, output and exit code; return the refusal where that is not possible.

    nvidia-smi answers for this machine only, so a call about another source is refused.
    """
    if source not in ("auto", "nvidia"):
        return _refusal(f"{call.message}, and nvidia-smi cannot answer for the source {source}.")
    path = "" if _GUARD in os.environ else _programs()[1]
    if not path:
        return _refusal(f"{call.message}, and no nvidia-smi is on PATH.")
    try:
        _become(path, call.words)
    except OSError as error:
        return _refusal(f"{call.message}, and {path} cannot be started: {error.strerror}.")


def _become(path: str, words: Sequence[str]) -> NoReturn:
    import signal

    sys.stdout.flush()
    sys.stderr.flush()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python; a program expects their defaults
        signal.signal(number, signal.SIG_DFL)
    os.execve(path, ["nvidia-smi", *words], os.environ | {_GUARD: "1"})


def _refusal(text: str) -> SmiExit:
    return SmiExit(text, UNAVAILABLE, own=True)


def real_command(words: Sequence[str]) -> str:
    """Return the command line for NVIDIA's own program, by its path where a link to gpulse hides it."""
    import shlex

    hidden, path = _programs()
    return shlex.join([path or "/usr/bin/nvidia-smi" if hidden else "nvidia-smi", *words])


def _programs() -> tuple[bool, str]:
    """Return whether gpulse comes first on PATH as nvidia-smi, and the path of the first nvidia-smi that is not gpulse or ""."""
    ours = False
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "nvidia-smi")
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            continue
        if not is_ours(path):
            return ours, path
        ours = True
    return ours, ""


def is_ours(path: str) -> bool:
    """Tell whether a program is a link or a script that starts gpulse."""
    try:
        with open(path, "rb") as file:
            return b"gpulse" in file.read(512)
    except OSError:
        return False
