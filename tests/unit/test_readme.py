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


RESULTS = (ROOT / "bench" / "RESULTS.md").read_text()


def measured(row: str, pattern: str) -> float:
    """Return a figure of the row of RESULTS.md that begins with these words, the first of several."""
    found = re.search(rf"^\| {re.escape(row)} \| {pattern}", RESULTS, flags=re.MULTILINE)
    assert found, row
    return float(found[1])


def cells(row: str) -> dict[str, float]:
    """Return the figures of a row of the comparison by tool."""
    tools = re.search(r"^\| \| gpulse \|.*", README, flags=re.MULTILINE)
    line = re.search(rf"^\| {re.escape(row)} \|.*", README, flags=re.MULTILINE)
    assert tools
    assert line
    pairs = zip(tools[0].split("|")[2:-1], line[0].split("|")[2:-1], strict=True)
    return {tool.strip(): float(cell.replace(",", "").split()[0]) for tool, cell in pairs if cell.strip()}


def test_the_comparison_has_the_figures_of_the_benchmarks_and_compares_like_with_like() -> None:
    shell = r"(\d+) \("
    assert cells("one glance at 8 GPUs, all of its output, in a pipe") == {
        "gpulse": measured("`gpulse`, complete output", shell),
        "gpustat": measured("`gpustat`", shell),
        "nvitop": measured("`nvitop -1`", shell),
    }
    share = r"([\d.]+) \|"
    assert cells("live screen of 8 GPUs, share of a core") == {
        "gpulse": measured("`gpulse top`", share),
        "nvitop": measured("`nvitop -m full --interval 1`", share),
    }
    monitor = re.search(
        r"`gpulse.Monitor\(\)`, 60 pairs of seconds \| [\d.]+ \| ([\d.]+) \| ([\d.]+)–([\d.]+)", RESULTS
    )
    assert monitor
    assert f"{monitor[1]} × ({monitor[2]} to {monitor[3]})" in " ".join(README.split())


def test_the_comparison_is_dated_and_claims_no_run_that_was_not_made() -> None:
    assert re.search(r"Checked in \w+ 20\d\d: .*gpustat 1\.1\.1.*nvitop", " ".join(README.split()))
    assert "gpustat and nvitop were run beside gpulse" in README
    assert "nvtop was not available" in RESULTS
