"""Model servers as processes on a scripted driver: found, asked, joined to their GPUs, and harmless whatever they do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.unit.serving.test_watch import process

_WATTS = 690.072
_TOKENS = 1000.0  # per second, as the scripted vLLM makes them


def machine(pid: int, folder: Path) -> dict[str, str]:
    """Return the environment of a machine with two H200, both held by one process."""
    scenario = Scenario.load("h200-busy").gpu(1, uuid="GPU-11111111-1111-2222-3333-444444444444", power=690072)
    scenario.gpu(0, energy="counter(8083348, 690072)").gpu(1, energy="counter(1083348, 690072)")
    for gpu in (0, 1):
        scenario.process(gpu=gpu, pid=pid, memory="40 GiB", sm=80)
    return environment(scenario, folder, GPULSE_CONFIG=str(folder / "config.toml"), HOME=str(folder))


def gpulse(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done


def servers(env: dict[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    plain = json.loads(gpulse(env, "--json").stdout)
    return plain["serving"], [one["message"] for one in plain["errors"] if one["source"] == "serving"]


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("text-generation-router", "tgi"),
        ("llama-server", "llama.cpp"),
        ("tritonserver", "triton"),
        ("ollama", "ollama"),
    ],
)
def test_every_kind_is_found_by_its_process(program: str, kind: str, tmp_path: Path) -> None:
    with process(program, kind, "none") as (pid, port):
        found, said = servers(machine(pid, tmp_path))
    assert not said
    one = found[0]
    assert (one["server"], one["endpoint"], one["pid"]) == (kind, f"127.0.0.1:{port}", pid)
    assert len(one["gpus"]) == 2


@pytest.mark.parametrize("fault", ["hang", "large", "html", "denied", "loris", "missing", "chunked"])
def test_a_fault_costs_only_the_figures(fault: str, tmp_path: Path) -> None:
    with process("vllm", "vllm", fault) as (pid, _):
        env = machine(pid, tmp_path)
        found, said = servers(env)
        text = gpulse(env).stdout
    assert "H200" in text
    if fault == "chunked":
        assert found[0]["running"] == 31
    else:
        assert found == []
        assert len(said) <= 1  # one that hangs has not been found out yet


def test_tokens_per_joule_and_per_gpu(tmp_path: Path) -> None:
    recording = tmp_path / "served.ndjson"
    with process("vllm", "vllm", "none") as (pid, _):
        gpulse(machine(pid, tmp_path), "record", "--for", "16s", "--interval", "1", "-o", str(recording))
    frames = [json.loads(line) for line in recording.read_text().splitlines()]
    last = frames[-1]["serving"][0]
    assert last["tokens_per_joule"] == pytest.approx(_TOKENS / (2 * _WATTS), rel=0.01)
    assert last["gpu_generation_rate"] == pytest.approx(_TOKENS / 2, rel=0.05)
    report = gpulse({**machine(0, tmp_path / "report")}, "report", str(recording)).stdout
    assert "acme/tiny-7b" in report
