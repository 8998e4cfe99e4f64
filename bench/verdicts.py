"""Ask every surface about the same run of each workload: python -m bench.verdicts FOLDER [NAMES…]; needs a GPU.

Each workload runs once, under `gpulse run` and with a Monitor inside, while two recorders and a live `gpulse why` watch. One line per
workload says which verdict each gave. FOLDER gets NAME.ndjson.gz (every 0.2 s) and VERDICTS.jsonl.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.workloads.table import WORKLOADS

_GPULSE = [sys.executable, "-m", "gpulse"]
_LEAD = 0.7  # seconds recorded before the program starts and after it has ended
_SETTLED = 3.0  # seconds after the begin of the workload at which `why` starts
_WATCHED = 8.0  # seconds that it watches
_MOST = 90.0  # seconds after which a program that hangs is stopped


def main(arguments: list[str]) -> int:
    """Run the workloads named, or all, and print what each surface said."""
    folder, names = Path(arguments[0]), arguments[1:] or list(WORKLOADS)
    folder.mkdir(parents=True, exist_ok=True)
    right: dict[str, list[bool]] = {}
    for name in names:
        row = asked(folder, name)
        with open(folder / "VERDICTS.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        for surface, found in row["surfaces"].items():
            right.setdefault(surface, []).append(found is not None and found["verdict"] in row["verdicts"])
        print(
            name, "/".join(row["verdicts"]), {key: _told(found) for key, found in row["surfaces"].items()}, flush=True
        )
    for surface, answers in right.items():
        print(f"{surface:12} {sum(answers)} of {len(answers)} right")
    return 0


def asked(folder: Path, name: str) -> dict[str, Any]:
    """Run one workload and return what every surface said of it."""
    kept, slow = folder / f"{name}.ndjson.gz", Path(tempfile.mkdtemp()) / "slow.ndjson"
    recorders = [_recorder(kept, "0.2"), _recorder(slow, "1")]
    begun = time.time()
    time.sleep(_LEAD)
    own, text = slow.with_name("run.ndjson"), slow.with_name("run.txt")
    command = [
        *_GPULSE,
        "run",
        "--interval",
        "0.2",
        "-o",
        str(own),
        "--",
        sys.executable,
        "-m",
        "bench.workloads",
        name,
        "--monitor",
    ]
    with open(text, "w", encoding="utf-8") as messages:
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages, text=True)
    marks, live = _followed(program)
    time.sleep(_LEAD)
    for recorder in recorders:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(20)
    surfaces = {
        "why": _first(live.communicate(timeout=60)[0]) if live is not None else None,
        "run 0.2 s": _judged(own),
        "monitor": marks.get("verdict"),
        "record 0.2 s": _judged(kept),
        "record 1 s": _judged(slow),
    }
    start, end = marks.get("begin"), marks.get("end", marks.get("error"))
    return {
        "name": name,
        "verdicts": WORKLOADS[name].verdicts,
        "expert": WORKLOADS[name].expert,
        "from": None if start is None else round(start - begun, 1),
        "to": None if end is None else round(end - begun, 1),
        "code": program.returncode,
        "summary": text.read_text(encoding="utf-8"),
        "surfaces": surfaces,
    }


def _recorder(path: Path, interval: str) -> subprocess.Popen[bytes]:
    command = [*_GPULSE, "record", "-o", str(path), "--force", "--interval", interval, "-p"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _followed(program: subprocess.Popen[str]) -> tuple[dict[str, Any], subprocess.Popen[str] | None]:
    """Read what a program says until it ends, and start a live `why` once its work has begun."""
    marks: dict[str, Any] = {}
    live: subprocess.Popen[str] | None = None
    assert program.stdout is not None
    for line in program.stdout:
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        marks[said["event"]] = said.get("verdict") or said["time"]
        if said["event"] == "begin":
            command = ["sh", "-c", f"sleep {_SETTLED}; exec {' '.join(_GPULSE)} why --json --for {_WATCHED}s"]
            live = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        program.wait(_MOST)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    return marks, live


def _judged(path: Path) -> dict[str, Any] | None:
    asked = subprocess.run(
        [*_GPULSE, "why", "--json", "--source", f"replay:{path}"], capture_output=True, text=True, check=False
    )
    return _first(asked.stdout)


def _first(text: str) -> dict[str, Any] | None:
    """Return the verdict of the first GPU of a diagnosis in JSON, of `why` or inside a report."""
    try:
        plain = json.loads(text)
    except ValueError:
        return None
    found = plain.get("gpus") or (plain.get("diagnosis") or {}).get("gpus") or plain.get("verdicts") or []
    return next((one for one in found if isinstance(one, dict) and "verdict" in one), None)


def _told(found: dict[str, Any] | None) -> str:
    return "-" if found is None else f"{found['verdict']} ({found['confidence']})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
