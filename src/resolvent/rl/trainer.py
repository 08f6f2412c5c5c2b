"""Train a table by Q-learning: an environment → the value of each action for each observation.

Paper: the appendix "Policy Learning with Augmented State Representation". Episodes are stepped
here, or played on the tables of a tabular environment. Both give the same values, bit for bit:
they make the same updates with the same random numbers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.validation import check_arguments, check_at_least, check_table
from resolvent.errors import ModelError, OptionError, locating
from resolvent.planning.model import Model
from resolvent.planning.plan import Plan
from resolvent.rl.augment import AugmentObservation
from resolvent.rl.env import SymbolEncoder, check_env, wrapper_inside
from resolvent.rl.q_table import Curve, QTable
from resolvent.rl.rollout import Step, play_episode
from resolvent.rl.shape import Potential, ShapeReward, values_of_states
from resolvent.rl.tabular import (
    Evaluation,
    TabularView,
    VisibleModel,
    evaluate_exactly,
    tabular_view,
)
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.symbols import Symbol, as_symbol, finite_reward
from resolvent.traces.vocabulary import Codes

Engine: TypeAlias = Literal["auto", "native", "python"]
_STEPS_PER_CALL = 1 << 17  # number of steps of one call of the core, so that Ctrl-C gets through


def q_learning(
    env: gym.Env[Any, Any],
    *,
    episodes: int = 1500,
    seed: int = 0,
    alpha: float = 0.1,
    gamma: float = 0.95,
    epsilon: float = 0.3,
    epsilon_decay: float = 0.995,
    epsilon_min: float = 0.01,
    initial_value: float = 0.0,
    max_steps: int | None = None,
    model: Model | None = None,
    counterfactual: bool = False,
    shaping: bool | Plan = False,
    engine: Engine = "auto",
    evaluate_every: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> QTable:
    """Learn the value of each action, in a table over the environment's observations.

    Inside `AugmentObservation`, observations include the states of the machines, which makes
    the world Markovian. The defaults are the paper's. The same seed gives the same values.

    Args:
        env: The environment, with Discrete actions.
        episodes: The number of episodes.
        seed: Of the environment and of the learner.
        alpha: The learning rate.
        gamma: The discount factor.
        epsilon: The probability of a random action, in the first episode.
        epsilon_decay: The factor of `epsilon` after each episode.
        epsilon_min: The lowest `epsilon`.
        initial_value: The initial value of every action; one above any return makes the learner
            try everything.
        max_steps: Truncate episodes after this number of steps; the value of the last state
            still counts.
        model: Of the same machines (`Model.of(machines, traces)`), for the next two.
        counterfactual: Learn from each step also the outcome of its action under the same
            observation in every other state of the machines that the model knows.
        shaping: Reward transitions to more promising states of the machines, or with a plan to
            more promising augmented states, as `ShapeReward` does. Returns in the curve are
            without it.
        engine: "native" plays a built-in world, alone or with a Transition and a Reward Machine,
            on its tables; "python" steps any environment. Both give the same values.
        evaluate_every: In a built-in world, the number of episodes between exact evaluations
            over all starts.
        progress: Called with the share of finished episodes.

    >>> import gymnasium as gym, resolvent as rs
    >>> env = gym.make("resolvent/House-v0")
    >>> pair = rs.infer(rs.collect(env, episodes=200, seed=0)).machines
    >>> learned = q_learning(rs.AugmentObservation(env, pair), episodes=300)
    >>> round(learned.evaluate(rs.AugmentObservation(env, pair)).value, 4)
    0.7738
    """
    actions = _checked_actions(env)
    check_arguments(q_learning, locals(), leaving=["env"])
    _check_ranges(locals())
    view = _checked_view(env, engine, evaluate_every)
    guidance = _guidance(env, model, counterfactual, shaping, gamma)
    learner = _core.QLearner(int(actions.n), alpha, gamma, seed, initial_value)
    is_native = isinstance(view, TabularView) and engine != "python"
    trainer = (TabularTrainer if is_native else LiveTrainer)(env, learner, gamma, guidance, view)
    epsilons = [epsilon]
    while len(epsilons) < episodes:
        epsilons.append(max(epsilon_min, epsilons[-1] * epsilon_decay))
    evaluations = []
    for number, rate in enumerate(epsilons):
        with locating(f"episode {number}"):
            trainer.play(seed if number == 0 else None, rate, max_steps)
        if isinstance(view, TabularView) and evaluate_every and (number + 1) % evaluate_every == 0:
            evaluations.append(trainer.evaluate(view))
        if progress is not None:
            progress((number + 1) / episodes)
    return trainer.table(epsilons, evaluations, is_shaped=bool(shaping))


@dataclass(frozen=True, eq=False)
class Guidance:
    """The parts of a model that a Q-learner uses.

    `steps` is None without counterfactual steps; `potential` is 0 everywhere without shaping.
    """

    model: VisibleModel
    steps: _core.KnownSteps | None
    potential: Potential


@dataclass
class Trainer(ABC):
    """A learner in an environment, and the return, discounted return and length of its episodes.

    The learner's table has a row for each of the model's augmented states first, then for others in
    the order in which they are met.
    """

    engine: ClassVar[str]

    env: gym.Env[Any, Any]
    learner: _core.QLearner
    gamma: float
    guidance: Guidance | None
    view: TabularView | str
    episodes: list[tuple[float, float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first_action = int(self.env.action_space.start)  # type: ignore[attr-defined]
        if self.guidance is not None:
            for potential in self.guidance.potential.of_augmented_state.tolist():
                self.learner.add(potential)

    @abstractmethod
    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> None:
        """Play an episode, learning at each step."""

    @abstractmethod
    def symbols(self) -> list[Symbol]:
        """Return the observation of each row."""

    @abstractmethod
    def potentials(self) -> NDArray[np.float64]:
        """Return the potential of each row."""

    def evaluate(self, view: TabularView) -> Evaluation:
        """Return the exact value of the present policy."""
        tables, rows = self.in_tables(view)
        value = evaluate_exactly(view, tables, self.values()[rows].argmax(axis=1), self.gamma)
        steps = sum(length for _, _, length in self.episodes)
        return replace(value, episode=len(self.episodes), steps=steps)

    def in_tables(self, view: TabularView) -> tuple[_core.TabularTrainer, Any]:
        """Return tables that number observations, and the rows of these."""
        return view.numbering(self.symbols())

    def values(self) -> NDArray[np.float64]:
        """Return the table: a row for each observation, a column for each action."""
        return self.learner.values().reshape(self.learner.states, -1)

    def table(
        self, epsilons: Sequence[float], evaluations: Sequence[Evaluation], *, is_shaped: bool
    ) -> QTable:
        """Return what was learned, given the exploration rate of each episode."""
        total, discounted, steps = zip(*self.episodes, strict=True)
        curve = Curve(
            np.array(total), np.array(discounted), np.array(steps, np.int64), np.array(epsilons)
        )
        values = self.values()
        if is_shaped:
            values += self.potentials()[:, None]
        names = [SymbolEncoder(self.env, column).names for column in (OBSERVATION, ACTION)]
        learned = values, tuple(self.symbols()), curve, self.gamma, tuple(evaluations)
        return QTable(*learned, self.engine, self.first_action, *names)


class LiveTrainer(Trainer):
    """Steps any environment: a trainer that is the actor of `play_episode`."""

    engine = "python"

    def __post_init__(self) -> None:
        super().__post_init__()
        guidance, self._row, self._action = self.guidance, 0, 0
        symbols = [] if guidance is None else guidance.model.symbols()
        self._rows = {symbol: row for row, symbol in enumerate(symbols)}
        self._potentials: list[float] = []
        if guidance is not None:
            self._potentials = guidance.potential.of_augmented_state.tolist()
        self._inner_code: int | None = None

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> None:
        """Play an episode, a step at a time."""
        self._epsilon, self._weight = epsilon, 1.0
        self._total, self._discounted, self._length = 0.0, 0.0, 0
        play_episode(self.env, self, seed=seed, max_steps=max_steps)
        self.episodes.append((self._total, self._discounted, self._length))

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Look up the row of the first observation."""
        self._row = self._row_of(observation)

    def act(self, observation: Any) -> int:
        """Return the learner's action."""
        self._action = self.learner.choose(self._row, self._epsilon)
        if self.guidance is not None and self.guidance.steps is not None:
            model = self.guidance.model
            self._inner_code = model.code(model.augmented.inner_observation)
        return self.first_action + self._action

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Learn from a step, and from its counterfactual steps."""
        next_observation, reward, terminated, _, _ = step
        reward, row = finite_reward(reward), self._row
        next_row = row if terminated else self._row_of(next_observation)
        self.learner.update(row, self._action, reward, next_row, bool(terminated))
        steps = None if self.guidance is None else self.guidance.steps
        if steps is not None and self._inner_code is not None:
            self.learner.learn_counterfactual(steps, self._inner_code, self._action, row)
        self._total += reward
        self._discounted += self._weight * reward
        self._weight *= self.gamma
        self._length += 1
        self._row = next_row

    def symbols(self) -> list[Symbol]:
        """Return the observations so far, those of the model first."""
        return list(self._rows)

    def potentials(self) -> NDArray[np.float64]:
        """Return the potentials at the first visit of each observation."""
        return np.array(self._potentials)

    def _row_of(self, observation: Any) -> int:
        symbol = as_symbol(observation)
        row = self._rows.get(symbol)
        if row is None:
            row = self._rows[symbol] = len(self._rows)
            potential = 0.0
            if self.guidance is not None:
                _, *states = self.guidance.model.augmented.augmented_state
                potential = float(self.guidance.potential.of_states[*states])
            actions = int(self.env.action_space.n)  # type: ignore[attr-defined]
            check_table(row + 1, actions, 8, "observations by actions")
            self._potentials.append(potential)
            self.learner.add(potential)
        return row


class TabularTrainer(Trainer):
    """Plays on the tables of a tabular environment; each start comes from its `reset`."""

    engine = "native"
    view: TabularView

    def __post_init__(self) -> None:
        super().__post_init__()
        view, guidance = self.view, self.guidance
        if guidance is None:
            self.tables = view.episode_tables()
            return
        codes = map(guidance.model.code, range(len(view.world.mechanics.observations)))
        known_observation = np.array([-1 if code is None else code for code in codes], np.int32)
        potential = guidance.potential.of_states
        self.tables = view.episode_tables(guidance.steps, known_observation, potential)
        self.tables.add_states(np.array(guidance.model.augmented_states, np.int32).ravel())

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> None:
        """Play an episode, many steps at a time."""
        self.env.reset(seed=seed)
        self.tables.begin(self.learner, self.view.world.state)
        remaining = min(limit or math.inf for limit in (max_steps, self.view.max_steps))
        while remaining > 0:
            steps = int(min(remaining, _STEPS_PER_CALL))
            if self.tables.run(self.learner, epsilon, steps):
                break
            remaining -= steps
        self.episodes.append(self.tables.result)

    def in_tables(self, view: TabularView) -> tuple[_core.TabularTrainer, Any]:
        """Return its own tables, which number all rows."""
        return self.tables, slice(None)

    def symbols(self) -> list[Symbol]:
        """Return the environment's observations."""
        return list(map(self.view.symbol, self._codes().tolist()))

    def potentials(self) -> NDArray[np.float64]:
        """Return the model's potentials, by states alone for what it does not know."""
        if self.guidance is None:
            return np.zeros(self.learner.states)
        _, transition, reward = self._codes().T
        potential = self.guidance.potential
        by_states: NDArray[np.float64] = potential.of_states[transition, reward]
        by_states[: len(potential.of_augmented_state)] = potential.of_augmented_state
        return by_states

    def _codes(self) -> Codes:
        codes: Codes = self.tables.codes().reshape(-1, self.view.width)
        return codes


