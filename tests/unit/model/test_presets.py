"""A metric that is added to the catalog reaches the surfaces that its line names, and the others, without another change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.presets import COSTLY, CURVES, DIAGNOSIS, GLANCE, SUMMARY, TRAINING

ROOT = Path(__file__).parents[3]
# The catalog with one line more, loaded in its place before anything else imports it.
ADDED = '''
import importlib.util, sys
import gpulse.model.metric
spec = importlib.util.find_spec("gpulse.model.catalog")
text = open(spec.origin, encoding="utf-8").read()
line = """    quux = Number("Quux", "Quuxes.", unit=PERCENT, group="utilization", smi=("utilization.quux",), high=100{presets})\\n"""
mark = "    utilization = Number("
assert text.count(mark) == 1
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
import gpulse.model
gpulse.model.catalog = module
exec(compile(text.replace(mark, line + mark), spec.origin, "exec"), module.__dict__)
from gpulse.model.catalog import Gpu, GPU_METRICS
from gpulse.model.snapshot import Snapshot
assert "quux" in GPU_METRICS
snapshots = [Snapshot(float(at), (Gpu({"index": 0, "uuid": "GPU-1", "name": "A", "quux": 40.0 + at}),)) for at in range(3)]
'''
EVERYWHERE = """
from gpulse.surfaces.query.fields import field_named, help_lines
from gpulse.surfaces.query.views import Csv
view = Csv([(name, field_named(name)) for name in ("quux", "utilization.quux")])
assert view.head() == ["quux [%], utilization.quux [%]"], view.head()
assert view.lines(snapshots[0]) == ["40 %, 40 %"], view.lines(snapshots[0])
assert '"utilization.quux"' in help_lines()
from gpulse.surfaces.exporter.exporter import Exporter, wanted
assert "quux" in wanted().gpu
exporter = Exporter()
exporter.add(snapshots[0])
page = exporter.text(smi=True).decode()
assert 'gpulse_gpu_quux_ratio{gpu="0",uuid="GPU-1"} 0.4' in page
assert 'nvidia_smi_utilization_quux_ratio{uuid="1"} 0.4' in page
from gpulse.model.codec import to_plain
assert to_plain(snapshots[0])["gpus"][0]["quux"] == 40.0
from gpulse.model.select import metric_named
assert metric_named("quux", GPU_METRICS).title == "Quux"
"""
NAMED = """
from gpulse.surfaces.status.view import GLANCE
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.needs import wanted
from gpulse.surfaces.top.state import State
from gpulse.surfaces.top.settings import ScreenSettings
from gpulse.model.presets import CURVES
assert ("quux" in GLANCE.gpu) is {named}
assert ("quux" in wanted(State(ScreenSettings(), History(CURVES))).gpu) is {named}
from gpulse.surfaces.history.tables import metrics_named
assert ("quux" in metrics_named(None)) is {named}
from gpulse.surfaces.report.perfetto import CURVES
assert ("quux" in CURVES) is {named}
from gpulse.monitor.samples import Tags
from gpulse.monitor.messages import AgentSample
assert ("gpu0/quux" in Tags(None, None).values(AgentSample(0.0, snapshots[0], None))) is {named}
from gpulse.analysis.diagnosis.wanted import WANTED
assert ("quux" in WANTED.gpu) is {named}
"""


def run(code: str, presets: str) -> None:
    added = ADDED.replace("{presets}", f", presets='{presets}'" if presets else "")
    done = subprocess.run(
        [sys.executable, "-c", added + code],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("presets", ["", "summary glance curves training diagnosis"])
def test_a_new_metric_reaches_the_surfaces_by_its_line(presets: str) -> None:
    run(EVERYWHERE, presets)
    run(NAMED.format(named=bool(presets)), presets)


def test_presets_are_words_of_the_catalog() -> None:
    known = {"summary", "glance", "curves", "training", "diagnosis"}
    assert {word for metric in GPU_METRICS.values() for word in metric.presets.split()} == known


def test_little_is_part_of_more() -> None:
    assert {*SUMMARY} < {*CURVES} < {*TRAINING}
    assert {*SUMMARY} < {*GLANCE}
    assert {*TRAINING, *DIAGNOSIS} > COSTLY


def test_curves_stand_by_group_as_people_read_them() -> None:
    assert CURVES[:8] == (
        *("utilization", "sm_active", "tensor_active", "dram_active"),
        *("memory_used", "power_draw", "temperature", "clock_sm"),
    )
