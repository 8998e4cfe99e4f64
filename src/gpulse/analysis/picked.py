"""GPUs that were selected for a program, with the claims that keep them from being selected again."""

from __future__ import annotations

from ..model.visible import selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu
    from ..store.claims import Claim
    from ..store.queue import QueuePlace

    Gpus = tuple[Gpu, ...]
else:
    Gpus = tuple

_held: set[Claim | QueuePlace] = set()  # until the program ends or releases them, even if it forgets the object


class Picked(Gpus):
    """GPUs, best first, that no other call of `pick` returns until they are released or this program has ended.

    Use it as a tuple, or in a `with`, which releases them at its end.
    """

    _claims: tuple[Claim | QueuePlace, ...] = ()

    def release(self) -> None:
        """Allow others to select these GPUs again. Does nothing the second time."""
        for each in self._claims:
            each.close()
        _held.difference_update(self._claims)
        self._claims = ()

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that make exactly these GPUs visible to a program: CUDA_VISIBLE_DEVICES and others."""
        return selection(self)

    def __enter__(self) -> Picked:
        return self

    def __exit__(self, *why: object) -> None:
        self.release()


def picked(gpus: Iterable[Gpu], claims: Iterable[Claim | QueuePlace] = ()) -> Picked:
    """Return GPUs as picked, with claims that last as long as this program."""
    made = Picked(gpus)
    made._claims = tuple(claims)
    _held.update(made._claims)
    return made
