"""The Jupyter server extension: its configuration, the machines it samples, and the paths they are served under."""

from __future__ import annotations

import os
import pwd

from jupyter_server.extension.application import ExtensionApp
from traitlets import Bool, Float, Unicode

from ...errors import GpulseError
from ...live.machine import LiveMachine, MachineSettings
from ...store.config import config_path, read_config
from .cells import KernelWatch
from .handlers import (
    CellsHandler,
    KernelsHandler,
    QuestionHandler,
    StreamHandler,
    Workers,
    connection_file,
    kernel_pids,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...delivery.alerts import Alerts


class GpulseExtension(ExtensionApp):  # type: ignore[misc]
    """GPU monitoring beside notebooks."""

    name = "gpulse"
    extension_url = "/gpulse"
    load_other_extensions = True

    source = Unicode(
        "",
        config=True,
        help="Source, as on the command line: auto, nvidia, demo, replay:FILE and so on (default: GPULSE_SOURCE or auto).",
    )
    interval = Float(
        1.0,
        config=True,
        help="Seconds between samples while a panel is visible, unless the settings of the lab name another interval.",
    )
    idle_interval = Float(
        10.0, config=True, help="Seconds between samples for the history while no panel is visible; 0 disables them."
    )
    history = Unicode("", config=True, help="File of the history (default: that of this machine); 'none' disables it.")
    watch_from_start = Bool(
        False, config=True, help="Record the history from the start of the server instead of from the first open panel."
    )
    show_commands = Bool(False, config=True, help="Show command lines of other users' processes.")

    def initialize_settings(self) -> None:
        """Create the machines: this one, and the simulated one that is offered where there is no GPU."""
        source = self.source or os.environ.get("GPULSE_SOURCE") or "auto"
        machines = {"": LiveMachine(self._settings(source)), "demo/": LiveMachine(self._settings("demo", history=""))}
        self.settings["gpulse_machines"] = machines
        self.settings["gpulse_workers"] = Workers()
        self.settings["gpulse_clients"] = {}  # StreamClients by hub
        self.settings["gpulse_kernels"] = KernelWatch(
            lambda: kernel_pids(self.serverapp.kernel_manager),
            lambda kernel: connection_file(self.serverapp.kernel_manager, kernel),
        )
        if self.watch_from_start:
            self.settings["gpulse_workers"].begin(machines[""].open)

    def initialize_handlers(self) -> None:
        """Serve each machine under its own path."""
        self.handlers.extend(
            [
                (r"/gpulse/api/(demo/)?stream", StreamHandler),
                (r"/gpulse/api/(demo/)?kernels", KernelsHandler),
                (r"/gpulse/api/(demo/)?cells", CellsHandler),
                (r"/gpulse/api/(demo/)?([a-z-]+)", QuestionHandler),
            ]
        )

    async def stop_extension(self) -> None:
        """Stop sampling."""
        for machine in self.settings["gpulse_machines"].values():
            machine.close()

    def _settings(self, source: str, history: str | None = None) -> MachineSettings:
        kept: str | None = self.history if history is None else history
        return MachineSettings(
            source,
            interval=self.interval,
            idle_interval=self.idle_interval or None,
            history=None if kept == "none" else kept,
            user=None if self.show_commands else _user(),
            failed=lambda text: self.log.warning("gpulse: %s", text),
            alerts=self._alerts,
        )

    def _alerts(self, history: str | None) -> Alerts | None:
        """Return the rules of the settings, for the panels: nobody is told of them from here. None if the settings are wrong."""
        from ...delivery.alerts import Alerts
        from ...store.alert_file import AlertFile, alert_path

        def say(text: str) -> None:
            self.log.warning("gpulse: %s", text)

        try:
            alerts = Alerts(read_config(config_path(os.environ)).get("alerts", {}), say, deliver=False)
        except GpulseError as error:
            say(str(error))
            return None
        alerts.resume(AlertFile(None if history is None else alert_path(history)))
        return alerts


def _user() -> str:
    """Return the name of the user that the server runs as, as in process lists."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
