"""Every field of `nvidia-smi --query-gpu` beside `gpulse query`'s, as text: idle, and under load.

    python -m bench.fields            # needs an NVIDIA GPU with nvidia-smi

Prints how many fields are the same character for character and lists the others; those that move between two moments are told apart
by asking nvidia-smi twice, before gpulse and after it, and by asking both again: a field differs when it does in every round.
"""

from __future__ import annotations

import subprocess
import sys
import time

from bench.parity import LOAD
from gpulse.surfaces.query.fields import FIELDS

ROUNDS = 3


def ask(command: list[str], names: list[str]) -> list[str]:
    """Return the values of the first GPU."""
    query = [*command, f"--query-gpu={','.join(names)}", "--format=csv,noheader"]
    line = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return line.split(", ")


def known(names: list[str]) -> list[str]:
    """Return the fields that this nvidia-smi has."""
    help = subprocess.run(["nvidia-smi", "--help-query-gpu"], capture_output=True, text=True, check=True).stdout
    return [name for name in names if f'"{name}"' in help]


def compare(phase: str, names: list[str]) -> int:
    """Print the comparison of one phase; return how many fields differ although they stood still."""
    gpulse = [sys.executable, "-m", "gpulse", "query"]
    before, mine, after = ask(["nvidia-smi"], names), ask(gpulse, names), ask(["nvidia-smi"], names)
    same = sum(own in (one, other) for own, one, other in zip(mine, before, after, strict=True))
    rows = list(zip(names, before, mine, after, strict=True))
    apart = [row for row in rows if row[2] not in (row[1], row[3])]
    still = [row[0] for row in apart if row[1] == row[3]]
    for _ in range(ROUNDS - 1):
        still = [name for name in still if ask(["nvidia-smi"], [name]) != ask(gpulse, [name])]
    moved = [row for row in apart if row[0] not in still]
    wrong = [row for row in apart if row[0] in still]
    print(
        f"\n{phase}: {len(names)} fields, {same} the same, {len(moved)} that moved meanwhile, {len(wrong)} that differ"
    )
    for title, found in (("moved", moved), ("differs", wrong)):
        for name, first, own, second in found:
            print(f"  {title}: {name}: nvidia-smi {first!r}, gpulse {own!r}, nvidia-smi {second!r}")
    return len(wrong)


def main() -> int:
    """Compare idle, then under load where PyTorch is there."""
    names = known(list(FIELDS))
    wrong = compare("idle", names)
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
    assert load.stdout is not None
    try:
        if load.stdout.readline().strip() == "ready":
            time.sleep(3)
            wrong += compare("under load", names)
    finally:
        load.kill()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
