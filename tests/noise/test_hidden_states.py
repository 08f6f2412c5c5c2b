"""Models with hidden states: what expectation maximization finds, and beliefs by Bayes' rule."""

import numpy as np
import pytest

from resolvent.noise.belief_machines import PREPROCESSOR, apportion, belief_machines
from resolvent.noise.hidden_states import (
    HiddenStateModel,
    StepKinds,
    fit_hidden_states,
    has_rare_steps,
    held_out,
    refit,
)
from resolvent.traces import Trace, TraceSet

HEARING, STAYING = 0.8, 0.9


def sensor_traces(episodes, length, seed):
    """Return traces of a drifting bit, a noisy sensor of it, and bets on it."""
    rng, traces = np.random.default_rng(seed), []
    for _ in range(episodes):
        bit, observations, actions, rewards = int(rng.integers(2)), ["start"], [], []
        for _ in range(length):
            action = str(rng.choice(["sense", "bet 0", "bet 1"], p=[0.6, 0.2, 0.2]))
            rewards.append(0.0 if action == "sense" else float(action == f"bet {bit}"))
            bit ^= int(rng.random() > STAYING)
            seen = bit ^ int(rng.random() > HEARING)
            observations.append(f"see {seen}" if action == "sense" else "nothing")
            actions.append(action)
        traces.append(Trace(observations, [None] * len(observations), actions, rewards))
    return PREPROCESSOR.transform(TraceSet(traces))


def true_model(traces):
    """Return the process that `sensor_traces` draws from, as a model with two variants."""
    kinds, _ = StepKinds.of(traces)
    chance = np.zeros((len(kinds.query), 2, 2))
    for kind, before, after in np.ndindex(*chance.shape):
        action, seen = (
            traces.actions[kinds.action[kind]],
            traces.observations[kinds.next_observation[kind]],
        )
        expected = 0.0 if action == "sense" else float(action == f"bet {before}")
        share = STAYING if before == after else 1 - STAYING
        if action == "sense":
            share *= HEARING if seen == f"see {after}" else 1 - HEARING
        chance[kind, before, after] = share * (kinds.rewards[kinds.reward[kind]] == expected)
    initial, keep = np.full((kinds.observations, 2), 0.5), np.full((2, 2), 0.5)
    return HiddenStateModel(kinds, chance, initial, np.ones((kinds.query.max() + 1, 2)), keep)


@pytest.fixture(scope="module")
def sensor():
    traces = sensor_traces(100, 30, seed=1)
    return traces, refit(fit_hidden_states(traces, seed=0), traces)


def log_likelihood(model, traces):
    """Return the log likelihood of traces by a filter in plain Python."""
    _, kind = StepKinds.of(traces)
    total = 0.0
    for number, start in enumerate(traces.offsets[:-1]):
        belief = model.initial[traces.observation_codes[start + number]]
        for step in kind[start : traces.offsets[number + 1]]:
            belief = belief @ model.chance[step]
            total += np.log(belief.sum())
            belief = belief / belief.sum()
    return total


def belief_about_bit(seen):
    """Return the probability of bit 1 after readings of the sensor, by Bayes' rule."""
    one = 0.5
    for bit in seen:
        one = one * STAYING + (1 - one) * (1 - STAYING)
        likelihood = HEARING if bit == "1" else 1 - HEARING
        one = one * likelihood / (one * likelihood + (1 - one) * (1 - likelihood))
    return one


def test_a_hidden_bit_is_found(sensor):
    traces, model = sensor
    assert 2 <= model.variants <= 4
    assert log_likelihood(model, traces) > log_likelihood(true_model(traces), traces)


def test_beliefs_follow_bayes_rule(sensor):
    traces, _ = sensor
    machines = belief_machines(true_model(traces), traces, 1e-3)
    for seen in ("1", "11", "10", "110", "0100", "11111"):
        state = machines.reward.run([{"→ start"}, *({f"sense → see {bit}"} for bit in seen)])
        shares = machines.reward.distribution(state, f"see {seen[-1]}", "bet 1")
        assert shares.get(1.0, 0.0) == pytest.approx(belief_about_bit(seen), abs=0.02)