def _checked_actions(env: Any) -> gym.spaces.Discrete:
    check_env(env, gym.Env, "q_learning")
    if not isinstance(env.action_space, gym.spaces.Discrete):
        raise OptionError(f"q_learning needs Discrete actions, not {env.action_space}")
    augmented = wrapper_inside(env, AugmentObservation)
    if (
        augmented is not None
        and augmented.machines.preprocessor.discretize is not None
        and env.observation_space is augmented.observation_space
    ):
        raise OptionError(
            "q_learning has a value for each observation, and these hold numbers that rarely "
            "repeat, since only the machines discretize them: use a learner for such observations, "
            "as Stable-Baselines3 has"
        )
    return env.action_space


def _check_ranges(options: Mapping[str, Any]) -> None:
    counts = ("episodes", "max_steps", "evaluate_every")
    check_at_least(1, **{name: options[name] for name in counts})
    if not 0 <= options["seed"] < 1 << 64:
        raise OptionError(f"seed={options['seed']}: use 0 or more, below 2**64")
    for name in ("alpha", "gamma", "epsilon", "epsilon_decay", "epsilon_min"):
        if not 0 <= options[name] <= 1:
            raise OptionError(f"{name}={options[name]}: use a number from 0 to 1")
    if not math.isfinite(options["initial_value"]):
        raise OptionError(f"initial_value={options['initial_value']}: use a finite number")


