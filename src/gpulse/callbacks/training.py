"""What the callbacks of all frameworks share: the framework itself, the arguments of Monitor, and the events of a training run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import wraps
from typing import Literal, TypeAlias, TypedDict, get_type_hints

from ..errors import GpulseError
from ..monitor.monitor import Monitor
from ..monitor.process import tell
from ..sinks.base import Means, Sink, load
from .fetching import Fetches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import Unpack

    from ..monitor.windows import PhaseContext
    from ..sinks.base import Sample

    Hook = TypeVar("Hook", bound=Callable[..., Any])

_UNKNOWN = (
    "this version of the framework does not fetch batches as expected; the time spent waiting for data is not known."
)
_told: set[str] = set()  # what was said: the messages of an error may differ in every step

Sinks: TypeAlias = Sink | str | Sequence[Sink | str]


class MissingFramework(GpulseError, ImportError):
    """A framework that is not installed or cannot be loaded; also an ImportError."""


def framework(module: str, package: str) -> Any:
    """Import and return one module of a framework; raise MissingFramework with what to do if it is missing."""
    return load(module, package, MissingFramework)


class MonitorOptions(TypedDict, total=False):
    """The arguments that callbacks hand on to their Monitor."""

    interval: float
    metrics: Sequence[str] | None
    gpus: str | int | Sequence[str | int]
    mode: Literal["process", "thread"]
    ranks: Literal["one", "all"]
    report: bool
    alerts: bool
    stacks: bool
    flops_per_step: float | Literal["count"] | None
    dtype: str | None
    memory_snapshot: bool
    shared: str | None
    run: str | None
    initial_step: int
    source: str | None


def takes_monitor_options(construct: Hook) -> Hook:
    """Show the arguments of Monitor, with types and defaults, in the signature of a constructor instead of its `**options`.

    The types are real objects: LightningCLI and jsonargparse read them to check and convert the values of a YAML file.
    """
    from inspect import Parameter, signature

    own, defaults = signature(construct), signature(Monitor.__init__).parameters
    del construct.__annotations__["options"]
    types = get_type_hints(construct)
    parameters = [one.replace(annotation=types.get(one.name, one.annotation)) for one in own.parameters.values()]
    options = get_type_hints(MonitorOptions)
    parameters[-1:] = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name].default, annotation=kind)
        for name, kind in options.items()
    ]
    construct.__annotations__ = types | options
    construct.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return construct


class Monitored:
    """The constructor of callbacks, which takes the arguments of Monitor, and their monitor; a framework's class is the next base."""

    @takes_monitor_options
    def __init__(self, sinks: Sinks = (), **options: Unpack[MonitorOptions]) -> None:
        super().__init__()
        self._course = Course(sinks, options)

    @property
    def monitor(self) -> Monitor:
        """The monitor of this run or of the last one."""
        return self._course.monitor


class Logged(Monitored):
    """A callback that also logs to what the framework logs to, unless `log` is false."""

    @takes_monitor_options
    def __init__(self, sinks: Sinks = (), *, log: bool = True, **options: Unpack[MonitorOptions]) -> None:
        super().__init__(sinks, **options)
        self._logs = log


def say_once(key: str, sentence: str) -> None:
    """Print a sentence to stderr, once in this process for each key."""
    if key not in _told:
        _told.add(key)
        tell(f"gpulse: {sentence}")


def harmless(hook: Hook) -> Hook:
    """Return a hook that reports an error once on stderr and returns None, instead of raising into the training."""

    @wraps(hook)
    def guarded(*arguments: Any, **named: Any) -> Any:
        try:
            return hook(*arguments, **named)
        except Exception as error:  # noqa: BLE001  # no error of ours may stop the training
            say_once(hook.__qualname__, f"{type(error).__name__}: {error} (reported once; training continues).")

    return guarded  # type: ignore[return-value]


