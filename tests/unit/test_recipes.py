"""The recipes of CONTRIBUTING.md, followed in a copy of the tree: what is added appears where they say, and they name every file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
RECIPES: dict[str, str] = dict(
    re.findall(r"^## (Add .+)\n((?:(?!## ).*\n)+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
)


class Edit(NamedTuple):
    """A new file, or the line of a table before which another is added."""

    path: str
    text: str
    before: str = ""


CARD = '''
"""Accelerators of Acme."""

from __future__ import annotations

from ..base import Device, DeviceSample, Source

KEYS = ("utilization",)


class AcmeDevice(Device):
    identity = {"index": 0, "uuid": "ACME-1", "name": "Acme One", "vendor": "acme"}

    def read(self, keys, process_keys):
        sample = DeviceSample()
        sample.values["utilization"] = 42.0
        return sample


class AcmeSource(Source):
    name = "acme"

    def __init__(self, root: str) -> None:
        self.root = root

    def open(self) -> None:
        self.devices = [AcmeDevice()]
'''
RULE = '''
"""too_cold: the GPU is colder than it can be."""

from __future__ import annotations

from ..rule import DiagnosisRule

RULE = DiagnosisRule(
    "too_cold", "limit", "window", lambda case: None, needs=("temperature",), signature="Below -20 °C.", blind="Winter.", sources=("NVML",)
)
'''
VERB = '''
"""`gpulse hello`: greet."""

from __future__ import annotations

import sys

from ..options import HELP, Verb


def run(arguments) -> int:
    """Greet."""
    sys.stdout.write("Hello.\\n")
    return 0


VERB = Verb("hello", (HELP,), run, (("gpulse hello", "greet"),))
'''
SINK = '''
"""Notes in a file."""

from __future__ import annotations

from .base import Sink


class NoteSink(Sink):
    """Write one note per sample."""

    name = "note"

    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, sample) -> None:
        """Write nothing."""
'''
KIND = """\
    Kind(
        "acme", "acme_queue", prefixes=("acme_",), ports=(7777,), model="", gauges={"waiting": Series("acme_queue")}
    ),
