"""`gpulse reclaim`: memory of GPUs that is held for nothing, its owners warned, and ended at last if an administrator wants that."""

from __future__ import annotations

import os
import sys
import time

from ...errors import ConfigError, GpulseError
from ...present.events import step_text
from ...present.text import aligned, clean
from ...units import duration_text, parse_duration, parse_size, size_text
from ..options import DEMO, HELP, JSON, SOURCE, Arguments, Option, Verb
from ..output import write_json
from ..session import source_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...analysis.reclaim import Holding, ReclaimPolicy, ReclaimStep
    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from ...store.alert_file import AlertFile


_MARGIN = 300.0  # seconds of records before the time that a process has to be idle for
_STEP = 10.0


def run(arguments: Arguments) -> int:
    """Show what would be done now, or do it."""
    from ...analysis.reclaim import idle_holders, next_step

    settings, ours = _settings()
    if arguments.act:
        _check_act(arguments, ours)
    policy = _policy(settings)
    sampler, snapshots, now = _evidence(arguments, policy)
    try:
        sampler.settle()
        holdings = _holdings(sampler, sampler.read(), policy)
        idle, doubt = idle_holders(snapshots, policy, now)
        file = _file(arguments)
        records = file.read().get("reclaim")
        known = records if isinstance(records, dict) else {}
        steps = [
            next_step(one, (one.uuid, float(one.process.pid or 0)) in idle, known.get(one.key), policy, now, doubt)
            for one in holdings
        ]
    finally:
        sampler.close()
    if arguments.act:
        return _act(steps, settings, policy, file, known, now)
    if arguments.json:
        return write_json(steps_to_plain(steps, policy, now))
    sys.stdout.write("\n".join([*reclaim_lines(steps, policy), ""]))
    return 0


def _settings() -> tuple[Mapping[str, Any], bool]:
    """Return the table [reclaim], and whether it is that of the machine, which only root can write."""
    from ...settings.effective import chosen
    from ...store.config import config_path, machine_path, read_config, read_machine_config

    machine = read_machine_config(os.environ)
    path = machine_path(os.environ) if "reclaim" in machine else config_path(os.environ)
    tables = machine if "reclaim" in machine else read_config(path)
    mail = chosen("mail", tables, {}, path)
    return {**chosen("reclaim", tables, {}, path), "mail": mail}, "reclaim" in machine


def _check_act(arguments: Arguments, ours: bool) -> None:
    from ...store.config import machine_path

    if source_name(arguments).startswith(("demo", "replay")):
        raise GpulseError("reclaim --act is for this machine only.", "Leave out --demo.")
    if not ours:
        raise ConfigError(
            f"reclaim --act needs a table [reclaim] in {machine_path(os.environ)}, which only root can write;",
            "your own settings can only be tried with --dry-run.",
        )
    if os.geteuid() != 0:
        raise GpulseError("reclaim --act has to run as root.", "Try it with --dry-run first.")


def _policy(settings: Mapping[str, Any]) -> ReclaimPolicy:
    from ...analysis.reclaim import ReclaimPolicy
    from ...model.when import Hours
    from ...settings.table import TABLES

    given = {key: settings.get(key, setting.default) for key, setting in TABLES["reclaim"].items()}
    return ReclaimPolicy(
        parse_duration(given["idle"]),
        parse_size(given["memory"]),
        parse_duration(given["admin_after"]),
        parse_duration(given["grace"]),
        terminate=given["terminate"],
        reports=bool(given["admins"] or given["webhook"]),
        hours=[Hours(text) for text in given["hours"] or ()],
        exempt_users=given["exempt_users"] or (),
        exempt_names=given["exempt_names"] or (),
        exempt_gpus=given["exempt_gpus"] or (),
    )


def _evidence(arguments: Arguments, policy: ReclaimPolicy) -> tuple[Sampler, Iterable[Snapshot], float]:
    """Return an open sampler, what was recorded until now, and now."""
    from ...analysis.alerts.work import IdleAllocation
    from ...model.select import Wanted
    from ...sampling.clock import ManualClock
    from ...sampling.sampler import Sampler
    from ...sources.registry import make_source
    from ...sources.simulated.source import SimulatedSource
    from ...store.history import HistoryReader

    wanted = IdleAllocation.wanted | Wanted(("uuid", "index", "memory_total"), process=("command", "type"))
    name = source_name(arguments)
    if name.startswith("demo"):
        clock = ManualClock(time.time() - policy.idle - _MARGIN)
        sampler = Sampler(
            SimulatedSource(clock=clock.monotonic, mixed=name == "demo:mixed"), wanted, clock=clock
        ).open()
        found = []
        for _ in range(int((policy.idle + _MARGIN) / _STEP)):
            found.append(sampler.read())
            clock.sleep(_STEP)
        return sampler, found, found[-1].time
    sampler = Sampler(make_source(name), wanted).open()
    now = time.time()
    return sampler, HistoryReader(arguments.history).snapshots(now - policy.idle - _MARGIN, now + 1), now


