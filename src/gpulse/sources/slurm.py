"""Slurm as seen from this machine: the jobs on it with their names, owners and GPUs, and the nodes of the cluster.

Only Slurm's own commands are used. `SlurmNode` asks the local slurmd which jobs are here and the controller once per job: a `squeue`
on every machine would have the controller send the whole queue to each of them.
"""

from __future__ import annotations

import os
import re
import threading
import time

from ..errors import GpulseError, UsageError
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Ask = Callable[[Sequence[str]], str]

MOST_NODES = 10_000  # in one list; more is a typing error in a range
_EVERY = 30.0  # seconds between two questions to slurmd, which take 10 ms
_SOON = 5.0  # seconds, if a process belongs to a job that is not known yet
_CONFIGURATIONS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf")
_NONE = "No job steps exist"  # with exit code 1, where no job runs
_PATIENCE = 10.0  # seconds for one command
_MOST_NUMBERS = 4096  # CPUs or GPUs of one machine
_RANGE = re.compile(r"^([^\[\]]*)\[([0-9,-]+)\](.*)$")
_GPUS = re.compile(r"(?:^|,)gpu(?::[^:(),]+)?:\d+\(IDX:([0-9,-]+)\)")
# Names, comments and paths of a job may contain line feeds, so a line that occurs twice tells nothing.
_USER = re.compile(r"^   UserId=([^(\s]+)\(\d+\) ", re.M)
_ACCOUNT = re.compile(r"^   Priority=\d+ Nice=-?\d+ Account=(\S+) QOS=", re.M)
_PARTITION = re.compile(r"^   Partition=(\S+) AllocNode", re.M)
_STATE = re.compile(r"^   JobState=([A-Z_]+) ", re.M)
_TIMES = re.compile(r"^   StartTime=(\d+) EndTime=(\d+|Unknown|N/A) ", re.M)
_NODE = re.compile(r"^     Nodes=(\S+) CPU_IDs=\S* Mem=\d+ GRES=(\S*)$", re.M)


class SlurmJob(Value):
    """What Slurm knows of a job on this machine; None is unknown. While it runs, `end` is when it will have to."""

    id: str
    name: str | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    state: str | None = None
    start: float | None = None
    end: float | None = None
    node: str | None = None
    gpus: tuple[int, ...] | None = None

    @property
    def key(self) -> str:
        """The job as processes name it."""
        return f"slurm:{self.id}"


def parse_job(number: str, text: str, node: str) -> SlurmJob:
    """Return the job that `scontrol --details show job` describes, with its share of a node; times are seconds since 1970."""
    found = re.match(r"JobId=(\d+) (?:Array\w+=\S+ )*(?:Het\w+=\S+ )*JobName=(.*)", text)
    job = SlurmJob(found[1] if found else number)
    job.name = found[2] if found else None
    job.user, job.account, job.partition, job.state = (
        None if value in (None, "(null)") else value
        for value in (_only(pattern, text) for pattern in (_USER, _ACCOUNT, _PARTITION, _STATE))
    )
    times = _TIMES.findall(text)
    if len(times) == 1:
        job.start, job.end = (float(word) if word.isdecimal() else None for word in times[0])
    lines = _NODE.findall(text)
    mine = lines if len(lines) == 1 else [line for line in lines if node in _named(line[0])]
    if len(mine) == 1:
        nodes, gres = mine[0]
        job.node = nodes if _named(nodes) == [nodes] else node
        gpus = tuple(number for part in _GPUS.findall(gres) for number in _numbers(part))
        job.gpus = gpus if gpus or job.state == "RUNNING" else None  # of a job that has ended, Slurm no longer tells
    return job


def describe_job(number: str, ask: Ask | None = None) -> SlurmJob | None:
    """Ask the controller for a job; None if it knows none of that number, or does not answer. Waits up to 10 seconds."""
    try:
        text = (ask or run_slurm)(("scontrol", "--details", "show", "job", number))
    except GpulseError:
        return None
    return parse_job(number, text, own_node())


def own_node() -> str:
    """Return the name of this machine among Slurm's nodes."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename.partition(".")[0]


def has_slurm() -> bool:
    """Return whether Slurm's commands are here and have a configuration."""
    configured = any(map(os.path.exists, filter(None, (os.environ.get("SLURM_CONF"), *_CONFIGURATIONS))))
    return configured and any(os.access(os.path.join(folder, "scontrol"), os.X_OK) for folder in os.get_exec_path())


