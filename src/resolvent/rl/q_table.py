"""The result of Q-learning: values, the learning curve, the policy, and its files."""

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util.files import atomic_write, read_json
from resolvent._util.records import ByValue
from resolvent._util.text import short
from resolvent._util.validation import check_arguments, check_at_least
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.rl.env import check_env
from resolvent.rl.rollout import Step, play_episode
from resolvent.rl.tabular import Evaluation, TabularView, evaluate_exactly, tabular_view
from resolvent.traces.symbols import Symbol, as_symbol, finite_reward, is_mapping, symbol_text

FORMAT = "resolvent-policy"
VERSION = 1
CURVE_SUFFIXES = (".csv", ".json")


@dataclass(frozen=True, eq=False)
class Curve(ByValue):
    """A learning curve with an entry for each episode; `epsilons` are the exploration rates."""

    returns: NDArray[np.float64]
    discounted_returns: NDArray[np.float64]
    steps: NDArray[np.int64]
    epsilons: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def total_steps(self) -> NDArray[np.int64]:
        """The number of steps up to the end of each episode."""
        return np.cumsum(self.steps)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of the curve's files."""
        return {
            "episode": list(range(1, len(self) + 1)),
            "return": self.returns.tolist(),
            "discounted_return": self.discounted_returns.tolist(),
            "steps": self.steps.tolist(),
            "epsilon": self.epsilons.tolist(),
            "total_steps": self.total_steps.tolist(),
        }


def check_curve_name(path: Path) -> None:
    """Raise `OptionError` for a curve's file whose suffix is unknown."""
    if path.suffix not in CURVE_SUFFIXES:
        raise OptionError(f"{path}: a learning curve is written as {' or '.join(CURVE_SUFFIXES)}")


