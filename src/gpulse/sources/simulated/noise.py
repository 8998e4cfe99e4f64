"""Stateless noise: every number is a hash of position and time, so reads may come in any order and number."""

from __future__ import annotations

from math import cos, floor, pi

_MASK = (1 << 64) - 1
_CELL = 1.7  # seconds; longer than the averaging window of power, or the noise would average out


def scatter(seed: int, cell: int) -> float:
    """Return a pseudo-random number in [-1, 1) that depends only on these two values."""
    bits = (seed * 0x9E3779B97F4A7C15 + cell * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 31)) * 0x94D049BB133111EB) & _MASK
    bits = ((bits ^ (bits >> 29)) * 0xD6E8FEB86659FD93) & _MASK
    return (bits >> 11) / (1 << 52) - 1.0


def digits(seed: int, cell: int, count: int) -> str:
    """Return this number of hexadecimal digits, for names such as a UUID."""
    whole = 0
    for part in range(count // 8 + 1):
        whole = whole << 32 | int((scatter(seed, cell * 64 + part) + 1.0) * (1 << 31))
    return f"{whole:0{count}x}"[-count:]


def hum_area(seed: int, at: float) -> float:
    """Return the integral from 0 to `at` of noise between -1 and 1.

    The noise is one sine of random height in each cell; a whole cell adds nothing, so the integral needs no history.
    """
    cell = floor(at / _CELL)
    turn = 2.0 * pi * (at / _CELL - cell)
    return scatter(seed, cell) * (1.0 - cos(turn)) * _CELL / (2.0 * pi)
