"""`gpulse why`: explain what limits each GPU, with evidence and advice."""

from __future__ import annotations

import os
import sys

from ...errors import GpulseError, UsageError
from ...units import parse_duration
from ..main import load
from ..options import COMMON, HISTORY, STACKS, Arguments, Option, Verb, parse, seconds, whole
from ..output import Ending, write_json
from ..session import open_sampler, source_name, terminal_of, theme_of, with_past

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from ...analysis.diagnosis.running import RunningDiagnosis
    from ...model.catalog import Gpu
    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.verdict import Concern, Diagnosis
    from ...monitor.presence import Presence
    from ...sources.base import Machine
    from ...supervision.watch import CodeWatch

_WATCHED = 30.0  # seconds
_INTERVAL = 0.25
_SOON = 0.7  # seconds of samples after which a first answer is shown; the driver's own trace reaches back 14 s
_AGAIN = 2.0  # seconds until the next; judging 8 GPUs over 30 s takes 15 ms
_NOW = 60.0  # seconds that the clocks of two machines may differ
_LISTED_LATER = (
    "skipped",
    "pending",
    "failed",
    "timeout",
)  # why processes are missing in one sample and may be in the next


def run(arguments: Arguments) -> int:
    """Collect samples, diagnose them and print the result."""
    from ...analysis.concerns import concerns
    from ...analysis.diagnosis.running import RunningDiagnosis
    from ...model.verdict import Diagnosis
    from ...sources.registry import make_source

    if arguments.fleet:
        return _fleet(arguments)
    if arguments.since is not None and (arguments.source or getattr(arguments, "for") is not None):
        raise UsageError("why: --since cannot be combined with --for or --source;", "choose one.")
    running = RunningDiagnosis()
    names: dict[int | None, str] = {}
    users: dict[str | None, set[int]] = {}
    machine = make_source(source_name(arguments)).machine
    asked = None if arguments.pid is None else AskedProcess(arguments.pid, machine, arguments)
    code = _code(arguments, machine)
    for snapshot in _samples(arguments, running, code is not None):
        running.add(snapshot)
        names.update({None if gpu.index is None else int(gpu.index): gpu.name or "" for gpu in snapshot.gpus})
        for gpu in snapshot.gpus:
            users.setdefault(gpu.uuid, set()).update(int(one.pid) for one in gpu.all_processes() if one.pid is not None)
        own = None if asked is None else asked.add(snapshot)
        if code is not None:
            code.add(snapshot.time, snapshot.gpus, own)
    if arguments.since is not None:
        running.note(_events(arguments, users))
    diagnosis = running.diagnosis()
    if asked is not None:
        asked.check()
        found_on = [one for one in diagnosis if users.get(one.uuid, set()) & asked.own]
        diagnosis = Diagnosis(found_on, diagnosis.start, diagnosis.end, diagnosis.samples)
    found = concerns(diagnosis)
    live = code is None and machine.real and arguments.since is None and not arguments.no_stacks
    programs = _programs(diagnosis, users) if live else []
    _print(arguments, diagnosis, found, names, code, programs)
    return 1 if arguments.check and found else 0


def _fleet(arguments: Arguments) -> int:
    """Explain what limits the machines of fleet.toml, as `gpulse fleet --why` does."""
    fleet = load("fleet")
    watched = getattr(arguments, "for") or _WATCHED
    demo = ["--demo"] if arguments.demo else []
    return fleet.run(parse(fleet, ["--why", f"{watched:g}", "--interval", "1", "--color", arguments.color, *demo]))


class AskedProcess:
    """The process that was named, and its descendants; `own` are those that were seen on the GPUs.

    A process of a recording or a simulation is none of this computer, so the kernel is not asked about it.
    """

    def __init__(self, pid: int, machine: Machine, arguments: Arguments) -> None:
        from ...sampling.assemble import ProcessFamily
        from ...sources.processes import LinuxMachine

        self._pid = pid
        self._machine = machine if isinstance(machine, LinuxMachine) else None
        self._family = None if self._machine is None else ProcessFamily(pid, self._machine)
        self._live = arguments.since is None and not source_name(arguments).startswith("replay:")
        self._chosen = bool(arguments.gpu)
        self._sampled = False
        self._hidden = ""  # why it is not known which processes use the GPUs
        self.own: set[int] = set()

    def add(self, snapshot: Snapshot) -> frozenset[int] | None:
        """Return those of its processes that are on the GPUs; None if the driver reports PIDs of another namespace.

        Raises as `check` does if the first sample of the present knows all processes and has none of these.
        """
        listed = frozenset(int(one.pid) for gpu in snapshot.gpus for one in gpu.all_processes() if one.pid is not None)
        found = listed & {self._pid} if self._family is None else self._family.members(snapshot)
        self.own.update(found or ())
        self._hidden = _hidden(snapshot)
        if self._live and not self._sampled and all(map(_is_listed, snapshot.gpus)):
            self.check()
        self._sampled = True
        return found

    def check(self) -> None:
        """Raise UsageError if it was on none of the GPUs, GpulseError if that cannot be known."""
        if self.own:
            return
        remedy = "see `gpulse status --processes`."
        if self._machine is not None and self._live and self._machine.parent(self._pid) is None:
            raise UsageError(f"why: process {self._pid} does not exist;", remedy)
        if self._hidden:
            raise GpulseError(
                f"why: the GPUs of process {self._pid} are not known: {self._hidden};", "name GPUs with --gpu."
            )
        raise UsageError(f"why: process {self._pid} does not use {'these GPUs' if self._chosen else 'a GPU'};", remedy)


