"""GPUs that were selected for a program, with the claims that keep them from being selected again."""

from __future__ import annotations

from ..errors import GpulseError
from ..model.visible import selection
from ..store.claims import claim, claims_folder
from .free import best

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..model.catalog import Gpu
    from ..store.claims import Claim
    from .free import Availability, Requirement

    Gpus = tuple[Gpu, ...]
else:
    Gpus = tuple

_held: set[Claim] = set()  # until the program ends or releases them, even if it forgets the object


class Picked(Gpus):
    """GPUs, best first, that no other call of `pick` returns until they are released or this program has ended.

    Use it as a tuple, or in a `with`, which releases them at its end.
    """

    _claims: tuple[Claim, ...] = ()

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


def picked(gpus: Iterable[Gpu], claims: Iterable[Claim] = ()) -> Picked:
    """Return GPUs as picked, with claims that last as long as this program."""
    made = Picked(gpus)
    made._claims = tuple(claims)
    _held.update(made._claims)
    return made


def take(verdicts: list[Availability], asked: Requirement) -> tuple[list[Gpu], list[Claim]] | None:
    """Claim the best free GPUs, skipping those claimed by others in the meantime; return None if too few are left."""
    while chosen := best(verdicts, asked):
        claims: list[Claim] = []
        try:
            for gpu in chosen:
                if (taken := claim(str(gpu.uuid))) is None:
                    break
                claims.append(taken)
            else:
                return [*chosen], claims
        except OSError as error:
            why = f"cannot claim a GPU in {claims_folder()}: {error.strerror};"
            cure = "set GPULSE_CLAIMS to a folder that every user can write to"
            raise GpulseError(why, f"{cure}, or use claim=False.", option=f"{cure}.") from None
        for other in claims:
            other.close()
        for verdict in verdicts:
            if verdict.gpu is gpu:
                verdict.why = "claimed just now"
    return None
