"""The Jupyter server extension: its settings, the API and the stream of gpulse.live, kernels and their cells.

Kernels are listed in the event loop, which owns them; blocking calls run in worker threads.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import tornado.web as web
from jupyter_client.localinterfaces import is_local_ip
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import ensure_async
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from traitlets import Bool, Float, Unicode

from ...errors import GpulseError
from ...live import STATIC
from ...live.api import LARGEST_DECISION, QUESTIONS, decide
from ...live.machine import LiveMachine, MachineSettings, StreamClient, StreamClients
from ...live.parameters import Parameter, Refusal, count, read, timestamp
from ...live.wire import compact
from ...sources.registry import is_this_machine
from ...store.cell_log import CellSpan
from ...store.claims import user_name
from ...store.config import config_path, read_config
from .cells import KernelWatch
from .kernels import Kernel
from .own_pages import OwnPages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from ...live.hub import Hub

    T = TypeVar("T")
    from ...delivery.alerts import Alerts

RESOURCE = "gpulse"  # the name that Jupyter authorizers see
_AT_ONCE = 4  # requests answered concurrently, one thread each
_SPAN = 3600.0  # seconds shown when nobody says since when
_MOST_CELLS = 200  # in one message of a browser
_PATHS = {question.path.removeprefix("/api/"): question for question in QUESTIONS}
_CELLS = (
    Parameter("kernel", "ID of a kernel of this server.", {"type": "string"}, str),
    timestamp("from", "Start time (default: one hour before `to`)."),
    timestamp("to", "End time (default: now)."),
    count("points", "Points of the curve, at most (default: 400).", 2, 5000, 400),
)


def _permitted(answer: Callable[[Any, LiveMachine, str], Awaitable[bytes | None]]) -> Any:
    """Return the handler of an HTTP method, which sends what `answer` returns, for users that Jupyter permits.

    JSON, nothing, or a refusal as problem details (RFC 9457), like `gpulse serve`.
    """

    async def handle(self: QuestionHandler, demo: str | None, name: str = "") -> None:
        try:
            data = await answer(self, self.settings["gpulse_machines"][demo or ""], name)
        except Refusal as refusal:
            self.set_status(refusal.status)
            for header, value in (refusal.headers or {}).items():
                self.set_header(header, value)
            self.finish(compact(refusal.to_plain()), set_content_type="application/problem+json")
            return
        if data is None:
            self.set_status(204)
            self.finish()
        else:
            self.set_header("Cache-Control", "no-store")
            self.finish(data, set_content_type="application/json")

    return web.authenticated(authorized(handle))


class QuestionHandler(OwnPages, APIHandler):  # type: ignore[misc]
    """The requests of `gpulse serve`'s API, with the same JSON."""

    auth_resource = RESOURCE

    @_permitted
    async def get(self, machine: LiveMachine, name: str) -> bytes:
        """Answer one request in a worker thread."""
        question = _PATHS.get(name)
        if question is None:
            raise Refusal(404, f"there is nothing called {name[:40]!r}.")
        given, answer = read(question.parameters, self._texts()), question.answer
        return await workers_of(self).work(lambda: answer(machine.ask(), given))

    @_permitted
    async def post(self, machine: LiveMachine, name: str) -> bytes:
        """Take a decision about alerts."""
        body, by = self.request.body, str(getattr(self.current_user, "username", ""))
        if name != "alerts" or len(body) > LARGEST_DECISION:
            raise Refusal(404 if name != "alerts" else 413, "this path takes no such POST request.")
        return await workers_of(self).work(lambda: decide(machine.ask(), body, f"{by} (lab)"))

    def _texts(self) -> dict[str, str]:
        """Return the query parameters without those of Jupyter: the token and the number that defeats caches."""
        given = self.request.query_arguments
        return {
            name: values[-1].decode("utf-8", "replace")
            for name, values in given.items()
            if name != "token" and not name.isdecimal()
        }


