"""`gpulse report` as people use it: the command, and its page in a real browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpulse.model.snapshot import Snapshot
from gpulse.present.text import width
from gpulse.sinks.base import Mark, Sample
from gpulse.sinks.files import JsonlSink
from tests.e2e.browser import Browser, chromium
from tests.e2e.terminal import CommandTerminal
from tests.unit.store.history.ticks import write as write_history
from tests.unit.surfaces.report.runs import HOSTILE, START, gpu, process, sample, samples, write

SECONDS = 300


def gpulse(
    *words: str | Path, code: int = 0, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "report", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1", **(environ or {})},
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training's JsonlSink wrote: two GPUs, two phases, marks, a gap, names as bad as they can be."""
    path = tmp_path_factory.mktemp("training") / "run.ndjson"
    sink = JsonlSink(path)
    sink.open()
    for at in range(SECONDS):
        if 200 <= at < 240:
            continue
        text = HOSTILE[at // 20 % len(HOSTILE)]
        one = process(at // 20 + 100, name=text, command=text, user=text)
        spike = 690.0 if at == 77 else 300.0
        snapshot = sample(
            at, gpu(0, one, power_draw=spike, energy=at * 300.0), gpu(1, sm_active=20.0), cpu_percent=30.0
        )
        phase = "train" if at < 250 else HOSTILE[0]
        marks = (Mark(text, text, START + at),) if at % 50 == 0 else ()
        sink.write(
            Sample(snapshot.time, float(at), {"train/loss": 1 / (at + 1)}, snapshot, step=at, phase=phase, marks=marks)
        )
    sink.close()
    return path


def test_markdown_on_standard_output(training: Path) -> None:
    done = gpulse(training)
    assert done.stdout.startswith("# `run.ndjson`\n")
    assert "## Phases" in done.stdout
    assert done.stderr == ""


def test_a_terminal_gets_a_layout_of_its_width(training: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "LANG": "C.UTF-8"}
    command = (sys.executable, "-m", "gpulse", "report", str(training))
    with CommandTerminal({**environ, "TERM": "xterm-256color"}, *command, columns=90) as terminal:
        assert terminal.wait() == 0
        shown = terminal.raw.decode()
    assert "| --- |" not in shown
    assert "\x1b[1m" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").splitlines()
    assert lines[0] == "run.ndjson"
    assert max(map(width, lines)) <= 90
    with CommandTerminal(environ, *command, "--format", "md", columns=90) as terminal:
        assert terminal.wait() == 0
        assert terminal.raw.startswith(b"# `run.ndjson`")


def test_the_name_of_the_file_says_what_is_written(training: Path, tmp_path: Path) -> None:
    for name, begins in (("a.html", "<!DOCTYPE html>"), ("a.md", "# "), ("a.json", "{")):
        done = gpulse(training, "-o", tmp_path / name, "--title", "Tuesday")
        assert (tmp_path / name).read_text().startswith(begins)
        assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.json", "a.md"]
    assert "Tuesday" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.json", "a.csv"])
def test_only_the_owner_may_read_a_report_unless_it_is_to_be_shared(tmp_path: Path, name: str) -> None:
    one = process(7, command="python /srv/quest.py", user="noether")
    path = write(tmp_path / "run.ndjson", [sample(at, gpu(0, one)) for at in range(9)])
    private, shared = tmp_path / name, tmp_path / f"shared-{name}"
    private.write_text("old", encoding="utf-8")
    gpulse(path, "-o", private)
    gpulse(path, "--share", "-o", shared)
    assert (private.stat().st_mode & 0o777, shared.stat().st_mode & 0o777) == (0o600, 0o644)
    for text in ("noether", "quest.py"):
        assert text not in shared.read_text(encoding="utf-8")
        assert text in private.read_text(encoding="utf-8") or name == "a.csv"


def test_a_shared_report_has_the_same_verdicts(tmp_path: Path) -> None:
    server = process(7, command="python -m vllm.entrypoints.openai.api_server --x")
    idle = [sample(at, gpu(0, server, utilization=0.0, sm_active=0.0, memory_used=139 << 30)) for at in range(90)]
    path = write(tmp_path / "run.ndjson", idle)
    whole, shared = (json.loads(gpulse(path, "--format", "json", *words).stdout) for words in ((), ("--share",)))
    assert shared["diagnosis"]["gpus"][0]["verdict"] == whole["diagnosis"]["gpus"][0]["verdict"]
    assert shared["processes"][0] | {"user": "ada", "command": server.command} == whole["processes"][0]


def test_a_part_of_it_and_one_gpu(training: Path) -> None:
    plain = json.loads(gpulse(training, "--format", "json", "--from", "60s", "--to", "100s", "--gpu", "1").stdout)
    assert plain["summary"]["seconds"] == pytest.approx(40.0)
    assert [one["index"] for one in plain["summary"]["gpus"]] == [1]


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        ((), "exactly one recording is needed", 2),
        (("one", "two"), "exactly one recording is needed", 2),
        (("--compare", "one"), "there is no earlier recorded run to compare one with", 2),
        (("nowhere.ndjson",), "cannot be read", 1),
        (("x.ndjson", "-o", "x.pdf"), "use .html", 2),
        (("x.ndjson", "--format", "pdf"), "choose one of html, markdown, json, text", 2),
    ],
)
def test_what_cannot_be(words: tuple[str, ...], says: str, code: int) -> None:
    done = gpulse(*words, code=code)
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_the_history_of_this_machine(tmp_path: Path) -> None:
    now = time.time()
    environ = {"GPULSE_HISTORY": str(tmp_path / "history.db")}
    snapshots = (Snapshot(now - 120 + at, (gpu(power_draw=250.0),)) for at in range(120))
    write_history(environ["GPULSE_HISTORY"], snapshots)
    plain = json.loads(gpulse("--since", "1m", "--format", "json", environ=environ).stdout)
    assert plain["name"] == "the last 1m"
    assert 40 <= plain["summary"]["seconds"] <= 60
    assert plain["summary"]["gpus"][0]["stats"]["power_draw"]["mean"] == pytest.approx(250.0)


