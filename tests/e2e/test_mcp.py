"""`gpulse mcp`, asked by the SDK's own client over pipes: on a scripted driver, and on the simulated machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import Recorder
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.packages import require

if TYPE_CHECKING:
    from gpulse.model.metric import Value

anyio = pytest.importorskip("anyio")
require("mcp", "mcp_types")  # the second comes with version 2 of the first
pytestmark = pytest.mark.filterwarnings("ignore")  # the SDK and its dependencies have warnings of their own

TOOLS = {"snapshot", "why", "history", "events", "processes", "free_gpus"}
LIST: tuple[str, dict[str, Any]] = ("", {})  # asks for the tools
READ: list[tuple[str, dict[str, Any]]] = [("snapshot", {}), ("snapshot", {"metrics": ["power.draw"], "gpus": ["0"]})]
MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("snapshot", {"metrics": ["utilisation"]}),
    ("snapshot", {"gpus": ["99"]}),
    ("history", {"since": "soon"}),
    ("why", {"since": "400d"}),
    ("free_gpus", {"free_memory": "lots"}),
    ("snapshot", {"gpus": 5}),
]
_PATIENCE = 60.0


class Client:
    """One server process per question list; answers are what the SDK's client returned."""

    def __init__(self, env: dict[str, str], *words: str) -> None:
        self._env = env
        self._words = words

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """Call tools one after another."""
        return anyio.run(self._ask, calls)  # type: ignore[no-any-return]

    async def _ask(self, calls: tuple[tuple[str, dict[str, Any]], ...]) -> list[Any]:
        from mcp import Client as SdkClient
        from mcp import StdioServerParameters

        command = StdioServerParameters(
            command=sys.executable, args=["-m", "gpulse", "mcp", *self._words], env=self._env
        )
        with anyio.fail_after(_PATIENCE):
            async with SdkClient(command) as client:
                return [
                    list((await client.list_tools()).tools) if call == LIST else await client.call_tool(*call)
                    for call in calls
                ]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return _machine(tmp_path)


def _machine(folder: Path) -> dict[str, str]:
    """Return the environment of a scripted H200 under load, with a home of its own."""
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "GPULSE_HISTORY": str(folder / "none.db")}
    return environment(Scenario.load("h200-busy"), folder, **home)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Ten seconds of one GPU, with a process that holds memory."""
    path = tmp_path / "history.db"
    recorder = Recorder(str(path))
    now = time.time()
    process = Process({"pid": 4242, "name": "python", "user": "ada", "memory_used": 8 << 30})
    for at in range(10):
        values: dict[str, Value] = {
            "index": 0,
            "uuid": "GPU-1",
            "name": "H200",
            "utilization": 50.0,
            "memory_used": 8 << 30,
            "power_draw": 300.0,
        }
        gpu = Gpu(values, processes=(process,))
        recorder.put(Snapshot(now - 10 + at, (gpu,), Host({"cpu_percent": 10.0}), {}, ()))
    recorder.close()
    return path


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What one server says to several questions: it takes more than a second of CPU time to start."""
    return Client(_machine(tmp_path_factory.mktemp("machine"))).ask(LIST, *READ, *MISTAKES)


def test_six_read_only_tools_are_offered(answers: list[Any]) -> None:
    tools = answers[0]
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.read_only_hint and not tool.annotations.destructive_hint for tool in tools)
    assert all(tool.description for tool in tools)


def test_a_scripted_gpu_is_read(answers: list[Any]) -> None:
    answer, few = answers[1:3]
    (gpu,) = answer.structured_content["gpus"]
    assert gpu["name"] == "NVIDIA H200"
    assert gpu["sm_active"] > 0
    assert "fan_speed" not in gpu
    assert few.structured_content["gpus"][0].keys() <= {"index", "name", "power_draw", "state", "missing", "processes"}


def test_mistakes_are_one_sentence(answers: list[Any]) -> None:
    said = answers[3:]
    assert len(said) == len(MISTAKES)
    for answer in said:
        assert answer.is_error
        assert "Traceback" not in answer.content[0].text
    assert "utilization" in said[0].content[0].text


@pytest.fixture
def secretive() -> Iterator[subprocess.Popen[bytes]]:
    words = [
        sys.executable,
        "-c",
        "import time; time.sleep(120)",
        "--api-key=hunter2",
        "--password",
        "swordfish",
        "\x1b[31mred",
    ]
    process = subprocess.Popen(words)
    yield process
    process.kill()
    process.wait()


def test_secrets_are_masked_and_control_characters_written_out(
    tmp_path: Path, secretive: subprocess.Popen[bytes]
) -> None:
    scenario = Scenario.load("h200-busy").process(gpu=0, pid=secretive.pid, memory="4 GiB", sm=50)
    answer = Client(environment(scenario, tmp_path, HOME=str(tmp_path))).ask(("processes", {}))[0]
    (found,) = [one for one in answer.structured_content["processes"] if one["pid"] == secretive.pid]
    assert found["memory_used"] == 4 << 30
    text = json.dumps(answer.structured_content)
    assert "hunter2" not in text
    assert "swordfish" not in text
    assert "\x1b" not in found["command"]


def test_the_past_is_read_from_a_history(env: dict[str, str], history: Path) -> None:
    series, events, why = Client(env, "--file", str(history)).ask(
        ("history", {"since": "1m", "metrics": ["utilization"], "points": 4}),
        ("events", {"since": "1h"}),
        ("why", {"since": "1h"}),
    )
    (row,) = series.structured_content["series"]
    assert (row["gpu"], row["metric"], row["max"]) == (0, "utilization", 50)
    assert 50 in row["mean"]
    assert set(row["mean"]) <= {50, None}
    assert any(event["kind"] == "start" for event in events.structured_content["events"])
    assert why.structured_content["gpus"][0]["index"] == 0


def test_a_missing_history_says_what_to_do(env: dict[str, str]) -> None:
    answer = Client(env, "--file", "/nonexistent/history.db").ask(("events", {}))[0]
    assert answer.is_error
    assert "/nonexistent/history.db" in answer.content[0].text


def test_the_simulated_machine_tells_why_and_what_is_free(env: dict[str, str]) -> None:
    why, free, past = Client(env, "--demo").ask(("why", {"seconds": 2}), ("free_gpus", {}), ("history", {}))
    assert why.structured_content["problems"][0]["key"] == "thermal_throttled"
    verdicts = [gpu["verdict"] for gpu in why.structured_content["gpus"]]
    assert len(verdicts) == 8
    assert "healthy" in verdicts
    assert all(
        gpu["title"] and gpu["evidence"] for gpu in why.structured_content["gpus"] if gpu["verdict"] == "healthy"
    )
    assert free.structured_content["free"] == [gpu["index"] for gpu in free.structured_content["gpus"] if gpu["free"]]
    assert past.is_error  # this machine's history is not the demo's
    assert all(len(json.dumps(answer.structured_content)) < 8000 for answer in (why, free))


def test_without_the_sdk_the_command_says_what_to_install(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp/__init__.py").write_text("raise ImportError('no', name='mcp')")
    blocked = {**env, "PYTHONPATH": f"{tmp_path}:{env['PYTHONPATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "mcp"], env=blocked, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 1
    assert re.fullmatch(r"gpulse: `gpulse mcp` needs mcp; run .* install 'mcp>=2'\n", done.stderr)
