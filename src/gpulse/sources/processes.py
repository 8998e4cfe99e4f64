"""Details of processes, read directly from /proc: psutil would cost 22 ms at start and more at every sample."""

from __future__ import annotations

import os
import time

from ..value import Value
from .base import Counter, Facts, Machine, Relative
from .files import ProcessFile, link, names, read_bytes, read_environ, read_text
from .host import BLOCKED, RUNNING, TOP_KEYS, TopProcesses, read_host, thread_state
from .privacy import Privacy, privacy_in_force
from .secrets import mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Literal

    from ..model.metric import Gap
    from .base import Key
    from .slurm import SlurmJob, SlurmNode


_DEEPEST = 64  # ancestors of one process, against a loop in a list that changes while it is read
_MOST_OPEN = 256  # files of processes to keep open; a quarter of what a process may have by default
_WALK = 60.0  # seconds from one walk over all processes to the next
_APART = 0.05  # minimum seconds between two counts of CPU time for a meaningful rate
_SLURM = frozenset({"job_name", "account", "partition"})
_OWNER = frozenset({"container", "pod", "project", "job"}) | _SLURM
_TRAFFIC = frozenset({"tree_read", "tree_write"})
_TREE = _TRAFFIC | {
    *("tree_cpu_percent", "tree_cpu_time", "tree_memory", "children", "workers_running", "workers_blocked")
}
_GPU_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")
_INIT_NAMESPACE = "pid:[4026531836]"  # the kernel always gives this number to the first PID namespace


class Stat(Value):
    """Values from one /proc/PID/stat; times are in clock ticks, `reaped` is the time of children that have ended.

    `state` is the kernel's letter for the main thread.
    """

    name: str
    state: str
    parent: int
    cpu: int
    reaped: int
    started: int
    resident: int


def parse_stat(content: bytes) -> Stat | None:
    """Parse one /proc/PID/stat; the name is in parentheses and may itself contain parentheses and spaces."""
    head, _, tail = content.rpartition(b")")
    words = tail.split()
    try:
        name = head[head.index(b"(") + 1 :].decode("utf-8", "replace")
        cpu, reaped = int(words[11]) + int(words[12]), int(words[13]) + int(words[14])
        return Stat(name, words[0].decode("ascii"), int(words[1]), cpu, reaped, int(words[19]), int(words[21]))
    except (ValueError, IndexError):
        return None


class Tree:
    """Totals of a process and all its descendants: ticks, resident pages, bytes read and written (None: not visible).

    gpulse's own processes are not counted, although a monitor may be a child of the program.
    """

    def __init__(self, root: int, stats: Mapping[int, Stat], children: Mapping[int, Sequence[int]]) -> None:
        us = os.getpid()
        self.pids, reached = [root], {root, us}
        for pid in self.pids:
            fresh = [child for child in children.get(pid, ()) if child not in reached]
            reached.update(fresh)
            self.pids.extend(fresh)
        alive = [stats[pid] for pid in self.pids if pid in stats]
        # a child's time is added to its parent when it is waited for, so the sum never falls when a worker ends
        self.ticks = sum(stat.cpu + stat.reaped for stat in alive)
        self.pages = sum(stat.resident for stat in alive)
        states = [stats[pid].state for pid in self.pids[1:] if pid in stats]
        self.running, self.blocked = states.count(RUNNING), states.count(BLOCKED)
        self.traffic: tuple[int, int] | None = None
        self.hidden = False  # traffic was requested but is not visible


