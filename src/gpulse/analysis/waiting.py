"""A request for GPUs: it waits in the queue until it is its turn, looks at the GPUs only when it may be, and claims them."""

from __future__ import annotations

import os
import time

from ..errors import GpulseError, NoFreeGpu
from ..model.select import by_uuid, choose_gpus, granted, selection
from ..store.claims import claim, claims_folder
from ..store.entry import holder_now
from ..store.liveness import uptime
from ..store.locks import locked_entries
from ..store.queue import Queue, QueuePlace, new_entry
from ..units import count_text
from .free import availability, never, refusal, samples_for, slots
from .turns import Turn, turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ..model.catalog import Gpu
    from ..model.snapshot import Snapshot
    from ..sampling.sampler import Sampler
    from ..store.claims import Claim
    from ..store.entry import Entry
    from .free import Availability, Requirement
    from .turns import Slot


TIMED_OUT = 124  # the exit code of timeout(1)
# A waiting program looks at the time of a folder (10 µs), often at first and the nearer it is to its turn. It looks at the GPUs
# (milliseconds) when the queue says it may be its turn, ever less often, because programs outside of the queue come and go, too.
_TICK, _SLOWER, _LOOK, _RARER = 0.1, 1.2, 0.3, 2.0
# seconds between two ticks and two looks, of the first and of others
_SLOWEST = {True: (2.0, 10.0), False: (4.0, 90.0)}
_MUTEX_TRIES = 25
_PATIENCE = 60.0  # seconds for which a request may leave GPUs that are free for it, before others go first


