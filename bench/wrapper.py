"""What `gpulse run` adds to a command: wall time of `gpulse run -- true` less that of `true`, in pairs."""

from __future__ import annotations

import sys
from statistics import median

from bench.machine import BIN, install, machine
from bench.oneshot import wall

RUN = [str(BIN / "gpulse"), "run"]
COMMANDS = {
    "gpulse run -- true": [*RUN, "--", "true"],
    "gpulse run -q -- true": [*RUN, "-q", "--", "true"],
    "python -c pass": [str(BIN / "python"), "-c", "pass"],
}


def table(rounds: int = 21) -> list[str]:
    """Return the Markdown table of one run: 8 GPUs with the latencies of an H200, and no driver at all."""
    added: dict[tuple[str, str], list[float]] = {}
    with machine("dgx-h100x8", 8, 0) as scripted:
        bare = {key: value for key, value in scripted.items() if key != "LD_LIBRARY_PATH"}
        for _ in range(rounds):
            for where, env in (("8 GPUs", scripted), ("no driver", bare)):
                for name, command in COMMANDS.items():
                    alone = wall(["true"], env)
                    added.setdefault((name, where), []).append(wall(command, env) - alone)
    rows = [f"| `{name}` | {where} | {median(ms):.0f} ({min(ms):.0f}) |" for (name, where), ms in added.items()]
    return [f"| command | machine | ms more than `true`, median (minimum) of {rounds} |", "| --- | --- | --- |", *rows]


if __name__ == "__main__":
    install()
    print("\n".join(table()))
    sys.exit(0)
