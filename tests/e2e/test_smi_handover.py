"""`gpulse smi` hands calls that it does not implement to NVIDIA's own nvidia-smi, and refuses them where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario

BUSY = Scenario.load("h200-busy")
HANDED_OVER = [
    "vgpu -q", "compute-policy -l", "boost-slider --list", "conf-compute -f -q", "encodersessions -l 2", "clocks --sync-boost-list",
    "c2c -s", "replay -f x", "mig -lcip -i 0", "nvlink -info", "dmon --gpm-metrics 2,249 -c 1", "dmon --gpm-options m -c 1", "--dtd",
    "-q -x --dtd", "topo -h", "topo", "nvlink", "dmon --help", "drain -q -p 0000:01:00.0",
]  # fmt: skip
CHANGING = [
    "vgpu -ss 1",
    "mig -lcip -cgi 9",
    "conf-compute -srs 1",
    "drain -p 0 -m 1",
    "-pl 300",
    "gpu-reset",
    "daemon",
]


def program(folder: Path, text: str = "#!/bin/sh\necho real: $*\n") -> Path:
    """A program called nvidia-smi."""
    path = folder / "nvidia-smi"
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("line", HANDED_OVER)
def test_nvidia_smi_answers_what_gpulse_does_not_implement(lab: Lab, tmp_path: Path, line: str) -> None:
    program(tmp_path)
    answer = lab.run(BUSY, "smi", *line.split(), PATH=str(tmp_path))
    assert (answer.code, answer.out, answer.err) == (0, f"real: {line}\n", "")


@pytest.mark.parametrize("line", HANDED_OVER)
def test_without_nvidia_smi_they_are_refused_with_one_sentence(lab: Lab, line: str) -> None:
    answer = lab.run(BUSY, "smi", *line.split(), PATH="")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("gpulse: gpulse smi ")
    assert answer.err.endswith(", and no nvidia-smi is on PATH.\n")
    assert answer.err.count("\n") == 1


def test_the_sentence_about_help_names_the_options(lab: Lab) -> None:
    answer = lab.run(BUSY, "smi", "pmon", "-h", PATH="")
    assert "no help for pmon (its options: -i -d -c -s -o -f -h)" in answer.err


@pytest.mark.parametrize(
    ("given", "environ", "source"),
    [
        (["--demo"], {}, "demo"),
        (["--source", "demo:mixed"], {}, "demo:mixed"),
        ([], {"GPULSE_SOURCE": "demo"}, "demo"),
        (["--source=smi"], {}, "smi"),
    ],
)
def test_nvidia_smi_does_not_answer_for_another_source(
    lab: Lab, tmp_path: Path, given: list[str], environ: dict[str, str], source: str
) -> None:
    program(tmp_path)
    answer = lab.run(BUSY, "smi", "vgpu", "-q", *given, PATH=str(tmp_path), **environ)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == (
        f"gpulse: gpulse smi does not implement `vgpu -q`, and nvidia-smi cannot answer for the source {source}.\n"
    )


def test_the_source_nvidia_is_this_machine(lab: Lab, tmp_path: Path) -> None:
    program(tmp_path)
    assert lab.run(BUSY, "smi", "--source", "nvidia", "vgpu", PATH=str(tmp_path)).out == "real: vgpu\n"


@pytest.mark.parametrize("line", CHANGING)
def test_what_changes_the_machine_is_not_handed_over(lab: Lab, tmp_path: Path, line: str) -> None:
    program(tmp_path)
    answer = lab.run(BUSY, "smi", *line.split(), PATH=str(tmp_path))
    assert (answer.code, answer.out) == (3, "")
    assert f"run `nvidia-smi {line}`" in answer.err


def test_the_daemon_is_refused_with_what_gpulse_has(lab: Lab) -> None:
    assert "`gpulse record`" in lab.run(BUSY, "smi", "daemon", PATH="").err


def test_input_output_errors_and_the_exit_code_are_those_of_nvidia_smi(tmp_path: Path) -> None:
    program(tmp_path, "#!/bin/sh\ncat\necho wrong >&2\ngrep SigIgn /proc/$$/status\nexit 42\n")
    env = environment(BUSY, tmp_path / "driver")
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    command = [sys.executable, "-m", "gpulse", "smi", "vgpu"]
    done = subprocess.run(command, env=env, input="in\n", capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (42, "wrong\n")
    said, _, ignored = done.stdout.partition("\n")
    assert said == "in"
    assert int(ignored.split()[1], 16) & (1 << 12) == 0  # SIGPIPE, which Python ignores, has its default again


def test_a_program_that_cannot_start_is_named(lab: Lab, tmp_path: Path) -> None:
    path = program(tmp_path, "#!/no/such/interpreter\n")
    answer = lab.run(BUSY, "smi", "vgpu", PATH=str(tmp_path))
    assert answer.code == 3
    assert answer.err.endswith(f", and {path} cannot be started: No such file or directory.\n")


def test_gpulse_under_the_name_nvidia_smi_is_passed_over(lab: Lab, tmp_path: Path) -> None:
    ours, real = tmp_path / "ours", tmp_path / "real"
    ours.mkdir()
    real.mkdir()
    program(ours, '#!/bin/sh\nexec gpulse smi "$@"\n')
    program(real)
    assert lab.run(BUSY, "smi", "vgpu", PATH=f"{ours}:{real}").out == "real: vgpu\n"
    assert lab.run(BUSY, "smi", "vgpu", PATH=str(ours)).code == 3


def test_a_wrapper_that_starts_gpulse_again_ends_in_a_refusal(tmp_path: Path) -> None:
    env = environment(BUSY, tmp_path / "driver")
    module = tmp_path / "wrapper.py"
    module.write_text("import sys\nfrom gpulse.cli.main import main\nsys.exit(main(['smi', *sys.argv[1:]]))\n")
    program(tmp_path, f'#!/bin/sh\nexec "$PYTHON" {module} "$@"\n')
    env |= {"PATH": f"{tmp_path}:{env['PATH']}", "PYTHON": sys.executable}
    done = subprocess.run(
        ["nvidia-smi", "vgpu", "-q"], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "no nvidia-smi is on PATH" in done.stderr
