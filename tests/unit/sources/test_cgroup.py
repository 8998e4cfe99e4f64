"""Container, pod and job, from the cgroup paths that the common runtimes write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.containers import owner_of

_ID = "0123456789ab" + "cdef" * 13
_UID = "8f3a1b2c-4d5e-6f70-8192-a3b4c5d6e7f8"
_UID_ = _UID.replace("-", "_")


@pytest.mark.parametrize(
    "cgroup",
    [
        f"12:pids:/docker/{_ID}\n11:memory:/docker/{_ID}\n1:name=systemd:/docker/{_ID}",
        f"12:pids:/docker/{_ID}\n1:name=systemd:/docker/{_ID}\n0::/system.slice/containerd.service",
        f"0::/docker/{_ID}",
        f"0::/system.slice/docker-{_ID}.scope",
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{_ID}.scope/container",
        f"0::/machine.slice/libpod-{_ID}.scope",
        f"0::/machine.slice/libpod-conmon-x/{_ID}",
        f"0::/default/{_ID}",
        f"0::/kubepods/burstable/pod{_UID}/{_ID}",
        f"0::/kubepods.slice/kubepods-pod{_UID_}.slice/cri-containerd-{_ID}.scope",
        f"0::/kubepods.slice/kubepods-pod{_UID_}.slice/crio-{_ID}.scope",
    ],
)
def test_a_container_is_known_by_the_first_twelve_digits(cgroup: str) -> None:
    assert owner_of(cgroup, {})["container"] == _ID[:12]


@pytest.mark.parametrize(
    "cgroup",
    [
        f"0::/kubepods/burstable/pod{_UID}/{_ID}",
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{_UID_}.slice/cri-containerd-{_ID}.scope",
        f"11:devices:/kubepods.slice/kubepods-pod{_UID_}.slice/docker-{_ID}.scope\n0::/",
    ],
)
def test_a_pod_is_known_by_its_uid_or_by_the_name_its_environment_tells(cgroup: str) -> None:
    assert owner_of(cgroup, {})["pod"] == _UID
    assert owner_of(cgroup, {"POD_NAME": "chat-0"})["pod"] == "chat-0"
    assert owner_of(cgroup, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "chat-1"})["pod"] == "chat-1"
    assert owner_of(cgroup, {"HOSTNAME": "laptop"})["pod"] == _UID


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/lxc.payload.web1/user.slice",
        "0::/lxc.payload.web1",
        "0::/lxc/web1",
        "12:memory:/lxc/web1\n11:cpu:/lxc/web1\n0::/lxc/web1/init.scope",
    ],
)
def test_an_lxc_container_is_known_by_its_name(cgroup: str) -> None:
    assert owner_of(cgroup, {}) == {"container": "web1"}


@pytest.mark.parametrize(
    "cgroup",
    [
        "0::/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0",
        "4:freezer:/slurm/uid_1000/job_1234/step_batch\n0::/",
        "4:freezer:/slurm/uid_1000/job_1234\n0::/",
    ],
)
def test_a_slurm_job_is_known_by_its_number(cgroup: str) -> None:
    assert owner_of(cgroup, {}) == {"job": "slurm:1234"}


@pytest.mark.parametrize(
    ("environ", "job"),
    [
        ({"SLURM_JOB_ID": "42"}, "slurm:42"),
        ({"PBS_JOBID": "42.head"}, "pbs:42.head"),
        ({"LSB_JOBID": "42"}, "lsf:42"),
        ({"SLURM_JOB_ID": "", "JOB_ID": "7", "SGE_TASK_ID": "undefined"}, "sge:7"),
        ({"RAY_JOB_ID": "01000000"}, "ray:01000000"),
    ],
)
def test_other_jobs_are_known_from_the_environment(environ: dict[str, str], job: str) -> None:
    assert owner_of("0::/user.slice", environ) == {"job": job}
    assert owner_of("0::/user.slice", {"JOB_ID": "7"}) == {}  # any program may call something so


def test_the_names_of_a_slurm_job_are_in_its_environment() -> None:
    names = {"SLURM_JOB_NAME": "train", "SLURM_JOB_ACCOUNT": "lab", "SLURM_JOB_PARTITION": "main"}
    told = {"job": "slurm:42", "job_name": "train", "account": "lab", "partition": "main"}
    assert owner_of("0::/user.slice", {"SLURM_JOB_ID": "42", **names}) == told
    assert owner_of("0::/user.slice", {"PBS_JOBID": "42", **names}) == {"job": "pbs:42"}


@pytest.mark.parametrize("cgroup", ["", "0::/", "0::/user.slice/user-1000.slice/session-2.scope", f"0::/x/{_ID[:40]}"])
def test_one_on_the_machine_itself_belongs_to_nobody(cgroup: str) -> None:
    assert owner_of(cgroup, {}) == {}


@given(cgroup=st.text(alphabet="0123456789abcdef/:-_.\nlxcpodjb", max_size=200))
def test_any_text_is_no_error_and_no_answer_spans_lines(cgroup: str) -> None:
    assert not any("\n" in word for word in owner_of(cgroup, {}).values())
