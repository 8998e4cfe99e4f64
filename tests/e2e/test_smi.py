"""`gpulse smi` in nvidia-smi's place: the table to the character, dmon, pmon, exit codes, refusals, and its own name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.lab import Answer, Lab, environment
from tests.fake_nvml import Scenario

BUSY = Scenario.load("h200-busy")
IDLE = Scenario.load("h200-idle")
MIG = Scenario.load("a100-mig")
TITLES = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
PROCESSES = """\

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
"""
END = "+-----------------------------------------------------------------------------------------+\n"
ROWS = "+-----------------------------------------+------------------------+----------------------+\n"


def smi(lab: Lab, scenario: Scenario, line: str = "", **environ: str) -> Answer:
    """Run a command on a machine without NVIDIA's own nvidia-smi."""
    return lab.run(scenario, "smi", *line.split(), **{"PATH": "", **environ})


def table(lab: Lab, scenario: Scenario, line: str = "") -> str:
    """The table without its first line, which is the time."""
    answer = smi(lab, scenario, line)
    assert (answer.code, answer.err) == (0, "")
    first, rest = answer.out.split("\n", 1)
    assert re.fullmatch(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} {7}", first)
    return rest


# The table


def test_the_table_of_an_idle_gpu(lab: Lab) -> None:
    assert table(lab, IDLE.gpu(0, power="122.6 W", temperature=43)) == (
        TITLES
        + "|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |\n"
        + "| N/A   43C    P0            122W /  700W |       0MiB / 143771MiB |      0%      Default |\n"
        + "|                                         |                        |             Disabled |\n"
        + ROWS
        + PROCESSES
        + "|  No running processes found                                                             |\n"
        + END
    )


def test_processes_stand_under_the_table_with_long_names_cut_at_the_front(lab: Lab) -> None:
    line = table(lab, BUSY).splitlines()[-2]
    assert len(line) == 91
    assert re.fullmatch(r"\|    0   N/A  N/A {5,15}\d+      C   \S.{37} 1642MiB \|", line)


def test_old_boards_say_what_they_lack(lab: Lab) -> None:
    board = (
        Scenario.load("boards/h100")
        .driver(gpus=1)
        .gpu(None, fan__count=1, fan__speed=30, name="NVIDIA RTX PRO 6000 Blackwell Workstation Edition", pstate=8)
        .gpu(None, persistence=0, ecc__mode="error NOT_SUPPORTED", ecc__volatile__uncorrected="error NOT_SUPPORTED")
        .gpu(None, mig__mode="error NOT_SUPPORTED", compute_mode=3, power__limit__enforced="error NOT_SUPPORTED")
    )
    rows = table(lab, board).splitlines()[7:10]
    assert rows[0].startswith("|   0  NVIDIA RTX PRO 6000 Blac...    Off |")
    assert rows[0].endswith("|                  N/A |")
    assert rows[1].startswith("| 30% ")
    assert " P8 " in rows[1]
    assert rows[1][:43].endswith("W /   N/A |")
    assert rows[1].endswith("   E. Process |")
    assert rows[2].endswith("|                  N/A |")
    assert {len(row) for row in rows} == {91}


def test_mig_instances_have_rows_of_their_own(lab: Lab) -> None:
    lines = table(lab, MIG).splitlines()
    assert lines[7].endswith("|                   On |")
    assert lines[8].endswith("|     N/A      Default |")
    assert lines[9].endswith("|              Enabled |")
    assert lines[12:21] == [
        "+-----------------------------------------------------------------------------------------+",
        "| MIG devices:                                                                            |",
        "+------------------+----------------------------------+-----------+-----------------------+",
        "| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |",
        "|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |",
        "|                  |                                  |        ECC|                       |",
        "|==================+==================================+===========+=======================|",
        "|  0    1   0   0  |           12288MiB / 40960MiB    | 42    N/A |  1   0    0    0    0 |",
        "|                  |                 4MiB / 65535MiB  |           |                       |",
    ]  # fmt: skip
    assert {len(line) for line in lines if line} == {91}
    none = Scenario.load("boards/h100").driver(gpus=1).gpu(None, mig__mode=1, mig__max=7)
    assert "|  No MIG devices found                                                                   |" in table(
        lab, none
    )