class Course:
    """The monitor of one callback, a new one for every training run; `monitor` is that of this run or the last one.

    A copy, also by pickle, has the same sinks and options but is not running. Its methods never raise and must be called in the
    thread that trains; only `reach` may be called by other threads, and late. `fetches` measures the time spent waiting for data.
    """

    def __init__(self, sinks: Sinks, options: MonitorOptions) -> None:
        named = isinstance(sinks, str) or not hasattr(sinks, "__iter__")
        self._sinks: list[Sink | str] = [sinks] if named else [*sinks]  # type: ignore[list-item,misc]
        self._options = options
        self._phases: list[PhaseContext] = []
        self._lock = threading.RLock()
        self._thread = 0
        self._uncounted = 0
        self._stepped = False
        self.reached = 0
        self.fetches = Fetches(self._waited)
        self.monitor = Monitor(self._sinks, **options)  # here, so that a wrong option is reported before the training

    def __reduce__(self) -> tuple[type[Course], tuple[Any, ...]]:
        return Course, (self._sinks, self._options)

    def __deepcopy__(self, memo: object) -> Course:
        return Course(self._sinks, self._options)  # an open sink has files and threads that cannot be copied

    # --- start, end and phases

    @harmless
    def begin(self, phase: str, *more: Sink) -> None:
        """Start a monitor with more sinks, optionally in a phase; one that is still running, as after an error, is stopped first."""
        self.end()
        self._thread = threading.get_ident()
        self._uncounted = self.reached = 0
        self._stepped = False
        self.monitor = Monitor([*self._sinks, *more], **self._options).start()
        self._open(phase)

    @harmless
    def end(self, error: BaseException | None = None) -> None:
        """Stop, and record the training's error if any; calling it again does nothing."""
        self._end_fetches(error)
        if threading.get_ident() == self._thread:  # phases belong to their thread, and stopping ends them, too
            while len(self._phases) > 1:
                self._phases.pop().__exit__()
            self.count()
            for phase in self._phases:
                phase.__exit__()
        self._phases = []
        self.monitor.__exit__(None, error, None)

    @harmless
    def enter(self, name: str) -> None:
        """Start a phase within the current one, or the run if there is none."""
        if not self._phases and self.monitor.ledger is None:
            self.begin(name)
        else:
            self._open(name)

    @harmless
    def leave(self) -> None:
        """End the innermost phase; ending the outermost one ends the run."""
        if len(self._phases) <= 1:
            self.end()
        else:
            self._phases.pop().__exit__()
            self.count()

    def _open(self, name: str) -> None:
        if name:
            phase = self.monitor.phase(name)
            phase.__enter__()
            self._phases.append(phase)

    @property
    def depth(self) -> int:
        """The number of open phases."""
        return len(self._phases)

    @harmless
    def mark(self, name: str, value: float | str | None = None) -> None:
        """Record a mark."""
        self.monitor.mark(name, value)

    # --- batches and steps

    def follow(self, find: Callable[[], Any], name: str, make: Callable[[Any], Any]) -> None:
        """Measure the fetches of this run in a method of what `find` returns; if it does not have it, the time is not known."""
        try:
            self.fetches.follow(find(), name, make)
        except Exception:  # noqa: BLE001  # another version has another class or method
            say_once("fetches", _UNKNOWN)

    def _waited(self, seconds: float) -> None:
        if threading.get_ident() == self._thread:  # another thread may train with the same framework
            self.monitor.waited(seconds)

    def _end_fetches(self, error: BaseException | None) -> None:
        if self.fetches.followed and self._stepped and not self.fetches.seen and error is None:
            say_once("fetches", _UNKNOWN)
        self.fetches.end()
        self.fetches = Fetches(self._waited)

    def reach(self, reached: int | None) -> None:
        """Count the steps up to this number; a number that is not larger than the last counts nothing."""
        with self._lock:
            if reached is not None and reached > self.reached:
                self._uncounted += reached - self.reached
                self.reached, self._stepped = reached, True
        if threading.get_ident() == self._thread:
            self.count()

    def at(self, reached: int) -> None:
        """Set the number of steps at which this training run starts; earlier ones are not counted. -1 if the first step is number 0."""
        self.reached = reached
        if (ledger := self.monitor.ledger) is not None:
            ledger.rhythm.resume(reached)

    def count(self) -> None:
        """Count the steps in the thread that trains and in the outermost phase, however late they are reported."""
        if len(self._phases) > 1:
            return
        with self._lock:
            steps, self._uncounted = self._uncounted, 0
        if steps:
            self.monitor.step(steps)


class Arrivals(Sink):
    """Keeps samples for a logger that only the training thread may use; as means, so that a long wait needs no memory."""

    name = "callback"

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._means: Means | None = None

    def __reduce__(self) -> tuple[type[Arrivals], tuple[()]]:
        return Arrivals, ()  # of a callback that is copied to another process

    def write(self, sample: Sample) -> None:
        with self._lock:
            if self._means is None:
                self._means = Means()
            self._means.add(sample.values)

    def take(self) -> dict[str, float]:
        """Return the means and start over; takes 0.1 µs if there was no sample, which is the usual case."""
        if self._means is None:
            return {}
        with self._lock:
            means, self._means = self._means, None
        return {} if means is None else means.values()
