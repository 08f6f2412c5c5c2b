"""Noise selection: exact machines come first, and noise where these overfit."""

import pickle
from random import Random

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from noisy_labels import with_label_noise
from noisy_worlds import Slips, disturbed, same, slipped, two_moods
from resolvent.evaluation.diagnosis.diagnose import rare_transitions
from resolvent.inference.context import InferenceContext
from resolvent.inference.noise_fits import predicts_held_out
from resolvent.inference.options import InferenceOptions
from resolvent.inference.refinement import refine
from resolvent.inference.summary import noise_lines
from resolvent.preprocess.transform import Preprocessor
from resolvent.traces.source import InMemorySource
from resolvent.traces.trace_set import with_column
from resolvent.worlds import House, TMaze

WRONG = rs.Trace(["corridor", "cyanroom"], [None, "toilet"], ["up"], [0])


def kinds(result):
    return {warning.kind for warning in result.warnings}


@pytest.fixture(scope="module")
def house():
    return rs.collect(House(), episodes=200, seed=0)


@pytest.fixture(scope="module")
def flickering(house):
    return disturbed(house, 0.05, Random(0))


def random_world(seed, episodes):
    return rs.collect(
        gym.make("resolvent/RandomWorld-v0", world_seed=seed), episodes=episodes, seed=seed
    )


@pytest.mark.parametrize("name", ["House", "HouseInterference", "PhaseGrid3", "TwoKeys"])
@pytest.mark.parametrize("episodes", [5, 30, 120])
def test_clean_worlds_give_the_same_machines(name, episodes):
    traces = rs.collect(gym.make(f"resolvent/{name}-v0"), episodes=episodes, seed=1)
    assert same(rs.infer(traces), rs.infer(traces, noise="none"))


@pytest.mark.parametrize("seed", [0, 1, 6, 7])
def test_few_clean_traces_make_large_machines_but_no_noise(seed):
    traces = random_world(seed, 50)
    exact = rs.infer(traces, strategy="edsm", noise="none")
    assert exact.machines.transition.states > 7
    assert same(rs.infer(traces, strategy="edsm"), exact)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_noise_without_contradiction_adds_no_states(seed):
    traces = slipped(random_world(seed, 25), 0.05, seed)
    exact = rs.infer(traces, strategy="edsm", noise="none")
    assert exact.machines.transition.states > 15
    result = rs.infer(traces, strategy="edsm")
    assert result.is_noisy
    assert result.machines.transition.states <= 4
    assert 0.02 < result.noise["transition"] < 0.07
    (warning,) = (finding for finding in result.warnings if finding.kind == "noise")
    assert "No two steps contradict each other" in warning.text


def test_labels_read_at_another_time_are_no_noise():
    traces = rs.collect(TMaze(4), episodes=100, seed=0, max_steps=500)
    with pytest.raises(rs.ContradictoryTraces, match="--timing current-with-initial"):
        rs.infer(traces)


def test_last_digits_of_rewards_are_no_noise():
    pays = [0.5, 0.5 + 1e-9, 0.5]
    traces = rs.TraceSet(rs.Trace([0, 0], [None] * 2, ["go"], [pay]) for pay in pays)
    with pytest.raises(rs.ContradictoryTraces, match="--reward-digits"):
        rs.infer(traces)


def test_labels_declared_trivial_are_no_noise():
    days = [
        rs.Trace([0, 0, 0], [None, label, None], ["go"] * 2, [0, pay])
        for label, pay in (("key", 1), (None, 0))
    ]
    with pytest.raises(rs.ContradictoryTraces, match="--keep-trivial"):
        rs.infer(rs.TraceSet(days), options=rs.InferenceOptions(trivial=["key"]))


def test_a_missing_label_is_distinguished_from_chance(house):
    blind = rs.collect(House(), episodes=200, seed=0, labeling_fn=lambda room: set())
    (missing,) = (finding for finding in rs.infer(blind).warnings if finding.kind == "noise")
    assert "missing memory, which no label shows" in missing.text
    random = slipped(house, 0.1)
    (chance,) = (finding for finding in rs.infer(random).warnings if finding.kind == "noise")
    assert "remember" not in chance.text


