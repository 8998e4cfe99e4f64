"""`gpulse run`: run a command and summarize its GPU usage."""

from __future__ import annotations

import os

from ...errors import GpulseError, RecordingError, UsageError
from ..free import FREE, number_of_gpus, wait_for
from ..options import DEMO, GPU, HELP, SOURCE, STACKS, Arguments, Option, Verb, seconds
from ..output import COST, say, tariff_of
from ..session import source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ...model.catalog import Gpu
    from ...model.serving import Tariff
    from ...monitor.messages import AgentSample
    from ...monitor.run_record import RunRecord
    from ...store.claims import Claim
    from ...store.queue import QueuePlace
    from ...store.recorder import RecordingFile
    from ...supervision.child import BlockedSignals, Child
    from ...supervision.watch import CommandWatch

    T = TypeVar("T")


def run(arguments: Arguments) -> int:
    """Run the command, sample its GPUs meanwhile, and exit with its exit code or signal."""
    if not arguments.command:
        raise UsageError("run: no command given;", "write it as gpulse run -- python train.py.")
    if (arguments.wait or arguments.timeout is not None) and arguments.gpus is None:
        raise UsageError("run: --wait and --timeout need --gpus;", "try --gpus 1 --wait.")
    if arguments.report:
        from ...surfaces.report.writing import form_of

        form_of(arguments.report)  # fail now rather than after the command has run
    from ...monitor.messages import PART_OF, new_run
    from ...sources.py_spy import only_ancestors
    from ...store.runs import runs_folder
    from ...supervision.child import BlockedSignals, Child, end_like, started_with

    signals = BlockedSignals()
    gpus, claims, place = _take(arguments, signals) if arguments.gpus is not None else ([], [], None)
    environ = started_with()
    if gpus:
        from ...model.select import selection

        environ |= selection(gpus)
    if place is not None:
        from ...analysis.waiting import PARENT

        environ[PARENT] = place.entry.id
    recording = _recording(arguments)
    for claim in claims:
        claim.pass_on()  # the command keeps the claims even if gpulse dies
    stacks = not (arguments.quiet or arguments.no_stacks)
    run_id = None if runs_folder() is None else new_run()
    if run_id is not None:
        environ[PART_OF] = run_id
    # start it before anything that takes time
    child = Child(arguments.command, environ, signals, readable=stacks and only_ancestors())
    record = None if run_id is None else _beside(lambda: _record(arguments, run_id, child.pid))
    watch = None
    if recording is not None or not arguments.quiet:
        uuids = [str(gpu.uuid) for gpu in gpus] or None
        watch = _beside(lambda: _watch(arguments, child.pid, uuids, recording, stacks))
    status = child.wait()
    for claim in claims:
        claim.close()
    if place is not None:
        place.leave()
    if watch is not None:
        _beside(lambda: _tell(arguments, child, status, watch, recording, record))
    elif record is not None:
        record.end(None, seconds=child.seconds, **_ended(status))
    arguments.state.close()  # the process ends without Python's cleanup
    end_like(status)


