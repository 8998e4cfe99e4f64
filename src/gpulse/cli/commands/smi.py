"""`gpulse smi`: nvidia-smi's command line, output and exit codes; also what runs under the name nvidia-smi."""

from __future__ import annotations

import os
import sys

from ...errors import GpulseError, SourceUnavailable, UsageError
from ..options import DEMO, SOURCE, Arguments, Option, Verb
from ..output import Output
from ..session import open_sampler, source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...surfaces.query.views import View
    from ..output import Output as _Output

_PATIENCE = 0.1  # seconds between the two samples that a first value over time needs


def run(arguments: Arguments) -> int:
    """Answer as nvidia-smi does, or let the real nvidia-smi answer what gpulse does not implement."""
    from ...surfaces.query.smi.failure import SmiExit, no_driver
    from ...surfaces.query.smi.handover import Unimplemented, hand_over

    words = _own_options(arguments)
    if arguments.install is not None:
        return _install(arguments.install)
    try:
        return _answer(arguments, words)
    except SmiExit as end:
        return _end(end)
    except Unimplemented as call:
        return _end(hand_over(call, source_name(arguments)))
    except SourceUnavailable as error:
        sys.stderr.write(f"gpulse: {error}\n")
        return _end(no_driver(error))


def _end(end: GpulseError) -> int:
    own = getattr(end, "own", False)
    (sys.stderr if own else sys.stdout).write(f"{'gpulse: ' if own else ''}{end.message}\n")
    return end.exit_code


def _own_options(arguments: Arguments) -> list[str]:
    """Take gpulse's own options out of the words and return nvidia-smi's."""
    words: list[str] = []
    given = iter(arguments.words)
    for word in given:
        flag, equals, value = word.partition("=")
        if flag in ("--source", "--install"):
            value = value if equals else next(given, "")
            if not value:
                raise UsageError(f"smi: {flag} needs a value.", "`gpulse smi --help` lists the options.")
            setattr(arguments, flag[2:], value)
        elif word == "--demo":
            arguments.demo = True
        else:
            words.append(word)
    return words


def _answer(arguments: Arguments, words: Sequence[str]) -> int:
    from ...surfaces.query.smi.grammar import parse

    request = parse(words)
    if "--help" in request:
        from ..help import verb_help

        sys.stdout.write(f"{verb_help(VERB)}\n")
        return 0
    helped = next((name for name in request.given if name.startswith("--help-query")), "")
    if helped:
        from ...surfaces.query.fields import help_lines

        sys.stdout.write("\n".join(help_lines(helped.replace("--help-", "--"))) + "\n")
        return 0
    from ...surfaces.query.smi.answers import view_of, view_of_command

    return _show(arguments, view_of_command(request.command, request.rest) if request.command else view_of(request))


def _show(arguments: Arguments, view: View) -> int:
    """Print the view once or repeatedly, as it was asked for."""
    from ...surfaces.query.smi.answers import gpus_named

    arguments.gpu = None
    sampler = open_sampler(arguments, view.wanted, slow_every=min(1.0, view.interval or 1.0), whole=True)
    output = None
    try:
        if view.ids is not None:
            sampler.choose(gpus_named(sampler.identities(), view.ids))
        output = _output(view.filename, private=bool(view.wanted.process))
        sampler.settle()
        output.write(view.head())
        code = 0
        for snapshot in _samples(sampler, view):
            output.write(view.lines(snapshot))
            code = _health(snapshot)
        return code
    except KeyboardInterrupt:
        return 130 if view.interval is None else 0
    finally:
        if output is not None:
            output.close()
        sampler.close()


def _samples(sampler: Sampler, view: View) -> Iterator[Snapshot]:
    if view.compares:
        view.note(sampler.read())
        sampler.clock.sleep(_PATIENCE)
        sampler.hurry()
    if view.interval is None or view.count == 1:
        yield sampler.read()
        return
    for number, snapshot in enumerate(sampler.stream(view.interval), 1):
        yield snapshot
        if number == view.count:
            return