class Waiting:
    """One request. `turns` is the queue as it was last seen, `entries` what is in it; `hold_text` words who holds a GPU.

    `claims`: take the GPUs, so that nobody else gets them; else only look. Without `queued` there is no queue. `parts` are those of
    the entry in the queue. `place` is to be left when the GPUs are no longer needed.
    """

    def __init__(
        self,
        asked: Requirement,
        hold_text: Callable[[Entry, float], str],
        *,
        claims: bool = True,
        queued: bool = True,
        verb: str = "pick",
        **parts: Any,
    ) -> None:
        self.asked = asked
        self._verb = verb
        self.turns: list[Turn] = []
        self.entries: list[Entry] = []
        request = {"count": asked.count, "memory": asked.free_memory if asked.share else None, "share": asked.share}
        self.place = QueuePlace(new_entry("waiting", **request | parts))
        self._hold_text = hold_text
        self._claims = claims
        self._last: Snapshot | None = None
        self._alone = not queued
        self._queued = False
        self._waits = False
        self._offered: dict[bool, dict[str, float]] = {True: {}, False: {}}  # see _passing_over

    @property
    def turn(self) -> Turn:
        """This request's own turn."""
        return next(turn for turn in self.turns if turn.entry.id == self.place.entry.id)

    def seek(
        self,
        sampler: Sampler,
        words: Sequence[str] | None = None,
        window: float | None = None,
        wait: float | None = None,
        tell: Callable[[NoFreeGpu], None] = lambda _: None,
    ) -> tuple[list[Gpu], list[Claim]]:
        """Return GPUs and the locks on them; wait at most `wait` seconds, None: do not wait. Raises NoFreeGpu with the reasons.

        `tell` is called with the reasons when the request has to wait, and again when its place in the queue changes.
        """
        self._waits = wait is not None
        interval, size = samples_for(window)
        end = time.monotonic() + (wait or 0.0)
        sampler.stay()
        try:
            while True:
                verdicts = self._look(sampler, words, interval, size)
                if (found := self._take(verdicts)) is not None:
                    return found
                error = self.refusal(verdicts)
                if never(verdicts, self.asked):
                    raise error
                if time.monotonic() >= end:
                    error.exit_code = TIMED_OUT if self._waits else error.exit_code
                    raise error
                self._enter()
                self._pause(sampler, words, end, tell, error)
        except BaseException:  # also Ctrl-C: who no longer waits must not hold up the queue
            self.place.leave()
            raise

    def refusal(self, verdicts: Sequence[Availability]) -> NoFreeGpu:
        """Return the error that says why each GPU is not to be had: what keeps it, who holds it, or who is before us."""
        now, locked = time.time(), self._lock_holders(verdicts)
        for verdict in verdicts:
            uuid = str(verdict.gpu.uuid)
            holder = holder_now(uuid, self.entries, now) or locked.get(uuid)
            if holder is not None and (not verdict.why or verdict.why.startswith("claimed")):
                verdict.why = self._hold_text(holder, now)
            elif not verdict.why and uuid not in self.turn.gpus:
                verdict.why = self._kept_for(uuid)
        return refusal(verdicts, self.asked, self._verb, waited=self._waits)

    def _lock_holders(self, verdicts: Sequence[Availability]) -> dict[str, Entry]:
        """Return who has locked GPUs without a claim in the queue, by UUID."""
        claims = [str(one.gpu.uuid) for one in verdicts if one.why.startswith("claimed")]
        return {uuid: entry for entry in locked_entries(claims, self.entries) for uuid in entry.gpus}

    def _kept_for(self, uuid: str) -> str:
        """Return who waits for a GPU that nobody uses; empty if it is only that there are too few of them."""
        before = [turn.entry for turn in self.turns[: self.turn.position - 1] if not turn.why or turn.why == "waiting"]
        first = next((one for one in before if one.among is None or uuid in one.among), None)
        return "" if first is None else self._hold_text(first, time.time())

    def _look(self, sampler: Sampler, words: Sequence[str] | None, interval: float, size: int) -> list[Availability]:
        """Return verdicts over a window of samples, and decide whose turn it is."""

        def samples() -> Iterator[Snapshot]:
            for at in range(size):
                if at:
                    sampler.clock.sleep(interval)
                try:
                    self._last = sampler.read()
                except StopIteration:
                    return
                yield self._last

        verdicts = next(availability(samples(), size, self.asked, os.environ, words), [])
        self.place.entry.among = frozenset(str(verdict.gpu.uuid) for verdict in verdicts if not verdict.hopeless)
        self._decide(verdicts)
        return verdicts

    def _decide(self, verdicts: Sequence[Availability] | None) -> None:
        """See whose turn it is; without verdicts, as if every GPU that nobody has claimed were free, which asks no driver."""
        self.entries, mine = [] if self._alone else self.place.queue.entries(), self.place.entry
        seen = [] if self._last is None else slots(self._last, verdicts or ())
        for slot in seen if verdicts is None else ():
            slot.idle = True
            slot.fits = mine.among is None or slot.uuid in mine.among
        others = [entry for entry in self.entries if entry.id != mine.id]
        self.turns = self._passing_over(others, seen, self._offered[verdicts is not None])

    def _passing_over(self, others: Sequence[Entry], seen: Sequence[Slot], offered: dict[str, float]) -> list[Turn]:
        """Return whose turn it is if nobody can block the queue: who leaves free GPUs for a minute is passed over.

        `offered` is since when each request before this one could have started. That is kept apart for GPUs as they are and for GPUs
        as if nobody used them: the latter only tells when to look.
        """
        now, late, mine = time.monotonic(), set[str](), self.place.entry
        while True:
            waiting = [entry.replace(stopped=True) if entry.id in late else entry for entry in others]
            found = turns(time.time(), seen, [*waiting, mine], mine.id)
            before = found[: next(at for at, turn in enumerate(found) if turn.entry.id == mine.id)]
            could = {turn.entry.id: offered.get(turn.entry.id, now) for turn in before if turn.gpus}
            offered.update(could)
            if not (newly := {id for id, since in could.items() if now - since > _PATIENCE}):
                break
            late |= newly
        for id in offered.keys() - could.keys() - late:
            del offered[id]
        return found

    def _take(self, verdicts: list[Availability]) -> tuple[list[Gpu], list[Claim]] | None:
        """Take what this request is given, all or nothing; None if it is not its turn."""
        if not self._claims:
            if gpus := self._gpus(verdicts):
                self.place.leave()
            return (gpus, []) if gpus else None
        try:
            with _Mutex():
                self._decide(verdicts)
                while gpus := self._gpus(verdicts):
                    if (locks := self._locked(gpus, verdicts)) is not None:
                        self.place.write(kind="running", gpus=[gpu.uuid for gpu in gpus], since=time.time())
                        return gpus, locks
                    self._decide(verdicts)
        except OSError as error:
            raise _no_place(error) from None
        return None

    def _gpus(self, verdicts: Sequence[Availability]) -> list[Gpu]:
        known = {verdict.gpu.uuid: verdict.gpu for verdict in verdicts}
        return [known[uuid] for uuid in self.turn.gpus]

    def _locked(self, gpus: Sequence[Gpu], verdicts: Sequence[Availability]) -> list[Claim] | None:
        locks: list[Claim] = []
        for gpu in gpus:
            if (lock := claim(str(gpu.uuid), share=self.asked.share)) is None:
                for other in locks:
                    other.close()
                for verdict in verdicts:
                    if verdict.gpu is gpu:
                        verdict.why = "claimed just now"
                return None
            locks.append(lock)
        return locks

    def _enter(self) -> None:
        """Stand in the queue, from the first time on that this request has to wait."""
        state = self.place.state if self._queued and not self._alone else "new"
        if state == "cancelled":
            raise NoFreeGpu("the request was cancelled.")
        try:
            if self._alone:
                pass
            elif state == "new":
                self.place.queue.tidy()
                self.place.write(arrived=uptime(), since=time.time())
            elif state == "gone":  # somebody cleaned up: the place in the queue stays the same
                self.place.write()
        except OSError as error:
            raise _no_place(error) from None
        self._queued = True

    def _pause(
        self,
        sampler: Sampler,
        words: Sequence[str] | None,
        end: float,
        tell: Callable[[NoFreeGpu], None],
        error: NoFreeGpu,
    ) -> None:
        """Wait until it may be this request's turn, or until `end`."""
        tick, look, told, seen = _TICK, _LOOK, -1, self.place.queue.changed_at()
        looked = time.monotonic()
        while (now := time.monotonic()) < end:
            if self.turn.position != told:
                told = self.turn.position
                tell(error)
            sampler.clock.sleep(min(tick, end - now))
            before, seen = seen, self.place.queue.changed_at()
            last_tick, last_look = _SLOWEST[self.turn.position == 1]
            tick = min(tick * _SLOWER, last_tick)
            if seen != before:
                self._enter()
                # something goes on; of many who wait, those at the end need not hurry
                tick, look = min(_TICK * self.turn.position, 1.0), _LOOK * self.turn.position
            elif time.monotonic() - looked < look:
                continue
            # the first notices GPUs that become free, and the folder changes when it takes them
            looked, look = time.monotonic(), min(look * _RARER, last_look)
            self._decide(None)
            if self.turn.gpus:
                verdicts = self._look(sampler, words, 0.0, 1)
                if self.turn.gpus:
                    return
                error = self.refusal(verdicts)


