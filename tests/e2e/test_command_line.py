"""The command line as scripts meet it: exit codes, one line of blame, pipes that close, disks that are full."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.cli.commands.status import VERB as STATUS
from gpulse.cli.help import usage
from gpulse.cli.main import SILENT_PIPE, VERBS, load
from gpulse.cli.options import parse
from gpulse.errors import UsageError
from gpulse.model.codec import from_line
from tests.e2e.lab import PATIENCE, ROOT, Lab, environment
from tests.fake_nvml import Scenario

TRACES = ROOT.parent / "shared" / "h200" / "traces"
PLAIN = Scenario().driver(gpus=1)
GPULSE = [sys.executable, "-m", "gpulse"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(Scenario.load("h200-busy"), tmp_path / "fake")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("statsu", "unknown verb 'statsu' (did you mean 'status'?)"),
        ("extra words", "unknown verb 'extra'"),
        ("help nope", "unknown verb 'nope'"),
        ("status --jsno", "unknown option '--jsno' (did you mean '--json'?)"),
        ("status --jso=1", "did you mean '--json'?"),
        ("status extra", "unexpected argument 'extra'"),
        ("--demo statsu", "unknown verb 'statsu' (did you mean 'status'?)"),
        ("--demo --gpus 2 top", "unknown option '--gpus' (did you mean '--gpu'?)"),
        ("--watch top", "top: unknown option '--watch'"),
        ("stacks 1 --demo", "programs of the simulated machine do not run"),
        ("--demo -c utilisation", "unknown metric 'utilisation' (did you mean 'utilization'?)"),
        ("--demo -c utilization,", ""),
        ("-c", "expected one argument"),
        ("--demo --gpu 99", "unknown GPU '99'; this machine has GPUs 0-7."),
        ("--demo --gpu 0-9", "unknown GPU '0-9'"),
        ("--demo --gpu 0-", "unknown GPU '0-'"),
        ("--demo --gpu GPU-nope", "unknown GPU 'GPU-nope'"),
        ("--demo --gpu ,", "--gpu"),
        ("--source nvdia", "unknown source 'nvdia' (did you mean 'nvidia'?)"),
        ("--source replay:", "replay:FILE"),
        ("--demo --watch 0", "between 0.1 and 86400"),
        ("--demo --watch abc", "'abc' is not a duration"),
        ("--demo --watch -1", "'-1' is not a duration"),
        ("--demo --watch nan", "'nan' is not a duration"),
        ("--demo --watch 2d", "between 0.1 and 86400"),
        ("--demo --color blue", "auto, always, never"),
        ("metrics zzzzzz", "unknown metric 'zzzzzz'"),
        ("metrics utilisatoin", "did you mean"),
        ("completion tcsh", "bash, zsh"),
        ("completion", "bash"),
    ],
)
def test_a_request_that_is_wrong_is_one_line_and_exit_2(lab: Lab, line: str, says: str) -> None:
    answer = lab.run(PLAIN, *line.split())
    if not says:
        assert answer.code == 0  # a comma too many is no mistake
        return
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gpulse: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err


def test_a_source_from_the_environment_is_checked_like_one_from_the_line(lab: Lab) -> None:
    answer = lab.run(PLAIN, GPULSE_SOURCE="nvdia")
    assert answer.code == 2
    assert "did you mean 'nvidia'?" in answer.err
    assert "H100" in lab.run(PLAIN, GPULSE_SOURCE="demo").out


def test_a_recording_that_is_not_there_is_exit_1(lab: Lab) -> None:
    answer = lab.run(PLAIN, "--source", "replay:/no/such/file")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.count("\n") == 1
    assert "/no/such/file" in answer.err


@pytest.mark.parametrize("verb", [*VERBS, ""])
def test_every_verb_says_what_it_does(lab: Lab, verb: str) -> None:
    asked = [lab.run(PLAIN, *f"{line}".split()) for line in (f"{verb} --help", f"help {verb}", f"{verb} -h")]
    assert {answer.code for answer in asked} == {0}
    assert {answer.err for answer in asked} == {""}
    assert len({answer.out for answer in asked}) == 1
    assert asked[0].out.startswith(f"gpulse {verb}".strip())
    assert max(len(line) for line in asked[0].out.splitlines()) <= 120
    assert asked[0].calls == {}


def test_the_help_of_gpulse_lists_the_options_of_status(lab: Lab) -> None:
    out = lab.run(PLAIN, "--help").out
    options = [line.strip() for line in out.splitlines() if line.strip().startswith("-")]
    for option in STATUS.options:
        assert any(line.startswith(usage(option)) for line in options), usage(option)
    assert lab.run(PLAIN, "--demo", "--help").out == out
    assert lab.run(PLAIN, "--help", "--demo").out == out


@pytest.mark.parametrize("verb", VERBS)
def test_an_example_never_runs_into_its_explanation(lab: Lab, verb: str) -> None:
    _, _, examples = lab.run(PLAIN, verb, "--help").out.partition("\nExamples:\n")
    assert examples
    for line in examples.splitlines():
        assert line.startswith("  # ") or "  # " in line or len(line) > 44 or "# " not in line
        assert shlex.split(line, comments=True) or line.startswith("  # ")
    known = {command for command, _ in load(verb).examples}
    shown = {line.partition("  # ")[0].strip() for line in examples.splitlines() if not line.startswith("  # ")}
    assert shown == known


def test_options_may_come_before_the_verb(lab: Lab) -> None:
    assert (
        lab.run(PLAIN, "--demo", "query", "--query-gpu=count").out
        == lab.run(PLAIN, "query", "--query-gpu=count", "--demo").out
    )
    indices = "query --query-gpu=index --format=csv,noheader"
    assert lab.run(PLAIN, "--gpu", "3,1", "--demo", *indices.split()).out == "3\n1\n"
    assert lab.run(PLAIN, "--color", "never", "--demo", "--gpu=2", *indices.split()).out == "2\n"
    assert lab.run(PLAIN, "--demo", "status", "--gpu", "5", "--json").gpus[0]["index"] == 5
    assert lab.run(PLAIN, "--demo", "top", "--help").out == lab.run(PLAIN, "top", "--help").out
    assert lab.run(PLAIN, "--count", "2", "-n", "0.1", "--demo", "record", "-o", "-").out.count("\n") == 2
    ran = lab.run(PLAIN, "--demo", "run", "--quiet", "--", "echo", "--demo", "top")
    assert (ran.code, ran.out) == (0, "--demo top\n")


def test_options_and_arguments_may_come_in_any_order() -> None:
    report = parse(load("report"), ["one", "--compare", "two", "-o", "diff.html"])
    assert (report.files, report.compare, report.output) == (["one", "two"], True, "diff.html")
    fleet = parse(load("fleet"), ["init", "--ssh", "a,b", "folder"])
    assert (fleet.action, fleet.ssh, fleet.folder) == ("init", "a,b", "folder")
    status = parse(load("status"), ["-pw2", "--json", "-cutilization"])
    assert (status.processes, status.watch, status.json, status.columns) == (True, 2.0, "gpulse", ["utilization"])
    with pytest.raises(UsageError, match="unknown option '-5' in '-p5'"):
        parse(load("status"), ["-p5"])
    run = parse(load("run"), ["--demo", "mixed", "-n2", "python", "-q", "--", "--gpus"])
    assert (run.demo, run.gpus, run.quiet, run.command) == ("mixed", 2, False, ["python", "-q", "--", "--gpus"])


def test_the_version_is_one_line(lab: Lab) -> None:
    from gpulse._version import __version__

    for flags in (("--version",), ("-V",), ("--demo", "--version")):
        assert lab.run(PLAIN, *flags).out == f"gpulse {__version__}\n"


def test_metrics_lists_the_catalog(lab: Lab) -> None:
    out = lab.run(PLAIN, "metrics").out
    assert "sm_active" in out
    assert "host_memory" in out
    table = lab.run(PLAIN, "metrics", "power", "--json").json
    assert "power_draw" in {metric["key"] for metric in table["gpu"]}
    assert "utilization" not in {metric["key"] for metric in table["gpu"]}


def test_gpus_are_shown_in_the_order_they_were_asked_for(lab: Lab) -> None:
    dgx = Scenario.load("dgx-h100x8")
    assert [gpu["index"] for gpu in lab.run(dgx, "--json", "--gpu", "3,1").gpus] == [3, 1]
    assert [gpu["index"] for gpu in lab.run(dgx, "--json", "-i", "9d:00.0,6-7,6").gpus] == [4, 6, 7]
    visible = lab.run(dgx, "--json", "--gpu", "visible", CUDA_VISIBLE_DEVICES="5,2")
    assert [gpu["index"] for gpu in visible.gpus] == [5, 2]
    uuid = lab.run(dgx, "--json", "--gpu", "3").gpus[0]["uuid"]
    assert [gpu["index"] for gpu in lab.run(dgx, "--json", "--gpu", uuid[:16]).gpus] == [3]


def test_hidden_gpus_leave_nothing_and_that_is_no_error(lab: Lab) -> None:
    for hidden in ("", "-1"):
        answer = lab.run(Scenario.load("dgx-h100x8"), "--json", "--gpu", "visible", CUDA_VISIBLE_DEVICES=hidden)
        assert (answer.code, answer.gpus) == (0, [])


def test_only_the_gpus_asked_for_are_read(lab: Lab) -> None:
    assert lab.run(Scenario.load("dgx-h100x8"), "--json", "--gpu", "2").calls["nvmlDeviceGetPowerUsage"] == 1


def test_the_driver_is_started_once_and_ended_once(lab: Lab) -> None:
    for arguments in ((), ("--json",), ("-p",), ("-c", "power_draw")):
        calls = lab.run(Scenario.load("h200-busy"), *arguments).calls
        assert (calls["nvmlInit_v2"], calls["nvmlShutdown"]) == (1, 1)


def test_a_line_of_json_can_be_read_back(lab: Lab) -> None:
    answer = lab.run(Scenario.load("dgx-h100x8"), "--json")
    assert answer.out.count("\n") == 1
    snapshot = from_line(answer.out)
    assert [gpu.index for gpu in snapshot.gpus] == list(range(8))
    assert answer.out.isascii()


def test_a_reader_that_leaves_ends_the_stream_without_a_word(env: dict[str, str]) -> None:
    for arguments in (("--json", "--watch", "0.1"), ("--watch", "0.1"), ("--demo", "--json", "--watch", "0.1")):
        process = subprocess.Popen([*GPULSE, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(PATIENCE) in (0, SILENT_PIPE)


@pytest.mark.parametrize("arguments", ["", "--json", "--demo", "metrics", "--help", "--version"])
def test_a_full_disk_is_one_sentence_and_exit_1(env: dict[str, str], arguments: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*GPULSE, *arguments.split()], env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "gpulse: No space left on device.\n"


def test_a_closed_stdout_is_no_traceback(env: dict[str, str]) -> None:
    for arguments in ("", "--json", "--version"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {arguments} >&-', "sh", *GPULSE], env=env, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") <= 1
        assert 0 <= done.returncode <= 3


def test_a_closed_stderr_is_no_trouble(env: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" statsu 2>&-', "sh", *GPULSE], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stream_into_a_pipe_ends_whole_lines_on_a_signal(env: dict[str, str], number: signal.Signals) -> None:
    command = [*GPULSE, "--json", "--watch", "0.1"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        process.send_signal(number)
        rest = process.stdout.read()  # not communicate(), which loses what readline() has read ahead
        assert "Traceback" not in process.stderr.read()
        assert process.wait(PATIENCE) in ((0, 130) if number == signal.SIGINT else (0, 143, -15))
    for line in (first + rest).splitlines():
        assert json.loads(line)["schema"] == 1


@pytest.mark.parametrize("language", ["C", "POSIX"])
def test_a_plain_locale_gets_plain_ascii(env: dict[str, str], language: str) -> None:
    plain = {key: value for key, value in env.items() if not key.startswith("LC_")} | {"LANG": language}
    for variables in ({}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        for arguments in (["-p"], ["metrics"]):
            done = subprocess.run(
                [*GPULSE, *arguments], env=plain | variables, capture_output=True, check=False, stdin=subprocess.DEVNULL
            )
            assert (done.returncode, done.stderr) == (0, b"")
            assert arguments == ["metrics"] or done.stdout.isascii()


@pytest.mark.parametrize("arguments", ["why --demo --for 2s", "run --demo -- true", "metrics", "-p --demo mixed"])
def test_a_stream_without_unicode_gets_ascii_and_no_escapes(env: dict[str, str], arguments: str) -> None:
    plain = env | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*GPULSE, *arguments.split()], env=plain, capture_output=True, check=False, text=True)
    assert done.returncode == 0
    for text in (done.stdout, done.stderr):
        assert text.isascii()
        assert "\\x" not in text
        assert "\\u" not in text


def test_colours_are_for_terminals_unless_asked_for(lab: Lab) -> None:
    busy = Scenario.load("h200-busy")
    assert "\x1b" not in lab.run(busy).out
    assert "\x1b[" in lab.run(busy, "--color", "always").out
    assert "\x1b[" in lab.run(busy, FORCE_COLOR="1").out
    assert "\x1b" not in lab.run(busy, FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b" not in lab.run(busy, "--color", "never", FORCE_COLOR="1").out


@pytest.mark.parametrize("columns", [1, 20, 40, 60, 64, 72, 80, 100, 120, 200, 400])
def test_no_line_is_wider_than_there_is_room(lab: Lab, columns: int) -> None:
    for name in ("h200-busy", "dgx-h100x8", "a100-mig", "laptop", "lost"):
        for arguments in ((), ("-p",)):
            out = lab.run(Scenario.load(name).gpu(None, gpm__latch=0), *arguments, COLUMNS=str(columns)).out
            assert max(len(line) for line in out.splitlines()) <= columns


def test_a_trace_of_a_real_card_plays(lab: Lab) -> None:
    traces = sorted(TRACES.glob("*.ndjson.gz"))
    if not traces:
        pytest.skip(f"{TRACES} is not here")
    for trace in traces:
        answer = lab.run(PLAIN, "--json", "--source", f"replay:{trace}@12s")
        assert (answer.code, answer.err) == (0, "")
        (gpu,) = answer.gpus
        assert gpu["name"] == "NVIDIA H200"
        assert "NVIDIA H200" in lab.run(PLAIN, "--source", f"replay:{trace}@12s").out
        assert answer.calls == {}


def test_a_trace_played_at_full_speed_gives_every_line_once(env: dict[str, str]) -> None:
    trace = TRACES / "lm_train.ndjson.gz"
    if not trace.exists():
        pytest.skip(f"{trace} is not here")
    import gzip

    lines = gzip.decompress(trace.read_bytes()).splitlines()
    command = [*GPULSE, "--json", "--watch", "0.1", "--source", f"replay:{trace}@31s*max"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    times = [json.loads(line)["time"] for line in done.stdout.splitlines()]
    start = from_line(lines[0].decode()).time
    expected = [snapshot.time for line in lines if (snapshot := from_line(line.decode())).time >= start + 31]
    assert len(times) == len(set(times)) == len(expected)


def test_doctor_names_what_is_wrong(lab: Lab) -> None:
    healthy = lab.run(Scenario.load("dgx-h100x8"), "doctor")
    assert healthy.code == 0
    assert "Traceback" not in healthy.err
    broken = lab.run(Scenario.load("mismatch"), "doctor")
    assert broken.code == 3
    assert "version" in broken.out
    masked = lab.run(Scenario.load("h200-busy"), "doctor", "--report").out
    assert "1650000000001" not in masked
    assert "GPU-00000000-1111-2222-3333-444444444444" not in masked
    assert os.uname().nodename not in masked or len(os.uname().nodename) < 4


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_printed_for_each_shell(lab: Lab, shell: str) -> None:
    answer = lab.run(PLAIN, "completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert "--watch" in answer.out.replace("-l watch", "--watch")
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=answer.out, text=True, check=False).returncode == 0
