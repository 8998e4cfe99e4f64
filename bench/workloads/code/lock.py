"""Another thread holds a lock that each step needs."""

from __future__ import annotations

import threading
import time
from typing import Any


def main(gpu: Any, guilty: Any) -> None:
    lock = threading.Lock()
    over = threading.Event()

    def publish() -> None:
        while not over.is_set():
            with lock:
                time.sleep(0.3)  # writes statistics somewhere far away
            time.sleep(0.04)

    threading.Thread(target=publish, daemon=True).start()
    for _ in gpu.steps():
        gpu.step().item()
        with guilty:
            lock.acquire()  # guilty
        lock.release()
    over.set()