class _Mutex:
    """Lets one program at a time decide and take. If somebody keeps it for long, go on: the locks of the GPUs are still safe."""

    def __enter__(self) -> None:
        self._lock: Claim | None = None
        for _ in range(_MUTEX_TRIES):
            self._lock = claim("queue")
            if self._lock is not None:
                return
            time.sleep(0.01)

    def __exit__(self, *why: object) -> None:
        if self._lock is not None:
            self._lock.close()


def _no_place(error: OSError) -> GpulseError:
    why = f"cannot claim a GPU in {claims_folder()}: {error.strerror};"
    cure = "set GPULSE_CLAIMS to a folder that every user can write to"
    return GpulseError(why, f"{cure}, or use claim=False.", option=f"{cure}.")


PARENT = "GPULSE_CLAIM"  # the id of the claim that a program was started with


def allotted(
    gpus: Sequence[Gpu], count: int, words: Sequence[str] | None, environ: Mapping[str, str] = os.environ
) -> list[Gpu] | None:
    """Return `count` of the GPUs that were given to this program, None if none were; raise NoFreeGpu if they are fewer.

    `words` name the GPUs to choose from, as --gpu does.
    """
    whose, given = _given(gpus, environ)
    if given is None:
        return None
    if words is not None:
        named = {gpus[at].uuid for at in choose_gpus(gpus, words, environ)}
        given = [gpu for gpu in given if gpu.uuid in named]
    if len(given) < count:
        has = count_text(len(given), "GPU")
        raise NoFreeGpu(
            f"this program has {has} from {whose}, {count} requested;", "request fewer here, or more there."
        )
    return given[:count]


def _given(gpus: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[str, list[Gpu] | None]:
    ours = granted(gpus, environ)
    if word := environ.get(PARENT):
        mine = [
            entry
            for entry in Queue().entries()
            if entry.id == word and entry.uid == os.getuid() and entry.kind == "running"
        ]
        if mine:
            held = by_uuid(gpus, mine[0].gpus)
            return "the `gpulse run` around it", [gpu for gpu in held if _within(gpu, ours)]
    if environ.get("SLURM_JOB_ID") and (environ.get("SLURM_STEP_GPUS") or environ.get("SLURM_JOB_GPUS")):
        job = [gpus[at] for at in choose_gpus(gpus, ["job"], environ)]
        return "Slurm", [gpu for gpu in ours if _within(gpu, job)] or job
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes", ours
    return "", None


def _within(gpu: Gpu, gpus: Sequence[Gpu]) -> bool:
    """Return whether a GPU or MIG instance is one of these, or a part of one."""
    return any(gpu.uuid == other.uuid or gpu.uuid in {part.uuid for part in other.instances} for other in gpus)


_kept_claims: set[Claim | QueuePlace] = set()  # until the program ends or releases them, even if it forgets the object


class Picked(tuple["Gpu", ...]):
    """GPUs, best first, that no other call of `pick` returns until they are released or this program has ended.

    Use it as a tuple, or in a `with`, which releases them at its end.
    """

    _claims: tuple[Claim | QueuePlace, ...] = ()

    def release(self) -> None:
        """Allow others to select these GPUs again. Does nothing the second time."""
        for each in self._claims:
            each.close()
        _kept_claims.difference_update(self._claims)
        self._claims = ()

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that make exactly these GPUs visible to a program: CUDA_VISIBLE_DEVICES and others."""
        return selection(self)

    def __enter__(self) -> Picked:
        return self

    def __exit__(self, *why: object) -> None:
        self.release()


def with_claims(gpus: Iterable[Gpu], claims: Iterable[Claim | QueuePlace] = ()) -> Picked:
    """Return GPUs as picked, with claims that last as long as this program."""
    made = Picked(gpus)
    made._claims = tuple(claims)
    _kept_claims.update(made._claims)
    return made
