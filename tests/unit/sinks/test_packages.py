"""Packages that are there, that are not, and that only look so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks.base import load


def test_a_module_is_found() -> None:
    assert load("json.decoder", "json").JSONDecoder


def test_a_package_that_is_not_there_is_named_with_its_remedy() -> None:
    with pytest.raises(GpulseError, match=r"^some-package is not installed\. Run `pip install some-package`\.$"):
        load("nowhere_at_all.inside", "some-package")


def test_a_folder_of_that_name_is_not_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_a_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GpulseError, match="is not installed"):
        load("only_a_folder", "only_a_folder")


def test_a_package_that_breaks_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_inside.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(GpulseError, match="cannot be loaded: No module named 'nowhere_at_all'"):
        load("broken_inside", "broken-inside")
