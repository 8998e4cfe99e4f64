"""Real experiment trackers without a network, each in a process of its own, because they change much when they are imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks import AimSink, ClearmlSink, CometSink, Sink, SwanlabSink, TrackioSink
from tests.unit.samples import sample

ROOT = Path(__file__).parents[3]
PRELUDE = """
import json, os, sys, threading, warnings
warnings.simplefilter("ignore")
from gpulse.errors import GpulseError
from gpulse.model.event import Event
from gpulse.sinks import Alert
from tests.unit.samples import START, sample

def refused(make):
    try:
        make().open()
    except GpulseError as error:
        return str(error)

def alert(state, severity):
    return Alert(START, "lost", state, severity, "GPU 2 is lost", Event(START, "lost", ("2",)))

def fill(sink, own=lambda: None):
    '''Log as a monitor does: opened here, written in another thread.'''
    sink.open()
    def write():
        for at, value in enumerate((50.0, 0.0, 100.0)):
            one = sample(at, {"gpu0/utilization": value, "host/cpu_percent": at}, step=at)
            one.alerts = (alert("fire", "critical"), alert("clear", "critical")) if at == 1 else ()
            sink.write(one)
            own()
        sink.summarize("| train.py:84 |")
        sink.flush()
        done.append(True)
    done = []
    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert done, "the thread failed"

def tell(**answers): print(); print(json.dumps(answers))
"""
COMET = """
import glob, zipfile, comet_ml
from gpulse.sinks import CometSink
none = refused(CometSink)
experiment = comet_ml.OfflineExperiment(offline_directory="off", log_code=False, log_env_details=False, log_git_metadata=False,
    log_git_patch=False, auto_output_logging=False, parse_args=False, display_summary_level=0)
experiment.log_metric("loss", 1.0, step=7)
sink = CometSink()
fill(sink)
sink.close()
sink.open()
experiment.end()
sink.write(sample(9, {"gpu0/utilization": 7.0}))
sink.close()
(path,) = glob.glob("off/*.zip")
with zipfile.ZipFile(path) as archive:
    lines = [json.loads(line) for line in archive.read("messages.json").splitlines()]
    texts = [archive.read(line["payload"]["file_path"]).decode() for line in lines if line["payload"].get("upload_type") == "text-sample"]
metrics = [line["payload"]["metric"] for line in lines if line["type"] == "metric_msg"]
tell(none=none, texts=texts, rows=[(each["metricName"], each["metricValue"]) for each in metrics if "gpu0" in each["metricName"]],
    steps=[each["step"] for each in metrics if each["metricName"] == "gpulse/gpu0/utilization"])
"""
CLEARML = """
import clearml
from gpulse.sinks import ClearmlSink
none = refused(ClearmlSink)
clearml.Task.set_offline(True)
task = clearml.Task.init("gpulse", "test", auto_connect_frameworks={"detect_repository": False}, auto_resource_monitoring=False,
    auto_connect_streams=False, auto_connect_arg_parser=False)
sink = ClearmlSink(step="train")
fill(sink)
sink.close()
task.close()
folder = str(task.get_offline_mode_folder())
def lines(name): return [each for line in open(f"{folder}/{name}") for each in json.loads(line)]
tell(none=none, rows=[(each["metric"], each["value"]) for each in lines("metrics.jsonl") if "gpu0" in each["metric"]],
    steps=[each["iter"] for each in lines("metrics.jsonl") if each["metric"] == "gpulse/gpu0/utilization"],
    texts=[each["msg"] for each in lines("log.jsonl") if "gpulse:" in each["msg"] and each["level"] in ("error", "info")])
"""
TRACKIO = """
import sqlite3, trackio
from gpulse.sinks import TrackioSink
none = refused(TrackioSink)
run = trackio.init("gpulse", name="run", embed=False, auto_log_gpu=False, auto_log_cpu=False)
sink = TrackioSink()
fill(sink, lambda: run.log({"loss": 1.0}))
sink.close()
trackio.finish()
base = sqlite3.connect(os.environ["TRACKIO_DIR"] + "/gpulse.db")
rows = [json.loads(row) for row, in base.execute("select metrics from system_metrics order by timestamp")]
tell(none=none, rows=[pair for row in rows for pair in row.items() if "gpu0" in pair[0]],
    steps=[step for step, in base.execute("select step from metrics order by step")],
    texts=[": ".join(row) for row in base.execute("select title, text, level from alerts")])
