"""A metric that is added to the catalog reaches the surfaces that its line names, and the others, without another change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.analysis.diagnosis.window import WANTED
from gpulse.model.catalog import COSTLY, CURVES, DIAGNOSIS, GLANCE, GPU_METRICS, SUMMARY, TRAINING, Gpu
from gpulse.model.codec import to_plain
from gpulse.model.select import metric_named
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.messages import AgentSample
from gpulse.monitor.samples import Tags
from gpulse.surfaces import status
from gpulse.surfaces.exporter.exporter import Exporter, wanted
from gpulse.surfaces.history.tables import metrics_named
from gpulse.surfaces.query.fields import field_named, help_lines
from gpulse.surfaces.query.views import Csv
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State
from gpulse.surfaces.top.state import wanted as top_wanted

ROOT = Path(__file__).parents[3]
# Loads the catalog with one line more, before anything else imports it, and then runs a function of this module.
CODE = '''
import importlib.util, sys
import gpulse.model
spec = importlib.util.find_spec("gpulse.model.catalog")
text = open(spec.origin, encoding="utf-8").read()
line = """    quux = Number("Quux", "Quuxes.", unit=PERCENT, group="utilization", smi=("utilization.quux",), high=100, presets="{}")\\n"""
mark = "    utilization = Number("
assert text.count(mark) == 1
gpulse.model.catalog = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
exec(compile(text.replace(mark, line + mark), spec.origin, "exec"), gpulse.model.catalog.__dict__)
from tests.unit.model.test_presets import everywhere, where_named
everywhere()
where_named({})
'''


def quux() -> Snapshot:
    return Snapshot(0.0, (Gpu({"index": 0, "uuid": "GPU-1", "name": "A", "quux": 40.0}),))


def everywhere() -> None:
    """Check the surfaces that have every metric."""
    view = Csv([(name, field_named(name)) for name in ("quux", "utilization.quux")])
    assert view.head() == ["quux [%], utilization.quux [%]"]
    assert view.lines(quux()) == ["40 %, 40 %"]
    assert '"utilization.quux"' in help_lines()
    exporter = Exporter()
    exporter.add(quux())
    page = exporter.text(smi=True).decode()
    assert 'gpulse_gpu_quux_ratio{gpu="0",uuid="GPU-1"} 0.4' in page
    assert 'nvidia_smi_utilization_quux_ratio{uuid="1"} 0.4' in page
    assert "quux" in wanted().gpu
    assert to_plain(quux())["gpus"][0]["quux"] == 40.0
    assert metric_named("quux", GPU_METRICS).title == "Quux"


def where_named(expected: bool) -> None:
    """Check the surfaces that have the metrics of a preset."""
    surfaces = {
        "status": status.GLANCE.gpu,
        "top": top_wanted(State(ScreenSettings(), History(CURVES))).gpu,
        "history": metrics_named(None),
        "charts": CURVES,
        "diagnosis": WANTED.gpu,
    }
    assert {name: "quux" in keys for name, keys in surfaces.items()} == dict.fromkeys(surfaces, expected)
    assert ("gpu0/quux" in Tags(None, None).values(AgentSample(0.0, quux(), None))) is expected


@pytest.mark.parametrize("presets", ["", "summary glance curves training diagnosis"])
def test_a_new_metric_reaches_the_surfaces_by_its_line(presets: str) -> None:
    code = CODE.replace('"{}"', f"'{presets}'").replace("where_named({})", f"where_named({bool(presets)})")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


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
