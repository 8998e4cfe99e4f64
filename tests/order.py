"""The order of test files: as pytest collects them, or random, to find tests that depend on those before them.

GPULSE_ORDER=random chooses a seed and prints it; GPULSE_ORDER=SEED repeats an order. Tests in one file keep their order, because they
share servers and browsers. A plugin would also shuffle those, or reset the random numbers before each test, which hides what one test
does to the next.
"""

from __future__ import annotations

import os
import random

import pytest

_FIRST = ("tests/unit/test_suite.py", "tests/unit/test_docs.py")  # long, and last in the order of names


def seed() -> str:
    """Return the seed, empty without one. The first process chooses it for those that it starts."""
    if os.environ.get("GPULSE_ORDER") == "random":
        os.environ["GPULSE_ORDER"] = str(random.SystemRandom().randrange(1_000_000))
    return os.environ.get("GPULSE_ORDER", "")


def arrange(items: list[pytest.Item]) -> None:
    """Sort tests by file; without a seed, begin with long files: one process would still be at them when all others have ended."""
    if not seed():
        items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))
        return
    files = sorted({file(item) for item in items})
    random.Random(seed()).shuffle(files)
    places = {name: place for place, name in enumerate(files)}
    items.sort(key=lambda item: places[file(item)])


def file(item: pytest.Item) -> str:
    """Return the file of a test."""
    return item.nodeid.partition("::")[0]
