from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gpulse import plugins


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose pip is the first in PATH."""
    for name in ("pip", "python"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_the_command_names_the_packages_of_the_extra(pip: Path) -> None:
    assert plugins.extra_command("mcp") == "pip install 'mcp>=2'"
    for extra, name in (("serve", "starlette"), ("notebook", "anywidget"), ("stacks", "py-spy")):
        assert name in plugins.extra_command(extra)


def test_another_pip_in_the_path_is_not_taken(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my env/bin/python")
    assert plugins.install_command("a", "b>=2", upgrade=True) == "'/opt/my env/bin/python' -m pip install -U a 'b>=2'"


def test_an_environment_without_pip_is_installed_into_with_uv(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert plugins.install_command("a") == f"uv pip install --python {sys.executable} a"


def test_pipx_injects_into_its_environment(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", os.path.expanduser("~/.local/share/pipx/venvs/gpulse"))
    assert plugins.extra_command("mcp") == "pipx inject gpulse 'mcp>=2'"


def test_a_source_tree_that_was_never_installed_is_installed_with_the_extra(
    pip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.metadata

    def unknown(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", unknown)
    assert plugins.extra_command("serve") == f"pip install '{Path(__file__).parents[2]}[serve]'"
