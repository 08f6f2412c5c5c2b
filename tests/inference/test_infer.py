"""Inference on the paper's worlds and by hand: options, results, warnings and the estimator."""

import math
import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import resolvent as rs
from own_strategies import AtLeast, FirstInOrder, KeepingLabels, MostAgreeing
from resolvent._util.parallel import Progress
from resolvent.inference import MachineInference
from resolvent.inference.infer import infer_with
from resolvent.inference.options import InferenceOptions
from resolvent.inference.summary import trivial_lines
from resolvent.machines import MergeDecision
from resolvent.preprocess.reduction import Triviality, TrivialityBasis, assess_labels
from resolvent.worlds import House
from worlds import random_world, with_decoys

BOTH = {"engine": ["native", "python"], "strategy": ["edsm", "rpni"]}
every_search = [(engine, strategy) for engine in BOTH["engine"] for strategy in BOTH["strategy"]]


@pytest.fixture(scope="module")
def house():
    return rs.collect(gym.make("resolvent/House-v0"), episodes=150, seed=0, max_steps=60)


@pytest.fixture(scope="module")
def interference():
    env = gym.make("resolvent/HouseInterference-v0")
    return rs.collect(env, episodes=150, seed=0, max_steps=60)


# A bell that must ring twice; nothing else moves. Observation and action never change.
BELL = rs.TraceSet(
    [
        rs.Trace([0] * 5, [None, "bell", None, "bell", None], ["wait"] * 4, [0, 0, 0, 1]),
        rs.Trace([0] * 4, [None, "bell", "bell", None], ["wait"] * 3, [0, 0, 1], terminated=True),
    ]
)


PAPERS = ["observation", "reward"]
"""What the paper's two machines predict, and no machine for when episodes end."""


# ---- the paper's house -----------------------------------------------------


@pytest.mark.parametrize("timing", ["current", "current-with-initial", "lagged"])
@pytest.mark.parametrize(("engine", "strategy"), every_search)
def test_the_house_has_two_states_each(house, engine, strategy, timing):
    pair = rs.infer(
        house, strategy=strategy, timing=timing, options=rs.InferenceOptions(engine=engine)
    ).machines
    assert (pair.transition.states, pair.reward.states) == (2, 2)
    assert pair.score(house).perfect
    key = pair.transition.run([{"key"}])
    assert key == 1
    assert pair.transition.output(0, "corridor", "up") == "corridor"
    assert pair.transition.output(key, "corridor", "up") == "cyanroom"
    toilet = pair.reward.run([{"toilet"}])
    assert toilet == 1
    for state, reward in ((0, 0.0), (toilet, 1.0)):
        states = {"transition": key, "reward": state}
        assert pair.predict_all("limegreenroom", "sit", states)["reward"] == reward


@pytest.mark.parametrize("timing", ["current", "current-with-initial", "lagged"])
@pytest.mark.parametrize(("engine", "strategy"), every_search)
def test_the_supplement_keeps_the_key_out_of_the_reward(interference, engine, strategy, timing):
    """Paper: the example "Transition-Reward Interference"."""
    options = {"engine": engine, "strategy": strategy, "timing": timing}
    pair = rs.infer(interference, options=rs.InferenceOptions(**options)).machines
    assert (pair.transition.states, pair.reward.states) == (2, 1)
    bare = rs.infer(interference, options=rs.InferenceOptions(supplement=False, **options)).machines
    assert (bare.transition.states, bare.reward.states) == (2, 2)
    assert bare.score(interference).perfect


def test_the_house_ends_on_the_sofa(house):
    termination = rs.infer(house).machines.termination
    assert {(o, a) for o, _, _, a in termination.ends} == {("limegreenroom", "sit")}
    assert termination.ambiguous == frozenset()


def test_fresh_episodes_of_the_house_are_predicted(house):
    fresh = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=9, max_steps=60)
    assert rs.infer(house).machines.score(fresh).perfect


# ---- what comes out --------------------------------------------------------


