"""`gpulse doctor`: check the machine and explain what is missing and how to get it."""

from __future__ import annotations

import os
import sys

from ...errors import UsageError
from ..options import COLOR, DEMO, HELP, SOURCE, THEME, Arguments, Option, Verb
from ..session import source_name, terminal_of


def run(arguments: Arguments) -> int:
    """Print the checks; return 3 if no GPU can be read, so that scripts can test for it."""
    if arguments.capture:
        if arguments.demo:
            raise UsageError("doctor: --capture records this machine;", "leave out --demo.")
        return _capture(arguments.capture)
    from ...settings.effective import settings_check
    from ...sources import kubelet
    from ...sources.py_spy import examine
    from ...sources.registry import make_source
    from ...surfaces.doctor import diagnose, lines, plugin_checks, report

    checks = [*diagnose(make_source(source_name(arguments))), settings_check(os.environ), examine(), *plugin_checks()]
    checks += [] if arguments.demo else kubelet.examine()
    if arguments.report:
        sys.stdout.write(report(checks) + "\n")
    else:
        sys.stdout.write("\n".join(lines(checks, *terminal_of(arguments))) + "\n")
    return 3 if any(check.about == "gpus" and check.level == "fail" for check in checks) else 0


def _capture(folder: str) -> int:
    """Record the machine's GPU files into a new folder and print what is in it."""
    from ...sources.capture import Capture

    if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise UsageError(f"--capture: {folder!r} already exists and is not an empty folder;", "name a new folder.")
    capture = Capture(folder, os.environ.get("GPULSE_ROOT", ""))
    capture.record()
    cards = ", ".join(capture.cards) or "no GPU of AMD, Intel or NVIDIA"
    sys.stdout.write(
        f"Recorded {capture.files} files ({capture.size // 1024} KiB) in {folder}: {cards}.\n"
        "Contents: kernel files of the GPUs (sysfs, hwmon, KFD), GPU memory and engine time per process id.\n"
        "Masked: serial numbers and unique ids. Not included: process names, users, command lines, host name.\n"
        f"Read it back with --source amd:{folder} (intel:, jetson:), or smi:{folder}/nvidia-smi.xml.\n"
    )
    return 0 if capture.cards else 3


VERB = Verb(
    "doctor",
    (
        Option("--report", help="Print Markdown for a bug report, with host names, UUIDs and serial numbers masked"),
        Option("--capture", value="DIR", complete="files",
               help="Record this machine's GPU files in a new folder, masked, to attach to a bug report"),
        *(SOURCE, DEMO, COLOR, THEME, HELP),
    ),
    run,
    (
        ("gpulse doctor", "find out why a value is missing"),
        ("gpulse doctor --report", "create a bug report"),
        ("gpulse doctor --capture gpus", "record the GPUs' files for a bug report"),
    ),
)  # fmt: skip
