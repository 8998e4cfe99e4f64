"""Plug-ins, from real packages: a module and its metadata in a folder on the path, used by commands and monitors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = """
from gpulse.sources import Device, DeviceSample, Facts, Machine, Source
from gpulse.errors import SourceUnavailable

class Board(Device):
    def __init__(self, name):
        self.identity = {"index": 0, "uuid": "GPU-acme", "name": name, "vendor": "acme"}
    def read(self, keys, process_keys):
        sample = DeviceSample()
        sample.values.update({key: 42 for key in keys & {"utilization"}})
        sample.gaps.update(dict.fromkeys(keys - {"utilization"}, "unsupported"))
        return sample

class Box(Machine):
    def host(self, keys):
        facts = Facts()
        facts.values["name"] = "acme-box"
        return facts
    def processes(self, pids, keys):
        return {}

class Acme(Source):
    name = "acme"
    def __init__(self, detail):
        if detail == "absent":
            raise SourceUnavailable("acme: no board in this machine.", "Plug one in.")
        self.machine, self._detail = Box(), detail
    def open(self):
        self.devices = [Board(f"Acme {self._detail or 'One'}")]
"""
SINK = """
from gpulse.sinks import Sink

class Log(Sink):
    name = "log"
    stacks = True
    def __init__(self, path):
        self._path = path
    def open(self):
        self._file = open(self._path, "a")
    def write(self, sample):
        self._file.write(f"{sample.values.get('gpu0/utilization')}\\n")
        self._file.flush()
    def summarize(self, text):
        self._file.write(text)
    def continued(self):
        return f"log:{self._path}"
    def close(self):
        self._file.close()
"""


def package(folder: Path, name: str, code: str, points: str) -> None:
    """Install a package the way pip leaves it: a module, and a dist-info folder with its entry points."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(points))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    site = tmp_path / "site"
    package(site, "acme_gpus", SOURCE, "[gpulse.sources]\nacme = acme_gpus:Acme\nnotone = acme_gpus:Box\n")
    package(site, "acme_log", SINK, "[gpulse.sinks]\nlog = acme_log:Log\n")
    package(
        site,
        "torn",
        "import nothing_of_that_name\n",
        "[gpulse.sources]\ntorn = torn:Torn\n[gpulse.sinks]\ntorn = torn:T\n",
    )
    package(site, "quits", "raise SystemExit(7)\n", "[gpulse.sources]\nquits = quits:Source\ndemo = quits:Source\n")
    return os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{site}", "XDG_CONFIG_HOME": str(tmp_path)}


def gpulse(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpulse", *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def python(env: dict[str, str], code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_source_of_another_package_is_read_by_name(env: dict[str, str]) -> None:
    done = gpulse(env, "query", "--source", "acme:Two", "--query-gpu=name,utilization.gpu", "--format=csv,noheader")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Acme Two, 42 %\n"
    assert "Acme One" in gpulse(env | {"GPULSE_SOURCE": "acme"}, "status").stdout


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("torn", 3, "the source plug-in 'torn' (torn 1.2) does not work: ModuleNotFoundError: No module named 'nothing"),
        ("quits", 3, "the source plug-in 'quits' (quits 1.2) does not work: SystemExit: 7."),
        ("notone", 3, "the source plug-in 'notone' (acme_gpus 1.2) does not work: TypeError"),
        ("acme:absent", 3, "acme: no board in this machine. Plug one in."),
        ("acne", 2, "unknown source 'acne' (did you mean 'acme'?); choose one of auto, "),
    ],
)  # fmt: skip
def test_a_source_that_does_not_work_is_named_without_a_traceback(
    env: dict[str, str], name: str, code: int, says: str
) -> None:
    done = gpulse(env, "status", "--source", name)
    assert done.returncode == code
    assert done.stderr.startswith(f"gpulse: {says}")
    assert done.stderr.count("\n") == 1


