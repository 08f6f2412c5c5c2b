"""Laws of learning: both engines learn what a textbook learner does; shaping keeps the optimum."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation, TimeLimit
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_q_learning import NaiveLearner, q_learning

import resolvent as rs
from resolvent.planning.model import Model
from resolvent.preprocess.timing import LabelTiming
from resolvent.rl.shape import values_of_states
from resolvent.traces.symbols import as_symbol
from table_worlds import pairs, worlds

SCHEDULE = {"epsilon": 0.4, "epsilon_decay": 0.9, "epsilon_min": 0.05}
EPISODES = 12


@st.composite
def seen_worlds(draw, cut=True):
    """Draw a world with plain, stacked or augmented observations."""
    env = draw(worlds())
    if cut:
        env = TimeLimit(env, draw(st.integers(1, 30)))
    view = draw(st.sampled_from(["raw", "stacked", *LabelTiming]))
    if view == "raw":
        return env
    if view == "stacked":
        return FrameStackObservation(env, draw(st.integers(1, 4)))
    modes = st.sampled_from(["dict", "flatten", "multidiscrete", "discrete"])
    return rs.AugmentObservation(env, draw(pairs(LabelTiming(view))), mode=draw(modes))


def same(first, second):
    assert first.observations == second.observations
    assert first.q.tobytes() == second.q.tobytes()
    assert first.curve.columns() == second.curve.columns()
    assert first.evaluations == second.evaluations


@settings(deadline=None, max_examples=150)
@given(env=seen_worlds(), seed=st.integers(0, 2**64 - 1), alpha=st.sampled_from([0.1, 0.5, 1.0]))
def test_both_engines_learn_the_same(env, seed, alpha):
    learned = [
        rs.q_learning(
            env,
            episodes=EPISODES,
            seed=seed,
            alpha=alpha,
            evaluate_every=5,
            engine=engine,
            **SCHEDULE,
        )
        for engine in ("native", "python")
    ]
    same(*learned)


@settings(deadline=None, max_examples=150)
@given(
    env=seen_worlds(),
    seed=st.integers(0, 2**32),
    alpha=st.sampled_from([0.1, 1.0]),
    initial=st.sampled_from([0.0, 2.5, -1.0]),
)
def test_values_are_those_of_a_textbook_learner(env, seed, alpha, initial):
    learned = rs.q_learning(
        env,
        episodes=EPISODES,
        seed=seed,
        alpha=alpha,
        gamma=0.9,
        initial_value=initial,
        **SCHEDULE,
    )
    assert learned.engine == "native"
    naive = NaiveLearner(int(env.action_space.n), alpha, 0.9, seed, initial)
    played = q_learning(env, naive, EPISODES, seed, 0.4, 0.9, 0.05)
    assert list(learned.observations) == list(naive.q)
    assert learned.q.tolist() == list(naive.q.values())
    assert learned.curve.steps.tolist() == list(map(len, played))
    assert learned.curve.returns.tolist() == pytest.approx([sum(one) for one in played])


@settings(deadline=None, max_examples=100)
@given(env=seen_worlds(cut=False), seed=st.integers(0, 2**32))
def test_the_exact_value_of_a_policy_is_its_mean_return(env, seed):
    """Endless episodes are truncated where the rest is below the tolerance."""
    gamma, long = 0.5, 60
    learned = rs.q_learning(env, episodes=EPISODES, seed=seed, gamma=gamma, max_steps=20)
    world = env.unwrapped
    paid, ended = [], []
    for start in world.mechanics.starts.tolist():
        world.draw_starts = lambda episodes, start=start: np.array([start])
        observation, _ = env.reset()
        rewards, over = [], False
        while not over and len(rewards) < long:
            observation, reward, over, _, _ = env.step(learned.action(observation))
            rewards.append(reward)
        paid.append(sum(reward * gamma**step for step, reward in enumerate(rewards)))
        ended.append(over)
    found = learned.evaluate(env)
    assert found.exact
    assert found.value == pytest.approx(np.mean(paid), abs=1e-12)
    assert found.ended == np.mean(ended)


# ---- with a model ----------------------------------------------------------

WORLDS = {
    "resolvent/House-v0": {},
    "resolvent/PhaseGrid3-v0": {},
    "resolvent/TMaze-v0": {},
    "resolvent/RandomWorld-v0": {"size": 5, "labels": 3, "tm_states": 2},
}


@pytest.fixture(scope="module", params=WORLDS)
def modelled(request):
    """Return a world, machines inferred from few traces of it, and their model."""
    env = gym.make(request.param, **WORLDS[request.param])
    traces = rs.collect(env, episodes=25, seed=0, max_steps=60)
    pair = rs.infer(traces, timing=env.unwrapped.timing).machines
    return env, pair, Model.of(pair, traces)


@pytest.mark.parametrize("mode", ["dict", "discrete"])
@pytest.mark.parametrize(
    ("counterfactual", "shaping"), [(True, False), (False, True), (True, True)]
)
def test_both_engines_learn_the_same_from_a_model(modelled, mode, counterfactual, shaping):
    env, pair, model = modelled
    learned = [
        rs.q_learning(
            rs.AugmentObservation(env, pair, mode=mode),
            episodes=60,
            max_steps=50,
            model=model,
            counterfactual=bool(counterfactual),
            shaping=bool(shaping),
            evaluate_every=20,
            engine=engine,
        )
        for engine in ("native", "python")
    ]
    same(*learned)


def test_values_from_a_model_are_those_of_a_textbook_learner(modelled):
    env, pair, model = modelled
    wrapped = rs.AugmentObservation(env, pair)
    promise = values_of_states(model, (pair.transition.states, pair.reward.states), 0.95)
    learned = rs.q_learning(
        wrapped, episodes=40, max_steps=50, model=model, counterfactual=True, shaping=True
    )

    def states(symbol):
        entries = dict(symbol)
        return entries["transition_state"], entries["reward_state"]

    world = env.unwrapped
    naive = NaiveLearner(
        int(env.action_space.n),
        0.1,
        0.95,
        0,
        potential=lambda: promise[wrapped.augmented_state[1:]],
    )
    symbols = []
    for number in range(len(model)):
        observation, *rest = model.augmented_state(number)
        symbols.append(as_symbol(wrapped.encode(world.observation_names.index(observation), *rest)))
        naive.met(symbols[-1], promise[tuple(rest)])

    def imagined(symbol, action):
        column = model.actions.get(world.action_names[action])
        if column is None:
            return
        shown = dict(symbol)["observation"]
        for number, other in enumerate(symbols):
            if other == symbol or dict(other)["observation"] != shown:
                continue
            if model.known[number, column]:
                following = symbols[model.next_state[number, column]]
                ends = bool(model.ends[number, column])
                yield other, action, model.reward[number, column], following, ends

    q_learning(wrapped, naive, 40, 0, 0.3, 0.995, 0.01, max_steps=50, imagined=imagined)
    assert list(learned.observations) == list(naive.q)
    assert learned.q.tolist() == [
        [value + naive.potential[symbol] for value in values] for symbol, values in naive.q.items()
    ]
    assert all(naive.potential[symbol] == promise[states(symbol)] for symbol in naive.q)


@settings(deadline=None, max_examples=60)
@given(promise=st.lists(st.floats(-3, 3), min_size=6, max_size=6), env=worlds())
def test_shaping_changes_no_optimal_action(promise, env):
    """By value iteration with and without shaping, for any potentials."""
    tables, gamma = env.mechanics, 0.9
    phi = np.array(promise)[: tables.states]
    going_on = np.where(tables.ends, 0.0, gamma)
    shaped = tables.reward + going_on * phi[tables.next_state] - phi[:, None]
    plain_q, shaped_q = (_solved(reward, tables, going_on) for reward in (tables.reward, shaped))
    assert shaped_q == pytest.approx(plain_q - phi[:, None], abs=1e-9)
    learned = _taught(env, phi, gamma)
    assert learned == pytest.approx(shaped_q, abs=1e-6)
    for state in range(tables.states):
        best = learned[state].argmax()
        assert plain_q[state, best] == pytest.approx(plain_q[state].max(), abs=1e-6)


def _solved(reward, tables, going_on):
    q = np.zeros_like(reward)
    for _ in range(600):
        q = reward + going_on * q.max(axis=1)[tables.next_state]
    return q


def _taught(env, phi, gamma):
    """Return the values that the core learns from every step many times, with α = 1."""
    tables = env.mechanics
    learner = rs._core.QLearner(len(tables.actions), 1.0, gamma, 0)
    for value in phi.tolist():
        learner.add(value)
    steps = list(np.ndindex(tables.next_state.shape))
    for _ in range(250):
        for state, action in steps:
            learner.update(
                state,
                action,
                float(tables.reward[state, action]),
                int(tables.next_state[state, action]),
                bool(tables.ends[state, action]),
            )
    return learner.values().reshape(tables.next_state.shape)