def _is_listed(gpu: Gpu) -> bool:
    """Return whether the processes of a GPU are in this sample, or will not be in a later one either."""
    return gpu.state == "ok" and gpu.gaps.get("processes") not in _LISTED_LATER


def _hidden(snapshot: Snapshot) -> str:
    """Return why not all processes on the GPUs are known; empty if they are."""
    for problem in snapshot.problems:
        if problem.source == "processes":
            return problem.message.rstrip(".")
    for gpu in snapshot.gpus:
        if gap := gpu.gaps.get("processes") if gpu.state == "ok" else gpu.state:
            return f"the processes on GPU {gpu.index:.0f} cannot be read ({gap})"
    return ""


def _code(arguments: Arguments, machine: Machine) -> CodeWatch | None:
    """Return what names the lines of code of a process that is watched now; None where nobody asked for that."""
    if arguments.pid is None or arguments.no_stacks or arguments.since is not None or not machine.real:
        return None
    from ...supervision.watch import CodeWatch

    return CodeWatch(arguments.pid)


def _samples(arguments: Arguments, running: RunningDiagnosis, traced: bool) -> Iterable[Snapshot]:
    name = source_name(arguments)
    if arguments.since is not None:
        return _chosen(arguments, _remembered(arguments.since, arguments.history))
    if name.startswith("replay:"):
        return _chosen(arguments, _recorded(name.removeprefix("replay:"), getattr(arguments, "for")))
    return _watched(arguments, running, traced)


def _watched(arguments: Arguments, running: RunningDiagnosis, traced: bool) -> Iterator[Snapshot]:
    """Yield samples for the requested time, with a progress bar and what `running` has found so far; Ctrl-C ends it early.

    `traced`: with the driver's own samples of power, which tell when in a second the GPU waited.
    """
    from ...analysis.diagnosis.window import WANTED
    from ...model.catalog import TIMED_POWER
    from ...model.select import Wanted
    from ...present.explanation import Progress, so_far
    from ...present.theme import capable, size_of

    long = getattr(arguments, "for") or _WATCHED
    theme = theme_of(arguments, sys.stderr)
    progress = Progress(sys.stderr, theme, long, capable(sys.stderr, os.environ) and not arguments.json)
    wanted = WANTED | Wanted(gpu=TIMED_POWER) if traced else WANTED
    sampler = open_sampler(arguments, wanted, slow_every=1.0)
    try:
        sampler.settle()
        begun, found, due = sampler.clock.monotonic(), "", _SOON  # the time of a sample goes back if the clock is set
        with Ending() as ending:
            for snapshot in ending.until_told(sampler.stream(arguments.interval)):
                passed = sampler.clock.monotonic() - begun
                if progress.live and passed >= due:
                    found, due = so_far(running.diagnosis(), size_of(sys.stderr, os.environ)[0] - 9), passed + _AGAIN
                progress.show(passed, len(snapshot.gpus), found)
                yield snapshot
                if passed >= long:
                    break
    finally:
        progress.clear()
        sampler.close()


def _recorded(spec: str, long: float | None) -> Iterator[Snapshot]:
    """Yield the samples of a recording without waiting; @START skips, a speed is ignored.

    A pipe that a recorder writes to now is read for as long as a machine would be sampled.
    """
    import time

    from ...sources.replay import parse_spec
    from ...store.recording import is_pipe, read_pipe, read_recording

    path, start, _ = parse_spec(spec)
    piped = is_pipe(path)
    first: float | None = None
    for snapshot in read_pipe(path) if piped else read_recording(path):
        if first is None:
            first = snapshot.time
            if piped and long is None and abs(time.time() - first) < _NOW:
                long = _WATCHED
        elif piped and long is not None and snapshot.time - first - start > long:
            return
        passed = snapshot.time - first - start
        if passed >= 0 and (long is None or passed <= long):
            yield snapshot


def _remembered(since: float, path: str | None) -> Iterator[Snapshot]:
    import time

    from ...store.history import HistoryReader

    now = time.time()
    with HistoryReader(path) as reader:
        yield from reader.snapshots(now - since, now)


