"""Whether rewards vary by noise, and around which values."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import exact_pay, gaussian, paying
from resolvent.inference.summary import noise_lines
from resolvent.noise.rewards import assign_reward_levels, find_reward_levels
from resolvent.preprocess.samples import Histories, output_samples
from resolvent.preprocess.timing import LabelTiming
from resolvent.preprocess.transform import RewardLevels
from resolvent.traces import Trace, TraceSet
from resolvent.worlds import House

CURRENT = LabelTiming.CURRENT


def episodes(pay, count=300, length=6, seed=0):
    """Traces of a corridor; `pay` gets the step, the observation, and whether "key" was read."""
    random = np.random.default_rng(seed)
    traces = []
    for _ in range(count):
        seen = random.integers(0, 3, length + 1).tolist()
        labels = [None, *(["key"] if draw < 0.2 else None for draw in random.random(length))]
        read = [any(labels[: step + 1]) for step in range(length)]
        paid = [pay(random, step, seen[step], read[step]) for step in range(length)]
        traces.append(Trace(seen, labels, ["go"] * length, paid))
    return TraceSet(traces)


def truth(seen, key):
    return 2.0 if seen == 2 and key else -0.5 if seen == 1 else 0.0


def test_levels_are_those_of_the_world():
    traces = episodes(lambda random, _, seen, key: random.normal(truth(seen, key), 0.2))
    levels = find_reward_levels(traces, CURRENT)
    assert levels.centers == pytest.approx([-0.5, 0, 2], abs=0.05)
    assert levels.sigma == pytest.approx(0.2, rel=0.1)
    assert levels.exact == ()
    shuffled = traces.take(np.random.default_rng(0).permutation(len(traces)))
    assert find_reward_levels(shuffled, CURRENT) == levels


def test_exact_rewards_stay_exact():
    def pay(random, _, seen, key):
        return random.normal(2, 0.2) if truth(seen, key) == 2 else truth(seen, key)

    levels = find_reward_levels(episodes(pay, 600), CURRENT)
    assert levels.exact == (-0.5, 0.0)
    assert levels.centers == pytest.approx([2], abs=0.1)


@pytest.mark.parametrize(
    "pay",
    [
        lambda random, step, seen, key: truth(seen, key),
        lambda random, step, seen, key: 1 - 0.0137 * step * (seen + 1) + key * 0.31 * seen,
        lambda random, step, seen, key: truth(seen, key) if random.random() > 0.05 else 1.0,
        lambda random, step, seen, key: float(random.integers(0, 30)),
    ],
    ids=["exact", "by the step", "flipped", "dice"],
)
def test_rewards_that_are_exact_or_symbols_have_no_levels(pay):
    assert find_reward_levels(episodes(pay), CURRENT) is None


def test_a_reward_for_each_context_is_no_noise():
    worth = np.random.default_rng(9).normal(size=(6, 3, 2))
    traces = episodes(lambda random, step, seen, key: float(worth[step, seen, int(key)]))
    assert len(traces.rewards) > 16
    assert find_reward_levels(traces, CURRENT) is None


def test_last_digits_are_for_rounding():
    def pay(random, _, seen, key):
        return truth(seen, key) + 1e-8 * random.random()

    assert find_reward_levels(episodes(pay), CURRENT) is None


def test_noise_around_many_values_is_refused():
    worth = np.random.default_rng(9).normal(size=(6, 3, 2))
    traces = episodes(
        lambda random, step, seen, key: worth[step, seen, int(key)] + random.normal(0, 0.1)
    )
    with pytest.raises(rs.TraceError, match="1,800 different rewards at 1,800 steps; round them"):
        find_reward_levels(traces, CURRENT)


def one_log(steps):
    random = np.random.default_rng(0)
    seen = random.integers(0, 3, steps + 1).tolist()
    paid = random.normal([0.0, 1.0, 5.0], 0.1, (steps, 3))[np.arange(steps), seen[:-1]]
    return TraceSet([Trace(seen, [None] * (steps + 1), ["go"] * steps, paid.tolist())])


def test_one_long_log_has_levels_if_enough_rewards_are_unique():
    for steps, stated in ((2_000, False), (2_000, True), (999, True)):
        levels = find_reward_levels(one_log(steps), CURRENT, stated=stated)
        assert levels.centers == pytest.approx([0, 1, 5], abs=0.05)
    assert find_reward_levels(one_log(999), CURRENT) is None


def test_repeated_rewards_in_one_long_log_are_exact():
    log = one_log(2_000)
    rounded = [round(paid, 2) for paid in log[0].rewards]
    again = TraceSet([Trace(log[0].observations, log[0].labels, log[0].actions, rounded)])
    assert len(again.rewards) > 100
    assert find_reward_levels(again, CURRENT) is None


def test_queries_with_one_level_have_one_reward_in_samples():
    levels = RewardLevels((-0.5, 0.0, 2.0), 0.25)
    raw = episodes(lambda random, _, seen, key: random.normal(truth(seen, key), 0.25))
    traces = levels.transform(raw)
    samples = output_samples(traces, Histories.of(traces, CURRENT), "reward")
    seen = traces.at_step(traces.observation_codes)
    assigned = assign_reward_levels(samples, traces, levels)
    outputs = list(samples.outputs)
    assert {outputs[code] for code in assigned.output[seen == 1]} == {-0.5}
    assert {outputs[code] for code in assigned.output[seen == 0]} == {0.0}
    assert np.array_equal(assigned.output[seen == 2], samples.output[seen == 2])
    assert len(set(samples.output[seen == 0].tolist())) > 1


def flipped(traces, share=0.05):
    random = np.random.default_rng(0)
    paid = exact_pay(traces)
    return paying(traces, np.where(random.random(len(paid)) < share, 1 - paid, paid))


@pytest.fixture(scope="module")
def clean():
    return rs.collect(House(), episodes=400, seed=0)


@pytest.fixture(scope="module")
def noisy(clean):
    return gaussian(clean)


@pytest.fixture(scope="module")
def result(noisy):
    return rs.infer(noisy, noise="auto")


def assert_true_reward_machine(machine):
    true = House().machines().reward
    assert machine.states == true.states == 2
    labels = [{"key"}, {"toilet"}]
    for history in ([], labels[:1], labels[1:], labels, labels[::-1]):
        state = machine.run(history)
        if state is not rs.UNSEEN:
            assert (state == machine.run([])) == (true.run(history) == true.run([]))


def test_the_transition_machine_is_that_of_exact_rewards(clean, result):
    exact = rs.infer(clean).machines.transition
    assert result.machines.transition == exact
    assert not result.machines.transition.is_noisy


def test_the_reward_machine_is_that_of_the_world(result):
    assert result.preprocessor.rewards.centers == pytest.approx([0, 1], abs=0.1)
    assert_true_reward_machine(result.machines.reward)
    assert "rewards vary by ±0.4 around 0, 1" in str(result)
    assert "of rewards are assigned to another level" in str(result)


def test_stated_gaussian_noise_gives_the_same_levels(noisy, result):
    stated = rs.infer(noisy, noise=rs.Noise(rewards="gaussian"))
    assert stated.preprocessor == result.preprocessor
    assert_true_reward_machine(stated.machines.reward)


def test_gaussian_noise_that_the_traces_exclude_is_refused(clean, noisy):
    stated = rs.Noise(rewards="gaussian")
    with pytest.raises(rs.OptionError, match=r"2 different rewards at 1[0-9,]+ steps are"):
        rs.infer(clean, noise=stated)
    with pytest.raises(rs.OptionError, match="reward_digits rounds rewards"):
        rs.infer(noisy, noise=stated, options=rs.InferenceOptions(reward_digits=1))


def test_without_noise_it_is_a_contradiction(noisy):
    with pytest.raises(rs.ContradictoryTraces, match="reward_digits"):
        rs.infer(noisy, noise="none")


def test_files_scores_and_evidence_use_levels(result, noisy, clean, tmp_path):
    result.machines.save(tmp_path / "machines.json")
    loaded = rs.load(tmp_path / "machines.json")
    assert loaded == result.machines
    assert loaded.preprocessor.rewards == result.preprocessor.rewards
    score = loaded.score(noisy)
    assert score["reward"].unseen == 0
    assert score["reward"].wrong / noisy.steps == pytest.approx(result.machines.reward.noise)
    scores = loaded.score(gaussian(rs.collect(House(), episodes=50, seed=5), seed=5))
    assert scores["transition"].wrong == 0
    assert 0 < scores["reward"].wrong / scores["reward"].right < 0.3
    assert rs.evidence(loaded, result.all_traces())["reward"].separations


def test_an_update_keeps_the_levels(result):
    more = gaussian(rs.collect(House(), episodes=100, seed=7), seed=7)
    updated = result.update(more)
    assert updated.preprocessor == result.preprocessor
    assert updated.traces == result.traces + 100
    assert_true_reward_machine(updated.machines.reward)
    assert not updated.machines.transition.is_noisy


def test_the_order_of_traces_makes_no_difference(result, noisy):
    shuffled = noisy.take(np.random.default_rng(0).permutation(len(noisy)))
    again = rs.infer(shuffled, noise="auto").machines
    assert again.replacing(provenance=None) == result.machines.replacing(provenance=None)


def test_labels_are_discovered_despite_noisy_rewards(noisy):
    inferred = rs.infer(noisy, noise="auto", labels="auto")
    assert inferred.preprocessor.rewards.centers == pytest.approx([0, 1], abs=0.1)
    assert [machine.states for machine in inferred.machines.values()] == [2, 2]


def test_flipped_rewards_leave_the_transition_machine_exact(clean):
    result = rs.infer(flipped(clean), noise="auto")
    assert result.preprocessor.is_identity
    assert not result.machines.transition.is_noisy
    assert_true_reward_machine(result.machines.reward)
    assert result.machines.reward.noise == pytest.approx(0.05, abs=0.01)
    assert "% of rewards have another value" in noise_lines(result)[0]


@pytest.mark.parametrize(
    "noise",
    [
        "gaussian",
        *(pytest.param(shape, marks=pytest.mark.slow) for shape in ("uniform", "laplace")),
    ],
)
def test_levels_that_overlap_are_estimated_in_a_random_world(noise):
    env = gym.make("resolvent/RandomWorld-v0", world_seed=0)
    traces = rs.collect(env, episodes=500, seed=0)
    paid, random = exact_pay(traces), np.random.default_rng(0)
    sigma = 0.5 * np.diff(traces.rewards).min()
    drawn = {
        "gaussian": lambda: random.normal(0, sigma, len(paid)),
        "uniform": lambda: random.uniform(-1, 1, len(paid)) * sigma * 3**0.5,
        "laplace": lambda: random.laplace(0, sigma / 2**0.5, len(paid)),
    }[noise]()
    result = rs.infer(paying(traces, paid + drawn), noise="auto")
    assert result.machines.transition == rs.infer(traces).machines.transition
    assert result.preprocessor.rewards.centers == pytest.approx(
        list(traces.rewards), abs=0.3 * sigma
    )
    assert result.machines.reward.states == env.unwrapped.machines().reward.states == 2


def one_long_log(pay, steps=5_000):
    """One trace along a ring of rooms: no history comes twice, so nothing ever contradicts."""
    random = np.random.default_rng(0)
    acts = random.integers(0, 3, steps)
    rooms = np.append(0, np.cumsum(acts) % 5)
    labels = [None if bell > 2 else f"bell {bell}" for bell in random.integers(0, 9, steps + 1)]
    return rs.TraceSet([rs.Trace(rooms.tolist(), labels, acts.tolist(), pay(random, steps))])


def test_unique_rewards_in_one_long_log_are_noise():
    log = one_long_log(lambda random, steps: random.normal(3, 0.5, steps))
    result = rs.infer(log)
    assert result.preprocessor.rewards.centers == pytest.approx([3], abs=0.05)
    assert [machine.states for machine in result.machines.values()] == [1, 1]
    assert not result.machines.transition.is_noisy


def test_unique_rewards_without_levels_are_refused_before_any_search():
    rising = one_long_log(lambda random, steps: random.lognormal(0, 3, steps).cumsum())
    calls = []
    with pytest.raises(rs.TraceError, match="5,000 different rewards at 5,000 steps; round them"):
        rs.infer(rising, progress=lambda *_: calls.append(1))
    assert not calls


def test_many_rewards_that_follow_from_observations_are_exact():
    walk = list(range(2_000))
    trace = rs.Trace([*walk, 0], [None] * 2_001, ["go"] * 2_000, [room / 7 for room in walk])
    result = rs.infer(rs.TraceSet([trace]))
    assert result.preprocessor.rewards is None
    assert result.machines.reward.output(0, (1_999, 0), "go") == 1_999 / 7
    assert "rewards-all-differ" in [finding.kind for finding in result.warnings]