def test_a_lost_gpu_leaves_the_others_in_the_table_and_shows_in_the_exit_code(lab: Lab) -> None:
    answer = smi(lab, Scenario.load("boards/h100").driver(gpus=3).lose(1))
    assert answer.code == 15
    assert "GPU is lost" in answer.err
    lost = [line for line in answer.out.splitlines() if "ERR!" in line]
    assert lost
    assert {len(line) for line in answer.out.splitlines()[1:] if line} == {91}
    assert "|   2  NVIDIA H100" in answer.out


# Scrolling


def test_dmon_has_its_columns_in_the_order_asked(lab: Lab) -> None:
    lines = smi(lab, BUSY, "dmon -s pucvmet -c 2").out.splitlines()
    assert lines[0] == (
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol"
        "     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci "
    )
    assert lines[1] == (
        "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool"
        "     MB     MB     MB   errs   errs   errs   MB/s   MB/s "
    )
    assert len(lines) == 4
    for line in lines[2:]:
        cells = line.split()
        assert (cells[15], cells[16], cells[14]) == ("1652", "0", "1651")
        assert cells[13] == "0"
        assert 30 <= int(cells[12]) <= 70  # the scenario spends half its time at the power cap
    assert smi(lab, BUSY, "dmon -s tu -c 1").out.splitlines()[0] == (
        "# gpu  rxpci  txpci     sm    mem    enc    dec    jpg    ofa "
    )


def test_dmon_and_pmon_write_date_and_time(lab: Lab) -> None:
    head, units, row = smi(lab, BUSY, "dmon -s u -o DT -c 1").out.splitlines()
    assert head == "#Date        Time         gpu     sm    mem    enc    dec    jpg    ofa "
    assert units == "#YYYYMMDD    HH:MM:SS     Idx      %      %      %      %      %      % "
    assert re.fullmatch(r" \d{8}    \d\d:\d\d:\d\d       0    100     23      0      0      0      0 ", row)
    head, units, row = smi(lab, BUSY, "pmon -s um -o T -c 1").out.splitlines()
    assert (
        head
        == "#Time         gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command "
    )
    assert (
        units == "#HH:MM:SS     Idx           #    C/G      %      %      %      %      %      %     MB     MB    name "
    )
    assert re.fullmatch(
        r" \d\d:\d\d:\d\d       0 +\d+     C     83     18      -      -      -      -   1642      0    py\S* +", row
    )


def test_dmon_writes_csv(lab: Lab) -> None:
    lines = smi(lab, BUSY, "dmon -s p -c 1 --format csv").out.splitlines()
    assert lines == ["#gpu, pwr, gtemp, mtemp", "#Idx, W, C, C", " 0, 690, 62, 51"]
    assert smi(lab, BUSY, "dmon -s p -c 1 --format csv,noheader").out.splitlines() == lines[1:]
    assert smi(lab, BUSY, "dmon -s p -c 1 --format csv,noheader,nounit").out.splitlines() == lines[2:]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("dmon -c 0", "Invalid value for number of samples to be displayed"),
        ("dmon -d 0", "Collection delay/interval should be between 1 second and 600 seconds"),
        ("dmon --foo", 'Option "--foo" is not recognized.'),
        ("pmon --foo", 'Option "--foo" is not recognized.'),
    ],
)
def test_a_wrong_option_of_dmon_gets_a_sentence_and_nvidia_smis_exit_code(lab: Lab, line: str, says: str) -> None:
    answer = smi(lab, BUSY, line)
    assert (answer.code, answer.out, answer.err) == (0, f"{says}\n", "")


