import pickle
from collections import Counter
from dataclasses import fields as fields_of
from dataclasses import replace
from math import log
from statistics import fmean

import pytest
from chance_oracle import known_chance
from hypothesis import given, settings
from observed_machines import with_observed
from oracles import asked_in

import resolvent as rs
from noisy_worlds import dice, loaded_die
from resolvent.machines import Mismatch, machines_of
from resolvent.machines.likelihood import smoothing_of
from resolvent.traces import Vocabulary
from strategies import infer_options, noisy_machines, world_traces


def trace(observations, labels, actions, rewards):
    return rs.Trace(observations, labels, actions, rewards)


# A door: in the hall, "push" leads to the hall until the key was heard of, then to the room.
TAUGHT = rs.TraceSet(
    [
        trace(
            ["hall", "hall", "hall", "room"],
            [None, None, "key", None],
            ["push", "look", "push"],
            [0, 0, 1],
        ),
        trace(["hall", "hall", "hall"], [None, "bell", None], ["push", "push"], [0, 0]),
    ]
)
PAIR = with_observed(rs.infer(TAUGHT).machines, TAUGHT)


def counts(score):
    return (score.right, score.wrong, score.unseen)


def assumed(score):
    return (score.assumed_right, score.assumed_wrong)


def test_the_teaching_traces_are_all_right():
    score = PAIR.score(TAUGHT)
    assert (PAIR.transition.states, PAIR.reward.states) == (2, 1)
    assert counts(score.transition) == (5, 0, 0)
    assert counts(score.reward) == (5, 0, 0)
    assert score.perfect
    assert score.first_mismatch is None
    assert (
        str(score) == "transition right 5, wrong 0, unseen 0\nreward     right 5, wrong 0, unseen 0"
    )


def test_the_first_mismatch_is_named():
    other = rs.TraceSet(
        [
            trace(["hall", "hall"], [None, None], ["push"], [0]),
            # Step 0 pays 5, which was never paid; step 1 leads to the room without the key.
            trace(["hall", "hall", "room"], [None, None, None], ["push", "push"], [5, 0]),
        ]
    )
    score = PAIR.score(other)
    assert counts(score.transition) == (2, 1, 0)
    assert counts(score.reward) == (2, 1, 0)
    assert not score.perfect
    assert score.transition.first_mismatch == Mismatch(
        "transition", 1, 1, "hall", "push", 0, "hall", "room"
    )
    assert score.reward.first_mismatch == Mismatch("reward", 1, 0, "hall", "push", 0, 0.0, 5.0)
    assert score.first_mismatch == score.reward.first_mismatch
    assert str(score).endswith(
        "first mismatch: reward machine, trace 1, step 0: in state 0 it predicts 0.0 for "
        "('hall', 'push'), the trace has 5.0"
    )


def test_of_one_step_the_transition_comes_first():
    other = rs.TraceSet([trace(["hall", "room"], [None, None], ["push"], [5])])
    score = PAIR.score(other)
    assert score.first_mismatch == score.transition.first_mismatch


def test_an_unseen_label_makes_the_rest_unseen_but_for_constants():
    other = rs.TraceSet(
        [
            trace(
                ["hall", "hall", "hall", "hall"],
                [None, "gong", "key", None],
                ["push", "push", "look"],
                [0, 0, 0],
            ),
            trace(["hall", "hall"], [None, None], ["push"], [0]),  # a new trace starts afresh
        ]
    )
    score = PAIR.score(other)
    # Looking answers "hall" in every state, and so it is assumed to in one not known.
    assert counts(score.transition) == (2, 0, 1)
    assert assumed(score.transition) == (1, 0)
    assert not score.perfect
    assert counts(score.reward) == (2, 0, 2)  # its query needs the transition state


def test_a_known_label_that_was_never_read_in_this_state():
    other = rs.TraceSet([trace(["hall"] * 3, [None, "key", "bell"], ["push", "look"], [0, 0])])
    states = [PAIR.transition.step(1, {"bell"}), PAIR.transition.step(1, {"key"})]
    assert states == [rs.UNSEEN, rs.UNSEEN]
    assert PAIR.score(other).transition.unseen == 0  # the bell is the last label, which is not read