"""
SWANLAB = """
import swanlab
from gpulse.sinks import SwanlabSink
none = refused(SwanlabSink)
run = swanlab.init(mode="offline", log_dir="log", project="gpulse")
logged = []
real = type(run)._log_impl
def kept(self, data, step=None):
    logged.append((dict(data), step))
    return real(self, data, step)
type(run)._log_impl = kept
sink = SwanlabSink()
fill(sink, lambda: run.log({"loss": 1.0}))
sink.close()
sink.open()
swanlab.finish()
sink.write(sample(9, {"gpu0/utilization": 7.0}))
sink.close()
tell(none=none, rows=[(name, value) for data, _ in logged for name, value in data.items() if "gpu0" in name],
    steps=[step for data, step in logged if "loss" not in data], texts=[])
"""
AIM = """
import aim
from gpulse.sinks import AimSink
run = aim.Run(repo="repo", system_tracking_interval=None, capture_terminal_logs=False)
sink = AimSink(run)
fill(sink, lambda: run.track(1.0, name="loss"))
sink.close()
(curve,) = [metric for metric in run.metrics() if metric.name == "gpulse/gpu0/utilization"]
rows = curve.dataframe()
tell(none="", rows=[(curve.name, value) for value in rows["value"]], steps=[int(step) for step in rows["step"]],
    texts=[record.values.sparse_list()[1][0].json()["message"] for record in [run.get_log_records()] if record])
run.close()
"""
CASES = {
    "comet": (COMET, "comet_ml", "gpulse/", [7, 7, 7], ["GPU 2 is lost", "| train.py:84 |"],
        "no Comet experiment is running. Call comet_ml.start()"),
    "clearml": (CLEARML, "clearml", "gpulse/", [0, 1, 2], ["gpulse: GPU 2 is lost", "gpulse:\n| train.py:84 |"],
        "no ClearML task is active. Call clearml.Task.init()"),
    "trackio": (TRACKIO, "trackio", "gpulse/", [0, 1, 2], ["gpulse: lost: GPU 2 is lost: error"],
                "no Trackio run is active. Call trackio.init()"),
    "swanlab": (SWANLAB, "swanlab", "gpulse/", [0, 1, 2], [], "no SwanLab run is active. Call swanlab.init()"),
    "aim": (AIM, "aim", "gpulse/", [0, 1, 2], ["gpulse: GPU 2 is lost"], ""),
}  # fmt: skip


def told(code: str, folder: Path) -> Any:
    environ = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "HOME": str(folder),
        "TRACKIO_DIR": str(folder / "trackio"),
        "CLEARML_CACHE_DIR": str(folder / "clearml"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], cwd=folder, env=environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("tracker", CASES)
def test_values_and_alerts_arrive_and_the_program_keeps_its_steps(tracker: str, tmp_path: Path) -> None:
    code, package, prefix, steps, texts, none = CASES[tracker]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    found = told(code, tmp_path)
    assert found["rows"] == [[f"{prefix}gpu0/utilization", value] for value in (50.0, 0.0, 100.0)]
    assert found["steps"] == steps
    assert found["texts"] == texts
    assert found["none"].startswith(none)


@pytest.mark.parametrize("make", [CometSink, ClearmlSink, SwanlabSink, TrackioSink])
def test_closing_is_safe_without_opening(make: type[Sink]) -> None:
    sink = make()
    sink.close()
    sink.write(sample(0, {"gpu0/utilization": 1.0}))


def test_aim_needs_its_run() -> None:
    with pytest.raises(TypeError, match="run"):
        AimSink()  # type: ignore[call-arg]


def test_an_unknown_axis_is_refused_at_once() -> None:
    with pytest.raises(GpulseError, match="unknown step='minutes'"):
        ClearmlSink(step="minutes")  # type: ignore[arg-type]