def test_pmon_counts_the_processes_of_each_gpu(lab: Lab) -> None:
    here = Scenario.load("boards/h100").driver(gpus=2).process(gpu=0, pid=os.getpid(), memory="4 GiB", sm=83, mem=18)
    lines = smi(lab, here, "pmon -c 1").out.splitlines()[2:]
    assert [line.split()[:3] for line in lines] == [["0", str(os.getpid()), "C"], ["1", "-", "-"]]


# Failures


@pytest.mark.parametrize(
    ("line", "code", "out"),
    [
        ("-i 7", 6, "No devices were found\n"),
        ("-q -i abc", 6, "No devices were found\n"),
        ("dmon -i 7 -c 1", 6, "No devices were found\n"),
        ("--foo", 255, "ERROR: Option --foo is not recognized. Please run 'nvidia-smi -h'.\n\n"),
        ("foo", 255, "ERROR: Option foo is not recognized. Please run 'nvidia-smi -h'.\n\n"),
        ("--format=csv", 255, "ERROR: Option --format=csv is not recognized. Please run 'nvidia-smi -h'.\n\n"),
        ("-i", 255, "ERROR: Option -i is missing its value. Please run 'nvidia-smi -h' for help.\n\n"),
        ("--query-gpu", 255, "ERROR: Option --query-gpu is missing its value. Please run 'nvidia-smi -h' for help.\n\n"),
        ("-pl", 255, "ERROR: Option -pl is missing its value. Please run 'nvidia-smi -h' for help.\n\n"),
        ("--query-gpu=index,name --format=csv, noheader", 2,
         "ERROR: Option noheader is not recognized. Please run 'nvidia-smi -h' for help.\n\n"),
        ("--query-gpu=nonsense --format=csv", 2, 'Field "nonsense" is not a valid field to query.\n\n'),
        ("--query-gpu=index --format=tsv", 2, "Format modifier is not recognized.\n"),
        ("-q -d PCIE", 2, "Failed to parse --display/-d flags\n"),
        ("-L -i 7", 2, "ERROR: Option -i is not valid for this command. Please run 'nvidia-smi -h' for help.\n\n"),
        ("-lms 0", 2, "Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.\n\n"),
        ("-f /nonexistent/x", 255, "Failed to create the log file /nonexistent/x\n\n"),
        ("dmon -s x", 255, "Failed to find any metric to display\nFailed to process command line \n\n"),
        ("--query-gpu=name --query-compute-apps=pid --format=csv", 2, "Only one --query-* switch can be used at a time.\n"),
        ("topo --foo", 2, 'Option "--foo" is not recognized.\n'),
        ("nvlink --foo", 2, 'Option "--foo" is not recognized.\n'),
        ("nvlink -s -i 9", 6, "No devices were found\n"),
        ("topo -p2p x", 2, "Invalid p2p capability index specified at the command-line\n"),
        ("topo -p", 2, "Path command line flag must be used in conjection with the -i argument"
         " which must be two GPU identifiers.\n\n"),
        (f"topo -c {'9' * 5000}", 0, f"The GPUs that have an affinity with CPU {'9' * 5000} are:\n\n\n"),
        ("topo -n 6 -i 0", 2, "The level '6' is not between 0 and 5.\n"),
        ("topo -p -i 0,7", 6, "No devices were found\n"),
        ("-B", 0, "No excluded devices found.\n"),
        ("-i 0,1 --query-gpu=index --format=csv", 0, "index\n0\n"),
        ("--query-gpu=", 0, "\n\n"),
    ],
)  # fmt: skip
def test_it_fails_in_nvidia_smis_words_and_codes(lab: Lab, line: str, code: int, out: str) -> None:
    answer = smi(lab, BUSY, line)
    assert (answer.code, answer.out, answer.err) == (code, out, "")


@pytest.mark.parametrize(
    ("scenario", "code", "word"),
    [("not-loaded", 9, "NVIDIA-SMI has failed"), ("mismatch", 18, "version mismatch")],
)
def test_a_driver_that_does_not_start_has_its_own_code(lab: Lab, scenario: str, code: int, word: str) -> None:
    answer = smi(lab, Scenario.load(scenario))
    assert answer.code == code
    assert word in answer.out
    assert answer.err.startswith("gpulse: NVIDIA: ")


