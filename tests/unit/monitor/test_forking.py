"""A child that is forked while another thread imports a module of gpulse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# The module stands still in the middle of its import until the child has been forked.
CODE = """
import builtins, os, sys, threading, warnings
warnings.simplefilter("ignore")
import gpulse
gpulse.Monitor, gpulse.measure
import gpulse.monitor.monitor as monitors
monitors.process.at_fork(monitors._disown_all)
halfway, on = threading.Event(), threading.Event()
real = builtins.__import__
def slow(name, *rest):
    if threading.current_thread() is importer and "gpulse.analysis.diagnosis.running" in sys.modules and not on.is_set():
        halfway.set()
        on.wait(20)
    return real(name, *rest)
def work():
    from gpulse.analysis.diagnosis.running import RunningDiagnosis
importer = threading.Thread(target=work)
builtins.__import__ = slow
importer.start()
assert halfway.wait(20)
child = os.fork()
if child == 0:
    from gpulse.analysis.diagnosis.running import RunningDiagnosis
    RunningDiagnosis()
    os._exit(7)
on.set()
importer.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_half_imported_module_is_imported_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