def test_unknown_observations_and_actions_are_unseen():
    other = rs.TraceSet(
        [trace(["attic", "hall", "hall", "hall"], [None] * 4, ["push", "pull", "push"], [0, 0, 0])]
    )
    score = PAIR.score(other)
    assert counts(score.transition) == (1, 0, 2)
    assert counts(score.reward) == (1, 0, 2)


def test_an_outcome_that_no_machine_knows_is_wrong():
    other = rs.TraceSet([trace(["hall", "attic"], [None, None], ["push"], [0])])
    found = PAIR.score(other).transition.first_mismatch
    assert found is not None
    assert (found.predicted, found.actual) == ("hall", "attic")


def test_rewards_are_rounded_as_the_machine_was_taught():
    noisy = rs.TraceSet([trace([0, 0, 0], [None] * 3, ["go", "go"], [0.501, 0.499])])
    pair = with_observed(
        rs.infer(noisy, options=rs.InferenceOptions(reward_digits=2)).machines, noisy
    )
    assert pair.score(noisy).perfect
    other = rs.TraceSet([trace([0, 0, 0], [None] * 3, ["go", "go"], [0.5049, 0.51])])
    found = pair.score(other)
    assert counts(found.reward) == (1, 1, 0)
    assert found.reward.first_mismatch is not None
    assert found.reward.first_mismatch.actual == 0.51


def test_generalized_outputs_are_counted_separately():
    # The taught traces looked before the key was read, never after.
    other = rs.TraceSet(
        [
            trace(["hall"] * 3, [None, "key", None], ["look", "look"], [0, 0]),
            trace(["hall", "hall", "room"], [None, "key", None], ["look", "look"], [0, 0]),
        ]
    )
    score = PAIR.score(other)
    assert counts(score.transition) == (2, 0, 0)
    assert assumed(score.transition) == (1, 1)
    assert (score.transition.all_right, score.transition.all_wrong) == (3, 1)
    assert score.transition.steps == 4
    assert not score.perfect
    found = score.transition.first_mismatch
    assert found == Mismatch(
        "transition", 1, 1, "hall", "look", 1, "hall", "room", generalized=True
    )
    assert str(found).endswith(
        "in state 1 it predicts 'hall' for ('hall', 'look'), generalized from other states, "
        "the trace has 'room'"
    )
    line = "transition right 2, wrong 0, generalized right 1, generalized wrong 1, unseen 0"
    assert str(score).splitlines()[0] == line


def test_a_mismatch_where_the_state_is_not_known():
    found = Mismatch("reward", 0, 2, "hall", "look", -1, 0.0, 1.0, generalized=True)
    assert "step 2: in an unknown state it predicts 0.0" in str(found)


def test_a_machine_for_when_episodes_end_is_scored_on_that():
    over = TAUGHT + rs.TraceSet([rs.Trace(["hall"] * 2, [None] * 2, ["push"], [0], True)])
    ends = replace(PAIR.transition, outputs=Vocabulary([False, True]))
    fields = {one.name: getattr(ends, one.name) for one in fields_of(ends)}
    machine = rs.Machine(**{**fields, "predicts": "terminated"})
    score = machines_of([machine]).score(over)
    # It answers False for pushing before the key, True after it, and False for looking.
    assert list(score) == ["terminated"]
    assert counts(score["terminated"]) == (4, 2, 0)
    assert score.first_mismatch.actual is False
    with pytest.raises(rs.errors.ModelError, match="there is no transition machine here"):
        _ = score.transition


def test_a_column_that_traces_lack_is_refused():
    fields = {one.name: getattr(PAIR.transition, one.name) for one in fields_of(PAIR.transition)}
    machines = machines_of([rs.Machine(**{**fields, "predicts": "cost"})])
    with pytest.raises(rs.errors.ModelError, match="predicts cost, which these traces do not have"):
        machines.score(TAUGHT)


def test_scores_add_up_and_travel():
    first, second = PAIR.score(TAUGHT[:1]), PAIR.score(TAUGHT[1:])
    both = first.then(second, 1)
    assert both == PAIR.score(TAUGHT)
    assert hash(both) == hash(PAIR.score(TAUGHT))
    assert pickle.loads(pickle.dumps(both)) == both  # noqa: S301
    assert dict(both) == {"transition": both.transition, "reward": both.reward}


def test_no_traces_score_nothing():
    score = PAIR.score(rs.TraceSet())
    assert (score.transition.steps, score.reward.steps) == (0, 0)
    assert score.perfect


