"""What the end-to-end tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.lab import Lab


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.close()
