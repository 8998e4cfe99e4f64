"""A file of lines: whole at any moment, opened anew when asked, and never through a link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import GpulseError
from gpulse.store.lines import AppendedFile, LineFile, open_foreign, replaced, save


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def file(path: Path) -> Iterator[LineFile]:
    file = LineFile(str(path))
    yield file
    file.close()


def test_a_line_is_in_the_file_as_soon_as_it_is_written(file: LineFile, path: Path) -> None:
    assert path.read_text() == ""
    for written, line in enumerate(("a", "b", "c"), 1):
        file.write(line)
        assert path.read_text() == "a\nb\nc\n"[: 2 * written]


def test_an_old_file_is_emptied(path: Path) -> None:
    path.write_text("old and longer\n")
    file = LineFile(str(path))
    file.write("new")
    file.close()
    assert path.read_text() == "new\n"


def test_after_a_rename_the_path_is_made_anew_and_no_line_is_lost(file: LineFile, path: Path) -> None:
    file.write("a")
    moved = path.rename(path.with_suffix(".1"))
    file.write("b")
    file.reopen()
    file.write("c")
    assert moved.read_text() == "a\nb\n"
    assert path.read_text() == "c\n"


def test_what_stands_at_the_path_is_kept_when_it_is_opened_anew(file: LineFile, path: Path) -> None:
    file.write("a")
    file.reopen()
    file.write("b")
    assert path.read_text() == "a\nb\n"


def test_a_file_that_somebody_else_emptied_begins_with_the_next_line(file: LineFile, path: Path) -> None:
    file.write("a" * 100)
    os.truncate(path, 0)  # as logrotate does with copytruncate
    file.write("b")
    assert path.read_bytes() == b"b\n"


def test_two_writers_do_not_overwrite_each_other(file: LineFile, path: Path) -> None:
    other = LineFile(str(path))
    file.write("a")
    other.write("b")
    other.close()
    assert sorted(path.read_text().split()) == ["a", "b"]


def test_a_link_is_not_followed_and_its_target_left_alone(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep\n")
    path.symlink_to(target)
    with pytest.raises(GpulseError, match="symbolic link"):
        LineFile(str(path))
    assert target.read_text() == "keep\n"


def test_a_link_that_takes_the_place_of_the_file_is_not_followed_either(
    file: LineFile, path: Path, tmp_path: Path
) -> None:
    target = tmp_path / "precious"
    target.write_text("keep\n")
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(GpulseError, match="symbolic link"):
        file.reopen()
    file.write("goes on in the old file")
    assert target.read_text() == "keep\n"


def test_a_link_to_nowhere_makes_nothing(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "nothing")
    with pytest.raises(GpulseError, match="symbolic link"):
        LineFile(str(path))
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("name", ["no/such/folder/log", "."])
def test_a_file_that_cannot_be_made_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(GpulseError, match="cannot be opened") as caught:
        LineFile(str(tmp_path / name))
    assert "\n" not in str(caught.value)


def test_a_full_disk_is_said_with_what_to_do() -> None:
    file = LineFile("/dev/full")
    with pytest.raises(GpulseError, match=r"No space left on device\. Free some space"):
        file.write("a")
    file.close()


def test_closing_twice_closes_once(file: LineFile) -> None:
    file.close()
    taken = os.open(os.devnull, os.O_RDONLY)  # has the number that was closed
    file.close()
    os.close(taken)


def test_nobody_is_given_the_file_when_a_child_starts(file: LineFile, path: Path) -> None:
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    mine = [number for number in numbers if _path(number) == str(path)]
    assert len(mine) == 1
    assert not os.get_inheritable(mine[0])


def _path(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n"))))
def test_any_text_can_be_written(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("any") / "log"
    file = LineFile(str(path))
    for line in lines:
        file.write(line)
    file.close()
    written = path.read_bytes().decode().split("\n")
    assert written == [*(line.encode("utf-8", "backslashreplace").decode() for line in lines), ""]


def test_a_private_file_is_for_its_owner_only_also_if_it_was_there_before(tmp_path: Path) -> None:
    fresh, old = tmp_path / "fresh", tmp_path / "old"
    old.write_text("", encoding="utf-8")
    old.chmod(0o644)
    for path in (fresh, old):
        AppendedFile(str(path), private=True).close()
        assert path.stat().st_mode & 0o777 == 0o600
    AppendedFile(str(tmp_path / "open")).close()
    assert (tmp_path / "open").stat().st_mode & 0o600 == 0o600


def test_a_replaced_file_is_private_from_the_start_and_whole_or_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_bytes(b"old")
    with replaced(str(path)) as file:
        file.write(b"new")
        part = next(each for each in tmp_path.iterdir() if each != path)
        assert (part.stat().st_mode & 0o777, path.read_bytes()) == (0o600, b"old")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    with pytest.raises(TypeError), replaced(str(path)) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert ([*tmp_path.iterdir()], path.read_bytes()) == ([path], b"new")


def test_a_device_is_written_to_and_not_replaced() -> None:
    with replaced("/dev/null") as file:
        file.write(b"text")
    assert Path("/dev/null").is_char_device()


def test_only_a_plain_file_of_others_is_opened(tmp_path: Path) -> None:
    plain, link, pipe = tmp_path / "plain", tmp_path / "link", tmp_path / "pipe"
    plain.write_text("text")
    link.symlink_to(plain)
    os.mkfifo(pipe)
    opened = open_foreign(str(plain))
    assert opened is not None
    handle, status = opened
    assert (os.read(handle, 10), status.st_uid) == (b"text", os.getuid())
    os.close(handle)
    for wrong in (link, pipe, tmp_path, tmp_path / "missing", "a\0b"):
        assert open_foreign(str(wrong)) is None


def test_what_a_killed_process_with_the_same_pid_left_is_no_obstacle(tmp_path: Path) -> None:
    path, left = tmp_path / "file", tmp_path / f"file.{os.getpid()}.part"
    left.write_bytes(b"half")
    os.utime(left, (1_700_000_000, 1_700_000_000))
    with replaced(str(path)) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_another_thread_writes_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replaced(str(path)) as first:
        first.write(b"first")
        with pytest.raises(FileExistsError), replaced(str(path)):
            pass
    assert path.read_bytes() == b"first"


def test_a_descriptor_is_written_to_and_not_replaced(path: Path) -> None:
    with path.open("wb") as file:
        name = f"/dev/fd/{file.fileno()}"
        with replaced(name) as written:
            written.write(b"a")
        assert save(name, ["b", "ü"]) == 3
    assert path.read_text(encoding="utf-8") == "bü"


def test_what_cannot_be_saved_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(GpulseError, match=r"x cannot be written: No such file or directory\. Name another file\."):
        save(str(tmp_path / "none/x"), ["a"])

    def failing() -> Iterator[str]:
        yield "a"
        raise GpulseError("it is damaged.")

    with pytest.raises(GpulseError, match="it is damaged"):
        save(str(tmp_path / "x"), failing())
    assert not list(tmp_path.iterdir())


def test_the_end_of_a_long_file_without_a_newline_is_found(path: Path) -> None:
    path.write_bytes(b"first\n" + b"x" * 1_000_000)
    file = AppendedFile(str(path))
    assert len(file.last_line()) == 1_000_000
    file.close()
    path.write_bytes(b"x" * 1_000_000)
    file = AppendedFile(str(path))
    assert len(file.last_line()) == 1_000_000
    file.close()
