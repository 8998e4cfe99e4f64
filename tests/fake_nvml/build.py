"""Compiles the fake driver on demand, one cached build per set of hidden symbols."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

SONAME = "libnvidia-ml.so.1"
SOURCES = Path(__file__).parent / "library"
BUILDS = Path(__file__).parents[2] / "build" / "fake_nvml"
FLAGS = (
    f"-std=c11 -D_GNU_SOURCE -shared -fPIC -O2 -pthread -fvisibility=hidden -Wall -Wextra -Werror -Wl,-soname,{SONAME}"
).split()
_FUNCTION = re.compile(r"\bnvml[A-Z]\w+")


class BuildError(RuntimeError):
    """The fake driver could not be compiled."""


def library(missing: frozenset[str] = frozenset()) -> Path:
    """The folder holding the fake ``libnvidia-ml.so.1`` without the ``missing`` symbols (names or globs)."""
    hidden = _expand(missing)
    folder = BUILDS / _digest(hidden)
    if not (folder / SONAME).exists():
        _compile(folder, hidden)
    return folder


def functions() -> frozenset[str]:
    """Every NVML name in the sources; the exported ones are among them."""
    text = "".join(path.read_text() for path in _sources())
    return frozenset(_FUNCTION.findall(text))


def _expand(patterns: Iterable[str]) -> list[str]:
    wanted = list(patterns)
    if not wanted:
        return []
    known = functions()
    return sorted({name for pattern in wanted for name in fnmatch.filter(known, pattern)})


def _sources() -> list[Path]:
    return sorted(SOURCES.glob("*.[ch]"))


def _digest(hidden: list[str]) -> str:
    digest = hashlib.sha256(" ".join(FLAGS + hidden).encode())
    for path in _sources():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(folder: Path, hidden: list[str]) -> None:
    wanted = [os.environ["CC"]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    compiler = next((name for name in wanted if shutil.which(name.split()[0])), None)
    if not compiler:
        raise BuildError(f"the fake NVIDIA driver needs a C compiler; not found: {', '.join(wanted)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed: two test processes may need the same build at once.
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        made = Path(work) / "made"
        made.mkdir()
        script = Path(work) / "symbols.map"
        script.write_text(_version_script(hidden))
        sources = [str(path) for path in _sources() if path.suffix == ".c"]
        command = [
            *compiler.split(),
            *FLAGS,
            *sources,
            f"-Wl,--version-script={script}",
            "-o",
            str(made / SONAME),
            "-lm",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"the fake NVIDIA driver did not compile: {done.stderr.strip()}")
        try:
            made.rename(folder)
        except OSError:
            if not (folder / SONAME).exists():
                raise


def _version_script(hidden: list[str]) -> str:
    """An exact name beats a glob, so the names listed as local stay inside."""
    local = "".join(f"    {name};\n" for name in hidden)
    return f"{{\n  global:\n    nvml*;\n  local:\n{local}    *;\n}};\n"
