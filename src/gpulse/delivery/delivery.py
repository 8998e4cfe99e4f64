"""Deliveries: each sends alerts to people from its own queue and thread, so that it never delays a sample.

Here are those without a protocol: the terminal bell, a function, and a program, which gets the alert in its environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque

from ..present.alerts import alert_facts, alert_link, notice_title
from ..queue_worker import QueueWorker
from ..sampling.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..analysis.alerts import Notice


LIMIT = 30  # messages in an hour
_WAITING = 256  # messages a delivery may be behind
_LAST = 0.2  # seconds it gets to give up: to kill a program it still waits for
_HOUR = 3600.0


class Failed(Exception):
    """A delivery that did not succeed; the text says why, and holds no secrets."""


class Delivery(QueueWorker):
    """One way to deliver messages. Subclasses do the work in `deliver`, which runs in a thread of its own and may take its time.

    `delivered`, `failed` and `dropped` count messages; the first failure is reported to `say`. `rules` names the rules it is
    for, all when empty; without `clears` only the start of an alert is delivered. Of more than `limit` messages in an hour the rest is
    counted, and the next one says how many; 0 is no limit. `host` is this machine and `link` its page, for messages. `stopping` is
    set when it must give up.
    """

    name = "delivery"
    kinds: tuple[str, ...] = ("fire", "clear", "repeat", "test")
    refresh = 0.0  # seconds after which it is told of all that is active, 0 for never

    def __init__(
        self, rules: Iterable[str] = (), clears: bool = True, limit: int = LIMIT, host: str = "", link: str = ""
    ) -> None:
        super().__init__(self.name, _WAITING)
        self._rules = frozenset(rules)
        self._clears = clears
        self._limit = limit
        self._host, self._link = host, link
        self._sent: deque[float] = deque()
        self._held = 0
        self.delivered = 0

    @property
    def place(self) -> str:
        """Where it delivers to, without secrets."""
        return ""

    def deliver(self, notice: Notice) -> None:
        """Deliver one message; raise Failed with the reason when that is not possible."""
        raise NotImplementedError

    def put(self, notice: Notice) -> None:
        """Hand over a message and return at once."""
        if notice.kind not in self.kinds or (notice.ends and not self._clears):
            return
        alerts = [alert for alert in notice.alerts if not self._rules or alert.rule in self._rules]
        if alerts and (passed := self._limited(notice.replace(alerts=alerts))) is not None:
            super().put(passed)

    def _limited(self, notice: Notice) -> Notice | None:
        if not self._limit or notice.kind not in ("fire", "clear", "repeat"):
            return notice
        while self._sent and not 0 <= notice.time - self._sent[0] < _HOUR:
            self._sent.popleft()
        if len(self._sent) >= self._limit:
            self._held += len(notice.alerts)
            return None
        self._sent.append(notice.time)
        held, self._held = self._held, 0
        return notice.replace(held=held, last=len(self._sent) == self._limit)

    def end(self, until: float) -> bool:
        """Wait until all is delivered, at most until this time.monotonic(), then make it give up; return False when it had to."""
        done = self.join(until - time.monotonic())
        self.stopping.set()
        self.join(_LAST)
        return done

    def handle(self, notice: Notice) -> None:
        self.deliver(notice)
        self.delivered += 1

    def complaint(self, error: Exception) -> str:
        return f"alerts: {self.name}: {reason(error)} (reported once; further alerts are still sent)."


def reason(error: Exception) -> str:
    """Return why a delivery failed."""
    return str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"


class Bell(Delivery):
    """Rings a terminal when something begins."""

    name = "bell"

    def __init__(self, terminal: str = "/dev/tty", rules: Iterable[str] = ()) -> None:
        super().__init__(rules, clears=False, limit=0)
        self._terminal = terminal

    @property
    def place(self) -> str:
        return self._terminal

    def deliver(self, notice: Notice) -> None:
        try:
            handle = os.open(self._terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise Failed(f"{self._terminal} cannot be opened: {error.strerror}") from None
        try:
            if not os.isatty(handle):
                raise Failed(f"{self._terminal} is not a terminal")
            os.write(handle, b"\a")
        except OSError as error:
            raise Failed(f"{self._terminal} cannot be written: {error.strerror}") from None
        finally:
            os.close(handle)


class Callback(Delivery):
    """Calls a function with each message, in this delivery's own thread."""

    def __init__(self, function: Callable[[Notice], None], name: str = "page", rules: Iterable[str] = ()) -> None:
        self.name = name
        super().__init__(rules, limit=0)
        self._function = function

    def deliver(self, notice: Notice) -> None:
        self._function(notice)


