"""Worlds that are exact but for their rewards: the true machines, from end to end."""

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_worlds import exact_pay, gaussian, paying
from resolvent.worlds import House


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
def found(noisy):
    return rs.infer(noisy, noise="auto")


def assert_true_reward_machine(machine):
    true = House().machines().reward
    assert machine.states == true.states == 2
    labels = [{"key"}, {"toilet"}]
    for history in ([], labels[:1], labels[1:], labels, labels[::-1]):
        state = machine.run(history)
        if state is not rs.UNSEEN:
            assert (state == machine.run([])) == (true.run(history) == true.run([]))


def test_the_transition_machine_is_that_of_exact_rewards(clean, found):
    exact = rs.infer(clean).machines.transition
    assert found.machines.transition == exact
    assert not found.machines.transition.is_noisy


def test_the_reward_machine_has_the_memory_of_the_world(found):
    assert found.senses.rewards.centres == pytest.approx([0, 1], abs=0.1)
    assert_true_reward_machine(found.machines.reward)
    assert "rewards vary by ±0.4 around 0, 1" in str(found)
    assert "of rewards are taken for another level" in str(found)


def test_rewards_stated_to_be_gaussian_are(noisy, found):
    stated = rs.infer(noisy, noise=rs.Noise(rewards="gaussian"))
    assert stated.senses == found.senses
    assert_true_reward_machine(stated.machines.reward)


def test_a_statement_that_the_traces_exclude_is_refused(clean, noisy):
    stated = rs.Noise(rewards="gaussian")
    with pytest.raises(rs.OptionError, match=r"2 different rewards at 1[0-9,]+ steps are"):
        rs.infer(clean, noise=stated)
    with pytest.raises(rs.OptionError, match="reward_digits rounds rewards"):
        rs.infer(noisy, noise=stated, options=rs.InferenceOptions(reward_digits=1))


def test_without_noise_it_is_a_contradiction(noisy):
    with pytest.raises(rs.ContradictoryTraces, match="reward_digits"):
        rs.infer(noisy, noise="none")


def test_files_scores_and_evidence_see_levels(found, noisy, clean, tmp_path):
    found.machines.save(tmp_path / "machines.json")
    loaded = rs.load(tmp_path / "machines.json")
    assert loaded == found.machines
    assert loaded.senses.rewards == found.senses.rewards
    score = loaded.score(noisy)
    assert score["reward"].unseen == 0
    assert score["reward"].wrong / noisy.steps == pytest.approx(found.machines.reward.noise)
    other = loaded.score(gaussian(rs.collect(House(), episodes=50, seed=5), seed=5))
    assert other["transition"].wrong == 0
    assert 0 < other["reward"].wrong / other["reward"].right < 0.3
    assert rs.evidence(loaded, found.all_traces())["reward"].separations


def test_more_traces_are_seen_through_the_same_levels(found):
    more = gaussian(rs.collect(House(), episodes=100, seed=7), seed=7)
    updated = found.update(more)
    assert updated.senses == found.senses
    assert updated.traces == found.traces + 100
    assert_true_reward_machine(updated.machines.reward)
    assert not updated.machines.transition.is_noisy


def test_the_order_of_traces_makes_no_difference(found, noisy):
    shuffled = noisy.take(np.random.default_rng(0).permutation(len(noisy)))
    again = rs.infer(shuffled, noise="auto").machines
    assert again.replacing(provenance=None) == found.machines.replacing(provenance=None)


def test_labels_are_found_under_noisy_rewards(noisy):
    inferred = rs.infer(noisy, noise="auto", labels="auto")
    assert inferred.senses.rewards.centres == pytest.approx([0, 1], abs=0.1)
    assert [one.states for one in inferred.machines.values()] == [2, 2]


def test_flipped_rewards_keep_the_world_exact(clean):
    result = rs.infer(flipped(clean), noise="auto")
    assert result.senses.are_plain
    assert not result.machines.transition.is_noisy
    assert_true_reward_machine(result.machines.reward)
    assert result.machines.reward.noise == pytest.approx(0.05, abs=0.01)
    assert "% of rewards are another value" in result.noise_text()[0]


@pytest.mark.parametrize(
    "noise",
    ["gaussian", *(pytest.param(one, marks=pytest.mark.slow) for one in ("uniform", "laplace"))],
)
def test_a_random_world_whose_levels_overlap(noise):
    env = gym.make("resolvent/RandomWorld-v0", world_seed=0)
    traces = rs.collect(env, episodes=500, seed=0)
    paid, random = exact_pay(traces), np.random.default_rng(0)
    sigma = 0.5 * np.diff(traces.rewards).min()
    drawn = {
        "gaussian": lambda: random.normal(0, sigma, len(paid)),
        "uniform": lambda: random.uniform(-1, 1, len(paid)) * sigma * 3**0.5,
        "laplace": lambda: random.laplace(0, sigma / 2**0.5, len(paid)),
    }[noise]()
    found = rs.infer(paying(traces, paid + drawn), noise="auto")
    assert found.machines.transition == rs.infer(traces).machines.transition
    assert found.senses.rewards.centres == pytest.approx(list(traces.rewards), abs=0.3 * sigma)
    assert found.machines.reward.states == env.unwrapped.machines().reward.states == 2


def one_long_log(pay, steps=5_000):
    """One trace along a ring of rooms: no history comes twice, so nothing ever contradicts."""
    random = np.random.default_rng(0)
    acts = random.integers(0, 3, steps)
    rooms = np.append(0, np.cumsum(acts) % 5)
    labels = [None if bell > 2 else f"bell {bell}" for bell in random.integers(0, 9, steps + 1)]
    return rs.TraceSet([rs.Trace(rooms.tolist(), labels, acts.tolist(), pay(random, steps))])


def test_rewards_that_never_come_back_are_noise_also_in_one_long_log():
    log = one_long_log(lambda random, steps: random.normal(3, 0.5, steps))
    result = rs.infer(log)
    assert result.senses.rewards.centres == pytest.approx([3], abs=0.05)
    assert [one.states for one in result.machines.values()] == [1, 1]
    assert not result.machines.transition.is_noisy


def test_rewards_that_never_come_back_around_no_value_are_refused_before_any_search():
    rising = one_long_log(lambda random, steps: random.lognormal(0, 3, steps).cumsum())
    asked = []
    with pytest.raises(rs.TraceError, match="5,000 different ones at 5,000 steps; round them"):
        rs.infer(rising, progress=lambda *_: asked.append(1))
    assert not asked


def test_rewards_that_follow_from_what_is_seen_are_exact_however_many_there_are():
    walk = list(range(2_000))
    trace = rs.Trace([*walk, 0], [None] * 2_001, ["go"] * 2_000, [room / 7 for room in walk])
    result = rs.infer(rs.TraceSet([trace]))
    assert result.senses.rewards is None
    assert result.machines.reward.output(0, (1_999, 0), "go") == 1_999 / 7
    assert "rewards-all-differ" in [one.kind for one in result.warnings]