def _checked_view(
    env: gym.Env[Any, Any], engine: Engine, evaluate_every: int | None
) -> TabularView | str:
    """Return the tabular view of an environment, or the reason why there is none."""
    view = tabular_view(env)
    if isinstance(view, str) and engine == "native":
        raise OptionError(f"engine='native': {view}; use engine='auto'")
    if isinstance(view, str) and evaluate_every is not None:
        raise OptionError(
            f"evaluate_every needs a built-in world, and {view}: evaluate afterwards instead"
        )
    return view


def _guidance(
    env: gym.Env[Any, Any],
    model: Model | None,
    counterfactual: bool,
    shaping: bool | Plan,
    gamma: float,
) -> Guidance | None:
    if not (counterfactual or shaping):
        return None
    name = "counterfactual" if counterfactual else "shaping"
    if isinstance(shaping, Plan):
        if model is not None and shaping.model != model:
            raise ModelError(
                "shaping is a plan of another model than `model`: leave out model to use the plan's"
            )
        model = shaping.model
    if model is None:
        raise OptionError(f"{name} needs a model: pass model=Model.of(machines, traces)")
    if shaping and gamma == 1:
        raise OptionError("shaping needs gamma below 1")
    augmented = wrapper_inside(env, AugmentObservation)
    if augmented is None:
        raise OptionError(f"{name} needs the machines' states: wrap env in AugmentObservation")
    if env.observation_space is not augmented.observation_space:
        raise OptionError(
            f"{name} needs the observations of AugmentObservation, and {env} changes them: "
            "leave out the wrappers around it"
        )
    if wrapper_inside(env, ShapeReward) is not None:
        raise OptionError(
            f"{name}: env is inside ShapeReward, which shapes only the rewards of real steps: "
            f"leave it out, and give shaping=plan"
        )
    visible = VisibleModel(augmented, model)
    potential = Potential(model, np.zeros(len(model)), np.zeros(visible.sizes))
    if isinstance(shaping, Plan):
        potential = Potential.of_plan(shaping)
    elif shaping:
        values = values_of_states(model, visible.sizes, gamma)
        potential = Potential(model, values[tuple(model.states.values())], values)
    return Guidance(visible, visible.known_steps() if counterfactual else None, potential)
