"""Charging: the energy of one GPU, split among those that held it while it was used."""

from __future__ import annotations

from ...model.growth import Growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.catalog import Gpu
    from .accounts import Account

_SLOW = 4.9  # seconds after which the times that kernels ran have been read again, whether they grew or not


class EnergySplit:
    """One GPU. Counters are read every few seconds, so energy waits until it is known who ran kernels meanwhile."""

    def __init__(self) -> None:
        self._counter = Growth()
        self._joules = 0.0
        self._seconds = 0.0
        self._held: dict[Account, tuple[float, float | None]] = {}
        self._waits = False
        self._grew = False

    def hold(self, holder: Account, seconds: float, ran: float | None, counted: bool) -> None:
        """Note who holds the GPU and for how many seconds its kernels ran; `counted`: by a counter, which is read now and then."""
        before, busy = self._held.get(holder, (0.0, 0.0))
        self._held[holder] = (before + seconds, None if ran is None or busy is None else busy + ran)
        self._waits |= counted
        self._grew |= bool(ran)

    def settle(self, gpu: Gpu, time: float, seconds: float) -> tuple[list[tuple[Account, float]], float]:
        """Return the joules of each holder that are known now, and those of none."""
        self._seconds += seconds
        if gpu.energy is not None:
            known = self._counter.at is not None
            growth = self._counter.grown(gpu.energy, time)
            if growth is None:
                if not known:
                    self._clear()
                return [], 0.0
            self._joules, self._seconds = (
                growth[0],
                max(self._seconds, time - growth[1]),
            )  # also time that nobody watched
        elif gpu.power_draw is not None:
            self._joules += gpu.power_draw * seconds
            unlisted = gpu.gaps.get("processes") == "skipped"  # who held it is known at the next sample with a list
            if unlisted or (self._waits and not self._grew and self._seconds < _SLOW):
                return [], 0.0
        else:
            self._clear()
            return [], 0.0
        shares = self._shares()
        charged = [(holder, self._joules * share) for holder, share in shares.items()]
        left = self._joules - sum(joules for _, joules in charged)
        self._clear()
        return charged, left if left > 1e-6 else 0.0

    def _shares(self) -> dict[Account, float]:
        """Return the part of each holder: of one that is alone, its time; of several, by the time their kernels ran."""
        if len(self._held) == 1:
            ((holder, (seconds, _)),) = self._held.items()
            return {holder: min(1.0, seconds / self._seconds) if self._seconds else 1.0}
        known = {holder: busy for holder, (_, busy) in self._held.items() if busy is not None}
        total = sum(known.values())
        if len(known) < len(self._held) or total <= 0:
            return {}
        return {holder: busy / total for holder, busy in known.items()}

    def _clear(self) -> None:
        self._joules = self._seconds = 0.0
        self._held = {}
        self._waits = self._grew = False