"""
EDITS = {
    "Add a metric": (
        Edit(
            "src/gpulse/model/catalog.py",
            '    coolant_flow = Number("Coolant flow", "Flow of the coolant.", group="thermal")\n',
            "    fan_rpm = ",
        ),
        Edit(
            "src/gpulse/sources/simulated/device.py",
            '    "coolant_flow": lambda moment: 7,\n',
            '    "sm_active": lambda',
        ),
    ),
    "Add a source": (
        Edit("src/gpulse/sources/acme/__init__.py", '"""Acme."""\n'),
        Edit("src/gpulse/sources/acme/source.py", CARD),
        Edit("src/gpulse/sources/vendors.py", '    "acme": ("acme.source.AcmeSource", ("acme",)),\n', '    "jetson": '),
    ),
    "Add a kind of model server": (
        Edit("src/gpulse/serving/kinds.py", KIND, '    Kind("ollama"'),
        Edit("src/gpulse/model/serving.py", '    "acme-server": (True, "acme"),\n', '    "uvicorn": '),
    ),
    "Add a setting": (
        Edit(
            "src/gpulse/settings/table.py",
            '    Setting("top", "wishes", "integer", 3, "Number of wishes"),\n',
            '    Setting("top", "columns"',
        ),
    ),
    "Add a verb": (
        Edit("src/gpulse/cli/commands/hello.py", VERB),
        Edit("src/gpulse/cli/main.py", '    "hello": "Greet the person at the keyboard",\n', '    "doctor": '),
    ),
    "Add a sink": (
        Edit("src/gpulse/sinks/note.py", SINK),
        Edit("src/gpulse/sinks/base.py", '    "note": ("note", "NoteSink", "FILE"),\n', '    "history": ('),
    ),
    "Add a diagnosis rule": (
        Edit("src/gpulse/analysis/diagnosis/rules/too_cold.py", RULE),
        Edit("src/gpulse/analysis/diagnosis/rules/__init__.py", "from . import too_cold\n", "# isort: on\n"),
        Edit("src/gpulse/analysis/diagnosis/rules/__init__.py", "    too_cold.RULE,\n", "    hw_slowdown.RULE"),
        Edit("src/gpulse/model/condition.py", '    _found("too_cold", "too cold", "warn"),\n', '    _found("not_used"'),
        Edit(
            "src/gpulse/present/verdict_titles.py",
            '    "too_cold": "The GPU is too cold.",\n',
            '    "not_used": ',
        ),
    ),
}
LOOK = """
import json, sys
from gpulse import sinks
from gpulse.model.condition import CONDITIONS
from gpulse.model.serving import server_kind
from gpulse.present.verdict_titles import TITLES
from gpulse.serving.kinds import KINDS
from gpulse.settings.table import TABLES
from gpulse.sinks.base import sink_named
import gpulse
gpu = gpulse.snapshot(source="demo").gpus[0]
json.dump({
    "metric": gpu.coolant_flow,
    "source": gpulse.snapshot(source="acme").gpus[0].utilization,
    "server": [server_kind("acme-server --port 1"), "acme" in [kind.name for kind in KINDS]],
    "setting": TABLES["top"]["wishes"].default,
    "sink": [sinks.NoteSink.__name__, type(sink_named("note:here")).__name__],
    "rule": [CONDITIONS["too_cold"].title, TITLES["too_cold"]],
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree in which every recipe has been followed, including `make docs`."""
    folder = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("__pycache__", "static", "labextension", "*.png")
    for name in ("src", "tools", "docs", "completions", "deploy"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for edit in (edit for edits in EDITS.values() for edit in edits):
        path = folder / edit.path
        if edit.before:
            text = path.read_text(encoding="utf-8")
            assert text.count(edit.before) == 1, f"{edit.path}: {edit.before}"
            path.write_text(text.replace(edit.before, edit.text + edit.before), encoding="utf-8")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(edit.text.lstrip(), encoding="utf-8")
    python(folder, "-m", "tools.docs")
    return folder


def python(folder: Path, *words: str) -> str:
    own = {"PYTHONPATH": f"{folder / 'src'}:{folder}", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("title", EDITS)
def test_a_recipe_names_every_file_that_had_to_change(title: str) -> None:
    named = {name.removeprefix("src/gpulse/") for name in re.findall(r"`([\w/.]+)`", RECIPES[title])}
    for edit in EDITS[title]:
        path = edit.path.removeprefix("src/gpulse/")
        folders = {f"{folder}/" for folder in Path(path).parents}
        assert path in named if edit.before else folders & named, f"{title} does not name {path}"


def test_what_was_added_works(tree: Path) -> None:
    assert json.loads(python(tree, "-c", LOOK)) == {
        "metric": 7,
        "source": 42,
        "server": ["acme", True],
        "setting": 3,
        "sink": ["NoteSink", "NoteSink"],
        "rule": ["too cold", "The GPU is too cold."],
    }
    assert python(tree, "-m", "gpulse", "hello") == "Hello.\n"
    assert "Greet the person at the keyboard" in python(tree, "-m", "gpulse", "--help")


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("docs/metrics.md", ("| `coolant_flow` |", "amd, intel, acme, jetson")),
        ("docs/series.md", ("| `gpulse_gpu_coolant_flow` |",)),
        ("docs/settings.md", ("| `wishes` | integer | `3` |", "`GPULSE_TOP_WISHES`")),
        ("docs/cli.md", ("## gpulse hello", "intel, acme, jetson", "acme:DIR")),
        ("docs/gpulse.1", ("gpulse hello",)),
        ("docs/diagnosis.md", ("### too_cold", "| `too_cold` | too cold | warn |")),
        ("docs/reference.md", ("### NoteSink",)),
        ("src/gpulse/sinks/__init__.pyi", ("NoteSink",)),
        ("completions/gpulse.bash", ("hello", "coolant_flow", "acme:")),
        ("completions/_gpulse", ("hello", "coolant_flow", "acme")),
    ],
)  # fmt: skip
def test_what_was_added_is_in_the_generated_files(tree: Path, page: str, words: tuple[str, ...]) -> None:
    text = (tree / page).read_text(encoding="utf-8")
    assert [word for word in words if word not in text] == []
