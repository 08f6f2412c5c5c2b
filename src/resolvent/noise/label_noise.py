"""How often recorded labels are not the true ones, and in which way."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class LabelNoise:
    """How often labels lie: shares of the steps at which they could.

    Attributes:
        missed: Of the steps with an event, how many are recorded as none.
        false: Of the steps without an event, how many are recorded as one.
        swapped: Of the steps with an event, how many are recorded as another.

    >>> print(LabelNoise(missed=0.051, false=0.0, swapped=0.002))
    5.1% missed, 0% false, 0.2% swapped
    """

    missed: float
    false: float
    swapped: float

    def shares(self) -> dict[str, float]:
        """Return it by names that say what is noisy, for `result.noise`.

        >>> LabelNoise(0.05, 0.0, 0.01).shares()
        {'missed labels': 0.05, 'false labels': 0.0, 'swapped labels': 0.01}
        """
        return {f"{name} labels": share for name, share in self.as_dict().items()}

    @classmethod
    def of_shares(cls, shares: Mapping[str, float]) -> "LabelNoise | None":
        """Return what `shares` wrote down; None if that is not all there."""
        names = {field.name: f"{field.name} labels" for field in fields(cls)}
        if not shares.keys() >= {*names.values()}:
            return None
        return cls(**{name: shares[named] for name, named in names.items()})

    def as_dict(self) -> dict[str, float]:
        """Return it as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(f"{_percent(share)} {name}" for name, share in self.as_dict().items())


def _percent(share: float) -> str:
    """Write a share with two digits, so that a small one does not read as none.

    >>> _percent(0.0507), _percent(0.00012), _percent(0), _percent(0.5)
    ('5.1%', '0.012%', '0%', '50%')
    """
    return f"{100 * share:.2g}%"