def test_machines_of_beliefs_step_as_the_model_does(sensor):
    """A state predicts what the model predicts from its own beliefs, by a filter in plain Python."""
    traces, model = sensor
    machines = belief_machines(model, traces, 1e-3)
    kinds = model.kinds
    observations, actions = list(traces.observations), list(traces.actions)
    trace = traces[0]
    belief = model.initial[observations.index(trace.observations[0])]
    state = machines.transition.step(0, trace.labels[0])
    for number in range(6):
        o = observations.index(trace.observations[number])
        a = actions.index(trace.actions[number])
        following = observations.index(trace.observations[number + 1])
        reward = trace.rewards[number]
        predicted, after = {}, np.zeros(model.variants)
        for kind in range(len(kinds.query)):
            if (kinds.observation[kind], kinds.action[kind]) != (o, a):
                continue
            joint = belief @ model.chance[kind]
            name = observations[kinds.next_observation[kind]]
            predicted[name] = predicted.get(name, 0.0) + joint.sum()
            if kinds.next_observation[kind] == following:
                after += joint  # labels do not show the reward
        assert reward in kinds.rewards
        shares = machines.transition.distribution(state, observations[o], actions[a])
        for name, share in predicted.items():
            assert shares.get(name, 0.0) == pytest.approx(share, abs=0.03)
        belief = after / after.sum()
        state = machines.transition.step(state, trace.labels[number + 1])


def test_the_same_seed_gives_the_same_model():
    traces = sensor_traces(20, 20, seed=2)
    first, second = (fit_hidden_states(traces, seed=3) for _ in range(2))
    assert first.chance.tobytes() == second.chance.tobytes()


def test_one_variant_where_observations_are_states():
    rng, traces = np.random.default_rng(0), []
    for _ in range(60):
        at = [int(bit) for bit in rng.integers(2, size=21)]
        traces.append(Trace(at, [None] * 21, ["go"] * 20, [float(bit) for bit in at[:-1]]))
    assert fit_hidden_states(TraceSet(traces)).variants == 1


def test_episodes_of_one_step():
    step = Trace(["a", "b"], [None] * 2, ["x"], [1.0], terminated=True)
    traces = PREPROCESSOR.transform(TraceSet([step] * 9))
    model = refit(fit_hidden_states(traces), traces)
    machines = belief_machines(model, traces, 0.1)
    state = machines.reward.run([{"→ a"}])
    assert machines.reward.distribution(state, "a", "x") == {1.0: 1.0}


def test_rewards_with_noise_are_rare_steps():
    rng = np.random.default_rng(0)
    traces = [Trace([0] * 11, [None] * 11, ["x"] * 10, rng.normal(size=10)) for _ in range(5)]
    assert has_rare_steps(TraceSet(traces))


def test_every_fourth_trace_is_held_out():
    traces = TraceSet([Trace(["a", "a"], [None] * 2, ["x"])] * 8)
    assert held_out(traces).tolist() == [False, False, False, True] * 2


def test_apportion_adds_up():
    rng = np.random.default_rng(0)
    for total in range(1, 40):
        shares = rng.random(5)
        counts = apportion(shares, total)
        assert counts.sum() == total
        assert np.abs(counts - shares / shares.sum() * total).max() < 1


def test_machines_of_beliefs_are_saved(sensor, tmp_path):
    import resolvent as rs

    traces, model = sensor
    machines = belief_machines(model, traces, 0.1)
    machines.save(tmp_path / "machines.json")
    loaded = rs.load(tmp_path / "machines.json")
    assert loaded.transition == machines.transition
    plan, again = (rs.plan(each, traces) for each in (machines, loaded))
    assert plan.value == again.value
    assert plan.policy.tolist() == again.policy.tolist()


def test_steps_of_held_out_traces_alone_are_learned():
    """The last trace, which is held out, has a step that occurs nowhere else."""
    rng, traces = np.random.default_rng(0), []
    for number in range(40):
        at = [str(bit) for bit in rng.integers(2, size=21)]
        rewards = [float(rng.random() < 0.5) for _ in range(20)]
        if number == 39:
            at[10], rewards[3] = "new", 7.0
        traces.append(Trace(at, [None] * 21, ["go"] * 20, rewards))
    traces = PREPROCESSOR.transform(TraceSet(traces))
    with np.errstate(all="raise", under="ignore"):
        model = refit(fit_hidden_states(traces), traces)
        machines = belief_machines(model, traces, 0.1)
    kind = int(np.flatnonzero(model.kinds.rewards[model.kinds.reward] == 7.0)[0])
    assert model.chance[kind].sum() > 0
    assert np.isfinite(model.chance).all()
    assert "new" in machines.transition.observations
