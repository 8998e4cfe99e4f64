"""What gpulse refuses because it changes the machine, or because it has no such answer, and the command to run instead."""

from __future__ import annotations

from .failure import UNAVAILABLE, SmiExit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Options that change the state of a GPU or unit; True where a value follows.
CHANGES = {
    "-pm": True, "--persistence-mode": True, "-e": True, "--ecc-config": True, "-p": True, "--reset-ecc-errors": True,
    "-c": True, "--compute-mode": True, "--gom": True, "-r": False, "--gpu-reset": False, "-vm": True, "--virt-mode": True,
    "-lgc": True, "--lock-gpu-clocks": True, "-m": True, "--mode": True, "-rgc": False, "--reset-gpu-clocks": False,
    "-lmc": True, "--lock-memory-clocks": True, "-rmc": False, "--reset-memory-clocks": False,
    "-lmcd": True, "--lock-memory-clocks-deferred": True, "-rmcd": False, "--reset-memory-clocks-deferred": False,
    "-ac": True, "--applications-clocks": True, "-rac": False, "--reset-applications-clocks": False,
    "-pl": True, "--power-limit": True, "-sc": True, "--scope": True, "-cc": True, "--cuda-clocks": True,
    "-am": True, "--accounting-mode": True, "-caa": False, "--clear-accounted-apps": False,
    "-acp": True, "--applications-clocks-permission": True, "-dm": True, "--driver-model": True, "-fdm": True,
    "--force-driver-model": True, "--auto-boost-default": True, "--auto-boost-permission": True,
    "-mig": True, "--multi-instance-gpu": True, "-gtt": True, "--gpu-target-temp": True,
    "-den": True, "--dram-encryption": True, "--set-hostname": True, "-t": True, "--toggle-led": True,
}  # fmt: skip
# The same under `mig` and `nvlink`.
MIG_CHANGES = frozenset({
    "-cgi", "--create-gpu-instance", "-dgi", "--destroy-gpu-instance", "-cci", "--create-compute-instance",
    "-dci", "--destroy-compute-instance", "-C", "--default-compute-instance",
})  # fmt: skip
NVLINK_CHANGES = frozenset({
    "-sc", "--setcontrol", "-r", "--resetcounters", "-re", "--reseterrorcounters", "-sLowPwrThres",
    "--setLowPowerThreshold", "-sBwMode", "--setBandwidthMode", "-sLWidth", "--setLinkWidth",
})  # fmt: skip
# Commands of nvidia-smi that gpulse has no answer to, with what it offers instead.
INSTEAD = {
    "daemon": "`gpulse record` keeps samples in a file",
    "replay": "`gpulse replay` plays a recording made by `gpulse record`",
}


def changes_state(words: Sequence[str]) -> SmiExit:
    """Return the refusal of a command that would change the machine."""
    return SmiExit(
        f"gpulse only watches and changes nothing; run `{real_command(words)}` instead.", UNAVAILABLE, own=True
    )


def unknown_command(words: Sequence[str]) -> SmiExit:
    """Return the refusal of a command that gpulse does not have."""
    hint = f"{INSTEAD[words[0]]}, or run" if words[0] in INSTEAD else "run"
    return SmiExit(f"gpulse smi has no `{words[0]}`; {hint} `{real_command(words)}`.", UNAVAILABLE, own=True)


def unreadable(words: Sequence[str]) -> SmiExit:
    """Return the refusal of a question that NVML has no call for."""
    return SmiExit(f"the driver tells this only to its own tools; run `{real_command(words)}`.", UNAVAILABLE, own=True)


def real_command(words: Sequence[str]) -> str:
    """Return the command line for NVIDIA's own program, by its path where a link to gpulse hides it."""
    import shlex

    return shlex.join([_real_program(), *words])


def _real_program() -> str:
    """Return the first nvidia-smi of PATH that is not gpulse, by its path if gpulse's comes before it."""
    import os

    ours = False
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "nvidia-smi")
        if not os.access(path, os.X_OK):
            continue
        if not is_ours(path):
            return path if ours else "nvidia-smi"
        ours = True
    return "/usr/bin/nvidia-smi" if ours else "nvidia-smi"


def is_ours(path: str) -> bool:
    """Tell whether a program is a link or a script that starts gpulse."""
    try:
        with open(path, "rb") as file:
            return b"gpulse" in file.read(512)
    except OSError:
        return False
