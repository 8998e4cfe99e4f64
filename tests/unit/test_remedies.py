"""From Python an error names what to do in Python's words; on the command line, in those of the command line."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpulse
from gpulse import errors
from gpulse.cli.main import main

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gpulse"
# Only the command line, the servers and the settings file lead here.
ELSEWHERE = ("cli", "surfaces", "delivery", "live", "settings", "supervision", "analysis/alerts")
# Commands of the system and options of docker, and commands of gpulse that have no counterpart in Python.
ALLOWED = re.compile(r"`(?!gpulse )[^`]*`|--pid=host|nvidia-smi( -[a-z])+|`gpulse (doctor|config)[^`]*`")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*\b|`gpulse [a-z]|gpulse --")
ERRORS = {name for name, entry in vars(errors).items() if inspect.isclass(entry)} | {"HistoryError", "BrokenPlugin"}


def spoken(text: str) -> list[str]:
    """Return the words of the command line in a text."""
    return OPTION.findall(ALLOWED.sub("", text))


def texts(node: ast.expr) -> str:
    return " ".join(
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def raised() -> list[tuple[str, ast.Call]]:
    """Return every error that is made where Python's users may meet it."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        where = str(path.relative_to(SOURCE))
        if not where.startswith(ELSEWHERE) or where.startswith("surfaces/notebook"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                name = getattr(getattr(node, "func", None), "id", "")
                if isinstance(node, ast.Call) and name in ERRORS:
                    found.append((f"{where}:{node.lineno}", node))
    return found


def test_the_words_of_the_command_line_are_found() -> None:
    assert spoken("use --demo.") == ["--demo"]
    assert spoken("`gpulse pick --wait` waits")
    assert spoken("record it with `gpulse record -o FILE`")
    assert spoken('use source="demo"; in a container, `--gpus all`; `gpulse doctor --capture DIR`') == []
    assert spoken("the 3-dimensional, read-only GPU-1a2b") == []


def test_every_error_speaks_python() -> None:
    calls = raised()
    assert len(calls) > 60
    found = {}
    for where, call in calls:
        words = [*call.args, *(word.value for word in call.keywords if word.arg != "option")]
        found[where] = spoken(" ".join(map(texts, words)))
    assert {where: words for where, words in found.items() if words} == {}


def test_an_error_speaks_the_language_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def remedy(**more: str) -> str:
        return str(errors.SourceUnavailable("no GPU;", 'use source="demo".', 9, **more))

    assert remedy(option="use --demo.") == 'no GPU; use source="demo".'
    monkeypatch.setattr(errors, "on_command_line", True)
    assert remedy(option="use --demo.") == "no GPU; use --demo."
    assert remedy() == 'no GPU; use source="demo".'


def test_the_command_line_leaves_python_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--demo", "--columns", "nonsense"]) == 2
    assert "see `gpulse metrics`" in capsys.readouterr().err
    assert errors.on_command_line is False
    with pytest.raises(gpulse.UnknownMetric, match=r"gpulse\.Gpu\.metrics\(\) lists them"):
        gpulse.snapshot(["nonsense"], source="demo")


def test_an_error_survives_the_way_from_a_worker() -> None:
    error = errors.SourceUnavailable("no GPU;", "use another machine.", 9)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.remedy, again.driver_code) == (str(error), error.remedy, 9)


PROVOKED: list[tuple[str, Callable[[Path], object]]] = [
    ("UnknownMetric", lambda folder: gpulse.snapshot(["nonsense"], source="demo")),
    ("UnknownGpu", lambda folder: gpulse.snapshot(gpus=[99], source="demo")),
    ("UsageError", lambda folder: gpulse.snapshot(source="nonsense")),
    ("UsageError", lambda folder: gpulse.snapshot(source="amd:/nonsense")),
    ("SourceUnavailable", lambda folder: gpulse.snapshot(source=f"jetson:{folder}")),
    ("SourceUnavailable", lambda folder: gpulse.snapshot(source=f"amd:{folder}")),
    ("SourceUnavailable", lambda folder: gpulse.snapshot(source=f"intel:{folder}")),
    ("GpulseError", lambda folder: gpulse.snapshot(source=f"smi:{folder / 'missing'}")),
    ("RecordingError", lambda folder: gpulse.snapshot(source=f"replay:{folder / 'missing'}")),
    ("RecordingError", lambda folder: gpulse.snapshot(source=f"replay:{_file(folder)}")),
    ("RecordingError", lambda folder: gpulse.open_recording(str(folder / "missing")).duration),
    ("UsageError", lambda folder: gpulse.pick(0)),
    ("UsageError", lambda folder: gpulse.pick(free_memory="much", source="demo")),
    ("NoFreeGpu", lambda folder: gpulse.pick(8, window=0, source="demo")),
    ("NoFreeGpu", lambda folder: gpulse.pick(99, window=0, source="demo")),
    ("UsageError", lambda folder: gpulse.Monitor(interval=0)),
    ("UsageError", lambda folder: gpulse.Monitor(mode="both")),  # type: ignore[arg-type]
    ("UsageError", lambda folder: gpulse.Monitor("nonsense")),
    ("UsageError", lambda folder: gpulse.Monitor("csv")),
    ("UsageError", lambda folder: gpulse.Monitor(gpus=[])),
    ("UnknownMetric", lambda folder: gpulse.Monitor(metrics=["nonsense"])),
    ("UsageError", lambda folder: gpulse.sinks.TensorBoardSink("runs", writer=object())),
    ("GpulseError", lambda folder: gpulse.sinks.WandbSink().open()),
    ("GpulseError", lambda folder: gpulse.sinks.CsvSink(_file(folder, "text\n")).open()),
    ("GpulseError", lambda folder: gpulse.sinks.JsonlSink(_file(folder, "text\n")).open()),
    ("UnknownMetric", lambda folder: gpulse.testing.scripted([{"nonsense": 1}])),
    ("UsageError", lambda folder: gpulse.testing.scripted([{"memory.used": 1}])),
]  # fmt: skip


def _file(folder: Path, text: str = "") -> str:
    path = folder / "file.jsonl"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(("kind", "provoke"), PROVOKED)
def test_a_mistake_in_python_is_told_in_python(
    kind: str, provoke: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULSE_CLAIMS", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(getattr(gpulse, kind)) as caught:
        provoke(tmp_path)
    assert spoken(str(caught.value)) == []


def test_a_machine_without_a_gpu_names_the_demo_in_both_languages(tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    env |= {"PYTHONPATH": str(ROOT / "src"), "GPULSE_ROOT": str(tmp_path)}

    def said(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    if "no driver" not in (there := said("-m", "gpulse", "status")) and "driver library" not in there:
        pytest.skip("this machine has a driver")
    assert "use --demo" in there
    assert 'use source="demo"' in said("-c", "import gpulse; gpulse.print_utilization()")
    assert 'use source="demo"' in said("-c", "import gpulse; gpulse.snapshot()")
    monitored = said("-c", "import gpulse, time\nwith gpulse.Monitor() as m:\n  while not m.errors: time.sleep(0.01)")
    assert 'use source="demo"' in monitored
