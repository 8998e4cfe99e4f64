"""What the end-to-end tests share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.lab import Lab


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.close()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that only waits to be ended."""
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()
