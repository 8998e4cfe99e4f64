"""The floating-point operations of a step: as the program says, or counted once by torch."""

from __future__ import annotations

import sys
import threading

from ..analysis.summary import mfu
from ..errors import UsageError
from ..model.peaks import DTYPES, dtype_named
from ..torch import part_of_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..analysis.summary import Mfu
    from .ledger import Ledger

COUNT = "count"
_SKIPPED = 1  # steps before the one that is counted: the first is unlike the others (compilation, lazy layers)


class StepFlops:
    """Operations of one step by data type; "" is an unknown type. `processes` compute such steps side by side on this machine.

    With `flops="count"`, torch counts those of the second step, which is slower for it; `at_step` must then be called after every
    step, in the thread that makes them, until `waiting` is false.
    """

    def __init__(self, flops: object, dtype: object, processes: int = 1) -> None:
        self._dtype = _checked_dtype(dtype)
        self.by_dtype: dict[str, float] = {}
        self.reason = ""
        self.processes = processes
        self.waiting = flops == COUNT
        if flops is None:
            raise UsageError("dtype is given without flops_per_step;", 'write flops_per_step=6.2e12 or "count", too.')
        if not self.waiting:
            self.by_dtype = {self._dtype or "": _checked_flops(flops)}
        self._steps = 0
        self._counter: Any = None
        self._thread = 0

    def mfu(self, steps_per_second: float, models: Sequence[str]) -> Mfu:
        """Return the utilization of the GPUs that the program uses, given by model."""
        # a process that sees fewer GPUs than there are processes speaks for itself and them only
        rate = steps_per_second * max(1, min(self.processes, len(models)))
        return mfu({dtype: flops * rate for dtype, flops in self.by_dtype.items()}, models, self.reason)

    def follow(self, ledger: Ledger, say: Callable[[str], None]) -> None:
        """Give a ledger the operations of its steps; `say` is called with why they could not be counted."""

        def at_step() -> None:
            self.at_step()
            if not self.waiting:
                ledger.at_step = tuple(call for call in ledger.at_step if call is not at_step)
                if self.reason:
                    say(f"flops_per_step: {self.reason}; there is no MFU.")

        ledger.flops = self
        ledger.at_stop = (self.close,)
        ledger.at_step = (at_step,) if self.waiting else ()

    def at_step(self) -> None:
        """Count one step with torch's counter, from the end of one to the end of the next."""
        if self._counter is None:
            self._steps += 1
            if self._steps >= _SKIPPED:
                self._begin()
        else:
            self.close()

    def close(self) -> None:
        """End the count, in the thread that began it; elsewhere, or within another mode of torch, it waits for its turn."""
        counter = self._counter
        if counter is None or threading.get_ident() != self._thread:
            return
        try:
            if part_of_torch("utils._python_dispatch")._get_current_dispatch_mode() is not counter.mode:
                return  # leaving now would end a mode of the program that was entered since
            counter.__exit__(None, None, None)
            self._take(counter.counted, counter.get_total_flops())
        except Exception as error:  # noqa: BLE001  # an error in torch must not affect the program
            self._give_up(error)
        self._counter, self.waiting = None, False

    def _begin(self) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            self.waiting, self.reason = False, "the program does not use torch, which would count its operations"
            return
        try:
            self._counter, self._thread = _counter(), threading.get_ident()
            self._counter.__enter__()
        except Exception as error:  # noqa: BLE001  # an error in torch must not affect the program
            self._counter = None
            self._give_up(error)

    def _take(self, counted: dict[tuple[bool, str], float], total: float) -> None:
        on_gpu = {dtype: flops for (gpu, dtype), flops in counted.items() if gpu}
        if not total:
            self.reason = "torch counted no operations in the second step"
        elif counted and not on_gpu:
            self.reason = "the counted step computed on the CPU"
        elif self._dtype or not on_gpu:
            self.by_dtype = {self._dtype or "": sum(on_gpu.values()) or total}
        else:
            self.by_dtype = on_gpu

    def _give_up(self, error: Exception) -> None:
        self.waiting, self.reason = False, f"torch's counter failed ({type(error).__name__}: {error})"


def _counter() -> Any:
    class ByType(part_of_torch("utils.flop_counter").FlopCounterMode):  # type: ignore[misc]
        """Counts operations by where they run (true: on a GPU) and by data type."""

        def __init__(self) -> None:
            super().__init__(display=False)
            self.counted: dict[tuple[bool, str], float] = {}

        def _count_flops(self, func_packet: Any, out: Any, args: Any, kwargs: Any) -> Any:
            before = self.get_total_flops()
            result = super()._count_flops(func_packet, out, args, kwargs)
            if (more := self.get_total_flops() - before) > 0:
                key = _kind(func_packet, args)
                self.counted[key] = self.counted.get(key, 0.0) + more
            return result

    return ByType()


def _kind(function: object, args: Any) -> tuple[bool, str]:
    """Return whether an operation runs on a GPU, and its data type; float32 is tf32 where torch may use that."""
    torch = sys.modules["torch"]
    found = next((one for one in args if isinstance(one, torch.Tensor) and one.is_floating_point()), None)
    if found is None:
        return True, ""
    dtype = dtype_named(found.dtype) or ""
    if dtype == "float32":
        convolution = "conv" in str(function)
        backend = torch.backends.cudnn if convolution else torch.backends.cuda.matmul
        dtype = "tf32" if backend.allow_tf32 else dtype
    return found.device.type != "cpu", dtype


def _checked_flops(flops: object) -> float:
    if isinstance(flops, bool) or not isinstance(flops, (int, float)) or not 0 < flops < 1e30:
        raise UsageError(
            f"flops_per_step={flops!r} is not a number of floating-point operations;",
            'write it as flops_per_step=6.2e12, or "count" to have torch count those of one step.',
        )
    return float(flops)


def _checked_dtype(dtype: object) -> str | None:
    if dtype is None or (name := dtype_named(dtype)) is not None:
        return None if dtype is None else name
    raise UsageError(f"dtype={str(dtype)!r} is not a floating-point type;", f"choose one of {', '.join(DTYPES)}.")
