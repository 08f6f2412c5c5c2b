"""What Q-learning came to: values, how they were learned, and how to act by them."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import notebook
from resolvent.arguments import check_arguments
from resolvent.by_value import ByValue
from resolvent.control.learning import policy_files
from resolvent.control.learning.carrying import carried_values
from resolvent.control.learning.curve import Curve, write_curve
from resolvent.control.learning.evaluating import (
    Evaluation,
    best_actions,
    evaluate_by_playing,
    evaluate_exactly,
)
from resolvent.control.learning.naming import shown_text
from resolvent.control.learning.world_view import WorldView, world_behind
from resolvent.errors import OptionError
from resolvent.traces import TraceSet
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.thumbnails import shown_together

_LATEST = 100
"""How many of the last episodes a notebook tells the mean of."""


@dataclass(frozen=True, eq=False)
class Learned(ByValue):
    """The values that Q-learning found.

    `q[n, a]` is what action `a` is worth in `situations[n]`, the symbol of what
    the environment showed. That is the discounted return, less what the situation
    promises (`potential`) where rewards were shaped. `observation_names` and `action_names` say
    what the environment calls its numbers, the first of them 0, where it says so.
    """

    q: NDArray[np.float64]
    situations: tuple[Symbol, ...]
    curve: Curve
    gamma: float
    evaluations: tuple[Evaluation, ...] = ()
    engine: str = "native"
    first_action: int = field(default=0, repr=False)
    observation_names: tuple[Symbol, ...] | None = field(default=None, repr=False)
    action_names: tuple[Symbol, ...] | None = field(default=None, repr=False)
    potential: NDArray[np.float64] | None = field(default=None, repr=False)

    def action(self, observation: Any) -> int:
        """Return the best action for an observation of the environment it learned in.

        The lowest of those equally good; for what was never met, the first.
        `collect` takes this as a `policy`.
        """
        number = self._numbers.get(as_symbol(observation))
        return self.first_action + (0 if number is None else int(self._policy[number]))

    def evaluate(
        self,
        env: gym.Env[Any, Any],
        *,
        episodes: int | None = None,
        seed: int | None = None,
        max_steps: int = 10_000,
    ) -> Evaluation:
        """Return what acting by the values is worth in an environment.

        For a built-in world, wrapped as when it learned, this is exact over all
        its starts unless `episodes` are asked for. Any other environment is
        played for 100 episodes by default, each cut after `max_steps`.
        """
        if not isinstance(env, gym.Env):
            raise OptionError(f"evaluate needs a gymnasium.Env, not a {type(env).__name__}")
        check_arguments(Learned.evaluate, locals(), leaving=["self", "env"])
        view = world_behind(env)
        if episodes is None and isinstance(view, WorldView):
            tables, places = view.numbering(self.situations)
            return evaluate_exactly(view, tables, self._policy[places], self.gamma)
        return evaluate_by_playing(
            env,
            self.action,
            self.gamma,
            episodes=100 if episodes is None else episodes,
            seed=seed,
            max_steps=max_steps,
        )

    def carried(
        self, before: gym.Env[Any, Any], after: gym.Env[Any, Any], traces: TraceSet
    ) -> "Learned":
        """Return the values for other machines than those they were learned with.

        Both environments are the same world inside `AugmentObservation`, with the machines
        of before and of now. The traces are replayed through both: what was learned in a
        state of before counts in the state of now that is met at the same steps, or at most
        of them; under an observation first, and if it was never met in that state, under any.
        `q_learning(after, start=...)` goes on from there.

        >>> import gymnasium as gym, resolvent as rs
        >>> house = gym.make("resolvent/House-v0")
        >>> few = rs.infer(rs.collect(house, episodes=3, seed=0))
        >>> before = rs.AugmentObservation(house, few)
        >>> learned = rs.q_learning(before, episodes=300)
        >>> more = few.update(rs.collect(house, episodes=100, seed=1))
        >>> after = rs.AugmentObservation(house, more)
        >>> carried = learned.carried(before, after, more.all_traces())
        >>> rs.q_learning(after, episodes=1, start=carried).evaluate(after).ended
        1.0
        """
        situations, rows = carried_values(
            {symbol: number for number, symbol in enumerate(self.situations)},
            before,
            after,
            traces,
        )
        return replace(
            self,
            q=self.q[rows],
            situations=situations,
            evaluations=(),
            potential=None if self.potential is None else self.potential[rows],
        )

    @property
    def returns(self) -> NDArray[np.float64]:
        """What each action is worth in each situation: `q` without any shaping of rewards."""
        return self.q if self.potential is None else self.q + self.potential[:, None]

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, whole or not at all."""
        policy_files.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Learned":
        """Read what `save` wrote."""
        return cls(**policy_files.load(path))

    def save_curve(self, path: str | Path) -> None:
        """Write the learning curve as .csv or .json, whole or not at all.

        A row for each episode; `value` is what acting by the values was then
        worth, where `evaluate_every` asked for it.
        """
        columns = self.curve.columns()
        if self.evaluations:
            value = {one.episode: one.value for one in self.evaluations}
            columns["value"] = [value.get(episode) for episode in columns["episode"]]
        write_curve(Path(path), columns)

    def __repr__(self) -> str:
        return (
            f"Learned({len(self.situations)} situations, {self.q.shape[1]} actions, "
            f"{len(self.curve)} episodes, {int(self.curve.steps.sum())} steps)"
        )

    def _repr_html_(self) -> str:
        """Show in a notebook how it learned, and what it does in the first situations."""
        curve = self.curve
        told = [
            ("situations", f"{len(self.situations):,}, and {self.q.shape[1]} actions"),
            ("learned in", f"{len(curve):,} episodes, {int(curve.steps.sum()):,} steps"),
        ]
        if len(curve):
            late = curve.returns[-_LATEST:]
            told.append((f"mean return of the last {len(late)}", f"{late.mean():.4g}"))
        if self.evaluations:
            told.append(("value, by evaluation", f"{self.evaluations[-1].value:.4g}"))
        first = self.situations[: notebook.MOST_ROWS]
        rows = (
            [
                notebook.Pictured(shown_text(shown, self.observation_names), pictures),
                shown_text(self.action(shown), self.action_names),
                f"{self.q[number].max():.4g}",
            ]
            for number, (shown, pictures) in enumerate(
                zip(first, shown_together(first), strict=True)
            )
        )
        return notebook.panel(
            "learned by Q-learning",
            notebook.figures(told),
            notebook.table(["situation", "action", "value"], rows, len(self.situations)),
        )

    @cached_property
    def _numbers(self) -> dict[Symbol, int]:
        return {symbol: number for number, symbol in enumerate(self.situations)}

    @cached_property
    def _policy(self) -> NDArray[np.int64]:
        return best_actions(self.q)