class LinuxMachine(Machine):
    """This computer, read from /proc; `root` is prefixed to /proc and /sys, for tests."""

    real = True

    def __init__(self, root: str = "") -> None:
        self.root = root
        self._proc = f"{root}/proc"
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._relatives: dict[tuple[int, int], Relative] = {}
        self._lasting: dict[tuple[int, int], dict[str, str]] = {}
        self._owners = False  # whether these name containers and jobs
        self._files: dict[tuple[int, str], ProcessFile] = {}
        self._gpu_pids: Collection[int] = ()
        self._roots: frozenset[int] = frozenset()  # of the last walk over process trees
        self._strangers: set[int] = set()  # processes in no tree of these
        self._walked = float("-inf")  # when all processes were read
        self._top = TopProcesses(self._ticks, self._page)
        self._privacy: Privacy | None = None
        self._slurm: SlurmNode | Literal[False] | None = None
        self._jobs: Collection[str] = ()  # batch jobs that processes have named

    def host(self, keys: Key) -> Facts:
        facts = read_host(keys, self.root)
        if keys & TOP_KEYS:
            if self._top.is_due():
                self._top.count(self._stats(), self._gpu_pids)
            self._top.add_to(facts, self._user_and_command)
        return facts

    def _user_and_command(self, pid: int) -> tuple[str, str] | None:
        stat = self._stat(pid)
        if stat is None:
            return None
        lasting = self._lasting.get((pid, stat.started)) or self._describe(pid, stat)
        return lasting["user"], lasting.get("command") or f"[{lasting.get('name', '?')}]"

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        self._gpu_pids = pids
        if keys & _OWNER and not self._owners:
            self._lasting, self._owners = {}, True  # somebody wants to know only now
        known: dict[int, Facts] = {}
        seen: dict[tuple[int, int], dict[str, str]] = {}
        stats = self._related(pids) if keys & _TREE else {}
        trees = self._trees(pids, stats, bool(keys & _TRAFFIC)) if stats else {}
        for pid in pids:
            stat = stats.get(pid) or parse_stat(self._kept(pid, "stat") or b"")
            if stat is None:
                continue
            identity = (pid, stat.started)
            seen[identity] = self._lasting.get(identity) or self._describe(pid, stat, self._owners)
            known[pid] = facts = self._facts(stat, seen[identity], trees.get(pid))
            if "thread_state" in keys:
                self._add_thread_state(facts, pid, stat)
        self._lasting = seen  # ended processes are forgotten, so a reused PID never inherits a name
        self._files = {name: file for name, file in self._files.items() if name[0] in known}
        self._jobs = {job for lasting in seen.values() if (job := lasting.get("job", "")).startswith("slurm:")}
        if self._jobs and keys & _SLURM:
            self._add_names(known.values())
        return known

    def _add_names(self, known: Iterable[Facts]) -> None:
        """Add what Slurm says of the jobs: anybody can change the environment of a process."""
        for facts in known:
            job = (self._slurm_jobs() or {}).get(str(facts.values.get("job")))
            if job is not None:
                told = {"job_name": job.name, "account": job.account, "partition": job.partition}
                facts.values.update({key: text for key, text in told.items() if text})

    def allocations(self) -> Mapping[int, tuple[str, str]] | Gap | None:
        jobs = self._slurm_jobs()
        if jobs is None:
            return "pending" if self._slurm else None
        return {index: (job.key, job.user or "") for job in jobs.values() for index in job.gpus or ()}

    def _slurm_jobs(self) -> Mapping[str, SlurmJob] | None:
        """Return the jobs of this machine, None without Slurm or before it has answered."""
        if self._slurm is None:
            from .slurm import SlurmNode, has_slurm  # only where somebody asks for jobs

            self._slurm = SlurmNode() if has_slurm() and not self.root else False
        return self._slurm.jobs(self._jobs) if self._slurm else None

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process; None if it has ended."""
        stat = self._stat(pid)
        return None if stat is None else stat.parent

    def family(self, pid: int) -> list[int]:
        """Return a process and its running descendants, nearest first, without this process."""
        return self._trees([pid], self._related([pid]), False)[pid].pids

    def about(self, pid: int) -> dict[str, str]:
        folder = f"{self._proc}/{pid}"
        if self._policy().hides(self._owner(folder)):
            return {}
        facts = {"cgroup": read_text(f"{folder}/cgroup") or "", "directory": link(f"{folder}/cwd")}
        for entry in sorted(read_environ(f"{folder}/environ").items()):
            name, _, value = mask(["=".join(entry)]).partition("=")
            facts[f"${name}"] = value
        return {word: text for word, text in facts.items() if text}

    def lineage(self, pids: Collection[int]) -> dict[int, Relative]:
        found: dict[int, Relative] = {}
        for pid in pids:
            for _ in range(_DEEPEST):
                if pid <= 1 or pid in found or (relative := self._relative(pid)) is None:
                    break
                found[pid] = relative
                pid = relative.parent
        self._relatives = {key: known for key, known in self._relatives.items() if found.get(key[0]) is known}
        return found

    def _relative(self, pid: int) -> Relative | None:
        """Return a process with its parent of now; its name and command are read once."""
        stat = self._stat(pid)
        if stat is None:
            return None
        known = self._relatives.get((pid, stat.started))
        if known is None or known.parent != stat.parent:  # an orphan gets a new parent
            facts = self._describe(pid, stat)
            known = Relative(pid, stat.parent, facts.get("name", "?"), facts.get("command", ""), facts["user"])
            self._relatives[pid, stat.started] = known
        return known

    def foreign(self, pids: Collection[int]) -> bool:
        return bool(pids) and self.isolated() and not all(self._holds_a_gpu(pid) for pid in pids)

    def isolated(self) -> bool:
        """Return whether this process has its own PID namespace, as in most containers."""
        return (link(f"{self._proc}/self/ns/pid") or _INIT_NAMESPACE) != _INIT_NAMESPACE

    def _stat(self, pid: int | str) -> Stat | None:
        return parse_stat(read_bytes(f"{self._proc}/{pid}/stat", 4096) or b"")

    def _kept(self, pid: int, name: str) -> bytes | None:
        """Read a file of a process that is read at every sample, and keep it open if there are not too many."""
        path = f"{self._proc}/{pid}/{name}"
        if self.root:  # the files of a recorded machine are replaced
            return read_bytes(path, 4096)
        file = self._files.get((pid, name))
        content = None if file is None else file.read()
        if content is None:
            file = ProcessFile(path)
            content = file.read()
            if content is not None and len(self._files) < _MOST_OPEN:
                self._files[pid, name] = file
        return content

    def _holds_a_gpu(self, pid: int) -> bool:
        """Return whether a process has a GPU's device file open; False if that is not visible."""
        folder = f"{self._proc}/{pid}/fd"
        return any(word in link(f"{folder}/{descriptor}") for descriptor in names(folder) for word in _GPU_FILES)

    def _facts(self, stat: Stat, lasting: dict[str, str], tree: Tree | None) -> Facts:
        facts = Facts()
        facts.values.update(lasting)
        if "name" not in lasting or ("command" not in lasting and self._policy().commands != "full"):
            facts.gaps.update({key: "denied" for key in ("name", "command") if key not in lasting})
        now = time.monotonic()
        facts.counters["cpu_percent"] = Counter(stat.cpu / self._ticks, now, 100.0, _APART)
        facts.values["cpu_time"] = stat.cpu / self._ticks
        facts.values["parent"] = stat.parent
        facts.values["host_memory"] = stat.resident * self._page
        facts.values["running_time"] = round(
            max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - stat.started / self._ticks), 1
        )
        if tree is not None:
            facts.counters["tree_cpu_percent"] = Counter(tree.ticks / self._ticks, now, 100.0, _APART)
            facts.values["tree_cpu_time"] = tree.ticks / self._ticks
            facts.values["children"] = len(tree.pids) - 1
            facts.values["workers_running"], facts.values["workers_blocked"] = tree.running, tree.blocked
            facts.values["tree_memory"] = tree.pages * self._page
            for key, count in zip(("tree_read", "tree_write"), tree.traffic or (), strict=False):
                facts.counters[key] = Counter(count, now)
            if tree.hidden:
                facts.gaps.update(tree_read="denied", tree_write="denied")
        return facts

    def _add_thread_state(self, facts: Facts, pid: int, stat: Stat) -> None:
        """Add what the main thread does; where it waits costs another 10 µs and is not asked of one that runs."""
        wchan = b"" if stat.state == RUNNING else self._kept(pid, "wchan") or b""
        state = thread_state(stat.state, wchan.decode("ascii", "replace").strip())
        if state is None:
            facts.gaps["thread_state"] = "unsupported"
        else:
            facts.values["thread_state"] = state

    def _describe(self, pid: int, stat: Stat, owner_too: bool = False) -> dict[str, str]:
        """Read what never changes during the life of the process."""
        folder = f"{self._proc}/{pid}"
        owner = self._owner(folder)
        lasting = {"name": stat.name, "user": self._user(owner)}
        arguments = (read_bytes(f"{folder}/cmdline") or b"").rstrip(b"\0").split(b"\0")
        words = [argument.decode("utf-8", "replace") for argument in arguments]
        if words[0]:
            lasting["command"] = mask(words)
            lasting["name"] = _program_name(stat.name, words[0])
        if owner_too:
            from .containers import owner_of, project_of  # compile its patterns only if needed

            environ = read_environ(f"{folder}/environ")
            lasting.update(owner_of(read_text(f"{folder}/cgroup") or "", environ))
            lasting.update(project_of(environ, os.environ.get("GPULSE_PROJECT_VARIABLES", "")))
        return self._policy().applied(lasting, owner)

    def _policy(self) -> Privacy:
        if self._privacy is None:
            self._privacy = privacy_in_force(os.environ)
        return self._privacy

    def _owner(self, folder: str) -> int:
        """Return the user id of a process; -1 if it has ended."""
        try:
            return os.stat(folder).st_uid
        except OSError:
            return -1

    def _user(self, uid: int) -> str:
        from ..store.claims import user_name

        if uid < 0:
            return "?"
        return str(uid) if self._policy().numbered(uid) else user_name(uid)

    def _trees(self, roots: Collection[int], stats: Mapping[int, Stat], traffic: bool) -> dict[int, Tree]:
        """Return the process tree of each root; what is in none of them is left out of the next walk."""
        children: dict[int, list[int]] = {}
        for pid, stat in stats.items():
            children.setdefault(stat.parent, []).append(pid)
        trees = {root: Tree(root, stats, children) for root in roots}
        self._strangers.update(stats.keys() - {pid for tree in trees.values() for pid in tree.pids})
        if traffic:
            for tree in trees.values():
                tree.traffic = self._traffic(tree.pids)
                tree.hidden = tree.traffic is None
        return trees

    def _related(self, roots: Collection[int]) -> dict[int, Stat]:
        """Read the stat of all processes but those that were in no tree of these roots before.

        They cannot come into one: an orphan goes to one of its ancestors. From time to time all are read again, in case one ended
        and its PID was taken. Reading all takes a few ms on a busy machine.
        """
        now = time.monotonic()
        if not self._roots.issuperset(roots) or now - self._walked >= _WALK:
            self._strangers, self._walked = set(), now
        self._roots = frozenset(roots)
        listed = {int(name) for name in names(self._proc) if name.isdecimal()}
        self._strangers &= listed
        return {pid: stat for pid in listed - self._strangers if (stat := self._stat(pid))}

    def _stats(self) -> dict[int, Stat]:
        """Read the stat of every process."""
        return {int(name): stat for name in names(self._proc) if name.isdecimal() and (stat := self._stat(name))}

    def _traffic(self, pids: Sequence[int]) -> tuple[int, int] | None:
        """Return the bytes a tree has read from and written to storage; None if one of its processes is not visible.

        One that has just ended counts with its parent, as soon as that has waited for it.
        """
        read = written = 0
        for pid in pids:
            counts = dict(line.split(": ") for line in (read_text(f"{self._proc}/{pid}/io") or "").splitlines())
            if "read_bytes" not in counts:
                if not os.path.exists(f"{self._proc}/{pid}"):
                    continue
                return None
            read += int(counts["read_bytes"])
            written += int(counts["write_bytes"])
        return read, written


def _program_name(comm: str, program: str) -> str:
    """Return the full name of the program: the kernel truncates it to 15 characters, and threads may have renamed it."""
    base = program.rsplit("/", 1)[-1]
    return base if len(comm) >= 15 and base.startswith(comm) else comm