def _beside(act: Callable[[], T]) -> T | None:
    """Do what the command does not depend on: an error is reported, and neither leaves it alone nor changes its exit code."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001
        say(f"run: {type(error).__name__}: {error}")
        return None


def _record(arguments: Arguments, run: str, pid: int) -> RunRecord:
    """Return the record of the run for `gpulse runs`, which is begun."""
    import time

    from ...monitor.run_record import RunRecord

    record = RunRecord(run, arguments.command, pid, time.monotonic())
    record.begin()
    return record


def _ended(status: int) -> dict[str, Any]:
    import signal

    if not os.WIFSIGNALED(status):
        return {"exit_code": os.waitstatus_to_exitcode(status)}
    number = os.WTERMSIG(status)
    return {"signal": signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"}


def _watch(
    arguments: Arguments, pid: int, uuids: list[str] | None, recording: RecordingFile | None, stacks: bool
) -> CommandWatch:
    from ...monitor.messages import Request
    from ...supervision.watch import CodeWatch, CommandWatch

    request = Request(
        pid=pid,
        interval=arguments.interval,
        gpus=arguments.gpu or "visible",
        uuids=uuids,
        source=source_name(arguments),
        processes=() if recording is None else ("command",),
        stacks=stacks,
        serving=True,
        alerts=not arguments.quiet,
    )

    def record(sample: AgentSample) -> None:
        if recording is not None:
            recording.write(sample.snapshot)

    tell = None if arguments.quiet else say
    return CommandWatch(request, record, CodeWatch(pid) if stacks else None, tell)


def _recording(arguments: Arguments) -> RecordingFile | None:
    """Return the recording to write, or None; a report without -o uses a temporary file."""
    if not arguments.output and not arguments.report:
        return None
    from ...store.recorder import RecordingFile

    if arguments.output:
        try:
            return RecordingFile(arguments.output, force=arguments.force)
        except RecordingError as error:
            error.remedy = error.remedy and "Use --force to overwrite it, or choose another name."
            raise
    import tempfile

    handle, path = tempfile.mkstemp(suffix=".ndjson.gz", prefix="gpulse-run-")
    os.close(handle)
    return RecordingFile(path, force=True)


def _tell(
    arguments: Arguments,
    child: Child,
    status: int,
    watch: CommandWatch,
    recording: RecordingFile | None,
    record: RunRecord | None,
) -> None:
    """Print the summary."""
    from ...analysis.energy import cost_of
    from ...monitor.report import LONG_ENOUGH, ending, headline, serving_ending
    from ...monitor.run_record import compared_text
    from ...present.cost import cost_text
    from ...present.text import clean
    from ...sources.secrets import mask

    summary = watch.stop(child.cpu, child.seconds)
    if recording is not None:
        recording.close()
    lines = [headline(mask(arguments.command), status, child.seconds)]
    lines += ending(summary, watch.problem)
    lines += serving_ending(watch.serving)
    if watch.code_problem and summary.seconds >= LONG_ENOUGH and any(gpu.own.used for gpu in summary.gpus):
        lines.append(f"  {clean(watch.code_problem)}")
    tariff = cost = None
    try:
        tariff = tariff_of(arguments)
        if summary.samples and (cost := cost_of(summary, tariff)) is not None:
            lines.append(f"  {cost_text(cost)}")
    except GpulseError as error:
        lines.append(f"  no cost: {error}")
    if arguments.report and recording is not None:
        lines.append(_report(arguments, recording.path, mask(arguments.command), tariff))
    if record is not None:
        paths = {"report": arguments.report, "recording": arguments.output}
        kept = record.end(
            summary if summary.samples else None,
            cost,
            seconds=child.seconds,
            code=[line.to_plain() for line in summary.code],
            **_ended(status),
            **{name: path and os.path.abspath(path) for name, path in paths.items()},
        )
        lines += [f"  {text}" for text in [compared_text(kept)] if text]
    if not arguments.quiet:
        say("\n".join(lines), head="")


def _report(arguments: Arguments, path: str, title: str, tariff: Tariff | None) -> str:
    """Write the report and return the line that announces it."""
    from ...store.lines import remove
    from ...surfaces.report.writing import write_report

    try:
        write_report(path, arguments.report, title, tariff)
        return f"  report: {arguments.report}"
    except GpulseError as error:
        return f"  no report: {error}"
    finally:
        if not arguments.output:
            remove(path)


def _take(arguments: Arguments, signals: BlockedSignals) -> tuple[list[Gpu], list[Claim], QueuePlace | None]:
    """Return free GPUs and the claims on them; with --wait, wait for them in the queue. Raises NoFreeGpu with the reasons."""
    from ...analysis.free import Requirement
    from ...sources.secrets import mask
    from ...store.runs import past_lengths

    asked = Requirement(arguments.gpus, arguments.free_memory, arguments.utilization, arguments.share)
    shortest, longest = past_lengths(mask(arguments.command), os.getcwd())
    return wait_for(
        asked, arguments, verb="run", claims=True, quiet=arguments.quiet, clock=signals,
        program=os.path.basename(arguments.command[0]), shortest=shortest, longest=longest,
    )  # fmt: skip


VERB = Verb(
    "run",
    (
        Option("command", value="[--] COMMAND …", rest=True, default=(), help="Command to run, with its arguments"),
        Option("--gpus", "-n", value="N", parse=number_of_gpus("--gpus", "--gpus 2"),
               help="Select N free GPUs and set CUDA_VISIBLE_DEVICES"),
        *FREE,
        Option("--interval", value="TIME", default=1.0, parse=seconds("--interval", 0.1, 60),
               help="Time between samples (default: 1s)"),
        Option("--output", "-o", value="FILE", complete="files", help="Record samples to FILE.ndjson or FILE.ndjson.gz"),
        Option("--force", help="Overwrite an existing recording"),
        Option("--report", value="FILE", complete="files", help="Write a report to FILE.html or FILE.md at the end"),
        Option("--quiet", "-q", help="Do not print a summary"),
        STACKS,
        *COST,
        *(GPU, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse run -- python train.py", "print a summary at the end"),
        ("gpulse run --gpus 2 --wait -- torchrun --nproc-per-node 2 train.py", "wait for two free GPUs, then run on them"),
        ("gpulse run --gpus 1 --share --memory 10GiB --wait -- python small.py", "share a GPU with other small jobs"),
        ("gpulse run -o night.ndjson.gz --report night.html -- ./job.sh", "also record samples and write a report"),
    ),
)  # fmt: skip
