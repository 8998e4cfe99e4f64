"""Command: runs a program for an alert, which is passed in its environment."""

from __future__ import annotations

import os
import signal

from ..present.alerts import alert_facts, alert_link, notice_title
from ..sampling.clock import SystemClock
from .delivery import LIMIT, Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping, Sequence

    from ..analysis.alerts import Notice

_TIMEOUT = 10.0
_PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by Python itself; a program expects them as they are


class Command(Delivery):
    """Runs a program, one at a time and in order, without a shell and with nothing of the alert in its arguments.

    Its input, output and errors are /dev/null. One that takes longer than `timeout` seconds is killed with all it started.
    """

    name = "command"

    def __init__(
        self,
        run: Sequence[str],
        *,
        host: str = "",
        link: str = "",
        timeout: float = _TIMEOUT,
        rules: Iterable[str] = (),
        clears: bool = True,
        limit: int = LIMIT,
        clock: SystemClock | None = None,
    ) -> None:
        super().__init__(rules, clears, limit)
        self._link = link
        self._clock = clock or SystemClock()
        self._run_this = list(run)
        self._host = host
        self._timeout = timeout

    @property
    def place(self) -> str:
        return self._run_this[0]

    def deliver(self, notice: Notice) -> None:
        environ = {**os.environ, **variables(notice, self._host, self._link)}
        run_program(self._run_this, environ, self._timeout, self.stopping, clock=self._clock)


def run_program(
    words: Sequence[str],
    environ: Mapping[str, str],
    timeout: float,
    stopping: threading.Event,
    *,
    stdin: int | None = None,
    clock: SystemClock | None = None,
) -> None:
    """Run a program without a shell, its input the file `stdin`, its output /dev/null; raise Failed if it fails or takes too long."""
    null = [(os.POSIX_SPAWN_OPEN, at, "/dev/null", os.O_RDONLY if at == 0 else os.O_WRONLY, 0) for at in range(3)]
    fed = [] if stdin is None else [(os.POSIX_SPAWN_DUP2, stdin, 0)]
    try:
        pid = os.posix_spawnp(
            words[0], [*words], environ, file_actions=null + fed, setpgroup=0, setsigmask=(), setsigdef=_PYTHONS
        )
    except OSError as error:
        raise Failed(f"{words[0]} cannot be run: {error.strerror}") from None
    code = _wait(pid, timeout, stopping, clock or SystemClock())
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
