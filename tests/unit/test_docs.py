"""What the documents show works: Python runs on the demo, settings are valid, links lead somewhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.settings.effective import mistakes

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
# What a page takes for granted: names of the reader's own program.
PRELUDES = {"training.md": "epochs, loader = 1, [1, 2]\ntrain = evaluate = lambda *arguments: None\n"}
AFTER = "\nfor name in [name for name in globals() if name.startswith('test_')]:\n    globals()[name]()\n"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], flags=re.DOTALL)


def imports_only(block: str) -> bool:
    return all(isinstance(node, ast.ImportFrom) for node in ast.parse(block).body)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_of_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    if page == "python.md":
        pytest.importorskip("pandas")
    if page == "training.md":
        pytest.importorskip("tensorboard")
    code = PRELUDES.get(page, "") + "\n".join(block for block in blocks(page, "python") if not imports_only(block))
    own = {"GPULSE_SOURCE": "demo", "GPULSE_CLAIMS": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code + AFTER],
        env=os.environ | own,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_imports_is_there(page: str) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpulse."):
                home = ROOT / "src" / Path(*(node.module or "").split("."))
                places = (home / "__init__.pyi", home / "__init__.py", home.with_suffix(".py"))
                text = next(place for place in places if place.exists()).read_text()
                for alias in node.names:
                    assert re.search(rf"\b{alias.name}\b", text), f"{page}: {node.module}.{alias.name}"


@pytest.mark.parametrize("page", [page for page in PAGES if "[serve]" in PAGES[page] or "[alerts]" in PAGES[page]])
def test_the_settings_a_page_shows_are_valid(page: str, tmp_path: Path) -> None:
    for block in blocks(page, "toml"):
        path = tmp_path / "config.toml"
        path.write_text(block)
        assert mistakes(str(path), {}) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_a_page_links_to_is_there(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGES[page]):
        assert target.startswith("http") or (ROOT / "docs" / target).exists(), target


@pytest.mark.parametrize("title", ["Follow one sample", "Follow one incident", "Follow one verdict"])
def test_the_modules_of_a_walk_through_the_code_are_there(title: str) -> None:
    steps = re.findall(
        r"^\d+\. (.*)$", PAGES["architecture.md"].partition(f"## {title}\n")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert len(steps) > 8
    for step in steps:
        found = re.fullmatch(r"`([\w/]+\.py)` .+\.", step)
        assert found is not None, step
        assert (ROOT / "src/gpulse" / found[1]).exists(), found[1]


def test_the_architecture_lists_every_package_once() -> None:
    table = PAGES["architecture.md"].partition("## Packages\n")[2].partition("\n## ")[0]
    listed = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    folders = [path.parent.name for path in (ROOT / "src/gpulse").glob("*/__init__.py")]
    assert sorted(set(listed)) == sorted(listed)
    assert set(folders) <= set(listed)
