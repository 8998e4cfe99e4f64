"""gpulse with a real Slurm: what a job sees, what others see of it, and what is told when it ends."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import environment
from tests.e2e.serving import Serving
from tests.e2e.slurm import MISSING, NODE, Slurm, wait_for
from tests.fake_nvml import Scenario

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed"),
    pytest.mark.skipif(os.getuid() != 0, reason="needs to be root"),
]
GPUS = 4
_JOB = """#!/bin/sh
gpulse status --json > {folder}/status.json
gpulse query --query-gpu=index --format=csv,noheader > {folder}/query.csv
touch {folder}/started
while [ ! -e {folder}/end ]; do sleep 0.05; done
"""


def scenario(pid: int | None = None) -> Scenario:
    """Return a machine of which one GPU is used by a process."""
    machine = Scenario.load("dgx-h100x8").driver(gpus=GPUS)
    return machine if pid is None else machine.process(gpu=0, pid=pid, memory="20GiB")


class Cluster:
    """Slurm, and a gpulse that reads a scripted driver on its node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plain = environment(scenario(), folder / "driver", GPULSE_CONFIG=str(folder / "config.toml"))
        self.gpulse("fleet", "init", "deploy")
        programs = folder / "bin"
        programs.mkdir()
        own = {key: value for key, value in self.plain.items() if os.environ.get(key) != value}
        words = shlex.join(["exec", "env", *(f"{key}={value}" for key, value in own.items()), sys.executable])
        self._script(programs / "gpulse", f'{words} -m gpulse "$@"')
        self._script(folder / "sendmail", f"cat > {folder}/mail.part; mv {folder}/mail.part {folder}/mail")
        settings = folder / "settings"
        settings.write_text(f"FOLDER={folder}/jobs\nMAIL=yes\nSENDMAIL={folder}/sendmail\n")
        scripts = {"GPULSE_SLURM_SETTINGS": str(settings), "PATH": f"{programs}:{os.environ['PATH']}"}
        (folder / "slurm").mkdir()
        deployed = folder / "deploy/slurm"
        scripts["SLURM_CONF"] = str(folder / "slurm/slurm.conf")
        self.slurm = Slurm(folder / "slurm", GPUS, deployed / "prolog.sh", deployed / "epilog.sh", scripts)
        self.slurm.environ["PATH"] = scripts["PATH"]
        self.plain["SLURM_CONF"] = self.slurm.environ["SLURM_CONF"]
        self._script(folder / "job.sh", _JOB.format(folder=folder))

    def gpulse(self, *words: str, machine: Scenario | None = None) -> str:
        """Run gpulse on the node, outside of any job; return what it prints."""
        environ = self.plain if machine is None else {**self.plain, **_driver(machine, self.folder / "other")}
        command = [sys.executable, "-m", "gpulse", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pid_of(self, job: str) -> int:
        rows = [line.split() for line in self.slurm.told("scontrol", "listpids", job).splitlines()[1:]]
        return next(int(row[0]) for row in rows if row[3] == "0")

    @staticmethod
    def _script(path: Path, text: str) -> None:
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)


def _driver(machine: Scenario, folder: Path) -> dict[str, str]:
    return {key: value for key, value in machine.write(folder).items() if key.startswith(("FAKE_NVML_", "LD_"))}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.slurm.close()


def test_a_job_from_its_prolog_to_its_mail(cluster: Cluster) -> None:
    folder, slurm = cluster.folder, cluster.slurm
    with Serving(folder, "--interval", "0.5", environ=cluster.plain, source="") as server:
        job = slurm.submit(folder / "job.sh", "--gres=gpu:2", "--account=lab", "--job-name=train\nUserId=x it")
        wait_for((folder / "started").exists, "the job")
        # inside the job: its own GPUs, but those of the whole machine where nvidia-smi is imitated
        assert [gpu["index"] for gpu in json.loads((folder / "status.json").read_text())["gpus"]] == [0, 1]
        assert (folder / "query.csv").read_text().split() == ["0", "1", "2", "3"]

        # outside: who was given what, and the names of the job
        pid = cluster.pid_of(job)
        lines = cluster.gpulse(
            "record", "-o", "-", "--processes", "--count", "6", "--interval", "0.5", machine=scenario(pid)
        )
        gpus = json.loads(lines.splitlines()[-1])["gpus"]
        assert [(gpu["job"], gpu["job_user"]) for gpu in gpus] == [(f"slurm:{job}", "root")] * 2 + [("", "")] * 2
        process = gpus[0]["processes"][0]
        assert (process["pid"], process["job"], process["job_name"]) == (pid, f"slurm:{job}", "train")
        assert (process["account"], process["partition"]) == ("lab", "main")

        # the report of the job from the history, while it runs
        told = report(cluster, job)
        assert told["job"]["name"] == "train"
        assert (told["job"]["account"], told["job"]["gpus"], told["job"]["node"]) == ("lab", ["0", "1"], NODE)
        assert [gpu["index"] for gpu in told["summary"]["gpus"]] == [0, 1]
        assert len(told["budget"]) == 2
        assert server.pid

    (folder / "end").touch()
    wait_for((folder / "mail").exists, "the mail")
    mail = (folder / "mail").read_text()
    assert mail.startswith(f"To: root\nSubject: GPU report of job {job}\n")
    assert "H100" in mail
    assert (folder / f"jobs/{job}.html").stat().st_mode & 0o077 == 0
    assert (folder / f"jobs/{job}.ndjson.gz").stat().st_size  # the report is that of the recording


def report(cluster: Cluster, job: str) -> Any:
    return json.loads(cluster.gpulse("report", "--job", job, "--format", "json"))


def test_hosts_of_a_fleet_come_from_slurm(cluster: Cluster) -> None:
    cluster.gpulse("fleet", "init", "fleet", "--ssh", "slurm:main")
    targets = json.loads((cluster.folder / "fleet/prometheus/gpulse-targets.json").read_text())
    assert targets == [{"targets": [f"{NODE}:9440"]}]


def test_a_job_that_nobody_knows_is_one_sentence(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "gpulse", "report", "--job", "999"]
    done = subprocess.run(command, env=cluster.plain, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "job 999" in done.stderr
