"""gpulse in a notebook that a real kernel runs: what is saved holds text and image."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import ROOT, environment
from tests.fake_nvml import Scenario

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], *cells: str) -> list[list[Any]]:
    """Run cells in a kernel, save the notebook, and return the outputs of each from the file."""
    for key, value in {"HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}", **environ}.items():
        monkeypatch.setenv(key, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True, kernel_name="python3").execute()
    nbformat.write(notebook, tmp_path / "saved.ipynb")
    saved = json.loads((tmp_path / "saved.ipynb").read_text())
    return [cell["outputs"] for cell in saved["cells"]]


def text_of(outputs: list[Any]) -> str:
    return "".join("".join(output.get("text", [])) for output in outputs)


def shown_text(outputs: list[Any]) -> str:
    return "\n".join("".join(output["data"]["text/plain"]) for output in outputs if "data" in output)


def seconds(text: str) -> float:
    """Return the duration that a report gives; a cell that sleeps takes at least as long, on a busy machine longer."""
    found = re.search(r" · time (\S+) s ", text)
    assert found, text
    return float(found[1])


def test_the_magics_leave_text_tables_and_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = (
        "%load_ext gpulse",
        "%gpulse",
        "%%gpulse training step\nimport time\ntime.sleep(2.5)\nprint('inside')",
        "import gpulse\ngpulse.snapshot()",
        "%%gpulse\nraise ValueError('of the cell')",
        "%gpulse --nonsense",
    )
    _, status, cell, snapshot, failed, wrong = run(tmp_path, monkeypatch, {"GPULSE_SOURCE": "demo"}, *cells)
    [shown] = status
    assert "".join(shown["data"]["text/plain"]).count("GPU ") == 8
    assert "<table" in "".join(shown["data"]["text/html"])
    assert "inside" in text_of(cell)
    assert "training step · time " in shown_text(cell)
    assert seconds(shown_text(cell)) >= 2.5
    assert any("<table" in "".join(output["data"].get("text/html", "")) for output in cell if "data" in output)
    assert "<table" in "".join(snapshot[0]["data"]["text/html"])
    assert any(output.get("ename") == "ValueError" for output in failed)
    assert "failed" in "".join("".join(output.get("data", {}).get("text/plain", [])) for output in failed)
    assert "--demo" in text_of(wrong)


OWN = """
import os
with open(os.environ["FAKE_NVML_SCENARIO"]) as file:
    script = file.read()
with open(os.environ["FAKE_NVML_SCENARIO"], "w") as file:
    file.write(script.replace("pid = OWN", f"pid = {os.getpid()}"))
