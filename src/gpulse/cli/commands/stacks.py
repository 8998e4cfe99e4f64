"""`gpulse stacks`: print what a Python process executes now."""

from __future__ import annotations

import sys

from ..options import COLOR, DEMO_REFUSED, HELP, JSON, THEME, Arguments, Option, Verb, refuse_demo, whole
from ..output import write_json
from ..session import terminal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.stacks import Stack
    from ...sources.processes import LinuxMachine


def run(arguments: Arguments) -> int:
    """Print the stacks of the process and, with --children, of its descendants."""
    refuse_demo("stacks", arguments)
    from ...sources.processes import LinuxMachine
    from ...sources.py_spy import StacksUnavailable, check_own, read_stacks

    pid = whole("stacks", 1, 10**15, "a process id", "write it as gpulse stacks 4242.")(arguments.pid or "")
    machine = LinuxMachine()
    found: dict[int, list[Stack]] = {}
    problems: dict[int, StacksUnavailable] = {}
    for one in machine.family(pid) if arguments.children else [pid]:
        try:
            if not arguments.any_user:
                check_own(one)
            found[one] = read_stacks(one, native=arguments.native)
        except StacksUnavailable as error:
            problems[one] = error
            if error.lasting:
                break
    if not found:
        raise problems[pid]
    _print(arguments, found, {one: str(problem) for one, problem in problems.items()}, machine)
    return 0


def _print(
    arguments: Arguments, found: dict[int, list[Stack]], problems: dict[int, str], machine: LinuxMachine
) -> None:
    from ...present.code import plain_stacks, stack_lines
    from ...present.text import clean

    commands = {pid: facts.values.get("command", "") for pid, facts in machine.processes([*found], frozenset()).items()}
    if arguments.json:
        import time

        processes = [
            {"pid": pid, "command": commands.get(pid, ""), "threads": plain_stacks(stacks)}
            for pid, stacks in found.items()
        ]
        told = {str(pid): why for pid, why in problems.items()}
        write_json({"schema": 1, "time": time.time(), "processes": processes, "problems": told})
        return
    theme, columns = terminal_of(arguments)
    columns = max(40, columns) if sys.stdout.isatty() else 10_000
    for at, (pid, stacks) in enumerate(found.items()):
        heading = f"{pid}  {clean(str(commands.get(pid, '')))}"
        lines = [line.render(theme, columns) for line in stack_lines(stacks)]
        sys.stdout.write("\n" * bool(at) + "\n".join([theme.paint(heading, "label"), *lines]) + "\n")


VERB = Verb(
    "stacks",
    (
        Option("pid", value="PID", help="Process to read; it is not paused"),
        Option("--children", "-c", help="Also read its descendants: ranks, data loader workers"),
        Option("--native", help="Also show C and C++ functions; pauses the process while it is read"),
        Option("--any-user", help="As root, also read processes of other users"),
        *(JSON, COLOR, THEME, DEMO_REFUSED, HELP),
    ),
    run,
    (
        ("gpulse stacks 4242", "see where a program that seems to hang is"),
        ("gpulse stacks 4242 --children", "the same for torchrun and all its ranks"),
    ),
)  # fmt: skip