def test_figures_by_hand():
    result = rs.infer(BELL)
    assert (result.traces, result.steps) == (2, 7)
    # The one observation and action always lead back: nothing is left of the TM's samples,
    # but labels still make a tree: (), bell, bell bell.
    assert result.transition.states == 1
    assert result.transition.prefix_tree_nodes == 3
    assert result.transition.constant_outputs == 1
    assert result.transition.outputs_by_state == 0
    assert (result.transition.merges, result.transition.promotions) == (1, 0)
    # Rewards 0, 0, 0, 1 along (), bell, bell, bell bell: bell joins the start or not? It cannot
    # be told from it but by what a second bell brings: three states, of which two pay nothing.
    assert result.reward.constant_outputs == 0
    assert (
        result.machines.reward.output(result.machines.reward.run(["bell", "bell"]), (0, 0), "wait")
        == 1.0
    )
    assert (
        result.machines.reward.output(result.machines.reward.run(["bell"]), (0, 0), "wait") == 0.0
    )
    assert result.reward.states == 3
    assert (result.reward.merges, result.reward.promotions) == (0, 2)


def test_decisions_are_those_of_the_merges():
    machines = rs.infer(BELL, strategy="rpni").machines
    bell = frozenset({"bell"})
    assert list(machines.transition.decisions) == [MergeDecision(0, bell, 0, False, 0, 2)]
    assert list(machines.reward.decisions) == [
        MergeDecision(0, bell, 1, True, 0, 0),
        MergeDecision(1, bell, 2, True, 0, 0),
    ]


SILENCE = {
    "label": [],
    "triviality": "trivial",
    "basis": "default",
    "agreements": 0,
    "witness": None,
}
BELL_UNDECIDED = {**SILENCE, "label": ["bell"], "triviality": "undecided", "basis": "evidence"}
BELL_NEEDED = {
    **BELL_UNDECIDED,
    "triviality": "needed",
    "witness": [{"trace": 0, "step": 0}, {"trace": 0, "step": 3}],
}


def test_as_dict_holds_what_the_command_prints():
    options = {"timing": "current", "engine": "python", "reward_digits": 3, "outputs": PAPERS}
    result = rs.infer(BELL, options=rs.InferenceOptions(**options))
    figures = result.as_dict()
    assert figures["seconds"].keys() == {"transition", "reward", "replay", "total"}
    assert all(value >= 0 for value in figures.pop("seconds").values())
    assert figures.pop("tried").keys() == {"transition", "reward"}
    folds = figures.pop("folds_tried")
    assert folds["transition"] >= 1
    assert folds["reward"] >= 1
    assert {name: len(folds) for name, folds in figures.pop("cross_validation").items()} == {
        "transition": 2,
        "reward": 2,
    }
    assert [warning["kind"] for warning in figures.pop("warnings")] == ["hardly-tested"]
    assert figures == {
        "states": {"transition": 1, "reward": 3},
        "tm_states": 1,
        "rm_states": 3,
        "lower_bounds": {"transition": 1, "reward": 3},
        "traces": 2,
        "steps": 7,
        "prefix_tree_nodes": {"transition": 3, "reward": 3},
        "merges": {"transition": 1, "reward": 0},
        "constant_outputs": {"transition": 1, "reward": 0},
        "trivial": {
            "transition": [SILENCE, BELL_UNDECIDED],
            "reward": [SILENCE, BELL_NEEDED],
        },
        "learned_from": {"rounds": 1, "traces": 2, "steps": 7},
        "explains_all_traces": True,
        "unfinished": {},
        "noise": {"transition": 0.0, "reward": 0.0},
        "outliers": [],
        "log_odds": {"transition": {}, "reward": {}},
        "alternatives": {"transition": [], "reward": []},
        "labels": "given",
        "events": {
            "transition": [],
            "reward": [{"labels": [["bell"]], "transitions": [[0, 1], [1, 2]], "sources": []}],
        },
        "certificates": {},
        "terminal_situations": 0,
        "ambiguous_terminations": 1,
        "options": {
            "outputs": ["observation", "reward"],
            "strategy": "auto",
            "noise": "auto",
            "timing": "current",
            "trivial": "auto",
            "supplement": True,
            "remove_redundant": True,
            "remove_trivial": True,
            "reward_digits": 3,
            "seed": 0,
            "effort": 1.0,
            "engine": "python",
        },
    }


