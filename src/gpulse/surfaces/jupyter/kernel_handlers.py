"""Request handlers for kernels and their cells. Kernels are listed in the event loop, which owns them; the rest runs in worker threads."""

from __future__ import annotations

import json
import time

import tornado.web as web
from jupyter_client.localinterfaces import is_local_ip
from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import ensure_async

from ...live.parameters import Parameter, Refusal, count, moment, read
from ...live.wire import compact
from ...store.cell_log import CellSpan
from .handlers import QuestionHandler, machine_of, texts_of, workers_of
from .kernels import Kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .cells import KernelWatch

_SPAN = 3600.0  # seconds shown when nobody says since when
_MOST_CELLS = 200  # in one message of a browser
_PARAMETERS = (
    Parameter("kernel", "ID of a kernel of this server.", {"type": "string"}, str),
    moment("from", "Start time (default: one hour before `to`)."),
    moment("to", "End time (default: now)."),
    count("points", "Points of the curve, at most (default: 400).", 2, 5000),
)


class KernelsHandler(QuestionHandler):
    """The kernels of this server and the GPUs they use."""

    @web.authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def get(self, demo: str | None, name: str = "") -> None:
        """Return all kernels with what each uses now."""
        try:
            kernels, machine, watch = await self.kernels(), machine_of(self, demo), watch_of(self)

            def answer() -> bytes:
                asked = machine.ask()
                if machine.real:
                    watch.follow(asked.hub)
                return compact(watch.table(kernels, asked.latest(), machine.real))

            self.finish_json(await workers_of(self).work(answer))
        except Refusal as refusal:
            self.refuse(refusal)

    async def kernels(self) -> list[Kernel]:
        """Return the kernels of this server."""
        sessions: dict[str, Any] = {}
        for session in await ensure_async(self.session_manager.list_sessions()):
            sessions.setdefault((session.get("kernel") or {}).get("id", ""), session)
        found = await ensure_async(self.kernel_manager.list_kernels())
        pids = kernel_pids(self.kernel_manager)
        return [
            Kernel.of(one, sessions.get(one["id"]), pids.get(one["id"]), elsewhere(self.kernel_manager, one["id"]))
            for one in found
        ]


class CellsHandler(KernelsHandler):
    """The cells of one kernel over the curves of its memory, SM share and power."""

    @web.authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def get(self, demo: str | None, name: str = "") -> None:
        """Return the curves of a kernel and its cells with what each took."""
        try:
            given = read(_PARAMETERS, texts_of(self))
            end = time.time() if given["to"] is None else given["to"]
            start = end - _SPAN if given["from"] is None else given["from"]
            kernel = next((one for one in await self.kernels() if one.id == given["kernel"]), None)
            if kernel is None:
                raise Refusal(404, "kernel: there is no such kernel.")
            watch, points = watch_of(self), given["points"] or 400
            answer = lambda: compact(watch.answer(kernel, start, end, points))  # noqa: E731
            self.finish_json(await workers_of(self).work(answer))
        except Refusal as refusal:
            self.refuse(refusal)

    @web.authenticated  # type: ignore[untyped-decorator]
    @authorized  # type: ignore[untyped-decorator]
    async def post(self, demo: str | None, name: str = "") -> None:
        """Take what a browser has seen of a kernel's cells."""
        try:
            plain = json.loads(self.request.body)
            kernel, cells = plain["kernel"], plain["cells"]
            spans = [span for span in map(CellSpan.from_plain, cells[-_MOST_CELLS:]) if span is not None]
        except (ValueError, KeyError, TypeError):
            self.refuse(Refusal(422, "the body must be {kernel: ID, cells: [{id, start, …}]}."))
            return
        if kernel not in kernel_pids(self.kernel_manager):
            self.refuse(Refusal(404, "kernel: there is no such kernel."))
            return
        watch_of(self).tell(kernel, spans)
        self.set_status(204)
        self.finish()


def watch_of(handler: QuestionHandler) -> KernelWatch:
    """Return what follows the kernels of this server."""
    watch: KernelWatch = handler.settings["gpulse_kernels"]
    return watch


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
    return (
        None if _pid(manager, id) is not None else f"where {started} started it, which names no process on this machine"
    )
