"""The README names every verb and no missing file, and its Python runs on the demo; its commands: test_documented_commands.py."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


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
