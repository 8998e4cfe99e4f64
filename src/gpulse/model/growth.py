"""The growth of a counter between two readings."""

from __future__ import annotations


class Growth:
    """A counter that is read every few seconds, so most samples repeat its last value; `at` is the time of its last reading."""

    __slots__ = ("at", "value")

    def __init__(self, value: float = 0.0, at: float | None = None) -> None:
        self.at = at
        self.value = value

    def since(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth like `grown`, but for a value that has just been read: no growth is 0."""
        if value is not None and self.at is not None and value == self.value and at > self.at:
            since, self.at = self.at, at
            return 0.0, since
        return self.grown(value, at)

    def grown(self, value: float | None, at: float) -> tuple[float, float] | None:
        """Return the growth since the last reading and the time of that one; None if there is no new growth.

        A counter that fell was reset with the driver: counting begins again.
        """
        if value is None or (self.at is not None and value == self.value):
            return None
        before, since = self.value, self.at
        self.value, self.at = value, at
        return None if since is None or value < before or at <= since else (value - before, since)
