"""Frameworks that are missing or broken, and the price of the package without any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.callbacks.training import MissingFramework, framework
from gpulse.errors import GpulseError


def test_a_missing_framework_is_an_import_error_with_a_remedy() -> None:
    with pytest.raises(ImportError, match=r"nosuch is not installed\. Run `pip install nosuch`\.") as caught:
        framework("nosuch.deep", "nosuch")
    assert isinstance(caught.value, GpulseError)


def test_a_broken_framework_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("import needed_by_broken")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingFramework, match="broken cannot be loaded: No module named 'needed_by_broken'"):
        framework("broken", "broken")


def test_a_framework_is_loaded_and_no_more_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy").mkdir()
    (tmp_path / "lazy" / "__init__.py").write_text("__all__ = ['dear']")
    (tmp_path / "lazy" / "dear.py").write_text("raise AssertionError('loaded')")
    (tmp_path / "lazy" / "part.py").write_text("ANSWER = 42")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert framework("lazy.part", "lazy").ANSWER == 42
    assert framework("lazy", "lazy").__all__ == ["dear"]


@pytest.mark.parametrize("name", ["lightning", "transformers", "keras", "accelerate"])
def test_each_callback_says_which_framework_it_misses(name: str) -> None:
    code = f"""
import sys, gpulse.callbacks
ours = {{module for module in sys.modules if module.startswith("gpulse")}}
assert ours == {{"gpulse", "gpulse.callbacks"}}, ours
for missing in ("lightning", "pytorch_lightning", "transformers", "keras", "accelerate"):
    sys.modules[missing] = None
try:
    gpulse.callbacks.{name}
except ImportError as error:
    print(error)
"""
    src = Path(__file__).parents[3] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(src)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == (f"{name} is not installed. Run `pip install {name}`.\n", "")


def test_no_other_name_is_there() -> None:
    import gpulse.callbacks

    with pytest.raises(AttributeError, match="fastai"):
        gpulse.callbacks.fastai  # type: ignore[attr-defined]  # noqa: B018
    assert {"lightning", "transformers", "keras", "accelerate"} <= set(dir(gpulse.callbacks))
