"""Build the packages of a release and try them: `make dist`.

The result in dist/ is the same for the same commit: it is built twice and compared. The wheel is then installed into an empty
environment of each Python at hand, without dependencies from an index except tomli, and used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LARGEST_WHEEL = 1_600_000  # bytes


def main() -> int:
    """Build, check and try; raise what fails."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as again:
        _build(DIST)
        _build(Path(again))
        assert _sums(DIST) == _sums(Path(again)), "two builds of the same commit differ"
    (wheel,) = DIST.glob("*.whl")
    assert wheel.stat().st_size <= LARGEST_WHEEL, (
        f"{wheel.name} has {wheel.stat().st_size:,} bytes, over {LARGEST_WHEEL:,}"
    )
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(DIST.iterdir())))
    _run(sys.executable, "-m", "check_wheel_contents", str(wheel))
    tried = [version for version, python in _pythons() if _try(wheel, python)]
    assert tried, "no Python to try the wheel with"
    _bill_of_materials(wheel)
    print(f"built {', '.join(sorted(path.name for path in DIST.iterdir()))}; tried with Python {', '.join(tried)}")
    return 0


def _build(folder: Path) -> None:
    commit = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    environ = {**os.environ, "SOURCE_DATE_EPOCH": commit.stdout.strip() or "315532800"}
    _run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), environ=environ)


def _sums(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def _pythons() -> Iterator[tuple[str, str]]:
    """Yield the version and the path of each Python in PATH or installed by pyenv."""
    for version in PYTHONS:
        installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        found = str(installed[-1]) if installed else shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            yield version, found


def _try(wheel: Path, python: str) -> bool:
    """Install the wheel into an empty environment and use it as a newcomer would."""
    with tempfile.TemporaryDirectory() as folder:
        _run(python, "-m", "venv", folder)
        _run(f"{folder}/bin/pip", "install", "--quiet", str(wheel))
        environ = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C.UTF-8"}
        for words in ("--version", "--demo", "--demo --json", "--help", "why --demo --for 2s", "doctor --demo"):
            _run(f"{folder}/bin/gpulse", *words.split(), environ=environ, quiet=True)
        _run(f"{folder}/bin/python", "-c", "import gpulse; print(gpulse.snapshot(source='demo').gpus[0].name)",
             environ=environ, quiet=True)  # fmt: skip
    return True


def _bill_of_materials(wheel: Path) -> None:
    """Write what the wheel with its server installs, as CycloneDX."""
    with tempfile.TemporaryDirectory() as folder:
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        _run(sys.executable, "-m", "pip", "--python", f"{folder}/bin/python", "install", "--quiet", f"{wheel}[serve]")
        bill = str(wheel).replace("-py3-none-any.whl", ".cdx.json")
        _run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON", "-o", bill,
             f"{folder}/bin/python", quiet=True)  # fmt: skip


def _run(*command: str, environ: dict[str, str] | None = None, quiet: bool = False) -> None:
    print("+", *command, flush=True)
    out = subprocess.DEVNULL if quiet else None
    subprocess.run(command, env=environ, stdout=out, check=True, timeout=600, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