def test_a_result_prints_states_merges_and_seconds():
    lines = str(rs.infer(BELL, outputs=PAPERS)).splitlines()
    assert lines[0] == "2 traces, 7 steps"
    assert lines[1].startswith(
        "Transition Machine  1 state, from 3 prefix-tree nodes by 1 merge, in "
    )
    assert lines[2].startswith(
        "Reward Machine      3 states, from 3 prefix-tree nodes by 0 merges, in "
    )
    assert lines[3] == "labels              assumed to change no state: no event"
    assert lines[4] == (
        "learned from        all traces in 1 round; replayed, all traces are explained"
    )
    assert lines[6].startswith("total")


# ---- options ---------------------------------------------------------------


def test_trivial_labels_by_name():
    taught = rs.TraceSet([rs.Trace([0] * 4, [None, "rain", "key", None], ["go"] * 3, [0, 0, 1])])
    machine = rs.infer(taught, options=rs.InferenceOptions(trivial=["rain"])).machines.reward
    assert machine.trivial_labels == (frozenset(), frozenset({"rain"}))
    assert machine.step(1, "rain") == 1
    assert rs.infer(taught).machines.reward.step(1, "rain") is rs.UNSEEN


def test_rounding_joins_noisy_rewards():
    noisy = rs.TraceSet(
        rs.Trace([0] * 2, [None] * 2, ["go"], [reward]) for reward in (0.501, 0.499)
    )
    with pytest.raises(rs.ContradictoryTraces, match="--reward-digits"):
        rs.infer(noisy, noise="none")
    reward = rs.infer(noisy, options=rs.InferenceOptions(reward_digits=2)).machines.reward
    assert reward.digits == 2
    assert list(reward.outputs) == [0.5]


