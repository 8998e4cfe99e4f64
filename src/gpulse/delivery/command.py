"""Command: a program run for an alert, which learns all about it from its environment."""

from __future__ import annotations

import os
import signal

from ..present.alerts import alert_text
from ..sampling.clock import SystemClock
from .delivery import Delivery, Failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..analysis.alerts import Transition

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
        timeout: float = _TIMEOUT,
        rules: Iterable[str] = (),
        clears: bool = True,
        clock: SystemClock | None = None,
    ) -> None:
        super().__init__(rules, clears)
        self._clock = clock or SystemClock()
        self._run_this = list(run)
        self._host = host
        self._timeout = timeout

    def deliver(self, transition: Transition) -> None:
        environ = {**os.environ, **variables(transition, self._host)}
        null = [(os.POSIX_SPAWN_OPEN, at, "/dev/null", os.O_RDONLY if at == 0 else os.O_WRONLY, 0) for at in range(3)]
        try:
            pid = os.posix_spawnp(
                self._run_this[0],
                self._run_this,
                environ,
                file_actions=null,
                setpgroup=0,
                setsigmask=(),
                setsigdef=_PYTHONS,
            )
        except OSError as error:
            raise Failed(f"{self._run_this[0]} cannot be run: {error.strerror}") from None
        code = self._wait(pid)
        if code is None:
            raise Failed(f"{self._run_this[0]} took too long and was killed")
        if code:
            raise Failed(f"{self._run_this[0]} ended with {code}")

    def _wait(self, pid: int) -> int | None:
        """Return the exit code of a program, below 0 for a signal; None for one that had to be killed."""
        until, pause = self._clock.monotonic() + self._timeout, 0.001
        try:
            while self._clock.monotonic() < until:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(status)
                if self.stopping.wait(pause):
                    break
                pause = min(0.05, 2 * pause)
            os.killpg(pid, signal.SIGKILL)  # nobody else reaps it, so that the number is still its own
            os.waitpid(pid, 0)
        except ChildProcessError:  # SIGCHLD is ignored here, and its code with it
            return 0
        return None


def variables(transition: Transition, host: str) -> dict[str, str]:
    """Return the environment of a program: what there is to say, one variable each, and every value of the alert by its name."""
    given: dict[str, object] = {
        "RULE": transition.rule,
        "STATE": transition.state,
        "SEVERITY": transition.severity,
        "GPU": transition.gpu,
        "UUID": transition.uuid,
        "WHAT": transition.what,
        "TIME": f"{transition.time:.3f}",
        "TEXT": alert_text(transition),
        "HOST": host,
        "VALUE": next((_text(value) for value in transition.values.values()), ""),
    }
    given |= {f"VALUE_{key.upper()}": _text(value) for key, value in transition.values.items()}
    return {f"GPULSE_{key}": _plain(str(value)) for key, value in given.items()}


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _plain(text: str) -> str:
    """Return a text that can stand in an environment: no NUL, no control characters, no lone surrogates."""
    return "".join(char if char.isprintable() else "?" for char in text)
