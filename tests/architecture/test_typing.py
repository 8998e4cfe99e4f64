"""The public face as type checkers and editors see it; with every Python example of the documents."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surroundings import REAL_HOME

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What a page takes for granted: names of the reader's own program.
PRELUDE = """
import gpulse
epochs, loader = 1, [1, 2]
def train(*arguments: object) -> None: ...
def evaluate(*arguments: object) -> None: ...
def log(values: dict[str, float]) -> None: ...
"""
# Examples need not annotate their own functions; everything else is strict.
RELAXED = "# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators\n"
FIRST = 'import gpulse\nmonitor = gpulse.Monitor(gpulse.sinks.CsvSink("a"))\nsummary = monitor.stop()\n'
WRONG = "import gpulse\ngpulse.Monitor(gpulse.sinks.CsvSink(3))\ngpulse.Monitr()\nprint(gpulse.gpus()[0].utilisation)\n"


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def imports_only(block: str) -> bool:
    return all(isinstance(node, ast.ImportFrom) for node in ast.parse(block).body)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file per page, and one per block that only imports, because such blocks repeat names."""
    folder = tmp_path_factory.mktemp("examples")
    count = 0
    for page in PAGES:
        body = [block for block in blocks(page) if not imports_only(block)]
        if body:
            scopes = (
                [f"def part_{at}():\n{_indented(block)}" for at, block in enumerate(body)] if _repeats(body) else body
            )
            (folder / f"{page.stem}_page.py".lower()).write_text(RELAXED + PRELUDE + "\n".join(scopes))
            count += 1
        for at, line in enumerate(line for block in blocks(page) if imports_only(block) for line in block.splitlines()):
            (folder / f"{page.stem}_import_{at}.py".lower()).write_text(f"{line}\n")
    assert count >= 3
    (folder / "first_example.py").write_text(FIRST)
    return folder


def _repeats(body: list[str]) -> bool:
    names = [
        node.name
        for block in body
        for node in ast.parse(block).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    return len(names) != len(set(names))


def _indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def mypy(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Run mypy as the project is checked with it: strict, and with the same cache."""
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, paths)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


def test_mypy_strict_accepts_every_example(examples: Path) -> None:
    done = mypy(*sorted(examples.glob("*.py")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_finds_a_misspelled_name_and_a_wrong_argument(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong_example.py"
    wrong.write_text(WRONG)
    found = re.findall(r"wrong_example\.py:(\d+): error", mypy(wrong).stdout)
    assert found == ["2", "3", "4"]


@pytest.fixture(scope="module")
def mistakes(examples: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int, str]]:
    """What pyright finds: file, line and message. It checks the examples as it does by default, and some files strictly."""
    program = shutil.which("pyright", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("pyright")
    shutil.copytree(examples, folder / "examples")
    types = (ROOT / "tests/architecture/public_types.py").read_text(encoding="utf-8")
    for name, text in (("strict_example", FIRST), ("public_types", types), ("wrong_example", WRONG)):
        (folder / f"{name}.py").write_text(f"{text}\n# pyright: strict\n", encoding="utf-8")
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")], "pythonVersion": "3.10"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [program, "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    environ = os.environ | {"HOME": REAL_HOME}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=280, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {done.stderr[-200:]}")
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(list(folder.rglob("*.py")))
    problems = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    return [(Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"]) for each in problems]


def test_pyright_accepts_every_example_and_strictly_the_public_types(mistakes: list[tuple[str, int, str]]) -> None:
    assert [each for each in mistakes if each[0] != "wrong_example.py"] == []


def test_pyright_strict_finds_mistakes(mistakes: list[tuple[str, int, str]]) -> None:
    assert {line for file, line, _ in mistakes if file == "wrong_example.py"} == {2, 3, 4}
    # which only the strict rules find: the type of a name that is not there
    assert any("is unknown" in message for file, _, message in mistakes if file == "wrong_example.py")


COMPLETED = [
    ("import gpulse\ngpulse.Mon", "Monitor"),
    ("import gpulse\ngpulse.sinks.Csv", "CsvSink"),
    ("import gpulse\ngpulse.Monitor(gpulse.sinks.CsvSink('a')).ph", "phase"),
    ("from gpulse.sinks import Tens", "TensorBoardSink"),
    ("from gpulse.testing import scr", "scripted"),
]


JEDI = """
import jedi, json, sys
project = jedi.Project(sys.argv[1])
print(json.dumps([[c.name for c in jedi.Script(code, project=project).complete()] for code in json.load(sys.stdin)]))
"""


@pytest.mark.skipif(importlib.util.find_spec("jedi") is None, reason="needs jedi")
def test_an_editor_completes_public_names() -> None:
    words = [sys.executable, "-c", JEDI, str(ROOT / "src")]
    codes = json.dumps([code for code, _ in COMPLETED])
    done = subprocess.run(words, input=codes, capture_output=True, text=True, timeout=100, check=True)
    found = zip(COMPLETED, json.loads(done.stdout), strict=True)
    assert [code for (code, name), names in found if name not in names] == []


def test_handing_out_a_name_loads_nothing_for_its_annotations() -> None:
    code = """
import sys
before = set(sys.modules)
import gpulse
gpulse.Snapshot, gpulse.Gpu, gpulse.snapshot
loaded = set(sys.modules) - before
assert not {"typing", "inspect", "ast", "typing_extensions"} & loaded, loaded
assert "gpulse.analysis.summary" not in loaded
"""
    env = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