"""


def on(scenario: Scenario, folder: Path) -> dict[str, str]:
    machine = environment(scenario, folder / "driver")
    return {key: machine[key] for key in machine if key.startswith(("FAKE_NVML", "LD_"))}


def shared_machine(stranger: int) -> Scenario:
    """Return two GPUs of 685 W on which a process of somebody else computes and holds 100 GiB."""
    scenario = Scenario.load("h200-idle").driver(gpus=2)
    for at in (0, 1):
        scenario.gpu(at, memory__used="110 GiB", power="685 W", energy="integral(power)", utilization__gpu=97)
        scenario.process(gpu=at, pid=stranger, memory="100 GiB", sm=60)
    return scenario


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of somebody else."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        process.kill()


def test_a_cell_that_used_no_gpu_is_not_credited_with_the_work_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: int
) -> None:
    cell = "%%gpulse on the CPU\nimport time\ntime.sleep(5.5)"
    _, shown = run(tmp_path, monkeypatch, on(shared_machine(stranger), tmp_path), "%load_ext gpulse", cell)
    first, others = shown_text(shown).splitlines()
    assert re.fullmatch(r"on the CPU · time \S+ s · CPU time \S+ \S+ · GPU not used", first)
    assert re.fullmatch(rf"Others: \S+ sleep \(pid {stranger}\) on GPUs 0, 1: 200 GiB, SM share 60 %\.", others)
    assert not any("image/svg+xml" in output.get("data", {}) for output in shown)


def test_a_cell_beside_others_is_told_its_own_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: int
) -> None:
    scenario = shared_machine(stranger).process(gpu=0, pid="OWN", memory="9 GiB", sm=20)
    cells = (f"{OWN}%load_ext gpulse", "%%gpulse\nimport time\ntime.sleep(6)")
    _, cell = run(tmp_path, monkeypatch, on(scenario, tmp_path), *cells)
    text = shown_text(cell)
    assert "peak GPU memory 9.0 GiB · SM share 20 % · energy" in text
    took, joules = re.search(r"time (\S+) s.*energy (\S+) J \(its share, estimated\)", text).groups()  # type: ignore[union-attr]
    assert float(joules) == pytest.approx(685 * float(took) * 20 / 80, rel=0.1)
    assert "Your program did not use GPU 1." in text
    assert f"(pid {stranger}) on GPUs 0, 1: 200 GiB, SM share 60 %" in text
    [chart] = [output for output in cell if "image/svg+xml" in output.get("data", {})]
    image = "".join(chart["data"]["image/svg+xml"])
    assert "SM share of this program" in [each.text for each in ET.fromstring(image).iter()]
    picture = base64.b64decode("".join(chart["data"].get("image/png", "")))
    drawn = importlib.util.find_spec("matplotlib") is not None
    assert picture.startswith(b"\x89PNG") == drawn, "what a notebook shows that is not trusted"
    assert chart["metadata"]["image/png"]["width"] == int(ET.fromstring(image).attrib["width"])


def test_a_cell_is_repeated_shown_again_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: int
) -> None:
    scenario = shared_machine(stranger).process(gpu=0, pid="OWN", memory="9 GiB", sm=20)
    cells = (
        f"{OWN}%load_ext gpulse\n%gpulse last",
        "%%gpulse --repeat 3 loop\nimport time\ntime.sleep(1.8)\nprint('run')",
        "[run.name for run in _gpulse], _gpulse[0].memory_peak / 2**30",
        "%gpulse last",
        "%gpulse why",
        "%%gpulse --repeat 3\n1 / 0",
        "_gpulse.failed",
        "%%gpulse --repeat none\nprint('not run')",
        "%gpulse how",
    )
    outputs = run(tmp_path, monkeypatch, on(scenario, tmp_path), *cells)
    none, loop, result, again, why, failing, failed, wrong, unknown = outputs
    assert "no cell has been measured yet" in text_of(none)
    assert text_of(loop) == 3 * "run\n"
    assert re.match(r"loop · runs 3 · time \S+ s.* · peak GPU memory 9\.0 GiB · energy of a run ", shown_text(loop))
    assert "GPU 0 SM share ▂" in shown_text(loop), "what is left of the chart where images are not shown"
    assert shown_text(result) == "(['loop', 'loop', 'loop'], 9.0)"
    assert shown_text(again) == shown_text(loop)
    assert re.match(r"This kernel in the last \S+:\n  → ", shown_text(why))
    assert f"(pid {stranger}) on GPUs 0, 1" in shown_text(why)
    assert [output.get("ename") for output in failing if output["output_type"] == "error"] == ["ZeroDivisionError"]
    assert shown_text(failed) == "True", "the first run failed, and there was no other"
    assert "'none' is not a number of runs from 1 to 1000" in text_of(wrong)
    assert "not run" not in text_of(wrong)
    assert "'how' is unknown" in text_of(unknown)


def test_a_failing_cell_fails_the_notebook_as_without_the_magic(tmp_path: Path) -> None:
    pytest.importorskip("nbconvert")
    cells = ["%load_ext gpulse", "%%gpulse doomed\nimport time\ntime.sleep(0.3)\n1 / 0", "print('after')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(notebook, tmp_path / "failing.ipynb")
    environ = environment(Scenario.load("h200-busy"), tmp_path / "driver", HOME=str(tmp_path))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "failing.ipynb", "--output", "saved"]
    refused = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "ZeroDivisionError" in refused.stderr
    assert not (tmp_path / "saved.ipynb").exists()
    subprocess.run([*command, "--allow-errors"], cwd=tmp_path, env=environ, capture_output=True, check=True)
    _, failed, after = json.loads((tmp_path / "saved.ipynb").read_text())["cells"]
    kinds = [output["output_type"] for output in failed["outputs"]]
    assert kinds[:2] == ["error", "display_data"], "one traceback, and below it the report"
    assert kinds.count("error") == 1
    assert "doomed" in "".join(failed["outputs"][1]["data"]["text/plain"])
    assert "failed" in "".join(failed["outputs"][1]["data"]["text/plain"])
    assert text_of(after["outputs"]) == "after\n"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("print('after')", 0),
        ("%%gpulse doomed\n1 / 0", 1),
    ],
    ids=["a notebook that ends", "a notebook that fails"],
)
def test_papermill_ends_as_without_the_magic(tmp_path: Path, stranger: int, last: str, code: int) -> None:
    pytest.importorskip("papermill")
    cells = [
        "%load_ext gpulse\n%gpulse auto 1",
        "%%gpulse on the CPU\nimport time\ntime.sleep(0.5)\nfloat(64**3)",
        "%%gpulse waits\nimport asyncio\nawait asyncio.sleep(1.5)",
        "await asyncio.sleep(1.2)",
        last,
        "print('end')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "given.ipynb")
    environ = environment(shared_machine(stranger), tmp_path / "driver", HOME=str(tmp_path))
    command = [sys.executable, "-m", "papermill", "given.ipynb", "saved.ipynb", "--no-progress-bar"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    saved = json.loads((tmp_path / "saved.ipynb").read_text())["cells"]
    outputs = {"".join(cell["source"]): cell["outputs"] for cell in saved if cell["cell_type"] == "code"}
    _, worked, waits, automatic, _, end = [outputs[cell] for cell in cells]
    assert re.search(r"262144\.0.*on the CPU · time .* · GPU not used$", shown_text(worked), re.DOTALL | re.MULTILINE)
    assert re.match(r"waits · time \S+ s · CPU time \S+ \S+ · GPU not used\n", shown_text(waits))
    assert re.fullmatch(r"In \[4\] · time \S+ s · CPU time \S+ \S+ · GPU not used", shown_text(automatic))
    assert (seconds(shown_text(waits)) >= 1.5, seconds(shown_text(automatic)) >= 1.2) == (True, True)
    assert text_of(end) == ("" if code else "end\n")


def test_a_measured_cell_runs_as_a_plain_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = (
        "%load_ext gpulse",
        "%%gpulse waits\nimport asyncio\nawait asyncio.sleep(0.3)\n42",
        "%%gpulse shell\n%%bash\necho hello",
        "%%time\n%%gpulse inside\nx = 1",
        "%%gpulse outer\nshell = get_ipython()\nfor each in ('%%gpulse inner\\n1', '', 'y = 2'): shell.run_cell(each)\n5",
        "get_ipython().run_cell_magic('gpulse', 'exported', 'print(6)')",
        "%%gpulse\nno python",
        "%unload_ext gpulse\nget_ipython().run_cell('%%gpulse\\n7').success",
    )
    _, waits, shell, timed, outer, exported, wrong, unloaded = run(
        tmp_path, monkeypatch, {"GPULSE_SOURCE": "demo"}, *cells
    )
    assert [output["output_type"] for output in waits[:2]] == ["execute_result", "display_data"]
    assert "".join(waits[0]["data"]["text/plain"]) == "42"
    assert "waits · time" in shown_text(waits[1:])
    assert "µs" not in shown_text(waits[1:]).partition(" · cpu time")[0], "the wait belongs to the cell"
    assert text_of(shell) == "hello\n"
    assert "shell · time" in shown_text(shell)
    assert "inside · time" in shown_text(timed)
    assert shown_text(outer).index("inner · time") < shown_text(outer).index("outer · time")
    assert "6" in text_of(exported)
    assert "exported · time" in shown_text(exported)
    assert [output.get("ename") for output in wrong] == ["SyntaxError"]
    assert shown_text(unloaded) == "False"


def test_long_cells_are_reported_in_one_line_once_that_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: int
) -> None:
    cells = (
        "%load_ext gpulse\n%gpulse auto",
        "import time\ntime.sleep(1.2)",
        "%gpulse auto 1s",
        "time.sleep(1.2)\nget_ipython().run_cell('time.sleep(1.1)').success",
        "'short'",
        "%%gpulse asked\ntime.sleep(1.2)",
        "time.sleep(1.2)\n1 / 0",
        "%gpulse last",
        "gpulse = __import__('gpulse')\nlist(gpulse.measurements())",
        "%gpulse auto soon",
        "%gpulse auto off",
        "time.sleep(1.2)",
    )
    outputs = run(tmp_path, monkeypatch, on(shared_machine(stranger), tmp_path), *cells)
    off, silent, switched, long, short, asked, failed, last, totals, wrong, off_again, silent_again = outputs
    assert text_of(off) == "No cell is reported automatically.\n"
    assert text_of(switched) == "Cells that take longer than 1 s are reported automatically.\n"
    assert (silent, silent_again) == ([], [])
    assert shown_text(short) == "'short'"
    line = r"In \[4\] · time \S+ s · CPU time \S+ \S+ · GPU not used"
    assert re.fullmatch(rf"True\n{line}", shown_text(long)), "the cell, and not the one inside"
    assert seconds(shown_text(long)) >= 2.3
    assert shown_text(asked).startswith("asked · time ")
    assert seconds(shown_text(asked)) >= 1.2
    assert "In [" not in shown_text(asked), "the full report says it all"
    assert re.search(r"^In \[7\] · time \S+ s .* · result failed$", shown_text(failed))
    assert shown_text(last).startswith(shown_text(failed))
    assert "In [" not in shown_text(totals), "only what was asked for counts"
    assert "'soon' is not a duration" in text_of(wrong)
    assert text_of(off_again) == text_of(off)


def test_the_live_table_moves_until_the_next_cell_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: int
) -> None:
    scenario = shared_machine(stranger).process(gpu=0, pid="OWN", memory="9 GiB", sm=20)
    threads = """
