"""What to run: the three experiments, at full length or in a few minutes."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from resolvent.errors import OptionError
from resolvent.reproduction import ablation, baselines, policy
from resolvent.reproduction.running.run import Run

EXPERIMENTS: Final = (baselines.EXPERIMENT, ablation.EXPERIMENT, policy.EXPERIMENT)
MEMORY_LIMIT_MB: Final = 8_192.0


@dataclass(frozen=True)
class Settings:
    """How often, how long and how much; a folder of results holds those of one setting only."""

    quick: bool
    time_limit: float
    memory_limit_mb: float
    repetitions: int
    learners: int
    """Seeds of the learning curve."""
    episodes: int

    def as_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return asdict(self)

    def runs(self, experiment: str) -> Iterator[Run]:
        """Go through the runs of an experiment."""
        if experiment == baselines.EXPERIMENT:
            return baselines.runs(self.repetitions)
        if experiment == ablation.EXPERIMENT:
            strategies = ablation.STRATEGIES[:2] if self.quick else ablation.STRATEGIES
            return ablation.runs(self.repetitions, strategies)
        return policy.runs(self.learners, self.episodes)


def settings(
    *, quick: bool = False, time_limit: float | None = None, repetitions: int | None = None
) -> Settings:
    """Return the settings of a reproduction: those of the paper, or short ones.

    >>> settings(quick=True).time_limit, settings(repetitions=5).learners
    (20.0, 5)

    Raises:
        OptionError: when a limit or a number is not above 0.
    """
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise OptionError(f"the time limit is {time_limit:g} s: it must be above 0")
    if repetitions is not None and repetitions < 1:
        raise OptionError(f"repetitions={repetitions}: use at least 1")
    return Settings(
        quick=quick,
        time_limit=float(time_limit or (20 if quick else 1_800)),
        memory_limit_mb=MEMORY_LIMIT_MB,
        repetitions=repetitions or (1 if quick else 3),
        learners=repetitions or (3 if quick else 10),
        episodes=3_000 if quick else 10_000,
    )