def test_only_noisy_outputs_get_noise(house):
    random = np.random.default_rng(0)
    flips = np.where(random.random(house.steps) < 0.1, 1 - house.reward_codes, house.reward_codes)
    traces = with_column(house, "reward", house.rewards, flips.astype(np.int32))
    for noise in ("auto", rs.Noise(rewards="flipped")):
        result = rs.infer(traces, noise=noise)
        exact = rs.infer(traces, noise="none", outputs=["observation"])
        assert result.machines.transition == exact.machines.transition
        assert result.machines.reward.states == 2
        assert result.noise["transition"] == 0
        assert result.noise["reward"] == pytest.approx(0.1, abs=0.02)


def test_outputs_not_stated_to_be_noisy_are_exact(flickering):
    for noise in (rs.Noise(), rs.Noise(rewards="flipped"), rs.Noise(outliers=0.02)):
        with pytest.raises(rs.ContradictoryTraces) as caught:
            rs.infer(flickering, noise=noise)
        assert caught.value.output == "observation"


def test_absent_stated_noise_is_reported(house):
    stated = rs.Noise(outcomes=True)
    clean = rs.infer(house, noise=stated)
    assert "no-noise" in kinds(clean)
    assert [machine.states for machine in clean.machines.values()] == [2, 2]
    noisy = rs.infer(slipped(house, 0.05), noise=stated)
    assert "no-noise" not in kinds(noisy)
    assert noisy.machines.transition.states == 2
    assert noisy.noise["transition"] > 0.02


def test_an_update_may_bring_noise(house, flickering):
    refusing, allowing = rs.infer(house, noise="none"), rs.infer(house)
    with pytest.raises(rs.ContradictoryTraces):
        refusing.update(flickering)
    updated = allowing.update(flickering)
    assert updated.is_noisy
    assert updated.traces == 400
    assert same(updated, rs.infer(house + flickering))


def test_events_come_before_noise():
    blank = rs.collect(House(), episodes=200, seed=0, labeling_fn=lambda room: set())
    result = rs.infer(blank, labels="auto")
    assert not result.is_noisy
    assert [machine.states for machine in result.machines.values()] == [2, 2]
    assert result.options.noise == result.update(blank).options.noise == "auto"


def test_files_store_the_noise_option(house, tmp_path):
    rs.infer(house).machines.save(tmp_path / "m.json")
    made = rs.load(tmp_path / "m.json").provenance
    assert made.options["noise"] == "auto"
    stored = InferenceOptions(noise="none").as_dict()
    assert stored.pop("noise") == "none"
    assert InferenceOptions.from_dict(stored).noise == "none"  # as before there was a choice
    stated = rs.Noise(outcomes=True, outliers=0.1)
    assert InferenceOptions.from_dict(InferenceOptions(noise=stated).as_dict()).noise == stated


def test_uninformative_labels_are_reported():
    random = Random(0)
    traces = rs.TraceSet(
        rs.Trace(
            [0] * 21,
            [random.choice(["a", "b", "c"]) for _ in range(21)],
            ["go"] * 20,
            [int(random.random() < 0.2) for _ in range(20)],
        )
        for _ in range(60)
    )
    result = rs.infer(traces)
    assert [machine.states for machine in result.machines.values()] == [1, 1]
    assert "uninformative-labels" in kinds(result)


def hidden_passenger(episodes, labeling_fn):
    """Taxi with the passenger hidden, who waits at any depot until picked up."""
    env = gym.wrappers.TransformObservation(
        gym.make("Taxi-v4"), lambda state: state // 20 * 4 + state % 4, gym.spaces.Discrete(100)
    )
    return rs.collect(env, episodes=episodes, seed=0, labeling_fn=labeling_fn)


