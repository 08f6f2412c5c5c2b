"""Train a table by Q-learning: an environment → the value of each action in each situation.

Paper: the appendix "Policy Learning with Augmented State Representation". Episodes are stepped
here, or played on the tables of a tabular environment. Both give the same values, bit for bit:
they make the same updates with the same random numbers.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from resolvent import _core
from resolvent._util.validation import check_arguments, check_table, shown
from resolvent.errors import OptionError, locating
from resolvent.planning.model import Model
from resolvent.planning.plan import Plan
from resolvent.rl.counterfactual import Guidance, InitialValues, initial_values, inner_values
from resolvent.rl.env import SymbolEncoder, finite_reward
from resolvent.rl.potential import Potential
from resolvent.rl.q_table import Curve, QTable
from resolvent.rl.rollout import Step, play_episode
from resolvent.rl.tabular import (
    Evaluation,
    TabularView,
    best_actions,
    evaluate_exactly,
    tabular_view,
)
from resolvent.rl.wrappers.augment import augmented_inside
from resolvent.rl.wrappers.shape import shaped_inside
from resolvent.traces.symbols import Symbol, as_symbol
from resolvent.traces.vocabulary import Codes

Engine: TypeAlias = Literal["auto", "native", "python"]

ENGINES: tuple[str, ...] = get_args(Engine)

_STEPS_PER_CALL = 1 << 17
"""Number of steps of one call of the core, so that Ctrl-C gets through."""


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
    start: QTable | None = None,
    engine: Engine = "auto",
    evaluate_every: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> QTable:
    """Learn the value of each action, in a table over the environment's observations.

    Inside `AugmentObservation`, observations include the states of the machines, which makes
    the world Markovian. The defaults are the paper's. Of equally good actions, one is drawn at
    random. The same seed gives the same values: it goes to the first reset and to the learner.

    A built-in world, alone or with a Transition and a Reward Machine, is played on its tables
    ("native"); other environments and sets of machines are stepped ("python"). Both engines
    give the same values, bit for bit.

    Args:
        env: The environment, with Discrete actions.
        episodes: The number of episodes.
        seed: Of the environment and of the learner.
        alpha: The learning rate.
        gamma: The discount factor.
        epsilon: The probability of a random action, in the first episode.
        epsilon_decay: The factor of `epsilon` after each episode.
        epsilon_min: The lowest `epsilon`.
        initial_value: The initial value of every action. The paper does not say; a value above
            any return makes a learner try everything.
        max_steps: Truncate episodes after this number of steps; the value of the last state
            still counts.
        model: Of the same machines (`Model.of(pair, traces)`), for the next two.
        counterfactual: Learn from each step also the outcome of its action under the same
            observation in every other state of the machines that the model knows (Toro
            Icarte, Klassen, Valenzano and McIlraith 2022).
        shaping: Reward moves to more promising states of the machines, which changes what is
            tried but not what is best (Ng, Harada and Russell 1999). With a plan, reward moves
            to any more promising augmented state, as `ShapeReward` does. Returns in the curve
            are without it.
        start: Begin with these values in the situations that they hold. For values learned with
            other machines, `QTable.carried` makes values for these.
        engine: "native", "python", or "auto" for "native" if possible.
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
    _check_options(
        episodes=episodes,
        seed=seed,
        alpha=alpha,
        gamma=gamma,
        epsilon=epsilon,
        epsilon_decay=epsilon_decay,
        epsilon_min=epsilon_min,
        initial_value=initial_value,
        max_steps=max_steps,
        evaluate_every=evaluate_every,
    )
    view = tabular_view(env)
    is_native = _is_native(engine, view)
    if evaluate_every is not None and isinstance(view, str):
        raise OptionError(
            f"evaluate_every needs a built-in world, and {view}: evaluate afterwards instead"
        )
    guidance = None
    if counterfactual or shaping:
        guidance = _guidance(env, model, counterfactual, shaping, gamma)
    initial: list[InitialValues] = []
    if start is not None:
        initial = initial_values(start, actions, guidance if shaping else None, view)
    learner = _core.QLearner(int(actions.n), alpha, gamma, seed, initial_value)
    trainer: Trainer
    if is_native and isinstance(view, TabularView):
        trainer = TabularTrainer(env, learner, guidance, view, initial)
        limits = [limit for limit in (max_steps, view.max_steps) if limit]
        max_steps = min(limits, default=None)
    else:
        trainer = LiveTrainer(env, learner, guidance, gamma, initial)
    played: list[EpisodeReturn] = []
    epsilons: list[float] = []
    evaluations: list[Evaluation] = []
    steps = 0
    for number in range(episodes):
        with locating(f"episode {number}"):
            played.append(trainer.play(seed if number == 0 else None, epsilon, max_steps))
        steps += played[-1].steps
        epsilons.append(epsilon)
        epsilon = max(epsilon_min, epsilon * epsilon_decay)
        if evaluate_every and (number + 1) % evaluate_every == 0 and isinstance(view, TabularView):
            tables, policy = trainer.in_tables(view)
            evaluations.append(
                evaluate_exactly(view, tables, policy, gamma, episode=number + 1, steps=steps)
            )
        if progress is not None:
            progress((number + 1) / episodes)
    return QTable(
        learner.values().reshape(learner.situations, int(actions.n)),
        tuple(trainer.symbols()),
        Curve(
            np.array([episode.total for episode in played]),
            np.array([episode.discounted for episode in played]),
            np.array([episode.steps for episode in played], np.int64),
            np.array(epsilons),
        ),
        gamma,
        tuple(evaluations),
        "native" if is_native else "python",
        int(actions.start),
        SymbolEncoder(env, "observation").listed,
        SymbolEncoder(env, "action").listed,
        trainer.potentials() if shaping else None,
    )


