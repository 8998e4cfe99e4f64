"""`gpulse query` as scripts written for nvidia-smi meet it: columns, loops, files, filters, and what goes wrong."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpulse.model.catalog import GPU_METRICS
from gpulse.model.codec import from_line
from gpulse.surfaces.query.fields import COMPUTE_APP_FIELDS, FIELDS, unsupported_fields
from gpulse.surfaces.query.log import SECTIONS
from tests.e2e.lab import Answer, Lab
from tests.fake_nvml import Scenario

PATIENCE = 60.0  # seconds after which something that should happen counts as never
BUSY = Scenario.load("h200-busy")
DGX = Scenario.load("dgx-h100x8")
HOSTILE = r'"\e[31mred\x07\x0d\nGPU 9: \\\"\xff\xc2\x9b2J名前"'
EVERY_WAY = (
    "--query-gpu=index,name,serial,uuid,vbios_version", "--format=table --query-gpu=name,serial", "--format=json",
    "--format=ndjson --query-gpu=name,serial,vbios", "--format=prometheus", "-L", "-q", "-q -d MEMORY,PIDS", "-x",
    "--scroll", "--scroll-processes", "--query-compute-apps=gpu_name,gpu_serial,gpu_uuid,process_name",
    "--query-compute-apps=gpu_name,pid --format=table",
)  # fmt: skip


def ask(lab: Lab, scenario: Scenario, line: str) -> Answer:
    """The answer to a question that is answered."""
    answer = lab.run(scenario, "query", *line.split())
    assert (answer.code, answer.err) == (0, ""), answer.err
    return answer


def loop(lab: Lab, scenario: Scenario, line: str) -> Answer:
    """The answer of a loop, which may say on stderr that it could not keep up."""
    answer = lab.run(scenario, "query", *line.split())
    assert answer.code == 0, answer.err
    return answer


def cells(lab: Lab, scenario: Scenario, line: str) -> list[list[str]]:
    return [row.split(", ") for row in ask(lab, scenario, line).out.splitlines()]


def column(lab: Lab, scenario: Scenario, line: str) -> list[str]:
    """The one column asked for, without its header."""
    return ask(lab, scenario, f"{line} --format=csv,noheader").out.splitlines()


def machine(gpus: int = 3) -> Scenario:
    return Scenario.load("boards/h100").driver(gpus=gpus).gpu(None, gpm__latch=0)


# Columns


def test_names_aliases_and_keys_mix_in_the_order_asked_under_nvidia_smis_headers(lab: Lab) -> None:
    header, row = cells(lab, BUSY, "--query-gpu=clocks.sm,utilization.gpu,sm_active,gpu_name,memory_used,MEMORY.USED")
    assert header == [
        "clocks.current.sm [MHz]", "utilization.gpu [%]", "sm_active [%]", "name", "memory_used [MiB]",
        "memory.used [MiB]",
    ]  # fmt: skip
    assert row == ["1515 MHz", "100 %", "82.32 %", "NVIDIA H200", "1651 MiB", "1651 MiB"]


def test_a_field_asked_twice_is_shown_twice(lab: Lab) -> None:
    assert cells(lab, BUSY, "--query-gpu=index,index") == [["index", "index"], ["0", "0"]]


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("csv", ["memory.used [MiB]", "1651 MiB"]),
        ("csv,noheader", ["1651 MiB"]),
        ("noheader,csv", ["1651 MiB"]),
        ("csv,nounits", ["memory.used [MiB]", "1651"]),
        ("nounits,csv,noheader", ["1651"]),
        ("noheader,nounits,csv", ["1651"]),
        ("csv,noheader,nounits,", ["1651"]),
        ("nounits", ["memory.used [MiB]", "1651"]),
    ],
)
def test_noheader_and_nounits_stand_in_any_order(lab: Lab, form: str, lines: list[str]) -> None:
    assert ask(lab, BUSY, f"--query-gpu=memory.used --format={form}").out.splitlines() == lines


def test_without_a_word_about_columns_there_are_some(lab: Lab) -> None:
    header, row = cells(lab, BUSY, "")
    assert header[:2] == ["index", "name"]
    assert len(header) == len(row)


@pytest.mark.parametrize(
    ("asked", "indices"),
    [
        ("-i 3", "3"),
        ("-i 3,0,3", "3 0"),
        ("--id=6-7", "6 7"),
        ("-i GPU-00000005-1111-2222-3333-000000000005", "5"),
        ("-i GPU-00000005,1", "5 1"),
        ("-i 00000000:9D:00.0", "4"),
        ("-i 9d:00.0,2", "4 2"),
        ("", "0 1 2 3 4 5 6 7"),
    ],
)
def test_gpus_are_chosen_by_index_uuid_or_bus_id(lab: Lab, asked: str, indices: str) -> None:
    assert column(lab, DGX, f"--query-gpu=index {asked}") == indices.split()


def test_a_listing_has_a_line_a_gpu_and_one_an_instance(lab: Lab) -> None:
    lines = ask(lab, DGX, "-L").out.splitlines()
    assert lines[3] == "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-00000003-1111-2222-3333-000000000003)"
    assert len(lines) == 8
    assert ask(lab, DGX, "--list-gpus -i 3").out.splitlines() == [lines[3]]
    whole, *parts = ask(lab, Scenario.load("a100-mig"), "-L").out.splitlines()
    assert whole.startswith("GPU 0: ")
    assert [part.split("(")[0] for part in parts] == [
        f"  MIG {profile:<11} Device  {at}: " for at, profile in enumerate(("3g.40gb", "2g.20gb", "1g.10gb"))
    ]


def test_compute_processes_have_a_line_each(lab: Lab) -> None:
    here = machine(2).process(gpu=0, pid=os.getpid(), memory="4 GiB").process(gpu=1, pid=os.getppid(), memory="1 GiB")
    rows = cells(lab, here, "--query-compute-apps=pid,used_memory,gpu_bus_id,gpu_name")
    assert rows[0] == ["pid", "used_gpu_memory [MiB]", "gpu_bus_id", "gpu_name"]
    assert [row[:2] for row in rows[1:]] == [[str(os.getpid()), "4096 MiB"], [str(os.getppid()), "1024 MiB"]]
    assert cells(lab, machine(), "--query-compute-apps=pid") == [["pid"]]


# The long form


def test_the_long_form_holds_the_sections_asked(lab: Lab) -> None:
    text = ask(lab, DGX, "-q -d MEMORY,UTILIZATION -i 1,2").out
    assert text.count("FB Memory Usage") == text.count("Utilization\n") == 2
    assert "Temperature" not in text
    assert "Temperature" in ask(lab, DGX, "-q").out
    assert "FB Memory Usage" in ask(lab, BUSY, "-d memory").out


def test_every_section_can_be_asked_for_alone(lab: Lab) -> None:
    for section in SECTIONS:
        assert "NVSMI LOG" in ask(lab, BUSY, f"-q -d {section}").out


@pytest.mark.parametrize("scenario", ["h200-busy", "dgx-h100x8", "a100-mig", "garbage", "lost", "sentinels", "k80-old"])
def test_the_long_form_as_xml_is_xml(lab: Lab, scenario: str) -> None:
    for asked in ("-x", "-q -x", "-x -d MEMORY"):
        root = ElementTree.fromstring(ask(lab, Scenario.load(scenario), asked).out)
        assert root.tag == "nvidia_smi_log"
        assert len(root.findall("gpu")) == int(root.findtext("attached_gpus") or "")


# Scrolling


def test_gpus_scroll_as_in_dmon(lab: Lab) -> None:
    assert ask(lab, BUSY, "--scroll").out.splitlines() == [
        "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk ",
        "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz ",
        "    0    690     62     51    100     23      0      0      0      0   3201   1515 ",
    ]
    assert ask(lab, BUSY, "--scroll=cpu").out == ask(lab, BUSY, "--scroll puc").out


def test_processes_scroll_as_in_pmon(lab: Lab) -> None:
    busy = machine(2).process(gpu=0, pid=os.getpid(), memory="4 GiB", sm=83, mem=18)
    *header, first, second = ask(lab, busy, "--scroll-processes").out.splitlines()
    assert header == [
        "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ",
        "# Idx           #    C/G      %      %      %      %      %      %    name ",
    ]
    assert first.startswith(f"    0{os.getpid():>11}     C     83     18      -      -      -      -    py")
    assert second == "    1          -     -      -      -      -      -      -      -    -              "


@pytest.mark.parametrize("asked", ["--scroll=u", "--scroll-processes=u"])
def test_the_titles_come_again_after_twenty_lines(lab: Lab, asked: str) -> None:
    lines = loop(lab, machine(1), f"{asked} --count 21 -lms 1").out.splitlines()
    assert [at for at, line in enumerate(lines) if line.startswith("# gpu")] == [0, 22]
    assert len(lines) == 25


# Other formats


def test_json_is_one_snapshot(lab: Lab) -> None:
    answer = ask(lab, DGX, "--format=json --query-gpu=power.draw -i 1,0")
    assert [gpu["index"] for gpu in answer.gpus] == [1, 0]
    assert all(gpu["power_draw"] > 0 for gpu in answer.gpus)


@pytest.mark.parametrize("asked", ["", " --where temperature>0 --sort -clock_sm"])
@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_json_holds_only_the_metrics_asked_for(lab: Lab, form: str, asked: str) -> None:
    answer = ask(lab, DGX, f"--format={form} --query-gpu=utilization.gpu,power.draw{asked}")
    for gpu in answer.gpus:
        told = {key for key in gpu.keys() & GPU_METRICS.keys() if GPU_METRICS[key].kind != "identity"}
        assert told == {"utilization", "power_draw"}


def test_every_line_of_ndjson_is_a_snapshot_gpulse_reads(lab: Lab) -> None:
    out = loop(lab, machine(2), "--format=ndjson --query-gpu=utilization.gpu --count 3 -lms 20").out
    snaps = [from_line(line) for line in out.splitlines()]
    assert len(snaps) == 3
    assert [[gpu.index for gpu in snap.gpus] for snap in snaps] == [[0, 1]] * 3
    assert snaps[0].time < snaps[1].time < snaps[2].time


def test_prometheus_reads_the_page_and_absent_values_are_absent(lab: Lab) -> None:
    broken = machine(3).gpu(1, power="error UNKNOWN", name=r'"a\"b\\c"').lose(2)
    line = "--format=prometheus --query-gpu=power.draw,energy,utilization.gpu,fan.speed,gpu_name"
    families = {family.name: family for family in text_string_to_metric_families(ask(lab, broken, line).out)}
    values = {
        name: {sample.labels.get("gpu"): sample.value for sample in family.samples} for name, family in families.items()
    }
    assert values.pop("gpulse_gpu_up") == {"0": 1, "1": 1, "2": 0}
    assert values.pop("gpulse_gpu_power_draw_watts").keys() == {"0"}
    assert values.pop("gpulse_gpu_utilization_ratio").keys() == {"0", "1"}
    assert values.pop("gpulse_gpu_energy_joules").keys() == {"0", "1"}
    assert {sample.name for sample in families["gpulse_gpu_energy_joules"].samples} == {
        "gpulse_gpu_energy_joules_total"
    }
    assert families["gpulse_gpu_energy_joules"].type == "counter"
    assert values.keys() == {"gpulse_gpu_info"}
    assert families["gpulse_gpu_info"].samples[1].labels["name"] == 'a"b\\c'
    assert "nan" not in ask(lab, broken, line).out.lower()


def test_processes_are_no_series_and_that_is_said(lab: Lab) -> None:
    answer = lab.run(BUSY, "query", "--query-compute-apps=pid", "--format=prometheus")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gpulse: ")
    assert "prometheus" in answer.err


def test_a_table_is_aligned(lab: Lab) -> None:
    mixed = machine(3).gpu(1, name="X", power="9 W")
    title, *rows = ask(lab, mixed, "--format=table --query-gpu=name,power.draw,index").out.splitlines()
    assert title.split() == ["name", "power.draw", "index"]
    assert {len(row) for row in rows} == {len(title)}
    assert rows[1].startswith("X   ")
    assert rows[1].split() == ["X", "9.00", "W", "1"]


@pytest.mark.parametrize("asked", EVERY_WAY)
def test_nothing_a_board_is_called_acts_on_the_terminal(lab: Lab, asked: str) -> None:
    board = machine(1).gpu(0, name=HOSTILE, serial=HOSTILE, uuid=HOSTILE, vbios=HOSTILE, inforom__image=HOSTILE)
    for scenario in (board.process(gpu=0, pid=os.getpid(), memory="1 GiB"), Scenario.load("garbage")):
        out = ask(lab, scenario, asked).out
        assert out
        assert all(line.replace("\t", "").isprintable() for line in out.split("\n")), out


def test_the_demo_answers_too(lab: Lab) -> None:
    rows = cells(lab, BUSY, "--demo --query-gpu=index,inforom.oem,platform.module_id,utilization.gpu,serial")
    assert [row[0] for row in rows[1:]] == [str(index) for index in range(8)]
    assert {row[1] for row in rows[1:]} == {row[2] for row in rows[1:]} == {"[N/A]"}
    assert all(row[3].endswith(" %") for row in rows[1:])
    for asked in EVERY_WAY:
        assert ask(lab, BUSY, f"--demo {asked}").out


# Lists of fields


def test_the_lists_of_fields_name_every_field_and_ask_nobody(lab: Lab) -> None:
    for option, fields in (("--help-query-gpu", FIELDS), ("--help-query-compute-apps", COMPUTE_APP_FIELDS)):
        answer = ask(lab, BUSY, option)
        assert answer.calls == {}
        listed = [line.split('"')[1] for line in answer.out.splitlines() if line.startswith('"')]
        assert listed == list(fields)
    assert '"clocks.current.sm" or "clocks.sm"' in ask(lab, BUSY, "--help-query-gpu").out
    answer = ask(lab, BUSY, "--unsupported")
    assert (answer.out.splitlines(), answer.calls) == (unsupported_fields(), {})


def test_what_is_listed_as_unsupported_is_never_answered(lab: Lab) -> None:
    names = ",".join(ask(lab, BUSY, "--unsupported").out.split())
    (row,) = cells(lab, BUSY, f"--query-gpu={names} --format=csv,noheader")
    assert set(row) <= {"[N/A]", "N/A", "[Requested functionality has been deprecated]"}


# Which, and in which order

ZOO = (
    machine(4)
    .gpu(0, utilization__gpu=50, power="100 W", name="b", persistence=1, throttle__reasons=0)
    .gpu(1, utilization__gpu=3, power="error UNKNOWN", name="c", persistence=0, throttle__reasons=0)
    .gpu(2, utilization__gpu=4, power="300 W", name="a", persistence=1, throttle__reasons=4)
    .gpu(3, utilization__gpu=0, power="200 W", name="d", persistence="error UNKNOWN", throttle__reasons=1)
)


@pytest.mark.parametrize(
    ("options", "indices"),
    [
        (["--where", "utilization<5"], "1 2 3"),
        (["--where", "utilization<5 and not power_draw>250W"], "1 3"),
        (["--where", "(power.draw>=200W or name=b) and utilization.gpu>0"], "0 2"),
        (["--where", "memory_total>1TiB"], ""),
        (["--where", "throttle_reasons~power"], "2"),
        (["--sort", "power_draw"], "0 3 2 1"),
        (["--sort", "-power_draw"], "2 3 0 1"),
        (["--sort=-power.draw"], "2 3 0 1"),
        (["--sort", "name"], "2 0 1 3"),
        (["--sort", "-name"], "3 1 0 2"),
        (["--sort", "persistence_mode"], "1 0 2 3"),
        (["--sort", "-persistence_mode"], "0 2 1 3"),
        (["--where", "utilization<5", "--sort", "-utilization"], "2 1 3"),
    ],
)
def test_gpus_are_filtered_and_sorted(lab: Lab, options: list[str], indices: str) -> None:
    answer = lab.run(ZOO, "query", "--query-gpu=index", "--format=csv,noheader", *options)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.split() == indices.split()


def test_a_filter_holds_for_every_view(lab: Lab) -> None:
    assert len(lab.run(ZOO, "query", "-L", "--where", "name=a").out.splitlines()) == 1
    assert len(lab.run(ZOO, "query", "--scroll", "--where", "name=a").out.splitlines()) == 3
    assert [gpu["index"] for gpu in lab.run(ZOO, "query", "--format=json", "--where", "name=a").gpus] == [2]


def test_processes_are_filtered_by_what_they_use(lab: Lab) -> None:
    pair = machine(1).process(gpu=0, pid=os.getpid(), memory="4 GiB").process(gpu=0, pid=os.getppid(), memory="1 MiB")
    answer = lab.run(
        pair, "query", "--query-compute-apps=pid", "--format=csv,noheader", "--where", "memory_used>1GiB and pid>0"
    )
    assert (answer.code, answer.out) == (0, f"{os.getpid()}\n")


# Mistakes


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--query-gpu=utilisation.gpu", "unknown field 'utilisation.gpu' (did you mean 'utilization.gpu'?)"),
        ("--query-gpu=index,nosuchthing", "unknown field 'nosuchthing'"),
        ("--query-compute-apps=pidd", "did you mean 'pid'?"),
        ("--query-compute-apps=index", "unknown field 'index'"),
        ("--format=tsv", "unknown format 'tsv' (did you mean 'csv'?)"),
        ("--format=csv,noheaders", "did you mean 'noheader'?"),
        ("-l 0", "--loop"),
        ("-l abc", "--loop"),
        ("-l 1e9", "--loop"),
        ("-lms 0", "--loop-ms"),
        ("-lms 1.5", "--loop-ms"),
        ("-lms abc", "--loop-ms"),
        ("-lms", "--loop-ms"),
        ("--count 0", "--count"),
        ("--count -1", "--count"),
        ("--count 1.5", "--count"),
        (f"--count {'9' * 5000}", "positive integer"),
        ("--for abc", "'abc' is not a duration"),
        ("--for -1s", "--for"),
        ("-q -d NOSUCH", "unknown section 'NOSUCH'"),
        ("-q -d MEMROY", "did you mean 'MEMORY'?"),
        ("-d ,", "section"),
        ("-i 7", "unknown GPU '7'"),
        ("-i GPU-nope", "unknown GPU 'GPU-nope'"),
        ("-i ,", "--gpu"),
        ("--scroll=px", "'x' in 'px'"),
        ("--scroll-processes=c", "'c'"),
        ("--sort utilisation", "did you mean 'utilization'?"),
        ("--nosuch", "unknown option '--nosuch'"),
        ("index", "'index'"),
    ],
)
def test_a_request_that_is_wrong_is_one_line_and_exit_2(lab: Lab, line: str, says: str) -> None:
    answer = lab.run(BUSY, "query", *line.split())
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gpulse: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err


@pytest.mark.parametrize("option", ["--query-gpu=", "--query-gpu=,", "--query-compute-apps=", "--query-compute-apps=,"])
def test_a_list_of_no_fields_is_told_as_that(lab: Lab, option: str) -> None:
    answer = lab.run(BUSY, "query", option)
    assert (answer.code, answer.out) == (2, "")
    assert option.partition("=")[0] in answer.err
    assert "'index'" not in answer.err


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("utilization<5 and memory_used>lots", "lots"),
        ("utilization<5 name=x", "name=x"),
        ("utilization<5 and nosuch>1", "nosuch>1"),
        ("utilization<5 and (name=x", ""),
        ("name>x", ">x"),
        ("name='x", "'x"),
    ],
)
def test_a_filter_that_is_wrong_is_shown_with_a_caret_under_the_place(lab: Lab, text: str, at: str) -> None:
    answer = lab.run(BUSY, "query", "--where", text)
    assert (answer.code, answer.out) == (2, "")
    lines = answer.err.splitlines()
    assert lines[0].startswith("gpulse: --where: ")
    assert lines[1] == f"  {text}"
    assert lines[2] == f"  {' ' * (len(text) - len(at))}^"
    assert all(not line.startswith(" ") for line in lines[3:])


def test_no_gpu_at_all_is_exit_3(lab: Lab) -> None:
    answer = lab.run(Scenario.load("not-loaded"), "query")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("gpulse: ")