import threading, time
end = time.monotonic() + 50
names = lambda: [thread.name for thread in threading.enumerate() if thread.name in ("gpulse-feed", "gpulse-bus")]
while names() and time.monotonic() < end:
    time.sleep(0.01)
names()
"""
    wait = """
import time
publisher, seen = get_ipython().display_pub, []
publish = publisher.publish
def noted(*words, **named):
    seen.append(str((words, named)))
    return publish(*words, **named)
publisher.publish = noted
%gpulse top
end = time.monotonic() + 50
while not any("  20 % " in one for one in seen) and time.monotonic() < end:
    time.sleep(0.01)
publisher.publish = publish
"""
    cells = (f"{OWN}%load_ext gpulse", wait, threads, "%gpulse top --demo", "%gpulse last", "%gpulse top now")
    _, table, left, demo, _, wrong = run(tmp_path, monkeypatch, on(scenario, tmp_path), *cells)
    [shown] = table
    text, html = "".join(shown["data"]["text/plain"]), "".join(shown["data"]["text/html"])
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d · stopped\nGPU 0 H200 · util 97 %", text), text
    own, other = text.splitlines()[-2:]
    assert "(this kernel)" in own, "first, although the other holds more"
    assert re.search(r"  0 +9\.0 GiB  20 % ", own)
    assert re.search(rf"sleep .* {stranger} .*  0, 1 +200 GiB  60 % ", other)
    assert html.count("<table") == 2
    assert "<script" not in html
    assert shown_text(left) == "[]", "no thread is left"
    assert shown_text(demo).count("GPU ") >= 8
    assert "'top now' is unknown" in text_of(wrong)


def test_the_lines_that_keep_the_gpu_waiting_are_named_by_their_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = (
        "from bench.workloads.code.gpu import ScriptedGpu\ngpu = ScriptedGpu(9)\n%load_ext gpulse",
        "def score(batch):\n    total = 0\n    for one in batch:\n        total += one % 7\n    return total",
        "%%gpulse\nfor step in gpu.steps():\n    gpu.step().item()\n    score(range(2_500_000))",
        "%gpulse why",
    )
    environ = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "GPULSE_SOURCE": "nvidia"}
    _, _, cell, why = run(tmp_path, monkeypatch, environ, *cells)
    sentence = r"The GPU waited \S+ of \S+ s; \S+ s of it in In \[2\], line [34] score\(…\)\."
    assert re.search(rf"^{sentence} This is Python at work", shown_text(cell), re.MULTILINE), shown_text(cell)
    assert "gpulse why PID" not in shown_text(cell), "what it would tell is told"
    assert re.search(sentence, shown_text(why)), shown_text(why)
    assert re.search(sentence, "".join(why[0]["data"]["text/html"]))


def test_without_a_gpu_the_magic_says_so_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = on(Scenario.load("not-loaded"), tmp_path)
    _, status, cell = run(tmp_path, monkeypatch, given, "%load_ext gpulse", "%gpulse", "%%gpulse\nx = 1")
    assert "driver" in text_of(status).lower()
    assert "--demo" in text_of(status)
    assert not any(output["output_type"] == "error" for output in (*status, *cell))


def test_out_of_memory_is_explained_under_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = (
        "%load_ext gpulse",
        "raise RuntimeError('CUDA out of memory. Tried to allocate 20.00 GiB')",
        "raise RuntimeError('other')",
    )
    _, memory, other = run(tmp_path, monkeypatch, {"GPULSE_SOURCE": "demo"}, *cells)
    assert memory[0]["output_type"] == "error"
    assert "20" in text_of(memory), memory
    assert "memory" in text_of(memory).lower()
    assert [output["output_type"] for output in other] == ["error"]


def test_the_widget_samples_until_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget")
    code = """
