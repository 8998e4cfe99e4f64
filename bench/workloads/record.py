"""Record workloads with `gpulse record`, one recording each, with the time at which the workload began and ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from .table import WORKLOADS

_LEAD = 0.7  # seconds recorded before the program starts and after it has ended
_MOST = 90.0  # seconds after which a program that hangs is stopped


def record(folder: str, names: list[str], device: str, seconds: float | None, source: str) -> int:
    """Record each of these workloads; a workload that fails is said so and does not end the rest."""
    into = Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    for name in names:
        label = _recorded(into / f"{name}.ndjson.gz", name, device, seconds, source)
        with open(into / "LABELS.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(label) + "\n")
        print(json.dumps({key: label[key] for key in ("name", "from", "to", "code")}), flush=True)
    return 0


def _recorded(path: Path, name: str, device: str, seconds: float | None, source: str) -> dict[str, object]:
    command = [sys.executable, "-m", "gpulse", "record", "-o", str(path), "--force", "--interval", "0.2", "-p"]
    recorder = subprocess.Popen([*command, "--source", source], stderr=subprocess.DEVNULL)
    begun = time.time()
    time.sleep(_LEAD)
    code, lines = _program(name, device, seconds)
    time.sleep(_LEAD)
    recorder.send_signal(signal.SIGINT)
    recorder.wait(20)
    row = WORKLOADS[name]
    times = {
        str(line["event"]): float(str(line["time"])) for line in lines if line.get("event") in ("begin", "end", "error")
    }
    start, end = times.get("begin"), times.get("end", times.get("error"))
    return {
        "name": name,
        "code": code,
        "verdicts": row.verdicts,
        "expert": row.expert,
        "begin": start,
        "end": end,
        "from": None if start is None else round(start - begun, 1),
        "to": None if end is None else round(end - begun, 1),
        "said": lines,
    }


def _program(name: str, device: str, seconds: float | None) -> tuple[int, list[dict[str, object]]]:
    command = [sys.executable, "-m", "bench.workloads", name, "--device", device]
    command += [] if seconds is None else ["--seconds", str(seconds)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = program.communicate(timeout=_MOST)
    except subprocess.TimeoutExpired:
        program.kill()
        out, err = program.communicate()
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    if program.returncode:
        lines.append({"time": time.time(), "event": "stderr", "text": err[-2000:]})
    return program.returncode, lines