@pytest.mark.slow
def test_hidden_initial_states_make_no_outliers():
    traces = hidden_passenger(120, lambda seen, action, now: now // 4)
    result = rs.infer(traces)
    assert not result.outliers
    assert result.machines.reward.states == 1
    (warning,) = (warning for warning in result.warnings if warning.kind == "noise")
    assert "missing memory, which no label shows" in warning.text
    assert noise_lines(result)[0].startswith("memory of these labels does not improve")


@pytest.mark.parametrize("is_hidden", [True, False])
def test_machines_that_memorize_traces_do_not_predict_others(house, is_hidden):
    traces = house
    if is_hidden:
        pick = {4: "pick", 5: "drop"}
        traces = hidden_passenger(30, lambda seen, action, now: pick.get(action))
    context = InferenceContext(InferenceOptions(noise="none"), Preprocessor())
    corpus = context.corpus_of(InMemorySource([traces]))
    assert not any(rare_transitions(refine(context, corpus).inference_state.counts))
    assert predicts_held_out(context, corpus, 0.05) != is_hidden


@pytest.mark.parametrize(
    ("change", "noise", "chosen", "reasons"),
    [
        (lambda house: house, "auto", "no noise", {"outliers": "without noise explain all"}),
        (lambda house: house, "none", "no noise", {"noisy outputs": "without noise explain all"}),
        (
            lambda house: slipped(house, 0.05),
            "auto",
            "noisy outputs",
            {"no noise": "contradict each other", "latent labels": "do not depend on the past"},
        ),
        (
            lambda house: slipped(house, 0.05),
            rs.Noise(outcomes=True),
            "noisy outputs",
            {"no noise": "stated to be noisy", "outliers": "not allowed for"},
        ),
        (
            lambda house: house + rs.TraceSet([WRONG]),
            "auto",
            "outliers",
            {"noisy outputs": "outliers explain the traces better"},
        ),
        (
            lambda house: with_label_noise(house, missed=0.05),
            "auto",
            "denoised labels, no noise",
            {"noisy outputs": "without noise explain all traces"},
        ),
        (
            lambda house: two_moods(200),
            "auto",
            "latent starts",
            {"latent labels": "latent starts explain"},
        ),
    ],
    ids=["exact", "none", "chance", "stated", "outlier", "labels", "starts"],
)
def test_each_candidate_has_the_reason_why_it_was_chosen_or_rejected(
    house, change, noise, chosen, reasons
):
    result = rs.infer(change(house), noise=noise)
    by_name = {candidate.name: candidate for candidate in result.noise_candidates}
    are_chosen = [name for name, candidate in by_name.items() if candidate.is_chosen]
    assert ", ".join(are_chosen) == chosen
    assert all(candidate.reason for candidate in by_name.values())
    for name, reason in reasons.items():
        assert reason in by_name[name].reason
    if result.is_noisy:
        assert by_name[are_chosen[-1]].log_evidence < 0


# ---- one noisy world, from end to end --------------------------------------


@pytest.fixture(scope="module")
def slippery():
    return rs.collect(Slips(House()), episodes=300, seed=0)


@pytest.fixture(scope="module")
def noisy(slippery):
    return rs.infer(slippery, noise="auto")


def test_noise_is_modeled_by_default_and_refused_on_request(slippery, noisy):
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(slippery, noise="none")
    by_default = rs.infer(slippery)
    assert by_default == noisy
    (warning,) = (warning for warning in noisy.warnings if warning.kind == "noise")
    assert warning.figures["locations"] == [*map(str, caught.value.locations)]
    assert "noise='none' (--noise none)" in warning.text


def test_machines_are_those_of_the_world_without_noise(noisy):
    true = House().machines()
    for kind in ("transition", "reward"):
        machine = noisy.machines[kind]
        assert machine.states == true[kind].states
        for history in ([], [{"key"}], [{"key"}, {"toilet"}]):
            state, true_state = machine.run(history), true[kind].run(history)
            for _, observation, action, output in true[kind].entries():
                if true[kind].output(true_state, observation, action) == output:
                    assert machine.output(state, observation, action) in (output, rs.UNSEEN)
    assert noisy.is_noisy
    assert not noisy.as_dict()["explains_all_traces"]


def test_a_state_has_a_distribution_of_outputs(noisy):
    machine = noisy.machines.transition
    has_key = machine.run([{"key"}])
    shares = machine.distribution(has_key, "corridor", "up")
    assert max(shares, key=shares.__getitem__) == "cyanroom"
    assert machine.output(has_key, "corridor", "up") == "cyanroom"
    assert shares["cyanroom"] == pytest.approx(0.92, abs=0.04)  # one in five slips is up, too
    assert sum(shares.values()) == pytest.approx(1)
    assert noisy.as_dict()["noise"]["transition"] == pytest.approx(machine.noise)
    assert 0.03 < machine.noise < 0.08


def test_other_sizes_are_less_likely_by_the_stated_odds(noisy):
    odds = noisy.odds("transition")
    assert odds[2] == 1.0
    assert all(odd < 1e-3 for states, odd in odds.items() if states != 2)
    text = str(noisy)
    assert "of the outputs of the transition machine deviate; " in text
    assert "but for noise, all traces are explained" in text
    assert "prefix-tree" not in text


def test_order_pickling_and_files(noisy, slippery, tmp_path):
    shuffled = slippery.take(np.random.default_rng(0).permutation(len(slippery)))
    again = rs.infer(shuffled, noise="auto")
    assert again.machines.replacing(provenance=None) == noisy.machines.replacing(provenance=None)
    noisy.machines.save(tmp_path / "house.json")
    assert rs.load(tmp_path / "house.json") == noisy.machines
    back = pickle.loads(pickle.dumps(noisy))  # noqa: S301
    assert back == noisy
    assert back.odds("reward") == noisy.odds("reward")


def test_updates_and_scores_of_noisy_machines(noisy):
    more = rs.collect(Slips(House()), episodes=100, seed=5)
    updated = noisy.update(more)
    assert updated.is_noisy
    assert updated.traces == 400
    assert updated.machines.transition.states == 2
    score = noisy.machines.score(more)["transition"]
    assert score.wrong / (score.right + score.wrong) == pytest.approx(
        noisy.machines.transition.noise, abs=0.02
    )
    assert score.log_loss < 0.5


def test_a_slippery_lake_needs_no_memory():
    lake = rs.collect(gym.make("FrozenLake-v1"), episodes=500, seed=0, labels="observation")
    result = rs.infer(lake, labels="observation", noise="auto")
    assert [machine.states for machine in result.machines.values()] == [1, 1]
    assert result.machines.transition.noise > 0.4


def test_wrappers_and_plans_of_noisy_machines(noisy, slippery):
    wrapped = rs.AugmentObservation(Slips(House(), 0.0), noisy.machines)
    wrapped.reset()
    assert wrapped.step(2)[0]["transition_state"] == noisy.machines.transition.run([{"key"}])
    plan = rs.plan(noisy, slippery)
    runs = plan.run(Slips(House()), episodes=200, seed=3)
    assert runs.discounted_returns.mean() == pytest.approx(plan.value, abs=0.02)
    assert plan.value == pytest.approx(0.746, abs=0.01)  # 0.7738 without slips


def test_a_folder(slippery, tmp_path):
    slippery[:150].save(tmp_path / "a.parquet")
    slippery[150:].save(tmp_path / "b.parquet")
    scanned = rs.infer(rs.scan_traces(tmp_path), noise="auto").machines
    assert [machine.states for machine in scanned.values()] == [2, 2]


@pytest.mark.parametrize("noise", ["some", None, 0.1])
def test_invalid_noise_is_refused(slippery, noise):
    with pytest.raises(rs.OptionError, match=r"^noise=.*: give a Noise, 'none' or 'auto'"):
        rs.infer(slippery, noise=noise)
