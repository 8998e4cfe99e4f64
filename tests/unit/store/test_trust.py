"""Who besides root can change a file: its owner, its group, everybody, and whoever owns a folder or link on the way."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from gpulse.store.trust import is_open, weak_point, weak_point_within

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
OTHER = 54_321  # nobody has this number


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that only root can change: /root/…/a/b/file."""
    path = tmp_path / "a/b/file"
    path.parent.mkdir(parents=True)
    path.write_text("")
    assert weak_point(str(path)) is None, "the folder of the tests must be root's"
    return path


def found(path: Path) -> tuple[str, str]:
    weak = weak_point(str(path))
    assert weak is not None
    return weak.path, weak.who


@pytest.mark.parametrize("up", [0, 1, 2])
def test_the_owner_of_a_file_and_of_every_folder_above_counts(file: Path, up: int) -> None:
    at = [file, *file.parents][up]
    os.chown(at, OTHER, -1)
    assert found(file) == (str(at), f"belongs to {OTHER}")


@pytest.mark.parametrize("up", [0, 1, 2])
@pytest.mark.parametrize(
    ("mode", "who"), [(0o775, "is writable by the group root"), (0o757, "is writable by everybody")]
)
def test_who_else_may_write_counts(file: Path, up: int, mode: int, who: str) -> None:
    at = [file, *file.parents][up]
    at.chmod(mode)
    assert found(file) == (str(at), who)


def test_in_a_sticky_folder_everybody_keeps_what_is_theirs(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert weak_point(str(file)) is None
    os.chown(file, OTHER, -1)
    assert found(file) == (str(file), f"belongs to {OTHER}")


def test_links_are_followed_one_by_one(file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "link").symlink_to(file)
    (tmp_path / "first").symlink_to("home/link")
    assert weak_point(str(tmp_path / "first")) is None
    os.chown(home, OTHER, -1)  # its owner may let the second link lead elsewhere
    assert found(tmp_path / "first") == (str(home), f"belongs to {OTHER}")


def test_what_does_not_exist_must_not_be_made_by_others(file: Path, tmp_path: Path) -> None:
    assert weak_point(str(file.parent / "missing/too")) is None
    os.chown(file.parent, OTHER, -1)
    assert found(file.parent / "missing/too") == (str(file.parent), f"belongs to {OTHER}")


def test_a_program_is_open_if_all_may_run_it_and_enter_every_folder_on_the_way() -> None:
    with tempfile.TemporaryDirectory(prefix="gpulse-test-", dir="/tmp") as name:
        folder, program = Path(name), Path(name) / "program"
        program.write_text("")
        for path in (folder, program):
            path.chmod(0o755)
        assert is_open(str(program))
        for path, mode in ((program, 0o711), (program, 0o754), (folder, 0o750)):
            path.chmod(mode)
            assert not is_open(str(program))
            path.chmod(0o755)
        assert not is_open(str(folder / "missing"))


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert weak_point(str(tmp_path / "a")) is None


def test_everything_in_a_folder_counts_and_what_its_links_lead_to(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    assert weak_point_within(str(folder)) is None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (file.parent / "link").symlink_to(elsewhere)
    assert weak_point_within(str(folder)) is None
    os.chown(elsewhere, OTHER, -1)
    weak = weak_point_within(str(folder))
    assert weak is not None
    assert (weak.path, weak.who) == (str(elsewhere), f"belongs to {OTHER}")
    os.chown(elsewhere, 0, -1)
    file.chmod(0o666)
    weak = weak_point_within(str(folder))
    assert weak is not None
    assert weak.path == str(file)