class SlurmNode:
    """The jobs on this machine. `jobs` never waits: it returns the newest answer, and a thread asks again every 30 seconds."""

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask or run_slurm
        self._known: Mapping[str, SlurmJob] | None = None
        self._asked = float("-inf")
        self._thread: threading.Thread | None = None

    def jobs(self, named: Collection[str] = ()) -> Mapping[str, SlurmJob] | None:
        """Return the jobs by key (`slurm:12`), None if Slurm has not answered; `named` are keys that processes have."""
        now = time.monotonic()
        unknown = self._known is not None and any(key not in self._known for key in named)
        busy = self._thread is not None and self._thread.is_alive()  # a controller that hangs costs 10 s for each job
        if not busy and now - self._asked >= (_SOON if unknown else _EVERY):
            self._asked = now
            asking = threading.Thread(target=self._refresh, args=(tuple(named),), name="gpulse-slurm", daemon=True)
            self._thread = asking
            asking.start()
        return self._known

    def _refresh(self, named: Collection[str]) -> None:
        """Ask for the jobs that are new; if Slurm does not answer, its last answer stays."""
        try:
            listed = self._ask(("scontrol", "listpids"))
        except GpulseError as error:
            if _NONE not in str(error):
                return
            listed = ""
        words = (line.split() for line in listed.splitlines())
        numbers = {row[1] for row in words if len(row) > 2} | {key.removeprefix("slurm:") for key in named}
        before, known = self._known or {}, {}
        for number in sorted(number for number in numbers if number.isdecimal()):
            job = before.get(f"slurm:{number}") or describe_job(number, self._ask)
            if job is not None:
                known[job.key] = job
        self._known = known


def granted_gpus(ask: Ask | None = None) -> dict[str, dict[int, Mapping[str, str]]]:
    """Return who was given which GPUs of the cluster: user and job by node and number. Raises GpulseError if Slurm does not tell."""
    text = (ask or run_slurm)(("scontrol", "--details", "show", "job"))
    found: dict[str, dict[int, Mapping[str, str]]] = {}
    for block in re.split(r"^(?=JobId=\d+ )", text, flags=re.M):
        number = re.match(r"JobId=(\d+) ", block)
        if number is None or _only(_STATE, block) != "RUNNING":
            continue
        holder = {"user": _only(_USER, block) or "", "job": f"slurm:{number[1]}"}
        for nodes, gres in _NODE.findall(block):
            numbers = [one for part in _GPUS.findall(gres) for one in _numbers(part)]
            for node in _named(nodes) if numbers else ():
                found.setdefault(node, {}).update(dict.fromkeys(numbers, holder))
    return found


def run_slurm(words: Sequence[str]) -> str:
    """Run one of Slurm's commands and return what it prints; raise GpulseError with its last line if it fails or takes too long."""
    import subprocess

    environ = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        late = isinstance(error, subprocess.TimeoutExpired)
        raise GpulseError(f"{words[0]} {'takes too long' if late else 'cannot be run'}.") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GpulseError(f"{words[0]}: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


def gpu_nodes(partition: str = "", ask: Ask | None = None) -> list[str]:
    """Return the names of the cluster's nodes that have GPUs, of one partition or all; raise GpulseError if Slurm does not tell."""
    words = ["sinfo", "--noheader", "--Node", "--format=%N %G", *([f"--partition={partition}"] if partition else [])]
    rows = (line.split() for line in (ask or run_slurm)(words).splitlines())
    return list(dict.fromkeys(row[0] for row in rows if len(row) > 1 and "gpu" in row[1]))


def node_names(text: str) -> list[str]:
    """Return the names of a list as Slurm writes it, between commas and spaces: gpu[01-03,7],box. Raises UsageError."""
    return [name for part in split_names(text) for name in expanded(part)]


def split_names(text: str) -> list[str]:
    """Return the parts between commas and spaces that are not inside brackets."""
    return [part for part in re.split(r"[,\s]+(?![^\[]*\])", text) if part]


def expanded(entry: str) -> list[str]:
    """Return the names of a range as Slurm writes it: gpu[01-03,7] is gpu01, gpu02, gpu03, gpu7. Raises UsageError."""
    match = _RANGE.match(entry)
    if match is None:
        return [entry]
    before, numbers, after = match.groups()
    names: list[str] = []
    for part in numbers.split(","):
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UsageError(f"{entry!r} is not a range of hosts;", "write it as gpu[01-16,20].")
        first, last = int(low), int(high or low)
        if last < first or last - first >= MOST_NODES:
            raise UsageError(f"{entry!r} is not a range of hosts;", "write it as gpu[01-16,20].")
        for number in range(first, last + 1):
            names += expanded(f"{before}{number:0{len(low)}d}{after}")
            if len(names) > MOST_NODES:
                raise UsageError(f"{entry!r} has more than {MOST_NODES} hosts;", "name fewer of them.")
    return names


def _only(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.findall(text)
    return found[0] if len(found) == 1 else None


def _named(nodes: str) -> list[str]:
    try:
        return node_names(nodes)
    except UsageError:
        return []


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list as 0-2,5; at most some thousand."""
    pairs = (part.partition("-") for part in text.split(",") if part)
    ranges = (range(int(low), min(int(high or low) + 1, int(low) + _MOST_NUMBERS)) for low, _, high in pairs)
    return [number for numbers in ranges for number in numbers]
