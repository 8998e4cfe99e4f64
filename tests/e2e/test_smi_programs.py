"""Programs that call nvidia-smi, unchanged, with gpulse in its place: GPUtil, nvsmi, nvgpu, gpuinfo, nvidia-htop, torch."""

from __future__ import annotations

import getpass
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import environment
from tests.fake_nvml import Scenario

MACHINE = (
    Scenario.load("boards/h200")
    .driver(gpus=2)
    .gpu(None, utilization__gpu=97, utilization__memory=20, memory__used="1651 MiB", temperature=63, power="690 W")
    .gpu(None, bar1__used="2 MiB", clock__graphics=1515, clock__sm=1515, clock__video=1530, throttle__reasons=4)
    .gpu(1, utilization__gpu=0, memory__used=0, temperature=31)
    .process(gpu=0, pid="parent", memory="1642 MiB", sm=90, mem=20)
)


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which nvidia-smi is gpulse, on a machine of two H200."""
    folder = tmp_path_factory.mktemp("programs")
    env = environment(MACHINE, folder / "driver")
    install = [sys.executable, "-m", "gpulse", "smi", "--install", str(folder / "bin")]
    subprocess.run(install, env=env, capture_output=True, check=True, timeout=60)
    return env | {"PATH": f"{folder / 'bin'}:{env['PATH']}"}


def python(env: dict[str, str], code: str) -> Any:
    """What a piece of Python prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import json\n{code}"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs("GPUtil")
def test_gputil_reads_both_gpus(env: dict[str, str]) -> None:
    code = """
import GPUtil
gpus = GPUtil.getGPUs()
print(json.dumps([[g.id, g.uuid[:4], g.load, g.memoryTotal, g.memoryUsed, g.name, g.temperature] for g in gpus]
    + [GPUtil.getAvailable(maxLoad=0.5, maxMemory=0.5)]))
"""
    assert python(env, code) == [
        [0, "GPU-", 0.97, 143771.0, 1651.0, "NVIDIA H200", 63.0],
        [1, "GPU-", 0.0, 143771.0, 0.0, "NVIDIA H200", 31.0],
        [1],
    ]


@needs("nvsmi")
def test_nvsmi_reads_gpus_and_processes(env: dict[str, str]) -> None:
    code = """
import nvsmi
gpus, processes = list(nvsmi.get_gpus()), list(nvsmi.get_gpu_processes())
print(json.dumps([[g.id, g.name, g.gpu_util, g.mem_used] for g in gpus] + [[p.gpu_id, p.used_memory] for p in processes]))
"""
    assert python(env, code) == [["0", "NVIDIA H200", 97.0, 1651.0], ["1", "NVIDIA H200", 0.0, 0.0], ["0", 1642.0]]


@needs("nvgpu")
def test_nvgpu_parses_the_table(env: dict[str, str]) -> None:
    code = """
import nvgpu
gpus = [[gpu["index"], gpu["mem_used"], gpu["mem_total"]] for gpu in nvgpu.gpu_info()]
print(json.dumps([gpus, nvgpu.available_gpus()]))
"""
    assert python(env, code) == [[["0", 1651, 143771], ["1", 0, 143771]], ["0", "1"]]


@needs("gpuinfo")
def test_gpuinfo_parses_the_table_as_it_parses_nvidia_smis(env: dict[str, str], tmp_path: Path) -> None:
    code = "from gpuinfo import GPUInfo\npercent, memory = GPUInfo.gpu_usage()\nprint(json.dumps([percent, memory, GPUInfo.check_empty()]))"
    assert python(env, code) == [[97, 0], [1651, 0], [1]]


def test_nvidia_htop_names_the_user_of_the_process(env: dict[str, str]) -> None:
    program = shutil.which("nvidia-htop.py", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("nvidia-htop is not installed")
    done = subprocess.run(
        [sys.executable, program],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "|   1  NVIDIA H200" in done.stdout
    row = next(line for line in done.stdout.splitlines() if "1642MiB" in line)
    assert (row.split()[1], row.split()[3]) == ("0", getpass.getuser())


@needs("torch")
def test_torch_collects_driver_and_models(env: dict[str, str]) -> None:
    code = """
from torch.utils import collect_env
run = collect_env.run
print(json.dumps([collect_env.get_nvidia_driver_version(run), run("nvidia-smi -L")[1].count("NVIDIA H200")]))
"""
    assert python(env, code) == ["580.159.04", 2]