@settings(deadline=None, max_examples=100)
@given(world_traces(), world_traces(), infer_options)
def test_scores_on_other_traces_agree_with_asking_step_by_step(taught, asked, options):
    pair = with_observed(rs.infer(taught, options=rs.InferenceOptions(**options)).machines, taught)
    shown = {(kind, state, seen, a) for kind, state, seen, a, _ in asked_in(pair, taught)}
    tallies = {"transition": Counter(), "reward": Counter()}
    for kind, state, seen, action, actual in asked_in(pair, asked):
        told = pair[kind].output(state, seen, action)
        level = "unseen" if told is rs.UNSEEN else "right" if told == actual else "wrong"
        if level != "unseen" and (kind, state, seen, action) not in shown:
            level = f"assumed_{level}"
        tallies[kind][level] += 1
    score = pair.score(asked)
    for kind, tally in tallies.items():
        for level in ("right", "wrong", "assumed_right", "assumed_wrong", "unseen"):
            assert getattr(score[kind], level) == tally[level]


def test_a_mismatch_of_images_says_where_they_differ():
    black, dotted = ((0,) * 100,) * 2, ((0,) * 100, (0,) * 42 + (9,) + (0,) * 57)
    found = Mismatch("transition", 3, 1, black, "go", 0, black, dotted)
    assert str(found).endswith("; they differ in 1 of 200 values: [1, 42] is 0 and 9")
    assert "0, 0" not in str(found)


@settings(deadline=None, max_examples=25)
@given(noisy_machines(), world_traces())
def test_log_loss_and_calibration_agree_with_asking_step_by_step(found, others):
    machines, taught = found
    asked = rs.TraceSet([*taught, *others])
    score = machines.score(asked)
    for kind in ("transition", "reward"):
        machine, losses, sure = machines[kind], [], Counter()
        for name, *query, actual in asked_in(machines, asked):
            told = machine.output(*query) if name == kind else rs.UNSEEN
            if told is not rs.UNSEEN:
                losses.append(-log(chance(machine, *query, actual)))
                main = chance(machine, *query, told)
                if abs(main * 20 - round(main * 20)) > 1e-9:  # on no edge of the bins
                    sure[int(main * 20) / 20, told == actual] += 1
        if not losses:
            assert score[kind].log_loss is None
            continue
        assert score[kind].log_loss == pytest.approx(fmean(losses), abs=1e-8)
        assert sum(row.steps for row in score[kind].calibration) == len(losses)
        if sure.total() == len(losses):
            assert sure == {
                (row.lower, came): count
                for row in score[kind].calibration
                for came, count in (
                    (True, round(row.right * row.steps)),
                    (False, row.steps - round(row.right * row.steps)),
                )
                if count
            }


def chance(machine, state, seen, action, output):
    """How likely an output is, of answers to all states where the query is constant."""
    states = [state]
    if (seen, action) in machine.constant_outputs:
        states = range(machine.states)
    answers = Counter()
    for one in states:
        answers.update(machine.counts(one, seen, action))
    told = smoothing_of(machine)
    if output not in machine.outputs:
        return told.novelty
    asked = (state, seen, action)
    return (1 - told.novelty) * known_chance(machine, told, asked, answers, output)


@settings(deadline=None, max_examples=40)
@given(noisy_machines())
def test_scores_of_noisy_machines_add_up(found):
    machines, traces = found
    parts = [machines.score(traces[:1]), machines.score(traces[1:])]
    assert parts[0].then(parts[1], 1) == machines.score(traces)


def test_what_is_most_likely_counts_as_right():
    rolls = (1, 1, 1, 6)
    die = loaded_die(*rolls)
    score = die.score(dice(*rolls)).reward
    assert counts(score) == (3, 1, 0)
    told = smoothing_of(die.reward)
    assert told.novelty == 0.5 / 5
    odd = told.strength * told.noise[2]  # of queries that were asked four times
    main, other = (0.9 * one / (4 + told.strength) for one in (3 + told.strength - odd, 1 + odd))
    assert score.log_loss == pytest.approx(-(3 * log(main) + log(other)) / 4)
    (row,) = score.calibration
    assert (row.predicted, row.right, row.steps) == (pytest.approx(main), 0.75, 4)
