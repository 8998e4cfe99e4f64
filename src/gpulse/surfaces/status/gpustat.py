"""A snapshot in the shape of `gpustat --json`, for programs that read that."""

from __future__ import annotations

import json
import time

_MEBIBYTE = 1 << 20
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...model.catalog import Gpu, Process
    from ...model.snapshot import Snapshot


def to_gpustat(snapshot: Snapshot) -> str:
    """Return the JSON text: MiB and watts as whole numbers, null for what is missing, processes under each GPU."""
    plain = {
        "hostname": snapshot.host.name,
        "driver_version": snapshot.driver.get("version"),
        "query_time": _moment(snapshot.time),
        "gpus": [_gpu(gpu) for gpu in snapshot.gpus],
    }
    return json.dumps(plain, indent=4, ensure_ascii=True, allow_nan=False)


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "index": _whole(gpu.index),
        "uuid": gpu.uuid,
        "name": gpu.name,
        "temperature.gpu": _whole(gpu.temperature),
        "fan.speed": _whole(gpu.fan_speed),
        "utilization.gpu": _whole(gpu.utilization),
        "utilization.enc": _whole(gpu.encoder_utilization),
        "utilization.dec": _whole(gpu.decoder_utilization),
        "power.draw": _whole(gpu.power_draw),
        "enforced.power.limit": _whole(gpu.power_limit),
        "memory.used": _mebibytes(gpu.memory_used),
        "memory.total": _mebibytes(gpu.memory_total),
        "processes": None if "processes" in gpu.gaps else [_process(process) for process in gpu.all_processes()],
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "username": process.user,
        "command": process.name,
        "full_command": (process.command or "").split(" ") if process.command else [],
        "gpu_memory_usage": _mebibytes(process.memory_used),
        "cpu_percent": process.cpu_percent,
        "cpu_memory_usage": None if process.host_memory is None else int(process.host_memory),
        "pid": _whole(process.pid),
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _mebibytes(count: float | None) -> int | None:
    return None if count is None else int(count // _MEBIBYTE)


def _moment(seconds: float) -> str:
    """Write a local time as gpustat does: ISO 8601 with microseconds and no zone."""
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(whole))}.{micros:06d}"
