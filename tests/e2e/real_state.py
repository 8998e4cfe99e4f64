"""A home full of real state, for tests that must leave it alone: queue, claims, history, alerts, runs, presence files, settings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import gpulse
from gpulse.model.codec import time_text
from gpulse.model.event import Event
from gpulse.monitor.presence import PresenceFile
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.store.alert_file import AlertFile
from gpulse.store.claims import claim
from gpulse.store.history import HistoryWriter
from gpulse.store.queue import Queue, QueuePlace, new_entry
from gpulse.store.runs import keep

MARK = "realstate"  # in everything that is real, so that it is found in what a command prints
ROOT = Path(__file__).parents[2]
SETTINGS = f"""
[terminal]
theme = "mono"
[serve]
port = 1
bind = "{MARK}.example"
history = "/{MARK}/history.db"
otlp = "https://{MARK}.example/v1/metrics"
[serving]
endpoints = ["http://{MARK}.example:8000"]
[cost]
currency = "{MARK}"
price = 0.3
[[alerts.webhook]]
url = "https://{MARK}.example/hook"
[[alerts.webhook]]
url = "apprise:json://{MARK}.example"
[[alerts.command]]
run = ["/bin/{MARK}"]
"""
# writes the paths that Python opens, lists or makes into a file; `sitecustomize` is loaded before everything else
WATCH = """
import os, sys
_log = os.open(os.environ["OPENED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
_events = {"open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.chmod", "sqlite3.connect"}
def _hook(event, arguments):
    if event in _events and arguments and isinstance(arguments[0], (str, bytes)):
        os.write(_log, os.fsencode(arguments[0]) + b"\\n")
sys.addaudithook(_hook)
"""


class Home:
    """A home of a user in a folder, with the environment that names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "home"
        self.opened = folder / "opened"
        self.temporary = folder / "temporary"
        for place in ("config/gpulse", "state/gpulse", "runtime", "claims"):
            (self.folder / place).mkdir(parents=True, mode=0o700)
        self.temporary.mkdir()
        watch = folder / "watch"
        watch.mkdir()
        (watch / "sitecustomize.py").write_text(WATCH)
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("GPULSE_", "XDG_"))}
        self.environ = plain | {
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_RUNTIME_DIR": str(self.folder / "runtime"),
            "GPULSE_CLAIMS": str(self.folder / "claims"),
            "GPULSE_HISTORY": str(self.folder / "state/gpulse/history.db"),
            "GPULSE_MAIL_SERVER": f"{MARK}.example",
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": f"{watch}:{ROOT / 'src'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENED": str(self.opened),
        }

    def files(self) -> dict[str, tuple[bytes, int, int]]:
        """Return everything that is there: contents, mode and time of the last change."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            found[str(path)] = (path.read_bytes() if path.is_file() else b"", status.st_mode, status.st_mtime_ns)
        return found

    def touched(self) -> list[str]:
        """Return what a command opened, listed or made of the state of this machine; the user's settings file may be read."""
        places = (
            str(self.folder),
            "/var/lib/gpulse",
            "/etc/gpulse",
            "/var/tmp",
            "/run/lock",
            "/run/user",
            "/tmp/gpulse-",
        )
        lines = self.opened.read_text().splitlines()
        assert lines
        settings = str(self.folder / "config/gpulse/config.toml")
        return [line for line in lines if line.startswith(places) and line != settings]


@contextmanager
def full(home: Home) -> Iterator[Home]:
    """Fill a home, as root or anybody; the processes that hold something are this one."""
    now = time.time()
    (home.folder / "config/gpulse/config.toml").write_text(SETTINGS)
    (home.folder / "config/gpulse/fleet.toml").write_text(f'hosts = ["{MARK}.example"]\n')
    source = SimulatedSource()
    source.open()
    uuids = [str(device.identity["uuid"]) for device in source.devices]
    source.close()
    claims, history = str(home.folder / "claims"), home.environ["GPULSE_HISTORY"]
    queue = Queue(claims)
    queue.reserve(new_entry("reserved", gpus=uuids[:4], begins=now, until=now + 3600, reason=MARK))
    places = [QueuePlace(new_entry(kind, program=MARK, gpus=uuids[6:7]), queue) for kind in ("waiting", "running")]
    with gpulse.testing.scripted(gpus=[{"name": MARK}]):
        snapshot = gpulse.snapshot()
    with HistoryWriter(history) as writer:
        for at in range(5):
            writer.add(snapshot.replace(time=now - 60 + at), ())
    alert = Event(now, "hot", note=MARK, rule="hot", alert="fire", severity="warn")
    alerts = AlertFile(str(Path(history).with_name("alerts.json")))
    alerts.save([{"event": alert.to_plain(), "note": MARK}], [])
    alerts.acknowledge([MARK], MARK)
    run = {"schema": 1, "id": MARK, "state": "ended", "start": time_text(now), "seconds": 1.0, "command": MARK}
    keep(run, str(home.folder / "state/gpulse/runs"))
    presence = PresenceFile(os.getpid(), home.environ)
    presence.write({"phase": MARK, "run": MARK, "time": now})
    with ExitStack() as ends:
        for place in places:
            place.write()
            ends.callback(place.leave)
        for uuid in uuids:
            ends.enter_context(claim(uuid, claims) or ExitStack())
            (home.folder / "claims" / f"gpulse-{uuid}.lock").write_text(f"{MARK}, pid 1\n")
        yield home
