"""Alerts inside a training, on drivers that are scripted to fail: one line per incident on stderr, and an alert in W&B."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.programs import on, run
from tests.fake_nvml import Scenario
from tests.unit.readback import wandb_alerts

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

CODE = """
from gpulse.sinks import Sink
class Alerts(Sink):
    name, seen, samples = "alerts", [], 0
    def write(self, sample):
        self.samples += 1
        self.seen += [(alert.rule, alert.state, alert.severity) for alert in sample.alerts]
alerts = Alerts()
with gpulse.Monitor(alerts, interval=0.2{more}) as m:
    until(lambda: {condition}, 25)
    alerts.samples = 0
    until(lambda: alerts.samples > 10)  # time for lines that must not come
print(json.dumps([alerts.seen, m.errors]))
"""
SHORT = """
[alerts.throttled]
for = "1s"
clear_for = "1s"
[alerts.memory]
for = "1s"
[alerts.stalled]
used = "1s"
for = "2s"
"""


def failing(folder: Path) -> dict[str, str]:
    """Return the environment of a machine on which one GPU is hot, one full, one stalls, and one falls off the bus."""
    gib = 1 << 30
    scenario = (
        Scenario.load("lost")
        .gpu(0, throttle__reasons="steps(0:0, 2s:64, 8s:0)")
        .gpu(1, memory__total=80 * gib, memory__reserved=0, memory__used=f"steps(0:{gib}, 2s:{79 * gib})")
        .process(gpu=1, pid=os.getpid(), memory=30 * gib, sm=90)
        .gpu(3, utilization__gpu="steps(0:90, 4s:0)", gpm=0)
        .process(gpu=3, pid=os.getpid(), memory=30 * gib, sm=90)
    )
    (folder / "config.toml").write_text(SHORT)
    return on(scenario, folder, GPULSE_CONFIG=str(folder / "config.toml"))


def test_each_incident_is_one_line_in_the_words_of_all_surfaces(tmp_path: Path) -> None:
    wait = 'len({rule for rule, state, _ in alerts.seen}) == 4 and any(state == "clear" for _, state, _ in alerts.seen)'
    done = run("import json\n" + CODE.format(more="", condition=wait), tmp_path, failing(tmp_path))
    assert done.code == 0, done
    lines = sorted(line for line in done.err.splitlines() if line.startswith("gpulse: "))
    name = f"(pid {os.getpid()})"
    assert [line for line in lines if name not in line] == [
        "gpulse: GPU 0 throttled: too hot",
        "gpulse: GPU 2 is lost (fell off the bus, XID 79)",
    ]
    holder, stalled = [line for line in lines if name in line]
    assert f"{name} has not used GPU 3 for 2s" in stalled + holder
    assert "GPU 1 memory is 99 % full; " in stalled + holder
    assert len(lines) == 4, "and what is over is no line"


def test_a_program_that_sees_some_gpus_is_told_its_own_number(tmp_path: Path) -> None:
    environ = failing(tmp_path) | {"CUDA_VISIBLE_DEVICES": "2"}
    done = run("import json\n" + CODE.format(more="", condition="alerts.seen"), tmp_path, environ)
    assert "gpulse: GPU 2 is lost (fell off the bus, XID 79) (gpu0 in this program)\n" in done.err
    assert done.err.count("gpulse:") == 1


def test_without_alerts_nothing_is_printed_and_nothing_is_read_for_them(tmp_path: Path) -> None:
    condition = "m.latest is not None and m.latest.gpus[2].state == 'lost'"
    done = run("import json\n" + CODE.format(more=", alerts=False", condition=condition), tmp_path, failing(tmp_path))
    assert done.code == 0, done
    assert done.err == ""
    assert done.out == "[[], 0]\n"


WANDB = """
import json, wandb
from gpulse.sinks import WandbSink
quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", silent=True)
run = wandb.init(mode="offline", settings=quiet)
values = Values()
with gpulse.Monitor([WandbSink(), values.sink], interval=0.2, gpus=[2]) as m:
    until(lambda: m.latest is not None and m.latest.gpus[0].state == "lost")
    count = values.count
    until(lambda: values.count > count + 3)
run.finish()
print(json.dumps(m.errors))
"""


def test_a_lost_gpu_is_one_alert_of_a_real_wandb_run(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    assert run(WANDB, tmp_path, failing(tmp_path)).out == "0\n"
    assert wandb_alerts(tmp_path) == [("gpulse: lost", "GPU 2 is lost (fell off the bus, XID 79)", "ERROR")]