_TIMEOUT = 10.0
_PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by Python itself; a program expects them as they are


class Command(Delivery):
    """Runs a program, one at a time and in order, without a shell and with nothing of the alert in its arguments.

    Its input, output and errors are /dev/null. One that takes longer than `timeout` seconds is killed with all it started.
    """

    name = "command"

    def __init__(
        self, run: Sequence[str], *, timeout: float = _TIMEOUT, clock: SystemClock | None = None, **common: Any
    ) -> None:
        super().__init__(**common)
        self._clock = clock or SystemClock()
        self._run_this = list(run)
        self._timeout = timeout

    @property
    def place(self) -> str:
        return self._run_this[0]

    def deliver(self, notice: Notice) -> None:
        environ = {**os.environ, **variables(notice, self._host, self._link)}
        run_program(self._run_this, environ, self._timeout, self.stopping, self._clock)


def run_program(
    words: Sequence[str],
    environ: Mapping[str, str],
    timeout: float,
    stopping: threading.Event,
    clock: SystemClock,
) -> None:
    """Run a program without a shell, its input and output /dev/null; raise Failed if it fails or takes too long."""
    null = [(os.POSIX_SPAWN_OPEN, at, "/dev/null", os.O_RDONLY if at == 0 else os.O_WRONLY, 0) for at in range(3)]
    try:
        pid = os.posix_spawnp(
            words[0], [*words], environ, file_actions=null, setpgroup=0, setsigmask=(), setsigdef=_PYTHONS
        )
    except OSError as error:
        raise Failed(f"{words[0]} cannot be run: {error.strerror}") from None
    code = _wait(pid, timeout, stopping, clock)
    if code is None:
        raise Failed(f"{words[0]} took too long and was killed")
    if code:
        raise Failed(f"{words[0]} ended with {code}")


def _wait(pid: int, timeout: float, stopping: threading.Event, clock: SystemClock) -> int | None:
    """Return the exit code of a program, below 0 for a signal; None for one that had to be killed."""
    until, pause = clock.monotonic() + timeout, 0.001
    try:
        while clock.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if stopping.wait(pause):
                break
            pause = min(0.05, 2 * pause)
        os.killpg(pid, signal.SIGKILL)  # nobody else reaps it, so that the number is still its own
        os.waitpid(pid, 0)
    except ChildProcessError:  # SIGCHLD is ignored here, and its code with it
        return 0
    return None


def variables(notice: Notice, host: str, link: str = "") -> dict[str, str]:
    """Return the environment of a program: what there is to say, one variable each, and every value of the first alert by its name."""
    first = notice.alerts[0]
    facts = dict(alert_facts(first))
    given: dict[str, object] = {
        "KIND": notice.kind,
        "COUNT": len(notice.alerts),
        "RULE": first.rule,
        "STATE": first.state,
        "SEVERITY": first.severity,
        "GPU": first.gpu,
        "GPUS": ",".join(dict.fromkeys(name for alert in notice.alerts for name in alert.event.gpus)),
        "UUID": first.uuid,
        "WHAT": first.what,
        "ID": first.id,
        "TIME": f"{first.time:.3f}",
        "TEXT": notice_title(notice),
        "HOST": host,
        "USER": facts.get("user", ""),
        "JOB": facts.get("job", ""),
        "LINK": alert_link(first, link) if link else "",
        "VALUE": next((_text(value) for value in first.values.values()), ""),
    }
    given |= {f"VALUE_{key.upper()}": _text(value) for key, value in first.values.items()}
    return {f"GPULSE_{key}": _plain(str(value)) for key, value in given.items()}


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _plain(text: str) -> str:
    """Return a text that can stand in an environment: no NUL, no control characters, no lone surrogates."""
    return "".join(char if char.isprintable() else "?" for char in text)