def test_a_place_that_cannot_be_written(training: Path, tmp_path: Path) -> None:
    assert "cannot be written" in gpulse(training, "-o", tmp_path / "no" / "a.html", code=1).stderr


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("there is no Chromium")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(training: Path) -> Path:
    gpulse(training, "-o", training.with_name("run.html"))
    return training.with_name("run.html")


@pytest.fixture(scope="module")
def difference(training: Path) -> Path:
    other = write(training.with_name("other.ndjson"), samples(200, power_draw=400.0))
    gpulse("--compare", training, other, "-o", training.with_name("diff.html"))
    return training.with_name("diff.html")


# How many different colours each chart shows: an empty canvas has one.
_COLOURS = """[...document.querySelectorAll("canvas")].map(canvas => new Set(new Uint32Array(
  canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)"""
_MIDDLE = """(() => { const box = document.querySelector(".chart .plot").getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2, box.width]; })()"""
_READOUT = """[...document.querySelectorAll(".readout")].map(list => list.textContent).join("|")"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_stands_alone(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width, dark=dark)
    assert browser.requests == [page.resolve().as_uri()]
    assert browser.complaints == []
    colours = browser.evaluate(_COLOURS)
    assert len(colours) >= 6
    assert min(colours) > 3
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    shade = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shade == ("rgb(15, 18, 21)" if dark else "rgb(246, 247, 249)")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a machine that has every column: eight busy GPUs, throttled, with long commands."""

    def machine(at: int) -> Snapshot:
        gpus = [
            gpu(
                index,
                process(
                    index, command="python train.py --config configs/a/rather/long/path.yaml " * 3, job="slurm:48213"
                ),
                tensor_active=62.0,
                dram_active=40.0,
                clock_sm=1612.0,
                pcie_rx=121e6,
                energy=at * 500.0,
                throttle_reasons=("sw_power_cap", "hw_thermal_slowdown", "hw_power_brake_slowdown"),
            )
            for index in range(8)
        ]
        return sample(at, *gpus)

    folder = tmp_path_factory.mktemp("full")
    recording = write(folder / "full.ndjson", (machine(at) for at in range(60)))
    gpulse(recording, "-o", folder / "full.html")
    return folder / "full.html"


_TOO_WIDE = """[...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth)
  .map(box => box.getAttribute("aria-label"))"""


@pytest.mark.parametrize("width", [1500, 1200, 1100])
def test_no_column_is_cut_off(browser: Browser, full: Path, width: int) -> None:
    browser.open(full, width)
    assert browser.evaluate("document.querySelectorAll('#gpus thead th').length") == 16
    assert browser.evaluate(_TOO_WIDE) == []


