"""A live feed: samples in threads of the kernel, also while a cell runs, for the widget and the live table."""

from __future__ import annotations

import threading

from ...sampling.bus import Bus
from ...sampling.sampler import Sampler
from ...sources.registry import default_source, make_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.select import Wanted
    from ...model.snapshot import Snapshot

_PATIENCE = 2.0  # seconds for a thread to end


class KernelFeed:
    """Samples every `interval` seconds until it is closed. `latest` is the last sample; the first is taken at once.

    Raises GpulseError where there is no GPU.
    """

    def __init__(self, wanted: Wanted, interval: float, source: str | None, gpus: Sequence[str] | None = None) -> None:
        self._sampler = Sampler(make_source(source or default_source()), wanted).open()
        try:
            if gpus is not None:
                self._sampler.choose(gpus)
            self._sampler.begin_rates()
            self._sampler.settle()
            self.latest: Snapshot = self._sampler.read()
        except BaseException:  # also an interrupted cell must not leave the driver open
            self._sampler.close()
            raise
        self.began = self._sampler.clock.monotonic()
        self._bus = Bus(self._sampler, interval)
        self._thread: threading.Thread | None = None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return self._sampler.clock.monotonic() - self.began

    def run(self, take: Callable[[Snapshot], None], ended: Callable[[], None] | None = None) -> None:
        """Start to call `take` with each sample, and `ended` after the last one, both in a thread."""
        subscription = self._bus.subscribe()

        def pump() -> None:
            try:
                for snapshot in subscription:
                    self.latest = snapshot
                    take(snapshot)
            finally:
                self._bus.close()
                self._sampler.close()
                if ended is not None:
                    ended()

        self._thread = threading.Thread(target=pump, name="gpulse-feed", daemon=True)
        self._thread.start()
        self._bus.start()

    def stop(self) -> None:
        """Take no more samples; returns at once."""
        self._bus.close()

    def close(self) -> None:
        """Stop, and wait until the last sample was passed on."""
        self.stop()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)
