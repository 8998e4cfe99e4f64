"""Where the app's looks come from while a machine is watched: a bus, whose thread waits for the driver."""

from __future__ import annotations

from ...sampling.bus import Bus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from .state import State


class LiveFeed:
    """Looks as the driver gives them. `wake` is called, in another thread, when there is one."""

    patience = None  # only a sample or a key can bring something to do

    def __init__(self, sampler: Sampler, state: State, wake: Callable[[], None]) -> None:
        self._state = state
        self._bus = Bus(sampler, state.settings.interval)
        self._subscription = self._bus.subscribe(2, wake)
        self._bus.start()

    def samples(self) -> list[Snapshot]:
        """Return the samples that are new."""
        self._bus.interval = self._state.settings.interval
        found = []
        while (fresh := self._subscription.get(0)) is not None:
            found.append(fresh)
        return found

    def close(self) -> None:
        """Stop looking."""
        self._bus.close()
