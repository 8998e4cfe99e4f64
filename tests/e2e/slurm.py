"""A real Slurm on loopback: munged, slurmctld and one slurmd with pretended GPUs, all in one folder and on ports of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.ports import free_port

MISSING = next((name for name in ("munged", "slurmctld", "slurmd") if shutil.which(name, path="/usr/sbin") is None), "")
NODE = "gpu1"
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=1
GresTypes=gpu
SlurmdParameters=config_overrides
Prolog={folder}/prolog.sh
Epilog={folder}/epilog.sh
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={daemon} CPUs=8 RealMemory=1000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes={node} Default=YES MaxTime=60 State=UP
"""


class Slurm:
    """One node with some GPUs. `prolog` and `epilog` are scripts, which get `daemon` as their environment."""

    def __init__(self, folder: Path, gpus: int, prolog: Path, epilog: Path, daemon: dict[str, str]) -> None:
        self.folder = folder
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("munge", "state", "spool"):
            (folder / name).mkdir()
        for script, place in ((prolog, "prolog.sh"), (epilog, "epilog.sh")):
            # Slurm hands its scripts no environment but its own
            lines = "".join(f"export {key}='{value}'\n" for key, value in daemon.items())
            (folder / place).write_text(f"#!/bin/sh\n{lines}exec {script}\n")
            (folder / place).chmod(0o755)
        for number in range(gpus):  # a device that is not opened by anybody
            os.mknod(folder / f"nvidia{number}", 0o20600, os.makedev(1, 3))
        gres = "".join(f"NodeName={NODE} Name=gpu File={folder}/nvidia{number}\n" for number in range(gpus))
        (folder / "gres.conf").write_text(gres)
        ports = {"controller": free_port(), "daemon": free_port()}
        conf = _CONF.format(folder=folder, host=os.uname().nodename, node=NODE, gpus=gpus, **ports)
        (folder / "slurm.conf").write_text(conf)
        (folder / "key").write_bytes(os.urandom(1024))
        (folder / "key").chmod(0o600)
        self._started: list[subprocess.Popen[bytes]] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        munge = [f"--{word}-file={self.folder}/munge/{word}" for word in ("pid", "log", "seed")]
        key, socket = f"--key-file={self.folder}/key", f"--socket={self.folder}/munge/socket"
        self._run("munged", "--foreground", "--force", key, socket, *munge)
        wait_for(lambda: (self.folder / "munge/socket").exists(), "munged")
        self._run("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._run("slurmd", "-D", "-N", NODE, "-f", str(self.folder / "slurm.conf"))
        wait_for(lambda: "idle" in self.told("sinfo", "-h", "-o", "%T"), "the node")

    def _run(self, *words: str) -> None:
        path = f"/usr/sbin:/sbin:{self.environ['PATH']}"
        quiet = subprocess.DEVNULL
        self._started.append(
            subprocess.Popen(words, env={**self.environ, "PATH": path}, stdin=quiet, stdout=quiet, stderr=quiet)
        )

    def told(self, *words: str) -> str:
        """Run one of Slurm's commands and return what it prints; empty if it fails."""
        done = subprocess.run(words, env=self.environ, capture_output=True, text=True, timeout=30, check=False)
        return done.stdout if done.returncode == 0 else ""

    def submit(self, script: Path, *options: str) -> str:
        """Submit a batch job and return its number."""
        return self.told("sbatch", "--parsable", "-o", "/dev/null", *options, str(script)).strip()

    def close(self) -> None:
        """End all jobs and the daemons."""
        if len(self._started) == 3:
            self.told("scancel", "--user", "root")
            wait_for(lambda: not self.told("squeue", "-h"), "the end of all jobs")
        for process in reversed(self._started):
            process.terminate()
            process.wait(20)


def wait_for(done: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, f"{what} does not come"
        time.sleep(0.05)
