"""A script: GPUs as they start, and what changes from sample to sample."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from itertools import count

from ..errors import UsageError
from ..model.catalog import GPU_METRICS, HOST_METRICS
from ..sources.registry import add_local, remove_local
from .part import ScriptedGpu, ScriptedPart
from .source import ScriptedSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from typing_extensions import Self

    Changes: TypeAlias = Mapping[str, Any] | str
    # a mapping is invariant in its keys, so that each way to write one is a type of its own
    Step: TypeAlias = Mapping[int, Changes] | Mapping[str, Changes] | Mapping[int | str, Changes]

_numbers = count(1)


def scripted(
    gpus: int | Sequence[Mapping[str, Any]] = 1,
    steps: Sequence[Step] = (),
    *,
    host: Mapping[str, Any] | None = None,
    driver: Mapping[str, str] | None = None,
    advance: bool = True,
    unavailable: str = "",
) -> Script:
    """Return a context manager (and decorator) inside which gpulse reads scripted GPUs instead of this machine's.

    `gpus` is a number of idle GPUs, or one mapping per GPU with catalog keys and, where wanted, `state`, `processes`, `gaps`
    and `instances`. The first sample shows them as given; each further sample applies the next of `steps`, and the last one
    stays. A step maps a GPU's index to its changes or to a state such as "lost", and "host" to changes of the host.
    With `advance=False` only `Script.advance()` moves on. `unavailable` makes opening fail with that message instead.

    Sampling by `Monitor` and `measure` happens in a thread. A source named explicitly, as in `snapshot(source="demo")`, is
    read as usual. Raises UsageError for a key or a value that the catalog does not allow.
    """
    return Script(gpus, steps, host=host, driver=driver, advance=advance, unavailable=unavailable)


class Script(ContextDecorator):
    """What the scripted machine does; made by `scripted`. Any thread may call anything."""

    def __init__(
        self,
        gpus: int | Sequence[Mapping[str, Any]] = 1,
        steps: Sequence[Step] = (),
        *,
        host: Mapping[str, Any] | None = None,
        driver: Mapping[str, str] | None = None,
        advance: bool = True,
        unavailable: str = "",
    ) -> None:
        self.lock = threading.RLock()
        self.driver = {"version": "scripted"} if driver is None else dict(driver)
        self.unavailable = unavailable
        self.samples = 0
        self._given = (gpus, host)
        self._steps = list(steps)
        self._follows = advance
        self._entered: list[str] = []
        self._begin()
        for step in self._steps:  # on the GPUs themselves, so that a mistake is found now and not in a thread
            self._apply(step)
        self._begin()

    def __enter__(self) -> Self:
        self._begin()
        name = f"scripted{next(_numbers)}"
        self._entered.append(name)
        add_local(name, lambda _: ScriptedSource(self))
        return self

    def __exit__(self, *error: object) -> None:
        remove_local(self._entered.pop())

    def __repr__(self) -> str:
        return f"<Script {len(self.gpus)} GPUs, step {self.step} of {len(self._steps)}, {self.samples} samples>"

    def set(self, gpu: int, **changes: Any) -> None:
        """Change a GPU at once: `set(0, utilization=90)`, `set(1, state="lost")`, `set(0, processes=[...])`."""
        with self.lock:
            self._apply({gpu: changes})

    def advance(self, steps: int = 1) -> None:
        """Apply the next steps now."""
        with self.lock:
            for step in self._steps[self.step : self.step + steps]:
                self._apply(step)
                self.step += 1

    def sampled(self) -> None:
        """Count a sample that is about to be taken; every one but the first moves the script on."""
        with self.lock:
            self.samples += 1
            if self._follows and self.samples > 1:
                self.advance()

    def _begin(self) -> None:
        gpus, host = self._given
        given = [{} for _ in range(gpus)] if isinstance(gpus, int) else gpus
        with self.lock:
            self.samples = self.step = 0
            self.gpus = [ScriptedGpu(index, values) for index, values in enumerate(given)]
            self.host = ScriptedPart(HOST_METRICS, "host", {"name": "scripted", **(host or {})})

    def _apply(self, step: Step) -> None:
        for target, changes in step.items():
            if target == "host" and not isinstance(changes, str):
                self.host.change(changes)
                continue
            if not isinstance(target, int) or not 0 <= target < len(self.gpus):
                raise UsageError(f"a step changes {target!r};", f"there are GPUs 0 to {len(self.gpus) - 1} and 'host'.")
            wanted = {"state": changes} if isinstance(changes, str) else changes
            for key in wanted:
                if key == "instances" or (key in GPU_METRICS and GPU_METRICS[key].kind == "identity"):
                    raise UsageError(f"a step changes {key!r} of GPU {target};", "set it in `gpus`: it never changes.")
            self.gpus[target].change(wanted)
