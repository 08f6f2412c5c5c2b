"""Q-learning: a Gymnasium environment → what each action is worth in each situation.

Paper: the appendix "Policy Learning with Augmented State Representation".
"""

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np

from resolvent import _core
from resolvent.arguments import check_arguments, shown
from resolvent.control.learning.beginning import beginning
from resolvent.control.learning.curve import Curve
from resolvent.control.learning.evaluating import Evaluation, evaluate_exactly
from resolvent.control.learning.guidance import Guidance
from resolvent.control.learning.imagined import shown_values
from resolvent.control.learning.learned import Learned
from resolvent.control.learning.lessons import Lessons, LiveLessons, Played, TableLessons
from resolvent.control.learning.world_view import WorldView, world_behind
from resolvent.control.planning.model import Model
from resolvent.control.planning.plans import Plan
from resolvent.control.shaping.potential import Potential
from resolvent.control.shaping.shape_reward import shaped_inside
from resolvent.control.wrapping.augment_observation import augmented_inside
from resolvent.errors import OptionError, locating
from resolvent.traces.live.naming import Names

Engine: TypeAlias = Literal["auto", "native", "python"]

ENGINES: tuple[str, ...] = get_args(Engine)


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
    start: Learned | None = None,
    engine: Engine = "auto",
    evaluate_every: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Learned:
    """Learn by trying what each action is worth, in a table over what the environment shows.

    With `AugmentObservation` around it, that is the observation and the states of
    the machines, which is all there is to know. The defaults are the paper's.
    Of equally good actions chance picks one. The same seed
    gives the same values: it goes to the first reset and to the learner.

    A built-in world is played on its tables ("native"), alone or with a Transition and a
    Reward Machine; any other environment or set of machines is stepped ("python").
    Both engines give the same, bit for bit.

    Args:
        env: What to learn in; its actions are Discrete.
        episodes: How many to play.
        seed: Of the environment and of the learner.
        alpha: How far a value moves towards what a step shows.
        gamma: The discount of what comes a step later.
        epsilon: How often an action is random, in the first episode.
        epsilon_decay: What it is multiplied by after each episode.
        epsilon_min: What it never falls below.
        initial_value: What every action is taken to be worth at first. The paper does
            not say; a value above what can be had makes a learner try everything.
        max_steps: Cut episodes after as many steps; what lies behind still counts.
        model: Of the same machines (`Model.of(pair, traces)`), for the next two.
        counterfactual: Learn from each step also what its action does under the
            same observation in every other state of the machines that the model
            knows (Toro Icarte, Klassen, Valenzano and McIlraith 2022).
        shaping: Pay for moving to more promising states of the machines, which
            changes what is tried but not what is best (Ng, Harada and Russell
            1999). With a plan, pay for moving to any situation in which it promises
            more, as `ShapeReward` does. Returns in the curve are without it.
        start: Begin with these values, where they tell of a situation. For those that were
            learned with other machines, `Learned.carried` makes values for these.
        engine: "native", "python", or "auto" for the first where it is possible.
        evaluate_every: In a built-in world, note after every so many episodes
            what acting by the values is worth, exactly and over all starts.
        progress: Called with the share of episodes done, after each.

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
    view = world_behind(env)
    native = _is_native(engine, view)
    if evaluate_every is not None and isinstance(view, str):
        raise OptionError(
            f"evaluate_every needs a built-in world, and {view}: evaluate afterwards instead"
        )
    guidance = None
    if counterfactual or shaping:
        guidance = _guidance(env, model, counterfactual, shaping, gamma)
    begun = [] if start is None else beginning(start, actions, guidance if shaping else None, view)
    learner = _core.QLearner(int(actions.n), alpha, gamma, seed, initial_value)
    lessons: Lessons
    if native and isinstance(view, WorldView):
        lessons = TableLessons(env, learner, guidance, view, begun)
        max_steps = min((one for one in (max_steps, view.max_steps) if one), default=None)
    else:
        lessons = LiveLessons(env, learner, guidance, gamma, begun)
    played: list[Played] = []
    epsilons: list[float] = []
    evaluations: list[Evaluation] = []
    steps = 0
    for number in range(episodes):
        with locating(f"episode {number}"):
            played.append(lessons.play(seed if number == 0 else None, epsilon, max_steps))
        steps += played[-1].steps
        epsilons.append(epsilon)
        epsilon = max(epsilon_min, epsilon * epsilon_decay)
        if evaluate_every and (number + 1) % evaluate_every == 0 and isinstance(view, WorldView):
            tables, policy = lessons.in_tables(view)
            evaluations.append(
                evaluate_exactly(view, tables, policy, gamma, episode=number + 1, steps=steps)
            )
        if progress is not None:
            progress((number + 1) / episodes)
    return Learned(
        learner.values().reshape(learner.situations, int(actions.n)),
        tuple(lessons.symbols()),
        Curve(
            np.array([one.total for one in played]),
            np.array([one.discounted for one in played]),
            np.array([one.steps for one in played], np.int64),
            np.array(epsilons),
        ),
        gamma,
        tuple(evaluations),
        "native" if native else "python",
        int(actions.start),
        Names(env, "observation").listed,
        Names(env, "action").listed,
        lessons.potentials() if shaping else None,
    )


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


def _check_options(**given: Any) -> None:
    for name in ("episodes", "max_steps", "evaluate_every"):
        if given[name] is not None and given[name] < 1:
            raise OptionError(f"{name}={given[name]}: use at least 1")
    if not 0 <= given["seed"] < 1 << 64:
        raise OptionError(f"seed={given['seed']}: use 0 or more, below 2**64")
    for name in ("alpha", "gamma", "epsilon", "epsilon_decay", "epsilon_min"):
        if not 0 <= given[name] <= 1:
            raise OptionError(f"{name}={given[name]}: use a number from 0 to 1")
    if not math.isfinite(given["initial_value"]):
        raise OptionError(f"initial_value={given['initial_value']}: use a finite number")


def _is_native(engine: str, view: WorldView | str) -> bool:
    if engine not in ENGINES:
        raise OptionError(f"engine={shown(engine)}: use one of {', '.join(map(repr, ENGINES))}")
    if engine == "native" and isinstance(view, str):
        raise OptionError(f"engine='native': {view}; use engine='auto'")
    return engine != "python" and isinstance(view, WorldView)


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
        shown_values(augmented, model)  # refuses machines that are not the model's
        sizes = tuple(machine.states for machine in augmented.machines.values())
        potential = Potential.of_model(model, sizes, gamma)
    return Guidance.of(augmented, model, counterfactual=counterfactual, potential=potential)