def _holdings(sampler: Sampler, snapshot: Snapshot, policy: ReclaimPolicy) -> list[Holding]:
    from ...analysis.readings import number_of
    from ...analysis.reclaim import Holding

    machine, found = sampler.source.machine, []
    for whole in snapshot.gpus:
        for gpu in (whole, *whole.instances):
            for process in gpu.processes:
                if process.pid is None or (process.memory_used or 0.0) < policy.memory or process.type == "G":
                    continue
                pid = int(process.pid)
                foreign = machine.real and machine.foreign([pid])
                started, cpu = (None, None) if foreign else _times(pid, machine.real)
                found.append(Holding(whole.uuid or "", number_of(whole), process, started, cpu))
    return found


def _times(pid: int, real: bool) -> tuple[float | None, float | None]:
    """Return when a process started, in clock ticks since boot, and its CPU time in seconds; those of the demo are made up."""
    from ...sources.files import read_bytes
    from ...sources.processes import parse_stat

    if not real:
        return 0.0, 0.0
    stat = parse_stat(read_bytes(f"/proc/{pid}/stat", 4096) or b"")
    return (None, None) if stat is None else (float(stat.started), stat.cpu / os.sysconf("SC_CLK_TCK"))


def _file(arguments: Arguments) -> AlertFile:
    from ...store.alert_file import AlertFile, alert_path, known_alert_path

    if source_name(arguments).startswith("demo"):
        return AlertFile()
    return AlertFile(alert_path(arguments.history) if arguments.history else known_alert_path())


def _act(
    steps: list[ReclaimStep],
    settings: Mapping[str, Any],
    policy: ReclaimPolicy,
    file: AlertFile,
    known: dict[str, Any],
    now: float,
) -> int:
    """Do what is due, note it, and say it; exit 1 if something failed."""
    from ...delivery.reclaim import ReclaimDesk

    desk = ReclaimDesk(settings, policy)
    failed = 0
    kept = {
        step.holding.key: known[step.holding.key]
        for step in steps
        if step.holding.key in known and step.action != "spare"
    }
    events = []
    for step in steps:
        if step.action not in ("warn", "report", "end"):
            continue
        done, line, event = _end(step, now) if step.action == "end" else desk.tell(step, now)
        failed += not done
        sys.stdout.write(f"{line}\n")
        if done and event is not None:
            events.append(event)
            record = dict(kept.get(step.holding.key, {}))
            record |= {"warned": now, "cpu": step.holding.cpu} if step.action == "warn" else {f"{step.action}ed": now}
            kept[step.holding.key] = record
    file.note_reclaim(kept, events)
    return int(failed > 0)


def _end(step: ReclaimStep, now: float) -> tuple[bool, str, Any]:
    """Ask a process to end, if it is still the one that was judged."""
    from ...delivery.reclaim import reclaim_event
    from ...present.events import holding_text
    from ...surfaces.top.signals import Target, send

    (said,) = send([Target(int(step.holding.process.pid or 0), step.holding.started)], "TERM")
    done = said.startswith("sent ")
    return done, f"{holding_text(step)}: {said}", reclaim_event(step, "reclaim-ended", now, []) if done else None


VERB = Verb(
    "reclaim",
    (
        Option("--dry-run", help="Show what would be done now, and do nothing (this is the default)"),
        Option("--act", help="Warn owners, tell administrators, and end processes if the machine's settings enable it"),
        Option("--history", value="FILE", complete="files", help="History that shows who was idle (default: this machine's)"),
        *(JSON, SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("gpulse reclaim --dry-run", "show who holds memory for nothing and what would follow"),
        ("sudo gpulse reclaim --act", "do it, for instance every ten minutes from a timer"),
    ),
)  # fmt: skip


def reclaim_lines(steps: Sequence[ReclaimStep], policy: ReclaimPolicy) -> list[str]:
    """Return the lines of the list."""
    if not steps:
        return [f"No process holds {size_text(policy.memory)} or more."]
    titles = ("GPU", "PID", "USER", "NAME", "HOLDS", "IDLE", "NEXT")
    rows = [titles, *(_row(step) for step in steps)]
    ends = "ended" if policy.terminate else "never ended: terminate is off"
    rule = f"Idle for {duration_text(policy.idle)}: owner warned"
    rule += f", administrators told {duration_text(policy.admin_after)} later" if policy.reports else ""
    rule += f", {ends}" + (f" {duration_text(policy.grace)} after the warning" if policy.terminate else "")
    return [*aligned(rows, right=(False, True, False, False, True, True, False)), "", f"{rule}."]


def _row(step: ReclaimStep) -> tuple[str, ...]:
    process = step.holding.process
    idle = "" if step.idle is None else f"≥ {duration_text(step.idle)}"
    held = size_text(process.memory_used or 0.0)
    names = clean(process.user or "?"), clean(process.name or "?")
    return step.holding.gpu or "?", f"{process.pid:.0f}", *names, held, idle, step_text(step)


def steps_to_plain(steps: Sequence[ReclaimStep], policy: ReclaimPolicy, now: float) -> dict[str, Any]:
    """Return the list as JSON takes it."""
    rows = []
    for step in steps:
        holding, process = step.holding, step.holding.process
        row: dict[str, Any] = {"gpu": holding.gpu, "uuid": holding.uuid, "pid": process.pid, "user": process.user}
        row |= {"name": process.name, "memory_used": process.memory_used, "action": step.action, "reason": step.reason}
        rows.append(row | {"idle": step.idle, "due": step.due})
    return {"schema": 1, "time": now, "terminate": policy.terminate, "idle": policy.idle, "processes": rows}