@dataclass(frozen=True, eq=False)
class QTable(ByValue):
    """The values that Q-learning learned.

    `q[n, a]` is the discounted return of action `a` for `observations[n]`, the symbol of an
    observation of the environment. `observation_names` and `action_names` are the environment's
    names of the numbers from 0 on, if it has names.
    """

    q: NDArray[np.float64]
    observations: tuple[Symbol, ...]
    curve: Curve
    gamma: float
    evaluations: tuple[Evaluation, ...] = ()
    engine: str = "native"
    first_action: int = field(default=0, repr=False)
    observation_names: tuple[Symbol, ...] | None = field(default=None, repr=False)
    action_names: tuple[Symbol, ...] | None = field(default=None, repr=False)

    def action(self, observation: Any) -> int:
        """Return the best action for an observation of the environment.

        Ties go to the lowest action; without values, the first action is returned.
        `collect` takes this as a `policy`.
        """
        number = self._numbers.get(as_symbol(observation))
        return self.first_action + (0 if number is None else int(self._policy[number]))

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[int, Any]:
        """Return the best action for an observation, and `state` unchanged.

        The arguments are those of Stable-Baselines3's policies; the table is deterministic, takes
        one observation at a time and needs no memory.
        """
        return self.action(observation), state

    def evaluate(
        self,
        env: gym.Env[Any, Any],
        *,
        episodes: int | None = None,
        seed: int | None = None,
        max_steps: int = 10_000,
    ) -> Evaluation:
        """Return the value of the policy in an environment.

        For a built-in world, wrapped as during learning, it is exact over all its starts,
        unless `episodes` is given. Any other environment is played for 100 episodes by default,
        each of at most `max_steps`.
        """
        check_env(env, gym.Env, "evaluate")
        check_arguments(QTable.evaluate, locals(), leaving=["self", "env"])
        view = tabular_view(env)
        if episodes is None and isinstance(view, TabularView):
            tables, rows = view.numbering(self.observations)
            return evaluate_exactly(view, tables, self._policy[rows], self.gamma)
        episodes = 100 if episodes is None else episodes
        check_at_least(1, episodes=episodes, max_steps=max_steps)
        check_at_least(0, seed=seed)
        actor = _Evaluator(self.action, self.gamma)
        ends = [
            play_episode(env, actor, seed=seed if number == 0 else None, max_steps=max_steps)[0]
            for number in range(episodes)
        ]
        return Evaluation(math.fsum(actor.returns) / episodes, sum(ends) / episodes, exact=False)

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, atomically."""
        content = msgspec.to_builtins(self, enc_hook=np.ndarray.tolist)
        for evaluation in content["evaluations"]:
            if not math.isfinite(evaluation["value"]):
                evaluation["value"] = repr(evaluation["value"])  # JSON has no infinity
        file = {"format": FORMAT, "version": VERSION, **content}
        with atomic_write(path) as stream:
            stream.write(msgspec.json.encode(file) + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> "QTable":
        """Read a file that `save` wrote."""
        content = read_json(path, dict[str, Any], "a policy that Resolvent wrote")
        header = content.pop("format", None), content.pop("version", None)
        if header != (FORMAT, VERSION):
            raise ModelError(
                f"{path}: a policy is {FORMAT} {VERSION}, this is {header[0]} {header[1]}"
            )
        unknown = content.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise ModelError(f"{path}: not a policy that Resolvent wrote: it has {min(unknown)!r}")
        try:
            table = msgspec.convert(content, cls, strict=False, dec_hook=_decoded)
        except (ValueError, TraceError, RecursionError, OverflowError) as error:
            raise ModelError(f"{path}: not a policy that Resolvent wrote: {error}") from error
        if not _fits_together(table):
            raise ModelError(f"{path}: its rows do not fit together")
        return table

    def save_curve(self, path: str | Path) -> None:
        """Write the learning curve as .csv or .json, atomically.

        It has a row for each episode; `value` is the evaluation after it, if any.
        """
        path = Path(path)
        check_curve_name(path)
        columns = self.curve.columns()
        if self.evaluations:
            value = {evaluation.episode: evaluation.value for evaluation in self.evaluations}
            columns["value"] = [value.get(episode) for episode in columns["episode"]]
        with atomic_write(path) as file:
            if path.suffix == ".json":
                file.write(msgspec.json.encode(columns) + b"\n")
                return
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
            file.write(text.getvalue().encode())

    def __repr__(self) -> str:
        return (
            f"QTable({len(self.observations)} observations, {self.q.shape[1]} actions, "
            f"{len(self.curve)} episodes, {int(self.curve.steps.sum())} steps)"
        )

    def _repr_html_(self) -> str:
        """Show the learning and the first observations in a notebook."""
        from resolvent.viz.notebook import html_of_q_table

        return html_of_q_table(self)

    @cached_property
    def _numbers(self) -> dict[Symbol, int]:
        return {symbol: number for number, symbol in enumerate(self.observations)}

    @cached_property
    def _policy(self) -> NDArray[np.int64]:
        best: NDArray[np.int64] = self.q.argmax(axis=1)  # the lowest of equally good actions
        return best


class _Evaluator:
    """An actor that follows a policy, and sums the discounted rewards of each episode."""

    def __init__(self, action: Callable[[Any], Any], gamma: float) -> None:
        self.act, self.returns = action, list[float]()
        self._gamma, self._weight = gamma, 1.0

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        self.returns.append(0.0)
        self._weight = 1.0

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        self.returns[-1] += self._weight * finite_reward(step[1])
        self._weight *= self._gamma


def observation_text(symbol: Symbol, names: tuple[Symbol, ...] | None = None) -> str:
    """Return an observation as text; `names` are those of the numbers that observations are."""
    if not isinstance(symbol, tuple) or not is_mapping(symbol):
        return short(symbol_text(name_of_number(symbol, names)))
    return ", ".join(
        f"{short(part).replace('_', ' ')} "
        f"{short(symbol_text(name_of_number(value, names if part == 'observation' else None)))}"
        for part, value in symbol
    )


def name_of_number(value: Symbol, names: tuple[Symbol, ...] | None) -> Symbol:
    """Return the name of a number if it has one."""
    if names is None or type(value) is not int or not 0 <= value < len(names):
        return value
    return names[value]


def _decoded(kind: Any, value: Any) -> Any:
    """Return a symbol, or a column as an array of its type; `ValueError` for other values."""
    if kind is Symbol:
        return as_symbol(value)
    try:
        array = np.array(value)
    except ValueError:
        raise ValueError("its rows do not fit together") from None
    (dtype,) = get_args(get_args(kind)[1])
    if array.size and not np.can_cast(array.dtype, dtype):
        raise ValueError(f"numbers are needed, not {short(repr(value), 60)}")
    return array.astype(dtype)


def _fits_together(table: QTable) -> bool:
    """Return whether the rows of a table and of its curve are equally many, and names enough."""
    curve = table.curve
    columns = (curve.returns, curve.discounted_returns, curve.steps, curve.epsilons)
    count, names = len(table.observations), table.action_names
    return (
        table.q.ndim == 2
        and table.q.shape[1] > 0
        and len(table.q) == count == len(set(table.observations))
        and {column.shape for column in columns} == {(curve.steps.size,)}
        and curve.steps.min(initial=0) >= 0
        and 0 <= table.gamma <= 1
        # Every action has a name; the first name is that of action 0.
        and (names is None or 0 <= table.first_action <= len(names) - table.q.shape[1])
    )
