"""The files of `gpulse fleet init`, each checked by the tool that will read it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.e2e.serving import PATIENCE, plain_environment
from tests.e2e.sshd import gpulse


def init(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulse", "fleet", "init", *options]
    environ = plain_environment(folder)
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_prometheus_accepts_the_rules_and_the_scrape_configuration(tmp_path: Path) -> None:
    done = init(tmp_path, "deploy", "--ssh", "ada@gpu[1-2]")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "deploy/prometheus"
    assert json.loads((folder / "gpulse-targets.json").read_text()) == [{"targets": ["gpu1:9440", "gpu2:9440"]}]
    for command in (["rules", "gpulse.rules.yml"], ["config", "--syntax-only", "scrape.yml"]):
        checked = subprocess.run(
            ["promtool", "check", *command], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        assert checked.returncode == 0, checked.stderr


def test_the_dashboards_ask_for_series_that_exist(tmp_path: Path) -> None:
    assert init(tmp_path, "deploy").returncode == 0
    for name in ("gpulse", "fleet"):
        page = json.loads((tmp_path / f"deploy/grafana/{name}.json").read_text())
        assert page["uid"].startswith("gpulse")
        assert len({panel["id"] for panel in page["panels"]}) == len(page["panels"])


def test_kubernetes_accepts_the_daemon_set(tmp_path: Path) -> None:
    assert init(tmp_path, "deploy").returncode == 0
    documents = list(yaml.safe_load_all((tmp_path / "deploy/kubernetes/gpulse.yaml").read_text()))
    kinds = [document["kind"] for document in documents]
    assert kinds == ["ServiceAccount", "DaemonSet", "PodMonitor"]
    for document in documents[:2]:  # the last is defined by the Prometheus operator
        kubernetes_validate.validate(document, "1.29", strict=True)
    container = documents[1]["spec"]["template"]["spec"]["containers"][0]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    assert init(tmp_path, "deploy").returncode == 0
    unit = str(tmp_path / "deploy/systemd/gpulse.service")
    command = ["systemd-analyze", "verify", "--man=no", unit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_was_changed_is_not_overwritten_unless_forced(tmp_path: Path) -> None:
    assert init(tmp_path).returncode == 0
    prolog = tmp_path / "gpulse-fleet/slurm/prolog.sh"
    prolog.write_text("# mine\n")
    refused = init(tmp_path)
    assert (refused.returncode, prolog.read_text()) == (1, "# mine\n")
    assert "slurm/prolog.sh" in refused.stderr
    assert init(tmp_path, "--force").returncode == 0
    assert prolog.read_text().startswith("#!/bin/sh")


def test_an_unknown_action_is_a_usage_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpulse", "fleet", "install"]
    done = subprocess.run(
        command, env=plain_environment(tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_slurms_prolog_records_a_job_and_its_epilog_writes_the_report(tmp_path: Path) -> None:
    assert init(tmp_path, "deploy").returncode == 0
    jobs = tmp_path / "jobs"
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "gpulse").write_text(f"#!/bin/sh\nGPULSE_SOURCE=demo; export GPULSE_SOURCE\n{gpulse()}\n")
    (programs / "gpulse").chmod(0o755)
    environ = plain_environment(
        tmp_path,
        PATH=f"{programs}:{os.environ['PATH']}",
        SLURM_JOB_ID="77",
        SLURM_JOB_GPUS="0,1",
        SLURM_JOB_USER="root",
    )
    for script in ("prolog", "epilog"):
        text = (tmp_path / f"deploy/slurm/{script}.sh").read_text().replace("/var/lib/gpulse/jobs", str(jobs))
        (tmp_path / f"{script}.sh").write_text(text)
    subprocess.run(["sh", str(tmp_path / "prolog.sh")], env=environ, timeout=60, check=True)
    end = time.monotonic() + PATIENCE
    while not ((jobs / "77.ndjson.gz").exists() and (jobs / "77.ndjson.gz").stat().st_size):
        assert time.monotonic() < end, (jobs / "77.log").read_text()
        time.sleep(0.1)
    subprocess.run(["sh", str(tmp_path / "epilog.sh")], env=environ, timeout=60, check=True)
    assert "H100" in (jobs / "77.txt").read_text()
    assert (jobs / "77.html").stat().st_mode & 0o077 == 0
    assert not (jobs / "77.pid").exists()


def test_a_job_without_gpus_is_left_alone(tmp_path: Path) -> None:
    assert init(tmp_path, "deploy").returncode == 0
    environ = {key: value for key, value in plain_environment(tmp_path, SLURM_JOB_ID="78").items() if "CUDA" not in key}
    for script in ("prolog", "epilog"):
        path = str(tmp_path / f"deploy/slurm/{script}.sh")
        assert subprocess.run(["sh", path], env=environ, timeout=60, check=False).returncode == 0