class KernelsHandler(QuestionHandler):
    """The kernels of this server and the GPUs they use."""

    @property
    def watch(self) -> KernelWatch:
        """What follows the kernels of this server."""
        watch: KernelWatch = self.settings["gpulse_kernels"]
        return watch

    @_permitted
    async def get(self, machine: LiveMachine, name: str) -> bytes:
        """Return all kernels with what each uses now."""
        kernels, watch = await self.kernels(), self.watch

        def answer() -> bytes:
            asked = machine.ask()
            if machine.real:
                watch.follow(asked.hub)
            return compact(watch.table(kernels, asked.latest(), machine.real))

        return await workers_of(self).work(answer)

    async def kernels(self) -> list[Kernel]:
        """Return the kernels of this server."""
        sessions: dict[str, Any] = {}
        for session in await ensure_async(self.session_manager.list_sessions()):
            sessions.setdefault((session.get("kernel") or {}).get("id", ""), session)
        found = await ensure_async(self.kernel_manager.list_kernels())
        pids = kernel_pids(self.kernel_manager)
        where = {one["id"]: elsewhere(self.kernel_manager, one["id"]) for one in found}
        ids = [(one, one["id"]) for one in found]
        return [Kernel.from_jupyter(one, sessions.get(id), pids.get(id), where[id]) for one, id in ids]


class CellsHandler(KernelsHandler):
    """The cells of one kernel over the curves of its memory, SM share and power."""

    @_permitted
    async def get(self, machine: LiveMachine, name: str) -> bytes:
        """Return the curves of a kernel and its cells with what each took."""
        given = read(_CELLS, self._texts())
        end = time.time() if given["to"] is None else given["to"]
        start = end - _SPAN if given["from"] is None else given["from"]
        kernel = next((one for one in await self.kernels() if one.id == given["kernel"]), None)
        if kernel is None:
            raise Refusal(404, "kernel: there is no such kernel.")
        watch = self.watch
        return await workers_of(self).work(lambda: compact(watch.answer(kernel, start, end, given["points"])))

    @_permitted
    async def post(self, machine: LiveMachine, name: str) -> None:
        """Take what a browser has seen of a kernel's cells."""
        try:
            plain = json.loads(self.request.body)
            kernel, cells = plain["kernel"], plain["cells"]
            spans = [span for span in map(CellSpan.from_plain, cells[-_MOST_CELLS:]) if span is not None]
        except (ValueError, KeyError, TypeError):
            raise Refusal(422, "the body must be {kernel: ID, cells: [{id, start, …}]}.") from None
        if kernel not in kernel_pids(self.kernel_manager):
            raise Refusal(404, "kernel: there is no such kernel.")
        self.watch.tell(kernel, spans)


class StreamHandler(OwnPages, WebSocketMixin, WebSocketHandler, JupyterHandler):  # type: ignore[misc]
    """The stream of `gpulse serve` over a WebSocket: the same text, one message per sample."""

    auth_resource = RESOURCE

    def get_compression_options(self) -> dict[str, Any]:
        """Enable compression: a sample of eight GPUs shrinks from 12 KB to about 2 KB."""
        return {}

    async def get(self, *arguments: Any, **named: Any) -> Any:
        """Refuse unauthenticated and unauthorized users with 403; a WebSocket cannot be redirected to the login page."""
        if self.current_user is None:
            raise web.HTTPError(403)
        if not await ensure_async(self.authorizer.is_authorized(self, self.current_user, "read", RESOURCE)):
            raise web.HTTPError(403)
        return await super().get(*arguments, **named)

    def open(self, demo: str | None = None) -> None:
        """Start sending."""
        super().open()
        self._machine: LiveMachine = self.settings["gpulse_machines"][demo or ""]
        self._client = StreamClient()
        self._serving = asyncio.ensure_future(self._serve())

    def on_message(self, message: str | bytes) -> None:
        """Ignore what clients send."""

    def on_close(self) -> None:
        """Stop sampling for this client."""
        self._client.leave()
        self._machine.leave(self)

    async def _serve(self) -> None:
        try:
            hub = (await workers_of(self).work(self._machine.open)).hub
            if self._client.gone:
                return
            self._machine.enter(self, _seconds(self.get_argument("interval", "")))
            clients: dict[Hub, StreamClients] = self.settings["gpulse_clients"]
            if hub not in clients:
                clients[hub] = StreamClients(hub)
            await clients[hub].serve(self._client, self.get_argument("last", ""), self._write)
        except (Refusal, WebSocketClosedError):
            pass  # the page learns the reason from its other requests
        finally:
            self._machine.leave(self)
            self.close()

    async def _write(self, data: bytes) -> None:
        if not self._client.gone:
            await self.write_message(data.decode())