@pytest.mark.parametrize(
    "line",
    ["-pm 1", "-i 0 -pl 250", "-lgc 1590", "-i 0 -rgc", "-lmc 7501,7501", "--gpu-reset -i 0", "-ac 3615,1530", "-e 0",
     "--auto-boost-default=0", "-am 1", "-c 3", "-r", "-mig 1", "--power-limit=300", "-p 0", "boost-slider --vboost 1",
     "compute-policy --set-timeslice=2", "clocks -som 1", "conf-compute -srs 1", "vgpu -q --new-option 1", "gpu-reset",
     "mig -lcip -cgi 9", "mig -lcip --new-option", "nvlink -info -r 0", "drain -p 0000:01:00.0 -m 1", "--dtd -pl 300"],
)  # fmt: skip
def test_what_changes_the_machine_is_refused_with_the_command_to_run(lab: Lab, line: str) -> None:
    answer = smi(lab, BUSY, line)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == f"gpulse: gpulse only watches and changes nothing; run `nvidia-smi {line}` instead.\n"
    assert not [name for name in answer.calls if "Set" in name or "Reset" in name]


# Its own name


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which nvidia-smi is gpulse."""
    folder = tmp_path_factory.mktemp("smi")
    env = environment(BUSY, folder / "driver")
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "smi", "--install", str(folder / "bin")],
        env=env, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert str(folder / "bin" / "nvidia-smi") in done.stdout
    return env | {"PATH": f"{folder / 'bin'}:{env['PATH']}"}


def test_installed_under_the_name_it_answers(installed: dict[str, str]) -> None:
    done = subprocess.run(["nvidia-smi", "-L"], env=installed, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "GPU 0: NVIDIA H200 (UUID: GPU-00000000-1111-2222-3333-444444444444)\n"


def test_a_link_of_that_name_is_smi(tmp_path: Path, installed: dict[str, str]) -> None:
    program = tmp_path / "gpulse"
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom gpulse.cli.main import main\nsys.exit(main())\n")
    program.chmod(0o755)
    made = subprocess.run(
        [str(program), "smi", "--install", str(tmp_path / "bin")],
        env=installed, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    link = tmp_path / "bin" / "nvidia-smi"
    assert link.resolve() == program.resolve()
    done = subprocess.run(
        [str(link), "-i", "7"], env=installed, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (6, "No devices were found\n")


def test_installing_never_replaces_another_program(tmp_path: Path, lab: Lab) -> None:
    theirs = tmp_path / "nvidia-smi"
    theirs.write_text("#!/bin/sh\necho theirs\n")
    theirs.chmod(0o755)
    answer = smi(lab, BUSY, f"--install {tmp_path}")
    assert (answer.code, answer.out) == (2, "")
    assert theirs.read_text() == "#!/bin/sh\necho theirs\n"


def test_a_refusal_names_the_real_program_by_its_path(tmp_path: Path, installed: dict[str, str]) -> None:
    real = tmp_path / "nvidia-smi"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    env = installed | {"PATH": f"{installed['PATH'].split(':')[0]}:{tmp_path}:/bin"}
    done = subprocess.run(["nvidia-smi", "-pm", "1"], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert f"`{real} -pm 1`" in done.stderr


# Links


def test_the_matrix_has_every_pair_and_the_network_devices(lab: Lab, tmp_path: Path) -> None:
    place = tmp_path / "sys/devices"
    machine = Scenario.load("boards/h100").driver(gpus=2).gpu(1, nvlink__state__3=0)
    buses = {"0000:10:00.0": "pci0000:00/0000:00:01.0/0000:0f:00.0", "0000:11:00.0": "pci0000:80/0000:80:01.0"}
    for bus, above in buses.items():
        (place / above / bus).mkdir(parents=True)
        link = tmp_path / "sys/bus/pci/devices" / bus
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place / above / bus)
    nic = place / "pci0000:00/0000:00:01.0/0000:0e:00.0"
    nic.mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/mlx5_0/device").symlink_to(nic)
    answer = smi(lab, machine, "topo -m", GPULSE_ROOT=str(tmp_path))
    lines = [line.split("\t") for line in answer.out.splitlines()]
    assert lines[1][:4] == ["GPU0", " X ", "NV17", "PIX"]  # one of the links at the other end is down
    assert lines[2][:4] == ["GPU1", "NV17", " X ", "NODE"]
    assert lines[3][:4] == ["NIC0", "PIX", "NODE", " X "]
    assert "  NIC0: mlx5_0" in answer.out.splitlines()
    plain = smi(lab, machine, "topo -mp", GPULSE_ROOT=str(tmp_path)).out
    assert plain.splitlines()[1].split("\t")[:4] == ["GPU0", " X ", "NODE", "PIX"]
    assert "NV#" not in plain


def test_links_that_are_down_and_errors_are_said_by_link(lab: Lab) -> None:
    machine = Scenario.load("boards/h100").driver(gpus=1).gpu(0, nvlink__state__3=0, nvlink__crc_errors__5=891)
    lines = smi(lab, machine, "nvlink -s").out.splitlines()
    assert lines[0] == "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-000000000000)"
    assert lines[1] == "\t Link 0: 26.562 GB/s"
    assert lines[4] == "\t Link 3: <inactive>"
    assert len(lines) == 19
    errors = smi(lab, machine, "nvlink -e").out.splitlines()
    assert errors[1:5] == [
        "\t Link 0: Replay Errors: 0",
        "\t Link 0: Recovery Errors: 0",
        "\t Link 0: CRC Errors: 0",
        "",
    ]
    assert "\t Link 5: CRC Errors: 891" in errors
    (gpu,) = lab.run(machine, "--json").gpus
    assert (gpu["nvlink_links"], gpu["nvlink_crc_errors"]) == (17, 891)
    assert gpu["numa_affinity"] is None or gpu["numa_affinity"] >= 0
    assert gpu["topology"] == []


def test_accounted_processes_and_retired_pages_are_listed(lab: Lab) -> None:
    machine = BUSY.gpu(0, **{"accounting.pids": "445", "accounting.445": '"83 18 1721761792 5000 0"'})
    out = smi(lab, machine, "--query-accounted-apps=pid,gpu_util,mem_util,max_memory_usage,time --format=csv").out
    assert out.splitlines()[1:] == ["445, 83 %, 18 %, 1642 MiB, 5000 ms"]
    pages = (
        Scenario.load("boards/h100")
        .driver(gpus=1)
        .gpu(0, retired__corrected=1, retired__uncorrected=1, retired__pending=0)
    )
    none = smi(lab, BUSY, "--query-retired-pages=retired_pages.address,retired_pages.cause --format=csv,noheader").out
    assert none == "[N/A], Single Bit ECC\n[N/A], Double Bit ECC\n"
    out = smi(lab, pages, "--query-retired-pages=retired_pages.address,retired_pages.cause --format=csv,noheader").out
    assert out.splitlines() == ["0x0000000000100000, Single Bit ECC", "0x0000000000100000, Double Bit ECC"]


def test_profiles_are_listed_from_the_smallest_on(lab: Lab) -> None:
    lines = smi(lab, BUSY, "mig -lgip").out.splitlines()
    assert lines[2:4] == [
        "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |",
        "|                                Free/Total   GiB              CE    JPEG  OFA  |",
    ]
    assert [line[6:25].strip() for line in lines[5::3]] == [
        f"MIG {name}" for name in ("1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")
    ]
    assert lines[-3:-1] == [
        "|   0  MIG 7g.141gb         0     1/1        140.00     No     132    7     0   |",
        "|                                                               8     7     1   |",
    ]
