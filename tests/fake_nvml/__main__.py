"""``python -m tests.fake_nvml SCENARIO -- COMMAND ...``: run a command on a scripted machine."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .build import BuildError
from .scenario import Scenario


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("usage: python -m tests.fake_nvml SCENARIO -- COMMAND ...", file=sys.stderr)
        print(f"scenarios: {' '.join(Scenario.names())}", file=sys.stderr)
        return 2
    name, command = arguments[0], arguments[1:]
    if command[0] == "--":
        command = command[1:]
    try:
        scenario = Scenario.load(name)
        with tempfile.TemporaryDirectory(prefix="fake-nvml-") as folder:
            return subprocess.run(command, env=scenario.write(Path(folder)), check=False).returncode
    except (BuildError, OSError, ValueError) as error:
        print(f"fake_nvml: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
