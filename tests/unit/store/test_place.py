"""Where the history lies."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.store.history import HistoryWriter
from gpulse.store.place import (
    HistoryError,
    config_path,
    default_path,
    existing_path,
    network_type,
    other_path,
    path_to_read,
    prepare,
    state_folder,
    user_path,
)
from tests.unit.store.history.ticks import gpu, tick

_LINE = "36 35 98:0 / {point} rw,noatime shared:1 - {kind} server:/x rw\n"


def mounts(tmp_path: Path, **kinds: str) -> str:
    """Write a mountinfo in which folders of tmp_path are of some types."""
    lines = _LINE.format(point="/", kind="ext4")
    for name, kind in kinds.items():
        lines += _LINE.format(point=f"{tmp_path}/{name}".replace(" ", "\\040"), kind=kind)
    (tmp_path / "mountinfo").write_text(lines)
    return str(tmp_path / "mountinfo")


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "lustre", "fuse.sshfs", "cifs", "9p"])
def test_a_home_on_the_network_is_passed_over(tmp_path: Path, kind: str) -> None:
    table = mounts(tmp_path, home=kind)
    path = user_path({"HOME": str(tmp_path / "home")}, table)
    assert path == f"/var/tmp/gpulse-{os.geteuid()}/history.db"
    with pytest.raises(HistoryError, match=rf"network file system \({kind}\)"):
        prepare(str(tmp_path / "home" / "h.db"), mounts=table)
    assert not (tmp_path / "home").exists()


def test_the_state_folder_of_the_user_is_used(tmp_path: Path) -> None:
    table = mounts(tmp_path, home="ext4")
    home = {"HOME": str(tmp_path / "home")}
    assert user_path(home, table) == f"{tmp_path}/home/.local/state/gpulse/history.db"
    assert user_path({**home, "XDG_STATE_HOME": str(tmp_path)}, table) == f"{tmp_path}/gpulse/history.db"
    assert user_path({**home, "XDG_STATE_HOME": "not/absolute"}, table).startswith(f"{tmp_path}/home")


def test_the_place_of_the_machine_is_used_when_it_may_be_written_and_is_for_its_group_to_read(tmp_path: Path) -> None:
    system = tmp_path / "lib"
    system.mkdir()
    path = default_path({"HOME": str(tmp_path)}, str(system), mounts(tmp_path))
    assert path == f"{system}/history.db"
    assert prepare(path, str(system), mounts(tmp_path)) == 0o640
    assert prepare(f"{tmp_path}/own/h.db", str(system), mounts(tmp_path)) == 0o600
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_reader_takes_the_history_of_the_machine_whichever_was_written_last(tmp_path: Path) -> None:
    system, table = tmp_path / "lib", mounts(tmp_path)
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    assert existing_path(environ, str(system), table) is None
    for folder, age in ((system, 100), (tmp_path / "gpulse", 50)):
        folder.mkdir()
        (folder / "history.db").write_bytes(b"")
        os.utime(folder / "history.db", (age, age))
    own = str(tmp_path / "gpulse" / "history.db")
    assert existing_path(environ, str(system), table) == str(system / "history.db")
    Path(f"{own}-wal").write_bytes(b"")
    assert existing_path(environ, str(system), table) == str(system / "history.db")
    assert other_path(str(system / "history.db"), environ, str(system), table) == own
    assert other_path("/elsewhere/h.db", environ, str(system), table) is None
    (system / "history.db").unlink()
    assert existing_path(environ, str(system), table) == own
    assert other_path(own, environ, str(system), table) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("group", "words"), [(0, "run this as root."), (12345, "usermod -aG 12345 nobody")])
def test_who_may_not_read_a_history_is_told_that_it_exists_and_how_to_get_in(group: int, words: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(folder, "history.db")
        os.chmod(folder, 0o755)
        path.write_bytes(b"")
        path.chmod(0o640)
        os.chown(path, 0, group)
        path_to_read(str(path))
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            try:
                path_to_read(str(path))
            except HistoryError as error:
                os.write(writer, f"{error.message} {error.remedy}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with open(reader, encoding="utf-8") as said:
            text = said.read()
    assert "may be read only by root" in text
    assert words in text


def test_the_innermost_mount_counts_and_names_may_have_spaces(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    table = mounts(tmp_path, **{"a b": "nfs4", "a b/local": "xfs"})
    assert network_type(f"{tmp_path}/a b/x", table) == "nfs4"
    assert network_type(f"{tmp_path}/a b/local/x", table) is None
    assert network_type(f"{tmp_path}/a bc", table) is None
    assert network_type("/x", str(tmp_path / "none")) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to a group")
def test_the_group_that_may_read_is_set_once_for_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, path = tmp_path / "machine.toml", str(tmp_path / "h.db")
    monkeypatch.setattr("gpulse.store.config.writable_by_others", lambda path: "")
    monkeypatch.setenv("GPULSE_MACHINE_CONFIG", str(settings))
    settings.write_text('[privacy]\nhistory_group = "nogroup"\n')
    with HistoryWriter(path) as writer:
        writer.add(tick(0, gpu()))
        writer.flush()
        for beside in ("", "-wal", "-shm"):
            status = os.stat(path + beside)
            assert (status.st_gid, status.st_mode & 0o777) == (grp.getgrnam("nogroup").gr_gid, 0o640)
    settings.write_text('[privacy]\nhistory_group = "no such"\n')
    with pytest.raises(HistoryError, match="there is no group 'no such'"):
        HistoryWriter(path)


def test_what_only_needs_a_path_does_not_load_the_database() -> None:
    code = "import sys, gpulse.store.alert_file, gpulse.store.runs; print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("variable", ["HOME", "XDG"])
def test_root_uses_nothing_in_the_home_of_another_user(tmp_path: Path, variable: str) -> None:
    """As after `sudo -E`: a command in the settings there would run as root."""
    folder = str(tmp_path / "home")
    os.mkdir(folder)
    environ = {"HOME": folder} if variable == "HOME" else {"XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder}
    for path in (config_path(environ), state_folder(environ)):
        assert path.startswith(folder)
    os.chown(folder, 54_321, -1)
    for path in (config_path(environ), state_folder(environ)):
        assert not path.startswith(folder)
    if variable == "HOME":
        assert config_path(environ) == os.path.join(pwd.getpwuid(0).pw_dir, ".config/gpulse/config.toml")