def test_timing_by_name_or_value():
    traces = rs.TraceSet([rs.Trace([0, 0], [None, "bell"], ["wait"], [0])])
    for timing in rs.LabelTiming:
        assert rs.infer(traces, timing=timing).machines.timing is timing
        assert rs.infer(traces, timing=str(timing)).machines.timing is timing


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "bfs"}, "unknown strategy 'bfs': choose one of auto, edsm, rpni"),
        ({"engine": "rust"}, "unknown engine 'rust': choose one of native, python"),
        (
            {"timing": "soon"},
            "unknown timing 'soon': choose one of current, current-with-initial, lagged",
        ),
        ({"trivial": ["belt"]}, "trivial label 'belt' never occurs in the traces"),
        ({"time_limit": 0}, "time_limit=0: give a number above 0"),
        ({"time_limit": -3.0}, "time_limit=-3.0: give a number above 0"),
        ({"effort": math.nan}, "effort=nan: give a number above 0 and at most 1e9"),
        (
            {"effort": 1e30, "strategy": "edsm"},
            r"effort=1e\+30: give a number above 0 and at most 1e9",
        ),
        ({"effort": -1}, "effort=-1: give a number above 0 and at most 1e9"),
        ({"effort": 0}, "effort=0: give a number above 0"),
        ({"seed": -1, "strategy": "edsm"}, r"seed=-1: give a number from 0 to 2\^64 - 1"),
        ({"seed": 2**64}, r"give a number from 0 to 2\^64 - 1"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(rs.OptionError, match=message):
        rs.infer(BELL, options=rs.InferenceOptions(**options))


def test_options_are_keyword_only():
    with pytest.raises(TypeError):
        rs.infer(BELL, "rpni")


@pytest.fixture(scope="module")
def decoyed():
    return with_decoys(random_world(0, size=9, labels=3, tm_states=4), 2).rollouts(600, seed=0)


def without_trivial(pair):
    """The machines with no label listed as trivial, as if they had all been read."""
    return [replace(machine, trivial=()) for machine in (pair.transition, pair.reward)]


def test_labels_found_trivial_make_no_difference_to_the_machines(decoyed):
    found = rs.infer(decoyed)
    kept = rs.infer(decoyed, options=rs.InferenceOptions(trivial=()))
    assert found.transition.prefix_tree_nodes < kept.transition.prefix_tree_nodes / 2
    assert found.machines.transition == kept.machines.transition
    assert found.machines.reward == kept.machines.reward
    support = [result.machines.transition.support.transitions for result in (found, kept)]
    assert np.array_equal(*support)
    named = rs.infer(decoyed, options=rs.InferenceOptions(trivial=["3", "4"])).machines
    assert named.score(decoyed).perfect
    for mine, theirs in zip(without_trivial(found.machines), without_trivial(named), strict=True):
        known = mine.transitions >= 0
        assert np.array_equal(mine.transitions[known], theirs.transitions[known])
        assert np.array_equal(mine.output_value, theirs.output_value)
    assert trivial_lines(found)[0] == (
        "assumed to change no state of the transition machine: no event, 3, 4"
    )


def test_a_label_dropped_on_evidence_loops_only_where_it_was_read(decoyed):
    machine = rs.infer(decoyed).machines.transition
    assert machine.trivial_labels == (frozenset(),)
    never = decoyed.take(np.arange(50))
    few = rs.infer(never).machines.transition
    assert few.support is not None
    assert ((few.transitions >= 0) == (few.support.transitions > 0))[:, 1:].all()


def test_a_list_of_trivial_labels_is_used_even_if_empty(decoyed):
    result = rs.infer(decoyed, options=rs.InferenceOptions(trivial=[]))
    assert result.machines.transition.trivial_labels == (frozenset(),)
    (silence,) = result.trivial["transition"]
    assert (silence.label, silence.basis) == (frozenset(), TrivialityBasis.DEFAULT)
    assert rs.infer(decoyed, options=rs.InferenceOptions(remove_trivial=False)).trivial == {
        "transition": (),
        "reward": (),
    }


def test_steps_without_events_are_kept_if_they_matter():
    waiting = rs.TraceSet([rs.Trace([0] * 4, [None] * 4, ["go"] * 3, [0, 0, 1])])
    result = rs.infer(waiting)
    assert result.machines.score(waiting).perfect
    assert [test.triviality for test in result.trivial["reward"]] == ["needed"]
    assert trivial_lines(result) == [
        "assumed to change no state of the transition machine: no event",
        "assumed to change no state of the reward machine: none",
    ]


def test_a_label_is_kept_if_dropping_it_adds_states(monkeypatch):
    """Label 1 is needed, and 5 traces do not contradict without it; suppose agreements misled."""

    def misled(*arguments, **options):
        return tuple(
            replace(test, triviality=Triviality.TRIVIAL) if test.label == {"1"} else test
            for test in assess_labels(*arguments, **options)
        )

    monkeypatch.setattr("resolvent.inference.task.assess_labels", misled)
    world = with_decoys(random_world(1, size=9, labels=3, tm_states=4), 2)
    result = rs.infer(world.rollouts(600, seed=1)[:5])
    assert result.transition.states == 2  # 4 without it
    judged = {test.label: test for test in result.trivial["transition"]}[frozenset({"1"})]
    assert (judged.triviality, judged.basis) == (Triviality.UNDECIDED, TrivialityBasis.SEARCH)


def test_evidence_comes_with_the_result(house):
    evidence = rs.infer(house).evidence
    assert evidence.holdout is not None
    assert evidence.holdout.traces == 31  # a fifth of the distinct ones, and a copy
    assert evidence.transition.inseparable == ()
    assert "hold-out: 0 of 31 held-out traces" in str(evidence)


@pytest.mark.parametrize(
    "options", [{}, {"trivial": ["sofa"], "supplement": False}, {"reward_digits": 3}]
)
def test_options_of_a_result_can_be_reused(interference, options):
    pair = rs.infer(interference, options=rs.InferenceOptions(**options)).machines
    stored = InferenceOptions.from_dict(pair.provenance.options)
    assert infer_with(stored, interference).machines == pair
    assert rs.evidence(pair, interference).holdout.carries_over is not None
    # Where nothing says what they were inferred from, traces are taken to be new.
    assert rs.evidence(pair.replacing(provenance=None), interference).holdout.carries_over is None


def test_a_strategy_that_keeps_labels_drops_only_no_event(decoyed):
    assert trivial_lines(rs.infer(decoyed)) != ["assumed to change no state: no event"]
    result = rs.infer(decoyed, strategy=KeepingLabels())
    assert trivial_lines(result) == ["assumed to change no state: no event"]


def test_refinement_finds_that_a_label_is_needed_after_all(monkeypatch):
    """The first trace alone does not tell that waiting matters."""
    traces = rs.TraceSet(
        [
            rs.Trace([1, 1], [None, None], ["go"], [1]),
            rs.Trace([0] * 4, [None] * 4, ["go"] * 3, [0, 0, 1]),
        ]
    )
    sample = lambda corpus, steps: np.array([0])  # noqa: E731
    monkeypatch.setattr("resolvent.replay.corpus.Corpus.sample", sample)
    result = rs.infer(traces, options=rs.InferenceOptions(refine=True))
    assert result.refinement.rounds == 2
    assert result.machines.score(traces).perfect
    test = result.trivial["reward"][0]
    assert test.triviality == "needed"
    assert {trace for trace, _ in test.witness} == {1}


def test_named_labels_may_be_missing_where_refinement_starts(monkeypatch):
    traces = rs.TraceSet(
        [
            rs.Trace([1, 1, 1], [None] * 3, ["go"] * 2, [1, 1]),
            rs.Trace([0] * 4, [None, "a", "b", "c"], ["go"] * 3, [0, 0, 0]),
        ]
    )
    sample = lambda corpus, steps: np.array([0])  # noqa: E731
    monkeypatch.setattr("resolvent.replay.corpus.Corpus.sample", sample)
    refined = rs.infer(traces, options=rs.InferenceOptions(refine=True, trivial=["a", "c"]))
    whole = rs.infer(traces, options=rs.InferenceOptions(trivial=["a", "c"]))
    assert refined.machines.transition == whole.machines.transition
    assert refined.machines.reward == whole.machines.reward
    with pytest.raises(rs.OptionError, match="'z' never occurs"):
        rs.infer(traces, options=rs.InferenceOptions(refine=True, trivial=["z"]))


def test_trivial_labels_come_as_a_list():
    with pytest.raises(rs.OptionError, match=r"write \['key'\], not 'key'"):
        rs.infer(BELL, options=rs.InferenceOptions(trivial="key"))
    with pytest.raises(rs.OptionError, match=r"trivial has \[\['bell'\]\]: give labels as texts"):
        rs.infer(BELL, options=rs.InferenceOptions(trivial=[[["bell"]]]))


def test_trivial_labels_and_keeping_them_exclude_each_other():
    with pytest.raises(rs.OptionError, match="remove_trivial is off"):
        rs.infer(BELL, options=rs.InferenceOptions(trivial=["bell"], remove_trivial=False))


def test_no_traces():
    with pytest.raises(rs.TraceError, match="there are no traces to infer from"):
        rs.infer(rs.TraceSet())


@pytest.mark.parametrize(("engine", "size"), [("native", 500), ("python", 60)])
def test_the_time_limit_is_for_the_whole_inference(engine, size):
    """Rewards at random: the transition machine is found at once, the other one takes ages."""
    random = np.random.default_rng(0)
    traces = []
    for _ in range(size):
        labels = [["a", "b", "c", "d"][code] for code in random.integers(0, 4, 201)]
        # Up to step 10 histories may be shared: there another query is asked.
        actions = ["stay"] * 11 + ["go"] * 189
        rewards = [0] * 11 + random.integers(0, 2, 189).tolist()
        traces.append(rs.Trace([0] * 201, labels, actions, rewards))
    for limit in (0.7, 7, 70):  # until a slow machine has come to the rewards
        reports = []
        result = rs.infer(
            rs.TraceSet(traces),
            noise="none",
            time_limit=limit,
            progress=lambda name, progress, reports=reports: reports.append((name, progress)),
            options=rs.InferenceOptions(engine=engine),
        )
        if "transition" not in result.unfinished and any(name == "reward" for name, _ in reports):
            break
    assert list(result.unfinished) == ["reward"]
    assert 0 < result.unfinished["reward"] < 0.6
    assert not result.explains_all_traces
    assert "not all traces are explained" in str(result)
    assert result.machines.score(rs.TraceSet(traces)).reward.wrong > 0
    (cut,) = [warning for warning in result.warnings if warning.kind == "time-ran-out"]
    assert cut.figures == {"machines": ["reward"], "wrong": [result.unfinished["reward"]]}
    assert {name for name, _ in reports} <= {"transition", "reward"}
    assert any(name == "reward" for name, _ in reports)
    assert all(isinstance(progress, Progress) for _, progress in reports)


# ---- strategies of one's own -----------------------------------------------


@pytest.mark.parametrize("engine", ["native", "python"])
def test_an_own_strategy_runs_on_the_python_engine_whatever_was_asked(house, engine):
    result = rs.infer(house, strategy=MostAgreeing(), options=rs.InferenceOptions(engine=engine))
    assert result.options.engine == "python"
    assert result.as_dict()["options"]["engine"] == "python"
    assert result.as_dict()["options"]["strategy"] == "most agreeing"
    assert (result.transition.states, result.reward.states) == (2, 2)


def test_a_stricter_strategy_finds_more_states():
    """Three nodes in a line, asked one query each: to loop their label folds two of them."""
    waiting = rs.TraceSet([rs.Trace([0] * 4, ["tick"] * 4, ["wait"] * 3, [0, 0, 0])])
    states = [
        rs.infer(
            waiting,
            strategy=AtLeast(k),
            options=rs.InferenceOptions(trivial=[], remove_redundant=False),
        ).reward.states
        for k in (0, 1, 2, 3)
    ]
    assert states == [1, 1, 1, 3]


def test_a_strategy_decides_whether_to_refine(house, monkeypatch):
    monkeypatch.setattr("resolvent.inference.refinement.REFINE_ABOVE_STEPS", 10)
    monkeypatch.setattr("resolvent.inference.refinement.SAMPLE_STEPS", 100)
    learned_from = {
        strategy: rs.infer(house, strategy=strategy).refinement.traces
        for strategy in ("edsm", "rpni", MostAgreeing(), FirstInOrder())
    }
    assert learned_from["edsm"] == learned_from[MostAgreeing()] < len(house)
    assert learned_from["rpni"] == learned_from[FirstInOrder()] == len(house)


def test_machines_of_an_own_strategy_are_saved_with_its_name(house, tmp_path):
    result = rs.infer(house, strategy=MostAgreeing())
    result.machines.save(tmp_path / "own.json")
    pair = rs.load(tmp_path / "own.json")
    assert pair == result.machines
    assert pair.provenance.options["strategy"] == "most agreeing"
    with pytest.raises(
        rs.errors.ModelError, match="strategy 'most agreeing', which is not built in"
    ):
        InferenceOptions.from_dict(pair.provenance.options)
    assert rs.evidence(pair, house).holdout is None
    assert rs.evidence(result, house).holdout.carries_over is not None
    again = InferenceOptions.from_dict(pair.provenance.options, MostAgreeing())
    assert infer_with(again, house).machines == pair


def test_an_own_strategy_has_evidence_and_updates(house):
    result = rs.infer(house[:100], strategy=MostAgreeing())
    assert result.evidence.holdout is not None
    assert result.update(house[100:]).options.strategy == MostAgreeing()


def pressing(presses, ends, waits=0):
    """In one room, some waiting, then a button pressed; whether the last press ends the episode."""
    steps = presses + waits
    return rs.Trace(
        ["room"] * (steps + 1),
        [None] * (waits + 1) + ["pressed"] * presses,
        ["wait"] * waits + ["press"] * presses,
        [0] * steps,
        terminated=ends,
        truncated=not ends,
    )


def test_two_traces_that_agree_by_coincidence_add_no_machine():
    """Three states and a label take 4.8 bits to write down; one end in five steps, 3.6."""
    few = rs.infer(rs.TraceSet([pressing(3, True), pressing(2, False)]))
    assert [*few.machines] == ["transition", "reward"]
    assert len(few.machines.termination.ambiguous) == 1
    named = rs.infer(few.all_traces(), outputs=["observation", "reward", "terminated"])
    assert named.machines["terminated"].states == 3


def test_with_more_traces_endings_get_a_machine():
    often = [pressing(presses, presses == 3, waits) for waits in range(20) for presses in (3, 2)]
    at_once = rs.infer(rs.TraceSet(often))
    assert at_once.machines["terminated"].states == 3
    assert not at_once.machines.termination.ambiguous
    # Two traces are too few to tell, repeated or not; with more it is tried again.
    for few in (often[:2], often[:2] * 30):
        assert "terminated" not in rs.infer(rs.TraceSet(few)).machines
    result = rs.infer(rs.TraceSet(often[:2])).update(rs.TraceSet(often[2:]))
    assert result.machines["terminated"] == at_once.machines["terminated"]


def test_random_endings_get_no_machine():
    ends = [pressing(presses % 7 + 1, presses % 2 == 0) for presses in range(140)]
    result = rs.infer(rs.TraceSet(ends))
    assert [*result.machines] == ["transition", "reward"]
    with pytest.raises(rs.ContradictoryTraces) as caught:
        rs.infer(rs.TraceSet(ends), outputs=["terminated"], noise="none")
    assert caught.value.output == "terminated"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"supplement": "no"}, "supplement='no': give True or False"),
        ({"refine": 1}, "refine=1: give True or False or None"),
        ({"seed": 1.5}, "seed=1.5: give a whole number"),
        ({"effort": "much"}, "effort='much': give a number"),
        ({"time_limit": "5"}, "time_limit='5': give a number or None"),
        ({"noise": "loud"}, "noise='loud': give a Noise, 'none' or 'auto'"),
    ],
)
def test_options_are_checked_when_they_are_made(house, option, message):
    with pytest.raises(rs.OptionError, match=message):
        rs.infer(house, options=rs.InferenceOptions(**option))


