"""The extension: settings that Jupyter reads, the machines that are watched, and the paths under which they are served."""

from __future__ import annotations

import os
import pwd

from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Float, Unicode

from ...live.room import Room, RoomSettings
from .handlers import KernelsHandler, QuestionHandler, StreamHandler
from .visits import Visits


class GpulseExtension(ExtensionApp):  # type: ignore[misc]
    """What your GPUs are really doing, beside your notebooks."""

    name = "gpulse"
    extension_url = "/gpulse"
    load_other_extensions = True

    source = Unicode(
        "", config=True, help="What to watch: auto, nvidia, demo or replay:FILE (default: GPULSE_SOURCE or auto)."
    )
    interval = Float(
        1.0, config=True, help="Seconds between two samples while a panel is open and asks for no other interval."
    )
    idle_interval = Float(
        10.0, config=True, help="Seconds between two samples for the history while no panel is open; 0 for none."
    )
    history = Unicode(
        "", config=True, help="The file of the history (default: this machine's); 'none' keeps and shows none."
    )
    watch_from_start = Bool(
        False, config=True, help="Keep the history from the server's start, not from the first open panel."
    )
    show_commands = Bool(False, config=True, help="Show the command lines of other users' processes, too.")

    def initialize_settings(self) -> None:
        """Make the machines that can be watched: this one, and the simulated one for machines without a GPU."""
        source = self.source or os.environ.get("GPULSE_SOURCE") or "auto"
        rooms = {"": Room(self._settings(source)), "demo/": Room(self._settings("demo", history=""))}
        self.settings["gpulse_rooms"] = rooms
        self.settings["gpulse_visits"] = Visits()
        if self.watch_from_start:
            self.settings["gpulse_visits"].begin(rooms[""].open)

    def initialize_handlers(self) -> None:
        """Serve each machine under its own path."""
        self.handlers.extend(
            [
                (r"/gpulse/api/(demo/)?stream", StreamHandler),
                (r"/gpulse/api/(demo/)?kernels", KernelsHandler),
                (r"/gpulse/api/(demo/)?([a-z-]+)", QuestionHandler),
            ]
        )

    async def stop_extension(self) -> None:
        """Stop sampling."""
        for room in self.settings["gpulse_rooms"].values():
            room.close()

    def _settings(self, source: str, history: str | None = None) -> RoomSettings:
        kept: str | None = self.history if history is None else history
        return RoomSettings(
            source,
            interval=self.interval,
            idle_interval=self.idle_interval or None,
            history=None if kept == "none" else kept,
            user=None if self.show_commands else _user(),
            failed=lambda text: self.log.warning("gpulse: %s", text),
        )


def _user() -> str:
    """Return the name of the user that the server runs as, as processes have it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
