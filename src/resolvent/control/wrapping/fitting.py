"""What was given as machines → a `MachinePair` that fits the environment, or a plain refusal."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym

from resolvent.errors import ModelError, OptionError
from resolvent.machines import MachinePair, load
from resolvent.result import InferenceResult
from resolvent.traces.live import AnyEnv, Names
from resolvent.traces.symbols import Symbol

GivenMachines: TypeAlias = MachinePair | InferenceResult | str | Path
"""A pair of machines, the result that holds it, or the file that it was saved to."""


def pair_of(given: GivenMachines) -> MachinePair:
    """Return the pair of machines, from a file if need be."""
    if isinstance(given, MachinePair):
        return given
    if isinstance(given, InferenceResult):
        return given.machines
    if isinstance(given, str | Path):
        return load(given).as_pair()
    raise OptionError(
        f"machines is a {type(given).__name__}: give a MachinePair, what infer returned, "
        "or the path of a model file"
    )


def check_fit(
    machines: MachinePair,
    env: AnyEnv,
    observation_space: gym.Space[Any],
    action_space: gym.Space[Any],
) -> None:
    """Refuse machines that were learned in another environment, as far as can be told.

    Machines need not know all actions and observations, for traces need not show
    all, and may know observations of a larger world. But they cannot know actions
    that the environment lacks, nor share no observation with it. `env` is the one
    whose names count; what cannot be listed is not checked.

    >>> from resolvent.environments import House
    >>> from resolvent.pipeline import infer
    >>> from resolvent.traces import Trace, TraceSet
    >>> shop = infer(TraceSet([Trace(["street", "shop"], [None, "bell"], ["enter"], [0])]))
    >>> check_fit(shop.machines, House(), House().observation_space, House().action_space)
    Traceback (most recent call last):
    resolvent.errors.ModelError: the machines know the action 'enter', which the environment lacks \
(it has 'up', 'down', 'left', …): they were learned in another one
    """
    actions = Names(env, "action").of_space(action_space)
    if actions is not None:
        lacking = [action for action in machines.transition.actions if action not in actions]
        if lacking:
            raise ModelError(
                f"the machines know the action {_examples(lacking)}, which the environment lacks "
                f"(it has {_examples(actions)}): they were learned in another one"
            )
    seen = machines.transition.observations
    observations = Names(env, "observation").of_space(observation_space)
    if observations is not None and len(seen) and not any(one in seen for one in observations):
        raise ModelError(
            f"the machines know none of the environment's observations "
            f"(they know {_examples(seen)}; it has {_examples(observations)}): "
            f"they were learned in another one"
        )


def _examples(symbols: Iterable[Symbol]) -> str:
    first = list(islice(symbols, 4))
    return ", ".join([*map(repr, first[:3]), *("…" for _ in first[3:])])
