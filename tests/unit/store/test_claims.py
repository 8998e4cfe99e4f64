"""Claims between real processes: exactly one has a GPU, and death lets go of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.store.claims import claim, claimed, claims_folder

ROOT = Path(__file__).parents[3]
UUID = "GPU-aaaa1111-0000-0000-0000-000000000000"
HOLD = """
import os, pwd, sys
from gpulse.store.claims import claim
if sys.argv[3] != "0":
    os.setuid(int(sys.argv[3]))
sys.stdin.readline()
held = claim(sys.argv[1], sys.argv[2])
print("taken" if held else "refused", flush=True)
sys.stdin.readline()
"""


def start(folder: Path, code: str = HOLD, left: tuple[int, ...] = (), user: int = 0) -> subprocess.Popen[str]:
    """A process that claims when it is told to, and holds until it is told again."""
    return subprocess.Popen(
        [sys.executable, "-c", code, UUID, str(folder), str(user)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=left,
    )


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def lock_file(folder: Path) -> Path:
    return folder / f"gpulse-{UUID}.lock"


@pytest.mark.parametrize("exists", [False, True])
def test_of_many_who_race_for_one_gpu_exactly_one_has_it(tmp_path: Path, exists: bool) -> None:
    if exists:
        lock_file(tmp_path).touch()
    racers = [start(tmp_path) for _ in range(5)]
    for racer in racers:
        tell(racer)
    assert sorted(hear(racer) for racer in racers) == ["refused"] * 4 + ["taken"]
    for racer in racers:
        racer.communicate("\n")
    with claim(UUID, str(tmp_path)) or pytest.fail("nobody holds it any more"):
        pass


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    holder = start(tmp_path)
    tell(holder)
    assert hear(holder) == "taken"
    assert claim(UUID, str(tmp_path)) is None
    assert f"pid {holder.pid}" in claimed([UUID], str(tmp_path))[UUID]
    holder.kill()
    holder.communicate()
    assert claimed([UUID], str(tmp_path)) == {}
    taken = claim(UUID, str(tmp_path))
    assert taken is not None
    taken.close()


def test_another_gpu_is_another_claim_and_closing_twice_is_fine(tmp_path: Path) -> None:
    first = claim(UUID, str(tmp_path))
    second = claim("MIG-GPU-x/1/0", str(tmp_path))
    assert first is not None
    assert second is not None
    assert set(claimed([UUID, "MIG-GPU-x/1/0", "GPU-other"], str(tmp_path))) == {UUID, "MIG-GPU-x/1/0"}
    for one in (first, first, second):
        one.close()
    with pytest.raises(ValueError, match="closed"):
        first.pass_on()
    assert claimed([UUID, "MIG-GPU-x/1/0"], str(tmp_path)) == {}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("passed", [False, True])
def test_a_program_started_meanwhile_holds_the_claim_only_when_it_was_passed_on(tmp_path: Path, passed: bool) -> None:
    held = claim(UUID, str(tmp_path))
    assert held is not None
    left = (held.pass_on(),) if passed else ()
    child = start(tmp_path, "import sys\nprint('up', flush=True)\nsys.stdin.readline()", left)
    assert hear(child) == "up"
    held.close()
    assert (UUID in claimed([UUID], str(tmp_path))) is passed
    child.communicate("\n")
    assert claimed([UUID], str(tmp_path)) == {}


def test_the_file_is_for_everybody_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        held = claim(UUID, str(tmp_path))
    finally:
        os.umask(before)
    assert held is not None
    assert lock_file(tmp_path).stat().st_mode & 0o777 == 0o666
    held.close()


class TestHostility:
    """What another user could have put in the way."""

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        victim.write_text("precious")
        lock_file(tmp_path).symlink_to(victim)
        assert claim(UUID, str(tmp_path)) is None
        assert "not a lock file" in claimed([UUID], str(tmp_path))[UUID]
        assert victim.read_text() == "precious"

    def test_a_dangling_link_makes_no_file_elsewhere(self, tmp_path: Path) -> None:
        lock_file(tmp_path).symlink_to(tmp_path / "elsewhere")
        assert claim(UUID, str(tmp_path)) is None
        assert not (tmp_path / "elsewhere").exists()

    def test_a_second_name_of_another_file_is_locked_and_not_written_to(self, tmp_path: Path) -> None:
        """Anybody can link a lock file, which all can write: refusing links would take the GPU away for good."""
        victim = tmp_path / "victim"
        victim.write_text("precious")
        os.link(victim, lock_file(tmp_path))
        held = claim(UUID, str(tmp_path))
        assert held is not None
        assert claim(UUID, str(tmp_path)) is None
        held.close()
        assert victim.read_text() == "precious"

    def test_a_pipe_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(lock_file(tmp_path))
        assert claim(UUID, str(tmp_path)) is None
        assert "not a lock file" in claimed([UUID], str(tmp_path))[UUID]

    def test_a_folder_costs_its_gpu_only(self, tmp_path: Path) -> None:
        lock_file(tmp_path).mkdir()
        assert claim(UUID, str(tmp_path)) is None
        other = claim("GPU-other", str(tmp_path))
        assert other is not None
        other.close()

    def test_a_name_stays_in_the_folder(self, tmp_path: Path) -> None:
        folder = tmp_path / "locks"
        folder.mkdir()
        held = claim("../../etc/passwd\0", str(folder))
        assert held is not None
        held.close()
        assert len(list(folder.iterdir())) == 1

    def test_what_a_holder_wrote_is_cut(self, tmp_path: Path) -> None:
        held = claim(UUID, str(tmp_path))
        assert held is not None
        lock_file(tmp_path).write_bytes(b"\xff" * 5000)
        assert len(claimed([UUID], str(tmp_path))[UUID]) <= 200
        held.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_users_exclude_each_other_in_a_folder_that_all_share(tmp_path: Path) -> None:
    """The kernel guards such folders (fs.protected_regular): opening another's file the naive way is refused."""
    folder = Path("/tmp") / f"gpulse-claims-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o1777)
    try:
        holder = start(folder, user=12345)
        tell(holder)
        assert hear(holder) == "taken"
        other = start(folder, user=12346)
        tell(other)
        assert hear(other) == "refused"
        assert claim(UUID, str(folder)) is None
        assert claimed([UUID], str(folder)) == {UUID: f"12345, pid {holder.pid}"}
        holder.communicate("\n")
        other.communicate("\n")
        heir = start(folder, user=12346)
        tell(heir)
        assert hear(heir) == "taken"
        heir.communicate("\n")
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_the_folder_is_one_that_everybody_shares() -> None:
    assert claims_folder({"GPULSE_CLAIMS": "/somewhere"}) == "/somewhere"
    assert os.stat(claims_folder({})).st_mode & 0o1777 == 0o1777