def test_the_doctor_names_every_plug_in_and_what_is_wrong_with_it(env: dict[str, str]) -> None:
    done = gpulse(env | {"COLUMNS": "300"}, "doctor", "--demo")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if "plug-in" in line]
    assert [line for line in lines if line.startswith("ok")] == [
        "ok plug-in source 'acme' of acme_gpus 1.2.",
        "ok plug-in source 'notone' of acme_gpus 1.2.",
        "ok plug-in sink 'log' of acme_log 1.2.",
    ]
    warnings = [line for line in lines if line.startswith("warn")]
    assert any(
        "source 'demo' of quits 1.2 is never used: gpulse has a source of that name." in line for line in warnings
    )
    assert any("the source plug-in 'torn' (torn 1.2) does not work" in line for line in warnings)
    assert any("the sink plug-in 'torn' (torn 1.2) does not work" in line for line in warnings)
    assert any("'quits' (quits 1.2) does not work: SystemExit: 7." in line for line in warnings)
    assert len(warnings) == 4


@pytest.mark.parametrize("mode", ["process", "thread"])
def test_a_monitor_uses_sources_and_sinks_by_name(env: dict[str, str], tmp_path: Path, mode: str) -> None:
    code = f"""
        import time, gpulse
        sinks = ["log:{tmp_path}/log", "jsonl:{tmp_path}/run.jsonl"]
        monitor = gpulse.Monitor(sinks, source="acme", gpus="all", interval=0.1, mode="{mode}")
        with monitor:
            end = time.monotonic() + 20
            while monitor.latest is None and time.monotonic() < end:
                time.sleep(0.01)
        assert monitor.latest.gpus[0].name == "Acme One", monitor.latest
        assert monitor.errors == 0
    """
    done = python(env, code)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "log").read_text().startswith("42")
    assert '"Acme One"' in (tmp_path / "run.jsonl").read_text()


def test_a_sink_of_another_package_gets_stacks_and_lines_of_code_if_it_takes_them(
    env: dict[str, str], tmp_path: Path
) -> None:
    code = f"""
        from gpulse.sinks.base import sink_named
        sink = sink_named("log:{tmp_path}/log")
        sink.open()
        sink.summarize("train.py:84")
        sink.close()
        print(sink.stacks, bool(sink.continued()))
        sink.open()
        print(sink.continued())
        sink.close()
    """
    assert python(env, code).stdout == f"True False\nlog:{tmp_path}/log\n"
    assert (tmp_path / "log").read_text() == "train.py:84"


def test_a_broken_sink_is_named_and_stops_nothing(env: dict[str, str], tmp_path: Path) -> None:
    code = f"""
        import gpulse
        with gpulse.Monitor(["torn", "log:{tmp_path}/log"], source="demo", gpus="all", interval=0.1) as monitor:
            pass
        assert monitor.errors == 1
        print("trained")
    """
    done = python(env, code)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert done.stderr.startswith("gpulse: torn: the sink plug-in 'torn' (torn 1.2) does not work: ModuleNotFoundError")
    assert (tmp_path / "log").read_text()


def test_a_sink_name_that_is_wrong_is_refused_at_once(env: dict[str, str]) -> None:
    code = """
        import gpulse
        for name in ("lgo:x", "csv", "wandb:x", "tensorbord"):
            try:
                gpulse.Monitor(name)
            except gpulse.UsageError as error:
                print(error)
    """
    choices = (
        "choose one of csv, jsonl, tensorboard, wandb, mlflow, comet, clearml, swanlab, trackio, history, log, torn."
    )
    assert python(env, code).stdout.splitlines() == [
        f"unknown sink 'lgo:x' (did you mean 'log'?); {choices}",
        "the sink 'csv' needs a file; write it as csv:FILE.",
        "the sink 'wandb' takes nothing after its name; write it as wandb.",
        "unknown sink 'tensorbord' (did you mean 'tensorboard'?); write tensorboard:tensorbord or ./tensorbord for a folder of "
        f"TensorBoard, or {choices}",
    ]


def test_a_known_name_reads_no_metadata_of_packages(env: dict[str, str]) -> None:
    code = """
        import sys, gpulse
        gpulse.snapshot(["utilization"], source="demo")
        monitor = gpulse.Monitor(["csv:x.csv"], source="demo")
        assert "importlib.metadata" not in sys.modules
        assert "gpulse.plugins" not in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