def _output(filename: str | None, *, private: bool) -> _Output:
    from ...surfaces.query.smi.failure import OTHER, SmiExit

    try:
        return Output(filename, private=private)
    except GpulseError:
        raise SmiExit(f"Failed to create the log file {filename}\n", OTHER) from None


def _health(snapshot: Snapshot) -> int:
    """Return the exit code, which reports a lost GPU whatever else was printed."""
    from ...surfaces.query.smi.failure import LOST, lost

    gone = [gpu.pci_bus_id or f"{gpu.index:.0f}" for gpu in snapshot.gpus if gpu.state == "lost"]
    for name in gone:
        sys.stderr.write(f"{lost(name)}\n")
    return LOST if gone else 0


def _install(folder: str) -> int:
    """Put a program called nvidia-smi into a folder: a link to gpulse, or a script where gpulse has no program."""
    from ...surfaces.query.smi.handover import is_ours

    path = os.path.join(folder, "nvidia-smi")
    program = os.path.realpath(sys.argv[0])
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.lexists(path) and not is_ours(path):
            raise UsageError(f"{path} already exists and was not created by gpulse.", "Choose another folder.")
        _write(path, program if os.path.basename(program) in ("gpulse", "nvidia-smi") else "")
    except OSError as error:
        raise GpulseError(f"{path} cannot be written: {error.strerror}.") from None
    places = os.environ.get("PATH", "").split(os.pathsep)
    first = next((place for place in places if os.access(os.path.join(place, "nvidia-smi"), os.X_OK)), "")
    sys.stdout.write(f"{path} now runs `gpulse smi`.\n")
    if os.path.realpath(first) != os.path.realpath(folder):
        sys.stdout.write(f"Put {folder} first in PATH to use it: export PATH={folder}:$PATH\n")
    return 0


def _write(path: str, program: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
    if program:
        os.symlink(program, path)
        return
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nPYTHONPATH="{package}:$PYTHONPATH" exec "{sys.executable}" -m gpulse smi "$@"\n')
    os.chmod(path, 0o755)


VERB = Verb(
    "smi",
    (
        Option("args", value="[ARGS]", many=True,
               help="Arguments of nvidia-smi: options, or dmon, pmon, topo, nvlink or mig; other calls that only read are handed to "
                    "the real nvidia-smi (default: none, print the table)"),
        Option("--list-gpus", "-L", help="List GPUs and MIG instances with their UUIDs"),
        Option("--query", "-q", help="Print all details of each GPU; with -x as XML, with -d only some sections"),
        Option("--query-gpu", value="FIELDS", help="GPU fields to print as CSV; see --help-query-gpu"),
        Option("--query-compute-apps", value="FIELDS", help="Fields to print for each compute process as CSV"),
        Option("--format", value="FORMAT", help="Output format: csv[,noheader][,nounits]"),
        Option("--id", "-i", value="LIST", help="GPUs to use: index, serial number, UUID or PCI bus id (default: all)"),
        Option("--loop", "-l", value="SECONDS", optional="5", help="Repeat every SECONDS (default: 5)"),
        Option("--loop-ms", "-lms", value="MS", help="Repeat every MS milliseconds"),
        Option("--filename", "-f", value="FILE", complete="files", help="Write to FILE instead of standard output"),
        Option("--version", help="Print the versions of the driver, NVML and CUDA"),
        Option("--install", value="DIR", complete="files", help="Install a program named nvidia-smi in DIR that runs `gpulse smi`"),
        *(SOURCE, DEMO, Option("--help", "-h", help="Show this help and exit")),
    ),
    run,
    (
        ("gpulse smi", "print nvidia-smi's table"),
        ("gpulse smi dmon -s pucvmet -c 5", "print scrolling columns"),
        ("gpulse smi --install ~/bin", "install gpulse as nvidia-smi in ~/bin"),
    ),
    raw=True,
)  # fmt: skip
