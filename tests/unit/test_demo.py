"""Every verb on the simulated machine, whose past is simulated, too."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from gpulse.analysis.diagnosis.window import WANTED
from gpulse.cli.commands.demo import STEPS
from gpulse.cli.main import VERBS, load, main
from gpulse.recordings import demo
from gpulse.recordings.demo import HOURS, night, simulated_samples, write_history
from gpulse.store.history import HistoryReader
from tests.unit.moments import MOMENTS, begin_at

# where a command needs more than the verb; those that serve, draw a screen or change something have tests of their own
WORDS = {
    "why": "why --for 2s",
    "query": "query --query-gpu=index --format=csv",
    "smi": "smi -L",
    "pick": "pick 2",
    "reserve": "reserve --help",
    "release": "release --help",
    "record": "record -o - --count 2 --interval 0.1",
    "replay": "replay --status --speed max",
    "history": "history --since 10h --events",
    "runs": "runs compare",
    "usage": "usage --since 10h",
    "completion": "completion bash",
    "fleet": "fleet --once",
}
ELSEWHERE = {"run", "top", "serve", "mcp", "stacks", "demo"}


@pytest.fixture(scope="module")
def a_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("night") / "history.db"
    write_history(str(path), MOMENTS["midnight of a new year"])
    return path


@pytest.fixture
def _one_night(a_night: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate the night once for all verbs; it ends when each of them is asked."""
    begin_at(monkeypatch, MOMENTS["midnight of a new year"])
    monkeypatch.setattr(demo, "write_history", lambda path, now: shutil.copyfile(a_night, path))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "GPULSE_CLAIMS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir(0o700)
    monkeypatch.setenv("GPULSE_RUNS", str(tmp_path / "runs"))


@pytest.mark.usefixtures("_one_night")
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ELSEWHERE])
def test_a_verb_answers_on_the_simulated_machine(verb: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--demo", *WORDS.get(verb, verb).split()]) == 0
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    assert out


def test_every_verb_knows_the_option() -> None:
    assert [verb for verb in VERBS if not any("--demo" in option.flags for option in load(verb).options)] == []


@pytest.mark.usefixtures("_one_night")
def test_the_walk_has_seven_steps_that_all_work(capfd: pytest.CaptureFixture[str]) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["demo", "--color", "never"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    out = capfd.readouterr().out
    assert len(STEPS) == 7
    for words in ("7/7", "Input-bound", "GPU 3 is lost (fell off the bus, XID 79)", "grace", "utilization.gpu [%]"):
        assert words in out


def test_all_of_the_night_is_in_the_history(a_night: Path) -> None:
    with HistoryReader(str(a_night)) as reader:
        first, last = reader.span() or (0.0, 0.0)
        assert len(list(reader.snapshots(first, last + 1))) == HOURS * 30  # every two minutes
        use = next(use for use in reader.usage(first, last + 1) if use.owner == "mira")
    assert use.gpu_hours == pytest.approx(HOURS, abs=0.1)


def test_the_night_has_its_incident_and_leaves_no_hole(a_night: Path) -> None:
    now = 1_794_733_267.0
    seen = list(night(now))
    assert seen[0].time == now - HOURS * 3600.0
    assert {snapshot.gpus[3].state for snapshot in seen} == {"ok", "lost"}
    assert not seen[-1].gpus[2].processes  # free, as in the demo of the present
    with HistoryReader(str(a_night)) as reader:
        first, last = reader.span() or (0.0, 0.0)
    assert last - first > HOURS * 3600.0 - 300.0


def test_what_a_diagnosis_reads_is_in_the_past_of_the_demo() -> None:
    snapshot = next(simulated_samples(1_794_733_267.0, 10.0, 1.0))
    read = {*dict(snapshot.gpus[6].items()), *snapshot.gpus[6].gaps}
    assert not WANTED.gpu - read
    assert snapshot.serving