def _events(arguments: Arguments, uuids: Container[str | None]) -> Iterator[Event]:
    """Yield what the history knows of the GPUs that were asked for."""
    import time

    from ...store.history import HistoryReader

    now = time.time()
    with HistoryReader(arguments.history) as reader:
        for event in reader.events(now - arguments.since, now):
            if not arguments.gpu or any(uuid in uuids for uuid in event.uuids):
                yield event


def _chosen(arguments: Arguments, samples: Iterator[Snapshot]) -> Iterator[Snapshot]:
    """Yield samples with only the selected GPUs."""
    from ...model.select import choose_gpus

    kept: list[object] | None = None
    for one in samples:
        if arguments.gpu and kept is None:
            kept = [one.gpus[at].uuid or one.gpus[at].index for at in choose_gpus(one.gpus, arguments.gpu, os.environ)]
        if kept is None:
            yield one
        else:
            gpus = tuple(gpu for gpu in one.gpus if (gpu.uuid or gpu.index) in kept)
            yield one.with_gpus(gpus)


def _print(
    arguments: Arguments,
    diagnosis: Diagnosis,
    found: Sequence[Concern],
    names: dict[int | None, str],
    code: CodeWatch | None,
    programs: Sequence[Presence],
) -> None:
    from ...analysis.own_lines import code_lines
    from ...model.stacks import CodeLine

    lines = () if code is None else code_lines(code.stop())
    if arguments.json:
        from ...present import concerns
        from ...present.verdicts import worded

        problems = [one.to_plain() for one in concerns.worded(found)]
        plain = worded(diagnosis).to_plain() | {"problems": problems}
        if code is not None:
            plain |= {"code": [line.to_plain() for line in lines], "code_problem": code.problem or None}
        plain["programs"] = [
            {"pid": one.pid, "run": one.run, "code": [CodeLine(**line).to_plain() for line in one.code]}
            for one in programs
        ]
        write_json(plain)
        return
    from ...present.explanation import answer, code_block

    theme, columns = terminal_of(arguments)
    told = answer(diagnosis, names, theme, columns)
    if code is not None:
        told += [
            line.render(theme, columns)
            for line in code_block(lines, diagnosis.end - diagnosis.start, code.problem, columns)
        ]
    for one in programs:
        block = code_block([CodeLine(**line) for line in one.code], one.seconds, "", columns)
        told += ["", f"Process {one.pid}", *(line.render(theme, columns) for line in block)]
    sys.stdout.write("\n".join(told) + "\n")


def _programs(diagnosis: Diagnosis, users: dict[str | None, set[int]]) -> list[Presence]:
    """Return the programs with a Monitor on the GPUs that were watched now, which know their lines of code themselves."""
    from ...monitor.presence import presences

    pids = {pid for one in diagnosis for pid in users.get(one.uuid, ())}
    return [one for pid, one in sorted(presences().items()) if pid in pids and one.code]


def _with_past(arguments: Arguments) -> int:
    """Run; with --demo, --since is about the history of the simulated machine."""
    return (run if arguments.since is None else with_past(run, "history", "history"))(arguments)


VERB = Verb(
    "why",
    (
        Option("pid", value="[PID]",
               parse=whole("why", 1, 10**15, "a process id", "write it as gpulse why 4242, or name GPUs with --gpu 0."),
               help="Only explain the GPUs used by this process or its children, and name the lines of code that keep them waiting"),
        Option("--for", value="TIME", parse=seconds("--for", 2, 86400),
               help="How long to sample; with replay:FILE, how much of the recording to read (default: 30s; replay: all)"),
        Option("--since", value="TIME", parse=parse_duration,
               help="Use the last TIME of this machine's history instead of sampling, for example 2h"),
        Option("--interval", "-n", value="SECONDS", default=_INTERVAL, parse=seconds("--interval", 0.1, 60),
               help="Time between samples, in seconds (default: 0.25)"),
        Option("--fleet", help="Explain what limits the machines of fleet.toml, by GPU time lost; see `gpulse fleet`"),
        Option("--check", help="Exit with 1 if anything critical or worth a warning was found, else with 0"),
        Option("--json", help="Print the diagnosis as one JSON object"),
        HISTORY,
        STACKS,
        *COMMON,
    ),
    _with_past,
    (
        ("gpulse why", "sample all GPUs for 30 s, then explain"),
        ("gpulse why 4242", "explain the GPUs of one process, with its lines of code that keep them waiting"),
        ("gpulse why --gpu 0 --for 1m --json", "print JSON for scripts"),
        ("gpulse why --since 2h", "explain the last two hours"),
        ("gpulse why --for 5s --check > /dev/null || echo trouble", "test for problems in a script"),
        ("gpulse why --source replay:run.ndjson.gz", "explain a recording"),
    ),
)  # fmt: skip
