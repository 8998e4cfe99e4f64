"""Check that the tests notice mistakes: change one line of the code at a time, and see whether a test fails.

python -m tools.mutations          # all, about ten minutes
python -m tools.mutations 3 17     # some of them, by number
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CAUGHT = 28  # of these mutations, at least
_LEFT_OUT = (".git", ".venv", "build", "node_modules", "__pycache__", ".*_cache", ".hypothesis")


class Mutation(NamedTuple):
    """One mistake: a text that stands once in the code, what it becomes, and the tests that should notice."""

    before: str
    after: str
    tests: str


MUTATIONS = [
    # units
    Mutation('"h": 3600.0', '"h": 360.0', "unit/test_units.py"),
    Mutation('"kb": 10**3', '"kb": 1 << 10', "unit/test_units.py"),
    Mutation("abs(value) >= 99.95", "abs(value) >= 999.5", "unit/test_units.py"),
    Mutation("if whole < 3600:", "if whole <= 3600:", "unit/test_units.py"),
    Mutation("int(amount[0]) * 1024", "int(amount[0]) * 1000", "unit/sources/test_host.py"),
    Mutation("return microwatts / 1e6\n    watts", "return microwatts / 1e3\n    watts", "unit/sources/amd contract/test_sources.py"),
    Mutation("_clock_hz\", 1e6)", "_clock_hz\", 1e3)", "unit/surfaces/exporter"),
    Mutation("Counter(count * 1024, at / 1e6)", "Counter(count * 1000, at / 1e6)", "unit/sources/nvidia e2e/test_query.py"),
    # severities and words
    Mutation('"near temperature limit", "warn"', '"near temperature limit", "info"', "unit/model unit/analysis/alerts"),
    Mutation('"too hot", "critical"', '"too hot", "warn"', "unit/model unit/analysis unit/present"),
    Mutation('"batch too small", "warn"', '"batch too small", "info"', "unit/model unit/analysis/diagnosis unit/present"),
    Mutation('"host_bound", "waiting for one thread"', '"host_bound", "waiting for a thread"', "unit/present unit/surfaces"),
    Mutation('"GPU responds again", "good"', '"GPU responds again", "warn"', "unit/model unit/present"),
    Mutation("warn=80, critical=90", "warn=90, critical=95", "unit/present unit/model unit/surfaces/status"),
    Mutation("exit_code = 3", "exit_code = 1", "unit/test_errors.py e2e/test_command_line.py"),
    # thresholds
    Mutation("WAIT = 0.18", "WAIT = 0.36", "unit/analysis/diagnosis"),
    Mutation("GAPS = 0.15", "GAPS = 0.45", "unit/analysis/diagnosis"),
    Mutation("STUCK_AFTER = 60.0", "STUCK_AFTER = 600.0", "unit/analysis"),
    Mutation("FLAPS = 3", "FLAPS = 2", "unit/analysis"),
    Mutation("SETTLED = 10.0", "SETTLED = 1.0", "unit/analysis"),
    Mutation("_LEAP = 5.0  # seconds by which wall", "_LEAP = 50.0  # seconds by which wall", "unit/analysis"),
    Mutation("\nIDLE = 5.0", "\nIDLE = 50.0", "unit/analysis"),
    Mutation("TELLING = 1.0", "TELLING = 0.1", "unit/analysis unit/monitor"),
    # boundaries
    Mutation("if self._run >= needed", "if self._run > needed", "unit/analysis/alerts"),
    Mutation("now - self._cleared < _OFTEN", "now - self._cleared > _OFTEN", "unit/analysis/alerts"),
    Mutation("elapsed <= 0 or grown < 0", "elapsed <= 0", "unit/sampling"),
    Mutation("0 <= elapsed < counter.apart", "0 <= elapsed <= counter.apart", "unit/sampling"),
    Mutation("POWER_BRAKE in reasons or (", "(", "unit/model unit/analysis"),
    Mutation("fp32 < FP32 or tensor >= TENSOR", "fp32 < FP32", "unit/analysis/diagnosis"),
    Mutation("plain.value if plain.value < 1 << 31 else plain.value - (1 << 32)", "plain.value", "unit/sources/nvidia"),
]  # fmt: skip


def main() -> int:
    """Try the mutations, print those that no test noticed, and fail if they are too many."""
    chosen = [int(word) for word in sys.argv[1:]] or range(1, len(MUTATIONS) + 1)
    missed = [number for number in chosen if not caught(number, MUTATIONS[number - 1])]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught")
    return 1 if len(missed) > len(MUTATIONS) - CAUGHT else 0


def caught(number: int, mutation: Mutation) -> bool:
    """Return whether a test fails with the mistake in a copy of the code."""
    with tempfile.TemporaryDirectory(prefix="gpulse-mutation-") as folder:
        copy = Path(
            shutil.copytree(ROOT, Path(folder) / "copy", ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        )
        path = apply(mutation, copy / "src")
        tests = [f"tests/{name}" for name in mutation.tests.split()]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        environ = os.environ | {"PYTHONPATH": f"{copy / 'src'}:{copy}"}
        code = subprocess.run(command, cwd=copy, env=environ, capture_output=True, check=False, timeout=900).returncode
    if code not in (0, 1):
        raise SystemExit(f"{number}: pytest ended with {code}")
    print(
        f"{number:3} {'caught' if code else 'MISSED'}  {path}: {mutation.before.strip()} -> {mutation.after.strip()}",
        flush=True,
    )
    return code == 1


def apply(mutation: Mutation, source: Path) -> str:
    """Change the one place and return its file; raise SystemExit if the text does not stand exactly once."""
    texts = {path: path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    places = [path for path, text in texts.items() for _ in range(text.count(mutation.before))]
    if len(places) != 1:
        raise SystemExit(f"{mutation.before!r} stands in {len(places)} places: {[str(one) for one in places]}")
    places[0].write_text(texts[places[0]].replace(mutation.before, mutation.after), encoding="utf-8")
    return str(places[0].relative_to(source))


if __name__ == "__main__":
    sys.exit(main())