def test_hostile_names_are_text(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.evaluate("document.scripts.length") == 2
    assert browser.evaluate("document.images.length") == 0
    assert "<script>alert(1)</script>" in browser.evaluate("document.querySelector('#processes').innerText")
    assert "\\x1b[31m" in browser.evaluate("document.querySelector('#processes').innerText")


def test_one_cursor_for_all_charts(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('.charts').scrollIntoView()")
    x, y, _ = browser.evaluate(_MIDDLE)
    before = browser.evaluate(_READOUT)
    browser.point(x, y)
    assert browser.evaluate("[...document.querySelectorAll('.cursor')].every(line => !line.hidden)")
    lefts = browser.evaluate(
        "[...new Set([...document.querySelectorAll('.charts .cursor')].map(l => l.style.transform))].length"
    )
    assert lefts == 1
    assert "UTC" in browser.evaluate("document.querySelector('.moment').textContent")
    assert browser.evaluate(_READOUT) != before
    browser.point(1, 1)
    assert browser.evaluate("[...document.querySelectorAll('.cursor')].every(line => line.hidden)")


def test_the_arrow_keys_move_the_cursor(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('.chart .plot').focus()")
    for _ in range(3):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight")
    assert browser.evaluate("document.querySelector('.moment').textContent").startswith("0:04")


def test_dragging_zooms_and_a_button_shows_all_again(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('.charts').scrollIntoView()")
    x, y, wide = browser.evaluate(_MIDDLE)
    whole = browser.evaluate(_READOUT)
    browser.point(x - wide / 4, y, "mousePressed", button="left", buttons=1, clickCount=1)
    browser.point(x, y, buttons=1, button="left")
    browser.point(x, y, "mouseReleased", button="left", clickCount=1)
    assert not browser.evaluate("document.querySelector('.whole').hidden")
    browser.evaluate("document.querySelector('.whole').click()")
    browser.point(1, 1)
    assert browser.evaluate(_READOUT) == whole


def test_a_gpu_can_be_switched_off(browser: Browser, page: Path) -> None:
    browser.open(page)
    before = browser.evaluate("document.querySelectorAll('.readout li:not([hidden])').length")
    browser.evaluate("document.querySelector('.switches button').click()")
    after = browser.evaluate("document.querySelectorAll('.readout li:not([hidden])').length")
    assert 0 < after < before
    assert browser.evaluate("document.querySelector('.switches button').getAttribute('aria-pressed')") == "false"


def test_a_chart_says_in_words_what_it_shows(browser: Browser, page: Path) -> None:
    browser.open(page)
    words = browser.evaluate(
        "[...document.querySelectorAll('.chart .plot')].map(plot => plot.getAttribute('aria-label'))"
    )
    (power,) = [text for text in words if text.startswith("Power draw")]
    assert "GPU 0: mean 30" in power
    assert "to 690 W" in power  # the one second in which it was
    assert browser.evaluate("document.querySelectorAll('table').length == document.querySelectorAll('caption').length")


def test_it_prints_on_white(browser: Browser, page: Path) -> None:
    browser.open(page, dark=True)
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#1b1f24"
    pdf = browser.call("Page.printToPDF")["data"]
    assert len(pdf) > 10_000
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#e6e9ed"


def test_two_runs_over_each_other(browser: Browser, difference: Path) -> None:
    browser.open(difference)
    assert browser.requests == [difference.resolve().as_uri()]
    assert browser.complaints == []
    assert min(browser.evaluate(_COLOURS)) > 3
    assert (
        browser.evaluate("[...document.querySelectorAll('.switches button')].map(b => b.textContent).join()") == "A,B"
    )
    assert browser.evaluate("document.querySelectorAll('tr.changed').length") > 0


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (("--since", "2h"), "the last 2h"),
        (("--from", "3h ago", "--to", "1h ago"), " to "),
        (("--job", "48213"), "Slurm job 48213"),
    ],
)
def test_a_time_of_the_simulated_machine(words: tuple[str, ...], title: str, tmp_path: Path) -> None:
    environ = {"GPULSE_HISTORY": str(tmp_path / "history.db"), "HOME": str(tmp_path)}
    done = gpulse("--demo", *words, environ=environ)
    assert title in done.stdout.splitlines()[0]
    assert "Compute-bound and healthy" in done.stdout
    assert not (tmp_path / "history.db").exists()


def test_the_demo_reports_what_a_diagnosis_of_the_same_machine_finds() -> None:
    """Nothing that a rule reads is left out of the recording: GPU 6 is throttled and serves a model."""
    done = gpulse("--demo", "--gpu", "6")
    assert "lost to throttling" in done.stdout
    assert "Decoding is limited by memory bandwidth" in done.stdout
    assert "Qwen/Qwen3-32B" in done.stdout
