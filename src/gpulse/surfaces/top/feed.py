"""The app's live samples: from a bus, whose thread waits for the driver."""

from __future__ import annotations

from ...sampling.bus import Bus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...model.snapshot import Snapshot
    from ...sampling.sampler import Sampler
    from .state import State


class LiveFeed:
    """Live samples. `wake` is called in another thread when there is a new one."""

    patience = None  # there is nothing to do until a sample or a key arrives

    def __init__(self, sampler: Sampler, state: State, wake: Callable[[], None]) -> None:
        self._state = state
        self._bus = Bus(sampler, state.settings.interval)
        self._subscription = self._bus.subscribe(2, wake)
        self._bus.start()

    def samples(self) -> list[Snapshot]:
        """Return the new samples."""
        self._bus.interval = self._state.settings.interval
        found = []
        while (fresh := self._subscription.get(0)) is not None:
            found.append(fresh)
        if self._bus.over:
            self._state.message = "The recording has ended."
        return found

    def close(self) -> None:
        """Stop sampling."""
        self._bus.close()
