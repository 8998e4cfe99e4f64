"""`gpulse service install` as root, from installations that others can change; and the service as the user that systemd gives it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from gpulse.store.trust import weak_point_within
from tests.e2e.lab import ROOT, environment
from tests.e2e.serving import Serving
from tests.fake_nvml import Scenario

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
OTHER = 54_321  # nobody has this number
NEEDED = (
    "uvicorn",
    "starlette",
    "anyio",
    "h11",
    "click",
    "idna",
    "sniffio",
    "typing_extensions",
    "tomli",
    "exceptiongroup",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with gpulse and what the server needs, all of it root's."""
    folder = tmp_path_factory.mktemp("opt") / "gpulse"
    base = f"{sys.base_prefix}/bin/python3"
    if (weak := weak_point_within(os.path.dirname(os.__file__))) is not None:
        pytest.skip(f"this Python is not only root's: {weak.path} {weak.who}")
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (packages,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(ROOT / "src/gpulse", packages / "gpulse", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "deploy", packages / "gpulse/surfaces/fleet/deploy")
    for name in NEEDED:
        if (spec := importlib.util.find_spec(name)) is not None and spec.origin is not None:
            at = Path(spec.origin)
            if at.name == "__init__.py":
                shutil.copytree(at.parent, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(at, packages)
    script = folder / "bin/gpulse"
    script.write_text(f"#!{folder}/bin/python3\nfrom gpulse.cli.main import main\nraise SystemExit(main())\n")
    script.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 0, 0, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return folder


def install(folder: Path) -> tuple[int, str]:
    """Install the service where there is no systemctl, so that nothing is written; return the exit code and what is said."""
    command = [str(folder / "bin/gpulse"), "service", "install", "--yes"]
    environ = {"PATH": "/nothing", "PYTHONDONTWRITEBYTECODE": "1", "GPULSE_MACHINE_CONFIG": "/nothing"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_an_installation_of_roots_is_accepted(installed: Path) -> None:
    assert install(installed) == (
        1,
        "gpulse: systemd is not installed here; start `gpulse serve` with this machine's own supervisor instead.\n",
    )


def module(name: str) -> Callable[[Path], Path]:
    return lambda folder: next(folder.glob(f"lib/python*/site-packages/{name}"))


PLACES: dict[str, Callable[[Path], Path]] = {
    "the script": lambda folder: folder / "bin/gpulse",
    "the folder of the interpreter": lambda folder: folder / "bin",
    "the folder above": lambda folder: folder.parent,
    "what Python reads first": lambda folder: folder / "pyvenv.cfg",
    "the folder of the packages": module(""),
    "the package": module("gpulse"),
    "a module that is loaded at the start": module("gpulse/value.py"),
    "a module that is loaded later": module("gpulse/surfaces/mcp.py"),
    "a module of another package": module("uvicorn/main.py"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "how"), [*((place, "owner") for place in PLACES), ("the package", "group"), ("the script", "everybody")]
)
def test_one_that_others_can_change_is_refused(installed: Path, place: str, how: str) -> None:
    path = PLACES[place](installed)
    before = path.stat()
    try:
        if how == "owner":
            os.chown(path, OTHER, -1)
        else:
            path.chmod(before.st_mode | (0o020 if how == "group" else 0o002))
        code, said = install(installed)
    finally:
        os.chown(path, 0, 0)
        path.chmod(before.st_mode & 0o7777)
    who = {
        "owner": f"belongs to {OTHER}",
        "group": "is writable by the group root",
        "everybody": "is writable by everybody",
    }[how]
    assert code == 1
    assert said.startswith(
        f"gpulse: {path} {who}, who could let the service do anything on this machine; install gpulse as root"
    )
    assert said.count("\n") == 1


def test_a_folder_that_a_pth_file_names_counts(installed: Path, tmp_path: Path) -> None:
    pth = module("")(installed) / "more.pth"
    pth.write_text(f"{tmp_path}\n")
    try:
        assert "systemd is not installed" in install(installed)[1]
        os.chown(tmp_path, OTHER, -1)
        code, said = install(installed)
    finally:
        pth.unlink()
    assert (code, said.partition(",")[0]) == (1, f"gpulse: {tmp_path} belongs to {OTHER}")


def test_a_link_on_the_way_counts(installed: Path, tmp_path: Path) -> None:
    python = installed / "bin/python3"
    before = os.readlink(python)
    (tmp_path / "python3").symlink_to(python.resolve())
    python.unlink()
    python.symlink_to(tmp_path / "python3")
    os.chown(tmp_path, OTHER, -1)
    try:
        code, said = install(installed)
    finally:
        python.unlink()
        python.symlink_to(before)
    assert (code, said.partition(",")[0]) == (1, f"gpulse: {tmp_path} belongs to {OTHER}")


def test_one_that_needs_the_environment_of_who_installs_it_is_refused(installed: Path) -> None:
    package = module("starlette")(installed)
    away = package.rename(package.with_name("away"))
    (installed / "lib/hidden").mkdir()
    shutil.copytree(away, installed / "lib/hidden/starlette")
    try:
        command = [str(installed / "bin/gpulse"), "service", "install", "--yes"]
        environ = {"PATH": "/nothing", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(installed / "lib/hidden")}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    finally:
        away.rename(package)
        shutil.rmtree(installed / "lib/hidden")
    assert done.returncode == 1
    assert "does not start without your environment: ModuleNotFoundError: No module named 'starlette'" in done.stderr


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder that the user of the service can enter and write, as its state folder is for it."""
    with tempfile.TemporaryDirectory(prefix="gpulse-test-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        folder = Path(name) / "state"
        folder.mkdir(mode=0o755)
        os.chown(folder, OTHER, OTHER)
        yield folder


def test_the_service_works_as_the_user_that_systemd_gives_it(state: Path, tmp_path: Path) -> None:
    """A number without a name or a home, two capabilities, its state folder, and settings that only root may read."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    etc = tmp_path / "etc"
    etc.mkdir(mode=0o700)
    (etc / "config.toml").write_text("[serve]\ninterval = 0.25\n[alerts]\nlog = false\n")
    (etc / "config.toml").chmod(0o600)
    history, token = state / "history.db", state / "token"
    own = {"HOME": "/", "GPULSE_CONFIG": str(etc / "config.toml"), "GPULSE_HISTORY": str(history)}
    environ = environment(Scenario.load("h200-busy"), tmp_path / "driver", **own)
    capabilities = "+sys_ptrace,+dac_read_search"
    account = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--no-new-privs")
    limits = (
        f"--inh-caps=-all,{capabilities}",
        f"--ambient-caps=-all,{capabilities}",
        f"--bounding-set=-all,{capabilities}",
    )
    with Serving(tmp_path, "--token-file", str(token), environ=environ, source="", run=(*account, *limits)) as server:
        server.until("/readyz", 200)
        assert server.json("/api/snapshot")["server"]["interval"] == 0.25
        (user,) = {
            line.split()[2]
            for line in Path(f"/proc/{server.pid}/status").read_text().splitlines()
            if line.startswith("Uid:")
        }
        assert user == str(OTHER)
        assert server.err == ""
        assert server.end() == 0
    assert token.stat().st_uid == history.stat().st_uid == OTHER
    assert token.stat().st_mode & 0o077 == 0
    told = subprocess.run(
        [sys.executable, "-m", "gpulse", "history"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # by root
    assert (told.returncode, told.stderr) == (0, f"gpulse: read from {history}.\n")