def test_numpy_numbers_are_accepted_as_options(house, tmp_path):
    numbers = {"reward_digits": np.int64(2), "seed": np.int64(3), "effort": np.float64(1)}
    machines = rs.infer(
        house, options=rs.InferenceOptions(**numbers, supplement=np.bool_(True))
    ).machines
    machines.save(tmp_path / "house.json")
    assert rs.load(tmp_path / "house.json") == machines


def in_costs(actions, costs):
    return rs.TraceSet([rs.Trace([0, 1, 0], [None, "k", None], actions, columns={"c": costs})] * 6)


def test_an_update_distinguishes_equal_values_of_different_types():
    ints, floats = in_costs([0, 1], [1, 2]), in_costs([0, 1], [1.0, 2.0])
    flags = in_costs([False, True], [1, 2])
    updated, whole = rs.infer(ints).update(floats), rs.infer(ints + floats)
    assert updated.machines == whole.machines
    assert updated.machines.provenance.traces_sha256 == updated.all_traces().digest
    with pytest.raises(rs.TraceError, match="one type"):
        rs.infer(ints).update(flags)


def test_an_update_may_add_outputs():
    """A log has one observation throughout; if another turns up, it is none."""

    def seen(last):
        labels, columns = [None, f"to {last}", None], {"c": [1, 2]}
        return rs.TraceSet([rs.Trace([0, 0, last], labels, "xy", columns=columns)] * 4)

    assert [*rs.infer(seen(0)).machines] == ["c"]
    updated = rs.infer(seen(0)).update(seen(1)).machines
    assert [*updated] == ["transition"]
    assert updated == rs.infer(seen(0) + seen(1)).machines