def workers_of(handler: JupyterHandler) -> Workers:
    """Return the worker threads of the extension."""
    workers: Workers = handler.settings["gpulse_workers"]
    return workers


def _seconds(text: str) -> float | None:
    """Return the requested interval; None if it is not valid."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 < seconds <= 3600 else None


class Workers:
    """Runs blocking calls in threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, "gpulse-jupyter")

    def begin(self, job: Callable[[], object]) -> None:
        """Run a blocking call in a thread without waiting for it."""
        self._threads.submit(job)

    def work(self, job: Callable[[], T]) -> Awaitable[T]:
        """Run a blocking call in a thread; await the result."""
        return asyncio.wrap_future(self._threads.submit(job))


def kernel_pids(manager: Any) -> dict[str, int | None]:
    """Return the PID of each kernel; None for one that has no process on this machine. May be called by any thread."""
    return {id: _pid(manager, id) for id in list(manager.list_kernel_ids())}


def _pid(manager: Any, id: str) -> int | None:
    try:
        pid = getattr(manager.get_kernel(id).provisioner, "pid", None)
    except (KeyError, AttributeError, web.HTTPError):
        return None
    return pid if isinstance(pid, int) and pid > 0 else None


def connection_file(manager: Any, id: str) -> str:
    """Return the path of a kernel's connection file; "" for a kernel behind a gateway."""
    try:
        return str(manager.get_kernel(id).connection_file or "")
    except (KeyError, AttributeError, web.HTTPError):
        return ""


def elsewhere(manager: Any, id: str) -> str | None:
    """Return where a kernel runs if that is not this machine, as the end of a sentence: "on 10.0.0.7"."""
    from jupyter_server.gateway.managers import GatewayClient, GatewayMappingKernelManager

    if isinstance(manager, GatewayMappingKernelManager):
        return f"behind the gateway {GatewayClient.instance().url}"
    try:
        kernel = manager.get_kernel(id)
        if kernel.transport == "tcp" and kernel.ip and not is_local_ip(kernel.ip):
            return f"on {kernel.ip}"
        started = type(kernel.provisioner).__name__
    except (KeyError, AttributeError, web.HTTPError):
        return None
    known = _pid(manager, id) is not None
    return None if known else f"where {started} started it, which names no process on this machine"


class GpulseExtension(ExtensionApp):  # type: ignore[misc]
    """GPU monitoring beside notebooks."""

    name = "gpulse"
    extension_url = "/gpulse"
    load_other_extensions = True
    static_paths = [STATIC]  # the panels share their files with the page

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
        for path, handler in (("stream", StreamHandler), ("kernels", KernelsHandler), ("cells", CellsHandler)):
            self.handlers.append((rf"/gpulse/api/(demo/)?{path}", handler))
        self.handlers.append((r"/gpulse/api/(demo/)?([a-z-]+)", QuestionHandler))

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
            user=None if self.show_commands else user_name(os.geteuid()),
            failed=lambda text: self.log.warning("gpulse: %s", text),
            alerts=lambda history: self._alerts(history, is_this_machine(source)),
        )

    def _alerts(self, history: str | None, here: bool) -> Alerts | None:
        """Return the rules of the settings, for the panels: nobody is told of them from here. None if the settings are wrong.

        Another machine than this one (not `here`) has the built-in rules.
        """
        from ...delivery.alerts import Alerts
        from ...store.alert_file import AlertFile, alert_path

        def say(text: str) -> None:
            self.log.warning("gpulse: %s", text)

        try:
            table = read_config(config_path(os.environ)).get("alerts", {}) if here else {}
            alerts = Alerts(table, say, deliver=False)
        except GpulseError as error:
            say(str(error))
            return None
        alerts.resume(AlertFile(None if history is None else alert_path(history)))
        return alerts