class EpisodeReturn(NamedTuple):
    """The return and the length of an episode."""

    total: float
    discounted: float
    steps: int


class Trainer(ABC):
    """A learner in an environment.

    The learner numbers the model's augmented states first, then those with initial values.
    """

    def __init__(
        self, env: gym.Env[Any, Any], learner: _core.QLearner, guidance: Guidance | None
    ) -> None:
        self.env = env
        self.learner = learner
        self.guidance = guidance
        if guidance is not None:
            for potential in guidance.potential.of_situation.tolist():
                learner.add(potential)

    @abstractmethod
    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> EpisodeReturn:
        """Play an episode, learning at each step."""

    @abstractmethod
    def symbols(self) -> list[Symbol]:
        """Return the observation of each situation, in the learner's order."""

    @abstractmethod
    def potentials(self) -> NDArray[np.float64]:
        """Return the potential of each situation, in the learner's order."""

    @abstractmethod
    def in_tables(self, view: TabularView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return tables that number situations, and the best action in each of these."""

    def _put(self, number: int, initial: InitialValues) -> None:
        """Set the values of a situation."""
        if number == self.learner.situations:
            self.learner.add(initial.potential)
        self.learner.put(number, initial.values - initial.potential)

    def _best(self) -> NDArray[np.int64]:
        return best_actions(self.learner.values().reshape(self.learner.situations, -1))


class LiveTrainer(Trainer):
    """Steps any environment: a trainer that is the actor of `play_episode`."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: _core.QLearner,
        guidance: Guidance | None,
        gamma: float,
        initial: Sequence[InitialValues] = (),
    ) -> None:
        super().__init__(env, learner, guidance)
        self._gamma = gamma
        self._first_action = int(getattr(env.action_space, "start", 0))
        self._actions = int(env.action_space.n)  # type: ignore[attr-defined]
        self._numbers: dict[Symbol, int] = {}
        self._potentials: list[float] = []
        self._known_steps = None if guidance is None else guidance.steps
        if guidance is not None:
            encode = guidance.augmented.encode
            for number, situation in enumerate(guidance.situations):
                self._numbers[as_symbol(encode(*situation))] = number
            self._potentials = guidance.potential.of_situation.tolist()
        for each in initial:
            number = self._numbers.setdefault(each.symbol, len(self._numbers))
            if number == len(self._potentials):
                self._potentials.append(each.potential)
            self._put(number, each)
        # Of the episode that is played:
        self._epsilon = self._total = self._discounted = 0.0
        self._weight, self._steps = 1.0, 0
        self._situation = self._action = 0
        self._inner_code: int | None = None

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> EpisodeReturn:
        """Play an episode, a step at a time."""
        self._epsilon, self._total, self._discounted = epsilon, 0.0, 0.0
        self._weight, self._steps = 1.0, 0
        play_episode(self.env, self, seed=seed, max_steps=max_steps)
        return EpisodeReturn(self._total, self._discounted, self._steps)

    def begin(self, observation: Any, info: dict[str, Any]) -> None:
        """Look up the first situation."""
        self._situation = self._number(observation)

    def act(self, observation: Any) -> int:
        """Return the learner's action."""
        self._action = self.learner.choose(self._situation, self._epsilon)
        if self._known_steps is not None and self.guidance is not None:
            inner_observation = self.guidance.augmented.situation[0]
            self._inner_code = self.guidance.observation_code(inner_observation)
        return self._first_action + self._action

    def observe(self, observation: Any, action: Any, step: Step) -> None:
        """Learn from a step, and from its counterfactuals."""
        following, reward, terminated, _, _ = step
        paid, situation = finite_reward(reward), self._situation
        arrived = situation if terminated else self._number(following)
        self.learner.update(situation, self._action, paid, arrived, bool(terminated))
        if self._known_steps is not None and self._inner_code is not None:
            self.learner.imagine(self._known_steps, self._inner_code, self._action, situation)
        self._total += paid
        self._discounted += self._weight * paid
        self._weight *= self._gamma
        self._steps += 1
        self._situation = arrived

    def symbols(self) -> list[Symbol]:
        """Return the observations so far, those of the model first."""
        return list(self._numbers)

    def potentials(self) -> NDArray[np.float64]:
        """Return the potentials at the first visit of each situation."""
        return np.array(self._potentials)

    def in_tables(self, view: TabularView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Look the situations up in the tables of the environment inside."""
        tables, places = view.numbering(self.symbols())
        return tables, self._best()[places]

    def _number(self, observation: Any) -> int:
        symbol = as_symbol(observation)
        number = self._numbers.get(symbol)
        if number is None:
            number = self._numbers[symbol] = len(self._numbers)
            potential = 0.0
            if self.guidance is not None:
                _, *states = self.guidance.augmented.situation
                potential = float(self.guidance.potential.of_states[*states])
            check_table(number + 1, self._actions, 8, "situations by actions")
            self._potentials.append(potential)
            self.learner.add(potential)
        return number


class TabularTrainer(Trainer):
    """Plays on the tables of a tabular environment; each start comes from its `reset`."""

    def __init__(
        self,
        env: gym.Env[Any, Any],
        learner: _core.QLearner,
        guidance: Guidance | None,
        view: TabularView,
        initial: Sequence[InitialValues] = (),
    ) -> None:
        super().__init__(env, learner, guidance)
        self._view = view
        numbers: dict[tuple[int, ...], int] = {}
        if guidance is None:
            self.tables = view.episode_tables()
        else:
            count = len(view.world.mechanics.observations)
            codes = [guidance.observation_code(observation) for observation in range(count)]
            self.tables = view.episode_tables(
                guidance.steps,
                np.array([-1 if code is None else code for code in codes], np.int32),
                guidance.potential.of_states,
            )
            numbers = {situation: place for place, situation in enumerate(guidance.situations)}
        rows = view.rows([each.symbol for each in initial])
        for each in initial:
            self._put(numbers.setdefault(tuple(rows[each.symbol]), len(numbers)), each)
        self.tables.expect(np.array(list(numbers), np.int32).ravel())

    def play(self, seed: int | None, epsilon: float, max_steps: int | None) -> EpisodeReturn:
        """Play an episode, many steps at a time."""
        self.env.reset(seed=seed)
        self.tables.begin(self.learner, self._view.world.state)
        left = max_steps
        while left is None or left > 0:
            steps = _STEPS_PER_CALL if left is None else min(left, _STEPS_PER_CALL)
            if self.tables.run(self.learner, epsilon, steps):
                break
            left = None if left is None else left - steps
        return EpisodeReturn(*self.tables.played)

    def in_tables(self, view: TabularView) -> tuple[_core.Lessons, NDArray[np.int64]]:
        """Return its own tables."""
        return self.tables, self._best()

    def symbols(self) -> list[Symbol]:
        """Return the environment's observations."""
        return [self._view.symbol(row) for row in self._codes().tolist()]

    def potentials(self) -> NDArray[np.float64]:
        """Return the model's potentials, by states alone where it does not know a situation."""
        if self.guidance is None:
            return np.zeros(self.learner.situations)
        _, transition, reward = self._codes().T
        potential = self.guidance.potential
        by_states: NDArray[np.float64] = potential.of_states[transition, reward]
        by_states[: len(potential.of_situation)] = potential.of_situation
        return by_states

    def _codes(self) -> Codes:
        codes: Codes = self.tables.codes().reshape(-1, self._view.width)
        return codes


def _checked_actions(env: Any) -> gym.spaces.Discrete:
    if not isinstance(env, gym.Env):
        raise OptionError(
            f"q_learning needs one gymnasium.Env, not a {type(env).__name__}: use gym.make"
        )
    if not isinstance(env.action_space, gym.spaces.Discrete):
        raise OptionError(f"q_learning needs Discrete actions, not {env.action_space}")
    augmented = augmented_inside(env)
    if (
        augmented is not None
        and augmented.machines.senses.discretise is not None
        and env.observation_space is augmented.observation_space
    ):
        raise OptionError(
            "q_learning keeps a value for each observation, and these hold numbers that hardly "
            "come twice, which only the machines see as intervals: use a learner for such "
            "observations, such as Stable-Baselines3"
        )
    return env.action_space


def _check_options(**options: Any) -> None:
    for name in ("episodes", "max_steps", "evaluate_every"):
        if options[name] is not None and options[name] < 1:
            raise OptionError(f"{name}={options[name]}: use at least 1")
    if not 0 <= options["seed"] < 1 << 64:
        raise OptionError(f"seed={options['seed']}: use 0 or more, below 2**64")
    for name in ("alpha", "gamma", "epsilon", "epsilon_decay", "epsilon_min"):
        if not 0 <= options[name] <= 1:
            raise OptionError(f"{name}={options[name]}: use a number from 0 to 1")
    if not math.isfinite(options["initial_value"]):
        raise OptionError(f"initial_value={options['initial_value']}: use a finite number")


def _is_native(engine: str, view: TabularView | str) -> bool:
    if engine not in ENGINES:
        raise OptionError(f"engine={shown(engine)}: use one of {', '.join(map(repr, ENGINES))}")
    if engine == "native" and isinstance(view, str):
        raise OptionError(f"engine='native': {view}; use engine='auto'")
    return engine != "python" and isinstance(view, TabularView)


def _guidance(
    env: gym.Env[Any, Any],
    model: Model | None,
    counterfactual: bool,
    shaping: bool | Plan,
    gamma: float,
) -> Guidance:
    name = "counterfactual" if counterfactual else "shaping"
    if model is None and isinstance(shaping, Plan):
        model = shaping.model
    if model is None:
        raise OptionError(f"{name} needs a model: pass model=Model.of(machines, traces)")
    if shaping and gamma == 1:
        raise OptionError("shaping needs gamma below 1")
    augmented = augmented_inside(env)
    if augmented is None:
        raise OptionError(f"{name} needs the machines in view: wrap env in AugmentObservation")
    if env.observation_space is not augmented.observation_space:
        raise OptionError(f"{name} needs what AugmentObservation shows, and {env} changes that")
    if shaped_inside(env) is not None:
        raise OptionError(
            f"{name}: env is inside ShapeReward, which pays only for steps that are taken: leave "
            f"it out, and give shaping=plan"
        )
    potential = None
    if isinstance(shaping, Plan):
        potential = Potential.of_plan(shaping)
    elif shaping:
        inner_values(augmented, model)  # refuses machines that are not the model's
        sizes = tuple(machine.states for machine in augmented.machines.values())
        potential = Potential.of_model(model, sizes, gamma)
    return Guidance.of(augmented, model, counterfactual=counterfactual, potential=potential)