@pytest.mark.slow
def test_too_many_augmented_states_are_refused():
    steps = 40
    columns = {f"c{n:02}": [int(t % 30 == n) for t in range(steps)] for n in range(14)}

    def traces(terminated):
        labels = [["k"]] * (steps + 1)
        seen = [0] * (steps + 1)
        return rs.TraceSet(
            [rs.Trace(seen, labels, ["a"] * steps, terminated=terminated, columns=columns)]
        )

    log = traces(False)
    machines = rs.infer(log).machines
    assert len(machines) == 14
    assert machines.score(log).perfect
    with pytest.raises(rs.errors.ModelError, match=r"14 machines have .* with fewer outputs each"):
        rs.infer(traces(True))


def test_single_traces_and_paths_are_accepted_as_traces(house, tmp_path):
    result = rs.infer(house[:20])
    house.save(tmp_path / "house.parquet")
    assert result.update([house[20]]).traces == 21
    assert result.machines.score([house[0]]).perfect
    assert rs.evidence(result, tmp_path / "house.parquet").traces == len(house)


@pytest.fixture(scope="module")
def house_traces():
    return rs.collect(House(), episodes=60, seed=0)


def test_fit_infers_what_infer_does(house_traces):
    fitted = MachineInference(strategy="rpni", seed=3).fit(house_traces)
    assert fitted.machines_ == rs.infer(house_traces, strategy="rpni", seed=3).machines
    assert fitted.result_.options.seed == 3
    assert pickle.loads(pickle.dumps(fitted)).machines_ == fitted.machines_  # noqa: S301


