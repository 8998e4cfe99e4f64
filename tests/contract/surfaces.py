"""Every surface on machines, as a program: for each line with a machine it prints what went wrong there as JSON.

Each machine gets a fork of a process that has imported everything, because imports cost more than the answers. In it each surface is
asked in a fork of its own, so that one that fails or hangs takes nothing else with it; several run side by side, because on a machine
whose driver hangs they mostly wait.
"""

from __future__ import annotations

import ctypes
import difflib
import gc
import io
import json
import os
import pkgutil
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jsonschema import Draft202012Validator

import gpulse
from gpulse import api
from gpulse.cli.main import main
from gpulse.errors import GpulseError
from gpulse.live.api import QUESTIONS
from gpulse.live.hub import Hub, wanted
from gpulse.live.machine import LiveMachine, MachineSettings
from gpulse.live.parameters import Refusal
from gpulse.live.past import Past
from gpulse.model.catalog import DOWN, GPU_METRICS
from gpulse.model.codec import snapshot_schema
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.monitor.monitor import Monitor
from gpulse.present.exposition import series_name
from gpulse.sampling.sampler import Sampler
from gpulse.sources.registry import default_source, make_source
from gpulse.store.history import Recorder
from gpulse.surfaces.exporter import exporter as exporting
from gpulse.surfaces.exporter.otlp_push import OtlpPush, Receiver
from gpulse.surfaces.jupyter.kernels import Kernel, kernel_table
from gpulse.surfaces.mcp import Tools
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.state import ScreenSettings, State
from gpulse.surfaces.web.gate import ServerSettings
from gpulse.surfaces.web.server import make_app
from tests.unit.surfaces.exporter.collector import Collector, decoded
from tests.unit.surfaces.exporter.pages import parsed, values
from tests.unit.surfaces.web.asking import TOKEN, ask

PATIENCE = 60.0  # seconds until a surface counts as hung
AT_ONCE = 8  # they wait more than they compute where a driver hangs
_DEAD = "GPULSE_TEST_DEAD"  # set where no GPU can be read, and every surface must say so
VALID_SNAPSHOT = Draft202012Validator(snapshot_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)
_SHAPE = re.compile(r"[\d.:\s█▏▎▍▌▋▊▉·#-]+")  # what differs between two samples: figures, bars and the room they take
_FIGURES = ("utilization", "memory_used", "temperature", "power_draw")

# --- commands, in the order in which they need each other

COMMANDS = {
    "status": """
        status --json
        status
        status --processes
        --json=gpustat""",
    "query": """
        query --query-gpu=name,uuid,utilization.gpu,memory.used,power.draw --format=csv
        query --query-compute-apps=pid,used_memory
        query --query-gpu=utilization,sm_active,pcie_rx --format=json
        query --query-gpu=utilization,sm_active,pcie_rx --format=prometheus
        query -q
        query -q -x
        query -L""",
    "smi": """
        smi
        smi -q
        smi -q -x
        smi -L
        smi --query-gpu=index,name,pcie.link.gen.current --format=csv
        smi dmon -c 1
        smi pmon -c 1""",
    "smi lists": """
        smi topo -m
        smi nvlink -s
        smi mig -lgip""",
    "doctor": """
        doctor
        metrics""",
    "pick": "pick",
    "recording": """
        record -o run.ndjson.gz --count 3 --interval 0.05 --processes
        report run.ndjson.gz
        report run.ndjson.gz --format json
        report run.ndjson.gz --format html
        report run.ndjson.gz --format csv
        report --compare run.ndjson.gz run.ndjson.gz
        why --source replay:run.ndjson.gz
        why --json --source replay:run.ndjson.gz
        status --source replay:run.ndjson.gz""",
    "history": """
        record --history history.db --count 3 --interval 0.05
        history --file history.db
        history --file history.db --format plot
        history --file history.db --format csv
        history --file history.db --format json
        history --file history.db --events
        history --file history.db --usage
        history --file history.db --verify""",
    "why": "why --for 2 --json",
}
_REFUSING = ("pick", "smi", "smi lists")  # no GPU may be free; nvidia-smi fails on a lost GPU, and so does its stand-in
_SILENT = ("record", "pick", "smi nvlink")  # commands that may have nothing to print