import gpulse, threading, time
with gpulse.widget(["utilization"], interval=0.1) as shown:
    end = time.monotonic() + 50
    while len(shown.start["samples"]) < 4 and time.monotonic() < end:
        time.sleep(0.01)
threads = lambda: [thread.name for thread in threading.enumerate() if thread.name.startswith("gpulse")]
while threads() and time.monotonic() < end:
    time.sleep(0.01)
print(len(shown.start["samples"]) >= 4, threads())
"""
    wrong = "gpulse.widget(interval=0)"
    shown, refused = run(tmp_path, monkeypatch, {"GPULSE_SOURCE": "demo"}, code, wrong)
    assert any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in shown)
    assert "True []" in text_of(shown)
    [still] = [
        output["data"]
        for output in shown
        if "data-gpulse-still" in "".join(output.get("data", {}).get("text/html", ""))
    ]
    assert re.match(r"gpulse\.widget of utilization at \S+ \S+\nGPU 0 H100", "".join(still["text/plain"]))
    assert "data:image/svg+xml;base64," in "".join(still["text/html"]), "what is left of it in a saved notebook"
    assert refused[0]["ename"] == "UsageError"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A kernel that watches the simulated machine, with the magics loaded: its manager, and a client."""
    from jupyter_client.manager import KernelManager

    for key, value in {"GPULSE_SOURCE": "demo", "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}"}.items():
        monkeypatch.setenv(key, value)
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(60)
    client.execute_interactive("%load_ext gpulse", timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def next_text(client: Any, kind: str) -> str:
    """Return the next text that a kernel sends in messages of one kind."""
    while True:
        message = client.get_iopub_msg(timeout=30)
        if message["msg_type"] == kind:
            content = message["content"]
            return str(content.get("text") or content.get("ename") or content["data"]["text/plain"])


def test_an_interrupt_between_cells_stops_the_live_table(kernel: Any) -> None:
    manager, client = kernel
    client.execute_interactive("%gpulse top", timeout=60, output_hook=lambda message: None)
    assert "until the next cell runs\n" in next_text(client, "update_display_data"), "it goes on after its cell"
    manager.interrupt_kernel()
    while " · stopped\n" not in next_text(client, "update_display_data"):
        pass
    reply = client.execute_interactive("1", timeout=60, output_hook=lambda message: None)
    assert reply["content"]["status"] == "ok", "the kernel is as before"


def test_an_interrupted_cell_is_interrupted_and_reported(kernel: Any) -> None:
    manager, client = kernel
    sleep = "import time; time.sleep(60)"
    client.execute(f"%%gpulse long\nprint('begun')\n{sleep}")
    assert next_text(client, "stream") == "begun\n"
    manager.interrupt_kernel()
    assert next_text(client, "error") == "KeyboardInterrupt"
    assert re.match(r"long · time .* · result interrupted", next_text(client, "display_data"))
    client.get_shell_msg(timeout=30)  # what is sent before the cell has ended is dropped, since it failed
    client.execute("%gpulse auto 0")
    assert "longer than 0 s" in next_text(client, "stream")
    client.execute(f"print('begun')\n{sleep}")
    assert next_text(client, "stream") == "begun\n"
    manager.interrupt_kernel()
    assert re.match(r"(In \[\d+\]|cell) · time .* · result interrupted", next_text(client, "display_data"))
