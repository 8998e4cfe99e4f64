"""The README's commands can be parsed, and its Python runs on the demo."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS, _verb_and_options, load
from gpulse.cli.options import parse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("gpulse")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_is_one_that_gpulse_understands(command: str) -> None:
    name, words = _verb_and_options(shlex.split(command, comments=True)[1:])
    parse(load(name or "status"), words)


def test_every_verb_is_in_a_page_written_by_hand() -> None:
    generated = {"cli.md", "reference.md"}
    pages = [README, *(path.read_text() for path in (ROOT / "docs").glob("*.md") if path.name not in generated)]
    assert [verb for verb in VERBS if not any(f"gpulse {verb}" in page for page in pages)] == []


@pytest.mark.parametrize("block", blocks("python"))
def test_the_python_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    env = os.environ | {"GPULSE_SOURCE": "demo", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", block], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.search(
        r"H100|did not use GPUs 0-7", done.stdout + done.stderr
    )  # a program without CUDA uses none of the GPUs


def test_every_file_the_readme_names_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target