def can_be_read() -> bool:
    """Return whether this machine has a GPU that can be read."""
    return _DEAD not in os.environ


def check_output(words: str, text: str) -> None:
    """Read an output as its readers do."""
    if words.endswith(("json", "gpustat")) or " --json " in words:
        plain = json.loads(text)
        if words == "status --json":
            VALID_SNAPSHOT.validate(plain)
    elif words.endswith("-x"):
        ElementTree.fromstring(text)
    elif words.endswith("prometheus"):
        parsed(text)
    assert text or words.startswith(_SILENT), "nothing was printed"


def run(words: str) -> int:
    """Run a command and return its exit code; it must answer, or say why not, and never with a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words.split())
    said = err.getvalue()
    assert "Traceback" not in said, said
    if code == 0:
        check_output(words, out.getvalue())
    reason = out.getvalue() if words == "doctor" else said
    assert code == 0 or reason, code
    return code


def commands(name: str) -> None:
    """Run the commands of a surface; where there is no GPU, its first."""
    lines = [line.strip() for line in COMMANDS[name].strip().splitlines()]
    gpus = can_be_read()
    for words in lines if gpus else lines[:1]:
        try:
            code = run(words)
            assert (code == 0) is gpus or name in _REFUSING, code
        except BaseException:
            print(f"in: gpulse {words}", file=sys.stderr)
            raise


class Screen(io.StringIO):
    """A terminal of 40 lines."""

    def isatty(self) -> bool:
        """Let everything be drawn on it."""
        return True


def terminal() -> None:
    """Compare the glance of a terminal, which is updated in place, with that of a pipe: they show the same values."""
    os.environ |= {"TERM": "xterm", "COLUMNS": "120"}
    for words in ("status", "status --processes") if can_be_read() else ():
        pictures = []
        for stream in (Screen(), io.StringIO()):
            with redirect_stdout(stream):
                assert main(words.split()) == 0
            last = re.split(r"\x1b\[\d+A", stream.getvalue())[-1]
            plain = re.sub(r"\x1b\[[0-9;]*[mKJ]", "", last)
            pictures.append([_SHAPE.sub("#", line.rstrip()) for line in plain.splitlines()[1:]])
        drawn, piped = pictures
        assert drawn == piped, "\n".join(difflib.unified_diff(drawn, piped, "terminal", "pipe"))


# --- one sampler for all that a server and a screen show


def samples(sampler: Sampler) -> list[Snapshot]:
    """Return three samples of a machine."""
    sampler.settle()
    taken = []
    for _ in range(3):
        taken.append(sampler.read())
        time.sleep(0.02)  # rates need time between two samples, and no event tells that it has passed
    return taken


def server() -> None:
    """Ask the server for everything it has, and compare the pages with the snapshot that they are made from."""
    asked = exporting.wanted(processes=True, dcgm=True, smi=True)
    sampler = Sampler(make_source(default_source()), wanted(more=asked)).open()
    taken = samples(sampler)
    said: list[str] = []
    exporter = exporting.Exporter(lambda: hub.verdicts.latest, say=said.append)
    recorder = Recorder("server.db")
    hub = Hub(
        None,
        1.0,
        watchers=[exporter.add],
        keep=recorder.put,
        failed=lambda error: said.append("".join(traceback.format_exception(error))),
    )
    for snapshot in taken:
        hub.add(snapshot)
    recorder.close(5.0)
    app = make_app(
        hub,
        ServerSettings(TOKEN, None),
        past=Past("server.db"),
        metrics=lambda accept: (exporter.text("open" in accept, True, True, True), "text/plain"),
    )
    for path in ("/", "/metrics", "/healthz", *_paths(taken)):
        answer = ask(app, path)
        assert answer.status == 200, (path, answer.status, answer.body)
    for openmetrics in (False, True):
        compare(ask(app, "/metrics", accept="open" if openmetrics else "text").body.decode(), openmetrics, taken[-1])
    push(taken)
    assert not said, said
    sampler.close()


def _paths(taken: list[Snapshot]) -> list[str]:
    span = f"from={taken[0].time - 1:.3f}&to={taken[-1].time + 1:.3f}"
    uuids = ",".join(gpu.uuid for gpu in taken[-1].gpus[:4] if gpu.uuid)
    return [
        *(question.path for question in QUESTIONS),
        f"/api/snapshot?at={taken[-1].time:.3f}",
        f"/api/history?{span}&metrics=utilization,pcie_rx,state,host.cpu_percent{'&gpus=' + uuids if uuids else ''}",
        *(f"/api/{name}?{span}" for name in ("events", "processes", "usage", "compare")),
    ]


def compare(text: str, openmetrics: bool, snapshot: Snapshot) -> None:
    """Check that a page has a series where the snapshot has a value, with that value, and none elsewhere."""
    found = parsed(text, openmetrics)
    assert not values(found, "gpulse_failed_families_total", "family")
    assert len(values(found, "gpulse_gpu_up", "gpu", "uuid")) == len(snapshot.gpus)
    for key in _FIGURES:
        metric = GPU_METRICS[key]
        shown = values(found, series_name(metric, "gpu"), "gpu", "mig")
        for gpu in snapshot.gpus:
            value = None if gpu.state in DOWN else gpu.get(key)
            told = shown.get((f"{gpu.index:.0f}", ""))
            assert (told is None) == (value is None), (key, value, told)
            if told is not None and isinstance(value, (int, float)):
                assert abs(told - value * metric.unit.base) < 1e-6, (key, value, told)


def push(taken: list[Snapshot]) -> None:
    """Push to a collector."""
    said: list[str] = []
    with Collector() as collector:
        exporter = exporting.Exporter(say=said.append)
        pushing = OtlpPush(Receiver(collector.url, {}), exporter.series, said.append, interval=3600)
        pushing.start()
        for snapshot in taken:
            exporter.add(snapshot)
            pushing.add(snapshot)
        pushing.stop()
    resource = decoded(collector.bodies[-1])
    names = {metric.name for scope in resource.scope_metrics for metric in scope.metrics}
    assert {"hw.status", "gpulse_gpu_up"} <= names, names
    assert said == []


def top() -> None:
    """Paint the screen in several sizes, with each of its views."""
    sampler = Sampler(make_source(default_source()), EVERYTHING).open()
    taken = samples(sampler)
    for size in ((40, 12), (80, 24), (200, 60)):
        for dialog in ("", "gpu", "host", "why", "help", "settings", "sort"):
            state = State(ScreenSettings(), History(["utilization", "sm_active", "memory_percent"]))
            for snapshot in taken:
                state.history.add(snapshot)
            state.columns, state.rows = size
            state.live = state.shown = taken[-1]
            state.now, state.dialog = taken[-1].time, dialog
            lines = ["".join(chars).rstrip() for chars in paint(state).chars]
            assert any(lines), (size, dialog)
    sampler.close()


def jupyter() -> None:
    """Ask a machine what the handlers of JupyterLab ask it."""
    machine = LiveMachine(MachineSettings(default_source(), history="jupyter.db", failed=_raise))
    end = time.monotonic() + PATIENCE / 2
    try:
        while machine.ask().hub.latest is None and time.monotonic() < end:
            pass  # a busy computer may need longer than it waits: ask again, as the answer to a browser says
        for question in QUESTIONS:
            given = {parameter.name: parameter.default for parameter in question.parameters}
            json.loads(question.answer(machine.ask(), given))
        kernel = Kernel("k", "s", "a.ipynb", "a.ipynb", "idle", 1.0, os.getppid())
        assert kernel_table([kernel], machine.ask().latest())["kernels"]
        number, text = machine.ask().hub.greeting()
        assert number > 0
        assert b"event: sample" in text
    finally:
        machine.close()


def _raise(text: str) -> None:
    raise AssertionError(text)


def monitor() -> None:
    """Monitor a program into a CSV file."""
    err = io.StringIO()
    watching = Monitor(
        "run.csv", interval=0.1, gpus="all", mode="thread", alerts=False, source=default_source(), stderr=err
    )
    with watching:
        end = time.monotonic() + PATIENCE / 2
        while watching.latest is None and not err.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        summary = watching.stop()
    assert summary is not None
    assert str(summary)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    assert len(Path("run.csv").read_text().splitlines()) > 1
    assert err.getvalue().startswith("gpulse: ") or (can_be_read() and not err.getvalue()), err.getvalue()


def python() -> None:
    """Ask what `import gpulse` offers, and the tools of `gpulse mcp`."""
    taken = api.snapshot(source=default_source())
    assert repr(taken)
    assert taken._repr_html_().startswith("<")
    assert api.visible_gpus(source=default_source()) is not None
    tools = Tools(default_source())
    for answer in (tools.snapshot(), tools.processes(), tools.free_gpus()):
        json.dumps(answer, allow_nan=False)


SURFACES: dict[str, Callable[[], None]] = {
    **{name: (lambda name=name: commands(name)) for name in COMMANDS},  # type: ignore[misc]
    "terminal": terminal,
    "server": server,
    "top": top,
    "jupyter": jupyter,
    "monitor": monitor,
    "python": python,
}


# --- the program


def child(name: str, folder: Path) -> int:
    """Run one surface in this, forked, process."""
    folder.mkdir()
    os.chdir(folder)
    os.dup2(os.open("said", os.O_RDWR | os.O_CREAT, 0o644), 2)
    try:
        SURFACES[name]()
    except BaseException as error:  # noqa: BLE001
        if not can_be_read() and isinstance(error, (GpulseError, Refusal)) and str(error):
            return 0
        traceback.print_exc()
        return 1
    return 0


def problems_of(machine: dict[str, Any]) -> dict[str, str]:
    """Run every surface on a machine in this, forked, process, and return what those that failed have said."""
    os.environ.clear()
    os.environ.update(machine["environment"] | ({} if machine["gpus"] else {_DEAD: "1"}))
    folder = Path(machine["folder"])
    if machine["library"]:
        ctypes.CDLL(machine["library"])  # a later load by soname finds this one
    waiting, problems = [name for name in SURFACES if name not in machine["without"]], dict[str, str]()
    running: dict[int, tuple[str, int, float]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            if (pid := os.fork()) == 0:
                os._exit(child(name, folder / name))
            running[os.pidfd_open(pid)] = (name, pid, time.monotonic() + PATIENCE)
        first = min(end for *_, end in running.values())
        ended = select.select(list(running), [], [], max(0.0, first - time.monotonic()))[0]
        for handle in ended or [min(running, key=lambda handle: running[handle][2])]:
            name, pid, _ = running.pop(handle)
            if not ended:
                os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(handle)
            said = (folder / name / "said").read_text(errors="replace")
            if code or "Traceback" in said:
                problems[name] = said if ended else f"hangs\n{said}"
    return problems


_LATER = (  # packages that the surfaces import when they are asked
    "anyio._backends._asyncio",
    "argparse",
    "csv",
    "importlib.metadata",
    "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2",
)
_OPTIONAL = (
    "gpulse.callbacks",
    "gpulse.surfaces.jupyter",
    "gpulse.surfaces.mcp",
)  # import big packages that no surface here needs


def import_everything() -> None:
    """Import what the surfaces would import when they are asked, so that no machine pays for it."""
    for module in pkgutil.walk_packages(gpulse.__path__, "gpulse."):
        if not module.name.endswith("__main__") and not module.name.startswith(_OPTIONAL):
            import_module(module.name)
    for name in _LATER:
        import_module(name)


def serve() -> None:
    """Answer for one machine a line until there are no more."""
    import_everything()
    gc.freeze()  # a collection in a fork would copy every page
    for line in iter(sys.stdin.readline, ""):
        if (pid := os.fork()) == 0:
            print(json.dumps(problems_of(json.loads(line))), flush=True)
            os._exit(0)
        if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            print(json.dumps({"all": f"ended with {code}"}), flush=True)


if __name__ == "__main__":
    serve()
