from collections import Counter

from hypothesis import given, settings

import resolvent as rs
from resolvent.machines import Mismatch
from resolvent.samples import LabelTiming
from strategies import infer_options, world_traces


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
PAIR = rs.infer(TAUGHT).machines


def counts(score):
    return (score.right, score.wrong, score.unseen)


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
        "('hall', 'push'), the trace says 5.0"
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
    assert counts(score.transition) == (3, 0, 1)  # looking answers "hall" in every state
    assert counts(score.reward) == (2, 0, 2)  # its question needs the transition state


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
    pair = rs.infer(noisy, reward_digits=2).machines
    assert pair.score(noisy).perfect
    other = rs.TraceSet([trace([0, 0, 0], [None] * 3, ["go", "go"], [0.5049, 0.51])])
    found = pair.score(other)
    assert counts(found.reward) == (1, 1, 0)
    assert found.reward.first_mismatch is not None
    assert found.reward.first_mismatch.actual == 0.51


def test_no_traces_score_nothing():
    score = PAIR.score(rs.TraceSet())
    assert (score.transition.steps, score.reward.steps) == (0, 0)
    assert score.perfect


@settings(deadline=None, max_examples=100)
@given(world_traces(), world_traces(), infer_options)
def test_scores_on_other_traces_agree_with_asking_step_by_step(taught, asked, options):
    pair = rs.infer(taught, **options).machines
    tallies = {"transition": Counter(), "reward": Counter()}
    for one in asked:
        for t, action in enumerate(one.actions):
            first = {LabelTiming.CURRENT: 1}.get(pair.timing, 0)
            last = t if pair.timing is LabelTiming.LAGGED else t + 1
            q, u = (m.run(one.labels[first:last]) for m in (pair.transition, pair.reward))
            told = pair.predict(one.observations[t], action, q, u)
            actual = (one.observations[t + 1], one.rewards[t])
            for name, mine, yours in zip(tallies, told, actual, strict=True):
                kind = "unseen" if mine is rs.UNSEEN else "right" if mine == yours else "wrong"
                tallies[name][kind] += 1
    score = pair.score(asked)
    for name, tally in tallies.items():
        mine = getattr(score, name)
        assert {"right": mine.right, "wrong": mine.wrong, "unseen": mine.unseen} == {
            kind: tally[kind] for kind in ("right", "wrong", "unseen")
        }