def test_partial_fit_updates(house_traces):
    fitted = MachineInference().partial_fit(house_traces[:5]).partial_fit(house_traces[5:])
    assert fitted.machines_ == rs.infer(house_traces[:5]).update(house_traces[5:]).machines


def test_the_score_is_the_share_of_right_outputs(house_traces):
    fitted = MachineInference().fit(house_traces[:2])
    fresh = rs.collect(House(), episodes=20, seed=1)
    scores = fitted.machines_.score(fresh).values()
    right, steps = (
        sum(getattr(score, name) for score in scores) for name in ("all_right", "steps")
    )
    assert fitted.score(fresh) == right / steps < 1


def test_parameters_are_those_of_the_options(house_traces):
    inference = MachineInference(strategy="edsm")
    assert inference.get_params()["strategy"] == "edsm"
    assert inference.get_params().keys() == vars(rs.InferenceOptions()).keys() - {
        "_timing_is_default"
    }
    assert inference.set_params(strategy="rpni", effort=2.0) is inference
    assert repr(inference) == "MachineInference(strategy='rpni', effort=2.0)"
    with pytest.raises(rs.OptionError, match="states is no option of inference"):
        MachineInference(states=3)
    with pytest.raises(rs.OptionError, match="strategy"):
        MachineInference(strategy="fast").fit(house_traces)


def test_scikit_learn_clones_validates_and_searches(house_traces):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score

    inference = MachineInference(strategy="edsm").fit(house_traces)
    again = clone(inference)
    assert again.get_params() == inference.get_params()
    assert not hasattr(again, "machines_")
    assert cross_val_score(again, house_traces, cv=3).min() > 0.9
    search = GridSearchCV(MachineInference(), {"strategy": ["rpni", "edsm"]}, cv=2).fit(
        house_traces
    )
    assert search.best_params_["strategy"] in ("rpni", "edsm")
    assert search.best_estimator_.machines_.transition.states == 2
