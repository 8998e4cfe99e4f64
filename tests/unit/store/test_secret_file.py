"""Tokens and passwords in files: which modes and places are accepted, and which are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpulse.errors import ConfigError, GpulseError
from gpulse.store.secret_file import read_secret

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away or mount a folder")


def written(folder: Path, mode: int, uid: int | None = None) -> Path:
    path = folder / "token"
    path.write_text("s3cret\n")
    path.chmod(mode)
    if uid is not None:
        os.chown(path, uid, -1)
    return path


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o664, 0o666, 0o602])
def test_a_file_that_everybody_can_read_or_change_is_refused_with_its_name_and_what_to_do(
    open_folder: Path, mode: int
) -> None:
    path = written(open_folder, mode)
    with pytest.raises(ConfigError) as caught:
        read_secret(str(path), "--token-file")
    assert str(caught.value).startswith(f"--token-file {path} is readable by other users; run chmod 600 {path}")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_of_its_owner_alone_is_read(open_folder: Path, mode: int) -> None:
    assert read_secret(str(written(open_folder, mode)), "token") == "s3cret"


@root_only
def test_a_file_for_a_group_is_read_if_root_has_chosen_the_group(open_folder: Path) -> None:
    """As in /etc/gpulse, and as Kubernetes mounts a secret with fsGroup."""
    assert read_secret(str(written(open_folder, 0o440, 0)), "token") == "s3cret"
    with pytest.raises(ConfigError, match="readable by other users"):
        read_secret(str(written(open_folder, 0o640, 65534)), "token")


@pytest.mark.parametrize("mode", [0o644, 0o640])
def test_a_file_in_a_folder_that_others_cannot_enter_is_read(open_folder: Path, mode: int) -> None:
    folder = open_folder / "private" / "below"
    folder.mkdir(parents=True)
    path = written(folder, mode, 65534 if os.geteuid() == 0 else None)
    with pytest.raises(ConfigError, match="readable by other users"):
        read_secret(str(path), "token")
    (open_folder / "private").chmod(0o700)
    assert read_secret(str(path), "token") == "s3cret"


@pytest.mark.parametrize("mode", [0o644, 0o640])
def test_a_link_is_judged_by_the_file_that_it_leads_to(open_folder: Path, tmp_path: Path, mode: int) -> None:
    path = written(open_folder, mode, 65534 if os.geteuid() == 0 else None)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(ConfigError, match="readable by other users"):
        read_secret(str(link), "token")


MOUNTED = """
mount -t tmpfs -o mode=755 none "$1" && printf 's3cret\\n' > "$1/token" && chmod "$2" "$1/token" && chown "$3" "$1/token" || exit 77
[ "$4" = rw ] || mount -o remount,ro "$1" || exit 77
exec "$5" -c 'import sys; from gpulse.store.secret_file import read_secret; print(read_secret(sys.argv[1], "token"))' "$1/token"
"""


@root_only
@pytest.mark.parametrize(
    ("mode", "owner", "access", "accepted"),
    [("644", "0", "ro", True), ("444", "0", "ro", True), ("644", "65534", "ro", False), ("644", "0", "rw", False)],
)
def test_a_secret_that_is_mounted_into_a_container_is_read(
    open_folder: Path, mode: str, owner: str, access: str, accepted: bool
) -> None:
    """Kubernetes and Docker mount secrets with mode 644, owned by root, in memory and read-only."""
    words = ["unshare", "-m", "sh", "-c", MOUNTED, "sh", str(open_folder), mode, owner, access, sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": _path()})
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this machine does not allow a mount of one's own")
    assert (done.stdout == "s3cret\n") is accepted, done.stderr
    assert accepted or "readable by other users" in done.stderr


def _path() -> str:
    return os.pathsep.join(sys.path)


def _fleet(path: Path, folder: Path) -> object:
    from gpulse.cli.commands.fleet import feeds_of
    from gpulse.cli.main import load
    from gpulse.cli.options import parse

    return feeds_of(parse(load("fleet"), ["--url", "http://127.0.0.1:1", "--token-file", str(path)]))


def _fleet_prometheus(path: Path, folder: Path) -> object:
    from gpulse.cli.commands.fleet import feeds_of
    from gpulse.cli.main import load
    from gpulse.cli.options import parse

    words = ["--prometheus", "http://127.0.0.1:1", "--prometheus-token-file", str(path)]
    return feeds_of(parse(load("fleet"), words))


def _fleet_file(path: Path, folder: Path) -> object:
    from gpulse.remote.settings import read_feeds

    file = folder / "fleet.toml"
    file.write_text(f'[[url]]\naddress = "http://127.0.0.1:1"\nuser = "ada"\npassword_file = "{path}"\n')
    return read_feeds(str(file), 5.0)


def _alerts(path: Path, folder: Path) -> object:
    from gpulse.delivery.settings import DeliverySetup, deliveries_from

    path.write_text("https://127.0.0.1:1/" + path.read_text())
    table = {"webhook": [{"url_file": str(path)}]}
    return deliveries_from(table, DeliverySetup(table, ()))


def _model_server(path: Path, folder: Path) -> object:
    from gpulse.serving.settings import ServingSettings, parse_address

    return ServingSettings({"token_files": [f"box:8000={path}"]}).token(parse_address("http://box:8000"))


def _serve(path: Path, folder: Path) -> object:
    from gpulse.surfaces.web.access import token_of

    return token_of(str(path))


@pytest.mark.parametrize(
    "reader",
    [_fleet, _fleet_prometheus, _fleet_file, _alerts, _model_server, _serve],
    ids=lambda one: one.__name__,
)
def test_everything_that_reads_a_secret_refuses_a_file_that_others_can_read(
    open_folder: Path, tmp_path: Path, reader: Callable[[Path, Path], object]
) -> None:
    path = open_folder / "token"
    path.write_text("x" * 40 + "\n")
    path.chmod(0o644)
    with pytest.raises(GpulseError, match=f"{path} is readable by other users; run chmod 600 {path}"):
        reader(path, tmp_path)
    path.chmod(0o600)
    reader(path, tmp_path)
