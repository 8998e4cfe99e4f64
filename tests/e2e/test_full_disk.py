"""A server whose disk is full says so everywhere, keeps samples in memory, and writes them when it can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_STEPS = """
import json, os, re, signal, subprocess, sys, time, urllib.error, urllib.request
from gpulse.store.history import HistoryReader

folder, how = sys.argv[1:]
history, ballast = f"{folder}/h.db", f"{folder}/ballast"
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], check=True)
words = ["serve", "--demo", "--port", "0", "--no-auth", "--interval", "0.1", "--history", history]
with open(f"{sys.argv[1]}.said", "w") as said:
    server = subprocess.Popen([sys.executable, "-m", "gpulse", *words], stderr=said, stdout=said, text=True)

def text():
    with open(f"{sys.argv[1]}.said") as file:
        return file.read()

def until(what, happens, seconds=40):
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert server.poll() is None and time.monotonic() < end, (what, text())
        time.sleep(0.05)
    return found

def ask(path):
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def series(name):
    return float(re.search(rf"^gpulse_history_{name} (\\S+)", ask("metrics")[1], re.M)[1])

def titles():
    return [one["title"] for one in json.loads(ask("api/problems")[1])["problems"]]

try:
    url = until("the link", lambda: re.search(r"http://\\S+", text()))[0]
    until("ready", lambda: ask("readyz")[0] == 200)
    assert (series("writable"), series("failed_writes_total"), series("lost_samples_total")) == (1, 0, 0)
    assert "history not written" not in titles()
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    status, why = until("not ready", lambda: (answer := ask("readyz"))[0] == 503 and answer)
    assert "cannot be written" in json.loads(why)["detail"], why
    assert series("writable") == 0 and series("failed_writes_total") >= 1
    until("samples wait", lambda: series("waiting_samples") > 20)
    until("the band", lambda: titles()[:1] == ["history not written"])
    assert ask("api/snapshot")[0] == 200, "the rest goes on"
    assert text().count("cannot be written") == 1, text()
    failed = time.time()
    if how == "freed":
        os.unlink(ballast)
        until("ready again", lambda: ask("readyz")[0] == 200)
        assert series("writable") == 1 and series("lost_samples_total") == 0
        until("the band is empty", lambda: "history not written" not in titles())
        assert text().count("is written again; no sample was lost.") == 1, text()
    server.send_signal(signal.SIGTERM)
    assert server.wait(20) == 0, text()
finally:
    server.kill()
    server.wait()
with HistoryReader(history) as reader:
    first, last = reader.span()
    gaps = reader.recorded(first, last).gaps(first, last)
if how == "freed":
    assert gaps == [] and last > failed, (gaps, last, failed)
    assert "are lost" not in text()
else:
    assert re.search(r"\\d+ samples could not be written to \\S+ and are lost", text()), text()
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-rm", "true"], check=False, capture_output=True).returncode != 0,
    reason="a file system of its own takes a namespace",
)
@pytest.mark.parametrize("how", ["freed", "full to the end"])
def test_a_disk_that_cannot_be_written_is_said_everywhere_and_waited_for(tmp_path: Path, how: str) -> None:
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", _STEPS, str(tmp_path / "disk"), how],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
