"""A model → what a learner may take from it: imagined steps, and which situations are promising.

Steps are given in the order of the environment's actions, situations in the
order of the model's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from resolvent import _core
from resolvent.control.learning.imagined import ImaginedSteps, shown_situations, shown_values
from resolvent.control.planning.model import Model
from resolvent.control.planning.situations import Situation
from resolvent.control.shaping.potential import Potential
from resolvent.control.wrapping.augment_observation import AugmentObservation
from resolvent.errors import ModelError
from resolvent.traces.symbols import Symbol, as_symbol


@dataclass(frozen=True, eq=False)
class Guidance:
    """What a learner takes from a model.

    `values` are the model's observations as the environment gives them, `codes` the
    model's codes of these, and `situations` the model's with such observations.
    `steps` is None where nothing is imagined; `potential` is what situations
    promise, all 0 where rewards are not shaped.
    """

    augmented: AugmentObservation
    values: tuple[Any, ...]
    codes: dict[Symbol, int]
    situations: tuple[Situation, ...]
    steps: _core.KnownSteps | None
    potential: Potential

    @classmethod
    def of(
        cls,
        augmented: AugmentObservation,
        model: Model,
        *,
        counterfactual: bool,
        potential: Potential | None,
    ) -> "Guidance":
        """Take from a model what was asked for."""
        if potential is not None and potential.model != model:
            raise ModelError(
                "the plan to shape rewards by is of another model than the one given: leave out "
                "model, and it is the plan's own"
            )
        values = shown_values(augmented, model)
        sizes = tuple(machine.states for machine in augmented.machines.values())
        return cls(
            augmented,
            tuple(values),
            {as_symbol(value): code for code, value in enumerate(values)},
            shown_situations(augmented, model),
            _steps(augmented, model) if counterfactual else None,
            potential or Potential(model, np.zeros(len(model)), np.zeros(sizes)),
        )

    def observation_code(self, observation: Any) -> int | None:
        """Return the model's code of an observation as the environment gives it."""
        return self.codes.get(as_symbol(observation))


def _steps(augmented: AugmentObservation, model: Model) -> _core.KnownSteps:
    """Return all steps that the model knows."""
    steps = ImaginedSteps.of(augmented.env, model)
    return _core.known_steps(
        np.ascontiguousarray(model.observation),
        len(model.observations),
        steps.following.ravel(),
        steps.reward.ravel(),
        steps.outcome.ravel(),
        steps.following.shape[1],
    )
