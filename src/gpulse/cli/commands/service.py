"""`gpulse service`: run `gpulse serve` under systemd."""

from __future__ import annotations

import sys

from ...errors import GpulseError, UsageError
from ..options import DEMO_UNUSED, HELP, Arguments, Option, Verb, checked_action

ACTIONS = ("show", "install", "uninstall")


def run(arguments: Arguments) -> int:
    """Show the unit, write and start it, or stop and remove it."""
    from ...surfaces.fleet.service import uninstall, unit_path, unit_text

    action = checked_action("service", arguments.action or "show", ACTIONS)
    if arguments.demo and action != "show":
        raise UsageError(f"service: {action} changes this machine;", "leave out --demo.")
    path = unit_path(arguments.user)
    if action == "uninstall":
        uninstall(path, arguments.user)
        sys.stdout.write(f"stopped gpulse and removed {path}\n")
        return 0
    text = unit_text(arguments.user, arguments.listen)
    sys.stdout.write(text)
    return 0 if action == "show" else _install(path, text, arguments)


def _install(path: str, text: str, arguments: Arguments) -> int:
    from ...plugins import need_extra
    from ...surfaces.fleet.service import check_program, install

    need_extra("the service", "serve", "uvicorn", "starlette")
    if not arguments.user:
        check_program()
    sys.stdout.flush()
    if not arguments.yes and not _agreed(path):
        return 1
    install(path, text, arguments.user)
    sys.stdout.write(f"wrote {path}; gpulse is running, now and after every boot\n")
    return 0


def _agreed(path: str) -> bool:
    if not sys.stdin.isatty():
        raise GpulseError("service install asks before it writes, and there is no terminal;", "use --yes.")
    sys.stderr.write(f"Write this to {path} and start it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


VERB = Verb(
    "service",
    (
        Option("action", value="[ACTION]", complete=ACTIONS,
               help="What to do: show (print the unit), install (write and start it) or uninstall (default: show)"),
        Option("--user", help="A service of this user instead of the machine (no root needed)"),
        Option("--listen", value="ADDRESS[:PORT]",
               help="Address to listen on; 0.0.0.0 lets Prometheus on another machine connect, with the token (default: 127.0.0.1:9440)"),
        Option("--yes", help="Install without asking"),
        *(DEMO_UNUSED, HELP),
    ),
    run,
    (
        ("gpulse service", "print the systemd unit"),
        ("sudo gpulse service install --listen 0.0.0.0", "serve the page and /metrics to other machines"),
        ("gpulse service install --user", "run it as this user"),
    ),
)  # fmt: skip
