"""The result of Q-learning: values, the learning curve, the policy, and its files."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import msgspec
import numpy as np
from numpy.typing import NDArray

from resolvent._util import html as notebook
from resolvent._util.files import atomic_write, read_json
from resolvent._util.records import ByValue
from resolvent._util.text import short
from resolvent._util.validation import check_arguments
from resolvent.errors import ModelError, OptionError, TraceError
from resolvent.rl.tabular import (
    Evaluation,
    TabularView,
    best_actions,
    evaluate_by_playing,
    evaluate_exactly,
    tabular_view,
)
from resolvent.rl.transfer import transferred_rows
from resolvent.traces import TraceSet
from resolvent.traces.symbols import Symbol, as_symbol, is_mapping, symbol_text
from resolvent.traces.thumbnails import thumbnails_of_symbols

CURVE_SUFFIXES = (".csv", ".json")

_LATEST = 100
"""Number of last episodes whose mean return a notebook shows."""


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


def _write_curve(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    check_curve_name(path)
    with atomic_write(path) as file:
        if path.suffix == ".json":
            file.write(msgspec.json.encode(columns) + b"\n")
            return
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        file.write(text.getvalue().encode())


@dataclass(frozen=True, eq=False)
class QTable(ByValue):
    """The values that Q-learning found.

    `q[n, a]` is the value of action `a` in `situations[n]`, the symbol of an observation of the
    environment: the discounted return, less the potential if rewards were shaped.
    `observation_names` and `action_names` are the environment's names of the numbers from 0 on,
    if it has names.
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
        """Return the best action for an observation of the environment.

        Ties go to the lowest action; without values, the first action is returned.
        `collect` takes this as a `policy`.
        """
        number = self._numbers.get(as_symbol(observation))
        return self.first_action + (0 if number is None else int(self._policy[number]))

    def predict(self, observation: Any, state: Any = None, **_: Any) -> tuple[int, Any]:
        """Return the best action and `state` unchanged, as Stable-Baselines3's policies do.

        One observation at a time; further arguments of theirs change nothing.
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
        if not isinstance(env, gym.Env):
            raise OptionError(f"evaluate needs a gymnasium.Env, not a {type(env).__name__}")
        check_arguments(QTable.evaluate, locals(), leaving=["self", "env"])
        view = tabular_view(env)
        if episodes is None and isinstance(view, TabularView):
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
    ) -> "QTable":
        """Return the values for other machines than those they were learned with.

        Both environments are the same world inside `AugmentObservation`, with the old and the
        new machines. Replaying the traces through both finds, for each new state, the old state
        that occurs at most of the same steps: under the same observation first, else under any.
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
        situations, rows = transferred_rows(self._numbers, before, after, traces)
        return replace(
            self,
            q=self.q[rows],
            situations=situations,
            evaluations=(),
            potential=None if self.potential is None else self.potential[rows],
        )

    @property
    def returns(self) -> NDArray[np.float64]:
        """The return of each action in each situation: `q` without the shaping of rewards."""
        return self.q if self.potential is None else self.q + self.potential[:, None]

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, atomically."""
        _save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "QTable":
        """Read a file that `save` wrote."""
        return _load(path)

    def save_curve(self, path: str | Path) -> None:
        """Write the learning curve as .csv or .json, atomically.

        It has a row for each episode; `value` is the evaluation after it, if any.
        """
        columns = self.curve.columns()
        if self.evaluations:
            value = {evaluation.episode: evaluation.value for evaluation in self.evaluations}
            columns["value"] = [value.get(episode) for episode in columns["episode"]]
        _write_curve(Path(path), columns)

    def __repr__(self) -> str:
        return (
            f"Learned({len(self.situations)} situations, {self.q.shape[1]} actions, "
            f"{len(self.curve)} episodes, {int(self.curve.steps.sum())} steps)"
        )

    def _repr_html_(self) -> str:
        """Show the learning and the first situations in a notebook."""
        curve = self.curve
        figures = [
            ("situations", f"{len(self.situations):,}, and {self.q.shape[1]} actions"),
            ("learned in", f"{len(curve):,} episodes, {int(curve.steps.sum()):,} steps"),
        ]
        if len(curve):
            late = curve.returns[-_LATEST:]
            figures.append((f"mean return of the last {len(late)}", f"{late.mean():.4g}"))
        if self.evaluations:
            figures.append(("value, by evaluation", f"{self.evaluations[-1].value:.4g}"))
        first = self.situations[: notebook.MOST_ROWS]
        rows = (
            [
                notebook.Pictured(observation_text(symbol, self.observation_names), pictures),
                observation_text(self.action(symbol), self.action_names),
                f"{self.q[number].max():.4g}",
            ]
            for number, (symbol, pictures) in enumerate(
                zip(first, thumbnails_of_symbols(first), strict=True)
            )
        )
        return notebook.panel(
            "learned by Q-learning",
            notebook.figures(figures),
            notebook.table(["situation", "action", "value"], rows, len(self.situations)),
        )

    @cached_property
    def _numbers(self) -> dict[Symbol, int]:
        return {symbol: number for number, symbol in enumerate(self.situations)}

    @cached_property
    def _policy(self) -> NDArray[np.int64]:
        return best_actions(self.q)


def observation_text(symbol: Symbol, names: tuple[Symbol, ...] | None = None) -> str:
    """Return an observation as text, the parts of a mapping with their keys.

    `names` are those of the numbers that observations are.

    >>> observation_text((("observation", 1), ("reward_state", 1)), ("hall", "attic"))
    'observation attic, reward state 1'
    >>> observation_text(1, ("hall", "attic")), observation_text((1, 2), ("hall", "attic"))
    ('attic', '(1, 2)')
    """
    if not isinstance(symbol, tuple) or not is_mapping(symbol):
        return short(symbol_text(name_of_number(symbol, names)))
    return ", ".join(
        f"{short(part).replace('_', ' ')} "
        f"{short(symbol_text(name_of_number(value, names if part == 'observation' else None)))}"
        for part, value in symbol
    )


def name_of_number(value: Symbol, names: tuple[Symbol, ...] | None) -> Symbol:
    """Return the name of a number if it has one.

    >>> names = ("up", "down")
    >>> name_of_number(1, names), name_of_number(7, names), name_of_number(1, None)
    ('down', 7, 1)
    """
    if names is None or type(value) is not int or not 0 <= value < len(names):
        return value
    return names[value]


def observed(symbol: Symbol) -> Symbol:
    """Return the part "observation" of an observation, or all of it if it has none.

    >>> observed((("observation", "hall"), ("reward_state", 1))), observed("hall")
    ('hall', 'hall')
    """
    if not isinstance(symbol, tuple) or not is_mapping(symbol):
        return symbol
    return next((value for part, value in symbol if part == "observation"), symbol)


FORMAT = "resolvent-policy"
VERSION = 1

# Numbers that the arrays of a table can hold.
_Number = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class _Evaluation(msgspec.Struct, forbid_unknown_fields=True):
    value: str  # as text, for JSON has no infinity
    ended: float
    exact: bool
    episode: _Count | None
    steps: _Count | None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    gamma: Annotated[float, msgspec.Meta(ge=0, le=1)]
    engine: str
    first_action: _Number
    situations: list[Any]
    q: list[list[float]]
    returns: list[float]
    discounted_returns: list[float]
    steps: list[_Count]
    epsilons: list[float]
    evaluations: list[_Evaluation]
    observation_names: list[Any] | None = None
    action_names: list[Any] | None = None
    potential: list[float] | msgspec.UnsetType = msgspec.UNSET


def _save(table: QTable, path: str | Path) -> None:
    curve = table.curve
    observation_names, action_names = table.observation_names, table.action_names
    content = _File(
        format=FORMAT,
        version=VERSION,
        gamma=table.gamma,
        engine=table.engine,
        first_action=table.first_action,
        situations=list(table.situations),
        q=table.q.tolist(),
        returns=curve.returns.tolist(),
        discounted_returns=curve.discounted_returns.tolist(),
        steps=curve.steps.tolist(),
        epsilons=curve.epsilons.tolist(),
        evaluations=[
            _Evaluation(repr(each.value), each.ended, each.exact, each.episode, each.steps)
            for each in table.evaluations
        ],
        observation_names=None if observation_names is None else list(observation_names),
        action_names=None if action_names is None else list(action_names),
        potential=msgspec.UNSET if table.potential is None else table.potential.tolist(),
    )
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(content) + b"\n")


def _load(path: str | Path) -> QTable:
    content = read_json(path, _File, "a policy that Resolvent wrote")
    try:
        situations = tuple(map(as_symbol, content.situations))
        evaluations = tuple(
            Evaluation(float(each.value), each.ended, each.exact, each.episode, each.steps)
            for each in content.evaluations
        )
        observation_names, action_names = map(
            _symbols, (content.observation_names, content.action_names)
        )
    except (ValueError, TraceError, RecursionError) as error:
        raise ModelError(f"{path}: not a policy that Resolvent wrote: {error}") from error
    if (content.format, content.version) != (FORMAT, VERSION):
        raise ModelError(
            f"{path}: a policy is {FORMAT} {VERSION}, this is {content.format} {content.version}"
        )
    lengths = {len(row) for row in content.q}
    potential = None
    if not isinstance(content.potential, msgspec.UnsetType):
        potential = np.array(content.potential, np.float64)
    columns = (content.returns, content.discounted_returns, content.steps, content.epsilons)
    if (
        len(lengths) != 1
        or 0 in lengths
        or not len(content.q) == len(situations) == len(set(situations))
        or len({len(column) for column in columns}) != 1
        or (potential is not None and len(potential) != len(content.q))
        # Every action has a name; the first name is that of action 0.
        or (
            action_names is not None
            and not 0 <= content.first_action <= len(action_names) - max(lengths)
        )
    ):
        raise ModelError(f"{path}: its rows do not fit together")
    return QTable(
        np.array(content.q, np.float64),
        situations,
        Curve(
            np.array(content.returns, np.float64),
            np.array(content.discounted_returns, np.float64),
            np.array(content.steps, np.int64),
            np.array(content.epsilons, np.float64),
        ),
        content.gamma,
        evaluations,
        content.engine,
        content.first_action,
        observation_names,
        action_names,
        potential,
    )


def _symbols(names: list[Any] | None) -> tuple[Symbol, ...] | None:
    return None if names is None else tuple(map(as_symbol, names))
