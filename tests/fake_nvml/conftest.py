"""What the tests of the scripted driver share."""

from __future__ import annotations

import pytest

from .scenario import Scenario


@pytest.fixture
def h200() -> Scenario:
    return Scenario.load("h200-busy")
