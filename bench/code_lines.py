"""Does the first line that gpulse names keep the GPU waiting? Twelve programs whose guilty line and its seconds are known.

    python -m bench.code_lines [--outside|--both] [--seconds 30] [--save FILE] [PROGRAM …]

With --outside the programs know nothing of gpulse, and `gpulse why PID` names the line. On a machine with a CUDA GPU and torch they train
on it; elsewhere a scripted driver follows what they do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.workloads.code.__main__ import PROGRAMS

_FOLDER = Path(__file__).parent / "workloads" / "code"
_BEFORE = 2.0  # seconds for which a program waits until it is watched
NEAR = 0.10  # by which the seconds may differ from the truth


def guilty_lines(program: str) -> set[int]:
    """Return the lines of a program that are marked."""
    lines = (_FOLDER / f"{program}.py").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if "# guilty" in line}


def run(program: str, seconds: float) -> dict[str, Any]:
    """Run a program in a process of its own and return what it and gpulse say."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.workloads.code", program, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10 * seconds + 120)
    if done.returncode:
        raise SystemExit(f"{program}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run_outside(program: str, seconds: float, both: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a program that `gpulse why` watches; return what it says, with a Monitor if `both`, and the same with what `why` says."""
    command = [sys.executable, "-W", "ignore", "-m", "bench.workloads.code", program, "--seconds", str(seconds)]
    command.append("--together" if both else "--alone")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as alone:
        assert alone.stdin is not None
        assert alone.stdout is not None
        environ = os.environ | json.loads(alone.stdout.readline())
        why = [sys.executable, "-m", "gpulse", "why", str(alone.pid), "--source", "nvidia", "--json"]
        why += ["--for", f"{seconds + _BEFORE + 1:.0f}s"]
        with subprocess.Popen(why, env=environ, stdout=subprocess.PIPE) as watch:
            time.sleep(_BEFORE)
            print(file=alone.stdin, flush=True)
            found = json.loads(alone.stdout.readline())
            answer = json.loads(watch.communicate()[0])
        alone.stdin.close()
    if answer["code_problem"]:
        print(answer["code_problem"], file=sys.stderr)
    return found, {**found, "code": answer["code"]}


def judge(program: str, found: dict[str, Any]) -> tuple[bool, float]:
    """Return whether the first line is the guilty one, and by how much its seconds differ from the truth."""
    first: dict[str, Any] = found["code"][0] if found["code"] else {"file": "", "line": 0, "waited": 0.0}
    named = Path(first["file"]).name == f"{program}.py" and first["line"] in guilty_lines(program)
    return named, first["waited"] / max(found["truth"], 1e-9) - 1.0


def told(program: str, found: dict[str, Any]) -> tuple[bool, bool]:
    """Print one line; return whether the first line is right, and whether its seconds are, too."""
    right, error = judge(program, found)
    near = right and abs(error) <= NEAR
    first: dict[str, Any] = found["code"][0] if found["code"] else {}
    place = f"{Path(first.get('file', '')).name}:{first.get('line')} {first.get('function')}"
    waited = sum(line["waited"] for line in found["code"])
    print(
        f"{'ok ' if near else 'BAD'} {program:11} {place:32} {first.get('waited', 0):6.2f} s, truth {found['truth']:6.2f} s "
        f"({100 * error:+5.1f} %); waited {waited:.1f} s in all, of {found['seconds']:.1f} s",
        flush=True,
    )
    return right, near


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--outside", action="store_true", help="watch them with gpulse why")
    parser.add_argument(
        "--both", action="store_true", help="with a Monitor in them, and watched with gpulse why, at once"
    )
    parser.add_argument("--save", help="write everything that was found as JSON to this file")
    arguments = parser.parse_args()
    everything: dict[str, dict[str, Any]] = {}
    marks: dict[str, list[tuple[bool, bool]]] = {}
    for program in arguments.programs:
        if arguments.outside or arguments.both:
            inside, outside = run_outside(program, arguments.seconds, arguments.both)
            found = {"inside": inside, "outside": outside} if arguments.both else {"outside": outside}
        else:
            found = {"inside": run(program, arguments.seconds)}
        everything[program] = found
        for way, one in found.items():
            print(f"{way:8}" if len(found) > 1 else "", end="")
            marks.setdefault(way, []).append(told(program, one))
        if arguments.save:
            Path(arguments.save).write_text(json.dumps(everything))
    enough = True
    for way, seen in marks.items():
        named, near = sum(right for right, _ in seen), sum(near for _, near in seen)
        enough = enough and near >= len(seen) - 1
        print(
            f"{way}: first line right in {named} of {len(seen)}, and its seconds within {100 * NEAR:.0f} % in {near} of {len(seen)}"
        )
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
